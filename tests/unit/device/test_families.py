"""Views and coefficients on the device and in batches: exact laws by enumeration."""

from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from tacit.catalog import parse
from tacit.core.compose import OneOf
from tacit.device.families.coefficients import Coefficients
from tacit.device.families.views import Views
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE
from tacit.tasks.marginals.solve import solve_marginals


def views(epsilon: str = "1") -> OneOf:
    mechanisms = (GRR(size=6, epsilon=epsilon), GRR(size=15, epsilon=epsilon))
    return OneOf(family=Views(sizes=(2, 3, 5), views=((0, 1), (1, 2)), mechanisms=mechanisms, weights=(1, 2)))


def signs(sizes: tuple[int, ...] = (3, 2, 4), k: int = 2, epsilon: str = "1") -> OneOf:
    sign = GRR(size=2, epsilon=epsilon)
    return OneOf(family=Coefficients(sizes=sizes, k=k, mechanisms=(sign,), by_order=tuple(range(k, 0, -1))))


@pytest.mark.parametrize("mechanism", [views(), signs()], ids=["views", "coefficients"])
def test_batches_are_the_devices_bytes(mechanism: OneOf):
    sizes = mechanism.family.sizes  # type: ignore[attr-defined]
    values = np.array(list(product(*map(range, sizes))))
    batch = mechanism.privatize(values, ReplayCoins(b"seed"))
    coins = ReplayCoins(b"seed")
    assert batch.tobytes() == b"".join(mechanism.privatize_one(list(value), coins) for value in values.tolist())


@pytest.mark.parametrize("mechanism", [views(), signs()], ids=["views", "coefficients"])
def test_probabilities_sum_to_one_and_keep_the_declared_ratio(mechanism: OneOf):
    reports, sizes = mechanism.all_reports(), mechanism.family.sizes  # type: ignore[attr-defined]
    table = np.array([mechanism.log_prob(reports, value) for value in product(*map(range, sizes))])
    assert np.allclose(np.exp(table).sum(axis=1), 1)
    worst = (table.max(axis=0) - table.min(axis=0)).max()
    assert worst <= 1 + 1e-12
    assert worst > 1 - 1e-9


@pytest.mark.parametrize("mechanism", [views(), signs()], ids=["views", "coefficients"])
def test_spec_round_trip(mechanism: OneOf):
    again = parse(mechanism.spec())
    assert again == mechanism
    assert again.digest == mechanism.digest


def test_ranks_are_a_bijection_and_attributes_are_restricted():
    family = signs((3, 4, 5), 2).family
    assert isinstance(family, Coefficients)
    members = [family.member(i) for i in range(len(family))]
    assert len(family) == 64  # Of 7 bits with up to 5 of them there are 119.
    assert len(set(members)) == 64
    assert [family.rank(member) for member in members] == list(range(64))
    assert all(1 <= len(member) <= 2 for member in members)


@pytest.mark.parametrize(
    ("sizes", "k", "count"),
    [
        ((2,) * 8, 3, 92),
        ((2,) * 20, 3, 1350),
        ((3,) * 8, 3, 1788),
        ((2,) * 16, 6, sum(comb(16, j) for j in range(1, 7))),
    ],
)
def test_number_of_coefficients(sizes: tuple[int, ...], k: int, count: int):
    assert len(signs(sizes, k).family) == count


@pytest.mark.parametrize("mechanism", [views(), signs((2, 2, 2), 3)], ids=["views", "coefficients"])
def test_every_table_is_unbiased_exactly(mechanism: OneOf):
    """One respondent per member, with expected reports instead of drawn ones, gives the true table back."""
    family = mechanism.family
    sizes = family.sizes  # type: ignore[attr-defined]
    rng = np.random.default_rng(1)
    values = np.array(list(product(*map(range, sizes))))
    share = rng.dirichlet(np.ones(len(values)))
    reports = mechanism.all_reports()
    expected = sum(
        f * np.exp(mechanism.log_prob(reports, tuple(v))) for f, v in zip(share, values.tolist(), strict=True)
    )
    weights = np.round(np.asarray(expected) * 2**28).astype(np.int64)
    answers = solve_marginals(mechanism, mechanism.tally(reports, weights))
    truth = share.reshape(sizes)
    asked = family.views if isinstance(family, Views) else list(combinations(range(3), 2))
    for table in asked:
        gone = tuple(a for a in range(3) if a not in table)
        assert np.allclose(answers.table(table).raw.value, truth.sum(axis=gone).ravel(), atol=1e-6)


def test_a_wrong_answer_is_refused_whichever_view_is_drawn():
    mechanism = views()
    for value in ([0, 1], [0, 1, 5], [2, 0, 0], ["0", 1, 2], [0, -1, 0], [0, 0.5, 0], None, {"a": 1}):
        with pytest.raises(InvalidValue):
            mechanism.privatize_one(value, ReplayCoins(b""))
    with pytest.raises(InvalidValue):
        mechanism.privatize(np.array([[0, 1, 4], [0, 1, 5]]), ReplayCoins(b""))


def test_one_value_and_mismatched_mechanisms_are_refused():
    with pytest.raises(InvalidSpec, match="drop an attribute"):
        Views(sizes=(1, 2), views=((0, 1),), mechanisms=(GRR(size=2, epsilon="1"),))
    with pytest.raises(InvalidSpec, match="numbers of cells"):
        Views(sizes=(2, 2), views=((0, 1),), mechanisms=(OUE(size=5, epsilon="1"),))
    with pytest.raises(InvalidSpec, match="lower k"):
        Coefficients(sizes=(2,) * 40, k=8, mechanisms=(GRR(size=2, epsilon="1"),))


def test_merging_shards_equals_one_pass():
    mechanism = signs()
    values = np.random.default_rng(2).integers(0, 2, (3000, 3))
    reports = mechanism.privatize(values, ReplayCoins(b"x"))
    whole, parts = mechanism.tally(reports), mechanism.tally(reports[:1000]) + mechanism.tally(reports[1000:])
    assert np.array_equal(whole.parts[0].cells, parts.parts[0].cells)  # type: ignore[union-attr]
