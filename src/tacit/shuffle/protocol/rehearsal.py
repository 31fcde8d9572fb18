"""A made-up session with the keys of all its parties, for examples, benchmarks and tests. Nothing of it is secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import U8
from tacit.device.numbers.coins import Coins
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.fakes import fake_shares
from tacit.shuffle.protocol.in_memory import Picker, oldest_first, shuffle_in_memory
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.opening import OpenedRows, combine, open_rows, sift
from tacit.shuffle.protocol.parties import party_name
from tacit.shuffle.protocol.roster import Roster, agree
from tacit.shuffle.protocol.sealing import ShuffleUpload, open_part
from tacit.shuffle.protocol.session import ShuffleParty, ShuffleSession, SignedSession
from tacit.shuffle.protocol.shares import PlainAlgebra
from tacit.shuffle.protocol.words import WordRule


@dataclass(frozen=True)
class Rehearsed:
    """A signed session and every private key of it, by the number of the party."""

    signed: SignedSession
    identities: tuple[Identity, ...]
    keys: tuple[HpkeKey, ...]

    @property
    def session(self) -> ShuffleSession:
        """The session document."""
        return self.signed.session

    @property
    def pinned(self) -> dict[str, bytes]:
        """The keys that a client would have pinned."""
        return {party_name(i): identity.public for i, identity in enumerate(self.identities)}


def rehearse(coins: Coins, *, mode: str = "osh", shufflers: int = 3, **changes: Any) -> Rehearsed:
    """A session with fresh keys; `changes` replace fields of the document.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> made = rehearse(ReplayCoins(b"parties"))
    >>> made.signed.verify(made.pinned).shuffler_count
    3
    """
    identities = tuple(Identity.draw(coins) for _ in range(shufflers + 1))
    keys = tuple(HpkeKey.draw(coins) for _ in range(shufflers + 1))
    parties = [
        ShuffleParty(
            operator=f"operator {i}",
            url=f"https://{'collector' if i == 0 else f'shuffler-{i}'}.example",
            identity=identity.public.hex(),
            seal_key=key.public.hex(),
        )
        for i, (identity, key) in enumerate(zip(identities, keys, strict=True))
    ]
    fields: dict[str, Any] = {
        "collection": "00" * 32,
        "mode": mode,
        "collector": parties[0],
        "shufflers": tuple(parties[1:]),
        "words": WordRule(10, seeded=False),
        "n_min": 2,
        "n_max": 1 << 30,
        "fakes": 0,
        "spot_checks": 1 if mode in ("osh-z", "peos-dgk") else 0,
        "closes": 0,
        "retention_seconds": 0,
        "certificate": {"epsilon": "1"},
    }
    session = ShuffleSession(**{**fields, **changes})
    signatures = {party_name(i): session.sign(identity) for i, identity in enumerate(identities)}
    return Rehearsed(SignedSession(session=session, signatures=signatures), identities, keys)


def shares_of(made: Rehearsed, party: int, roster: Roster, uploads: Sequence[ShuffleUpload], stream: AesStream) -> U8:
    """The vector with which a shuffler enters the first round: respondents in the order of the roster, then fakes."""
    session, by_slot = made.session, {upload.slot: upload for upload in uploads}
    opened = (
        open_part(session, party, made.keys[party], slot, by_slot[slot].parts[party - 1]) for slot in roster.slots
    )
    rows = np.frombuffer(b"".join(opened), np.uint8).reshape(roster.n, LAYOUTS[session.mode].width)
    return np.concatenate([rows, fake_shares(session, party, stream)])


def run(
    made: Rehearsed, uploads: Sequence[ShuffleUpload], streams: Sequence[AesStream], *, pick: Picker = oldest_first
) -> tuple[Roster, OpenedRows]:
    """A whole session in mode osh or osh-z, from uploads to opened rows; `streams` has one per shuffler."""
    session = made.session
    roster = agree(session, [b"".join(upload.slot for upload in uploads)] * session.shuffler_count)
    numbered = list(enumerate(streams, start=1))
    # Every shuffler opens its own parts; nothing passes between them but through the machines.
    vectors = [(shares_of(made, party, roster, uploads, stream),) for party, stream in numbered]
    algebra = PlainAlgebra(LAYOUTS[session.mode])
    outputs = shuffle_in_memory(vectors, algebra, streams, session=session.id_bytes, pick=pick)
    rows = combine(session, outputs, roster.n + session.fake_rows)
    words, opened = open_rows(session, made.keys[0], rows)
    return roster, sift(rows, words, opened)
