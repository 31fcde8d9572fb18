"""Losses of whole streams, by enumeration from the devices' integer thresholds (AL-1, AL-2).

Three wrong schemes are enumerated as well, so that nobody reintroduces them: a slot that is drawn anew in every block,
reports that make up for missed slots, and the epsilon of memoised reports times their keys as a total.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import product
from math import inf, log

import pytest

from tacit.device.kinds.unary import zero_threshold
from tacit.device.numbers.exact import WORD, ceil_div
from tacit.device.windows import account
from tacit.device.windows.account import Asked, refusal
from tacit.device.windows.guarantee import always_words, guarantee_words
from tacit.device.windows.terms import AccountTerms, WindowTerms
from tacit.numeric.layered import LayeredMemo
from tacit.numeric.mean import OneBit
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.tasks.time.guarantees import stream_guarantee
from tacit.testing.streams import (
    FreshChannel,
    StreamLaw,
    any_pair,
    every_window,
    made_up_reports,
    memoised,
    population_division,
    redrawn_slots,
    same_pattern,
    stream_loss,
    taking_part,
    within_run,
)

ONE = GRR(size=2, epsilon="1")
ONE_TWICE = GRR(size=2, epsilon="2")


def layered(eps_inf: str, eps_1: str, size: int):
    """Both layers as a device draws them (L-GRR, Arcolezi et al., 2022), from the integer cells of kind `layered`."""
    mechanism = LayeredMemo(inner=GRR(size=size, epsilon=eps_inf), first=eps_1, most_values=2)
    assert isinstance(mechanism.inner, GRR)
    return memoised(mechanism.inner, FreshChannel.of_cell(size, mechanism.fresh_low))


@pytest.mark.parametrize(("per", "windows"), [(1, 3), (2, 3), (2, 4), (3, 4), (4, 4)])
def test_population_division_keeps_epsilon_in_every_run(per: int, windows: int) -> None:
    scheme = population_division(ONE, per)
    stated = stream_guarantee("lpu", epsilon=1.0, run=per, windows=windows)
    found = [stream_loss(scheme, 2, windows, pairs) for pairs in (within_run(1), within_run(per), any_pair)]
    assert found == pytest.approx([stated.event, stated.run, stated.lifetime], abs=1e-12)


def test_population_division_over_more_values() -> None:
    scheme = population_division(GRR(size=3, epsilon="0.5"), 2)
    found = [stream_loss(scheme, 3, 3, pairs) for pairs in (within_run(1), within_run(2), any_pair)]
    assert found == pytest.approx([0.5, 0.5, 1.0], abs=1e-12)


def test_fresh_reports_and_shares_of_epsilon_add_up() -> None:
    fresh, shares = every_window(ONE), every_window(GRR(size=2, epsilon="0.5"))
    for name, scheme in (("fresh", fresh), ("lbu", shares)):
        stated = stream_guarantee(name, epsilon=1.0, run=2, windows=4)
        found = [stream_loss(scheme, 2, 4, pairs) for pairs in (within_run(1), within_run(2), any_pair)]
        assert found == pytest.approx([stated.event, stated.run, stated.lifetime], abs=1e-12)


def test_a_slot_that_is_drawn_anew_breaks_the_guarantee_of_a_run() -> None:
    assert stream_loss(redrawn_slots(ONE, 2), 2, 4, within_run(2)) == pytest.approx(2.0)


def test_reports_that_make_up_for_missed_slots_break_the_guarantee_of_a_run() -> None:
    assert stream_loss(made_up_reports(ONE, 2), 2, 4, within_run(2)) == pytest.approx(2.0)


def test_memoised_reports_without_fresh_noise_prove_a_change() -> None:
    scheme = memoised(ONE)
    assert stream_loss(scheme, 2, 2, within_run(1)) == inf
    assert stream_loss(scheme, 2, 3, same_pattern) == pytest.approx(2.0)


# Windows, loss for life and for one event of layered reports (2, 1) over two keys.
TWO_KEYS = [(1, 1.0, 1.0), (2, 2.0, 1.219), (3, 2.642, 1.289), (4, 3.359, 1.359)]


@pytest.mark.parametrize(("windows", "lifetime", "event"), TWO_KEYS)
def test_layered_reports_lose_more_with_every_window(windows: int, lifetime: float, event: float) -> None:
    scheme = layered("2", "1", 2)
    assert stream_loss(scheme, 2, windows, any_pair) == pytest.approx(lifetime, abs=5e-4)
    assert stream_loss(scheme, 2, windows, within_run(1)) == pytest.approx(event, abs=5e-4)


def test_keys_times_the_permanent_epsilon_is_no_total() -> None:
    """The claim "g eps_inf" fails: (1, .5) loses 2.034 > 2 in four windows, (2, 1) loses 4.019 > 4 in five."""
    assert stream_loss(layered("1", "0.5", 2), 2, 4, any_pair) == pytest.approx(2.034, abs=5e-4)
    assert stream_loss(layered("2", "1", 2), 2, 5, any_pair) == pytest.approx(4.019, abs=5e-4)


# Values, layers, windows and the loss over all pairs of streams, printed with three decimals.
LAYERED = [(3, "2", "1", 2, 2.135), (3, "2", "1", 3, 3.210), (4, "2", "1", 2, 2.196), (3, "1", "0.5", 2, 1.251)]


@pytest.mark.parametrize(("size", "eps_inf", "eps_1", "windows", "loss"), LAYERED)
def test_layered_reports_lose_more_than_fresh_ones(
    size: int, eps_inf: str, eps_1: str, windows: int, loss: float
) -> None:
    assert stream_loss(layered(eps_inf, eps_1, size), size, windows, any_pair) == pytest.approx(loss, abs=5e-4)
    assert loss > stream_loss(every_window(GRR(size=size, epsilon=eps_1)), size, windows, any_pair)


@pytest.mark.parametrize(("windows", "loss"), [(1, 1.0), (2, 2.0), (3, 2.642)])
def test_signs_and_bits_under_two_layers_lose_what_two_keys_do(windows: int, loss: float) -> None:
    """L-HRR: given any row, which every report shows. L-1BM: over the secret point at which a device rounds."""
    rows = LayeredMemo(inner=HRR(size=4, epsilon="2"), first="1", most_values=2)
    bits = LayeredMemo(inner=OneBit(top=2, epsilon="2"), first="1", most_values=2)
    two_keys = layered("2", "1", 2)
    assert rows.fresh_low == bits.fresh_low == LayeredMemo(inner=ONE_TWICE, first="1", most_values=2).fresh_low

    def keyed(mechanism: LayeredMemo, once: int):
        """The law of a device that drew this, from the keys of its stream: 0 and 1, or 0 and top."""
        return lambda stream: two_keys(tuple(int(mechanism.value_key((once,), x) != b"0") for x in stream))

    for row in range(1, 4):
        assert stream_loss(keyed(rows, row), 4, windows, any_pair) == pytest.approx(loss, abs=5e-4)

    def rounded(stream: "tuple[int, ...]") -> "StreamLaw":
        laws = [keyed(bits, alpha)(stream) for alpha in range(2)]
        return {sent: sum((law[sent] for law in laws), Fraction(0)) / 2 for sent in laws[0]}

    assert stream_loss(rounded, 3, windows, any_pair) == pytest.approx(loss, abs=5e-4)


def changed_bits(size: int) -> float:
    """The loss of L-OSUE (2, 1) for one event of two windows, from the integer thresholds of a device.

    A bit's two reports are independent of other bits. Streams that agree in a window differ in the other: bits of the
    values that differ have other laws, and a change redraws all of them, against none for the stream that stays.
    """
    half, odds = WORD // 2, GRR(size=2, epsilon="2").odds
    zero, first = zero_threshold(half, odds), GRR(size=2, epsilon="1").odds
    flip = ceil_div(WORD * (WORD**2 - zero * (first + WORD)), (first + WORD) * (WORD - 2 * zero))
    assert flip == 3626850014342883356
    f = Fraction(flip, WORD)
    permanent = {0: Fraction(zero, WORD), 1: Fraction(1, 2)}

    def pair(one: int, other: int, *, same: bool) -> "dict[tuple[int, ...], Fraction]":
        """The law of two reports of one bit: of one memoised bit, or of two that were drawn apart."""
        law: dict[tuple[int, ...], Fraction] = {}
        for memo in product((0, 1), repeat=2):
            if same and memo[0] != memo[1]:
                continue
            chances = [
                permanent[bit] if kept else 1 - permanent[bit] for bit, kept in zip((one, other), memo, strict=True)
            ]
            chance = chances[0] if same else chances[0] * chances[1]
            for sent in product((0, 1), repeat=2):
                shown = [1 - f if kept == bit else f for kept, bit in zip(memo, sent, strict=True)]
                law[sent] = law.get(sent, Fraction(0)) + chance * shown[0] * shown[1]
        return law

    def largest(laws: "list[tuple[dict[tuple[int, ...], Fraction], dict[tuple[int, ...], Fraction]]]") -> float:
        return sum(log(max(over[sent] / under[sent] for sent in over)) for over, under in laws)

    # Bits 0 and 1 belong to the value that stays and to the one that it changes to; all others to neither.
    constant = [pair(1, 1, same=True), *(pair(0, 0, same=True) for _ in range(size - 1))]
    changed = [pair(1, 0, same=False), pair(0, 1, same=False), *(pair(0, 0, same=False) for _ in range(size - 2))]
    pairs = list(zip(constant, changed, strict=True))
    return max(largest(pairs), largest([(under, over) for over, under in pairs]))


# Values, and the loss of one event over two windows, printed with three or two decimals.
UNARY = [(2, 1.678), (3, 1.897), (4, 2.240), (16, 7.38), (64, 27.93)]


@pytest.mark.parametrize(("size", "loss"), UNARY)
def test_one_change_of_layered_bits_costs_more_with_every_value(size: int, loss: float) -> None:
    """Why no layered kind takes unary reports: a change redraws every bit."""
    assert changed_bits(size) == pytest.approx(loss, abs=5e-3 if size > 4 else 5e-4)


def test_layered_reports_keep_keys_times_epsilon_between_equal_patterns() -> None:
    assert stream_loss(layered("2", "1", 3), 3, 3, same_pattern) < 4
    assert stream_loss(layered("2", "1", 2), 2, 1, same_pattern) == pytest.approx(1.0, abs=1e-12)


FIRST = date(2030, 1, 7)


def decided(per: int, windows: int, asleep: set[int], slot: Callable[[int], int]) -> set[int]:
    """The windows that a device reports on by the rules of its account, if it sleeps through some of them.

    It asks every day for every window that is not too late, as an application does that makes up for what it missed.
    """
    terms = WindowTerms(every="day", first="2030-01-07", count=windows, late=2, per=per, guarantee="run")
    asked = Asked(
        windows=terms, account=AccountTerms(name="a", run=per, run_epsilon="1"), epsilon=Fraction(1), window=0,
        today=FIRST, born=date(2029, 1, 1), slot=0,
    )  # fmt: skip
    taken: set[int] = set()
    for now, window in product(range(windows), range(windows)):
        if now in asleep:
            continue
        today = FIRST + timedelta(days=now)
        asked = replace(asked, window=window, today=today, slot=slot(window), drawn_before=window in taken)
        if not refusal(asked):
            taken.add(window)
            asked = replace(asked, record=asked.record.charged(window, Fraction(1), per))
    return taken


def worst_device(slot: "Callable[[int, int], int] | None" = None) -> float:
    """The loss in a run of two windows, over devices that sleep through any of four."""
    nights = [{t for t in range(4) if bits >> t & 1} for bits in range(16)]
    drawn = slot or (lambda own, window: own)
    return max(
        stream_loss(
            taking_part(ONE, [decided(2, 4, night, lambda window, own=own: drawn(own, window)) for own in range(2)]),
            2, 4, within_run(2),
        )
        for night in nights
    )  # fmt: skip


def test_real_devices_keep_epsilon_in_every_run_whenever_they_sleep() -> None:
    assert worst_device() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("missing", ["not_my_slot", "run_cap"])
def test_one_of_two_rules_may_fail_and_the_other_still_holds(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    """Without slots a device may make up for windows, without caps its slots are still apart; without both it is 2."""
    rules = account.RULES
    monkeypatch.setattr(account, "RULES", tuple(rule for rule in rules if rule[0] != missing))
    assert worst_device() == pytest.approx(1.0, abs=1e-12)
    monkeypatch.setattr(account, "RULES", tuple(rule for rule in rules if rule[0] not in ("not_my_slot", "run_cap")))
    assert worst_device() == pytest.approx(2.0)


def test_a_device_that_draws_its_slot_anew_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second slot of one block and the first of the next: the cap refuses it, and without a cap it costs 2."""
    assert worst_device(lambda own, window: (own + 1 + window // 2) % 2) == pytest.approx(1.0)
    monkeypatch.setattr(account, "RULES", tuple(rule for rule in account.RULES if rule[0] != "run_cap"))
    assert worst_device(lambda own, window: (own + 1 + window // 2) % 2) == pytest.approx(2.0)


def test_no_multiple_of_the_permanent_epsilon_is_told_as_a_total() -> None:
    """Of memoised reports people are told a factor for an answer that stays, and what a change costs; no sum (AL-2)."""
    terms = WindowTerms(every="day", first="2030-01-07", count=60, per=1, guarantee="pattern")
    caps = AccountTerms(name="a", run=7, run_epsilon="32")
    told = " ".join([*guarantee_words(terms, Fraction(2)), *always_words(terms, caps)]).lower()
    assert "as long as your answer stays the same" in told and "each new answer costs 2 again" in told
    assert not any(word in told for word in ("total", "in all", "altogether", "lifetime", "for life"))
    assert not any(str(2 * keys) in told for keys in (2, 3, 16, 60))
