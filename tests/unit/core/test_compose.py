"""One of several questions, and all of them: bytes, privacy, tallies that add, and errors that count."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from tacit.core.compose import AllOf, Family, OneOf, PerMember, Questions
from tacit.core.mechanism import Mechanism
from tacit.core.members import MemberCounts
from tacit.core.tally import Counts, Log
from tacit.device.base import Device
from tacit.device.catalog import KINDS, find_kind
from tacit.device.families.compose import AllOfDevice, OneOfDevice
from tacit.device.kinds.grr import GRRDevice
from tacit.device.nested import build
from tacit.device.numbers.budget import Amplified, Share
from tacit.device.numbers.coins import ReplayCoins, ScriptedCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected, SpecMismatch
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.testing.statistics import assert_fits, assert_unbiased, assert_variance

CATALOG: tuple[Any, ...] = (GRR, HRR, OLH, OUE, OneOf, AllOf, Questions)
DEVICES: tuple[Any, ...] = (*KINDS, OneOfDevice, AllOfDevice, Questions)


def share(parts: int) -> Share:
    return Share("2", f"1/{parts}")


def one_of(*mechanisms: Device, **fields: Any) -> OneOf:
    return OneOf(family=Questions(mechanisms=mechanisms, **fields))


# Three blocks: two equal members, one with wider reports, one with fewer coin words.
MIXED = one_of(GRR(size=3, epsilon="1"), OUE(size=11, epsilon="2"), GRR(size=3, epsilon="1"), weights=(2, 1, 1))
SMALL = one_of(GRR(size=2, epsilon="1"), OUE(size=3, epsilon="1"), weights=(1, 2))
JOINT = AllOf(epsilon="2", members=(GRR(size=3, epsilon=share(2)), OUE(size=2, epsilon=share(2))))
LOGGED = AllOf(epsilon="2", members=(GRR(size=3, epsilon=share(2)), OLH(size=9, epsilon=share(2))))
APART = AllOf(
    epsilon="2",
    members=(GRR(size=3, epsilon=share(4)), OUE(size=9, epsilon=share(4)), GRR(size=3, epsilon=share(4))),
    state="members",
)
EVERY = [MIXED, SMALL, JOINT, LOGGED, APART]
NAMES = ["mixed", "small", "joint", "logged", "apart"]


def mechanisms_of(m: OneOf | AllOf) -> list[Mechanism]:
    count = len(m.family) if isinstance(m, OneOf) else len(m.members)
    return [m.member(i) for i in range(count)]


def answers(m: OneOf | AllOf, n: int, seed: int = 1) -> npt.NDArray[np.int64]:
    rng = np.random.default_rng(seed)
    sizes: list[Any] = [getattr(member, "size") for member in mechanisms_of(m)]  # noqa: B009
    return np.stack([rng.integers(0, size, n) for size in sizes], axis=1)


def same_tally(a: Any, b: Any) -> bool:
    if isinstance(a, PerMember):
        return a.n == b.n and all(same_tally(x, y) for x, y in zip(a.parts, b.parts, strict=True))
    if isinstance(a, tuple):
        return all(same_tally(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Log):
        return b"".join(c.tobytes() for c in a.chunks) == b"".join(c.tobytes() for c in b.chunks)
    names = ("n", "cells", "cells2", "total", "total2")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)


@pytest.mark.parametrize("m", EVERY, ids=NAMES)
def test_batch_makes_the_bytes_of_the_device(m: OneOf | AllOf) -> None:
    values, coins = answers(m, 60), ReplayCoins(b"x")
    single = b"".join(m.privatize_one(tuple(row), coins) for row in values.tolist())
    batch = m.privatize(values, ReplayCoins(b"x"))
    assert batch.tobytes() == single
    assert m.valid(batch).all()
    assert m.decode(single).tobytes() == single
    assert len(m.privatize(values[:0], coins)) == 0


@pytest.mark.parametrize(
    "m", [one_of(GRR(size=3, epsilon="1"), GRR(size=70_000, epsilon="1")), AllOf(epsilon="2", members=(
        GRR(size=3, epsilon=share(2)), HRR(size=9, epsilon=share(2))))],
)  # fmt: skip
def test_kinds_with_fixed_coins_are_drawn_in_one_sweep(m: OneOf | AllOf, monkeypatch: pytest.MonkeyPatch) -> None:
    values = answers(m, 200)
    loop = m.privatize(values, ReplayCoins(b"x"))
    monkeypatch.setattr(GRR, "coin_words", 1, raising=False)
    monkeypatch.setattr(HRR, "coin_words", 2, raising=False)
    monkeypatch.setattr(type(m), "privatize_one", None)
    coins = ReplayCoins(b"x")
    assert m.privatize(values, coins).tobytes() == loop.tobytes()


@pytest.mark.parametrize("m", EVERY, ids=NAMES)
def test_spec_round_trip_through_the_catalogue_and_the_device(m: OneOf | AllOf) -> None:
    again = build(m.spec(), lambda spec: find_kind(spec, CATALOG))
    assert again == m
    assert again.digest == m.digest
    device = build(m.spec(), lambda spec: find_kind(spec, DEVICES))
    assert not isinstance(device, Mechanism)
    assert device.digest == m.digest
    row = tuple(answers(m, 1)[0].tolist())
    assert device.privatize_one(row, ReplayCoins(b"y")) == m.privatize_one(row, ReplayCoins(b"y"))


@pytest.mark.parametrize("m", [SMALL, JOINT], ids=["small", "joint"])
def test_enumeration(m: OneOf | AllOf) -> None:
    reports = m.all_reports()
    assert len({report.tobytes() for report in reports}) == len(reports)
    values = [tuple(row) for row in np.ndindex(*[getattr(x, "size") for x in mechanisms_of(m)])]  # noqa: B009
    logs = np.array([m.log_prob(reports, value) for value in values])
    assert np.allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-12)
    worst = float(np.max(logs.max(axis=0) - logs.min(axis=0)))
    assert worst == pytest.approx(m.realised_epsilon(), abs=1e-12)
    drawn = m.privatize(np.tile(values[1], (20_000, 1)), ReplayCoins(b"fit"))
    keys = {report.tobytes(): i for i, report in enumerate(reports)}
    codes = np.array([keys[report.tobytes()] for report in drawn])
    assert_fits(np.bincount(codes, minlength=len(reports)), np.exp(logs[1]))


@pytest.mark.parametrize("m", [SMALL, JOINT], ids=["small", "joint"])
def test_unbiased_exactly(m: OneOf | AllOf) -> None:
    # The expectation over all reports, given that the member was asked, is the one-hot vector of the answer.
    reports, value = m.all_reports(), (1, 0)
    weight = np.exp(m.log_prob(reports, value))
    for i, member in enumerate(mechanisms_of(m)):
        mean, asked = np.zeros(getattr(member, "size")), 0.0  # noqa: B009
        for report, w in zip(np.split(reports, len(reports)), weight, strict=True):
            if isinstance(m, AllOf) or report["member"][0] == i:
                mean, asked = mean + w * m.estimate(m.tally(report))[i].value, asked + w
        assert np.allclose(mean / asked, np.eye(len(mean))[value[i]])


@pytest.mark.parametrize("m", EVERY, ids=NAMES)
@pytest.mark.parametrize("weighted", [False, True])
def test_tallies_add(m: OneOf | AllOf, weighted: bool) -> None:
    reports = m.privatize(answers(m, 50), ReplayCoins(b"add"))
    weights = np.arange(1, 51) if weighted else None

    def tally(a: int, b: int) -> Any:
        return m.tally(reports[a:b], None if weights is None else weights[a:b])

    whole, empty = tally(0, 50), m.tally(reports[:0])
    for other in (tally(0, 7) + tally(7, 50), whole + empty, empty + whole):
        assert same_tally(whole, other)
    for a, b in zip(m.estimate(whole), m.estimate(tally(0, 7) + tally(7, 50)), strict=True):
        assert np.array_equal(a.value, b.value)
        assert np.array_equal(a.variance, b.variance)


@pytest.mark.parametrize("m", EVERY, ids=NAMES)
def test_weights_count_like_repetition(m: OneOf | AllOf) -> None:
    reports = m.privatize(answers(m, 40), ReplayCoins(b"w"))
    weights = np.arange(1, 41)
    weighted = m.estimate(m.tally(reports, weights))
    repeated = m.estimate(m.tally(np.repeat(reports, weights)))
    units = m.estimate(m.tally(reports, np.ones(40, np.int64)))
    plain = m.estimate(m.tally(reports))
    for a, b, c, d in zip(weighted, repeated, units, plain, strict=True):
        assert np.allclose(a.value, b.value)
        assert np.allclose(c.value, d.value)
        assert np.allclose(c.variance, d.variance)


@pytest.mark.parametrize("m", EVERY, ids=NAMES)
def test_no_reports_are_no_data(m: OneOf | AllOf) -> None:
    for estimate in m.estimate(m.tally(np.empty(0, m.report_dtype))):
        assert not estimate.has_data
        assert np.isinf(estimate.variance).all()


def test_one_group_may_be_empty() -> None:
    m = one_of(GRR(size=2, epsilon="1"), GRR(size=2, epsilon="1"), weights=(1, 10**6))
    estimates = m.estimate(m.tally(m.privatize(np.zeros((20, 2), np.int64), ReplayCoins(b"e"))))
    assert [estimate.has_data for estimate in estimates] == [False, True]
    # Everyone was asked the second question, so nothing was sampled.
    assert np.array_equal(estimates[1].variance, m.member(1).estimate(m_tally(m)).variance)


def m_tally(m: OneOf) -> Any:
    return m.tally(m.privatize(np.zeros((20, 2), np.int64), ReplayCoins(b"e"))).member(1)


def test_equal_mechanisms_share_a_block() -> None:
    tally = MIXED.tally(MIXED.privatize(answers(MIXED, 300), ReplayCoins(b"b")))
    grids = [part for part in tally.parts if isinstance(part, MemberCounts)]
    assert [grid.cells.shape for grid in grids] == [(2, 3), (1, 11)]
    assert tally.n == sum(tally.member(i).n for i in range(3)) == 300


def test_large_hashed_members_keep_logs() -> None:
    m = one_of(OLH(size=1 << 40, epsilon="1"), GRR(size=2, epsilon="1"))
    reports = m.privatize(np.array([[7, 1]] * 40), ReplayCoins(b"l"))
    whole, parts = m.tally(reports), m.tally(reports[:9]) + m.tally(reports[9:])
    a, b = (m.estimate(t, [np.array([7, 8]), None]) for t in (whole, parts))
    assert isinstance(whole.member(0), Log)
    assert np.array_equal(np.sort(a[0].value), np.sort(b[0].value))
    assert a[0].labels == [7, 8]


def test_member_draw_follows_the_weights_word_by_word() -> None:
    m = one_of(*[GRR(size=2, epsilon="1")] * 3, weights=(1, 2, 1))
    for word, member in ((0, 0), (WORD // 4 - 1, 0), (WORD // 4, 1), (3 * WORD // 4 - 1, 1), (WORD - 1, 2)):
        report = m.decode(m.privatize_one((0, 0, 0), ScriptedCoins([word, WORD - 1])))
        assert report["member"][0] == member
    assert [m.probability(i) for i in range(3)] == [0.25, 0.5, 0.25]
    assert one_of(*[GRR(size=2, epsilon="1")] * 3).probability(0) == pytest.approx(1 / 3)


def test_group_sampling_error_is_in_the_variance() -> None:
    """Errors against all respondents, over 910 collections (false-alarm probability 1e-7 each)."""
    m = one_of(GRR(size=2, epsilon="4"), GRR(size=2, epsilon="4"))
    joint, rng = np.array([[50, 150], [100, 200]]), np.random.default_rng(7)
    truth, n = (np.array([0.4, 0.6]), np.array([0.3, 0.7])), 500
    runs = [m.estimate(m.simulate_tally(joint, rng)) for _ in range(910)]
    for i in range(2):
        errors = np.array([run[i].value[0] - truth[i][0] for run in runs])
        groups, f = np.array([run[i].n for run in runs]), truth[i][0]
        noise = float(GRR(size=2, epsilon="4").moments.variance(truth[i])[0])
        exact = noise / groups + f * (1 - f) / groups * (n - groups) / (n - 1)
        assert_variance(errors, exact)
        assert_unbiased(errors[:, None], np.array([exact.mean()]))
        stated = np.array([run[i].variance[0] for run in runs])
        assert stated.mean() == pytest.approx(exact.mean(), rel=0.02)


@pytest.mark.slow
def test_real_reports_agree_with_the_aggregate_simulation() -> None:
    """Errors over 580 collections of real reports (false-alarm probability 1e-7)."""
    m = one_of(GRR(size=2, epsilon="3"), GRR(size=3, epsilon="3"), weights=(1, 3))
    values = np.array([(a, b) for a, b, k in ((0, 0, 10), (1, 0, 20), (1, 1, 20), (0, 2, 30)) for _ in range(k)])
    coins, n = ReplayCoins(b"real"), len(values)
    f = np.bincount(values[:, 1]) / n
    runs = [m.estimate(m.tally(m.privatize(values, coins)))[1] for _ in range(580)]
    groups = np.array([run.n for run in runs])
    noise = float(GRR(size=3, epsilon="3").moments.variance(f)[0])
    exact = noise / groups + f[0] * (1 - f[0]) / groups * (n - groups) / (n - 1)
    assert_variance(np.array([run.value[0] - f[0] for run in runs]), exact, must_reject=1.4)


def test_combinations_carry_the_sampling_error_too() -> None:
    m = one_of(OUE(size=3, epsilon="2"), OUE(size=3, epsilon="2"))
    estimate = m.estimate(m.tally(m.privatize(np.array([[0, 1], [2, 1]] * 100), ReplayCoins(b"c"))))[0]
    for i in range(3):
        assert estimate.combine(np.eye(3)[i]).variance[0] == pytest.approx(estimate.variance[i])
    everything = estimate.combine(np.ones(3)).variance[0]
    alone = m.member(0).estimate(m.tally(m.privatize(np.array([[0, 1], [2, 1]] * 100), ReplayCoins(b"c"))).member(0))
    # The whole of everyone is no sample: nothing is added where the plug-in sums to one.
    assert everything >= alone.combine(np.ones(3)).variance[0] - 1e-12
    assert estimate.total == 200


def test_the_population_interval_counts_every_respondent_once() -> None:
    m = one_of(GRR(size=2, epsilon="2"), GRR(size=2, epsilon="2"))
    tally = m.tally(m.privatize(np.array([[0, 1]] * 400), ReplayCoins(b"p")))
    mine, alone = m.estimate(tally)[1], m.member(1).estimate(tally.member(1))
    f = np.clip(mine.value, 0, 1)
    low, high = replace(mine, law=None).interval(0.95, target="population")
    expected = alone.variance + f * (1 - f) * ((400 - mine.n) / 399 / mine.n + 1 / 400)
    assert np.allclose((high - low) / 2, 1.959963985 * np.sqrt(expected))


def test_joint_table_has_the_members_as_marginals() -> None:
    values = answers(JOINT, 500)
    reports = JOINT.privatize(values, ReplayCoins(b"j"))
    for weights in (None, np.arange(500) - 250):
        tally = JOINT.tally(reports, weights)
        assert isinstance(tally, Counts)
        assert len(tally.cells) == 3 * 4
        for i in range(2):
            marginal = JOINT.marginal(tally, i)
            direct = JOINT.member(i).tally(np.ascontiguousarray(reports[f"answer_{i}"]), weights)
            assert same_tally(marginal, direct)
            assert marginal.is_weighted == direct.is_weighted


def test_marginals_of_huge_tables_do_not_overflow() -> None:
    cells = np.full(12, 1 << 55, np.int64)
    marginal = JOINT.marginal(Counts(JOINT, 12 << 55, cells, cells, 12 << 55, 12 << 55), 0)
    assert isinstance(marginal, Counts)
    assert marginal.cells.tolist() == [4 << 55] * 3


def test_states_of_all_of() -> None:
    assert (JOINT.state, LOGGED.state, APART.state) == ("joint", "log", "members")
    large = AllOf(epsilon="2", members=(GRR(size=2000, epsilon=share(2)),) * 2)
    assert large.state == "log"
    assert len(AllOf(epsilon="2", members=(GRR(size=1024, epsilon=share(2)),) * 2).all_reports()) == 1 << 20
    with pytest.raises(InvalidSpec, match="joint table"):
        AllOf(epsilon="2", members=LOGGED.members, state="joint")
    reports = APART.privatize(answers(APART, 200), ReplayCoins(b"s"))
    tally = APART.tally(reports)
    assert isinstance(tally, PerMember)
    assert [part.cells.shape for part in tally.parts if isinstance(part, MemberCounts)] == [(2, 3), (1, 9)]
    logged = AllOf(epsilon="2", members=APART.members, state="log")
    for a, b in zip(APART.estimate(tally), logged.estimate(logged.tally(reports)), strict=True):
        assert np.array_equal(a.value, b.value)
        assert np.array_equal(a.variance, b.variance)


def test_privacy_of_both() -> None:
    assert MIXED.realised_odds() == OUE(size=11, epsilon="2").realised_odds()
    assert MIXED.budget.declared == 2
    assert JOINT.realised_odds() == JOINT.member(0).realised_odds() * JOINT.member(1).realised_odds()
    for m in EVERY:
        assert m.holds()
        assert m.realised_epsilon() <= 2


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "4", "16", "32"])
@pytest.mark.parametrize("parts", [2, 3, 7])
def test_split_epsilon_holds_exactly(epsilon: str, parts: int) -> None:
    m = AllOf(epsilon=epsilon, members=(GRR(size=4, epsilon=Share(epsilon, f"1/{parts}")),) * parts)
    assert m.holds()
    assert m.realised_epsilon() <= float(epsilon)


@dataclass(frozen=True, kw_only=True)
class Halvings(Family):
    """A computed family over 0 .. 2^digits - 1: member i reports the first i + 1 binary digits."""

    kind: ClassVar[str] = "halvings"
    digits: int
    epsilon: str

    def __len__(self) -> int:
        return self.digits

    @property
    def weights(self) -> tuple[int, ...]:  # type: ignore[override]
        return (1,) * self.digits

    def answer_sizes(self) -> tuple[int, ...]:
        return (1 << self.digits,)

    def of_answers(self, answers: Sequence[int]) -> int:
        return answers[0]

    @property
    def domain_size(self) -> int:
        return 1 << self.digits

    def describe(self, *, spelled: bool = False, several: bool = False) -> str:
        return f"{self.digits} digits, {spelled}, {several}"

    def view(self, i: int) -> Callable[[Any], Any]:
        return lambda value: value >> (self.digits - 1 - i)

    def mechanism(self, i: int) -> GRR:
        return GRR(size=2 << i, epsilon=self.epsilon)


def test_families_may_be_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    m = OneOf(family=Halvings(digits=4, epsilon="1.5"))
    values = np.arange(16).repeat(5)
    loop = m.privatize(values, ReplayCoins(b"h"))
    monkeypatch.setattr(GRR, "coin_words", 1, raising=False)
    assert m.privatize(values, ReplayCoins(b"h")).tobytes() == loop.tobytes()
    counts, rng = np.arange(16) * 100, np.random.default_rng(3)
    for i, estimate in enumerate(m.estimate(m.simulate_tally(counts, rng))):
        truth = counts.reshape(2 << i, -1).sum(axis=1) / counts.sum()
        # Eight standard errors of 30 cells: false-alarm probability 4e-14.
        assert np.all(np.abs(estimate.value - truth) < 8 * estimate.standard_error)


BAD: list[tuple[str, Callable[[], Any]]] = [
    ("no_member", lambda: one_of()),
    ("not_a_mechanism", lambda: Questions(mechanisms=({"kind": "grr"},))),  # type: ignore[arg-type]
    ("no_family", lambda: OneOf(family=None, epsilon="1")),  # type: ignore[arg-type]
    ("weights_too_few", lambda: one_of(GRR(size=2, epsilon="1"), weights=(1, 1))),
    ("weight_zero", lambda: one_of(GRR(size=2, epsilon="1"), weights=(0,))),
    ("weights_too_large", lambda: one_of(GRR(size=2, epsilon="1"), weights=((1 << 32) + 1,))),
    ("member_beyond_epsilon", lambda: OneOf(epsilon="1", family=MIXED.family)),
    ("payload_too_wide", lambda: OneOf(family=MIXED.family, payload_bytes=9)),
    ("device_member_on_the_server", lambda: one_of(GRRDevice(size=2, epsilon="1"))),
    ("amplified", lambda: one_of(GRR(size=9, epsilon=Amplified("1", 3)))),
    ("shares_too_large", lambda: AllOf(epsilon="1", members=JOINT.members)),
    ("state_unknown", lambda: AllOf(epsilon="2", members=JOINT.members, state="rows")),
    ("device_without_payload", lambda: OneOfDevice(epsilon="2", family=MIXED.family)),
    ("device_without_state", lambda: AllOfDevice(epsilon="2", members=JOINT.members)),
    ("deeply_nested", lambda: build(nested(9), lambda spec: find_kind(spec, CATALOG))),
]


def nested(depth: int) -> Any:
    return {"kind": "all_of", "members": [nested(depth - 1)]} if depth else {"kind": "grr"}


@pytest.mark.parametrize("make", [make for _, make in BAD], ids=[name for name, _ in BAD])
def test_compositions_that_cannot_exist(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidSpec):
        make()


@pytest.mark.parametrize("value", [(0,), (0, 1, 2), "01", 7, None])
def test_answers_must_be_one_per_question(value: Any) -> None:
    for m in (SMALL, JOINT):
        with pytest.raises(InvalidValue):
            m.privatize_one(value, ReplayCoins(b"v"))


def test_bad_reports_are_refused() -> None:
    good = MIXED.privatize(answers(MIXED, 30), ReplayCoins(b"r"))
    for field, place, wrong in (("member", ..., 3), ("payload", (..., 0), 255), ("payload", (..., 1), 8)):
        bad = good.copy()
        bad[field][place] = wrong
        with pytest.raises(ReportRejected, match="nothing was counted"):
            MIXED.tally(bad)
    pair = JOINT.privatize(answers(JOINT, 30), ReplayCoins(b"r")).copy()
    pair["answer_0"] = 3
    with pytest.raises(ReportRejected, match="30 of 30"):
        JOINT.tally(pair)


def test_tallies_of_different_compositions_do_not_add() -> None:
    other = one_of(*MIXED.layout.blocks)
    with pytest.raises(SpecMismatch, match="family"):
        _ = MIXED.tally(np.empty(0, MIXED.report_dtype)) + other.tally(np.empty(0, other.report_dtype))
    with pytest.raises(SpecMismatch):
        JOINT.estimate(LOGGED.tally(np.empty(0, LOGGED.report_dtype)))


def test_mixed_weights_do_not_add() -> None:
    reports = MIXED.privatize(answers(MIXED, 30), ReplayCoins(b"m"))
    with pytest.raises(SpecMismatch, match="weighted"):
        _ = MIXED.tally(reports) + MIXED.tally(reports, np.ones(30, np.int64))


def test_epsilon_shares_need_not_be_used_up() -> None:
    m = AllOf(epsilon="2", members=(GRR(size=3, epsilon=share(2)), GRR(size=3, epsilon="0.5")))
    assert m.realised_odds() < Fraction(m.odds, WORD)
