"""The task `heavy_hitters`: the most frequent texts, bit strings or integers of a domain nobody enumerates."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from hashlib import blake2b
from math import ceil, floor, log10
from threading import Lock
from typing import Any

import numpy as np

from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally, PerMember, against_everyone
from tacit.core.tally import Counts, Log
from tacit.device.budget import Budget
from tacit.device.domain import Domain, Strings
from tacit.errors import InvalidSpec, InvalidValue
from tacit.oracles.local_hash import OLH
from tacit.tasks.heavy_hitters import ALPHA, Hitters, find_hitters, groups_of, searchable_threshold
from tacit.tasks.hitters_options import detectable_words
from tacit.tasks.hitters_plan import HittersPlan, plan_lengths, plan_pem
from tacit.tasks.spelling import spelling_of
from tacit.tasks.task import Answer, Forecast, Part, Query, Task

DEFAULT_K = 32
MOST_K = 1024
MOST_NAMED = 1000


class _Recent:
    """Walks are slow and answers are asked for again and again: the last few results, by what they were made of."""

    def __init__(self, size: int) -> None:
        self._size, self._lock = size, Lock()
        self._found: OrderedDict[Any, Hitters] = OrderedDict()

    def find(self, domain: Domain, part: Part, k: int, threshold: float | None) -> Hitters:
        """The result of a walk, made now or before."""
        key = (part.mechanism.digest, domain.digest, part.respondents, k, threshold, _content(part.tally))
        with self._lock:
            known = self._found.get(key)
        if known is None:
            known = find_hitters(
                part.mechanism, part.tally, spelling_of(domain), k=k, threshold=threshold, respondents=part.respondents
            )
            with self._lock:
                self._found[key] = known
                while len(self._found) > self._size:
                    self._found.popitem(last=False)
        return known


def _content(tally: AnyTally) -> bytes:
    """A digest of everything that a tally holds."""
    state = blake2b(digest_size=16)
    _add_content(tally, state)
    return state.digest()


def _add_content(tally: Any, state: Any) -> None:
    if isinstance(tally, PerMember):
        for member in range(len(tally.layout.block)):
            _add_content(tally.member(member), state)
    elif isinstance(tally, Log):
        for column in (*tally.chunks, *(tally.weights or ())):
            state.update(np.ascontiguousarray(column).tobytes())
    else:
        assert isinstance(tally, Counts)
        state.update(tally.cells.tobytes())
    state.update(b"|%d" % tally.n)


_RECENT = _Recent(8)


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    if isinstance(domain, Strings):
        return OLH(size=domain.size, epsilon=budget, state="log")
    return plan_pem(spelling_of(domain), epsilon=budget, n=n, k=DEFAULT_K).mechanism


def _answer(domain: Domain, part: Part) -> Answer:
    """Values that are surely no noise; ids of hashed texts are not found, only looked up."""
    if isinstance(domain, Strings):
        none = np.zeros(0)
        return Answer("share", Estimate(none, none, part.tally.n, labels=[]), None, "candidates")
    found = _RECENT.find(domain, part, DEFAULT_K, None).sure(ALPHA)
    labels = [domain.decode(index) for index in found.values.tolist()]
    return Answer("share", replace(found.estimate, labels=labels, covariance=None), None, "prefixes")


def _planned(domain: Domain, mechanism: Mechanism, n: int) -> HittersPlan:
    """The plan behind a mechanism."""
    spelling = spelling_of(domain)
    groups = groups_of(mechanism, mechanism.tally(mechanism.decode(b"")), spelling)
    weights = getattr(getattr(mechanism, "family", None), "weights", (1,))
    lengths = [group.length for group in groups]
    return plan_lengths(spelling, mechanism.budget, n, DEFAULT_K, lengths, keep=2 * DEFAULT_K, weights=weights)


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    if isinstance(domain, Strings):
        oracle = OLH(size=domain.size, epsilon=mechanism.budget, state="log")
        return Forecast(oracle.standard_error(n), "a text that is looked up", "Hashed texts are looked up by name.")
    plan = _planned(domain, mechanism, n)
    last = max(1.0, plan.group_sizes[-1])
    why = (
        f"{len(plan.lengths)} groups report prefixes of {', '.join(map(str, plan.lengths))} digits. "
        f"{detectable_words(plan)}"
    )
    return Forecast(float(np.sqrt(plan.oracle.variance_at_zero / last)), "the share of a value that is found", why)


def _whole(given: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = given.get(name, str(default))
    if not text.isdecimal() or not 1 <= int(text[:12]) <= most:
        raise InvalidSpec(f"{name} must be an integer from 1 to {most}")
    return int(text)


def _rows(domain: Domain, part: Part, found: Hitters, level: float) -> dict[str, Any]:
    rows = [
        {"value": domain.decode(row.index), "estimate": row.share, "standard_error": row.standard_error,
         "low": row.low, "high": row.high, "noise_probability": row.noise_probability}
        for row in found.to_list(level)
    ]  # fmt: skip
    plan = _planned(domain, part.mechanism, max(1, part.tally.n))
    half, certified = plan.detectable(0.5), plan.certified(0.5)
    return {
        "values": rows,
        "significant": found.significant(ALPHA),
        "candidates": found.examined,
        "detectable_share": half if half <= 1 else None,
        "certified_share": certified if certified <= 1 else None,
        "about": detectable_words(plan),
        "flags": list(found.flags),
    }


def _searchable(domain: Domain) -> None:
    if isinstance(domain, Strings):
        raise InvalidSpec("heavy hitters: hashed texts are not found, only looked up; name candidates")


def _top(domain: Domain, part: Part, given: Mapping[str, str], level: float) -> dict[str, Any]:
    _searchable(domain)
    k = _whole(given, "k", DEFAULT_K, MOST_K)
    return {"k": k} | _rows(domain, part, _RECENT.find(domain, part, k, None), level)


def _above(domain: Domain, part: Part, given: Mapping[str, str], level: float) -> dict[str, Any]:
    _searchable(domain)
    try:
        threshold = float(given["threshold"]) if "threshold" in given else _least_threshold(domain, part)
    except ValueError:
        raise InvalidSpec("above: threshold must be a number between 0 and 1") from None
    found = _RECENT.find(domain, part, MOST_K, threshold)
    return {"threshold": threshold} | _rows(domain, part, found, level)


def _least_threshold(domain: Domain, part: Part) -> float:
    """The smallest share that is searched for without warnings, rounded up to three digits so that it can be typed."""
    least = searchable_threshold(part.mechanism, part.tally, spelling_of(domain))
    digits = 2 - floor(log10(least))
    return min(ceil(least * 10**digits) / 10**digits, 0.999)


def _texts(domain: Domain, text: str) -> list[str]:
    """Values one a line; commas separate them too where no value of the domain can hold one."""
    try:
        domain.encode(",")
    except InvalidValue:
        text = text.replace(",", "\n")
    return [item for item in text.split("\n") if item]


def _named(domain: Domain, part: Part, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Shares of values that the analyst names: unbiased, without any search."""
    texts = _texts(domain, given.get("values", ""))
    if not 1 <= len(texts) <= MOST_NAMED:
        raise InvalidSpec(f"candidates: values must be 1 to {MOST_NAMED} texts, one a line")
    try:
        indices = np.array([domain.encode(text) for text in texts], np.uint64)
    except InvalidValue:
        raise InvalidSpec("candidates: a value is not in the domain of the question") from None
    oracle, tally = part.mechanism, part.tally
    if not isinstance(domain, Strings):
        last = groups_of(part.mechanism, part.tally, spelling_of(domain))[-1]
        oracle, tally = last.oracle, last.tally
    assert not isinstance(tally, PerMember)
    estimate = against_everyone(oracle.estimate(tally, indices), tally, part.respondents)
    rows = replace(estimate, labels=texts).to_rows(level)
    return {"values": [row | {"estimate": row.pop("frequency")} for row in rows]}


HEAVY_HITTERS = Task(
    "heavy_hitters",
    _plan,
    _answer,
    _forecast,
    (
        Query("top", "The k most frequent values, with the probability that they are noise.",
              {"k": "how many values"}, _top),
        Query("above", "All values above a share.",
              {"threshold": "the share, from 0 to 1; the smallest that can be searched if absent"}, _above),
        Query("candidates", "The shares of values that are named.",
              {"values": "texts, one a line; or with commas, where no value can hold one"}, _named),
    ),
)  # fmt: skip
