"""Coins, exact numbers, budgets, canonical form and merging: everything the kinds stand on."""

import json
import subprocess
import sys
from decimal import Decimal, localcontext
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

import tacit
from tacit import kernels
from tacit.core.mechanism import Oracle
from tacit.device.numbers.budget import Amplified, Epsilon, Share, as_budget
from tacit.device.numbers.canonical import canonical, digest
from tacit.device.numbers.coins import Coins, ReplayCoins, ScriptedCoins, SystemCoins
from tacit.device.numbers.exact import WORD, exp_floor, log_upper, root_floor, tighten, uniform_spread
from tacit.errors import InvalidSpec
from tacit.simulate.coins import SimulationCoins
from tacit.testing.examples import example
from tacit.testing.laws import same_tally

KINDS = [kind.kind for kind in tacit.CATALOG if issubclass(kind, Oracle) and hasattr(example(kind.kind, "1"), "size")]
CANDIDATES = [0, 1, 2]


# Coins.


def replayed(seed: bytes, count: int) -> list[int]:
    """The definition: word i is the first 8 bytes, little-endian, of SHA-256(seed || u64le i)."""
    return [int.from_bytes(sha256(seed + i.to_bytes(8, "little")).digest()[:8], "little") for i in range(count)]


def test_replayed_coins_are_their_definition():
    for seed in (b"", b"seed", bytes(range(256))):
        coins = ReplayCoins(seed)
        assert [coins.word() for _ in range(20)] == replayed(seed, 20)


COINS = {"replay": lambda: ReplayCoins(b"x"), "simulation": lambda: SimulationCoins(5)}


@pytest.mark.parametrize("name", COINS)
@given(steps=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=12))
@examples(60)
def test_the_stream_does_not_depend_on_how_it_is_read(name: str, steps: list[tuple[int, int]]):
    coins, read = COINS[name](), b""
    for look, take in steps:
        ahead = bytes(coins.peek(look))
        assert bytes(coins.peek(look)) == ahead  # Looking consumes nothing.
        skipped = min(look, take)
        coins.skip(skipped)
        read += ahead[: 8 * skipped] + coins.words(take - skipped)
    assert read == COINS[name]().words(len(read) // 8)


def test_large_reads_of_simulation_coins_continue_the_stream():
    a, b = SimulationCoins(1), SimulationCoins(1)
    assert a.words(20_000) + a.words(3) == b.words(3) + b.words(20_000)
    assert SimulationCoins(2).words(4) != SimulationCoins(3).words(4)


def test_simulation_coins_are_not_the_numbers_of_a_population_with_the_same_seed():
    """Whoever draws values and coins from one seed must not get values that predict their noise."""
    assert SimulationCoins(31).words(4) != np.random.default_rng(31).bytes(32)


def test_system_coins_are_fresh():
    assert SystemCoins.secure and not ReplayCoins.secure and not SimulationCoins.secure
    with pytest.raises(TypeError):
        SystemCoins(7)  # pyright: ignore
    seen = {SystemCoins().word() for _ in range(50)} | {word for coins in [SystemCoins()] for word in batch(coins)}
    assert len(seen) == 50 + 20_000  # A repetition has probability below 2^-34.


def batch(coins: Coins) -> list[int]:
    return np.frombuffer(coins.words(20_000), "<u8").tolist()


FORK = """
import os, sys
from tacit.device.numbers.coins import SystemCoins
coins = SystemCoins()
for count in (1, 3, 9000):
    coins.peek(count)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, coins.words(3))
        os._exit(0)
    mine = coins.words(3)
    theirs = os.read(read, 24)
    os.waitpid(child, 0)
    assert len(theirs) == 24 and theirs != mine, count
    assert not {mine[i:i+8] for i in (0, 8, 16)} & {theirs[i:i+8] for i in (0, 8, 16)}
"""


def test_a_forked_child_has_coins_of_its_own():
    """Buffered words, of single reports and of batches, are never used twice; a fork needs a process of its own."""
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=600)


def test_scripted_coins_give_their_words_and_no_more():
    coins = ScriptedCoins([5, WORD - 1])
    assert (coins.word(), coins.word()) == (5, WORD - 1)
    with pytest.raises(IndexError):
        coins.word()


