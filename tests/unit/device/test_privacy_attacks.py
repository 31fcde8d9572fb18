"""Attempts to make a device tell more than its spec declares: budgets, coins, error messages, odd parameters."""

import copy
import os
import pickle
import sys
import threading
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from tacit import kernels
from tacit.catalog import CATALOG
from tacit.core.compose import AllOf, OneOf, Questions
from tacit.device.catalog import KINDS, device_of
from tacit.device.domains.domain import Bits, Booleans, Categories, Ordered, Strings
from tacit.device.domains.product import Product
from tacit.device.domains.reals import Buckets, Integers
from tacit.device.families.compose import AllOfDevice, OneOfDevice
from tacit.device.kinds.grr import GRRDevice
from tacit.device.kinds.laplace import DiscreteLaplaceDevice, SHEDevice
from tacit.device.kinds.local_hash import FLHDevice, OLHDevice
from tacit.device.kinds.mean import OneBitDevice
from tacit.device.kinds.memo import MemoCoins, MemoizedDevice, Memory
from tacit.device.kinds.unary import OUEDevice
from tacit.device.numbers.budget import Amplified, Epsilon, Share, as_budget
from tacit.device.numbers.coins import Coins, ReplayCoins, ScriptedCoins, SystemCoins
from tacit.device.numbers.exact import WORD, exp_floor, root_floor
from tacit.errors import InvalidSpec, InvalidValue
from tacit.oracles.grr import GRR
from tacit.oracles.local_hash import BLH, OLH
from tacit.oracles.rappor import RAPPOR
from tacit.oracles.sketch import CMS, HCMS
from tacit.oracles.unary import OUE, RUE, SUE
from tacit.simulate.coins import SimulationCoins
from tacit.testing.examples import example

LEAST = Share("0.001", "1/999999999")
"""The smallest budget that can be written, an epsilon of 1e-12."""

PLAIN = [kind.kind for kind in CATALOG if kind.kind not in ("one_of", "all_of", "memo")]


def two_sided(odds: Fraction) -> Fraction:
    """A likelihood ratio whichever of the two outcomes is the likelier."""
    return max(odds, 1 / odds)


# Budgets.

ROUNDED = [
    (GRRDevice, {"size": 16_777_213}, Share("0.001", "1/1000000")),
    (GRRDevice, {"size": 1_000_003}, LEAST),
    (GRRDevice, {"size": 70_001}, LEAST),
    (OLHDevice, {"size": 1 << 20, "buckets": 50_000}, LEAST),
    (FLHDevice, {"size": 1 << 20, "buckets": 50_000, "pool": 4, "key": 7}, LEAST),
]


@pytest.mark.parametrize(("kind", "fields", "budget"), ROUNDED)
def test_rounding_up_the_untrue_cells_never_makes_the_true_one_rare(kind: Any, fields: Any, budget: Any):
    """With many cells and a tiny budget, the true value could keep fewer words than each of the others."""
    try:
        m = kind(epsilon=budget, **fields)
    except InvalidSpec:
        return
    assert m.realised_odds() >= 1, "a likelihood ratio below one is the other one upside down"
    assert two_sided(m.realised_odds()) <= Fraction(m.odds, WORD)


@pytest.mark.parametrize("budget", ["0.001", "1", "32", Share("1", "1/1000000"), LEAST], ids=str)
@pytest.mark.parametrize("kind", PLAIN)
def test_tiny_instances_hold_both_ways_at_extreme_budgets(kind: str, budget: Any):
    try:
        m = example(kind, budget)
    except InvalidSpec:
        return
    assert 1 <= m.realised_odds() <= Fraction(m.odds, WORD)


def test_an_amplified_epsilon_is_not_accepted_on_its_own():
    """It holds only for randomised response inside padding and sampling; alone it spends far more than it says."""
    too_much: dict[str, float] = {}
    for kind in PLAIN:
        try:
            m = example(kind, Amplified("1", 1000))
        except InvalidSpec:
            continue
        if m.realised_epsilon() > 1:
            too_much[kind] = m.realised_epsilon()
    assert too_much == {}


AMPLIFIED = {"of": "1", "sampled": 1000}


