"""What a collector that was restored from a backup does with sessions of before: nothing that contradicts it."""

from pathlib import Path
from typing import Any, cast

import pytest

from tacit.collector.shuffle.steps import ABORTED, COLLECTING, DRAFT, PUBLISHED, CollectorSteps
from tacit.collector.store.party_copies import RESTORED
from tacit.device.numbers.coins import ReplayCoins
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffler.party_store import PartyStore, PhaseChange

MADE = rehearse(ReplayCoins(b"restored"))
ID = MADE.session.id


class Reached(Exception):
    """A shuffler was asked to sign: the session goes on as if nothing had been."""


class Shufflers:
    def sign(self, *_: object) -> str:
        raise Reached


@pytest.mark.parametrize(
    ("state", "progress", "goes_on"),
    [
        (DRAFT, {}, False),
        (PUBLISHED, {"invitations": True}, False),
        (PUBLISHED, {"invitations": True, "admitted": 1}, True),
        (PUBLISHED, {"invitations": False}, True),
    ],
)
def test_sessions_for_which_it_would_draw_anew_are_given_up(
    tmp_path: Path, state: str, progress: dict[str, Any], goes_on: bool
) -> None:
    party = PartyStore(tmp_path)
    first = PhaseChange(state=state, progress={**progress, RESTORED: True})
    party.add_session(MADE.signed, 0, state, first=first)
    steps, record = CollectorSteps(party, cast("Any", Shufflers()), cast("Any", None)), party.session(ID)
    assert record is not None
    if goes_on:
        with pytest.raises(Reached):
            steps.make(record)
    else:
        assert steps.make(record)
        after = party.session(ID)
        assert after is not None and (after.state, after.is_over) == (ABORTED, True)
        assert "restored from a backup" in after.ending["reason"]
        # All shufflers hear of it, so that devices can take part in the next one.
        assert [(each.phase, each.receiver) for each in party.waiting()] == [
            ("abort", f"shuffler_{number}") for number in (1, 2, 3)
        ]
    party.close()


def test_a_session_that_takes_reports_goes_on(tmp_path: Path) -> None:
    party = PartyStore(tmp_path)
    party.add_session(MADE.signed, 0, COLLECTING, first=PhaseChange(state=COLLECTING, progress={RESTORED: True}))
    steps, record = CollectorSteps(party, cast("Any", None), cast("Any", None)), party.session(ID)
    assert record is not None and not steps.make(record)
    letters: list[bytes] = []
    for _ in range(2):
        steps.close(record)
        letters += [kept.head + kept.body for each in party.waiting() if (kept := party.outgoing(each.number))]
    # Closed again, it says the same to everybody, byte for byte.
    assert len(set(letters)) == 3
    party.close()
