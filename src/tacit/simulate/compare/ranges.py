"""Compare the methods for ranges of an ordered domain: trees and transforms, raw and monotone, and sums of cells."""

from collections.abc import Callable, Sequence
from math import sqrt
from time import perf_counter

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.mechanism import Mechanism
from tacit.device.domains.reals import Integers
from tacit.device.numbers.budget import as_epsilon
from tacit.post.frequencies.methods import METHODS, find_method, process
from tacit.simulate.compare.draws import drawn_ranges
from tacit.simulate.compare.outcome import DEFAULT, UNIFORM, Advance, Contender, Trial, inside
from tacit.simulate.ranges import some_ranges
from tacit.tasks.ranges.forecast import all_ranges_mse, forecast_monotone
from tacit.tasks.ranges.options import RangeOption
from tacit.tasks.ranges.plan import RangeChoice, choose_ranges
from tacit.tasks.ranges.ranges import Ranges
from tacit.tasks.ranges.task import RANGES

SAMPLED = 1000
"""Ranges whose intervals are looked at."""

MOST_PROCESSED = 1 << 12
"""Up to so many leaves their post-processing is compared too; more take long, and it loses on ranges anyway."""

Ends = tuple[F64, F64]


def compare_ranges(
    counts: I64, epsilon: str, seeds: Sequence[int], *, advance: Advance | None = None
) -> list[Contender]:
    """Return every method on collections about these counts, one per seed; all see the same respondents.

    The error of a method is the root mean squared error over all ranges.
    """
    crowd = _Crowd(counts)
    size, n = len(counts), int(counts.sum())
    planned = RANGES.plan(Integers("value", 0, size - 1), as_epsilon(epsilon), n)
    choice = choose_ranges(size=size, epsilon=epsilon, n=n)
    options = [option for option in _options(choice) if option.mechanism != planned]
    about = "as planned, answered monotone"
    found = {
        DEFAULT: Contender(DEFAULT, about, planned.kind, planned.report_bits, _forecast(choice, planned, n)),
        UNIFORM: Contender(UNIFORM, "all values alike; needs no reports"),
        "raw": Contender("raw", "as planned, the unbiased fit", planned.kind, planned.report_bits),
    }
    methods = [m.name for m in METHODS if m.least_cells <= size <= MOST_PROCESSED and m.name != "base"]
    for name in methods:
        about = f"as planned, sums of values after {find_method(name).title}"
        found[f"cells:{name}"] = Contender(f"cells:{name}", about, planned.kind, planned.report_bits)
    for o in options:
        found[o.name] = Contender(o.name, "answered monotone", o.mechanism.kind, o.report_bits)
    for seed in seeds:
        _one_seed(crowd, seed, found, planned, options, methods)
        if advance:
            advance(1)
    return list(found.values())


def _forecast(choice: RangeChoice, planned: Mechanism, n: int) -> tuple[float, float, float] | None:
    """What the plan states: the error of monotone answers on smooth data, and on exponential and uniform data."""
    option = next((option for option in choice.options if option.mechanism == planned), None)
    if option is None:
        return None
    found = forecast_monotone(planned, n, option.rmse, choice.workload)
    return found.normal, *found.between


def _options(choice: RangeChoice) -> list[RangeOption]:
    """The best option of every method that a planner compares, but for oracles that take long to simulate."""
    best: dict[str, RangeOption] = {}
    for option in choice.options:
        if option.oracle not in ("olh", "blh"):
            # Options come ranked by their error, so that the first one of a method is its best.
            best.setdefault(option.method, option)
    return list(best.values())


def _one_seed(
    crowd: "_Crowd", seed: int, found: dict[str, Contender], planned: Mechanism, options: Sequence[RangeOption],
    methods: Sequence[str],
) -> None:  # fmt: skip
    start = perf_counter()
    solved = drawn_ranges(planned, crowd.counts, np.random.default_rng([seed, 2]))
    found[DEFAULT].trials.append(crowd.monotone(solved, start))
    found["raw"].trials.append(crowd.raw(solved, start))
    found[UNIFORM].trials.append(crowd.uniform())
    for name in methods:
        found[f"cells:{name}"].trials.append(crowd.cells(solved, name))
    for option in options:
        start = perf_counter()
        other = drawn_ranges(option.mechanism, crowd.counts, np.random.default_rng([seed, 2]))
        found[option.name].trials.append(crowd.monotone(other, start))


class _Crowd:
    """Respondents with ordered values: true cumulative shares, and the ranges whose intervals are looked at."""

    def __init__(self, counts: I64) -> None:
        self.counts = counts
        # truth[i] is the share of values below i, so that the range [low, high) has truth[high] - truth[low].
        self.truth = np.concatenate([[0.0], np.cumsum(counts / counts.sum())])
        self.low, self.high = some_ranges(len(counts), SAMPLED, np.random.default_rng(0))

    def _trial(self, cumulative: F64, ends: Callable[[], Ends] | None, seconds: float) -> Trial:
        error = cumulative - self.truth
        share = self.truth[self.high] - self.truth[self.low]
        covered = None if ends is None else inside(ends(), share)
        return Trial(sqrt(all_ranges_mse(error)), covered, seconds, error[self.high] - error[self.low])

    def monotone(self, solved: Ranges, start: float) -> Trial:
        answered = solved.monotone
        seconds = perf_counter() - start
        return self._trial(answered, lambda: solved.shares(self.low, self.high - 1).interval(0.95), seconds)

    def raw(self, solved: Ranges, start: float) -> Trial:
        ends = solved.ranges(self.low, self.high - 1).interval
        return self._trial(solved.cumulative, lambda: ends(0.95), perf_counter() - start)

    def cells(self, solved: Ranges, name: str) -> Trial:
        """Sums of post-processed leaves, which have no intervals of their own."""
        start = perf_counter()
        made = process(solved.histogram(), name).value
        return self._trial(np.append(0.0, np.cumsum(made)), None, perf_counter() - start)

    def uniform(self) -> Trial:
        return self._trial(np.linspace(0, 1, len(self.truth)), None, 0.0)
