"""The C core against its numpy twin, bit for bit, and both against integers of arbitrary size."""

from hashlib import sha256, shake_128
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tacit import kernels
from tacit.device.numbers.coins import ReplayCoins
from tacit.device.numbers.hashing import bucket
from tacit.device.numbers.hashing import hash32 as device_hash32
from tacit.kernels import twin
from tacit.kernels.native import Native, load
from tacit.simulate.coins import SimulationCoins

Array = npt.NDArray[Any]

LIBRARY = load()
native = Native(LIBRARY) if LIBRARY is not None else None
compiled = pytest.mark.skipif(native is None, reason="the C core is not built, or TACIT_KERNELS=numpy")

SIZES = [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 1000]
COUNTS = [0, 1, 2, 5, 31, 255, 256, 257, 1021]


def core() -> Native:
    assert native is not None
    return native


def same(a: Array, b: Array) -> None:
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert np.array_equal(a, b)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def some_weights(n: int, seed: int = 9) -> Array:
    """Large weights of both signs."""
    return rng(seed).integers(-(1 << 30), 1 << 30, size=n)


def hashed_reports(n: int, g: int) -> tuple[Array, Array]:
    return rng(n).integers(1 << 32, size=n, dtype=np.uint32), rng(g).integers(g, size=n).astype(np.uint32)


@compiled
@pytest.mark.parametrize("d", SIZES)
def test_hash_support_on_odd_sizes(d: int):
    for n in COUNTS:
        g = 2 + (n + d) % 9
        seeds, buckets = hashed_reports(n, g)
        candidates = np.arange(d, dtype=np.uint64)
        for weights in (None, some_weights(n)):
            same(core().hash_support(seeds, buckets, g, candidates, weights),
                 twin.hash_support(seeds, buckets, g, candidates, weights))  # fmt: skip


@pytest.mark.slow_cases("3000")
@compiled
@pytest.mark.parametrize("step", [1, 40, 48, 729, 1024, 3000])
def test_hash_support_of_runs_of_candidates_with_one_upper_half(step: int):
    """Extensions of a few prefixes: long runs share the words of the seeds, short ones and ragged ends do not."""
    seeds, buckets = hashed_reports(1503, 56)
    prefixes = np.sort(rng(step).integers(1 << 50, size=4, dtype=np.uint64))
    candidates = (prefixes[:, None] * np.uint64(step) + np.arange(step, dtype=np.uint64)).reshape(-1)
    # Crosses from one upper half to the next.
    edge = np.arange((1 << 33) - step, (1 << 33) + 2 * step, dtype=np.uint64)
    # The twin counts every candidate by itself: its sums are put into other orders instead of being counted again.
    inner, outer = (twin.hash_support(seeds, buckets, 56, chosen, None) for chosen in (candidates, edge))
    for chosen, expected in (
        (candidates, inner),
        (edge, outer),
        (candidates[::-1], inner[::-1]),
        (np.concatenate([edge, candidates, edge]), np.concatenate([outer, inner, outer])),
    ):
        same(core().hash_support(seeds, buckets.astype(np.uint8), 56, chosen, None), expected)


@compiled
@pytest.mark.parametrize("g", [2, 3, 4, 5, 8, 56, 255, 256, 257, 65537, (1 << 31) - 1, (1 << 32) - 1])
def test_hash_support_for_any_number_of_buckets(g: int):
    seeds = rng(g).integers(1 << 32, size=300, dtype=np.uint32)
    candidates = rng(3).integers(1 << 40, size=70, dtype=np.uint64)
    # Buckets that really occur, so that sums are not all zero for large g.
    buckets = twin.buckets_of(seeds, candidates[np.arange(300) % 70], g)
    for chosen in (candidates, candidates & np.uint64(0xFFFFFFFF)):
        for weights in (None, some_weights(300)):
            same(core().hash_support(seeds, buckets, g, chosen, weights),
                 twin.hash_support(seeds, buckets, g, chosen, weights))  # fmt: skip


# Around every edge of the 32-bit fast path, and candidates that repeat.
WIDE = [
    [(1 << 32) - 1],
    [1 << 32],
    [(1 << 32) - 1, 1 << 32, 5],
    [(1 << 64) - 1, 0, 1 << 63],
    [7] * 9,
    [x << 32 for x in range(17)],
    list(range((1 << 63) - 5, (1 << 63) + 6)),
]


