"""The C kernels through ctypes: contiguous arrays and argument types only, no arithmetic of its own.

ctypes releases the interpreter lock during a call, so a Python thread pool over slices of the reports uses all cores.
ctypes also checks nothing: every pointer passed here must be to a contiguous array of exactly the type in the C
signature, and that array must be bound to a name until the call returns, or it may be freed in between.
"""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.device.numbers.coins import Coins
from tacit.kernels.threads import THREADED_WORK, over_threads, sum_over_threads, thread_count
from tacit.kernels.twin import F64, I64, U8, U32, U64, Layers

_LIBRARY = Path(__file__).with_name("_tacit.so")
_SIZE = ctypes.c_size_t
_WORD = ctypes.c_uint64
# Coin words that are drawn ahead for a call of a sampler: half a megabyte, which the caches hold.
_COIN_WORDS = 1 << 16
# The value of `tacit_abi` in tacit.c that these signatures belong to.
_ABI = 16
# The fast path of `hash_support` looks the bounds of a bucket up in a table; more buckets than this leave the cache.
_TABLED_BUCKETS = 1 << 16
_SHORT_RUN = 48
"""Runs of candidates with equal upper halves that are shorter than this on average take the general path.

The fast path mixes every seed again for every run, which only pays if the run is long enough.
"""

# Affine blocks, measured in entries that are passed when reports are sorted: what a report costs to sort, and how many
# comparisons of a report with a candidate take as long as one entry, in fractions of 32 and of 64 bits.
_SORT_COST = 6
_COMPARED = (12, 2)


def load() -> "ctypes.CDLL | None":
    """The compiled core, or None where it was not built or TACIT_KERNELS=numpy asks for the twin.

    TACIT_KERNELS may also name another build of the core, such as one with the address sanitiser.
    """
    chosen = os.environ.get("TACIT_KERNELS") or str(_LIBRARY)
    if chosen == "numpy" or not Path(chosen).exists():
        return None
    library = ctypes.CDLL(chosen)
    if not hasattr(library, "tacit_abi") or ctypes.c_int.in_dll(library, "tacit_abi").value != _ABI:
        return None  # Built from older sources; the twin is right until it is built again.
    for width in (8, 16, 32, 64):
        getattr(library, f"tacit_count{width}").restype = _SIZE
        getattr(library, f"tacit_weigh{width}").restype = _SIZE
    # ctypes takes every other result for a C int, which would cut these sizes off at 32 bits.
    library.tacit_draw_layers.restype = _SIZE
    library.tacit_count_members.restype = library.tacit_weigh_members.restype = _SIZE
    library.tacit_set_columns.restype = _SIZE
    library.tacit_count_spans.restype = library.tacit_weigh_spans.restype = _SIZE
    library.tacit_follow.restype = library.tacit_follow_lanes.restype = _SIZE
    return library


def _at(array: npt.NDArray[Any] | None) -> ctypes.c_void_p:
    """The address of an array's first element; None is the NULL pointer."""
    return ctypes.c_void_p(None if array is None else array.ctypes.data)


