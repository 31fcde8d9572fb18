"""The device half of every mechanism: standard library only, no floats, small enough to audit in one sitting.

This package is the reference for everything that touches a private value. The batch code on numpy and the
JavaScript twin must produce the same bytes from the same coins; golden vectors hold all three together.

Reading order for a privacy review:

1. `numbers.coins`: where randomness comes from. A *coin word* is a uniform integer below 2^64, and every probability
   here is a whole number of words out of 2^64: "t words set the bit" means "with probability t/2^64, exactly".
2. `numbers.exact` and `numbers.budget`: how a decimal epsilon becomes the integer `odds`, rounded so that no realised
   likelihood ratio exceeds e^epsilon.
3. `base.Device`: the three methods that matter of every mechanism are `check_value`, `privatize_one`, which turns a
   value into the only bytes that leave the device, and `realised_odds`, its exact worst likelihood ratio.
4. `kinds`: one file per mechanism. `families`: questions of which one is drawn. Both are `Device` subclasses or parts
   of one; `catalog.KINDS` and `catalog.FAMILIES` list all of them.

A value is checked before the first coin is drawn, and no error message contains it.
"""
