"""The ledger's rules under random histories: days, clock jumps, reinstalls, several documents (AL-3)."""

from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest

from tacit.device.windows.account import RULES, AccountRecord, Asked, DevicePolicy, next_slot, refusal
from tacit.device.windows.slots import slot_of
from tacit.device.windows.terms import AccountTerms, WindowTerms, check_terms, realised_guarantee
from tacit.errors import InvalidSpec

FIRST = date(2030, 1, 7)
ONE = Fraction(1)


def terms(**changes: object) -> WindowTerms:
    base: dict[str, object] = {"every": "day", "first": "2030-01-07", "count": 400, "late": 2, "per": 5}
    return WindowTerms(**base | {"guarantee": "run"} | changes)  # type: ignore[arg-type]


def account(**changes: object) -> AccountTerms:
    base: dict[str, object] = {"name": "a", "run": 5, "run_epsilon": "1"}
    return AccountTerms(**base | changes)  # type: ignore[arg-type]


@dataclass
class Person:
    """A person with one device, whose ledger may be lost; `charged` is what no ledger remembers."""

    random: np.random.Generator
    documents: list[tuple[bytes, WindowTerms, Fraction]]
    caps: AccountTerms
    may_set_back: bool
    day: int = 0
    offset: int = 0
    born: int = -9
    secret: bytes = b"s" * 32
    record: AccountRecord = field(default_factory=AccountRecord)
    drawn: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    charged: list[tuple[int, Fraction]] = field(default_factory=list[tuple[int, Fraction]])
    in_ledger: list[int] = field(default_factory=list[int])

    def step(self) -> None:
        move = self.random.random()
        if move < 0.35:
            self.day += int(self.random.choice((1, 1, 1, 3)))
        elif move < 0.42:
            ahead = int(self.random.integers(-4, 7) if self.may_set_back else self.random.integers(0, 3))
            # A clock that never goes back may still run ahead of the days.
            self.offset = ahead if self.may_set_back else self.offset + ahead
        elif move < 0.46:
            self.reinstall()
        else:
            self.answer()

    def reinstall(self) -> None:
        self.born, self.secret = self.day + self.offset, self.random.bytes(32)
        self.record, self.drawn, self.in_ledger = AccountRecord(), set(), []

    def answer(self) -> None:
        which = int(self.random.integers(len(self.documents)))
        identity, windows, epsilon = self.documents[which]
        window = self.day + self.offset - int(self.random.choice((0, 0, 0, 1, 2, 3)))
        asked = Asked(
            windows=windows, account=self.caps, epsilon=epsilon, window=window,
            today=FIRST + timedelta(days=self.day + self.offset), born=FIRST + timedelta(days=self.born),
            slot=slot_of(self.secret, identity, windows.per), drawn_before=(which, window) in self.drawn,
            record=self.record,
        )  # fmt: skip
        if refusal(asked):
            return
        self.record = self.record.charged(window, epsilon, self.caps.run)
        self.drawn.add((which, window))
        self.charged.append((window, epsilon))
        self.in_ledger.append(window)
        assert self.in_ledger == sorted(self.in_ledger)


def worst_run(charges: list[tuple[int, Fraction]], run: int) -> Fraction:
    sums = (
        sum((epsilon for window, epsilon in charges if start <= window < start + run), Fraction(0))
        for start, _ in charges
    )
    return max(sums, default=Fraction(0))


TWO = [(b"\0" * 32, terms(), ONE), (b"\1" * 32, terms(per=1, guarantee="event"), Fraction(1, 5))]


@pytest.mark.parametrize("people", [20, pytest.param(60, marks=pytest.mark.slow)])
def test_every_run_stays_within_its_cap_whatever_happens_to_the_ledger(people: int) -> None:
    charges = 0
    for seed in range(people):
        person = Person(np.random.default_rng(seed), TWO, account(run_epsilon="2"), may_set_back=False)
        for _ in range(300):
            person.step()
        assert worst_run(person.charged, 5) <= 2, seed
        charges += len(person.charged)
    assert charges > 16 * people


