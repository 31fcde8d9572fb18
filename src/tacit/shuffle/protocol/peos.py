"""The private encrypted oblivious shuffle (mode peos-dgk): words are shared modulo 2^64, one share as ciphertexts.

At any time one shuffler holds its part under the collector's key, so that even all shufflers together cannot read the
words (Wang's dissertation, section 9.5.1, algorithm 5). It is the machine of `resharing` with another algebra: a vector
is plain words and, at the holder, ciphertexts beside them that count as further summands. When the holder splits its
vector, all summands but one are plain and random; the last is the ciphertexts, with everything that is missing added,
re-randomised, and it goes to a random one of the receivers, who is the next holder.

Everything is malleable: a shuffler can shift words unseen. Sessions have spot checks for that; see mode osh.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from tacit.arrays import U8, U64, Mask
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.dgk import DgkPrivateKey, DgkPublicKey
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.opening import vectors_of
from tacit.shuffle.protocol.sealing import CIPHERTEXT_BYTES
from tacit.shuffle.protocol.session import PEOS, ShuffleSession
from tacit.shuffle.protocol.shares import Algebra, Body, PlainAlgebra, Vector, as_words

PLAIN = PlainAlgebra(LAYOUTS[PEOS])


class PeosAlgebra(Algebra):
    """Vectors of plain words (first matrix) and ciphertexts (second matrix; without columns at all but the holder)."""

    def __init__(self, public: DgkPublicKey) -> None:
        """Hold the collector's public key."""
        self.public = public

    def split(self, vector: Vector, parts: int, stream: AesStream) -> list[U8]:
        """Plain summands, but at the holder one of them, chosen at random, is encrypted and completes the sum."""
        plain, cipher = vector
        if not cipher.shape[1]:
            return PLAIN.split((plain,), parts, stream)
        *masks, rest = PLAIN.split((plain,), parts, stream)
        # The next holder is drawn, so that no fixed party sees the ciphertexts in every round.
        masks.insert(stream.uniform(parts), self._folded(rest, cipher, stream))
        return masks

    def join(self, count: int, own: Vector | None, bodies: Sequence[U8]) -> Vector:
        """Plain parts add up; there must be at most one part of ciphertexts among all."""
        ciphers = [body for body in bodies if body.shape[1] == self.public.width]
        # A number with symbol -1 or a factor of n would mark a row, or tell something when it is decrypted.
        for cipher in ciphers:
            self.public.check_rows(cipher, "the holder of the ciphertexts")
        held = ciphers + ([own[1]] if own and own[1].shape[1] else [])
        if len(held) > 1:
            raise ProtocolViolation("peos: two parties claim to hold the ciphertexts; abort")
        words = [body for body in bodies if body.shape[1] != self.public.width]
        (plain,) = PLAIN.join(count, (own[0],) if own else None, words)
        return plain, held[0] if held else np.zeros((count, 0), np.uint8)

    def output(self, vector: Vector, stream: AesStream) -> U8:
        """Plain words, or the ciphertexts with the own words added, re-randomised once more."""
        plain, cipher = vector
        return self._folded(plain, cipher, stream) if cipher.shape[1] else plain

    def accepts(self, body: U8) -> bool:
        """Plain words or ciphertexts."""
        return body.shape[1] in (PLAIN.layout.width, self.public.width)

    def _folded(self, plain: U8, cipher: U8, stream: AesStream) -> U8:
        return self.public.add_words(cipher, as_words(plain).reshape(-1), stream)


def is_share(session: ShuffleSession, party: int, share: bytes, public: DgkPublicKey) -> bool:
    """Whether a share that a shuffler found in an upload can be used; others are dropped, like what does not open."""
    if party < session.shuffler_count:
        return len(share) == PLAIN.layout.width
    return len(share) == public.width and public.is_ciphertext(public.read(share))


def first_vector(session: ShuffleSession, party: int, shares: U8) -> Vector:
    """The respondents' shares as a shuffler holds them before the first round; the last one has ciphertexts."""
    count = len(shares)
    if party < session.shuffler_count:
        return shares, np.zeros((count, 0), np.uint8)
    return np.zeros((count, PLAIN.layout.width), np.uint8), shares


def with_fakes(session: ShuffleSession, party: int, vector: Vector, public: DgkPublicKey, stream: AesStream) -> Vector:
    """A vector with a uniform share of every fake behind it: fakes are uniform if one shuffler's share is."""
    plain, cipher = vector
    fakes = stream.rows(session.fake_rows, PLAIN.layout.width)
    if party < session.shuffler_count:
        return np.concatenate([plain, fakes]), np.zeros((len(plain) + len(fakes), 0), np.uint8)
    sealed = public.encrypt_words(as_words(fakes).reshape(-1), stream)
    return np.concatenate([plain, np.zeros_like(fakes)]), np.concatenate([cipher, sealed])


def combine_encrypted(session: ShuffleSession, outputs: Mapping[int, Body], count: int) -> U8:
    """The permuted rows, from the vectors of all t last hiders: a ciphertext, and behind it the sum of all words."""
    vectors = vectors_of(session, outputs, count, [PLAIN.layout.width, CIPHERTEXT_BYTES])
    ciphers = [rows for rows in vectors if rows.shape[1] == CIPHERTEXT_BYTES]
    if count and len(ciphers) != 1:
        raise ProtocolViolation("output: exactly one vector must be of ciphertexts, the others of words")
    (plain,) = PLAIN.join(count, None, [rows for rows in vectors if rows.shape[1] != CIPHERTEXT_BYTES])
    return np.concatenate([*ciphers, plain], axis=1)


def open_encrypted(key: DgkPrivateKey, rows: U8) -> tuple[U64, Mask]:
    """The words of combined rows, and which of them decrypted; rows can be opened in pieces, by several processes."""
    words, opened = key.decrypt_rows(rows[:, : key.public.width])
    return words + as_words(rows[:, key.public.width :]).reshape(-1), opened
