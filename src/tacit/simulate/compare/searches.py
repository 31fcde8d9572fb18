"""Compare searches that ask in groups or rounds: heavy hitters of large domains, and frequent itemsets.

The error of a search is 1 - F1 of its list against the k most frequent values or itemsets.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacit.baselines.itemsets import METHODS as MINERS
from tacit.errors import InvalidSpec, InvalidValue
from tacit.simulate.baskets import Baskets, count_itemsets, top_itemsets
from tacit.simulate.compare.outcome import DEFAULT, Advance, Contender, Trial, inside
from tacit.simulate.hitters import METHODS, HitterProtocol, HittersOutcome, Population, Search, simulate_hitters
from tacit.simulate.itemsets import ItemsetOutcome, simulate_itemsets
from tacit.tasks.hitters.plan import MOST_EVALUATIONS
from tacit.tasks.itemsets.itemsets import Mining

SEARCHED, MINED = "pem", "svsm"
"""The protocols that the tasks run."""

MOST_ASKED = 1 << 20
"""The most respondents of a search for heavy hitters."""

_ALONE = "; single items alone"


def compare_hitters(
    population: Population, epsilon: str, seeds: Sequence[int], *, k: int, advance: Advance | None = None
) -> list[Contender]:
    """Return every protocol on searches among these respondents, one per seed.

    Protocols of the literature are simulated in aggregate. Beyond 2^20 respondents a random part of them is asked, the
    same for all protocols of a seed, since every one of them sends a report.
    """
    search = Search(epsilon, k, most_evaluations=MOST_EVALUATIONS)
    found: dict[str, Contender] = {}
    for seed in seeds:
        asked = _some_respondents(population, seed)
        for protocol in METHODS:
            name = DEFAULT if protocol.name == SEARCHED else protocol.name
            # What failed in the first seed does not fit the domain, or needs what was not told.
            if name not in found and seed != seeds[0]:
                continue
            _search(found, name, protocol, asked, search, seed)
        if advance:
            advance(1)
    return list(found.values())


def _some_respondents(population: Population, seed: int) -> Population:
    """All respondents, or as many as a simulation can ask; drawn without replacement."""
    if population.n <= MOST_ASKED:
        return population
    rng = np.random.default_rng([seed, 5])
    counts = rng.multivariate_hypergeometric(population.counts, MOST_ASKED, method="marginals")
    held = counts > 0
    return Population(population.domain, population.values[held], counts[held].astype(np.int64))


def _search(
    found: dict[str, Contender], name: str, protocol: HitterProtocol, asked: Population, search: Search, seed: int
) -> None:
    try:
        outcome = simulate_hitters(asked, search, protocol.name, seed=seed)
    except InvalidSpec:
        return
    bits = outcome.plan.get("report_bits")
    kind = "one_of" if protocol.plan else ""
    found.setdefault(name, Contender(name, protocol.about, kind, bits)).trials.append(_hitters_trial(outcome, asked))


def _hitters_trial(outcome: HittersOutcome, asked: Population) -> Trial:
    held = dict(zip(asked.values.tolist(), asked.counts.tolist(), strict=True))
    truth = [held.get(_index(asked, row["value"]), 0) / asked.n for row in outcome.found]
    ends = [[row[end] for row in outcome.found] for end in ("low", "high")]
    return _listed(outcome.f1, outcome.ncr, ends, truth, outcome.seconds)


def _index(asked: Population, label: Any) -> int:
    """The index of a listed value; -1 for one that no device could hold, as baselines may list."""
    try:
        return asked.domain.encode(label)
    except InvalidValue:
        return -1


def _listed(f1: float, ncr: float, ends: Sequence[Any], truth: Sequence[float], seconds: float) -> Trial:
    """The trial of a list; intervals are those of all that it lists, rightly or not."""
    low, high = (np.array(end, np.float64) for end in ends)
    covered = inside((low, high), np.array(truth)) if len(truth) else None
    return Trial(1 - f1, covered, seconds, scores={"f1": f1, "ncr": ncr})


def compare_itemsets(
    baskets: Baskets, epsilon: str, seeds: Sequence[int], *, k: int, advance: Advance | None = None
) -> list[Contender]:
    """Return every plan on these baskets, one collection per seed; all are held to the k most frequent itemsets.

    Plans that look for single items can at most find those among them.
    """
    truth = top_itemsets(baskets.sets, baskets.size, k)
    mining = Mining(epsilon, baskets.size, k, len(baskets.sets))
    found: dict[str, Contender] = {}
    for seed in seeds:
        for method in MINERS:
            name = DEFAULT if method == MINED else method
            outcome = simulate_itemsets(baskets.sets, mining, method, seed=seed, truth=truth)
            about = _MINERS.get(method, "a step of the way from LDPMiner to SVIM" + _ALONE)
            found.setdefault(name, Contender(name, about, "", None)).trials.append(_itemset_trial(outcome, baskets))
        if advance:
            advance(1)
    return list(found.values())


_MINERS = {
    "svsm": "SVSM: items first, then itemsets of what was found; as it is answered",
    "svim": "SVIM" + _ALONE,
    "ldpminer": "LDPMiner: the same respondents twice, half of epsilon each" + _ALONE,
    "svsm-ldpminer": "SVSM with the phases of LDPMiner",
}


def _itemset_trial(outcome: ItemsetOutcome, baskets: Baskets) -> Trial:
    rows = outcome.result.rows
    counts = count_itemsets(baskets.sets, baskets.size, [row.items for row in rows])
    ends = [row.low for row in rows], [row.high for row in rows]
    return _listed(outcome.f1, outcome.ncr, ends, (counts / len(baskets.sets)).tolist(), outcome.seconds)
