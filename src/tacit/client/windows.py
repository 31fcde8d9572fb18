"""A collection that is asked again and again, for applications: one call a day that does the right thing.

    tick(value) = send what waits, or let it expire -> may a report be drawn? -> draw, charge and store -> send

Whether a report may be drawn is decided by `device.windows.account`, from the ledger of this device and its own clock.
Drawing, charging and storing the bytes are one write of the ledger, before anything is sent; whatever crashes, a window
is drawn once, and its batch id is always the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, cast

from tacit.client.ledger import EXPIRED, PENDING, Kept, Ledger, LedgerEntry, Receipt
from tacit.device.kinds.memo import KEY_BYTES
from tacit.device.numbers.coins import Coins
from tacit.device.windows.account import KEPT_DAYS, AccountRecord, Asked, DevicePolicy, next_slot, refusal
from tacit.device.windows.guarantee import always_words, guarantee_words
from tacit.device.windows.slots import slot_of, window_batch_id
from tacit.device.windows.terms import AccountTerms, WindowTerms
from tacit.errors import InvalidSpec
from tacit.wire.document import Collection

SKIPPED = "skipped"
"""The state of a window on which nothing was drawn; the reason says why."""


@dataclass(frozen=True)
class Tick:
    """What became of one call: the window it was about, and the state of its report."""

    window: int
    state: str
    """"skipped", or the state of the report: "pending", "sent", "refused" or "expired"."""
    reason: str = ""
    """Why nothing was drawn, or why the collector refused the report."""
    receipt: Receipt | None = None


@dataclass(frozen=True)
class AccountView:
    """What an account has cost this device so far, for its owner."""

    name: str
    run_spent: Fraction
    """Charged to the run of windows that ends today."""
    run_cap: Fraction
    spent: Fraction
    """Charged in all."""
    lifetime_cap: Fraction | None
    next_day: date | None
    """The first day of the next window that this device will report on, as far as is known today."""
    words: tuple[str, ...]


@dataclass(frozen=True)
class WindowedCollection:
    """A document with windows, opened on this device; made by `Respondent.join`."""

    document: Collection
    base: str
    ledger: Ledger
    coins: Coins
    send: Callable[[LedgerEntry], LedgerEntry]
    policy: DevicePolicy | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    def checked(self) -> "WindowedCollection":
        """Return this; InvalidSpec for a document without windows."""
        _stated(self.document)
        return self

    @property
    def windows(self) -> WindowTerms:
        """The calendar of the document."""
        return _stated(self.document)[0]

    @property
    def account(self) -> AccountTerms:
        """The account that reports are charged to."""
        return _stated(self.document)[1]

    def today(self) -> date:
        """The date that decides the window: that of UTC, or the device's own where the document says so."""
        now = self.clock()
        return (now.astimezone() if self.windows.zone == "local" else now.astimezone(UTC)).date()

    def tick(self, value: Any, *, day: date | None = None) -> Tick:
        """Report on the window of a day, today unless told, if this device may; call it once a day with the value.

        `value` is the answer, or answers by the name of the question. `day` is for values of windows that were missed
        while the device was off; too late ones are skipped, and nothing is made up for.
        """
        # Everything that can fail for a wrong value fails here, before coins are drawn and epsilon is spent.
        answers = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {self._question: value}
        encoded, today = self.document.encode(answers), self.today()
        self.flush()
        window = self.windows.calendar.window(day or today)
        with self.ledger.change() as kept:
            entry, reason = self._decided(kept, window, today, encoded)
        if entry is None:
            return Tick(window, SKIPPED, reason)
        # What was drawn before has been sent by `flush`, or waits for its next attempt.
        if not reason:
            entry = self.send(entry)
        return Tick(window, entry.state, entry.reason, entry.receipt)

    def flush(self) -> list[Receipt]:
        """Send reports that wait; those whose window takes none any more expire, and stay charged."""
        now = self.windows.calendar.window(self.today())
        receipts: list[Receipt] = []
        for entry in self.ledger.pending():
            if entry.collection == self.document.id:
                late = now - entry.window > self.windows.late
                receipts.append((self.ledger.settle(entry, state=EXPIRED) if late else self.send(entry)).receipt)
        return receipts

    def view(self) -> AccountView:
        """What the account has cost, and when this device reports next."""
        kept, today = self.ledger.read(), self.today()
        asked = self._asked(kept, self.windows.calendar.window(today), today)
        coming = next_slot(asked) if kept.secret else None
        words = [*guarantee_words(self.windows, self._epsilon), *always_words(self.windows, self.account)]
        return AccountView(
            name=self.account.name,
            run_spent=asked.record.within(max(asked.window, asked.record.high), self.account.run),
            run_cap=self.account.run_cap,
            spent=asked.record.spent,
            lifetime_cap=self.account.lifetime_cap,
            next_day=None if coming is None else self.windows.calendar.first_day(coming),
            words=tuple(words),
        )

    @property
    def _question(self) -> str:
        return self.document.questions[0].name

    @property
    def _epsilon(self) -> Fraction:
        return Fraction(self.document.mechanism.budget.declared)

    @property
    def _key(self) -> str:
        """The account in the ledger: of one name there may be one with every collector."""
        return f"{self.base} {self.account.name}"

    def _decided(self, kept: Kept, window: int, today: date, value: Any) -> tuple[LedgerEntry | None, str]:
        """The entry of a window, drawn now or before, or why there is none; `kept` is changed where one is drawn."""
        self._check_account(kept)
        kept.secret = kept.secret or self.coins.words(KEY_BYTES // 8).hex()
        before = self._entry_of(kept, window)
        if before is not None:
            return before, "passed"
        reason = refusal(self._asked(kept, window, today))
        if reason:
            return None, reason
        entry = self._drawn(kept, window, value)
        self._charge(kept, window, today)
        kept.entries.append(entry)
        return entry, ""

    def _entry_of(self, kept: Kept, window: int) -> LedgerEntry | None:
        about = (e for e in kept.entries if e.collection == self.document.id and e.window == window)
        return next(about, None)

    def _asked(self, kept: Kept, window: int, today: date) -> Asked:
        record = kept.accounts.get(self._key, {}).get("record")
        slot = slot_of(bytes.fromhex(kept.secret), bytes.fromhex(self.document.id), self.windows.per)
        return Asked(
            windows=self.windows,
            account=self.account,
            epsilon=self._epsilon,
            window=window,
            today=today,
            born=date.fromisoformat(kept.born) if kept.born else today,
            slot=slot,
            drawn_before=self._entry_of(kept, window) is not None,
            record=AccountRecord() if record is None else AccountRecord.from_json(record),
            policy=self.policy,
            days=tuple((date.fromisoformat(day), Fraction(cost)) for day, cost in kept.days),
        )

    def _drawn(self, kept: Kept, window: int, value: Any) -> LedgerEntry:
        """A new report, and the batch id that this window will always have."""
        member, payload = self.document.mechanism.split(self.document.mechanism.privatize_one(value, self.coins))
        name = window_batch_id(bytes.fromhex(kept.secret), bytes.fromhex(self.document.id), window)
        return LedgerEntry(
            collection=self.document.id,
            base=self.base,
            title=self.document.title,
            epsilon=self.document.epsilon,
            batch=name.hex(),
            report=payload.hex(),
            member=member,
            plan=self.document.plan_id,
            window=window,
        )

    def _charge(self, kept: Kept, window: int, today: date) -> None:
        """Charge a report to the account, and forget entries that no rule looks at any more."""
        kept_account = kept.accounts[self._key]
        record = AccountRecord.from_json(kept_account["record"]).charged(window, self._epsilon, self.account.run)
        kept_account["record"] = record.to_json()
        charged = Fraction(kept_account["charged"].get(self.document.id, "0")) + self._epsilon
        kept_account["charged"][self.document.id] = str(charged)
        recent = [[day, cost] for day, cost in kept.days if abs((date.fromisoformat(day) - today).days) < KEPT_DAYS]
        kept.days = [*recent, [today.isoformat(), str(self._epsilon)]]
        # What is settled and before the largest window is `passed` anyway; what waits is kept until it is settled.
        kept.entries = [
            entry
            for entry in kept.entries
            if entry.collection != self.document.id or entry.window >= record.high or entry.state == PENDING
        ]

    def _check_account(self, kept: Kept) -> None:
        """Refuse a document that states other numbers for an account which this device has already."""
        terms = self.account.to_json() | {name: getattr(self.windows, name) for name in ("every", "first", "zone")}
        known = kept.accounts.get(self._key)
        if known is None:
            kept.accounts[self._key] = {"terms": terms, "record": AccountRecord().to_json(), "charged": {}}
        elif known["terms"] != terms:
            other = next(name for name in terms if known["terms"].get(name) != terms[name])
            raise InvalidSpec(
                f"account {self.account.name}: {other} differs from what this device knows of the account; nothing was "
                "drawn, because two sets of caps would not cap anything. Publish the document under another name"
            )


def _stated(document: Collection) -> tuple[WindowTerms, AccountTerms]:
    if document.windows is None or document.account is None:
        raise InvalidSpec(f"collection {document.id}: has no windows; answer it once, with Respondent.answer")
    return document.windows, document.account
