"""The device half of every mechanism: standard library only, no floats, small enough to audit in one sitting.

This package is the reference for everything that touches a private value. The batch code on numpy and the
JavaScript twin must produce the same bytes from the same coins; golden vectors hold all three together.
"""
