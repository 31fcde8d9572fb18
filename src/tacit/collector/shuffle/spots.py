"""Spot checks: reports of the collector's own that go in like any other, and must come out again.

A shuffler that replaces a share phi of rows is not noticed by s of them with probability (1 - phi)^s, if it cannot tell
them from others. They are drawn and stored before uploads begin, each with a random place among the first n_min
respondents, sent when so many have come, and taken out before anything is counted.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tacit.client.sealed.posting import SealedPost
from tacit.client.sealed.sealing import SealedReport, seal_word_for
from tacit.collector.shuffle.neighbours import Neighbours
from tacit.device.numbers.coins import Coins
from tacit.shuffle.protocol.leaves import SlotLeaves
from tacit.shuffle.protocol.session import RESHARING, ShuffleSession
from tacit.shuffler.party_store import PartyStore, PhaseChange, SessionRecord

KEPT = "spot checks"
PLANTED = "planted"
"""In the progress of a session: how many of them have been sent."""
DUE_STEPS = 1 << 32
_TOKEN_BYTES = 32


@dataclass(frozen=True)
class SpotCheck:
    """A known word, sealed; `token` admits it where the collection is by invitation."""

    word: int
    sealed: SealedReport
    token: bytes
    due: int
    """It is sent when due/DUE_STEPS of the respondents that are needed at least have come."""

    def to_json(self) -> dict[str, Any]:
        """The form that is kept until the session ends."""
        named = {"word": f"{self.word:016x}", "sealed": self.sealed.to_json(), "token": self.token.hex()}
        return named | {"due": self.due}


def draw_tokens(session: ShuffleSession) -> list[bytes]:
    """Tokens that admit spot checks, one each."""
    return [secrets.token_bytes(_TOKEN_BYTES) for _ in range(session.spot_checks)]


def draw_spots(session: ShuffleSession, tokens: Sequence[bytes], coins: Coins) -> bytes:
    """Seal one word per spot check of the session; returns the records to store."""
    # Words that differ, so that each is found once; any word is some report, and nobody can tell these from others.
    words = set[int]()
    while len(words) < session.spot_checks:
        words.add(coins.word())
    given = tokens or [b""] * session.spot_checks
    # Independent places: evenly spaced ones could be foretold by whoever has seen the first two.
    spots = [
        SpotCheck(word, seal_word_for(session, word, coins), token, secrets.randbelow(DUE_STEPS))
        for word, token in zip(words, given, strict=True)
    ]
    spots.sort(key=lambda spot: spot.due)
    return json.dumps([spot.to_json() for spot in spots]).encode()


def read_spots(content: bytes | None) -> list[SpotCheck]:
    """Spot checks as they were kept."""
    return [
        SpotCheck(
            int(item["word"], 16), SealedReport.from_json(item["sealed"]), bytes.fromhex(item["token"]), item["due"]
        )
        for item in json.loads(content or b"[]")
    ]


@dataclass(eq=False)
class SpotPlanter:
    """Sends spot checks while a session is open, in random places among the uploads of respondents."""

    party: PartyStore
    neighbours: Neighbours
    post: SealedPost
    _drawn: dict[str, list[SpotCheck]] = field(default_factory=dict[str, list[SpotCheck]])

    def plant(self, record: SessionRecord) -> bool:
        """Send the spot checks that are due; False if one could not be sent.

        By people and not by time: whoever closes a session as soon as enough have answered has planted all of them.
        What is not due when it is closed never goes out, as all at once it would be known for what it is.
        """
        session, planted = record.session, int(record.progress.get(PLANTED, 0))
        if planted >= session.spot_checks:
            return True
        if session.id not in self._drawn:
            self._drawn[session.id] = read_spots(self.party.kept(session.id, KEPT))
        people = self._uploads(session) - planted
        for spot in self._drawn[session.id][planted:]:
            if spot.due * session.n_min >= people * DUE_STEPS:
                return True
            if self.post.send(spot.sealed, spot.token).state != "sent":
                return False
            planted += 1
            self._note(session.id, planted)
        return True

    def _uploads(self, session: ShuffleSession) -> int:
        """How many uploads there are: what most shufflers say, so that one alone cannot hold spot checks back."""
        takers = session.shufflers if session.mode in RESHARING else session.shufflers[:1]
        told = sorted(self.neighbours.uploads(each.url, session.id) or 0 for each in takers)
        return told[len(told) // 2]

    def _note(self, session: str, planted: int) -> None:
        """Strike off what has arrived: sent again after every restart, spot checks would be known by that."""
        with self.party.alone():
            record = self.party.session(session)
            assert record is not None
            progress = {**record.progress, PLANTED: planted}
            self.party.commit(session, PhaseChange(state=record.state, progress=progress))


def included_words(spots: Sequence[SpotCheck], leaves: SlotLeaves) -> list[int]:
    """The words of the spot checks whose slots are among those that shufflers signed for."""
    # Looked up here and asked of nobody: a question would tell shufflers which slots are the collector's.
    return [spot.word for spot in spots if leaves.proof(bytes.fromhex(spot.sealed.slot)) is not None]
