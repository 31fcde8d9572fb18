"""Spot checks go in among respondents: in random places, by people and not by time, and never twice."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tacit.collector.shuffle.spots import DUE_STEPS, KEPT, PLANTED, SpotPlanter, draw_spots, included_words, read_spots
from tacit.device.numbers.coins import ReplayCoins
from tacit.shuffle.protocol.leaves import SlotLeaves
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffle.protocol.roster import Roster
from tacit.shuffler.party_store import PartyStore, PhaseChange, SessionRecord

MADE = rehearse(ReplayCoins(b"spots"), n_min=100, spot_checks=40)
ID = MADE.session.id


class Post:
    """Remembers what was sent; nothing arrives while it is broken."""

    def __init__(self) -> None:
        self.sent, self.broken = list[str](), False

    def send(self, sealed: Any, token: bytes) -> Any:
        if not self.broken:
            self.sent.append(sealed.slot)
        return SimpleNamespace(state="pending" if self.broken else "sent")


class Town:
    """A session with as many uploads as a test says, and shufflers that tell their number."""

    def __init__(self, folder: Path) -> None:
        self.party, self.post, self.told = PartyStore(folder), Post(), [0, 0, 0]
        kept = {KEPT: draw_spots(MADE.session, [], ReplayCoins(b"words"))}
        self.party.add_session(MADE.signed, 0, "COLLECTING", first=PhaseChange(state="COLLECTING", keep=kept))
        self.spots = read_spots(kept[KEPT])

    @property
    def record(self) -> SessionRecord:
        record = self.party.session(ID)
        assert record is not None
        return record

    def uploads(self, url: str, session: str) -> int:
        numbers = [party.url for party in MADE.session.shufflers]
        return self.told[numbers.index(url)] + len(self.post.sent)

    def plant(self) -> bool:
        # A planter of its own every time, as after a restart.
        return SpotPlanter(self.party, cast("Any", self), cast("Any", self.post)).plant(self.record)


@pytest.fixture
def town(tmp_path: Path) -> Any:
    made = Town(tmp_path)
    yield made
    made.party.close()


def test_they_come_with_the_respondents_and_all_of_them_before_there_are_enough(town: Town) -> None:
    assert town.plant() and town.post.sent == []
    counts = list[int]()
    for people in range(101):
        town.told = [people] * 3
        assert town.plant()
        counts.append(len(town.post.sent))
    # Each when its place was reached, in the order of places, once.
    assert counts == [sum(spot.due * 100 < people * DUE_STEPS for spot in town.spots) for people in range(101)]
    assert town.post.sent == [spot.sealed.slot for spot in town.spots]
    assert counts[-1] == 40 and town.record.progress[PLANTED] == 40
    # Forty places among a hundred, drawn independently: that one half has them all happens in 2 of 2^40 runs.
    assert 0 < counts[50] < 40


def test_one_shuffler_cannot_hold_them_back_or_call_them_out(town: Town) -> None:
    town.told = [0, 0, 1000]
    assert town.plant() and town.post.sent == []
    town.told = [0, 100, 100]
    assert town.plant() and len(town.post.sent) == 40


def test_what_does_not_arrive_is_tried_again(town: Town) -> None:
    town.told, town.post.broken = [100] * 3, True
    assert not town.plant() and PLANTED not in town.record.progress
    town.post.broken = False
    assert town.plant() and len(town.post.sent) == 40


def test_only_those_whose_slots_were_signed_for_are_looked_for(town: Town) -> None:
    slots = [bytes.fromhex(spot.sealed.slot) for spot in town.spots]
    leaves = SlotLeaves(Roster.of(slots[:7]).leaves)
    assert included_words(town.spots, leaves) == [spot.word for spot in town.spots[:7]]
