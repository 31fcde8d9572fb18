"""Which mechanism to use for ranges over an ordered domain, by exact expected error (SEL-RANGE).

Flat oracles, trees of several fan-outs over several oracles, and the Haar transform are all compared by the error that
`tasks.ranges.ranges` will have on uniform data, averaged over a workload. Other data changes it by a few per cent.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, log2

from tacit.core.mechanism import MAX_ALL, Mechanism
from tacit.core.patience import check
from tacit.device.numbers.budget import Declared, as_budget
from tacit.errors import InvalidSpec
from tacit.numeric.square_wave import SquareWave
from tacit.post.trees.levels import TreeShape
from tacit.tasks.ranges.error import Workload
from tacit.tasks.ranges.forecast import forecast_monotone
from tacit.tasks.ranges.options import KINDS, RangeOption, Workshop

METHODS = ("flat", "hh", "haar")
"""Methods with unbiased answers and exact errors, which are compared unless told."""

WAVE = "sw"
"""Square waves: answers are biased and their errors simulated on a smooth shape, so it is compared if asked for."""

FANOUTS = (2, 3, 4, 5, 6, 8, 10, 16)
LEVEL_ORACLES = ("grr", "oue", "olh", "hrr", "hrr_subspace")

TOLERANCE = 1.03
"""Options whose root mean squared error is within this factor of the best compete on server work and report size."""

MAX_OPERATIONS = 1e12
"""Options with more server work than this are listed, and picked only if nothing else fits."""

_WIDEST_FANOUT = 64
"""Wider trees are nearly flat and lose to flat oracles or to more levels; they only cost planning time."""


@dataclass(frozen=True)
class RangeChoice:
    """The pick and every option it was compared with, best first."""

    pick: RangeOption
    options: tuple[RangeOption, ...]
    reason: str
    workload: Workload


def build(option: RangeOption) -> Mechanism:
    """Return the mechanism to publish for an option."""
    return option.mechanism


def fanouts_for(size: int) -> tuple[int, ...]:
    """Return the fan-outs worth comparing: small ones, and those that make two to four levels of equal width."""
    even = {ceil(size ** (1 / levels) - 1e-9) for levels in (2, 3, 4)}
    return tuple(sorted(fanout for fanout in {*FANOUTS, *even} if 2 <= fanout < size and fanout <= _WIDEST_FANOUT))


def choose_ranges(
    *,
    size: int,
    epsilon: Declared,
    n: int,
    workload: str = "ranges",
    target_error: float | None = None,
    max_report_bits: int | None = None,
    even_levels: bool = False,
    methods: Sequence[str] = METHODS,
    fanouts: Sequence[int] | None = None,
    oracles: Sequence[str] | None = None,
) -> RangeChoice:
    """Choose how to ask for ranges over `size` ordered values at `epsilon` with about n respondents.

    All methods are compared by the exact error on uniform data, averaged over the workload: `ranges` (all of them),
    `prefixes`, `points` or `length:r`. Levels are asked as often as the workload likes best, or alike with
    `even_levels`. Options within 3 % of the least error compete on server work, then on report size.

    >>> choose_ranges(size=256, epsilon="1.1", n=1 << 26, methods=["haar"]).pick.name
    'haar:hrr'
    """
    _check(size, n, target_error, methods, oracles)
    queries = Workload.parse(workload, size)
    shop = Workshop(as_budget(epsilon), n, queries, even=even_levels)
    limit = inf if max_report_bits is None else max_report_bits
    fitting = [option for option in _options(shop, size, methods, fanouts, oracles) if option.report_bits <= limit]
    if not fitting:
        bound = "" if max_report_bits is None else f" with reports of at most {max_report_bits} bits; allow longer ones"
        raise InvalidSpec(f"ranges: no method fits a domain of {size} values{bound}")
    if target_error is not None:
        fitting = [replace(option, n_needed=ceil(option.error / target_error**2)) for option in fitting]
    # Ranked by error alone; work and report size only decide among those near the top.
    ranked = tuple(sorted(fitting, key=lambda option: option.error))
    pick = _cheapest(ranked)
    return RangeChoice(pick, ranked, _reason(pick, ranked, queries), queries)


def _check(
    size: int, n: int, target_error: float | None, methods: Sequence[str], oracles: Sequence[str] | None
) -> None:
    """Raise InvalidSpec for sizes, errors, methods or oracles that cannot be planned for."""
    if not 2 <= size <= MAX_ALL:
        raise InvalidSpec(f"ranges: size is {size}, must be from 2 to {MAX_ALL}; bucket larger domains")
    if n < 1:
        raise InvalidSpec(f"ranges: n is {n}, must be at least 1")
    if target_error is not None and not target_error > 0:
        raise InvalidSpec(f"ranges: target_error is {target_error}, must be above 0")
    for what, names, known in (("method", methods, (*METHODS, WAVE)), ("oracle", oracles or (), (*KINDS, "mixed"))):
        for name in names:
            if name not in known:
                raise InvalidSpec(f"ranges: {what} is {name[:40]!r}, must be one of {', '.join(known)}")


def _options(
    shop: Workshop,
    size: int,
    methods: Sequence[str],
    fanouts: Sequence[int] | None,
    oracles: Sequence[str] | None,
) -> Iterable[RangeOption]:
    """Yield every option of these methods, fan-outs and oracles that supports the size."""
    if "flat" in methods:
        flat = (kind for kind in KINDS if oracles is None or kind in oracles)
        yield from (option for kind in flat if (option := shop.flat(kind, size)))
    if "haar" in methods and (oracles is None or "hrr" in oracles):
        yield shop.haar(size)
    if WAVE in methods:
        yield _wave(shop, size)
    if "hh" in methods:
        for fanout in fanouts_for(size) if fanouts is None else fanouts:
            check()
            if not 2 <= fanout <= size:
                raise InvalidSpec(f"ranges: a fan-out of {fanout} is not possible, must be from 2 to {size}")
            trees = (shop.tree(kind, size, fanout) for kind in oracles or (*LEVEL_ORACLES, "mixed"))
            yield from (option for option in trees if option)


def _wave(shop: Workshop, size: int) -> RangeOption:
    """The option of square waves; its error is that of a smooth distribution."""
    mechanism = SquareWave(size=size, epsilon=shop.budget)
    error = shop.n * forecast_monotone(mechanism, shop.n, 0.0, shop.workload).normal ** 2
    shape, bits = TreeShape(size, size), mechanism.report_bits
    return RangeOption(WAVE, WAVE, shape, (mechanism,), (1,), error, error, shop.n, bits, float(shop.n))


def _cheapest(ranked: Sequence[RangeOption]) -> RangeOption:
    """Return the option with the least work, then the shortest report, among those close to the least error."""
    doable = [option for option in ranked if option.server_operations <= MAX_OPERATIONS] or list(ranked)
    close = [option for option in doable if option.rmse <= TOLERANCE * doable[0].rmse]
    # Work that differs by less than a factor of two is the same work.
    return min(close, key=lambda o: (round(log2(o.server_operations)), o.report_bits, o.error))


def _reason(pick: RangeOption, ranked: Sequence[RangeOption], workload: Workload) -> str:
    """Return the sentence that explains the pick: least error and by how much, or close to it and cheaper."""
    best, over = ranked[0], {"length": f"ranges of length {workload.length}", "ranges": "all ranges"}
    queries = over.get(workload.name, f"all {workload.name}")
    excess = pick.rmse / best.rmse - 1
    if excess <= 1e-9:
        other = next((option for option in ranked[1:] if option.method != pick.method), None)
        ahead = f", {100 * (1 - pick.rmse / other.rmse):.1f} % below {other.name}" if other else ""
        return f"{pick.name} has the least error over {queries}{ahead}"
    within = f"the error of {pick.name} is {100 * excess:.1f} % above the least, that of {best.name}, over {queries}"
    return f"{within}, and it takes less work of the server or shorter reports"
