"""Specs of the block responses: defaults, round trips, and what is refused."""

import math
from typing import Any

import numpy as np
import pytest

from tacit.device.numbers.budget import Share
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, InvalidValue, ReportRejected, SpecMismatch
from tacit.oracles.blocks import ABR, CBR, SS, BlockOracle

EACH: list[BlockOracle] = [SS(size=9, epsilon="1"), CBR(size=9, epsilon="1"), ABR(size=9, epsilon="1")]


def test_exact_specs_survive_the_wire():
    paley = CBR(size=11, epsilon="0.5", family="paley", order=11, dimension=1)
    share = SS(size=300, epsilon=Share("2", "1/3"))
    for mechanism in (*EACH, paley, share, ABR(size=(1 << 32) - 5, epsilon="8")):
        again = type(mechanism).from_spec(mechanism.spec())
        assert again == mechanism and again.digest == mechanism.digest


def test_defaults_are_written_into_the_spec():
    assert SS(size=10, epsilon="1").spec() == {"kind": "ss", "epsilon": "1", "size": 10, "subset": 3}
    cbr = {"kind": "cbr", "epsilon": "1", "size": 64, "family": "singer", "order": 4, "dimension": 4}
    assert CBR(size=64, epsilon="1").spec() == cbr
    abr = {"kind": "abr", "epsilon": "1", "size": 64, "modulus": 67, "block": 18, "state": "counts"}
    assert ABR(size=64, epsilon="1").spec() == abr
    assert ABR(size=5000, epsilon="1").state == "log"


def test_worked_numbers():
    def rates(mechanism: BlockOracle) -> tuple[float, float]:
        return float(mechanism.p), float(mechanism.q)

    ss = SS(size=10, epsilon="1")
    assert ss.subset == 3
    assert rates(ss) == pytest.approx((0.5381015262, 0.2735442749), abs=1e-10)
    assert ss.average_error() == pytest.approx(2.910405516, abs=1e-9)
    plane = CBR(size=13, epsilon="1", family="singer", order=3, dimension=3)
    assert rates(plane) == pytest.approx((0.5471271402, 0.2877394050), abs=1e-10)
    space = CBR(size=300, epsilon="2", family="singer", order=7, dimension=4)
    assert rates(space) == pytest.approx((0.5511506364, 0.1414758129), abs=1e-10)
    assert rates(ABR(size=11, epsilon="1", block=3)) == pytest.approx((0.5047925400, 0.2495207460), abs=1e-10)
    warner, e = SS(size=2, epsilon="1"), math.e
    assert warner.average_error() == pytest.approx(e / (e - 1) ** 2, rel=1e-12)


def test_report_bits():
    assert SS(size=10, epsilon="1").report_bits == 10
    assert CBR(size=4096, epsilon="2").report_bits == 13
    assert [ABR(size=d, epsilon="1").report_bits for d in (4, 16, 64, 1024, 65536)] == [4, 8, 12, 20, 32]


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        (SS, {"size": 1}, "no information"),
        (SS, {"size": 4097}, "use abr or cbr"),
        (SS, {"size": 9, "subset": 9}, "subset is 9, must be at most 8"),
        (SS, {"size": 9, "subset": -1}, "at least 1"),
        (CBR, {"size": (1 << 22) + 1}, "use abr"),
        (CBR, {"size": 100, "epsilon": "12"}, "or grr if epsilon is large"),
        (CBR, {"size": 9, "family": "fano", "order": 2, "dimension": 3}, "family must be"),
        (CBR, {"size": 9, "order": 2, "dimension": 3}, "leave out"),
        (CBR, {"size": 9, "family": "singer"}, "order is 0"),
        (CBR, {"size": 9, "family": "singer", "order": 6, "dimension": 3}, "must be a prime power"),
        (CBR, {"size": 9, "family": "singer", "order": 3, "dimension": 2}, "dimension is 2"),
        (CBR, {"size": 14, "family": "singer", "order": 3, "dimension": 3}, "has 13 points"),
        (CBR, {"size": 9, "family": "singer", "order": 53, "dimension": 5}, "has 8042221 points"),
        (CBR, {"size": 9, "family": "paley", "order": 13, "dimension": 1}, "4i \\+ 3"),
        (CBR, {"size": 9, "family": "paley", "order": 15, "dimension": 1}, "4i \\+ 3"),
        (CBR, {"size": 9, "family": "paley", "order": 11, "dimension": 2}, "dimension 1"),
        (ABR, {"size": 1 << 32}, "use olh"),
        (ABR, {"size": 9, "modulus": 7}, "at least 9"),
        (ABR, {"size": 9, "modulus": 15}, "must be a prime, 17 is the next"),
        (ABR, {"size": 9, "block": 11}, "at most 10"),
        (ABR, {"size": 9, "state": "both"}, "state must be"),
        (ABR, {"size": 1 << 31, "epsilon": Share("0.001", "1/999999999")}, "epsilon is too small"),
    ],
)
def test_bad_specs_are_refused(kind: type[BlockOracle], fields: dict[str, Any], message: str):
    with pytest.raises(InvalidSpec, match=message):
        kind(**{"epsilon": "1"} | fields)


def test_tiny_shares_of_a_budget_hold_where_they_are_accepted():
    tiny = Share("0.001", "1/999999999")
    assert CBR(size=1000, epsilon=tiny, family="paley", order=1019, dimension=1).holds()
    assert SS(size=100, epsilon=tiny).holds()


@pytest.mark.parametrize("mechanism", EACH)
def test_bad_values_are_refused_and_not_shown(mechanism: BlockOracle):
    for value in (-1, 9, "3", None, 2.0, True):
        with pytest.raises(InvalidValue):
            mechanism.privatize_one(value, ReplayCoins(b""))
    with pytest.raises(InvalidValue):
        mechanism.privatize(np.array([0, 9]), ReplayCoins(b""))


def test_bad_reports_are_refused():
    ss, cbr, abr = EACH
    bad: list[tuple[BlockOracle, bytes]] = [
        (ss, bytes([0b1, 0])),  # too few points
        (ss, bytes([0b1, 0b10])),  # a point beyond the domain
        (ss, bytes([0b1111, 0])),  # too many points
        (cbr, bytes([cbr.m])),
        (abr, bytes([0, 3])),
        (abr, bytes([6, 3])),
        (abr, bytes([1, 11])),
    ]
    assert ss.k == 2 and abr.m == 11
    for mechanism, data in bad:
        with pytest.raises(ReportRejected, match="1 of 1"):
            mechanism.tally(mechanism.decode(data))


def test_tallies_of_different_designs_do_not_add():
    one = CBR(size=9, epsilon="1", family="singer", order=3, dimension=3)
    two = CBR(size=9, epsilon="1", family="paley", order=11, dimension=1)
    first, second = (m.tally(m.privatize([1, 2], ReplayCoins(b""))) for m in (one, two))
    with pytest.raises(SpecMismatch, match="dimension"):
        _ = first + second


def test_large_spaces_are_neither_enumerated_nor_simulated():
    for mechanism in (SS(size=100, epsilon="1"), ABR(size=10_000, epsilon="1")):
        with pytest.raises(InvalidSpec, match="not enumerated"):
            mechanism.all_reports()
    with pytest.raises(InvalidSpec, match="privatize a simulated population"):
        CBR(size=66000, epsilon="4").simulate_tally(np.ones(66000), np.random.default_rng(0))


def test_an_empty_tally_has_no_data():
    for mechanism in EACH:
        empty = mechanism.tally(mechanism.privatize([], ReplayCoins(b"")))
        assert not mechanism.estimate(empty).has_data
