"""The random stream: AES-256-CTR to the byte, one stream whichever way it is read, and never copied."""

import copy
import pickle

import numpy as np
import pytest

from tacit.errors import InvalidSpec
from tacit.shuffle.crypto.stream import AesStream

KEY = bytes(range(32))


def test_the_stream_is_aes_of_a_counter():
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    blocks = b"".join(i.to_bytes(16, "big") for i in range(5))
    expected = Cipher(AES(KEY), ECB()).encryptor().update(blocks)
    assert AesStream(KEY).rows(5, 16).tobytes() == expected


@pytest.mark.parametrize("size", [1, 7, 8, 56, (1 << 20) - 1, (1 << 20) + 9])
def test_words_rows_and_arrays_are_cut_from_one_stream(size: int):
    whole = AesStream(KEY).rows(1, 2 * size + 32).tobytes()
    stream = AesStream(KEY)
    stream.peek(2)  # Looked at, not taken: it must come again.
    first = stream.words(1) + stream.rows(1, size).tobytes()
    assert first + stream.array(1).tobytes() + stream.rows(size, 1).tobytes() == whole[: 2 * size + 16]


def test_nothing_is_drawn_for_no_rows():
    stream = AesStream(KEY)
    assert stream.rows(0, 56).shape == (0, 56)
    assert stream.array(1)[0] == AesStream(KEY).array(1)[0]


def test_streams_of_the_system_differ_and_are_the_only_secure_ones():
    one, two = AesStream.from_system(), AesStream.from_system()
    assert one.secure and not AesStream(KEY).secure
    assert not np.array_equal(one.rows(1, 32), two.rows(1, 32))


def test_a_stream_is_never_copied(monkeypatch: pytest.MonkeyPatch):
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="repeat its bytes"):
            copied(AesStream(KEY))
    own = AesStream.from_system()
    own.words(1)
    with monkeypatch.context() as forked:
        forked.setattr("os.getpid", lambda: -1)
        for draw in (lambda: own.words(1), lambda: own.rows(1, 8)):
            with pytest.raises(TypeError, match="after a fork"):
                draw()
    with pytest.raises(InvalidSpec, match="31 bytes"):
        AesStream(bytes(31))
