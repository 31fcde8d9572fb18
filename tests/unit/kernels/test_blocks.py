"""Kernels of the block responses against their numpy twins, on reports of devices and on any bytes at all."""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tacit.device.kinds.hadamard import independent
from tacit.device.numbers.coins import ReplayCoins, ScriptedCoins
from tacit.kernels import twin
from tacit.kernels.native import Native, load

LIBRARY = load()
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="the C core is not built, or TACIT_KERNELS=numpy")

TOP = (1 << 64) - 1


def core() -> Native:
    assert LIBRARY is not None
    return Native(LIBRARY)


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def same(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> None:
    assert (a.dtype, a.shape) == (b.dtype, b.shape)
    assert np.array_equal(a, b)


def some_weights(n: int) -> npt.NDArray[np.int64]:
    return rng(9).integers(-(1 << 40), 1 << 40, size=n)


# Primes, as devices use them; powers of two and other composites; around the edge between 32 and 64 bits of fractions.
MODULI = [2, 3, 4, 11, 16, 35, 101, 1031, 65521, 65535, 65536, 65537, (1 << 31) - 1, (1 << 32) - 5, 1 << 32]


@pytest.mark.parametrize("m", MODULI)
def test_affine_support_for_any_modulus_and_block(m: int):
    """Multipliers and shifts at both ends, candidates in any order and beyond the modulus, blocks from one to all."""
    n, edges = 203, np.array([0, 1, m // 2, m - 1, min(m, (1 << 32) - 1), (1 << 32) - 1], np.uint32)
    w, c = (np.concatenate([rng(s).integers(min(m, 1 << 32), size=n), edges]).astype(np.uint32) for s in (1, 2))
    w, c = np.concatenate([w, np.repeat(edges, 6)]), np.concatenate([c, np.tile(edges, 6)])
    top = np.arange(m - 3 if m > 3 else 0, m + 3, dtype=np.uint64)
    lists = [np.arange(min(m, 70), dtype=np.uint64), rng(3).integers(m, size=41, dtype=np.uint64), top, top[:0]]
    for k, candidates in product(sorted({1, max(1, m // 3), m - 1, m}), lists):
        for weights in (None, some_weights(len(w))):
            same(core().affine_support(w, c, m, k, candidates, weights),
                 twin.affine_support(w, c, m, k, candidates, weights))  # fmt: skip


@pytest.mark.parametrize("m", [2, 3, 4, 11, 16, 35, 101, 499])
@pytest.mark.parametrize("threads", ["1", "3"])
def test_sorted_reports_support_the_same(m: int, threads: str, monkeypatch: pytest.MonkeyPatch):
    """What many reports take is forced on few, so that some multipliers have no report and others several."""
    monkeypatch.setenv("TACIT_THREADS", threads)
    monkeypatch.setattr("tacit.kernels.threads.THREADED_WORK", 1)
    for n, k in product((0, 1, 7, 601), sorted({1, max(1, m // 4), m - 1})):
        w, c = rng(n).integers(1 << 32, size=n).astype(np.uint32), rng(k).integers(1 << 32, size=n).astype(np.uint32)
        for d, weights in product((0, 1, 5, m), (None, some_weights(n))):
            found = core()._affine_windows(w, c, weights, m, k, d)  # pyright: ignore[reportPrivateUsage]
            same(found, twin.affine_support(w, c, m, k, np.arange(d, dtype=np.uint64), weights))


def test_many_reports_are_sorted_and_few_are_not(monkeypatch: pytest.MonkeyPatch):
    sorted_calls: list[int] = []
    taken = Native._affine_windows  # pyright: ignore[reportPrivateUsage]

    def counted(self: Native, *arguments: Any) -> Any:
        sorted_calls.append(1)
        return taken(self, *arguments)

    monkeypatch.setattr(Native, "_affine_windows", counted)
    w, c = (rng(s).integers(101, size=20_000).astype(np.uint32) for s in (1, 2))
    candidates = np.arange(100, dtype=np.uint64)
    same(core().affine_support(w, c, 101, 27, candidates, None), twin.affine_support(w, c, 101, 27, candidates, None))
    assert sorted_calls == [1]
    core().affine_support(w[:20], c[:20], 101, 27, candidates, None)
    core().affine_support(w, c, 101, 27, candidates[::-1], None)
    assert sorted_calls == [1]


@given(data=st.data())
@examples(60)
def test_affine_support_of_arbitrary_reports(data: st.DataObject):
    word = st.integers(0, (1 << 32) - 1)
    m = data.draw(st.one_of(st.integers(2, 300), st.integers(2, 1 << 32)))
    k, n = data.draw(st.integers(1, m)), data.draw(st.integers(0, 30))
    w, c = (np.array(data.draw(st.lists(word, min_size=n, max_size=n)), np.uint32) for _ in range(2))
    candidates = data.draw(st.lists(st.integers(0, m - 1), max_size=12))
    found = core().affine_support(w, c, m, k, np.array(candidates, np.uint64), None)
    pairs = list(zip(w.tolist(), c.tolist(), strict=True))
    assert found.tolist() == [sum((a * i - b) % m < k for a, b in pairs) for i in candidates]


@pytest.mark.parametrize("bytes_", [1, 2, 7, 8, 9, 31, 32, 33, 128, 1030])
def test_bits_of_rows_and_columns(bytes_: int):
    """Around the fifteen rows that are added together, the 255 of a byte counter, and the tiles of long rows."""
    for n in (0, 1, 14, 15, 16, 254, 255, 256, 300):
        packed = rng(n).integers(256, size=(n, bytes_), dtype=np.uint8)
        same(core().bit_counts(packed), twin.bit_counts(packed))
        same(core().bit_counts(packed[::-1]), twin.bit_counts(packed[::-1]))
        for size in (8 * bytes_, 8 * bytes_ - 5):
            same(core().bit_columns(packed, size, None), twin.bit_columns(packed, size, None))
            for members in (0, int(twin.bit_counts(packed[:1]).sum()), 8 * bytes_ - 5):
                (a, wrong), (b, also) = (kind.set_columns(packed, size, members) for kind in (core(), twin))
                same(a, b)
                assert wrong == also
        full = np.full_like(packed, 255)
        assert core().set_columns(full, 8 * bytes_, 8 * bytes_)[1] == 0
        assert core().set_columns(full, 8 * bytes_ - 5, 8 * bytes_)[1] == n  # Bits beyond the size are wrong.
        assert core().bit_columns(full, 8 * bytes_, None).tolist() == [n] * (8 * bytes_)
        assert core().bit_counts(full).tolist() == [8 * bytes_] * n


@pytest.mark.parametrize("order", [2, 4, 8, 64, 1024, 1 << 20, 1 << 30])
def test_subspaces_are_drawn_like_the_device_draws_them(order: int):
    for t in range(1, min(6, order.bit_length() - 1) + 1):
        words = rng(order).integers(1 << 64, size=(40, t + 1), dtype=np.uint64)
        words[0], words[1] = 0, TOP  # Both ends of every draw.
        values = rng(t).integers(order, size=40, dtype=np.uint64)
        rows, parities = core().draw_subspaces(words[:, :-1], values, order)
        for other in (twin.draw_subspaces(words[:, :-1], values, order),
                      core().draw_subspaces(words[:, :-1].copy(), values, order)):  # fmt: skip
            same(rows, other[0])
            same(parities, other[1])
        scripts = [ScriptedCoins(row.tolist()) for row in words[:, :-1]]
        assert rows.tolist() == [independent(t, order, coins) for coins in scripts]
        empty = core().draw_subspaces(words[:0, :-1], values[:0], order)
        assert empty[0].shape == (0, t) and empty[1].shape == (0,)


def spans(order: int, t: int, width: int, n: int) -> npt.NDArray[np.uint8]:
    """Reports of devices."""
    coins = ReplayCoins(b"spans")
    rows = [independent(t, order, coins) for _ in range(n)]
    packed = [
        b"".join(row.to_bytes(width, "little") for row in one) + bytes([i % (1 << t)]) for i, one in enumerate(rows)
    ]
    return np.frombuffer(b"".join(packed), np.uint8).reshape(n, t * width + 1).copy()


@pytest.mark.parametrize(("order", "width"), [(2, 1), (8, 1), (256, 1), (1024, 2), (1 << 17, 4)])
def test_spans_are_counted_and_wrong_ones_are_found(order: int, width: int):
    for t in range(1, min(6, order.bit_length() - 1) + 1):
        for n in (0, 1, 150):
            honest, hostile = spans(order, t, width, n), rng(n).integers(256, size=(n, t * width + 1), dtype=np.uint8)
            mixed = np.concatenate([honest, hostile, np.zeros_like(hostile[:1]), np.full_like(hostile[:1], 255)])
            repeated = honest.copy()
            repeated[:, : width * (t > 1)] = repeated[:, width : 2 * width * (t > 1)]  # The first two rows depend.
            for reports, weights in product((honest, mixed, repeated, mixed[::-1]), (None, some_weights(len(mixed)))):
                chosen = None if weights is None else weights[: len(reports)]
                (a, bad), (b, also) = (k.count_spans(reports, t, order, chosen) for k in (core(), twin))
                same(a, b)
                good = core().valid_spans(reports, t, order)
                same(good, twin.valid_spans(reports, t, order))
                assert bad == also == np.count_nonzero(~good)
            assert core().valid_spans(honest, t, order).all()
            assert t == 1 or not core().valid_spans(repeated, t, order).any()


def test_a_span_is_told_with_all_its_signs():
    """Rows 3 and 5 with signs - and +: their sum is row 6, with sign -."""
    cells, bad = twin.count_spans(np.array([[3, 5, 0b01]], np.uint8), 2, 8, None)
    assert bad == 0 and np.flatnonzero(cells).tolist() == [2 * 3 + 1, 2 * 5, 2 * 6 + 1]


@given(data=st.data())
@examples(60)
def test_any_bytes_are_counted_alike_as_spans(data: st.DataObject):
    t, width = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([1, 2, 4]))
    order = 1 << data.draw(st.integers(t, min(12, 8 * width)))
    # Small bytes, so that rows are often below the order and sometimes depend on each other.
    rows = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=t * width + 1, max_size=t * width + 1), max_size=9))
    reports = np.array(rows, np.uint8).reshape(len(rows), t * width + 1)
    (a, bad), (b, also) = (k.count_spans(reports, t, order, None) for k in (core(), twin))
    same(a, b)
    assert bad == also
    assert int(a.sum()) == (len(rows) - bad) * ((1 << t) - 1)
