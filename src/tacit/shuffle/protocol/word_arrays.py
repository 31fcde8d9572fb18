"""Words to reports, a batch at a time: the collector's half of `words`."""

import numpy as np
import numpy.typing as npt

from tacit.arrays import U64
from tacit.core.mechanism import Mechanism, Reports
from tacit.shuffle.protocol.words import rule_of


def decode_words(mechanism: Mechanism, words: npt.ArrayLike) -> Reports:
    """The reports of words, as the array that `tally` takes.

    >>> from tacit import GRR
    >>> decode_words(GRR(size=10, epsilon="1"), np.array([7, 17, 2**64 - 1], np.uint64)).tolist()
    [7, 7, 5]
    """
    rule, array = rule_of(mechanism), np.asarray(words, np.uint64)
    # Unsigned all the way: words from 2^63 on would turn negative otherwise.
    codes: U64 = (array & np.uint64((1 << rule.bits) - 1)) % np.uint64(rule.outcomes)
    if not rule.seeded:
        return codes.astype(mechanism.report_dtype)
    reports = np.empty(len(array), mechanism.report_dtype)
    reports["seed"], reports["bucket"] = array >> np.uint64(32), codes
    return reports
