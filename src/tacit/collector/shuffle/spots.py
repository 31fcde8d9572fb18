"""Spot checks: reports of the collector's own that go in like any other, and must come out again.

A shuffler that replaces a share phi of rows is not noticed by s of them with probability (1 - phi)^s. They are drawn
and stored before uploads begin, sent one by one while the session is open, and taken out before anything is counted.
"""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.client.sealed.posting import SealedPost
from tacit.client.sealed.sealing import SealedReport, seal_word_for
from tacit.client.transport import Transport
from tacit.collector.shuffle.neighbours import Neighbours
from tacit.device.numbers.coins import Coins
from tacit.shuffle.protocol.roster import took_part
from tacit.shuffle.protocol.session import ShuffleSession

KEPT = "spot checks"
_TOKEN_BYTES = 32


@dataclass(frozen=True)
class SpotCheck:
    """A known word, sealed; `token` admits it where the collection is by invitation."""

    word: int
    sealed: SealedReport
    token: bytes

    def to_json(self) -> dict[str, Any]:
        """The form that is kept until the session ends."""
        return {"word": f"{self.word:016x}", "sealed": self.sealed.to_json(), "token": self.token.hex()}


def draw_tokens(session: ShuffleSession) -> list[bytes]:
    """Tokens that admit spot checks, one each."""
    return [secrets.token_bytes(_TOKEN_BYTES) for _ in range(session.spot_checks)]


def draw_spots(session: ShuffleSession, tokens: Sequence[bytes], coins: Coins) -> bytes:
    """Seal as many words as the session has spot checks; returns what is kept of them."""
    # Words that differ, so that each is found once; any word is some report, and nobody can tell these from others.
    words = set[int]()
    while len(words) < session.spot_checks:
        words.add(coins.word())
    given = tokens or [b""] * session.spot_checks
    spots = [
        SpotCheck(word, seal_word_for(session, word, coins), token)
        for word, token in zip(sorted(words), given, strict=True)
    ]
    secrets.SystemRandom().shuffle(spots)
    return json.dumps([spot.to_json() for spot in spots]).encode()


def read_spots(content: bytes | None) -> list[SpotCheck]:
    """Spot checks as they were kept."""
    return [
        SpotCheck(int(item["word"], 16), SealedReport.from_json(item["sealed"]), bytes.fromhex(item["token"]))
        for item in json.loads(content or b"[]")
    ]


class SpotSender:
    """Sends the spot checks of one session; the same one twice is a repetition that shufflers know."""

    def __init__(self, spots: Sequence[SpotCheck], transport: Transport, coins: Coins, begins: float, ends: float):
        """Spread them over the time from `begins` to `ends`."""
        self._left = list(spots)
        self._post, self._begins, self._ends = SealedPost(transport, coins), begins, ends
        self._total = len(spots)

    def send_due(self, now: float) -> None:
        """Send what is due at a time, so that all of them are out when the session closes."""
        span = max(1.0, self._ends - self._begins)
        due = self._total * min(1.0, (now - self._begins) / span)
        while self._left and self._total - len(self._left) < due and self._send_one():
            pass

    def send_all(self) -> bool:
        """Send the rest; False if one could not be sent."""
        while self._left:
            if not self._send_one():
                return False
        return True

    def _send_one(self) -> bool:
        if self._post.send(self._left[-1].sealed, self._left[-1].token).state != "sent":
            return False
        # Only what has arrived is struck off; after a restart all are sent again, and known again.
        self._left.pop()
        return True


def included_words(
    session: ShuffleSession, spots: Sequence[SpotCheck], root: str, n: int, neighbours: Neighbours
) -> list[int]:
    """The words of the spot checks whose slots shufflers show to be among those that they signed."""
    return [spot.word for spot in spots if _is_included(session, spot, root, n, neighbours)]


def _is_included(session: ShuffleSession, spot: SpotCheck, root: str, n: int, neighbours: Neighbours) -> bool:
    # Asked only now, when the rows are here: before, it would tell shufflers which slots not to touch.
    for party in session.shufflers:
        proof = neighbours.proof(party.url, session.id, spot.sealed.slot)
        try:
            if proof is not None and proof["slot"] == spot.sealed.slot and took_part(root, n, proof):
                return True
        except (KeyError, TypeError, ValueError):
            continue
    return False
