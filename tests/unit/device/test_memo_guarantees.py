"""What memoised sequences reveal, by enumeration of all reports under an ideal function of the secret."""

from itertools import permutations, product
from math import inf, log

import pytest

from tacit.device.kinds.memo import Memory, longitudinal
from tacit.device.kinds.rappor import LayeredDevice
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.mean import OneBit
from tacit.numeric.memo import Memoized
from tacit.oracles.grr import GRR
from tacit.oracles.unary import OUE
from tacit.testing.examples import example, examples
from tacit.testing.guarantees import enumerated_guarantees, sequence_loss


def memo(inner, most_values=2, **fields):
    return Memoized(inner=inner, most_values=most_values, **fields)


KEYED_BY_VALUE = [
    memo(GRR(size=4, epsilon="1"), 3),
    memo(OUE(size=3, epsilon="1")),
    memo(OneBit(top=4, epsilon="1"), step=1),  # No rounding.
    memo(DBitFlip(size=3, sampled=3, epsilon="1")),  # Every bucket is sampled.
    memo(DBitFlip(size=3, sampled=2, epsilon="1")),  # "none" is one bucket alone.
]
KEYED_BY_SECRET = [
    memo(DBitFlip(size=3, sampled=1, epsilon="1")),
    memo(DBitFlip(size=4, sampled=2, epsilon="1")),
    memo(OneBit(top=4, epsilon="1"), 3),
    memo(OneBit(top=4, epsilon="1"), 3, step=2),
]


@pytest.mark.parametrize("mechanism", KEYED_BY_VALUE)
def test_equal_patterns_cost_epsilon_for_every_value_where_keys_are_values(mechanism):
    most = mechanism.most_values
    assert mechanism.keyed_by_value
    assert [what for what, _, _ in mechanism.guarantees()][1].startswith(f"{most} values")
    assert enumerated_guarantees(mechanism) == pytest.approx([1, most])


@pytest.mark.parametrize("mechanism", KEYED_BY_SECRET)
def test_no_finite_number_holds_where_the_secret_decides_the_keys(mechanism):
    assert not mechanism.keyed_by_value
    assert [what for what, _, _ in mechanism.guarantees()] == ["one value, any number of reports"]
    assert enumerated_guarantees(mechanism) == pytest.approx([1])
    sequences = list(permutations(range(mechanism.size), mechanism.most_values))
    assert sequence_loss(mechanism, sequences) == inf


def test_two_rounded_numbers_exceed_twice_epsilon():
    """0 and 100 always have different keys, 49 and 50 only for one rounding point in a hundred."""
    mechanism = memo(OneBit(top=100, epsilon="1"))
    assert sequence_loss(mechanism, [(0, 100), (49, 50), (100, 0), (50, 49)]) == pytest.approx(2 + log(100))


def test_a_device_shows_what_the_enumeration_says():
    """One of three buckets is sampled: 0, 1 may change its report; with bucket 0 sampled, 1, 2 never do."""
    mechanism, changed = memo(DBitFlip(size=3, sampled=1, epsilon="1")), {}
    for sequence in ((0, 1), (1, 2)):
        reports = []
        for i in range(400):
            memory = Memory(i.to_bytes(32, "little"), "c")
            reports.append([mechanism.report(value, memory) for value in sequence])
        of_zero = [pair for pair in reports if pair[0][0] == 0]
        changed[sequence] = sum(first != second for first, second in of_zero)
    # About 133 of the devices sample bucket 0; that none of them changes has probability below 1e-25.
    assert changed[(0, 1)] > 0
    assert changed[(1, 2)] == 0


def test_the_cap_costs_nothing_more():
    """A third value repeats the last report; that and when is the same in sequences of one pattern."""
    mechanism = memo(GRR(size=3, epsilon="1"))
    patterns = {}
    for sequence in product(range(3), repeat=4):
        patterns.setdefault(tuple(map(sequence.index, sequence)), []).append(sequence)
    losses = [sequence_loss(mechanism, group) or 0.0 for group in patterns.values()]
    assert max(losses) == pytest.approx(2)


def test_longitudinal_says_so():
    assert [g.epsilon for g in longitudinal(1.0, 3)][:2] == [1, 3]
    assert [g.epsilon for g in longitudinal(1.0, 3, keyed_by_value=False)][:2] == [1, inf]
    fresh = longitudinal(1.0, 3, keyed_by_value=False, flip=0.2, edits=2)
    assert fresh[1].epsilon == fresh[2].epsilon < inf


@pytest.mark.parametrize("kind", ["memo", "brappor", "rappor", "grr", "all_of"])
def test_every_stated_guarantee_of_an_example_is_enumerated(kind):
    for mechanism in examples(kind, "1"):
        stated, found = mechanism.guarantees(), enumerated_guarantees(mechanism)
        assert len(found) == len(stated)
        for (_, realised, _), loss in zip(stated, found, strict=True):
            assert loss == pytest.approx(log(realised), abs=1e-9)


def test_what_is_too_large_is_not_enumerated():
    assert sequence_loss(memo(OUE(size=16, epsilon="1")), [(0, 1), (1, 0)]) is None
    assert enumerated_guarantees(memo(OUE(size=32, epsilon="1"), 2)) == [None, None]
    assert isinstance(example("brappor", "1"), LayeredDevice)
