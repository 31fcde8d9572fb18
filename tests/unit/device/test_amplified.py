"""An amplified epsilon is good inside the padding and sampling that it was made for, and cannot be had elsewhere."""

from dataclasses import replace
from typing import Any

import pytest

from tacit.catalog import parse
from tacit.core.compose import AllOf, OneOf, Questions
from tacit.device.catalog import device_of
from tacit.device.families.compose import AllOfDevice, OneOfDevice
from tacit.device.families.family import Family
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.memo import MemoizedDevice
from tacit.device.kinds.rounded import RoundedDevice
from tacit.device.kinds.sets import PaddedDevice, SampledGRRDevice, SetSizeDevice
from tacit.device.numbers.budget import Amplified, Share
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec
from tacit.numeric.memo import Memoized
from tacit.numeric.rounded import Rounded
from tacit.oracles.sets import Padded, SampledGRR, SetSize

PADDED = Padded.amplified(epsilon="1", size=4, length=2)
INNER = PADDED.inner


@pytest.mark.parametrize("kind", [SampledGRR, SampledGRRDevice])
def test_randomised_response_at_an_amplified_epsilon_is_not_built_alone(kind: Any):
    with pytest.raises(InvalidSpec, match="only inside padding and sampling"):
        kind(size=3, epsilon=Amplified("1", 1000))
    with pytest.raises(InvalidSpec, match="only inside padding and sampling"):
        kind.from_spec({"kind": "grr", "size": 3, "epsilon": {"of": "1", "sampled": 1000}})
    with pytest.raises(InvalidSpec, match="only inside padding and sampling"):
        kind(size=6, epsilon=Amplified("1", 2), padding=PADDED)  # It has its inner mechanism already.
    with pytest.raises(InvalidSpec, match="only inside padding and sampling"):
        replace(INNER, size=3)


ELSEWHERE = {
    "set_size": lambda inner: SetSize(epsilon="1", size=5, most=5, inner=inner),
    "set_size device": lambda inner: SetSizeDevice(epsilon="1", size=5, most=5, inner=inner),
    "memo": lambda inner: Memoized(inner=inner, most_values=2, epsilon="8"),
    "memo device": lambda inner: MemoizedDevice(inner=inner, most_values=2, epsilon="8"),
    "rounded": lambda inner: Rounded(top=2, inner=inner, epsilon="1"),
    "rounded device": lambda inner: RoundedDevice(top=2, inner=inner, epsilon="1"),
    "questions": lambda inner: OneOf(family=Questions(mechanisms=(inner,))),
    "all_of": lambda inner: AllOf(epsilon="1", members=(inner,)),
    "all_of device": lambda inner: AllOfDevice(epsilon="1", members=(inner,), state="log"),
    "longer": lambda inner: Padded(epsilon="1", size=3, length=3, inner=inner),
    "shorter": lambda inner: PaddedDevice(epsilon="1", size=5, length=1, inner=inner),
    "lower epsilon": lambda inner: Padded(epsilon="0.5", size=4, length=2, inner=inner),
}


@pytest.mark.parametrize("make", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_the_inner_mechanism_is_refused_everywhere_else(make: Any):
    """Taken out of its padding it is still a device; as its spec it is none."""
    for inner in (INNER, INNER.spec()):
        with pytest.raises(InvalidSpec):
            make(inner)


def test_members_of_any_family_are_looked_at():
    class Bare(Family):
        """A family that checks nothing."""

        kind, weights = "bare", (1,)

        def __len__(self) -> int:
            return 1

        def view(self, i: int) -> Any:
            return lambda value: value

        def mechanism(self, i: int) -> Any:
            return INNER

        def answer_sizes(self) -> tuple[int, ...]:
            return (5,)

        def describe(self, *, spelled: bool = False, several: bool = False) -> str:
            return ""

        def spec(self) -> dict[str, Any]:
            return {"kind": "bare"}

    with pytest.raises(InvalidSpec, match="only inside padding and sampling"):
        OneOfDevice(epsilon="1", family=Bare(), payload_bytes=1)


def test_documents_cannot_carry_one_elsewhere():
    spec = INNER.spec()
    documents: list[dict[str, Any]] = [
        spec,
        {"kind": "set_size", "epsilon": "1", "size": 5, "candidates": [], "most": 5, "inner": spec},
        {"kind": "memo", "epsilon": "8", "inner": spec, "most_values": 2, "step": 0},
        {"kind": "rounded", "epsilon": "1", "top": 2, "inner": spec},
        {"kind": "all_of", "epsilon": "1", "members": [spec], "state": "log"},
        PADDED.spec() | {"length": 1, "size": 5},
    ]
    for document in documents:
        for door in (device_of, parse):
            with pytest.raises(InvalidSpec):
                door(document)
    assert parse(PADDED.spec()) == PADDED


def test_alone_it_says_what_it_really_spends():
    assert 1.4 < INNER.realised_epsilon() < 1.5
    assert not INNER.holds()
    ((_, realised, bound),) = INNER.guarantees()
    assert realised > bound
    assert PADDED.holds() and PADDED.realised_epsilon() <= 1
    assert GRRDevice(size=6, epsilon="1").holds()


def test_the_proof_is_kept_where_padding_is_changed_or_rebuilt():
    assert replace(PADDED, epsilon="2").holds()  # More is declared than is spent.
    with pytest.raises(InvalidSpec, match="must be for"):
        replace(PADDED, length=3)
    assert Padded(epsilon="1", size=4, length=2, inner=INNER) == PADDED
    assert Padded(epsilon="1", size=4, length=2, inner=INNER.spec()) == PADDED
    device = PaddedDevice.amplified(epsilon="1", size=4, length=2)
    assert device.spec() == PADDED.spec()
    assert Padded(epsilon="1", size=4, length=2, inner=device.inner) == PADDED
    assert len(PADDED.privatize_one((1, 2), ReplayCoins(b"x"))) == 1


def test_shares_spend_what_they_declare():
    """A share needs no proof: whoever holds one spends that part, with or without the others."""
    half = Share("2", "1/2")
    alone = GRRDevice(size=4, epsilon=half)
    assert alone.holds() and alone.realised_epsilon() <= 1 == float(half.declared)
    plain = Padded.amplified(epsilon=half, size=4, length=2)
    assert plain.inner.budget == half and plain.holds() and plain.inner.holds()
    with pytest.raises(InvalidSpec, match="add up"):
        AllOfDevice(epsilon="2", members=(alone,) * 3, state="log")
