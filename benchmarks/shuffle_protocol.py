"""What the shuffle model costs, in CPU seconds of one core, all parties together.

    .venv/bin/python benchmarks/shuffle_protocol.py            everything, about a minute
    .venv/bin/python benchmarks/shuffle_protocol.py --quick    small sizes: does it run?

Targets: the osh shuffle of a million rows by three shufflers in under 20 s, peos-dgk of 2,000 rows in under 60 s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import numpy as np

from tacit.shuffle.crypto.dgk import draw_dgk_key
from tacit.shuffle.crypto.hpke import HpkeKey, seal
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.in_memory import shuffle_in_memory
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.opening import open_rows, sift
from tacit.shuffle.protocol.peos import PLAIN, PeosAlgebra
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffle.protocol.sealing import seal_upload, seal_word
from tacit.shuffle.protocol.shares import PlainAlgebra, as_words


def seconds(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = process_time()
    work()
    return process_time() - start


def streams(parties: int) -> list[AesStream]:
    return [AesStream.from_system() for _ in range(parties)]


def reshare(count: int, parties: int) -> float:
    """The shuffle alone: sharing before and opening after are not counted."""
    algebra, stream = PlainAlgebra(LAYOUTS["osh"]), AesStream.from_system()
    rows = stream.rows(count, 56)
    vectors = [(share,) for share in algebra.split((rows,), parties, stream)]
    outputs: dict[int, np.ndarray] = {}
    spent = seconds(lambda: outputs.update(shuffle_in_memory(vectors, algebra, streams(parties))))
    (out,) = algebra.join(count, None, list(outputs.values()))
    assert np.array_equal(np.sort(as_words(out)[:, 0]), np.sort(as_words(rows)[:, 0]))
    return spent


def sealing(count: int) -> None:
    """Seals and opens of a word, uploads of a client, and the collector's opening."""
    stream = AesStream.from_system()
    key, made = HpkeKey.draw(stream), rehearse(stream)
    sealed: list[bytes] = []
    spent = seconds(lambda: sealed.extend(seal(key.public, bytes(8), info=b"", coins=stream) for _ in range(count)))
    print(f"hpke: {count / spent:,.0f} seals of a word per CPU second, ", end="")
    spent = seconds(lambda: [key.open(item, info=b"") for item in sealed])
    print(f"{count / spent:,.0f} opens")
    spent = seconds(lambda: [seal_upload(made.session, 7, stream) for _ in range(count // 4)])
    print(f"osh: an upload takes a client {1000 * spent / (count // 4):.2f} ms")
    content = b"".join(seal_word(made.session, word, stream) for word in range(count))
    rows = np.frombuffer(content, np.uint8).reshape(count, 56)
    spent = seconds(lambda: sift(rows, *open_rows(made.session, made.keys[0], rows)))
    print(f"osh: the collector opens a million rows in {1e6 * spent / count:.0f} s")


def encrypted(count: int) -> float:
    """A whole peos-dgk shuffle, encryption by clients and decryption by the collector included."""
    stream = AesStream.from_system()
    key = draw_dgk_key(stream)
    words = stream.array(count)

    def run() -> None:
        *shares, last = PLAIN.split((words.view(np.uint8).reshape(count, 8),), 3, stream)
        cipher = key.public.encrypt_words(as_words(last).reshape(-1), stream)
        nothing = np.zeros((count, 0), np.uint8)
        vectors = [*((share, nothing) for share in shares), (np.zeros_like(last), cipher)]
        outputs = list(shuffle_in_memory(vectors, PeosAlgebra(key.public), streams(3)).values())
        opened, fine = key.decrypt_rows(next(rows for rows in outputs if rows.shape[1] != 8))
        plain = PLAIN.join(count, None, [rows for rows in outputs if rows.shape[1] == 8])[0]
        assert fine.all() and np.array_equal(np.sort(opened + as_words(plain).reshape(-1)), np.sort(words))

    return seconds(run)


def main() -> None:
    quick = "--quick" in sys.argv
    for count, parties in [(10_000, 3)] if quick else [(100_000, 3), (1_000_000, 3), (100_000, 5)]:
        print(f"osh: {parties} shufflers shuffle {count:,} rows in {reshare(count, parties):.1f} s")
    sealing(400 if quick else 4000)
    rows = 20 if quick else 2000
    print(f"peos-dgk: 3 shufflers, {rows:,} clients and the collector take {encrypted(rows):.1f} s")


if __name__ == "__main__":
    main()