def test_an_amplified_spec_from_a_document_does_not_exceed_what_it_declares():
    spec = {"kind": "grr", "epsilon": AMPLIFIED, "size": 3}
    try:
        m = device_of(spec)
    except InvalidSpec:
        return
    assert m.realised_epsilon() <= float(m.budget.declared)


@pytest.mark.parametrize(
    "fields",
    [
        {"inner": GRRDevice(size=3, epsilon="7"), "epsilon": Amplified("1", 1000)},
        {"inner": OUEDevice(size=3, epsilon="7"), "epsilon": Amplified("1", 1000)},
    ],
)
def test_memo_is_not_a_way_around_an_amplified_epsilon(fields: Any):
    with pytest.raises(InvalidSpec):
        MemoizedDevice(most_values=2, **fields)


def test_composition_refuses_amplified_members():
    budget = Amplified("1", 1000)
    with pytest.raises(InvalidSpec):
        GRRDevice(size=3, epsilon=budget) and Questions(mechanisms=(GRRDevice(size=3, epsilon=budget),))
    with pytest.raises(InvalidSpec):
        AllOfDevice(epsilon="32", members=(GRRDevice(size=3, epsilon=budget),), state="log")


@pytest.mark.parametrize("budget", [Share("1", "1/2"), Epsilon("1")], ids=str)
def test_members_cannot_spend_more_than_the_whole(budget: Any):
    members = tuple(GRRDevice(size=3, epsilon=budget) for _ in range(3))
    with pytest.raises(InvalidSpec, match="add up"):
        AllOfDevice(epsilon="1", members=members, state="log")
    with pytest.raises(InvalidSpec, match="exceeds"):
        OneOfDevice(epsilon="0.25", family=Questions(mechanisms=members), payload_bytes=1)


@pytest.mark.parametrize("field", ["odds", "low", "thresholds", "p", "include", "secure"])
@pytest.mark.parametrize("kind", ["grr", "oue", "ss", "olh"])
def test_a_document_cannot_state_derived_numbers(kind: str, field: str):
    with pytest.raises(InvalidSpec, match="unknown field"):
        device_of(example(kind, "1").spec() | {field: 1})


ODD_TEXTS = [
    "\u0661",
    "\uff11",
    "1\u0660",
    "\u00b9",
    "\u2460",
    "1_0",
    "1e1",
    "\u00bd",
    "1\u00a0.5",
    "1,5",
    "Infinity",
    "+1",
]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_digits_are_ascii(text: str):
    for budget in (text, {"of": text, "share": "1/2"}, {"of": "1", "share": f"1/{text}"}, {"of": text, "sampled": 2}):
        with pytest.raises(InvalidSpec):
            as_budget(budget)
    with pytest.raises(InvalidSpec):
        GRRDevice(size=text, epsilon="1")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("text", [" 1", "1 ", "\u20031", "1\n", "01", "1.0", "1.50"])
def test_a_document_states_the_canonical_epsilon(text: str):
    with pytest.raises(InvalidSpec):
        device_of({"kind": "grr", "epsilon": text, "size": 3})


def test_powers_and_roots_are_never_rounded_up():
    for x in ("0.000000000001", "0.001", "0.5", "1", "2", "7.999999999999999999", "8", "31.999999999999999999", "32"):
        with localcontext() as context:
            context.prec = 80
            exact = Decimal(x).exp() * WORD
        assert 0 <= exact - exp_floor(Fraction(x)) < 1
    for odds, degree in product((WORD + 1, 3 * WORD, exp_floor(Fraction(32))), (1, 2, 3, 7, 32)):
        root, target = root_floor(odds, degree), odds << 64 * (degree - 1)
        assert root**degree <= target < (root + 1) ** degree


