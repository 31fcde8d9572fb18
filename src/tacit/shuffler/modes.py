"""What differs between the modes of a shuffle, as a shuffler sees them: uploads, first vectors, and how they add up."""

import numpy as np

from tacit.arrays import U8
from tacit.errors import OpenFailed
from tacit.shuffle.crypto.dgk import DgkPublicKey, public_key_of
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.fakes import fake_shares
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.peos import PeosAlgebra, is_share, with_fakes
from tacit.shuffle.protocol.peos import first_vector as first_encrypted_vector
from tacit.shuffle.protocol.sealing import SLOT_BYTES, open_part, part_bytes
from tacit.shuffle.protocol.session import PEOS, RESHARING, ShuffleSession
from tacit.shuffle.protocol.shares import Algebra, PlainAlgebra, Vector
from tacit.shuffler.admission import TOKEN_BYTES
from tacit.shuffler.party_uploads import NewUpload

WRONG_SIZE, UNREADABLE = "wrong_size", "unreadable"


def takes_uploads(session: ShuffleSession, party: int) -> bool:
    """Whether respondents send something to a shuffler: to all who hold shares, and to the first of a chain."""
    return session.mode in RESHARING or party == 1


def upload_bytes(session: ShuffleSession, party: int) -> int:
    """Bytes of an upload without a token: the slot and the sealed part."""
    return SLOT_BYTES + part_bytes(session)[party - 1]


def read_upload(session: ShuffleSession, party: int, key: HpkeKey, body: bytes) -> NewUpload:
    """An upload as it arrived, opened; what cannot be used has a refusal, which is only counted."""
    size = upload_bytes(session, party) if takes_uploads(session, party) else 0
    token = body[size:]
    if not size or len(body) not in (size, size + TOKEN_BYTES):
        return NewUpload(session.id, b"", b"", refusal=WRONG_SIZE)
    slot, part = body[:SLOT_BYTES], body[SLOT_BYTES:size]
    if session.mode not in RESHARING:
        # Onions are peeled when the batch is complete, so that nothing is known before.
        return NewUpload(session.id, slot, part, token)
    try:
        share = open_part(session, party, key, slot, part)
    except OpenFailed:
        return NewUpload(session.id, b"", b"", refusal=UNREADABLE)
    # A ciphertext outside the group would fail for the whole vector, rounds later; here it costs one upload.
    if session.mode == PEOS and not is_share(session, party, share, public_key(session)):
        return NewUpload(session.id, b"", b"", refusal=UNREADABLE)
    return NewUpload(session.id, slot, share, token)


def public_key(session: ShuffleSession) -> DgkPublicKey:
    """The collector's key of mode peos-dgk."""
    return public_key_of(session.dgk or {})


def algebra_of(session: ShuffleSession) -> Algebra:
    """How vectors of a session add up."""
    return PeosAlgebra(public_key(session)) if session.mode == PEOS else PlainAlgebra(LAYOUTS[session.mode])


def first_vector(session: ShuffleSession, party: int, shares: U8, stream: AesStream) -> Vector:
    """The shares of respondents in the order of the roster, then those of the fakes (M3)."""
    if session.mode == PEOS:
        vector = first_encrypted_vector(session, party, shares)
        return with_fakes(session, party, vector, public_key(session), stream)
    return (np.concatenate([shares, fake_shares(session, party, stream)]),)
