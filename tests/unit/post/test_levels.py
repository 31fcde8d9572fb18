"""One level of a tree per respondent: shapes, values, privacy and exact estimates, plain and signed (Haar)."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.catalog import parse
from tacit.core.compose import OneOf, Questions
from tacit.core.mechanism import Mechanism
from tacit.device.catalog import device_of
from tacit.device.families.levels import MAX_SIZE, Tree, node_count
from tacit.device.numbers.budget import Share
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.exact import WORD
from tacit.errors import InvalidSpec, InvalidValue
from tacit.numeric.mean import OneBit
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.hadamard_signed import HRRSigned
from tacit.oracles.local_hash import OLH
from tacit.oracles.unary import OUE
from tacit.simulate.coins import SimulationCoins
from tacit.testing.laws import check_laws
from tacit.testing.statistics import assert_unbiased, assert_variance

F64 = npt.NDArray[np.float64]

SHARES = np.array([0.1, 0.15, 0.23, 0.12, 0.2, 0.05, 0.07, 0.08])
"""The example of Kulkarni's figure 5.1."""


def plain(size: int, fanout: int, levels: "dict[int, type[Any]]", epsilon: Any = "1", **fields: Any) -> Tree:
    """A tree from heights and the kinds that ask for their nodes."""
    mechanisms = tuple(kind(size=node_count(size, fanout, height), epsilon=epsilon) for height, kind in levels.items())
    return Tree(size=size, fanout=fanout, heights=tuple(levels), mechanisms=mechanisms, **fields)


def haar(size: int, epsilon: Any = "1", **fields: Any) -> Tree:
    """All levels of the Haar transform."""
    heights = range((size - 1).bit_length() - 1, -1, -1)
    return plain(size, 2, dict.fromkeys(heights, HRRSigned), epsilon, **fields)


TREES: dict[str, Tree] = {
    "binary": plain(4, 2, {1: GRR, 0: GRR}),
    "mixed": plain(5, 2, {2: GRR, 1: OUE, 0: HRR}),  # 2, 3 and 5 nodes: ragged at every level
    "ragged": plain(10, 3, {2: GRR, 1: OUE, 0: GRR}, weights=(1, 5, 2)),
    "without a level": plain(10, 3, {2: GRR, 0: HRR}),
    "without leaves": plain(11, 3, {2: GRR, 1: HRR}),
    "one level": plain(4, 1 << 40, {0: OUE}),
    "haar of 2": haar(2),
    "haar of 8": haar(8, Share("2", "1/3")),
    "haar of 11": haar(11, weights=(4, 1, 2, 2)),
    "signed and plain": plain(6, 2, {2: GRR, 1: HRRSigned, 0: OUE}),
}


# Shape.