@compiled
@pytest.mark.parametrize("candidates", WIDE)
def test_hash_support_of_64_bit_candidates(candidates: list[int]):
    chosen = np.array(candidates, np.uint64)
    seeds, buckets = hashed_reports(500, 3)
    for weights in (None, some_weights(500)):
        same(core().hash_support(seeds, buckets, 3, chosen, weights),
             twin.hash_support(seeds, buckets, 3, chosen, weights))  # fmt: skip


@compiled
@pytest.mark.parametrize("threads", ["1", "2", "3", "5"])
def test_threads_do_not_change_the_sums(threads: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TACIT_THREADS", threads)
    seeds, buckets = hashed_reports(30_011, 4)  # Prime, so that no split is even.
    candidates = np.arange(23, dtype=np.uint64)
    weights = some_weights(len(seeds))
    packed = rng().integers(256, size=(30_011, 9), dtype=np.uint8)
    for chosen in (None, weights):
        same(core().hash_support(seeds, buckets, 4, candidates, chosen),
             twin.hash_support(seeds, buckets, 4, candidates, chosen))  # fmt: skip
        same(core().bit_columns(packed, 71, chosen), twin.bit_columns(packed, 71, chosen))
        same(core().affine_support(seeds % 29, buckets, 29, 5, candidates, chosen),
             twin.affine_support(seeds % 29, buckets, 29, 5, candidates, chosen))  # fmt: skip


@compiled
def test_columns_of_packed_records_are_accepted():
    """Fields of a packed record are neither aligned nor contiguous."""
    reports = np.zeros(301, [("seed", "<u4"), ("bucket", "u1")])
    reports["seed"], reports["bucket"] = rng().integers(1 << 32, size=301), rng().integers(4, size=301)
    candidates, weights = np.arange(60, dtype=np.uint64)[::3], some_weights(602)[::2]
    buckets = reports["bucket"].astype(np.uint32)
    for chosen in (None, weights):
        same(core().hash_support(reports["seed"], buckets, 4, candidates, chosen),
             twin.hash_support(reports["seed"], buckets, 4, candidates, chosen))  # fmt: skip
    reversed_rows = rng().integers(256, size=(50, 6), dtype=np.uint8)[::-2]
    same(core().bit_columns(reversed_rows, 45, None), twin.bit_columns(reversed_rows, 45, None))
    sparse = rng().integers(9, size=400).astype(np.uint16)[::7]
    same(core().histogram(sparse, 9, None)[0], twin.histogram(sparse, 9, None)[0])


@pytest.mark.slow_cases("257-1001", "3-1001")
@compiled
@pytest.mark.parametrize(("g", "pool"), [*product([2, 3, 8, 56, 257], [1, 2, 7, 64]), (3, 1001), (257, 1001)])
def test_pooled_support(g: int, pool: int):
    seeds = rng(pool).integers(1 << 32, size=pool, dtype=np.uint32)
    table = rng(g).integers(-(1 << 40), 1 << 40, size=(pool, g))
    for d in (0, 1, 17, 64):
        for candidates in (np.arange(d, dtype=np.uint64), rng(d).integers(1 << 63, size=d, dtype=np.uint64)):
            same(core().pooled_support(seeds, table, candidates), twin.pooled_support(seeds, table, candidates))


@compiled
@pytest.mark.parametrize("size", [size for size in SIZES if size])
def test_bit_columns(size: int):
    """Bits beyond the size may be anything; they are no columns."""
    for n in COUNTS:
        packed = rng(n).integers(256, size=(n, -(-size // 8)), dtype=np.uint8)
        for weights in (None, some_weights(n)):
            same(core().bit_columns(packed, size, weights), twin.bit_columns(packed, size, weights))
        ones = np.full_like(packed, 255)
        assert core().bit_columns(ones, size, None).tolist() == [n] * size


@compiled
@pytest.mark.parametrize("dtype", ["<u1", "<u2", "<u4", "<u8"])
@pytest.mark.parametrize("n", COUNTS)
def test_histogram(dtype: str, n: int):
    top = min(np.iinfo(dtype).max, 5000)
    codes = rng(n).integers(top, size=n, endpoint=True).astype(dtype)
    if n > 2:
        codes[1] = np.iinfo(dtype).max
    for cells in (1, 2, 200, 255, 256, 257, 5001):
        for weights in (None, some_weights(n)):
            (a, bad_a), (b, bad_b) = core().histogram(codes, cells, weights), twin.histogram(codes, cells, weights)
            same(a, b)
            assert bad_a == bad_b == np.count_nonzero(codes >= cells)


@compiled
@pytest.mark.parametrize("size", [1 << k for k in range(13)])
def test_walsh_hadamard(size: int):
    x = rng(size).integers(-(1 << 40), 1 << 40, size=(3, size))
    before = x.copy()
    for given_array in (x, x[0], x[:, ::-1], x.T.copy().T):
        same(core().walsh_hadamard(given_array), twin.walsh_hadamard(given_array))
    assert np.array_equal(x, before)
    assert np.array_equal(core().walsh_hadamard(core().walsh_hadamard(x)), size * x)


def test_walsh_hadamard_is_the_matrix_of_parities():
    codes = np.arange(16)
    matrix = np.array([[(-1) ** int(a & b).bit_count() for b in codes] for a in codes])
    x = rng().integers(-99, 99, size=16)
    assert np.array_equal(twin.walsh_hadamard(x), matrix @ x)


THRESHOLDS = [
    (1 << 63, 4961071398047180192),  # OUE at epsilon 1
    ((1 << 64) - 1, 1),
    (1, 0),
    (0, (1 << 64) - 1),
    (0x8000000000000001, 0x7FFFFFFFFFFFFFFF),
    (0xAAAAAAAAAAAAAAAA, 0x5555555555555555),
]


# One layer of noise, and two: permanent and instantaneous.
LAYERS = [[pair] for pair in THRESHOLDS] + [[THRESHOLDS[0], (3 << 62, 1 << 62)], [THRESHOLDS[4], THRESHOLDS[1]]]


@compiled
@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 200])
def test_draw_bits_and_the_words_it_takes(size: int):
    """Rows with no one, one, several and repeated ones; both leave the coins at the same word."""
    ones = rng(size).integers(-1, size, size=(23, 3)).astype(np.int32)
    ones[0], ones[1] = -1, size - 1
    for layers, each in product(LAYERS, (1, 3)):
        a, b = ReplayCoins(b"bits"), ReplayCoins(b"bits")
        same(core().draw_bits(ones[:, :each], size, layers, a), twin.draw_bits(ones[:, :each], size, layers, b))
        assert a.word() == b.word()


@compiled
@pytest.mark.parametrize("size", [2, 9, 64, 129])
@pytest.mark.parametrize("layers", [LAYERS[0], LAYERS[-2]], ids=range(2))
def test_draw_hashed_bits(size: int, layers: list[tuple[int, int]]):
    values = rng(size).integers(1 << 64, size=31, dtype=np.uint64)
    for rows, each in ((1, 1), (5, 2), (16, 3)):
        seeds = rng(rows).integers(1 << 32, size=(rows, each), dtype=np.uint32)
        a, b = ReplayCoins(b"bloom"), ReplayCoins(b"bloom")
        found = core().draw_hashed_bits(values, seeds, size, layers, a)
        expected = twin.draw_hashed_bits(values, seeds, size, layers, b)
        same(found[0], expected[0])
        same(found[1], expected[1])
        assert a.word() == b.word()


@compiled
@pytest.mark.parametrize("layers", [[(1 << 63, 1 << 62)], [(1 << 63, 1 << 62)] * 2], ids=["one", "two"])
def test_draw_bits_refills_its_coins(layers: list[tuple[int, int]]):
    """More words than one look-ahead holds, with dead lanes in the last block."""
    ones = rng().integers(130, size=(2500, 1)).astype(np.int32)
    a, b = SimulationCoins(1), SimulationCoins(1)
    same(core().draw_bits(ones, 130, layers, a), twin.draw_bits(ones, 130, layers, b))
    assert a.words(9) == b.words(9)


@compiled
def test_draw_bits_of_nobody_takes_no_coins():
    a = ReplayCoins(b"none")
    assert core().draw_bits(np.empty((0, 1), np.int32), 9, [(5, 4)], a).shape == (0, 2)
    assert a.word() == ReplayCoins(b"none").word()


@compiled
@pytest.mark.parametrize("m", [3, 11, 101, 65537, (1 << 30) - 35, (1 << 32) - 5])
def test_affine_support(m: int):
    k = max(1, m // 3)
    w = rng(m).integers(1, m, size=333, dtype=np.uint32)
    c = rng(m + 1).integers(m, size=333, dtype=np.uint32)
    every = np.arange(min(m, 65), dtype=np.uint64)
    some = rng(2).integers(m, size=41, dtype=np.uint64)
    for candidates in (every, some, every[:0], every[::-1]):
        for weights in (None, some_weights(333)):
            same(core().affine_support(w, c, m, k, candidates, weights),
                 twin.affine_support(w, c, m, k, candidates, weights))  # fmt: skip
    same(core().affine_support(w[:0], c[:0], m, k, every, None), twin.affine_support(w[:0], c[:0], m, k, every, None))


@compiled
@pytest.mark.parametrize(("size", "take"), [(2, 1), (3, 1), (5, 3), (8, 4), (9, 8), (64, 17), (65, 33), (300, 111)])
def test_draw_subsets(size: int, take: int):
    n = 57
    values = rng(size).integers(size, size=n, dtype=np.uint32)
    keep = rng(take).integers(2, size=n, dtype=np.uint8)
    words = rng(3).integers(1 << 64, size=(n, take), dtype=np.uint64)
    words[0], words[1] = 0, (1 << 64) - 1  # Both ends of every draw.
    found = core().draw_subsets(values, keep, size, take, words)
    same(found, twin.draw_subsets(values, keep, size, take, words))
    member = np.unpackbits(found, axis=1, count=size, bitorder="little")
    assert (member.sum(axis=1) == take).all()
    assert np.array_equal(member[np.arange(n), values], keep)
    empty = core().draw_subsets(values[:0], keep[:0], size, take, words[:0])
    assert empty.shape == (0, -(-size // 8))


@given(word=st.integers(0, (1 << 64) - 1), m=st.integers(1, 1 << 64))
@examples(150)
def test_uniform_is_the_upper_half_of_a_product(word: int, m: int):
    if m == 1 << 64:
        return  # The whole range is a plain word; no kind asks for it.
    assert int(twin.uniform(np.array([word], np.uint64), m)[0]) == word * m >> 64


def test_uniform_at_its_ends():
    top = (1 << 64) - 1
    for m in (1, 2, 3, (1 << 32) - 1, 1 << 32, (1 << 32) + 1, (1 << 63) + 1, top):
        for word in (0, 1, (1 << 32) - 1, 1 << 32, 1 << 63, top - 1, top):
            assert int(twin.uniform(np.array([word], np.uint64), m)[0]) == word * m >> 64


@given(
    seed=st.integers(0, (1 << 32) - 1),
    value=st.one_of(st.integers(0, (1 << 64) - 1), st.integers(0, 300)),
    g=st.integers(2, (1 << 32) - 1),
)
@examples(150)
def test_hashes_are_those_of_the_device(seed: int, value: int, g: int):
    seeds, values = np.array([seed], np.uint32), np.array([value], np.uint64)
    assert int(twin.hash32(seeds, values)[0]) == device_hash32(seed, value)
    found = int(twin.buckets_of(seeds, values, g)[0])
    assert found == bucket(seed, value, g) == device_hash32(seed, value) * g >> 32
    assert 0 <= found < g


@compiled
@given(data=st.data())
@examples(150)
def test_support_of_arbitrary_reports(data: st.DataObject):
    n, g = data.draw(st.integers(0, 40)), data.draw(st.integers(2, 300))
    seeds = np.array(data.draw(st.lists(st.integers(0, (1 << 32) - 1), min_size=n, max_size=n)), np.uint32)
    buckets = np.array(data.draw(st.lists(st.integers(0, g - 1), min_size=n, max_size=n)), np.uint32)
    candidates = np.array(data.draw(st.lists(st.integers(0, (1 << 64) - 1), max_size=20)), np.uint64)
    weighted = data.draw(st.booleans())
    limits = st.integers(-(1 << 40), 1 << 40)
    weights = np.array(data.draw(st.lists(limits, min_size=n, max_size=n)), np.int64) if weighted else None
    found = core().hash_support(seeds, buckets, g, candidates, weights)
    same(found, twin.hash_support(seeds, buckets, g, candidates, weights))
    units = [1] * n if weights is None else weights.tolist()
    expected = [
        sum(w for s, b, w in zip(seeds.tolist(), buckets.tolist(), units, strict=True) if bucket(s, int(c), g) == b)
        for c in candidates
    ]
    assert found.tolist() == expected


def test_the_twin_can_be_asked_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TACIT_KERNELS", "numpy")
    assert load() is None


@compiled
@pytest.mark.parametrize("width", [0, 1, 16, 54, 55, 56, 63, 64, 65, 118, 119, 120, 200])
def test_hashes_of_rows_at_every_edge_of_a_block(width: int):
    for n in (0, 1, 7, 8, 9, 17):
        rows = rng(n).integers(256, size=(n, width), dtype=np.uint8)
        same(core().sha256_rows(1, rows), twin.sha256_rows(1, rows))
        assert [bytes(row) for row in core().sha256_rows(0, rows)] == [
            sha256(b"\0" + bytes(row)).digest() for row in rows
        ]


@compiled
@pytest.mark.parametrize("d", [1, 2, 9, 64, 130])
def test_planes_and_co_support(d: int):
    for n in (0, 1, 63, 64, 65, 700):
        packed = rng(n + d).integers(256, size=(n, -(-d // 8)), dtype=np.uint8)
        values = rng(d).permutation(d)[: max(1, d - 1)].astype(np.uint32)
        planes = core().report_planes(packed, values)
        same(planes, twin.report_planes(packed, values))
        bits = np.unpackbits(packed, axis=1, bitorder="little")[:, values].astype(np.int64)
        same(core().co_support(planes), twin.co_support(planes))
        assert np.array_equal(twin.co_support(planes), bits.T @ bits)
        seeds, buckets = hashed_reports(n, 5)
        same(core().hash_planes(seeds, buckets, 5, values), twin.hash_planes(seeds, buckets, 5, values))
        counts = np.diagonal(twin.co_support(twin.hash_planes(seeds, buckets, 5, values)))
        same(counts.copy(), twin.hash_support(seeds, buckets, 5, values.astype(np.uint64), None))


@compiled
def test_planes_over_threads():
    packed = rng(1).integers(256, size=(5_003, 16), dtype=np.uint8)
    values = np.arange(128, dtype=np.uint32)
    planes = core().report_planes(packed, values)
    same(planes, twin.report_planes(packed, values))
    same(core().co_support(planes), twin.co_support(planes))


@pytest.mark.parametrize("most", [0, 1, 7, 10_000])
def test_starts_of_reports_are_followed_alike(most: int) -> None:
    for seed in range(20):
        step = np.random.default_rng(seed).integers(1, 5, 500)
        found, used = kernels.follow(step, most)
        again, ended = twin.follow(step, most)
        assert found.tolist() == again.tolist() and used == ended
        # Every report starts where the one before it ends, and none reaches beyond the window.
        assert (np.diff(found) == step[found[:-1] - 1]).all() and used <= 500 and len(found) <= most
    assert kernels.follow(np.array([3]), 5)[1] == 0


@compiled
@pytest.mark.parametrize("words", [0, 1, 2, 40, 700])
def test_reports_of_unary_members_are_followed_alike(words: int) -> None:
    """Members of one to three words, and unary ones of few and many bits, wherever the window ends."""
    thresholds = [(1 << 63, 4961071398047180192), ((1 << 64) - 1, 1), (0, (1 << 64) - 1)]
    unary = np.array(
        [[0] * 4, [0, 3, *thresholds[0]], [0] * 4, [1, 130, *thresholds[1]], [2, 64, *thresholds[2]]], np.uint64
    )
    for seed, most in product(range(12), (0, 1, 7, 300)):
        coins, members = rng(seed).integers(1 << 64, size=words, dtype=np.uint64), rng(seed).integers(5, size=words)
        steps = np.array([2, 0, 4, 0, 0])[members]
        ones = np.stack([rng(9).integers(size, size=most) for size in (3, 130, 64)], axis=1).astype(np.int32)
        found = core().follow_lanes(coins, steps, members, unary, ones, 20)
        expected = twin.follow_lanes(coins, steps, members, unary, ones, 20)
        same(found[0], expected[0])
        same(found[1], expected[1])
        assert found[2] == expected[2] <= words and len(found[0]) <= most


@compiled
@pytest.mark.parametrize("size", [8, 160, 168, 176, 336, 1000, 1 << 16])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_keys_are_expanded_as_by_the_standard_library(size: int, threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Around the rate of the sponge, and numbers of keys around the four that are worked on together."""
    monkeypatch.setenv("TACIT_THREADS", threads)
    monkeypatch.setattr("tacit.kernels.threads.THREADED_WORK", 1)
    for n in (1, 2, 3, 4, 5, 8, 11):
        keys = rng(n).bytes(32 * n)
        expected = b"".join(shake_128(keys[i : i + 32]).digest(size) for i in range(0, 32 * n, 32))
        assert bytes(core().expand_keys(keys, size)) == twin.expand_keys(keys, size) == expected