class Native:
    """The kernels of one loaded library; same signatures and results as the functions of the twin."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Hold the library."""
        self._c = library

    def hash_support(self, seeds: U32, buckets: U32, g: int, candidates: U64, weights: I64 | None) -> I64:
        """Return the total weight of the reports that support each candidate; reports are split over threads.

        Unweighted reports on candidates with few different upper halves (all domains below 2^32) take a fast path.
        """
        high, low = _halves(candidates)
        starts = _runs(high, len(low))
        long = high is None or _SHORT_RUN * (len(starts) - 1) <= len(low)
        if weights is None and long and seeds.itemsize == 4 and g <= _TABLED_BUCKETS:
            return self._hash_runs(seeds, buckets, g, low, high, starts)
        high = np.zeros_like(low) if high is None else high

        def part(rows: slice) -> I64:
            out = np.zeros(len(candidates), np.int64)
            s, b = np.ascontiguousarray(seeds[rows], np.uint32), np.ascontiguousarray(buckets[rows], np.uint32)
            w = None if weights is None else np.ascontiguousarray(weights[rows])
            self._c.tacit_hash_support64(
                _at(s), _at(b), _at(w), _SIZE(len(s)), _WORD(g), _at(high), _at(low), _SIZE(len(out)), _at(out)
            )
            return out

        return sum_over_threads(part, len(seeds), len(seeds) * len(candidates))

    def _hash_runs(self, seeds: U32, buckets: U32, g: int, low: U32, high: U32 | None, starts: U64) -> I64:
        """The fast path of `hash_support`: no weights, candidates in runs with equal upper halves.

        Seeds and buckets are read where they are, as strided columns of a record array; C starts the threads.
        """
        bounds, n, d, runs = _bucket_bounds(g), len(seeds), len(low), len(starts) - 1
        halves = np.zeros(runs, np.uint32) if high is None else high[starts[:-1].astype(np.intp)]
        threads = min(thread_count(), 64) if n * d > THREADED_WORK else 1
        # A row of counters per thread, added up below: no locks and no shared cache lines.
        out = np.zeros((threads, d), np.int64)
        self._c.tacit_hash_support(
            _at(seeds), _SIZE(_stride(seeds)), _at(buckets), _SIZE(_stride(buckets)), _SIZE(buckets.itemsize),
            _SIZE(n), _at(bounds), _at(low), _at(halves), _at(starts), _SIZE(runs), _SIZE(threads), _at(out),
        )  # fmt: skip
        return out.sum(axis=0)

    def hash_matches(self, seeds: U32, buckets: U32, g: int, values: U64) -> "npt.NDArray[np.int32]":
        """Return for every report how many of the values it supports; reports are split over threads."""
        high, low = _halves(values)
        starts, bounds = _runs(high, len(low)), _bucket_bounds(g)
        highs = np.zeros(1, np.uint32) if high is None else high[starts[:-1].astype(np.intp)]
        seeds, buckets = np.ascontiguousarray(seeds, np.uint32), np.ascontiguousarray(buckets, np.uint32)
        out = np.zeros(len(seeds), np.int32)

        def part(rows: slice) -> I64:
            s, b, o = seeds[rows], buckets[rows], out[rows]
            runs = _SIZE(len(starts) - 1)
            args = _at(s), _at(b), _SIZE(len(s)), _at(bounds), _at(low), _at(highs), _at(starts), runs, _at(o)
            self._c.tacit_hash_matches(*args)
            return np.zeros(0, np.int64)  # Every slice has written its part of `out` itself.

        if len(low):
            over_threads(part, len(seeds), len(seeds) * len(low))
        return out

    def pooled_support(self, seeds: U32, table: I64, candidates: U64) -> I64:
        """Return for each candidate the sum of its cells: one cell of every hash function's row of the table."""
        # 32-bit cells take half the cache; the sums are of 64 bits either way.
        small = table.size == 0 or max(int(table.max()), -int(table.min())) < 1 << 31
        cells = np.ascontiguousarray(table, np.int32 if small else np.int64)
        count = self._c.tacit_pooled_support32 if small else self._c.tacit_pooled_support64
        seeds, (high, low) = np.ascontiguousarray(seeds), _halves(candidates)
        spread = np.empty_like(low)
        self._c.tacit_spread(_at(low), _SIZE(len(low)), _at(spread))
        rows, g = table.shape

        def part(at: slice) -> I64:
            h, v = None if high is None else high[at], spread[at]
            out = np.zeros(len(v), np.int64)
            count(_at(seeds), _at(cells), _SIZE(rows), ctypes.c_uint32(g), _at(h), _at(v), _SIZE(len(v)), _at(out))
            return out

        parts = over_threads(part, len(low), rows * len(low))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def bit_columns(self, packed: U8, size: int, weights: I64 | None) -> I64:
        """Return how often each of `size` bits is set (or the weight of those rows); bit 0 of a byte comes first."""
        packed = np.ascontiguousarray(packed)
        n, width = packed.shape

        def part(rows: slice) -> I64:
            out, block = np.zeros(size, np.int64), packed[rows]
            shape = (_SIZE(len(block)), _SIZE(width), _SIZE(size), _at(out))
            if weights is None:
                self._c.tacit_bit_columns(_at(block), *shape)
            else:
                self._c.tacit_bit_columns_weighted(_at(block), _at(np.ascontiguousarray(weights[rows])), *shape)
            return out

        return sum_over_threads(part, n, n * width)

    def bit_counts(self, packed: U8) -> I64:
        """Return how many bits each row has set."""
        packed, out = np.ascontiguousarray(packed), np.empty(len(packed), np.int64)
        self._c.tacit_bit_counts(_at(packed), _SIZE(len(packed)), _SIZE(packed.shape[1]), _at(out))
        return out

    def set_columns(self, packed: U8, size: int, members: int) -> tuple[I64, int]:
        """Return how often each bit is set, and how many rows have another number of bits or one beyond the size."""
        packed = np.ascontiguousarray(packed)
        (n, width), wrong = packed.shape, [0]

        def part(rows: slice) -> I64:
            out, block = np.zeros(size, np.int64), packed[rows]
            shape = _SIZE(len(block)), _SIZE(width), _SIZE(size), ctypes.c_int64(members)
            wrong.append(int(self._c.tacit_set_columns(_at(block), *shape, _at(out))))
            return out

        columns = sum_over_threads(part, n, n * width)
        return columns, sum(wrong)

    def histogram(self, codes: npt.NDArray[np.unsignedinteger], cells: int, weights: I64 | None) -> tuple[I64, int]:
        """Return the counts (or total weights) per code, and how many codes were not below `cells`."""
        codes = np.ascontiguousarray(codes)
        width, n = 8 * codes.itemsize, _SIZE(len(codes))
        # Fewer than 2^32 reports cannot overflow a 32-bit cell, and such cells take half the cache.
        if weights is None and len(codes) < 1 << 32:
            small = np.zeros(cells, np.uint32)
            bad = getattr(self._c, f"tacit_count{width}")(_at(codes), n, _WORD(cells), _at(small))
            return small.astype(np.int64), int(bad)
        out = np.zeros(cells, np.int64)
        weights = np.ones(len(codes), np.int64) if weights is None else np.ascontiguousarray(weights)
        bad = getattr(self._c, f"tacit_weigh{width}")(_at(codes), _at(weights), n, _WORD(cells), _at(out))
        return out, int(bad)

    def count_members(self, reports: U8, starts: U64, weights: I64 | None) -> tuple[I64, int]:
        """Return the counts (or total weights) per cell of reports of many members, and how many were out of range.

        The layout of reports and cells is that of `twin.count_members`.
        """
        rows, starts = np.ascontiguousarray(reports), np.ascontiguousarray(starts, np.uint64)
        inputs = (_at(rows), _SIZE(len(rows)), _SIZE(rows.shape[1] - 4), _at(starts), _SIZE(len(starts) - 1))
        # One cell more than there are: C counts what is out of range there, which saves a branch per report.
        if weights is None and len(rows) < 1 << 32:
            small = np.zeros(int(starts[-1]) + 1, np.uint32)
            bad = self._c.tacit_count_members(*inputs, _at(small))
            return small[:-1].astype(np.int64), int(bad)
        out = np.zeros(int(starts[-1]) + 1, np.int64)
        weights = np.ones(len(rows), np.int64) if weights is None else np.ascontiguousarray(weights)
        bad = self._c.tacit_weigh_members(*inputs, _at(weights), _at(out))
        return out[:-1], int(bad)

    def walsh_hadamard(self, x: I64) -> I64:
        """Return the unscaled Walsh-Hadamard transform along the last axis."""
        out = np.array(x, np.int64, order="C")
        columns = out.shape[-1]
        self._c.tacit_walsh_hadamard(_at(out), _SIZE(out.size // max(1, columns)), _SIZE(columns))
        return out

    def draw_bits(self, ones: npt.NDArray[np.int32], size: int, layers: Layers, coins: Coins) -> U8:
        """Return packed noisy bits of vectors with ones at these positions (-1: none), perturbed layer by layer."""
        ones = np.ascontiguousarray(ones, np.int32)
        n, each = ones.shape
        return self._draw(n, size, layers, coins, each, lambda at: (_at(ones[at:]), _at(None), _at(None), _WORD(0)))[1]

    def draw_hashed_bits(self, values: U64, seeds: U32, size: int, layers: Layers, coins: Coins) -> tuple[U32, U8]:
        """Draw a row of hash functions per value; return the rows and the noisy bits of the value's buckets."""
        values, seeds = np.ascontiguousarray(values), np.ascontiguousarray(seeds)
        rows, each = seeds.shape
        return self._draw(
            len(values), size, layers, coins, each, lambda at: (_at(None), _at(values[at:]), _at(seeds), _WORD(rows))
        )

    def _draw(
        self, n: int, size: int, layers: Layers, coins: Coins, each: int, inputs: Callable[[int], tuple[Any, ...]]
    ) -> tuple[U32, U8]:
        """Call the sampler until all n reports are drawn; `inputs(i)` are its first arguments from report i on.

        How many coin words a report takes is random. C therefore stops before the words could run out, and says how
        many it used; the rest stays in the stream, so that the reports do not depend on how the words were cut.
        """
        out, rows = np.empty((n, -(-size // 8)), np.uint8), np.empty(n, np.uint32)
        thresholds = np.array(layers, np.uint64).reshape(-1)
        # The most words one report can take: 64 for every 64 bits of every layer, and one for its row.
        worst = 64 * -(-size // 64) * len(layers) + 1
        done, used = 0, _SIZE(0)
        while done < n:
            ahead = min(max(_COIN_WORDS, 2 * worst), worst * (n - done))
            words = np.frombuffer(coins.peek(ahead, self.expand_keys), np.uint64)
            drawn = self._c.tacit_draw_layers(
                *inputs(done), _SIZE(each), _SIZE(n - done), _SIZE(size), _at(thresholds), _SIZE(len(layers)),
                _at(words), _SIZE(len(words)), _at(rows[done:]), _at(out[done:]), ctypes.byref(used),
            )  # fmt: skip
            coins.skip(used.value)
            done += int(drawn)
        return rows, out

    def affine_support(self, w: U32, c: U32, m: int, k: int, candidates: U64, weights: I64 | None) -> I64:
        """Return for each candidate i the total weight of the reports (w, c) with (w i - c) mod m below k.

        Many reports on all of 0 .. d-1 are sorted by multiplier; others are compared with every candidate.
        """
        w, c = np.ascontiguousarray(w, np.uint32), np.ascontiguousarray(c, np.uint32)
        low = (candidates % np.uint64(m)).astype(np.uint32)
        weights = None if weights is None else np.ascontiguousarray(weights, np.int64)
        n, d = len(w), len(low)
        if k >= m:  # Every block is everything.
            return np.full(d, n if weights is None else int(weights.sum()), np.int64)
        short, multipliers = weights is None and m < 1 << 16, min(n, m // 2 + 1)
        if _SORT_COST * n + multipliers * (m + d) < n * d // _COMPARED[not short] and _counts_up(candidates):
            return self._affine_windows(w, c, weights, m, k, d)

        def part(rows: slice) -> I64:
            out, a, b = np.zeros(d, np.int64), w[rows], c[rows]
            if short:
                inputs = _at(a), _at(b), _SIZE(len(a)), ctypes.c_uint32(m), ctypes.c_uint32(k)
                self._c.tacit_affine_support32(*inputs, _at(low), _SIZE(d), _at(out))
            else:
                x = None if weights is None else weights[rows]
                inputs = _at(a), _at(b), _at(x), _SIZE(len(a)), _WORD(m), _WORD(k)
                self._c.tacit_affine_support64(*inputs, _at(low), _SIZE(d), _at(out))
            return out

        return sum_over_threads(part, n, n * d)

    def _affine_windows(self, w: U32, c: U32, weights: I64 | None, m: int, k: int, d: int) -> I64:
        """`affine_support` of the candidates 0 .. d-1 by reports sorted by multiplier, which threads share."""
        n, modulus, block = len(w), ctypes.c_uint32(m), ctypes.c_uint32(k)
        starts, shifts = np.zeros(m // 2 + 2, np.uint64), np.empty(n, np.uint32)
        sorted_weights = None if weights is None else np.empty(n, np.int64)
        self._c.tacit_affine_sort(
            _at(w), _at(c), _at(weights), _SIZE(n), modulus, block, _at(starts), _at(shifts), _at(sorted_weights)
        )

        def part(rows: slice) -> I64:
            out, scratch = np.zeros(d, np.int64), np.empty(2 * m, np.uint64)
            self._c.tacit_affine_windows(
                _at(starts), _at(shifts), _at(sorted_weights), _SIZE(rows.start), _SIZE(rows.stop), modulus, block,
                _at(scratch), _SIZE(d), _at(out),
            )  # fmt: skip
            return out

        return sum_over_threads(part, m // 2 + 1, m // 2 * (m + d))

    def draw_subspaces(self, words: U64, values: U64, order: int) -> tuple[U64, U64]:
        """Return independent rows, one per word, and the parities of every value with its rows."""
        values = np.ascontiguousarray(values, np.uint64)
        (n, t), stride = words.shape, words.strides[0] // 8
        if n == 0 or words.strides != (8 * stride, 8):
            words, stride = np.ascontiguousarray(words), t
        rows, parities = np.empty((n, t), np.uint64), np.empty(n, np.uint64)
        self._c.tacit_draw_subspaces(
            _at(words), _SIZE(stride), _at(values), _SIZE(n), _SIZE(t), _WORD(order), _at(rows), _at(parities)
        )
        return rows, parities

    def valid_spans(self, reports: U8, t: int, order: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the reports of t independent rows below the order, and a pattern of t signs."""
        reports, out = np.ascontiguousarray(reports), np.empty(len(reports), np.bool_)
        n, width = _SIZE(len(reports)), _SIZE((reports.shape[1] - 1) // t)
        self._c.tacit_valid_spans(_at(reports), n, _SIZE(t), width, _WORD(order), _at(out))
        return out

    def count_spans(self, reports: U8, t: int, order: int, weights: I64 | None) -> tuple[I64, int]:
        """Return the counts (or total weights) of all signed rows of the reported spans, and how many were wrong."""
        reports = np.ascontiguousarray(reports)
        weights = None if weights is None else np.ascontiguousarray(weights, np.int64)
        # A report adds at most one to a cell, and 32-bit cells take half the cache.
        small = weights is None and len(reports) < 1 << 32
        count = self._c.tacit_count_spans if small else self._c.tacit_weigh_spans
        width, bad = _SIZE((reports.shape[1] - 1) // t), [0]

        def part(rows: slice) -> I64:
            out, block = np.zeros(2 * order, np.uint32 if small else np.int64), reports[rows]
            x = np.ones(0 if small else len(block), np.int64) if weights is None else weights[rows]
            found = count(_at(block), _at(x), _SIZE(len(block)), _SIZE(t), width, _WORD(order), _at(out))
            bad.append(int(found))
            return out.astype(np.int64)

        cells = sum_over_threads(part, len(reports), len(reports) << t)
        return cells, sum(bad)

    def draw_subsets(self, values: U32, keep: U8, size: int, take: int, words: U64) -> U8:
        """Return bitmaps of uniform subsets of size `take` that contain `values` exactly where `keep` is set."""
        out = np.empty((len(values), -(-size // 8)), np.uint8)
        values, keep = np.ascontiguousarray(values), np.ascontiguousarray(keep)
        words = np.ascontiguousarray(words)
        self._c.tacit_draw_subsets(
            _at(values), _at(keep), _SIZE(len(values)), _WORD(size), _WORD(take), _at(words), _at(out)
        )
        return out

    def expand_keys(self, keys: bytes, size: int) -> memoryview:
        """Return `size` bytes of SHAKE128, a multiple of 8, for each key of 32 bytes; keys are split over threads."""
        source = np.frombuffer(keys, np.uint64).reshape(-1, 4)
        out = np.empty((len(source), size // 8), np.uint64)

        def part(rows: slice) -> I64:
            some, block = source[rows], out[rows]
            self._c.tacit_shake128(_at(some), _SIZE(len(some)), _SIZE(size // 8), _at(block))
            return np.zeros(0, np.int64)  # Every slice has written its part of `out` itself.

        over_threads(part, len(source), out.nbytes)
        return out.reshape(-1).data.cast("B")

    def sha256_rows(self, first: int | None, rows: U8) -> U8:
        """Return the SHA-256 of a first byte, if any, and each row, 32 bytes a row."""
        rows, out = np.ascontiguousarray(rows), np.empty((len(rows), 32), np.uint8)
        n, width = rows.shape
        mark = ctypes.c_int32(-1 if first is None else first)
        self._c.tacit_sha256_rows(mark, _at(rows), _SIZE(n), _SIZE(width), _at(out))
        return out

    def report_planes(self, packed: U8, values: U32) -> U64:
        """Return a row of bits per value, one bit per report: whether that bit of the packed report is set."""
        packed, values = np.ascontiguousarray(packed), np.ascontiguousarray(values, np.uint32)
        (n, width), d = packed.shape, len(values)
        planes = np.zeros((d, -(-n // 64)), np.uint64)
        words = planes.shape[1]

        def part(at: slice) -> I64:
            self._c.tacit_bit_planes(
                _at(packed), _SIZE(n), _SIZE(width), _at(values), _SIZE(d), _SIZE(words), _SIZE(at.start),
                _SIZE(at.stop), _at(planes),
            )  # fmt: skip
            return np.zeros(0, np.int64)  # Every slice has written its words of `planes` itself.

        over_threads(part, words, n * d)
        return planes

    def hash_planes(self, seeds: U32, buckets: U32, g: int, values: U32) -> U64:
        """Return a row of bits per value, one bit per report: whether the value hashes to the reported bucket."""
        bounds, n, d = _bucket_bounds(g), len(seeds), len(values)
        seeds, values = np.ascontiguousarray(seeds, np.uint32), np.ascontiguousarray(values, np.uint32)
        low = bounds[buckets.astype(np.intp)]
        lows, spans = low.astype(np.uint32), (bounds[buckets.astype(np.intp) + 1] - low).astype(np.uint32)
        planes = np.zeros((d, -(-n // 64)), np.uint64)
        words = planes.shape[1]

        def part(at: slice) -> I64:
            self._c.tacit_hash_planes(
                _at(seeds), _at(lows), _at(spans), _SIZE(n), _at(values), _SIZE(d), _SIZE(words), _SIZE(at.start),
                _SIZE(at.stop), _at(planes),
            )  # fmt: skip
            return np.zeros(0, np.int64)

        over_threads(part, words, n * d)
        return planes

    def co_support(self, planes: U64) -> I64:
        """Return for every pair of planes how many bits both have; the diagonal counts the bits of one."""
        planes = np.ascontiguousarray(planes)
        d, words = planes.shape

        def part(at: slice) -> I64:
            out = np.zeros((d, d), np.int64)
            self._c.tacit_co_support(_at(planes), _SIZE(d), _SIZE(words), _SIZE(at.start), _SIZE(at.stop), _at(out))
            return out

        upper = sum_over_threads(part, words, words * d * d)
        return upper + np.triu(upper, 1).T

    def follow(self, step: I64, most: int) -> tuple[I64, int]:
        """Return the starts of reports in a window of coin words, and how many words they use; see `twin.follow`."""
        step = np.ascontiguousarray(step, np.int64)
        starts, used = np.empty(min(most, len(step)), np.int64), np.zeros(1, np.uint64)
        found = self._c.tacit_follow(_at(step), _SIZE(len(step)), _SIZE(most), _at(starts), _at(used))
        return starts[:found], int(used[0])

    def follow_lanes(
        self, words: U64, steps: I64, members: I64, unary: U64, ones: npt.NDArray[np.int32], width: int
    ) -> tuple[I64, U8, int]:
        """Return starts and payloads of reports in a window of words, and how many words they use; see the twin."""
        words, steps = np.ascontiguousarray(words), np.ascontiguousarray(steps, np.int64)
        members, unary = np.ascontiguousarray(members, np.int64), np.ascontiguousarray(unary, np.uint64)
        ones, most = np.ascontiguousarray(ones, np.int32), len(ones)
        starts, used = np.empty(most, np.int64), np.zeros(1, np.uint64)
        payloads = np.zeros((most, width), np.uint8)
        found = self._c.tacit_follow_lanes(
            _at(words), _at(steps), _at(members), _SIZE(len(words)), _SIZE(most), _at(unary), _at(ones),
            _SIZE(ones.shape[1]), _SIZE(width), _at(starts), _at(payloads), _at(used),
        )  # fmt: skip
        return starts[:found], payloads[:found], int(used[0])

    def isotonic(self, values: F64, weights: F64 | None) -> F64:
        """Return the nearest non-decreasing sequence in (weighted) least squares."""
        values = np.ascontiguousarray(values, np.float64)
        checked = None if weights is None else np.ascontiguousarray(weights, np.float64)
        # Pools of several values, 32 bytes each; pages that are never needed are never touched.
        pools, out = np.empty(4 * (len(values) // 2), np.uint64), np.empty(len(values))
        self._c.tacit_isotonic(_at(values), _at(checked), _SIZE(len(values)), _at(pools), _at(out))
        return out


def _stride(column: npt.NDArray[Any]) -> int:
    """Bytes from one element to the next; numpy may report any stride for an empty array."""
    return column.strides[0] if len(column) else column.itemsize


def _halves(candidates: U64) -> tuple[U32 | None, U32]:
    """Upper and lower 32 bits of the candidates; None instead of upper halves that are all zero."""
    large = len(candidates) > 0 and int(candidates.max()) >= 1 << 32
    return (candidates >> np.uint64(32)).astype(np.uint32) if large else None, candidates.astype(np.uint32)


def _runs(high: U32 | None, count: int) -> U64:
    """Offsets of the runs of candidates with equal upper halves, the end of the last run included."""
    inner = np.zeros(0, np.intp) if high is None else np.flatnonzero(high[1:] != high[:-1]) + 1
    return np.concatenate([[0], inner, [count]]).astype(np.uint64)


def _bucket_bounds(g: int) -> U64:
    """Bucket y holds the hash values bounds[y] .. bounds[y + 1] - 1: those with (h * g) >> 32 equal to y."""
    return ((np.arange(g + 1, dtype=np.uint64) << np.uint64(32)) + np.uint64(g - 1)) // np.uint64(g)


def _counts_up(candidates: U64) -> bool:
    """Whether the candidates are 0, 1, 2, ..."""
    return bool(np.array_equal(candidates, np.arange(len(candidates), dtype=np.uint64)))
