"""The task `heavy_hitters`: the most frequent texts, bit strings or integers of a domain too large to enumerate.

Plan, forecast, answer and queries; the search is in `hitters.hitters`. Hashed texts (domain `strings`) cannot be
searched for, since a hash has no prefixes that mean anything: named candidates are looked up instead.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, floor, log10
from typing import Any, cast

import numpy as np

from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.members import PerMember, against_everyone
from tacit.device.domains.domain import Domain, Strings
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec, InvalidValue
from tacit.oracles.local_hash import OLH
from tacit.tasks.hitters.hitters import ALPHA, Hitters, find_hitters, groups_of, searchable_threshold
from tacit.tasks.hitters.options import detectable_words
from tacit.tasks.hitters.plan import HittersPlan, plan_lengths, plan_pem
from tacit.tasks.hitters.spelling import spelling_of
from tacit.tasks.task import Answer, Forecast, QuestionTally, QuestionTask, TaskQuery, largest_step

DEFAULT_K = 32
MOST_K = 1024
MOST_NAMED = 1000


def _walk(domain: Domain, part: QuestionTally, k: int, threshold: float | None) -> Hitters:
    """Return the result of the prefix walk, cached: it is slow, and every page of a dashboard asks for it again."""
    return part.memo.get(
        ("heavy_hitters", part.place, k, threshold),
        lambda: find_hitters(
            part.mechanism, part.tally, spelling_of(domain), k=k, threshold=threshold, respondents=part.respondents
        ),
    )


def _plan(domain: Domain, budget: Budget, n: int) -> Mechanism:
    if isinstance(domain, Strings):
        return OLH(size=domain.size, epsilon=budget, state="log")
    return plan_pem(spelling_of(domain), epsilon=budget, n=n, k=DEFAULT_K).mechanism


def _answer(domain: Domain, part: QuestionTally) -> Answer:
    """Return the values that are significantly more than noise; nothing for hashed texts, which are only looked up."""
    if isinstance(domain, Strings):
        none = np.zeros(0)
        return Answer("share", Estimate(none, none, part.tally.n, labels=[]), None, "candidates")
    certain = _walk(domain, part, DEFAULT_K, None).sure(ALPHA)
    labels = [domain.decode(index) for index in certain.values.tolist()]
    listed = (len(labels), certain.examined)
    raw = replace(certain.estimate, labels=labels, covariance=None)
    return Answer("share", raw, None, "prefixes", listed, reach=largest_step(raw))


def _planned(domain: Domain, mechanism: Mechanism, n: int) -> HittersPlan:
    """Reconstruct the plan behind a published mechanism, for what it can detect."""
    spelling = spelling_of(domain)
    # Only the prefix lengths are needed, so an empty tally will do.
    groups = groups_of(mechanism, mechanism.tally(mechanism.decode(b"")), spelling)
    weights = (1,) if mechanism.drawn_from is None else mechanism.drawn_from.weights
    lengths = [group.length for group in groups]
    return plan_lengths(spelling, mechanism.budget, n, DEFAULT_K, lengths, keep=2 * DEFAULT_K, weights=weights)


def _forecast(domain: Domain, mechanism: Mechanism, n: int) -> Forecast:
    if isinstance(domain, Strings):
        error = cast("Oracle", mechanism).standard_error(n)
        return Forecast(error, "a text that is looked up", "Hashed texts are looked up by name.")
    # Shares of values come from the last group, so its size alone decides their standard error.
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


def _rows(domain: Domain, part: QuestionTally, found: Hitters, level: float) -> dict[str, Any]:
    """Return the JSON of a walk: the values, what is significant, and what the plan could detect at this turnout."""
    rows = [
        {"value": domain.decode(row.index), "estimate": row.share, "standard_error": row.standard_error,
         "low": row.low, "high": row.high, "noise_probability": row.noise_probability}
        for row in found.to_list(level)
    ]  # fmt: skip
    plan = _planned(domain, part.mechanism, max(1, part.tally.n))
    # Infinity means that no share is detectable, which JSON cannot say: None.
    half, certified = plan.detectable(0.5), plan.certified(0.5)
    return {
        "values": rows,
        "significant": found.significant(ALPHA),
        "candidates": found.examined,
        "adjusted_for_selection": True,
        "detectable_share": half if half <= 1 else None,
        "certified_share": certified if certified <= 1 else None,
        "about": detectable_words(plan),
        "flags": list(found.flags),
    }


def _searchable(domain: Domain) -> None:
    if isinstance(domain, Strings):
        raise InvalidSpec("heavy hitters: hashed texts are not found, only looked up; name candidates")


def _top(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    _searchable(domain)
    k = _whole(given, "k", DEFAULT_K, MOST_K)
    return {"k": k} | _rows(domain, part, _walk(domain, part, k, None), level)


def _above(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Handle `above`: all values above a share; by default the smallest one that can be searched for safely."""
    _searchable(domain)
    try:
        threshold = float(given["threshold"]) if "threshold" in given else _least_threshold(domain, part)
    except ValueError:
        raise InvalidSpec("above: threshold must be a number between 0 and 1") from None
    walked = _walk(domain, part, MOST_K, threshold)
    return {"threshold": threshold} | _rows(domain, part, walked, level)


def _least_threshold(domain: Domain, part: QuestionTally) -> float:
    """The smallest share that is searched for without flags, rounded up to three digits so that it can be typed."""
    least = searchable_threshold(part.mechanism, part.tally, spelling_of(domain))
    digits = 2 - floor(log10(least))
    return min(ceil(least * 10**digits) / 10**digits, 0.999)


def _texts(domain: Domain, text: str) -> list[str]:
    """Split values at line ends, and at commas too where no value of the domain can contain one."""
    try:
        domain.encode(",")
    except InvalidValue:
        text = text.replace(",", "\n")
    return [item for item in text.split("\n") if item]


def _named(domain: Domain, part: QuestionTally, given: Mapping[str, str], level: float) -> dict[str, Any]:
    """Return the shares of values that the analyst names: unbiased, since no search selected them."""
    texts = _texts(domain, given.get("values", ""))
    if not 1 <= len(texts) <= MOST_NAMED:
        raise InvalidSpec(f"candidates: values must be 1 to {MOST_NAMED} texts, one a line")
    try:
        indices = np.array([domain.encode(text) for text in texts], np.uint64)
    except InvalidValue:
        raise InvalidSpec("candidates: a value is not in the domain of the question") from None
    oracle, tally = part.mechanism, part.tally
    if not isinstance(domain, Strings):
        # Only the last group reports whole values; the groups before it know just their prefixes.
        last = groups_of(part.mechanism, part.tally, spelling_of(domain))[-1]
        oracle, tally = last.oracle, last.tally
    assert not isinstance(tally, PerMember)
    estimate = against_everyone(oracle.estimate(tally, indices), tally, part.respondents)
    rows = replace(estimate, labels=texts).to_rows(level)
    return {"values": [row | {"estimate": row.pop("frequency")} for row in rows]}


HEAVY_HITTERS = QuestionTask(
    "heavy_hitters",
    _plan,
    _answer,
    _forecast,
    (
        TaskQuery("top", "The k most frequent values, with the probability that they are noise.",
              {"k": "how many values"}, _top),
        TaskQuery("above", "All values above a share.",
              {"threshold": "the share, from 0 to 1; the smallest that can be searched if absent"}, _above),
        TaskQuery("candidates", "The shares of values that are named.",
              {"values": "texts, one a line; or with commas, where no value can hold one"}, _named),
    ),
)  # fmt: skip