@pytest.mark.slow
def test_a_clock_that_is_set_back_spends_nothing_twice_within_one_ledger() -> None:
    charges = 0
    for seed in range(60):
        person = Person(np.random.default_rng(seed), TWO, account(run_epsilon="2"), may_set_back=True)
        for _ in range(300):
            before, made = person.born, len(person.charged)
            person.step()
            charges += len(person.charged) > made
            if person.born != before:
                person.charged = []
            assert worst_run(person.charged, 5) <= 2, seed
    assert charges > 1000


def test_a_ledger_without_the_cold_rule_would_spend_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The histories have the power to find a missing rule: without `cold`, some run exceeds its cap."""
    warm = tuple(rule for rule in RULES if rule[0] != "cold")
    monkeypatch.setattr("tacit.device.windows.account.RULES", warm)

    def worst_of(seed: int) -> Fraction:
        person = Person(np.random.default_rng(seed), TWO, account(run_epsilon="2"), may_set_back=False)
        for _ in range(300):
            person.step()
        return worst_run(person.charged, 5)

    assert any(worst_of(seed) > 2 for seed in range(20))


def test_charges_that_no_later_run_can_hold_are_forgotten() -> None:
    record = AccountRecord().charged(3, ONE, 5).charged(8, ONE, 5)
    assert record.charges == ((8, ONE),)
    assert (record.high, record.spent, record.within(8, 5), record.within(7, 5)) == (8, 2, 1, 0)


def test_the_next_slot_is_after_what_was_charged_and_after_the_cold_start() -> None:
    asked = Asked(
        windows=terms(), account=account(), epsilon=ONE, window=0, today=FIRST, born=FIRST, slot=2,
        record=AccountRecord(),
    )  # fmt: skip
    assert next_slot(asked) == 7
    warm = Asked(**vars(asked) | {"born": date(2029, 1, 1), "record": AccountRecord(2, ((2, ONE),), ONE)})
    assert next_slot(warm) == 7
    assert next_slot(Asked(**vars(warm) | {"window": 398})) is None


def test_a_policy_of_the_host_counts_days_in_both_directions() -> None:
    policy = DevicePolicy(7, "2")
    drawn = [(FIRST, ONE), (FIRST + timedelta(days=10), ONE)]
    assert policy.allows(drawn, FIRST + timedelta(days=3), ONE) is True
    assert policy.allows(drawn, FIRST + timedelta(days=5), ONE) is False
    assert policy.allows(drawn, FIRST + timedelta(days=20), ONE) is True
    for days in (0, 401, True):
        with pytest.raises(InvalidSpec, match="from 1 to 400"):
            DevicePolicy(days, "1")


def test_the_stated_guarantee_is_the_realised_one() -> None:
    assert realised_guarantee(terms()) == "run"
    assert realised_guarantee(terms(per=1)) == "event"
    assert realised_guarantee(terms(per=400)) == "lifetime"
    assert realised_guarantee(terms(), memoised=True) == "pattern"
    with pytest.raises(InvalidSpec, match='must be "run"'):
        check_terms(terms(guarantee="lifetime"), account(), ONE, memoised=False)


def test_an_account_must_hold_the_slots_of_its_documents() -> None:
    check_terms(terms(), account(run=10, run_epsilon="2"), ONE, memoised=False)
    with pytest.raises(InvalidSpec, match="must be at least 3"):
        check_terms(terms(), account(run=11, run_epsilon="2"), ONE, memoised=False)
    with pytest.raises(InvalidSpec, match="lifetime_epsilon"):
        check_terms(terms(), account(lifetime_epsilon="0.5"), ONE, memoised=False)


@pytest.mark.parametrize(
    "changes", [{"name": ""}, {"name": "x" * 65}, {"run": 0}, {"run_epsilon": "1.0"}, {"lifetime_epsilon": 3}]
)
def test_accounts_that_no_reader_takes(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidSpec):
        account(**changes)
