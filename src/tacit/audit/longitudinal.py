"""AUD-LONG: what many reports of one device tell, exactly, where every report is drawn from a permanent answer.

A device draws its permanent answer once from the true value (`permanent[v, b]`), and every report from that
(`instantaneous[b, y]`). Any number of reports is a function of the permanent answer, whose epsilon therefore bounds all
of them; how close T reports come to it is enumerated here. A memoised device is the case in which every report repeats
the permanent answer.
"""

import numpy as np

from tacit.arrays import F64
from tacit.errors import InvalidSpec

_MOST_CELLS = 1 << 24
"""Entries of the largest table of sequences: 128 megabytes."""


def response_matrix(size: int, epsilon: float) -> F64:
    """Return the probabilities of randomised response: rows are values, columns are reports.

    >>> response_matrix(3, 1.0).sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    odds = np.full((size, size), 1.0)
    np.fill_diagonal(odds, np.exp(epsilon))
    return odds / odds.sum(axis=1, keepdims=True)


def sequence_law(permanent: F64, instantaneous: F64, reports: int) -> F64:
    """Return the probability of every sequence of so many reports: rows are values, columns are sequences."""
    kept, outcomes = instantaneous.shape
    if kept * outcomes**reports > _MOST_CELLS:
        raise InvalidSpec(f"sequences: {outcomes}^{reports} are too many to list; take fewer reports or values")
    # Given the permanent answer, reports are independent: each one more multiplies every sequence by its column.
    given = np.ones((kept, 1))
    for _ in range(reports):
        given = (given[:, :, None] * instantaneous[:, None, :]).reshape(kept, -1)
    return permanent @ given


def joint_epsilon(permanent: F64, instantaneous: F64, reports: int) -> float:
    """Return the exact epsilon of a device's first so many reports on one value.

    >>> p, i = response_matrix(5, 2.0), response_matrix(5, 1.0)
    >>> [round(joint_epsilon(p, i, reports), 3) for reports in (1, 2, 3, 5)]
    [0.608, 1.193, 1.61, 1.936]
    """
    law = sequence_law(permanent, instantaneous, reports)
    return float(np.max(np.log(law.max(axis=0)) - np.log(law.min(axis=0))))


def guess_success(permanent: F64, instantaneous: F64, reports: int) -> float:
    """Return how often the best guess of a uniform value from so many reports is right: the averaging attack.

    It never exceeds that of whoever sees the permanent answer itself.

    >>> p, i = response_matrix(5, 2.0), response_matrix(5, 1.0)
    >>> guess_success(p, i, 1) < guess_success(p, i, 4) < float(p[0, 0])
    True
    """
    return float(sequence_law(permanent, instantaneous, reports).max(axis=0).sum() / len(permanent))
