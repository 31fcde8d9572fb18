"""The laws of a mechanism, each one function; `check_laws` runs all that apply.

A law a kind cannot keep is named in `EXEMPT` with the reason.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, islice, product
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.catalog import parse
from tacit.core.compose import PerMember
from tacit.core.estimate import Estimate
from tacit.core.mechanism import Mechanism, Oracle
from tacit.core.tally import Counts
from tacit.core.tally_check import check_tally
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, SpecMismatch
from tacit.oracles.rappor import RAPPOR
from tacit.oracles.sets import SetMechanism
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_fits, assert_unbiased, assert_variance

# Rounding of log-probabilities, which are doubles; the realised odds themselves are exact.
_ULP = 1e-12

RUNS = 950
"""Simulated collections of a statistical law: as many as it takes to reject a variance off by 1.3 at 1e-7."""

_REASONS: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (
        ("dbitflip",),
        ("variance",),
        "moments are Horvitz-Thompson's; the default divides by observed holders, tested apart",
    ),
    (
        ("cms", "hcms"),
        ("unbiased", "variance", "simulation"),
        "a fixed key has a fixed collision bias; the expectation over keys is tested apart",
    ),
    (
        ("flh", "rmp"),
        ("unbiased", "variance"),
        "a fixed pool has a fixed collision bias; the expectation over pools is tested apart",
    ),
    (
        ("hrr_signed",),
        ("unbiased", "variance", "simulation"),
        "estimates differences of halves, which are no frequencies; their bias and variance are tested apart",
    ),
    (
        ("onebit", "dlap", "sw", "rappor", "one_of", "all_of", "memo", "rounded", "padded", "set_size", "tree_steps"),
        ("unbiased", "variance", "simulation"),
        "no oracle with moments of its own; bias, variance and simulation are tested apart",
    ),
    (
        ("layered",),
        ("unbiased", "variance", "simulation"),
        "no oracle with moments of its own: those of what it sends, whose law is enumerated exactly, tested apart",
    ),
)

EXEMPT: dict[tuple[str, str], str] = {
    (kind, law): reason for kinds, laws, reason in _REASONS for kind in kinds for law in laws
}
"""Why a kind is excused from a law."""


def values_of(mechanism: Mechanism) -> list[Any]:
    """Return all values of a small domain, or a few of a large one; answers to several questions are tuples."""
    if mechanism.drawn_from is not None:
        values = mechanism.drawn_from.values()
        return list(islice(values, 16) if mechanism.domain_size else values)
    if len(mechanism.per_question) > 1:
        return list(product(*(range(getattr(member, "size")) for member in mechanism.per_question)))  # noqa: B009
    if isinstance(mechanism, SetMechanism):
        items = range(min(mechanism.size, 6))
        return [one for length in range(len(items) + 1) for one in combinations(items, length)]
    size = getattr(mechanism, "size", getattr(mechanism, "top", 1) + 1)
    return list(range(min(size, 8)))


def batch_of(values: list[Any]) -> Any:
    """Values as `privatize` takes them: an array, or a list where they are sets of several lengths."""
    ragged = isinstance(values[0], tuple) and len({len(value) for value in values}) > 1
    return values if ragged else np.array(values)


def estimates_of(mechanism: Mechanism, tally: Any) -> list[Estimate]:
    """Return the estimates of all members (a plain mechanism has one); RAPPOR is asked for a few candidates."""
    answer: Any = mechanism.estimate(tally, values_of(mechanism) if isinstance(mechanism, RAPPOR) else None)
    return answer if isinstance(answer, list) else [answer]  # pyright: ignore[reportUnknownVariableType]


def law_privacy(mechanism: Mechanism) -> None:
    """The realised odds stay within the declared ones, exactly, and the realised epsilon says so."""
    assert mechanism.realised_odds() <= Fraction(mechanism.odds, WORD)
    assert mechanism.realised_epsilon() <= float(mechanism.budget.declared)
    for _, realised, bound in mechanism.guarantees():
        assert realised <= bound


def law_enumeration(mechanism: Mechanism) -> None:
    """Over all reports: probabilities sum to one and no likelihood ratio exceeds the realised odds."""
    logs = _log_probs(mechanism)
    # For hashing kinds only the reports of a few seeds are listed, so their total is equal for all values, not one.
    whole = np.exp(logs).sum(axis=1)
    assert np.allclose(whole, whole[0], rtol=1e-9)
    if not hasattr(mechanism, "reports_of_seed"):
        assert np.allclose(whole, 1, rtol=1e-9)
    epsilon = enumerated_epsilon(mechanism)
    assert epsilon is not None
    assert epsilon <= mechanism.realised_epsilon() + _ULP


def _log_probs(mechanism: Mechanism) -> npt.NDArray[np.float64]:
    reports = reports_to_audit(mechanism)
    return np.array([mechanism.log_prob(reports, value) for value in values_of(mechanism)])


def enumerated_epsilon(mechanism: Mechanism) -> float | None:
    """Return the largest log-likelihood ratio over all reports and pairs of values; None if they cannot be listed."""
    try:
        logs = _log_probs(mechanism)
    except InvalidSpec:
        return None
    return float(np.max(logs.max(axis=0) - logs.min(axis=0)))


def reports_to_audit(mechanism: Mechanism) -> npt.NDArray[Any]:
    """Return all reports, or for hashing kinds all reports of a few seeds."""
    of_seed: Callable[[int], npt.NDArray[Any]] | None = getattr(mechanism, "reports_of_seed", None)
    if of_seed is None:
        return mechanism.all_reports()
    return np.concatenate([of_seed(seed) for seed in (0, 1, 12345, 0xFFFFFFFF)])


def law_batch(mechanism: Mechanism) -> None:
    """A batch makes the same bytes as the device reference, value by value, from the same coins."""
    values = batch_of(values_of(mechanism) * 7)
    batch, coins = mechanism.privatize(values, ReplayCoins(b"law")), ReplayCoins(b"law")
    plain: list[Any] = values_of(mechanism) * 7 if isinstance(values, list) else values.tolist()
    assert batch.tobytes() == b"".join(mechanism.privatize_one(value, coins) for value in plain)
    assert mechanism.valid(batch).all()
    assert mechanism.decode(batch.tobytes()).tobytes() == batch.tobytes()


def law_samples(mechanism: Mechanism) -> None:
    """Sampled reports fit `log_prob` (false-alarm probability 1e-7 per value).

    10,000 reports show, on average, one of two equal probabilities that is off by 6 %, and one of four by 11 %.
    """
    if hasattr(mechanism, "reports_of_seed"):
        return _law_kept(mechanism)
    reports = mechanism.all_reports()
    places = {report: i for i, report in enumerate(_each(mechanism, reports))}
    for value in values_of(mechanism)[:2]:
        drawn = mechanism.privatize(np.array([value] * 10_000), SimulationCoins(7))
        # A report outside `all_reports` is a KeyError, which fails the law as well.
        codes = np.array([places[report] for report in _each(mechanism, drawn)])
        assert_fits(np.bincount(codes, minlength=len(reports)), np.exp(mechanism.log_prob(reports, value)))


def _each(mechanism: Mechanism, reports: npt.NDArray[Any]) -> list[bytes]:
    """The bytes of every report."""
    data, width = reports.tobytes(), mechanism.report_dtype.itemsize
    return [data[start : start + width] for start in range(0, len(data), width)]


def _law_kept(mechanism: Mechanism) -> None:
    """Hashing kinds have too many seeds to enumerate: the share of reports that keep their bucket fits p."""
    for value in values_of(mechanism)[:2]:
        logs = mechanism.log_prob(mechanism.privatize(np.full(20_000, value), SimulationCoins(value + 1)), value)
        truthful = int(np.count_nonzero(logs == logs.max()))
        p = float(getattr(mechanism, "p"))  # noqa: B009 - pure oracles only
        assert_fits(np.array([truthful, len(logs) - truthful]), np.array([p, 1 - p]))


def law_monoid(mechanism: Mechanism) -> None:
    """Tallies add: any split gives the tally of the whole; the empty tally is neutral; other specs are refused."""
    reports = mechanism.privatize(batch_of(values_of(mechanism) * 5), ReplayCoins(b"monoid"))
    whole, empty = mechanism.tally(reports), mechanism.tally(reports[:0])
    parts = mechanism.tally(reports[:3]) + mechanism.tally(reports[3:])
    for other in (parts, whole + empty, empty + whole):
        assert same_tally(whole, other)
    # The same spec but for epsilon: nothing else tells the two apart.
    stranger = parse(mechanism.spec() | {"epsilon": "31"})
    try:
        _ = whole + stranger.tally(reports[:0])
    except SpecMismatch as error:
        assert "epsilon" in str(error)
    else:
        raise AssertionError("tallies of different specs were added")


def same_tally(a: Any, b: Any) -> bool:
    """Whether two tallies hold the same integers."""
    if isinstance(a, PerMember):
        members = range(len(a.layout.block))
        return a.n == b.n and all(same_tally(a.member(i), b.member(i)) for i in members)
    if isinstance(a, Counts):
        return a.n == b.n and a.total == b.total and np.array_equal(a.cells, b.cells)
    return a.n == b.n and b"".join(c.tobytes() for c in a.chunks) == b"".join(c.tobytes() for c in b.chunks)


def law_stored(mechanism: Mechanism) -> None:
    """Tallies of real reports pass the check of stored ones, weighted or not, and have `cell_count` cells."""
    reports = mechanism.privatize(batch_of(values_of(mechanism) * 5), ReplayCoins(b"stored"))
    # Weights of both signs and zero.
    for weights in (None, np.arange(len(reports)) % 7 - 2):
        tally = mechanism.tally(reports, weights)
        check_tally(mechanism, tally + tally)
    assert mechanism.cell_count == _cells(mechanism.tally(reports))


def _cells(tally: Any) -> int:
    if isinstance(tally, PerMember):
        return sum(_cells(tally.member(i)) for i in range(len(tally.layout.block)))
    return tally.cells.size if isinstance(tally, Counts) else 0


def law_weights(mechanism: Mechanism) -> None:
    """A weight of w counts like w reports; unit weights change nothing but the bookkeeping."""
    reports = mechanism.privatize(batch_of(values_of(mechanism)), ReplayCoins(b"weights"))
    weights = np.arange(1, len(reports) + 1)
    weighted = estimates_of(mechanism, mechanism.tally(reports, weights))
    repeated = estimates_of(mechanism, mechanism.tally(np.repeat(reports, weights, axis=0)))
    units = estimates_of(mechanism, mechanism.tally(reports, np.ones(len(reports), np.int64)))
    plain = estimates_of(mechanism, mechanism.tally(reports))
    for a, b in zip(weighted, repeated, strict=True):
        assert np.allclose(a.value, b.value)
    for a, b in zip(units, plain, strict=True):
        assert np.allclose(a.value, b.value)
        assert np.allclose(a.variance, b.variance)


def law_spec(mechanism: Mechanism) -> None:
    """The spec is closed under a round trip and its digest identifies it."""
    again = parse(mechanism.spec())
    assert again == mechanism
    assert again.digest == mechanism.digest
    assert parse(mechanism.spec() | {"epsilon": "31"}).digest != mechanism.digest


def _oracle(mechanism: Mechanism) -> Oracle:
    """Statistical laws are about frequencies; other kinds are exempt with a reason, never passed in silence."""
    assert isinstance(mechanism, Oracle), f"{mechanism.kind}: is no oracle; exempt it, and test it apart"
    return mechanism


@lru_cache(maxsize=1)
def _replicas(mechanism: Oracle) -> tuple[npt.NDArray[Any], npt.NDArray[Any], int]:
    """Errors of all cells over `RUNS` simulated collections, the true frequencies, and n of each collection.

    Kept for the law that comes next: bias and variance are read off the same collections.
    """
    counts = np.array([40 * (i + 1) for i in range(mechanism.size)])
    truth, values = counts / counts.sum(), np.repeat(np.arange(mechanism.size), counts)
    # All collections in one batch: coins are drawn report by report, so that every slice is a collection of its own.
    reports = mechanism.privatize(np.tile(values, RUNS), SimulationCoins(20_240_601))
    estimates = [mechanism.estimate(mechanism.tally(part)).value for part in np.split(reports, RUNS)]
    return np.array(estimates) - truth, truth, len(values)


def law_unbiased(mechanism: Mechanism) -> None:
    """Means over 950 collections hit the truth (false-alarm probability 1e-7)."""
    oracle = _oracle(mechanism)
    errors, truth, n = _replicas(oracle)
    # Without the last cell: where estimates sum to one, it is a function of the others and not independent.
    assert_unbiased(errors[:, :-1], oracle.moments.variance(truth)[:-1] / n)


def law_variance(mechanism: Mechanism) -> None:
    """Errors of one cell over 950 collections have the stated variance; 1.3 times it would be rejected."""
    oracle = _oracle(mechanism)
    errors, truth, n = _replicas(oracle)
    for cell in (0, oracle.size - 1):
        assert_variance(errors[:, cell], oracle.moments.variance(truth)[cell] / n)


def law_empty(mechanism: Mechanism) -> None:
    """No reports give zero with infinite variance inside, and no NaN outside."""
    for estimate in estimates_of(mechanism, mechanism.tally(np.empty(0, mechanism.report_dtype))):
        assert not estimate.has_data
        assert np.all(estimate.value == 0)
        assert np.all(np.isinf(estimate.variance))
        assert all(row["status"] == "no_data" for row in estimate.to_rows())


def law_simulation(mechanism: Mechanism) -> None:
    """Exact aggregate simulation has the estimator's mean and variance."""
    if not mechanism.exact_simulation:
        return
    oracle = _oracle(mechanism)
    counts = np.array([400 * (i + 1) for i in range(oracle.size)])
    truth, n, rng = counts / counts.sum(), int(counts.sum()), np.random.default_rng(5)
    runs = [oracle.estimate(oracle.simulate_tally(counts, rng)).value - truth for _ in range(RUNS)]
    variance = oracle.moments.variance(truth) / n
    assert_unbiased(np.array(runs)[:, :-1], variance[:-1])
    assert_variance(np.array(runs)[:, 0], variance[0])


LAWS: dict[str, Callable[[Mechanism], None]] = {
    "privacy": law_privacy,
    "enumeration": law_enumeration,
    "batch": law_batch,
    "samples": law_samples,
    "monoid": law_monoid,
    "stored": law_stored,
    "weights": law_weights,
    "spec": law_spec,
    "unbiased": law_unbiased,
    "variance": law_variance,
    "empty": law_empty,
    "simulation": law_simulation,
}


def check_laws(mechanism: Mechanism, *, exempt: Mapping[tuple[str, str], str] = EXEMPT) -> list[str]:
    """Run every law that a mechanism is not exempt from and return their names; `exempt` maps (kind, law) to reason."""
    applying = [name for name in LAWS if (mechanism.kind, name) not in exempt]
    for name in applying:
        LAWS[name](mechanism)
    return applying
