"""Telemetry of an application that asks its user: on, local only or off, with everything that was sent to look at.

    off      nothing is drawn and nothing is kept
    local    the noisy report is drawn and kept, for its owner to look at; it is not sent
    on       it is sent, now or as soon as there is a network

The user decides, and the decision is kept beside the ledger. Going from local to on sends nothing of before: `release`
does, once the user has seen it. `DO_NOT_TRACK=1` in the environment is off, whatever was decided.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit.client.ledger import HELD, AlreadyAnswered, Ledger, LedgerEntry, Receipt
from tacit.client.respondent import Respondent
from tacit.client.transport import Patience, Transport
from tacit.errors import InvalidSpec

ON, LOCAL, OFF = "on", "local", "off"
MODES = (ON, LOCAL, OFF)
_MODE_FILE, _LEDGER_FILE = "mode", "ledger.json"


@dataclass(frozen=True)
class ShownReport:
    """One report as its owner may see it: all that leaves the device, and where it stands."""

    collection: str
    title: str
    epsilon: Any
    state: str
    report: str
    """The noisy bytes in hexadecimal; any answer could have produced them."""
    row: dict[str, Any] | None
    """Public columns that go along as they are, if any."""
    server: str


class Telemetry:
    """The telemetry of one application on one device, in a folder of its own."""

    def __init__(self, folder: "str | os.PathLike[str]", *, transport: Transport | None = None) -> None:
        """Read the decision of before; without one it is local only."""
        self._folder = Path(folder).expanduser()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._ledger = Ledger(self._folder / _LEDGER_FILE)
        # One attempt, as an application does not wait for its telemetry: what cannot be sent is pending.
        self._respondent = Respondent(self._ledger, transport=transport or Transport(Patience(attempts=1)))

    @property
    def mode(self) -> str:
        """The present mode: "on", "local" or "off"."""
        if os.environ.get("DO_NOT_TRACK", "0") not in ("", "0"):
            return OFF
        try:
            found = (self._folder / _MODE_FILE).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return LOCAL
        # A decision that cannot be read is no consent.
        return found if found in MODES else OFF

    def set_mode(self, mode: str) -> None:
        """Keep the decision of the user; InvalidSpec for anything but "on", "local" and "off"."""
        if mode not in MODES:
            raise InvalidSpec(f"telemetry: mode must be one of {', '.join(MODES)}")
        # A crash on the way leaves the decision of before, never half of a new one.
        part = self._folder / f"{_MODE_FILE}.part"
        part.write_text(f"{mode}\n", encoding="utf-8")
        part.replace(self._folder / _MODE_FILE)

    def report(
        self, address: str, answers: Mapping[str, Any], *, row: Mapping[str, Any] | None = None
    ) -> Receipt | None:
        """Answer a collection as far as the user allows; None if that is not at all. A second time changes nothing."""
        mode = self.mode
        if mode == OFF:
            return None
        answer = self._respondent.answer if mode == ON else self._respondent.prepare
        try:
            made = answer(address, answers, row=row)
        # The first report stands: drawing again would spend the budget a second time.
        except AlreadyAnswered as before:
            return before.receipt
        return made.receipt if isinstance(made, LedgerEntry) else made

    def shown(self) -> list[ShownReport]:
        """Everything that was drawn on this device, sent or not."""
        return [
            ShownReport(entry.collection, entry.title.get("en") or next(iter(entry.title.values()), ""), entry.epsilon,
                  entry.state, entry.report, entry.row, entry.base)
            for entry in self._ledger.read().entries
        ]  # fmt: skip

    def release(self) -> list[Receipt]:
        """Send the reports that were stored while the mode was local only; does nothing unless the mode is on."""
        if self.mode != ON:
            return []
        held = [entry.batch for entry in self._ledger.read().entries if entry.state == HELD]
        return [self._respondent.release(batch) for batch in held]

    def flush(self) -> list[Receipt]:
        """Send what waits for a network; nothing unless the mode is on."""
        return self._respondent.flush() if self.mode == ON else []
