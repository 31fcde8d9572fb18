"""Many tiny shuffles of two crowds that differ in one respondent: what a certificate claims, seen on real machines.

Exact laws of such crowds can be enumerated, and deltas of tiny crowds are large, so that a few hundred sessions tell a
shuffle that works from one that keeps the order or whose fakes are known. Every assertion about chance has the
false-alarm probability ALPHA; seeds are fixed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
import pytest
from tests.unit.shuffle.enumeration import divergences, several, table

import tacit.shuffle.protocol.fakes as fakes_module
import tacit.shuffle.protocol.resharing as resharing
from tacit import GRR
from tacit.core.statistics.binomial import clopper_pearson, lower_tail, upper_tail
from tacit.device.numbers.coins import ReplayCoins
from tacit.shuffle.accounting.account import ShuffledCrowd
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.in_memory import shuffle_in_memory
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.opening import combine
from tacit.shuffle.protocol.rehearsal import rehearse, run
from tacit.shuffle.protocol.sealing import seal_upload, seal_word
from tacit.shuffle.protocol.shares import PlainAlgebra
from tacit.shuffle.protocol.words import WordRule, encode_word
from tacit.testing.statistics import ALPHA, assert_fits

MECHANISM = GRR(size=3, epsilon="3")
OWN, OTHER, REST = 0, 1, 2
"""What the victim says in one crowd and in the other, and what everybody else says in both."""
KNOWN = 2
"""A report that everybody expects of fakes which are not drawn."""


@dataclass(frozen=True)
class Crowds:
    """Two crowds of n respondents that differ in the first, with so many fakes of each of three shufflers."""

    n: int
    fakes_each: int

    @property
    def rows(self) -> int:
        return self.n + 3 * self.fakes_each

    @property
    def certified(self) -> ShuffledCrowd:
        # A majority of the shufflers is taken to be honest, and only their fakes count.
        return ShuffledCrowd(MECHANISM, self.n, 2 * self.fakes_each)

    def law(self, value: int) -> dict[tuple[int, ...], float]:
        """The exact law of the counts of all three reports."""
        rows = table(MECHANISM)
        uniform = np.full(3, 1 / 3)
        return several([rows[value], *[rows[REST]] * (self.n - 1), *[uniform] * (3 * self.fakes_each)], 3)


@dataclass(frozen=True)
class Seen:
    """One session: the reports in the order in which they came out, and where the victim's went in and came out."""

    reports: np.ndarray
    before: int
    after: int

    @property
    def lead(self) -> int:
        counts = np.bincount(self.reports, minlength=3)
        return int(counts[OWN] - counts[OTHER])


Sessions = Callable[[Crowds, int, int], Iterator[Seen]]
"""Crowds, the value of the victim, and how many sessions."""


def streams(name: bytes) -> list[AesStream]:
    coins = ReplayCoins(name)
    return [AesStream(coins.words(4)) for _ in range(3)]


def words_of(crowds: Crowds, value: int, coins: Any) -> list[int]:
    values = [value, *[REST] * (crowds.n - 1)]
    return [encode_word(MECHANISM, MECHANISM.privatize_one(each, coins), coins) for each in values]


def bare(crowds: Crowds, value: int, count: int, fake: Callable[[AesStream], int] = AesStream.word) -> Iterator[Seen]:
    """The machines of the shufflers, on words that are shared but not sealed."""
    coins, mixers, dealer = ReplayCoins(b"people%d" % value), streams(b"mixers%d" % value), streams(b"dealer")[0]
    algebra = PlainAlgebra(LAYOUTS["osh"])
    session = rehearse(ReplayCoins(b"keys"), fakes=2 * crowds.fakes_each).session
    for number in range(count):
        words = words_of(crowds, value, coins)
        shares = [np.zeros((crowds.rows, algebra.layout.width), np.uint8) for _ in mixers]
        rows = np.zeros((crowds.n, algebra.layout.width), np.uint8)
        rows[:, :8].view("<u8")[:, 0] = words
        for own, part in zip(shares, algebra.split((rows,), 3, dealer), strict=True):
            own[: crowds.n] = part
        # As in `fake_shares`: whole words by turns, of which the others hold zeros.
        for i in range(crowds.n, crowds.rows):
            shares[i % 3][i, :8].view("<u8")[0] = fake(mixers[i % 3])
        name = number.to_bytes(32, "big")
        mixed = combine(
            session, shuffle_in_memory([(own,) for own in shares], algebra, mixers, session=name), crowds.rows
        )
        got = np.ascontiguousarray(mixed[:, :8]).view("<u8")[:, 0]
        yield Seen((got % np.uint64(3)).astype(np.int64), 0, got.tolist().index(words[0]))