def test_nodes_of_a_height_cover_the_leaves():
    for size, fanout, height in [(10, 3, 0), (10, 3, 1), (10, 3, 2), (10, 3, 3), (8, 2, 2), (9, 2, 2), (2, 5, 0)]:
        assert node_count(size, fanout, height) == len({leaf // fanout**height for leaf in range(size)})
    assert [node_count(3**4, 3, height) for height in range(5)] == [81, 27, 9, 3, 1]  # B^k nodes at depth k, not 2^k


def test_views_are_the_nodes_above():
    tree = TREES["ragged"]
    assert [[tree.view(i)(leaf) for leaf in (0, 2, 3, 8, 9)] for i in range(3)] == [
        [0, 0, 0, 0, 1],
        [0, 0, 1, 2, 3],
        [0, 2, 3, 8, 9],
    ]
    assert tree.view(1)(np.arange(10)).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert len(tree) == 3
    assert tree.mechanism(1) == OUE(size=4, epsilon="1")


def test_without_weights_all_levels_are_drawn_alike():
    assert TREES["binary"].weights == (1, 1)
    assert OneOf(family=TREES["binary"]).probability(0) == 0.5


G2, G4, G10 = (GRR(size=size, epsilon="1") for size in (2, 4, 10))
SHAPE: dict[str, Any] = {"size": 10, "fanout": 3, "heights": (2, 1, 0), "mechanisms": (G2, G4, G10)}

BAD_SHAPES: dict[str, dict[str, Any]] = {
    "size of one": {"size": 1},
    "size as text": {"size": "10"},
    "size as a truth": {"size": True},
    "size with a fraction": {"size": 10.0},
    "size too large": {"size": MAX_SIZE + 1},
    "size with other nodes": {"size": 13},
    "fan-out of one": {"fanout": 1},
    "fan-out as text": {"fanout": "3"},
    "fan-out negative": {"fanout": -3},
    "heights as a number": {"heights": 2},
    "heights as text": {"heights": "210"},
    "a height as text": {"heights": (2, "1", 0)},
    "a height as a truth": {"heights": (2, True, 0)},
    "a height below the leaves": {"heights": (2, 1, -1)},
    "a height beyond any tree": {"heights": (65, 1, 0)},
    "too few heights": {"heights": (2, 1)},
    "heights that rise": {"heights": (0, 1, 2), "mechanisms": (G10, G4, G2)},
    "a height twice": {"heights": (2, 1, 1), "mechanisms": (G2, G4, G4)},
    "the root, one node": {"heights": (3, 1, 0)},
    "no levels": {"heights": (), "mechanisms": ()},
    "mechanisms in another order": {"mechanisms": (G4, G2, G10)},
    "a mechanism over the leaves": {"mechanisms": (G2, G10, G10)},
    "no mechanism": {"mechanisms": (G2, "grr", G10)},
    "mechanisms in no list": {"mechanisms": G2},
    "a mechanism of a number": {"mechanisms": (G2, OneBit(top=3, epsilon="1"), G10)},
    "a composed mechanism": {"mechanisms": (G2, OneOf(family=Questions(mechanisms=(G4,))), G10)},
    "weights as a number": {"weights": 3},
}


@pytest.mark.parametrize("changed", BAD_SHAPES.values(), ids=BAD_SHAPES)
def test_shapes_that_cannot_exist_are_refused_by_name(changed: dict[str, Any]):
    assert len(Tree(**SHAPE)) == 3
    with pytest.raises(InvalidSpec, match=r"^tree: "):
        Tree(**(SHAPE | changed))


@pytest.mark.parametrize("weights", [(1, 1), (0, 1, 1), (True, 1, 1), (1 << 32, 1, 1), ("1", 1, 1)])
def test_weights_are_checked_where_a_level_is_drawn(weights: Any):
    with pytest.raises(InvalidSpec, match="weight"):
        OneOf(family=Tree(**SHAPE, weights=weights))


@pytest.mark.parametrize("name", TREES)
def test_specs_go_round_trip_through_the_catalogue_and_the_device(name: str):
    m = OneOf(family=TREES[name])
    again = parse(m.spec())
    assert again == m
    assert again.digest == m.digest
    device = device_of(m.spec())
    assert not isinstance(device, Mechanism)
    assert device.digest == m.digest
    assert device.privatize_one(1, ReplayCoins(b"y")) == m.privatize_one(1, ReplayCoins(b"y"))
    written = m.spec()["family"]
    assert list(written) == ["kind", "size", "fanout", "heights", "mechanisms", "weights"]
    for field in list(written)[1:]:
        with pytest.raises(InvalidSpec, match=field):
            parse(m.spec() | {"family": {key: value for key, value in written.items() if key != field}})


def test_a_spec_states_weights():
    m = OneOf(family=TREES["binary"])
    with pytest.raises(InvalidSpec, match="canonical"):
        parse(m.spec() | {"family": m.spec()["family"] | {"weights": []}})


# Values.


class Loud:
    """A foreign object whose every operation tells what it holds."""

    def __index__(self) -> int:
        raise ValueError("918273645")

    def __floordiv__(self, other: Any) -> Any:
        raise ValueError("918273645")

    __lt__ = __gt__ = __ge__ = __le__ = __floordiv__


SECRET = 918273645
BAD_VALUES: dict[str, Any] = {
    "beyond the last leaf": 11,
    "large": SECRET,
    "negative": -SECRET,
    "huge": SECRET << 100,
    "truth": True,
    "text": str(SECRET),
    "bytes": b"918273645",
    "float": 1.0,
    "large float": float(SECRET),
    "not a number": float("nan"),
    "none": None,
    "list": [SECRET],
    "tuple": (1,),
    "mapping": {SECRET: 1},
    "set": {SECRET},
    "complex": 918273645j,
    "loud": Loud(),
}


@pytest.mark.parametrize("value", BAD_VALUES.values(), ids=BAD_VALUES)
@pytest.mark.parametrize("name", ["without leaves", "haar of 11"])
def test_values_that_are_no_leaves_are_refused_without_being_shown(name: str, value: Any):
    """Eleven leaves in groups of three or two: leaf 11 would be inside the last node of every height but 0."""
    tree = TREES[name]
    m = OneOf(family=tree)
    for act in (lambda: m.privatize_one(value, ReplayCoins(b"")), lambda: m.check_value(value)):
        with pytest.raises(InvalidValue) as raised:
            act()
        assert str(SECRET) not in str(raised.value)
    for i in range(len(tree)):
        with pytest.raises(InvalidValue, match=r"^tree: the value is outside the domain, must be .* from 0 to 10$"):
            tree.view(i)(value)


BAD_BATCHES: dict[str, Any] = {
    "beyond the last leaf": [0, 11],
    "negative": [0, -SECRET],
    "huge": [0, SECRET << 100],
    "unsigned": np.array([0, SECRET], np.uint64),
    "truths": [True, False],
    "texts": [str(SECRET), "1"],
    "floats": [1.0, 2.0],
    "nested": [[1, 2], [3, SECRET]],
    "ragged": [[1, 2], [SECRET]],
    "nothing known": [None, 1],
}


@pytest.mark.parametrize("values", BAD_BATCHES.values(), ids=BAD_BATCHES)
@pytest.mark.parametrize("name", ["without leaves", "haar of 11"])
def test_batches_that_hold_no_leaves_are_refused_without_being_shown(name: str, values: Any):
    with pytest.raises(InvalidValue) as raised:
        OneOf(family=TREES[name]).privatize(values, ReplayCoins(b""))
    assert str(SECRET) not in str(raised.value)


def test_numpy_integers_are_leaves_and_an_empty_batch_is_one():
    m = OneOf(family=TREES["haar of 11"])
    plainly = m.privatize_one(7, ReplayCoins(b"z"))
    for kind in (np.int8, np.uint8, np.int64, np.uint64):
        assert m.privatize_one(kind(7), ReplayCoins(b"z")) == plainly
        assert m.privatize(np.array([7], kind), ReplayCoins(b"z")).tobytes() == plainly
    assert len(m.privatize([], ReplayCoins(b"z"))) == 0


# Laws, privacy and exact estimates.


@pytest.mark.parametrize("name", ["binary", "mixed", "without leaves", "haar of 8", "haar of 11"])
def test_one_level_of_a_tree_keeps_the_laws(name: str):
    """Privacy, enumeration, batch, samples (false-alarm probability 1e-7 per value), monoid, weights, spec, empty."""
    assert len(check_laws(OneOf(family=TREES[name]))) == 9


@pytest.mark.parametrize("name", TREES)
def test_no_report_tells_two_leaves_apart_by_more_than_the_odds(name: str):
    m = OneOf(family=TREES[name])
    reports = m.all_reports()
    assert len({report.tobytes() for report in reports}) == len(reports)
    logs = np.array([m.log_prob(reports, leaf) for leaf in range(TREES[name].size)])
    assert np.allclose(np.exp(logs).sum(axis=1), 1, rtol=1e-12)
    assert np.max(np.ptp(logs, axis=0)) == pytest.approx(m.realised_epsilon(), abs=1e-12)
    assert m.realised_odds() <= Fraction(m.odds, WORD)


def test_leaves_below_one_node_cannot_be_told_apart_at_its_level():
    m = OneOf(family=TREES["ragged"])
    reports = m.all_reports()
    for i, height in enumerate((2, 1, 0)):
        of_level = reports[reports["member"] == i]
        found = {tuple(m.log_prob(of_level, leaf)) for leaf in range(10)}
        assert len(found) == node_count(10, 3, height)


def truth_of(m: OneOf, i: int, leaf: int) -> F64:
    """What one respondent truly adds to member i: a node, or the sign of the half of a node."""
    node, member = m.family.view(i)(leaf), m.member(i)
    if isinstance(member, HRRSigned):
        return np.eye(member.nodes)[node // 2] * (1 - 2 * (node % 2))
    return np.eye(getattr(member, "size"))[node]  # noqa: B009


def means(m: OneOf, i: int) -> F64:
    """The exact mean of member i's estimate given each leaf, over all reports, as rows."""
    size: int = getattr(m.family, "size")  # noqa: B009
    reports = m.all_reports()
    reports = reports[reports["member"] == i]
    estimates = np.array([m.estimate(m.tally(reports[k : k + 1]))[i].value for k in range(len(reports))])
    chances = np.array([np.exp(m.log_prob(reports, leaf)) for leaf in range(size)])
    return chances @ estimates / m.probability(i)


@pytest.mark.parametrize("name", TREES)
def test_every_level_is_unbiased_by_enumeration(name: str):
    m = OneOf(family=TREES[name])
    for i in range(len(TREES[name])):
        truth = np.array([truth_of(m, i, leaf) for leaf in range(TREES[name].size)])
        assert np.allclose(means(m, i), truth, atol=1e-12)


def test_levels_of_the_published_example():
    """Figure 5.1: histogram and Haar levels of the same eight leaves; the lead is first half minus second half."""
    m = OneOf(family=plain(8, 2, {2: GRR, 1: HRR}))
    assert np.allclose(SHARES @ means(m, 0), [0.60, 0.40])
    assert np.allclose(SHARES @ means(m, 1), [0.25, 0.35, 0.25, 0.15])
    m = OneOf(family=haar(8))
    assert np.allclose(SHARES @ means(m, 0), [0.20])
    assert np.allclose(SHARES @ means(m, 1), [-0.10, 0.10])
    assert np.allclose(SHARES @ means(m, 2), [-0.05, 0.11, 0.15, -0.01])


def test_hashed_levels_are_batched_like_the_device():
    """Local hashing has too many seeds to list, and takes as many words as Hadamard rows: one sweep."""
    m = OneOf(family=plain(50, 4, {2: HRR, 1: OLH, 0: OLH}))
    values, coins = np.arange(50), ReplayCoins(b"h")
    batch = m.privatize(values, ReplayCoins(b"h"))
    assert batch.tobytes() == b"".join(m.privatize_one(leaf, coins) for leaf in values.tolist())
    assert [len(e.value) for e in m.estimate(m.tally(batch))] == [4, 13, 50]


@pytest.mark.slow
def test_a_haar_level_of_many_collections_has_the_exact_variance_with_its_sampling():
    """n_t Var = V1 - g + (N - n_t)/(N - 1) (g - d^2) given n_t, over 910 collections.

    False-alarm probability 1e-7 for each assertion; a variance that is off by a factor of 1.3 is rejected.
    """
    m, everyone = OneOf(family=haar(8, "2")), 400
    values = np.repeat(np.arange(8), (SHARES * everyone).round().astype(int))
    coins = SimulationCoins(20_250_117)
    found = [m.estimate(m.tally(m.privatize(values, coins)))[0] for _ in range(910)]
    value, stated = (np.array([getattr(e, name)[0] for e in found]) for name in ("value", "variance"))
    asked = np.array([e.n for e in found])
    left = (everyone - asked) / (everyone - 1)
    constant = HRRSigned(size=2, epsilon="2").moments.other
    variance = (constant - 1 + left * (1 - 0.2**2)) / asked
    errors = (value - 0.2) / np.sqrt(variance)
    assert_unbiased(errors[:, None], np.ones(1))
    assert_variance(errors, np.ones(1))
    # What is stated does not know the mass of the node: it must never be too small.
    assert np.all(stated >= variance)
