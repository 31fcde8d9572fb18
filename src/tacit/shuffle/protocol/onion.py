"""The sequential shuffle (modes ss and relay): a chain of shufflers, each of which peels a layer and permutes.

One honest hop hides the order, but a hop can replace rows; only spot checks speak against that. A hop keeps to:

- onions of another size than the session's are refused, duplicates of the 32-byte key in front are dropped: one onion
  replayed k times would come out as k equal reports, and be found;
- it takes and sends whole batches, never what happens to be there at some time;
- in - duplicates - failures + fakes = out, which it signs with the roots of what it took and sent.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> from tacit.shuffle.protocol.rehearsal import rehearse
    >>> from tacit.shuffle.protocol.sealing import seal_onion
    >>> made, coins = rehearse(ReplayCoins(b"chain"), mode="ss"), ReplayCoins(b"clients")
    >>> rows = [seal_onion(made.session, word, coins) for word in (5, 6, 7)]
    >>> for party in (1, 2, 3):
    ...     passed = pass_on(made.session, party, made.keys[party], rows, AesStream(bytes(32)))
    ...     rows = passed.rows
    >>> len(rows[0]), passed.counts["sent"]
    (56, 3)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.arrays import U8
from tacit.errors import OpenFailed, ProtocolViolation, SessionAborted
from tacit.shuffle.crypto.hpke import ENC_BYTES, HpkeKey
from tacit.shuffle.crypto.merkle import merkle_root
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.crypto.stream import SEED_BYTES, AesStream
from tacit.shuffle.protocol.parties import party_name
from tacit.shuffle.protocol.permutation import permutation
from tacit.shuffle.protocol.sealing import SEALED_WORD_BYTES, hop_info, onion_bytes, seal_onion
from tacit.shuffle.protocol.session import ShuffleSession
from tacit.shuffle.protocol.transcript import HOP_LABEL


@dataclass(frozen=True)
class Passed:
    """What a hop sends on, in its new order, and what it signs about it."""

    rows: list[bytes]
    counts: dict[str, Any]

    def sign(self, identity: Identity) -> dict[str, Any]:
        """The signed statement of the hop."""
        return {**self.counts, "signature": identity.sign(HOP_LABEL, self.counts)}


def pass_on(
    session: ShuffleSession, party: int, key: HpkeKey, onions: Sequence[bytes], stream: AesStream, *, attempt: int = 1
) -> Passed:
    """Take a whole batch, peel it, add fakes for the remaining hops, and permute; SessionAborted if it is too small."""
    size = onion_bytes(session, party)
    if any(len(onion) != size for onion in onions):
        raise ProtocolViolation(f"{party_name(party)}: it was given onions of another size than {size} bytes")
    # Reversed, so that of several the first is kept: a copy must not displace the original.
    distinct = list({onion[:ENC_BYTES]: onion for onion in reversed(onions)}.values())
    peeled = [inner for onion in reversed(distinct) if (inner := _peeled(session, party, key, onion)) is not None]
    # Earlier hops have added fakes, which are nobody to hide among for who made them.
    added = (party - 1) * session.fakes_each
    if len(peeled) - added - session.spot_checks < session.n_min:
        raise SessionAborted(f"{party_name(party)}: fewer than {session.n_min} respondents are left; nothing was sent")
    fakes = [seal_onion(session, stream.word(), stream, first=party + 1) for _ in range(session.fakes_each)]
    rows = [*peeled, *fakes]
    order = permutation(stream.rows(1, SEED_BYTES).tobytes(), len(rows))
    sent: list[bytes] = [rows[i] for i in order]
    counts = {
        "session": session.id,
        "attempt": attempt,
        "by": party_name(party),
        "taken": len(onions),
        "duplicates": len(onions) - len(distinct),
        "failures": len(distinct) - len(peeled),
        "fakes": len(fakes),
        "sent": len(sent),
        "root_in": merkle_root(onions).hex(),
        "root_out": merkle_root(sent).hex(),
    }
    return Passed(sent, counts)


def _peeled(session: ShuffleSession, party: int, key: HpkeKey, onion: bytes) -> bytes | None:
    try:
        return key.open(onion, info=hop_info(session, party))
    except OpenFailed:
        return None


def chain_rows(rows: Sequence[bytes]) -> U8:
    """What the last hop sends, as the rows that the collector opens."""
    return np.frombuffer(b"".join(rows), np.uint8).reshape(len(rows), SEALED_WORD_BYTES)