def sealed(crowds: Crowds, value: int, count: int) -> Iterator[Seen]:
    """Whole sessions, from sealed uploads to opened rows."""
    coins, mixers = ReplayCoins(b"sealed%d" % value), streams(b"sealing%d" % value)
    made = rehearse(ReplayCoins(b"keys"), fakes=2 * crowds.fakes_each, words=WordRule(3, seeded=False))
    for _ in range(count):
        words = words_of(crowds, value, coins)
        uploads = [seal_upload(made.session, word, coins) for word in words]
        roster, opened = run(made, uploads, mixers)
        assert (opened.rows, opened.bad) == (crowds.rows, 0)
        before, after = roster.slots.index(uploads[0].slot), opened.words.tolist().index(words[0])
        yield Seen((opened.words % np.uint64(3)).astype(np.int64), before, after)


EVENTS: dict[str, Callable[[Seen], bool]] = {
    "one report more": lambda seen: seen.lead >= 1,
    "two reports more": lambda seen: seen.lead >= 2,
    "three reports more": lambda seen: seen.lead >= 3,
    "the row at the victim's place": lambda seen: bool(seen.reports[seen.before] == OWN),
}
"""What speaks for OWN against OTHER, chosen before anything is drawn."""


def proven_delta(own: list[Seen], other: list[Seen], epsilon: float) -> float:
    """A delta that the machines have at least, at any of the events; too large with probability ALPHA at most."""
    # Two bounds for each event, one-sided each.
    confidence = 1 - ALPHA / len(EVENTS)
    found = [0.0]
    for event in EVENTS.values():
        low = clopper_pearson(sum(map(event, own)), len(own), confidence)[0]
        high = clopper_pearson(sum(map(event, other)), len(other), confidence)[1]
        found.append(float(low - exp(epsilon) * high))
    return max(found)


def assert_counts_fit(crowds: Crowds, value: int, seen: list[Seen]) -> None:
    leads = range(-crowds.rows, crowds.rows + 1)
    law = crowds.law(value)
    chances = np.array([sum(p for c, p in law.items() if c[OWN] - c[OTHER] == lead) for lead in leads])
    observed = np.bincount([each.lead + crowds.rows for each in seen], minlength=len(leads))
    assert_fits(observed[chances > 0], chances[chances > 0])
    assert not observed[chances == 0].any()


def assert_places_are_even(crowds: Crowds, seen: list[Seen]) -> None:
    moved = np.bincount([(each.after - each.before) % crowds.rows for each in seen], minlength=crowds.rows)
    assert_fits(moved, np.full(crowds.rows, 1 / crowds.rows))


def both(sessions: Sessions, crowds: Crowds, count: int) -> tuple[list[Seen], list[Seen]]:
    return list(sessions(crowds, OWN, count)), list(sessions(crowds, OTHER, count))


def keep_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(resharing, "permutation", lambda key, count: np.arange(count))


# The upper limit of delta. Sessions of this crowd are many enough for one below the claim of the certificate, which is
# made for two honest shufflers of three: it must stay there, and counts must be such as enumeration says. Which counts
# that takes was worked out before anything is drawn, so that false alarms and power are exact.

SHARP, SHARP_EPSILON, SESSIONS = Crowds(n=3, fakes_each=1), 0.5, 16_000
LIMIT = 1e-3
"""How often a limit is on the wrong side of the truth, at most."""


def limits(own: int, other: int) -> tuple[float, float]:
    """Limits of the delta of an event that was seen so often among SESSIONS of each crowd."""
    first, second = (clopper_pearson(count, SESSIONS, 1 - LIMIT) for count in (own, other))
    ratio = exp(SHARP_EPSILON)
    return float(first[0] - ratio * second[1]), float(first[1] - ratio * second[0])


def chances_of_lead(crowds: Crowds) -> tuple[float, float]:
    """How likely OWN leads, in either crowd."""
    own, other = (sum(p for c, p in crowds.law(value).items() if c[OWN] > c[OTHER]) for value in (OWN, OTHER))
    return own, other


def far_out(chances: tuple[float, float], *, high: bool) -> tuple[int, int]:
    """Counts that give as large (or small) a delta as chance does with probability ALPHA at most."""
    every = np.arange(SESSIONS + 1)
    most = [int(np.flatnonzero(upper_tail(every, SESSIONS, chance) > ALPHA / 2)[-1]) for chance in chances]
    least = [int(np.flatnonzero(lower_tail(every, SESSIONS, chance) > ALPHA / 2)[0]) for chance in chances]
    # The event speaks for the first crowd: more of it there and less in the other make delta larger.
    return (most[0], least[1]) if high else (least[0], most[1])


