"""Batches whose reports need different numbers of coin words, held against devices that draw one by one."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tacit.core import draws
from tacit.core.compose import AllOf, OneOf, Questions
from tacit.device.base import Device
from tacit.device.families.levels import Tree
from tacit.device.families.views import Views
from tacit.device.kinds.unary import OUEDevice
from tacit.device.numbers.budget import Share
from tacit.device.numbers.coins import Coins, ReplayCoins
from tacit.errors import InvalidValue
from tacit.numeric.bit_flip import DBitFlip
from tacit.numeric.laplace import DiscreteLaplace
from tacit.numeric.mean import OneBit
from tacit.oracles.blocks import SS
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR, HRRSubspace
from tacit.oracles.histogram_encoding import SHE
from tacit.oracles.rappor import BasicRAPPOR
from tacit.oracles.sketch import CMS
from tacit.oracles.unary import OUE, RUE, SUE, THE


def one_of(*mechanisms: Device, weights: tuple[int, ...] = ()) -> OneOf:
    return OneOf(family=Questions(mechanisms=mechanisms, weights=weights))


SKETCH = CMS(size=5, epsilon="1", rows=2, width=4, key=7)
SEVERAL: dict[str, OneOf] = {
    "fixed": one_of(
        GRR(size=5, epsilon="1"), HRR(size=5, epsilon="1"), HRRSubspace(size=32, epsilon="1"), weights=(3, 1, 2)
    ),
    "numbers": one_of(
        OneBit(top=4, epsilon="1"),
        DiscreteLaplace(top=4, epsilon="1"),
        SHE(size=3, epsilon="1", grid=2, bound=1),
        DBitFlip(size=5, sampled=2, epsilon="1"),
    ),
    "lanes": one_of(GRR(size=5, epsilon="1"), OUE(size=70, epsilon="1"), HRR(size=9, epsilon="1")),
    "only_lanes": one_of(OUE(size=3, epsilon="1"), BasicRAPPOR(size=4, epsilon="1"), SKETCH),
    "unary": one_of(
        OUE(size=3, epsilon="1"),
        GRR(size=4, epsilon="1"),
        SUE(size=130, epsilon="2"),
        RUE(size=64, epsilon="1"),
        THE(size=9, epsilon="1"),
        weights=(2, 5, 1, 1, 1),
    ),
    "alike": one_of(GRR(size=5, epsilon="1"), GRR(size=9, epsilon="1")),
}
FAMILIES: dict[str, OneOf] = {
    "tree": OneOf(
        family=Tree(size=10, fanout=3, heights=(2, 1), mechanisms=(GRR(size=2, epsilon="1"), SS(size=4, epsilon="1")))
    ),
    "views": OneOf(
        family=Views(
            sizes=(2, 3),
            views=((0,), (1,), (0, 1)),
            mechanisms=(GRR(size=2, epsilon="1"), OUE(size=3, epsilon="1"), HRR(size=6, epsilon="1")),
        )
    ),
}
EVERY = SEVERAL | FAMILIES


def some_values(m: OneOf, n: int) -> npt.NDArray[Any]:
    rng = np.random.default_rng(5)
    family: Any = m.family
    if isinstance(family, Tree):
        return rng.integers(0, family.size, n)
    sizes = getattr(family, "sizes", None) or [m.member(i).value_count for i in range(len(family))]
    return np.stack([rng.integers(0, size, n) for size in sizes], axis=1)


def one_by_one(m: OneOf, values: npt.NDArray[Any], coins: Coins) -> bytes:
    return b"".join(m.privatize_one(value, coins) for value in values.tolist())


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("window", [1, 2, 7, 64, 1 << 18])
def test_a_batch_takes_the_words_of_the_device(name: str, window: int, monkeypatch: pytest.MonkeyPatch):
    """The same bytes, and the next word of the stream is the same, wherever the windows of words end."""
    monkeypatch.setattr(draws, "_WINDOW_WORDS", window)
    m = EVERY[name]
    values, batch_coins, coins = some_values(m, 120), ReplayCoins(b"sweep"), ReplayCoins(b"sweep")
    assert m.privatize(values, batch_coins).tobytes() == one_by_one(m, values, coins)
    assert batch_coins.word() == coins.word()


@pytest.mark.parametrize("name", ["fixed", "numbers", "alike"])
def test_members_of_fixed_cost_are_drawn_in_batches(name: str, monkeypatch: pytest.MonkeyPatch):
    m = SEVERAL[name]
    values = some_values(m, 500)
    expected = one_by_one(m, values, ReplayCoins(b"b"))
    for i in range(len(m.family)):
        monkeypatch.setattr(type(m.member(i)), "privatize_one", None)
    assert m.privatize(values, ReplayCoins(b"b")).tobytes() == expected


def test_only_members_of_varying_cost_are_drawn_one_by_one(monkeypatch: pytest.MonkeyPatch):
    """Where one of them is no unary kind, as a sketch is not."""
    m, calls = one_of(GRR(size=5, epsilon="1"), OUE(size=70, epsilon="1"), SKETCH), [0]
    values, draw = some_values(m, 300), OUEDevice.privatize_one

    def counted(self: OUEDevice, value: Any, coins: Coins) -> bytes:
        calls[0] += 1
        return draw(self, value, coins)

    monkeypatch.setattr(OUEDevice, "privatize_one", counted)
    drawn = m.privatize(values, ReplayCoins(b"c"))["member"]
    # A report that ends beyond its window is drawn again from the next one, so a few may count twice.
    assert np.count_nonzero(drawn == 1) <= calls[0] <= np.count_nonzero(drawn == 1) + 2


@pytest.mark.parametrize("name", ["lanes", "unary"])
@pytest.mark.parametrize("ones", [1, 9, 1 << 20])
def test_unary_members_are_drawn_by_the_kernel(name: str, ones: int, monkeypatch: pytest.MonkeyPatch):
    """No device draws any report, whatever number of true bits is looked up at a time."""
    monkeypatch.setattr(draws, "_MOST_ONES", ones)
    m = SEVERAL[name]
    values, coins, batch_coins = some_values(m, 200), ReplayCoins(b"u"), ReplayCoins(b"u")
    expected = one_by_one(m, values, coins)
    for i in range(len(m.family)):
        monkeypatch.setattr(type(m.member(i)), "privatize_one", None)
    assert m.privatize(values, batch_coins).tobytes() == expected
    assert batch_coins.word() == coins.word()


def test_all_of_takes_fixed_members_of_its_own_in_one_sweep():
    half = Share("2", "1/2")
    tree = Tree(size=4, fanout=2, heights=(1, 0), mechanisms=(GRR(size=2, epsilon=half), GRR(size=4, epsilon=half)))
    m = AllOf(epsilon="2", members=(OneOf(family=tree), GRR(size=3, epsilon=half)), state="members")
    assert m.coin_words == 3
    values, coins = np.array([[i % 4, i % 3] for i in range(60)]), ReplayCoins(b"a")
    assert m.privatize(values, ReplayCoins(b"a")).tobytes() == b"".join(m.privatize_one(v, coins) for v in values)


def test_a_row_of_the_wrong_shape_is_refused_whatever_its_length():
    for values in (np.zeros(3, np.int64), np.zeros(2, np.int64), np.zeros((4, 2), np.int64)):
        with pytest.raises(InvalidValue, match="list of 3 answers"):
            SEVERAL["fixed"].privatize(values, ReplayCoins(b"r"))