@pytest.mark.slow_cases("Share", "0.001")
@pytest.mark.parametrize("budget", ["0.001", "1", "8", "32", LEAST], ids=str)
def test_laplace_tables_by_brute_force(budget: Any):
    for top, bound in product((1, 2, 3, 5, 17), (0, 1, 2, 9)):
        try:
            m = DiscreteLaplaceDevice(top=top, bound=bound, epsilon=budget)
        except InvalidSpec:
            continue
        rows: list[list[int]] = []
        for value in range(top + 1):
            sums = [0, *m.cumulative[top - value : top - value + m.outputs - 1], WORD]
            rows.append([b - a for a, b in pairwise(sums)])
        columns = list(zip(*rows, strict=True))
        assert all(min(column) > 0 for column in columns)
        worst = max(Fraction(max(column), min(column)) for column in columns)
        assert worst == m.realised_odds() <= Fraction(m.odds, WORD)
    for grid, bound in product((2, 4, 256), (0, 1, 40)):
        she = SHEDevice(size=2, epsilon=budget, grid=grid, bound=bound)
        assert sum(she.cells) == WORD
        assert min(she.cells) >= 1
        assert she.holds()


def test_a_bit_that_says_nothing_is_refused():
    """A slope of no words gives reports that do not depend on the number, and estimates that divide by zero."""
    try:
        m = OneBitDevice(top=(1 << 32) - 1, epsilon=LEAST)
    except InvalidSpec:
        return
    assert m.slope > 0


@pytest.mark.parametrize("kind", [SUE, RUE])
def test_log_prob_is_exact_to_twelve_digits_at_the_largest_epsilon(kind: Any):
    m = kind(size=3, epsilon="32")
    clear = np.zeros((1, 1), np.uint8)
    exact = (1 - m.p) * (1 - m.q) ** 2
    assert np.exp(m.log_prob(clear, 0))[0] == pytest.approx(float(exact), rel=1e-12, abs=0)


# Coins.


def drawn_by_threads(coins: Coins, threads: int, each: int) -> "list[bytes]":
    found: list[list[bytes]] = [[] for _ in range(threads)]

    def draw(mine: "list[bytes]") -> None:
        mine.extend(coins.words(1) for _ in range(each))

    workers = [threading.Thread(target=draw, args=(mine,)) for mine in found]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        sys.setswitchinterval(interval)
    return [word for mine in found for word in mine]


def test_threads_that_share_system_coins_never_see_a_word_twice_or_a_short_one():
    """Two respondents with the same noise, or a word of no bytes, which is read as 0, would void the guarantee."""
    coins = SystemCoins()
    for _ in range(5):
        words = drawn_by_threads(coins, 4, 10_000)
        assert all(len(word) == 8 for word in words)
        assert len(set(words)) == len(words)


def test_threads_that_share_system_coins_never_make_the_same_report():
    """The kernel reads ahead and gives up the interpreter lock before it says how many words it used."""
    m, coins = OUE(size=512, epsilon="1"), SystemCoins()
    found: list[list[bytes]] = [[], []]

    def report(mine: "list[bytes]") -> None:
        for _ in range(40):
            mine.extend(row.tobytes() for row in m.privatize(np.full(200, 7), coins))

    workers = [threading.Thread(target=report, args=(mine,)) for mine in found]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    reports = [row for mine in found for row in mine]
    assert len(set(reports)) == len(reports)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_a_copy_of_system_coins_never_repeats_their_words(duplicate: Any):
    coins = SystemCoins()
    coins.word()
    try:
        other = duplicate(coins)
    except TypeError:
        return
    assert other.words(8) != coins.words(8)


def test_a_forked_child_draws_words_of_its_own():
    coins = SystemCoins()
    coins.word()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, coins.words(4))
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(read, 32)
    os.close(read)
    os.close(write)
    assert len(theirs) == 32
    assert theirs != coins.words(4)


def test_words_that_were_looked_at_are_consumed_once():
    coins = ReplayCoins(b"peek")
    seen = bytes(coins.peek(3))
    coins.skip(2)
    assert coins.words(1) == seen[16:]
    assert bytes(coins.peek(1)) not in (seen[:8], seen[8:16], seen[16:])


def test_a_refused_value_takes_nothing_back():
    """All answers are checked before a word is drawn, so that a refusal says nothing about the coins."""
    m = AllOfDevice(epsilon="2", members=(GRRDevice(size=3, epsilon="1"),) * 2, state="log")
    coins, same = ReplayCoins(b"refused"), ReplayCoins(b"refused")
    with pytest.raises(InvalidValue):
        m.privatize_one((1, 5), coins)
    assert coins.word() == same.word()


