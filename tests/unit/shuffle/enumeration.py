"""Shuffled reports by brute force: every multiset of reports, every crowd, no reduction. For crowds of at most six."""

from collections.abc import Sequence
from itertools import combinations_with_replacement, permutations, product
from math import comb, exp
from typing import Any

import numpy as np

Law = dict[tuple[int, ...], float]


def table(mechanism: Any) -> np.ndarray:
    """Probability of every report (columns) given every value (rows)."""
    reports = mechanism.all_reports()
    return np.array([np.exp(mechanism.log_prob(reports, value)) for value in range(mechanism.size)])


def hashing_table(odds: float, size: int, buckets: int) -> np.ndarray:
    """Local hashing with every function from values to buckets, each as likely."""
    functions = list(product(range(buckets), repeat=size))
    high, low = odds / (odds + buckets - 1), 1 / (odds + buckets - 1)
    rows = [
        [(high if function[value] == y else low) / len(functions) for function in functions for y in range(buckets)]
        for value in range(size)
    ]
    return np.array(rows)


def merged(rows: np.ndarray) -> np.ndarray:
    """Columns with the same likelihood ratios between all rows added up: they tell the same."""
    shapes = np.round(rows / rows.sum(axis=0), 12)
    _, groups = np.unique(shapes, axis=1, return_inverse=True)
    whole = np.zeros((len(rows), groups.max() + 1))
    for column, group in enumerate(groups.ravel()):
        whole[:, group] += rows[:, column]
    return whole


def times(law: Law, report: np.ndarray) -> Law:
    """The multiset after one more report with these chances."""
    more: Law = {}
    for counts, chance in law.items():
        for y, likely in enumerate(report.tolist()):
            key = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
            more[key] = more.get(key, 0.0) + chance * likely
    return more


def several(reports: Sequence[np.ndarray], outputs: int) -> Law:
    law: Law = {(0,) * outputs: 1.0}
    for report in reports:
        law = times(law, report)
    return law


def divergences(own: Law, other: Law, epsilons: Sequence[float]) -> np.ndarray:
    """The hockey-stick divergence of two laws at every epsilon."""
    p = np.array([own.get(key, 0.0) for key in own.keys() | other.keys()])
    q = np.array([other.get(key, 0.0) for key in own.keys() | other.keys()])
    return np.array([np.maximum(p - exp(epsilon) * q, 0).sum() for epsilon in epsilons])


def true_deltas(
    rows: np.ndarray, n: int, epsilons: Sequence[float], fakes: int = 0, omega: np.ndarray | None = None,
    pairs: Sequence[tuple[int, int]] = (),
) -> np.ndarray:  # fmt: skip
    """The largest divergence over all values of the others and all pairs of values of the victim."""
    outputs, worst = rows.shape[1], np.zeros(len(epsilons))
    added = [] if omega is None else [omega] * fakes
    for others in combinations_with_replacement(range(len(rows)), n - 1):
        base = several([rows[value] for value in others] + added, outputs)
        for v, w in pairs or permutations(range(len(rows)), 2):
            worst = np.maximum(worst, divergences(times(base, rows[v]), times(base, rows[w]), epsilons))
    return worst


def blanket_deltas(
    rows: np.ndarray, blanket: np.ndarray, n: int, epsilons: Sequence[float], fakes: int = 0
) -> np.ndarray:
    """The divergence when every other report that is no draw from the blanket (gamma omega) is given away."""
    gamma, outputs = float(blanket.sum()), rows.shape[1]
    total = np.zeros(len(epsilons))
    for drawn in range(n):
        base = several([blanket / gamma] * (drawn + fakes), outputs)
        chance = comb(n - 1, drawn) * gamma**drawn * (1 - gamma) ** (n - 1 - drawn)
        total += chance * divergences(times(base, rows[0]), times(base, rows[1]), epsilons)
    return total
