"""Fake reports (message M3): uniform words among the real ones.

Even somebody who knows the reports of all other respondents then does not know what remains. Fakes stand after the rows
of the respondents, in an order that all shufflers know, and need no message: the shufflers' own vectors already are
shares of them.

In mode osh shuffler j seals whole fakes; the others' shares of these rows are zero. It knows its own fakes and nobody
else's, so that fakes of colluding shufflers hide nothing: a session has so many that those of the honest ones suffice
(`ShuffleSession.fakes_each`). In mode osh-z every shuffler adds a uniform summand, and a fake is uniform and unknown if
one of them is honest.
"""

import numpy as np

from tacit.arrays import U8
from tacit.errors import InvalidSpec
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.sealing import SEALED_WORD_BYTES, seal_word
from tacit.shuffle.protocol.session import OSH, OSH_Z, ShuffleSession


def fake_shares(session: ShuffleSession, party: int, stream: AesStream) -> U8:
    """One shuffler's shares of all fake rows of a session in mode osh or osh-z."""
    if session.mode not in (OSH, OSH_Z):
        raise InvalidSpec(f"fakes of mode {session.mode} are made elsewhere: in a hop, or beside ciphertexts")
    rows = np.zeros((session.fake_rows, LAYOUTS[session.mode].width), np.uint8)
    if session.mode == OSH_Z:
        rows[:, SEALED_WORD_BYTES:] = stream.rows(len(rows), 8)
    # Row i is sealed by shuffler 1 + i mod r.
    for i in range(party - 1, len(rows), session.shuffler_count):
        rows[i, :SEALED_WORD_BYTES] = np.frombuffer(seal_word(session, stream.word(), stream), np.uint8)
    return rows