def test_only_coins_that_nobody_can_seed_are_secure():
    assert SystemCoins().secure
    assert not any(c.secure for c in (ReplayCoins(b""), ScriptedCoins([]), SimulationCoins(1)))
    with pytest.raises(TypeError):
        SystemCoins(b"seed")  # pyright: ignore[reportCallIssue]


def test_words_used_and_report_together_can_show_the_value_of_a_unary_report():
    """Why LIMITATIONS must exclude observers of the time a report takes.

    How many words OUE takes does not depend on the value. But lanes decided by the first word show the top bit
    of their threshold, 1 for the true lane and 0 for others: a report that took one word is the value itself.
    """
    m = OUEDevice(size=4, epsilon="1")
    for value in range(4):
        after_one_word: set[bytes] = set()
        for word in range(16):
            try:
                after_one_word.add(m.privatize_one(value, ScriptedCoins([word])))
            except IndexError:
                continue
        assert after_one_word == {bytes([1 << value])}


# Memory.


def test_one_memory_does_not_serve_two_mechanisms():
    """Beyond the cap the last report is repeated: it must not be the report of another question."""
    memory = Memory(bytes(range(32)), "week")
    one = MemoizedDevice(inner=GRRDevice(size=300, epsilon="1"), most_values=1)
    two = MemoizedDevice(inner=GRRDevice(size=4, epsilon="1"), most_values=1)
    first = one.report(250, memory)
    try:
        second = two.report(1, memory)
    except InvalidSpec:
        return
    assert len(second) == 1
    assert second != first


def test_keys_of_memoised_coins_cannot_be_confused():
    """Lengths are part of the message, so that no two (campaign, parameters, value) share a stream."""
    secret = bytes(range(32))
    parts = [("a", b"bc", b"d"), ("ab", b"c", b"d"), ("a", b"b", b"cd"), ("", b"abc", b"d"), ("abcd", b"", b"")]
    assert len({MemoCoins(secret, *part).words(4) for part in parts}) == len(parts)


def test_neither_memory_nor_coins_show_the_secret():
    secret = b"SECRET-secret-SECRET-secret-SECR"
    memory = Memory(secret, "week")
    for shown in (repr(memory), str(memory), repr(memory.coins(b"", b"1"))):
        assert "SECRET" not in shown
        assert secret.hex() not in shown


# Values.


class Loud:
    """An answer that would be seen in any message that shows it."""

    def __repr__(self) -> str:
        return "SECRET-77"


class LoudIndex(Loud):
    """An answer that refuses to be a number, and says why."""

    def __index__(self) -> int:
        raise ValueError("SECRET-77")


NASTY: list[Any] = [
    "SECRET-77",
    b"SECRET-77",
    7777777777777777777777777,
    -7777777,
    77.5,
    float("nan"),
    Decimal("77.25"),
    ["SECRET-77"],
    {"SECRET-77": "SECRET-77"},
    {"SECRET-77"},
    None,
    Loud(),
    LoudIndex(),
    np.array([77, 77]),
    np.array(["SECRET-77"]),
    np.float64(77.5),
    "\ud800SECRET-77",
    range(77, 79),
    (1, [2]),
    77j,
]

DOMAINS = [
    Categories("colour", ("a", "b")),
    Ordered("mood", ("a", "b")),
    Booleans("smoker"),
    Bits("flags", 2),
    Strings("word", key="k", max_bytes=4),
    Integers("age", 0, 5),
    Buckets("income", ("0", "1")),
    Product((Booleans("smoker"), Integers("age", 0, 5))),
]


def everything_said(error: BaseException) -> str:
    """The texts of an error and of every other that hangs on it."""
    texts: list[str] = []
    link: BaseException | None = error
    while link is not None:
        texts += [str(link), repr(link)]
        link = link.__cause__ or link.__context__
    return " ".join(texts)


