"""Shares of sets of values, which are not the sums of shrunken shares: errors of one sign add up.

Errors of m shrunken cells add up like m, the noise of the unbiased sum like the root of min(m, d - m). So a large set
is answered near its unbiased sum. See `docs/maths/post-processing.md`, "Sums".
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from tacit.arrays import F64
from tacit.core.estimate import Estimate
from tacit.post.frequencies.methods import Method, Processed, find_method, process

LEASH = 1.5
"""A large set is at most this many standard deviations from its unbiased sum: its root risk is below 2.5 of them."""

NOTE = "not the sum of the shown shares, each of which is shrunk: what is lost in every one of them would add up"


@dataclass(frozen=True, eq=False)
class SetShare:
    """The share of a set of values: as it is answered, and raw."""

    answered: Processed
    """One cell; its raw estimate is the unbiased sum."""
    note: str = ""
    """Why it is not the sum of the shown shares; empty where it is."""


def share_of_set(raw: Estimate, members: F64, method: Method, *, ordered: bool = False) -> SetShare:
    """Return the share of the cells whose `members` are 1 rather than 0, by the method that was picked for sets.

    Up to sqrt(d) cells (or all but so many) it is the sum of the processed shares; beyond, that sum kept within 1.5
    standard deviations of the sum after Norm, which is unbiased. A run of `ordered` cells is a range, and answered by
    the nearest distribution function.
    """
    row = members[None, :]
    whole = raw.combine(row)
    if not raw.has_data:
        return SetShare(Processed(method, whole, whole))
    if ordered and _is_run(members):
        return _answer(whole, float(members @ process(raw, "monotone").value), find_method("monotone"), NOTE)
    shown = float(process(raw, method).combine(row)[0])
    few = min(int(members.sum()), len(members) - int(members.sum()))
    if few <= sqrt(len(members)):
        return _answer(whole, shown, method, "")
    unbiased = process(raw, "norm").estimate.combine(row)
    reach = LEASH * float(unbiased.standard_error[0])
    kept = float(np.clip(shown, unbiased.value[0] - reach, unbiased.value[0] + reach))
    return _answer(whole, kept, method, NOTE if kept != shown else "")


def _is_run(members: F64) -> bool:
    """Whether the members stand side by side."""
    places = np.flatnonzero(members)
    return len(places) > 0 and int(places[-1] - places[0]) == len(places) - 1


def _answer(raw: Estimate, value: float, method: Method, note: str) -> SetShare:
    cut = np.array([min(max(value, 0.0), 1.0)])
    return SetShare(Processed(replace(method, biased=True), raw, replace(raw, value=cut)), note)