def test_so_many_sessions_confirm_a_claim_that_holds_and_refute_one_that_does_not():
    chances, claimed = chances_of_lead(SHARP), SHARP.certified.delta(SHARP_EPSILON)
    exact = float(divergences(SHARP.law(OWN), SHARP.law(OTHER), [SHARP_EPSILON])[0])
    event = chances[0] - exp(SHARP_EPSILON) * chances[1]
    assert 0.99 * exact < event <= exact < claimed
    # A shuffle that works stays below the claim, whatever chance does but with ALPHA.
    assert limits(*far_out(chances, high=True))[1] <= claimed
    # Known fakes are no fakes: then even the lower limit passes the claim, whatever chance does but with ALPHA.
    assert limits(*far_out(chances_of_lead(Crowds(SHARP.n, 0)), high=False))[0] > 1.5 * claimed


@pytest.mark.slow
def test_the_upper_limit_of_delta_does_not_pass_the_certificate():
    own, other = (sum(seen.lead >= 1 for seen in bare(SHARP, value, SESSIONS)) for value in (OWN, OTHER))
    assert limits(own, other)[1] <= SHARP.certified.delta(SHARP_EPSILON)
    # And both counts are such as enumeration says, by exact binomial tests of ALPHA each.
    (own_most, other_least), (own_least, other_most) = (
        far_out(chances_of_lead(SHARP), high=up) for up in (True, False)
    )
    assert own_least <= own <= own_most and other_least <= other <= other_most


EPSILON = 0.5
SMALL = Crowds(n=3, fakes_each=8)


def test_a_shuffle_keeps_what_its_certificate_claims():
    own, other = both(bare, SMALL, 90)
    claimed = SMALL.certified.delta(EPSILON)
    # All three shufflers are honest here, so that the exact delta is below what is claimed for two.
    exact = float(divergences(SMALL.law(OWN), SMALL.law(OTHER), [EPSILON])[0])
    assert 0.02 < exact < claimed < 0.1
    assert proven_delta(own, other, EPSILON) <= claimed
    assert_counts_fit(SMALL, OWN, own)
    assert_counts_fit(SMALL, OTHER, other)
    assert_places_are_even(SMALL, own + other)


def test_a_shuffle_that_keeps_the_order_is_noticed(monkeypatch: pytest.MonkeyPatch):
    keep_order(monkeypatch)
    own, other = both(bare, SMALL, 90)
    assert proven_delta(own, other, EPSILON) > 1.5 * SMALL.certified.delta(EPSILON)
    with pytest.raises(AssertionError, match="do not fit"):
        assert_places_are_even(SMALL, own + other)


@pytest.mark.slow
def test_fakes_that_everybody_knows_are_noticed():
    def known(crowds: Crowds, value: int, count: int) -> Iterator[Seen]:
        return bare(crowds, value, count, lambda stream: KNOWN + 3 * (stream.word() >> 3))

    own, other = both(known, SMALL, 90)
    assert proven_delta(own, other, EPSILON) > 1.5 * SMALL.certified.delta(EPSILON)
    with pytest.raises(AssertionError, match="do not fit"):
        assert_counts_fit(SMALL, OWN, own)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("crowds", "epsilon"),
    [
        (SMALL, 0.5),
        (Crowds(n=3, fakes_each=0), 1.0),  # nobody but two others
        (Crowds(n=8, fakes_each=2), 1.0),
    ],
)
def test_whole_sessions_keep_what_their_certificate_claims(crowds: Crowds, epsilon: float):
    own, other = both(sealed, crowds, 600)
    claimed = crowds.certified.delta(epsilon)
    assert float(divergences(crowds.law(OWN), crowds.law(OTHER), [epsilon])[0]) <= claimed
    assert proven_delta(own, other, epsilon) <= claimed
    assert_counts_fit(crowds, OWN, own)
    assert_counts_fit(crowds, OTHER, other)
    assert_places_are_even(crowds, own + other)


@pytest.mark.slow
def test_whole_sessions_that_go_wrong_are_noticed(monkeypatch: pytest.MonkeyPatch):
    claimed = SMALL.certified.delta(EPSILON)
    with monkeypatch.context() as patch:
        keep_order(patch)
        own, other = both(sealed, SMALL, 300)
        assert proven_delta(own, other, EPSILON) > 2.5 * claimed
        with pytest.raises(AssertionError, match="do not fit"):
            assert_places_are_even(SMALL, own + other)

    def known(session: Any, word: int, coins: Any) -> bytes:
        return seal_word(session, KNOWN + 3 * (word >> 3), coins)

    monkeypatch.setattr(fakes_module, "seal_word", known)
    own, other = both(sealed, SMALL, 300)
    assert proven_delta(own, other, EPSILON) > 2.5 * claimed