def refuses_silently(run: Any, value: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        run(value)
    said = everything_said(caught.value)
    assert "SECRET" not in said
    assert "77" not in said


@pytest.mark.parametrize("value", NASTY, ids=lambda v: type(v).__name__)
def test_a_device_refuses_without_an_echo(value: Any):
    for kind in KINDS:
        m = example(kind.kind, "1")
        refuses_silently(lambda v, m=m: m.privatize_one(v, ReplayCoins(b"echo")), value)


@pytest.mark.parametrize("value", NASTY, ids=lambda v: type(v).__name__)
def test_a_batch_refuses_without_an_echo(value: Any):
    for kind in KINDS:
        m = example(kind.kind, "1")
        refuses_silently(lambda v, m=m: m.privatize([v], ReplayCoins(b"echo")), value)


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda d: d.kind)
def test_a_domain_refuses_without_an_echo(domain: Any):
    for value in NASTY:
        refuses_silently(domain.encode, value)
        refuses_silently(domain.encode, [value, value])


def test_whether_a_report_is_made_does_not_depend_on_the_member_drawn():
    """If only the drawn answer were checked, a missing answer would show in which members ever report."""
    family = Questions(mechanisms=(GRRDevice(size=3, epsilon="1"),) * 2)
    m = OneOfDevice(family=family, payload_bytes=1)
    for word in (0, WORD - 1):
        with pytest.raises(InvalidValue):
            m.privatize_one((1, None), ScriptedCoins([word, WORD - 1]))


def test_answers_by_name_are_not_taken_for_their_names():
    """The keys of a mapping are not its answers."""
    m = AllOfDevice(epsilon="2", members=(GRRDevice(size=3, epsilon="1"),) * 2, state="log")
    with pytest.raises(InvalidValue):
        m.privatize_one({2: 0, 0: 1}, ReplayCoins(b"names"))


def test_a_spec_whose_reports_do_not_fit_is_refused_before_a_value_is_touched():
    family = Questions(mechanisms=(GRRDevice(size=3, epsilon="1"), OUEDevice(size=64, epsilon="1")))
    with pytest.raises(InvalidSpec):
        OneOfDevice(family=family, payload_bytes=1)


# Integers beyond 63 bits.

BIG = [0, 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
WIDE = [
    OLH(size=1 << 64, epsilon="1"),
    BLH(size=1 << 64, epsilon="32"),
    CMS(size=1 << 64, epsilon="1", rows=3, width=64, key=5),
    HCMS(size=1 << 64, epsilon="1", rows=3, width=64, key=5),
    RAPPOR(bits=64, cohorts=3, key=7, hashes=2, epsilon="1"),
]


@pytest.mark.parametrize("m", WIDE, ids=lambda m: m.kind)
def test_batches_of_64_bit_values_are_what_the_device_makes(m: Any):
    coins = ReplayCoins(b"wide")
    expected = b"".join(m.privatize_one(value, coins) for value in BIG)
    for values in (BIG, np.array(BIG, np.uint64)):
        assert m.privatize(values, ReplayCoins(b"wide")).tobytes() == expected
    for bad in ([2**64], [2**64, 1], [-1, 2**63], [2.0**63], [2**63, 1.5]):
        with pytest.raises(InvalidValue):
            m.privatize(bad, ReplayCoins(b"wide"))


def test_composed_batches_of_64_bit_values_are_what_the_device_makes():
    wide, small = OLH(size=1 << 64, epsilon="1", buckets=4), GRR(size=3, epsilon="1")
    rows: list[Any] = [(2**64 - 1, 2), (2**63 + 1, 0), (2**53 + 1, 1)]
    for m in (AllOf(epsilon="2", members=(wide, small)), OneOf(family=Questions(mechanisms=(wide, small)))):
        coins = ReplayCoins(b"rows")
        expected = b"".join(m.privatize_one(row, coins) for row in rows)
        assert m.privatize(rows, ReplayCoins(b"rows")).tobytes() == expected


@pytest.mark.parametrize("m", [1, 3, 2**32 - 1, 2**32, 2**32 + 1, 2**63, 2**64 - 1, 2**64])
def test_uniform_kernels_multiply_without_overflow(m: int):
    words = np.frombuffer(ReplayCoins(b"uniform").words(500), "<u8").copy()
    words[:4] = [0, 2**64 - 1, 2**63, 1]
    assert kernels.uniform(words, m).tolist() == [word * m >> 64 for word in words.tolist()]


def test_device_and_server_know_the_same_kinds():
    assert {kind.kind for kind in KINDS} == {kind.kind for kind in CATALOG}