def test_uniform_and_below_at_their_ends():
    assert [ScriptedCoins([w]).uniform(3) for w in (0, WORD // 3, WORD // 3 + 1, WORD - 1)] == [0, 0, 1, 2]
    assert [ScriptedCoins([w]).below(7) for w in (0, 6, 7, WORD - 1)] == [True, True, False, False]
    assert ScriptedCoins([0]).below(0) is False


@pytest.mark.parametrize(("size", "epsilon"), [(2, "0.001"), (5, "1"), (5, "32"), (1000, "0.3")])
@pytest.mark.parametrize("value", [0, 1, -1])
def test_direct_encoding_along_its_thresholds(size: int, epsilon: str, value: int):
    """u < (d-1) low gives the other value number u // low, else the truth; low = ceil(2^128/(O + (d-1) 2^64))."""
    mechanism, held = tacit.GRR(size=size, epsilon=epsilon), value % size
    low = -(-(WORD**2) // (mechanism.odds + (size - 1) * WORD))

    def answer(word: int) -> int:
        one = int.from_bytes(mechanism.privatize_one(held, ScriptedCoins([word])), "little")
        assert int(mechanism.privatize([held], ScriptedCoins([word]))[0]) == one
        return one

    others = [other for other in range(size) if other != held]
    for place in {0, 1, size // 2, size - 2} & set(range(size - 1)):
        assert answer(place * low) == answer(place * low + low - 1) == others[place]
    assert answer((size - 1) * low - 1) == others[-1]
    assert answer((size - 1) * low) == answer(WORD - 1) == held
    assert mechanism.q == Fraction(low, WORD)
    assert mechanism.p == Fraction(WORD - (size - 1) * low, WORD)


def lanes(draws: list[int]) -> list[int]:
    """64 words whose lane i spells the number draws[i] from its most significant bit on."""
    return [sum((u >> j & 1) << lane for lane, u in enumerate(draws)) for j in range(63, -1, -1)]


@pytest.mark.parametrize("epsilon", ["0.001", "1", "16"])
def test_optimised_bits_along_their_thresholds(epsilon: str):
    """A bit is set if and only if its word is below its threshold: 2^63 at the truth, t0 elsewhere."""
    mechanism = tacit.OUE(size=3, epsilon=epsilon)
    one, zero = 1 << 63, -(-(WORD**2) // (mechanism.odds + WORD))
    assert (mechanism.p, mechanism.q) == (Fraction(one, WORD), Fraction(zero, WORD))
    below, at = [one - 1, zero - 1, zero - 1], [one, zero, zero]
    cases = {tuple(below): 0b111, tuple(at): 0, (one, zero - 1, zero): 0b010, (0, WORD - 1, zero + 1): 0b001}
    for draws, bits in cases.items():
        words = lanes(list(draws))
        assert mechanism.privatize_one(0, ScriptedCoins(words)) == bytes([bits])
    # The batch may look ahead, so it gets a stream that goes on.
    assert mechanism.privatize([0], ScriptedCoins(lanes(below) + [0] * 1000)).tolist() == [[0b111]]
    assert mechanism.privatize([0], ScriptedCoins(lanes(at) + [0] * 1000)).tolist() == [[0]]


def test_drawing_stops_when_every_lane_is_decided():
    """Lane 0 holds the truth: the first round shows it below 2^63. Lane 1 follows q = 0.010... for two rounds."""
    mechanism = tacit.OUE(size=2, epsilon="1")
    assert int(mechanism.q * WORD) >> 61 == 0b010
    coins = ScriptedCoins([0b00, 0b11, 0b11])
    assert mechanism.privatize_one(0, coins) == bytes([0b01])
    with pytest.raises(IndexError):
        coins.word()  # All three words were used, and no fourth was asked for.


# Exact numbers.


def decimal_exp(x: Fraction) -> int:
    """floor(e^x 2^64) by decimal arithmetic with 100 digits."""
    with localcontext() as context:
        context.prec = 100
        value = (Decimal(x.numerator) / Decimal(x.denominator)).exp() * WORD
        return int(value)


@given(st.integers(0, 64 * 10**18))
@examples(400)
def test_odds_are_the_floor_of_the_exponential(units: int):
    x = Fraction(units, 10**18)
    assert exp_floor(x) == decimal_exp(x)


def test_odds_at_round_numbers():
    assert exp_floor(Fraction(0)) == WORD
    for x in (Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(2), Fraction(4), Fraction(31), Fraction(32)):
        assert exp_floor(x) == decimal_exp(x)


@given(st.integers(0, 1 << 112), st.integers(1, 12))
@examples(300)
def test_roots_are_rounded_down(extra: int, degree: int):
    odds = WORD + extra
    root = root_floor(odds, degree)
    target = odds << 64 * (degree - 1)
    assert root**degree <= target < (root + 1) ** degree


@given(st.integers(10**15, 32 * 10**18))
@examples(300)
def test_the_realised_epsilon_never_exceeds_the_declared(units: int):
    """ln(odds), rounded up, stays at or below every declared number of up to 18 decimals, and hardly below it."""
    declared = Decimal(units).scaleb(-18)
    realised = log_upper(Fraction(exp_floor(Fraction(declared)), WORD))
    assert declared - Decimal("1e-18") < realised <= declared


@given(st.integers(1, 1 << 80), st.integers(1, 1 << 80))
@examples(200)
def test_logarithms_are_rounded_up(a: int, b: int):
    found = log_upper(Fraction(a, b))
    with localcontext() as context:
        context.prec = 120
        exact = (Decimal(a) / Decimal(b)).ln()
        assert exact - Decimal("1e-90") <= found <= exact + Decimal("1.0000001e-30")


@given(st.integers(2, 1 << 40))
@examples(200)
def test_the_unevenness_of_uniform_draws(m: int):
    """Outcomes of (word m) >> 64 cover ceil or floor of 2^64/m words."""
    if WORD % m:
        assert uniform_spread(m) == Fraction(WORD // m + 1, WORD // m)
    else:
        assert uniform_spread(m) == 1
    tightened = tighten(exp_floor(Fraction(1)), uniform_spread(m))
    assert Fraction(tightened, WORD) * uniform_spread(m) <= Fraction(exp_floor(Fraction(1)), WORD)


# Budgets.


def test_epsilon_text_is_canonical():
    for text in ("1", "1.0", "01.000", " 1.00 "):
        assert Epsilon(text) == Epsilon("1") and Epsilon(text).to_spec() == "1"
    assert Epsilon("0.0010").text == "0.001"
    assert Epsilon("1.098612288668109691").declared == Fraction("1.098612288668109691")


@given(st.integers(1, 40), st.integers(1, 40))
@examples(100)
def test_shares_never_add_up_to_more_than_the_whole(part: int, rest: int):
    whole = Epsilon("2.5")
    a, b = Share("2.5", f"{part}/{part + rest}"), Share("2.5", f"{rest}/{part + rest}")
    assert a.declared + b.declared == whole.declared
    assert Fraction(a.odds, WORD) * Fraction(b.odds, WORD) <= Fraction(decimal_exp(Fraction("2.5")) + 1, WORD)
    assert a.odds == decimal_exp(a.declared)
    assert as_budget(a.to_spec()) == a
    assert a == Share(whole, f"{2 * part}/{2 * (part + rest)}")  # Fractions are reduced.


def test_a_whole_share_is_the_whole():
    assert Share("1", "1/1").odds == Epsilon("1").odds
    assert tacit.GRR(size=4, epsilon=Share("1", "1/2")).realised_epsilon() <= 0.5
    spec = tacit.GRR(size=4, epsilon=Share("1", "1/2")).spec()
    assert spec["epsilon"] == {"of": "1", "share": "1/2"}
    assert tacit.parse(spec).spec() == spec


@pytest.mark.parametrize("sampled", [1, 2, 7, 1 << 20])
def test_amplified_odds(sampled: int):
    """e^eps' = l (E - 1) + 1, never above it."""
    amplified = Amplified("1", sampled)
    exact = sampled * (decimal_exp(Fraction(1)) - WORD) + WORD
    assert exact <= amplified.odds <= exact + sampled
    assert Fraction(amplified.odds, WORD) <= sampled * (Fraction(decimal_exp(Fraction(1)) + 1, WORD) - 1) + 1
    assert amplified.declared == 1
    assert as_budget(amplified.to_spec()) == amplified


# Canonical form.


def test_canonical_bytes():
    value = {"b": [1, True, None, "x"], "a": {"z_": -5, "_": 'é€😀\u2028\x00\n"\\'}}
    found = canonical(value)
    assert found == ('{"a":{"_":"é€😀\u2028\\u0000\\n\\"\\\\","z_":-5},"b":[1,true,null,"x"]}'.encode())
    assert digest(value) == sha256(found).hexdigest()
    assert json.loads(found) == value


def test_order_and_container_do_not_matter():
    assert canonical({"a": 1, "b": (1, 2)}) == canonical({"b": [1, 2], "a": 1})


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        {"a": [0, 0.5]},
        float("nan"),
        1 << 53,
        -(1 << 53),
        "\ud800",
        "e\u0301",  # not in normal form NFC
        {"A": 1},
        {"a1": 1},
        {"": 1},
        {1: 1},
        {"é": 1},
        b"bytes",
        {1, 2},
        range(3),
        np.int64(3),
        [{"a": {"b": 2.5}}],
    ],
    ids=repr,
)
def test_values_without_a_canonical_form(value: Any):
    with pytest.raises(InvalidSpec, match=r"\$"):
        canonical(value)


def test_the_place_of_the_mistake_is_named():
    with pytest.raises(InvalidSpec, match=r"\$\.a\[1\]\.b"):
        canonical({"a": [0, {"b": 0.5}]})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text("abcéß日😀\u2028\t\x00"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abz_", min_size=1), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
@examples(200)
def test_the_canonical_form_is_a_fixed_point(value: Any):
    once = canonical(value)
    assert canonical(json.loads(once)) == once


# Merging.


def tally_parts(mechanism: Any, reports: npt.NDArray[Any], cuts: list[int], order: list[int]) -> Any:
    edges = [0, *sorted(cuts), len(reports)]
    parts = [mechanism.tally(reports[a:b]) for a, b in pairwise(edges)]
    shuffled = [parts[i] for i in order]
    total = shuffled[0]
    for part in shuffled[1:]:
        total = total + part
    return total


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@examples(15)
def test_merging_shards_equals_one_pass(kind: str, data: st.DataObject):
    """Any split, empty parts included, in any order."""
    mechanism: Any = example(kind, "1")
    values = data.draw(st.lists(st.integers(0, mechanism.size - 1), max_size=30))
    reports = mechanism.privatize(np.array(values, np.int64), ReplayCoins(b"shards"))
    cuts = data.draw(st.lists(st.integers(0, len(values)), max_size=5))
    order = data.draw(st.permutations(range(len(cuts) + 1)))
    whole, merged = mechanism.tally(reports), tally_parts(mechanism, reports, cuts, order)
    assert same_tally(whole, merged)
    a, b = mechanism.estimate(whole, CANDIDATES), mechanism.estimate(merged, CANDIDATES)
    assert np.array_equal(a.value, b.value) and np.array_equal(a.variance, b.variance)


@given(data=st.data())
@examples(25)
def test_merging_logs_and_weights(data: st.DataObject):
    mechanism = tacit.OLH(size=1000, epsilon="1", state="log")
    n = data.draw(st.integers(1, 30))
    reports = mechanism.privatize(np.arange(n), ReplayCoins(b"log"))
    weights = np.array(data.draw(st.lists(st.integers(1, 99), min_size=n, max_size=n)))
    cut = data.draw(st.integers(0, n))
    first, second = (mechanism.tally(reports[part], weights[part]) for part in (slice(cut), slice(cut, None)))
    whole = mechanism.tally(reports, weights)
    for merged in (first + second, second + first):
        assert (merged.n, merged.is_weighted) == (n, True)
        a, b = mechanism.estimate(whole, [0, 7, 999]), mechanism.estimate(merged, [0, 7, 999])
        assert np.array_equal(a.value, b.value) and np.array_equal(a.variance, b.variance)
    folded = tacit.OLH(size=1000, epsilon="1", state="counts")
    counted = folded.estimate(folded.tally(reports, weights), [0, 7, 999])
    assert np.array_equal(counted.value, mechanism.estimate(whole, [0, 7, 999]).value)


@pytest.mark.parametrize("count", [1, 512, 513, 8192, 8193, 100_000])
def test_the_kernel_and_the_standard_library_expand_the_same_keys(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are those of the keys that the operating system gave, whoever expands them."""
    drawn: list[int] = []

    def keys(size: int) -> bytes:
        drawn.append(size)
        return np.random.default_rng(size).bytes(size)

    monkeypatch.setattr("tacit.device.numbers.coins.os.urandom", keys)
    plain, fast = SystemCoins(), SystemCoins()
    assert plain.words(count) == fast.words(count, kernels.expand_keys)
    assert bytes(plain.peek(3)) == bytes(fast.peek(3, kernels.expand_keys))
    # A key of 32 bytes for every 64 KiB, the same for both; small draws are the operating system's own words.
    assert drawn[0] == (-(-8 * count // (1 << 16)) * 32 if count > 512 else 4096 if count > 8 else 512)
    assert ReplayCoins(b"x").words(9, kernels.expand_keys) == ReplayCoins(b"x").words(9)
