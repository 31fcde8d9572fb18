"""The kernels in numpy: slower than C, and the same integers bit for bit. Used where no C compiler was at hand.

This is the readable version: what a kernel computes is documented here, how it is made fast in the C files.
"""

from hashlib import sha256

import numpy as np
import numpy.typing as npt

from tacit.arrays import F64, I64, U8, U32, U64
from tacit.device.kinds.unary import bit_planes, draw_layers
from tacit.device.numbers.coins import Coins
from tacit.device.numbers.coins import expand_keys as expand_keys
from tacit.device.numbers.hashing import bucket
from tacit.kernels import subspaces
from tacit.kernels.window import WindowCoins, WindowEnd

Layers = list[tuple[int, int]]
"""Thresholds (t1, t0) of one or more layers of noise, first one first."""

# Entries of a temporary table of reports by candidates, which bounds memory whatever the number of reports.
_CHUNK_CELLS = 1 << 20


def mix32(x: U32) -> U32:
    """Apply Murmur3's finaliser, a bijection of 32-bit words, to every element."""
    x = x ^ x >> np.uint32(16)
    x = x * np.uint32(0x85EBCA6B)
    x = x ^ x >> np.uint32(13)
    x = x * np.uint32(0xC2B2AE35)
    return x ^ x >> np.uint32(16)


def hash32(seeds: U32, values: U64) -> U32:
    """Return the seeded 32-bit hash of 64-bit values; the two arrays broadcast.

    The upper half of a value is mixed into the seed and the lower half is mixed by itself, so that for values below
    2^32 both mixings are done once: per report and per candidate instead of per pair.
    """
    first = mix32(seeds ^ (values >> np.uint64(32)).astype(np.uint32))
    second = mix32(first + np.uint32(0x9E3779B9))
    x = (mix32(values.astype(np.uint32)) ^ first) * np.uint32(0x85EBCA6B)
    return (x ^ x >> np.uint32(15) ^ second) * np.uint32(0xC2B2AE35)


def buckets_of(seeds: U32, values: U64, g: int) -> U32:
    """Return the bucket (h * g) >> 32 of every value under its seed, h being the hash."""
    return (hash32(seeds, values).astype(np.uint64) * np.uint64(g) >> np.uint64(32)).astype(np.uint32)


def _row_chunks(n: int, columns: int, *, multiple: int = 1) -> "list[slice]":
    """Slices of n rows whose tables with this many columns have a bounded size, and start at multiples."""
    step = multiple * max(1, _CHUNK_CELLS // (multiple * max(1, columns)))
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def hash_support(seeds: U32, buckets: U32, g: int, candidates: U64, weights: I64 | None) -> I64:
    """Return the total weight of the reports that support each candidate: those whose bucket it hashes to."""
    out = np.zeros(len(candidates), np.int64)
    for rows in _row_chunks(len(seeds), len(candidates)):
        supported = buckets_of(seeds[rows, None], candidates[None, :], g) == buckets[rows, None]
        out += _weighted_columns(supported, None if weights is None else weights[rows])
    return out


def hash_matches(seeds: U32, buckets: U32, g: int, values: U64) -> "npt.NDArray[np.int32]":
    """Return for every report how many of the values it supports."""
    out = np.zeros(len(seeds), np.int32)
    for rows in _row_chunks(len(seeds), len(values)):
        supported = buckets_of(seeds[rows, None], values[None, :], g) == buckets[rows, None]
        out[rows] = supported.sum(axis=1, dtype=np.int32)
    return out


def _weighted_columns(matrix: npt.NDArray[np.bool_] | U8, weights: I64 | None) -> I64:
    if weights is None:
        return matrix.sum(axis=0, dtype=np.int64)
    return (matrix * weights[:, None]).sum(axis=0, dtype=np.int64)


def pooled_support(seeds: U32, table: I64, candidates: U64) -> I64:
    """Return for each candidate the sum of its cells: one cell of every hash function's row of the table."""
    out = np.zeros(len(candidates), np.int64)
    for seed, cells in zip(seeds, table, strict=True):
        out += cells[buckets_of(np.asarray([seed], np.uint32), candidates, table.shape[1])]
    return out


def bit_columns(packed: U8, size: int, weights: I64 | None) -> I64:
    """Return how often each of `size` bits is set (or the weight of those rows); bit 0 of a byte comes first."""
    out = np.zeros(size, np.int64)
    for rows in _row_chunks(len(packed), size):
        bits = np.unpackbits(packed[rows], axis=1, count=size, bitorder="little")
        out += _weighted_columns(bits, None if weights is None else weights[rows])
    return out


def bit_counts(packed: U8) -> I64:
    """Return how many bits each row has set."""
    return np.bitwise_count(packed).sum(axis=1, dtype=np.int64)


def set_columns(packed: U8, size: int, members: int) -> tuple[I64, int]:
    """Return how often each bit is set, and how many rows have another number of bits or one beyond the size."""
    spare = np.uint8(0xFF << size % 8 & 0xFF if size % 8 else 0)
    wrong = (bit_counts(packed) != members) | (packed[:, -1] & spare != 0)
    return bit_columns(packed, size, None), int(np.count_nonzero(wrong))


def report_planes(packed: U8, values: U32) -> U64:
    """Return a row of bits per value, one bit per report: whether that bit of the packed report is set.

        reports   r0: 0110...   r1: 1010...          planes   value 0: 01...   value 1: 10...   value 2: 11...

    Planes are words of 64 reports, the first report in the lowest bit; bits beyond the last report are zero.
    """
    planes = np.zeros((len(values), 8 * -(-len(packed) // 64)), np.uint8)
    for rows in _row_chunks(len(packed), 8 * packed.shape[1], multiple=8):
        bits = packed[rows][:, values >> 3] >> (values & np.uint32(7)).astype(np.uint8) & np.uint8(1)
        _put(planes, rows, bits)
    return planes.view("<u8").astype(np.uint64)


def hash_planes(seeds: U32, buckets: U32, g: int, values: U32) -> U64:
    """Return a row of bits per value, one bit per report: whether the value hashes to the reported bucket."""
    planes = np.zeros((len(values), 8 * -(-len(seeds) // 64)), np.uint8)
    for rows in _row_chunks(len(seeds), len(values), multiple=8):
        supported = buckets_of(seeds[rows, None], values[None, :].astype(np.uint64), g) == buckets[rows, None]
        _put(planes, rows, supported)
    return planes.view("<u8").astype(np.uint64)


def _put(planes: U8, rows: slice, bits: "npt.NDArray[np.bool_] | U8") -> None:
    """Write the bits of some reports (rows) into the planes; the first report is a multiple of 8."""
    packed = np.packbits(bits, axis=0, bitorder="little").T
    planes[:, rows.start // 8 : rows.start // 8 + packed.shape[1]] = packed


def co_support(planes: U64) -> I64:
    """Return for every pair of planes how many bits both have; the diagonal counts the bits of one."""
    out = np.zeros((len(planes), len(planes)), np.int64)
    for i, plane in enumerate(planes):
        out[i] = np.bitwise_count(planes & plane).sum(axis=1, dtype=np.int64)
    return out


def histogram(codes: npt.NDArray[np.unsignedinteger], cells: int, weights: I64 | None) -> tuple[I64, int]:
    """Return the counts (or total weights) per code, and how many codes were not below `cells`."""
    good = codes < cells
    bad = len(codes) - int(np.count_nonzero(good))
    codes = codes[good] if bad else codes
    if weights is None:
        return np.bincount(codes.astype(np.intp), minlength=cells).astype(np.int64), bad
    # np.bincount would add the weights as doubles, which are not exact beyond 2^53.
    out = np.zeros(cells, np.int64)
    np.add.at(out, codes.astype(np.intp), weights[good] if bad else weights)
    return out, bad


def count_members(reports: U8, starts: U64, weights: I64 | None) -> tuple[I64, int]:
    """Return the counts (or total weights) per cell of reports of many members, and how many were out of range.

    A report is its member (4 bytes) and a code of up to 8 bytes; member m owns cells starts[m] up to starts[m + 1].

        report   | member u32 | code, little-endian | zeros |
        cells    | member 0 ... | member 1 | member 2 ...... |
                 starts[0]      starts[1]  starts[2]         starts[3]
    """
    rows = np.zeros((len(reports), 12), np.uint8)
    rows[:, : reports.shape[1]] = reports
    members = rows[:, :4].copy().view("<u4")[:, 0].astype(np.intp)
    codes = rows[:, 4:].copy().view("<u8")[:, 0]
    # An unknown member is looked up as member 0, so that no index is out of bounds, and refused by `known`.
    known = members < len(starts) - 1
    members = np.where(known, members, 0)
    good = known & (codes < starts[members + 1] - starts[members])
    cells = (starts[members] + codes)[good]
    out, _ = histogram(cells, int(starts[-1]), None if weights is None else weights[good])
    return out, len(reports) - int(np.count_nonzero(good))


def walsh_hadamard(x: I64) -> I64:
    """Return the unscaled Walsh-Hadamard transform along the last axis, whose length is a power of two."""
    size = x.shape[-1]
    out = x.astype(np.int64).reshape(-1, size)
    # Level h combines x[i] and x[i + h] for every i whose bit h is 0: axis 2 of `pairs` is that bit of the index.
    h = 1
    while h < size:
        pairs = out.reshape(-1, size // (2 * h), 2, h)
        out = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2)
        h *= 2
    return out.reshape(x.shape)


def draw_bits(ones: npt.NDArray[np.int32], size: int, layers: Layers, coins: Coins) -> U8:
    """Return packed noisy bits of vectors with ones at these positions (-1: none), by the device's code row by row."""
    planes = [bit_planes(*layer) for layer in layers]
    masks = (sum({1 << one for one in row if one >= 0}) for row in ones.tolist())
    packed = b"".join(draw_layers(size, mask, planes, coins) for mask in masks)
    return np.frombuffer(packed, np.uint8).reshape(len(ones), -(-size // 8)).copy()


def draw_hashed_bits(values: U64, seeds: U32, size: int, layers: Layers, coins: Coins) -> tuple[U32, U8]:
    """Draw a row of hash functions per value; return the rows and the noisy bits of the value's buckets."""
    planes = [bit_planes(*layer) for layer in layers]
    rows, packed = np.empty(len(values), np.uint32), bytearray()
    for i, value in enumerate(values.tolist()):
        rows[i] = coins.uniform(len(seeds))
        mask = sum({1 << bucket(seed, value, size) for seed in seeds[rows[i]].tolist()})
        packed += draw_layers(size, mask, planes, coins)
    return rows, np.frombuffer(packed, np.uint8).reshape(len(values), -(-size // 8)).copy()


def affine_support(w: U32, c: U32, m: int, k: int, candidates: U64, weights: I64 | None) -> I64:
    """Return for each candidate i the total weight of the reports (w, c) with (w i - c) mod m below k."""
    out = np.zeros(len(candidates), np.int64)
    modulus = np.uint64(m)
    residues = candidates % modulus
    for rows in _row_chunks(len(w), len(candidates)):
        # m - c instead of -c: unsigned numbers must not go below zero before the modulus is taken.
        points = w[rows, None] % modulus * residues[None, :] + (modulus - c[rows, None] % modulus)
        supported = points % modulus < np.uint64(k)
        out += _weighted_columns(supported, None if weights is None else weights[rows])
    return out


def uniform(words: U64, m: int) -> U64:
    """Return (word * m) >> 64 for every word, uniform below m; m is at most 2^64.

    numpy has no 128-bit product. With w = (w_high, w_low) and m = (m_high, m_low) in 32-bit halves:

            w_low  m_low                 only its upper half carries over: >> 32
          + w_high m_low  << 32          `middle`, with that carry
          + w_low  m_high << 32          `second`, with the lower half of `middle`
          + w_high m_high << 64          no partial sum exceeds 64 bits
    """
    low_mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    m_high, m_low = np.uint64(m >> 32), np.uint64(m & 0xFFFFFFFF)
    w_high, w_low = words >> half, words & low_mask
    middle = w_high * m_low + (w_low * m_low >> half)
    if m_high == 0:
        return middle >> half
    second = w_low * m_high + (middle & low_mask)
    return w_high * m_high + (middle >> half) + (second >> half)


def draw_subsets(values: U32, keep: U8, size: int, take: int, words: U64) -> U8:
    """Return bitmaps of uniform subsets of size `take` that contain `values` exactly where `keep` is set.

    Floyd's sampler (Bentley and Floyd, CACM 1987) on the size - 1 other values: draw s is uniform up to `top`, and if
    that element was drawn before, `top` is taken instead, which cannot have been. All rows draw their s-th element at
    once; a row with `keep` has one element fewer to draw and sits out the last step.
    """
    n = len(values)
    rows, skip = np.arange(n), values.astype(np.int64)
    member = np.zeros((n, size), np.uint8)
    member[rows, skip] = keep
    for s in range(take):
        count = take - keep.astype(np.int64)
        top = np.minimum(size - 1 - count + s, size - 2)
        drawn = _uniform_each(words[:, s], (top + 1).astype(np.uint64)).astype(np.int64)
        # Elements are numbered without the respondent's own value; those from it on move up by one.
        at, last = drawn + (drawn >= skip), top + (top >= skip)
        at = np.where(member[rows, at] == 1, last, at)
        active = s < count
        member[rows[active], at[active]] = 1
    return np.packbits(member, axis=1, bitorder="little")


def _uniform_each(words: U64, m: U64) -> U64:
    """(word * m) >> 64 for every word and its own modulus below 2^32."""
    half = np.uint64(32)
    return ((words >> half) * m + ((words & np.uint64(0xFFFFFFFF)) * m >> half)) >> half


def draw_subspaces(words: U64, values: U64, order: int) -> tuple[U64, U64]:
    """Return independent rows, one per word, and the parities of every value with its rows, row i in bit i.

    The r-th row is uniform outside the span of the earlier ones; the order is a power of two.
    """
    rows = subspaces.draw_rows([uniform(words[:, r], order - (1 << r)) for r in range(words.shape[1])], order)
    return rows, subspaces.parities(rows, values)


def valid_spans(reports: U8, t: int, order: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the reports of t independent rows below the order, and a pattern of t signs."""
    return subspaces.possible(*subspaces.read_reports(reports, t), order)


def count_spans(reports: U8, t: int, order: int, weights: I64 | None) -> tuple[I64, int]:
    """Return the counts (or total weights) of all signed rows of the reported spans, and how many were wrong.

    A report is t rows of equal width and a byte of their signs. The sum of some rows has the sum of their signs, and
    its cell is 2 row + sign. Reports that `valid_spans` refuses are not counted.
    """
    rows, patterns = subspaces.read_reports(reports, t)
    good = subspaces.possible(rows, patterns, order)
    codes = subspaces.signed_codes(rows[good], patterns[good])
    cells = subspaces.count_codes(codes, 2 * order, None if weights is None else weights[good])
    return cells, len(reports) - int(np.count_nonzero(good))


def follow(step: I64, most: int) -> tuple[I64, int]:
    """Return the starts of at most so many reports in a window of coin words, and how many words they use.

    A report that starts at word i takes step[i] words, the first of which draws its member; starts are behind that.
    One that would reach beyond the window is left out, and all after it.
    """
    steps: list[int] = step.tolist()
    starts: list[int] = []
    at, words = 0, len(steps)
    while len(starts) < most and at < words and at + steps[at] <= words:
        starts.append(at + 1)
        at += steps[at]
    return np.array(starts, np.int64), at


def follow_lanes(
    words: U64, steps: I64, members: I64, unary: U64, ones: npt.NDArray[np.int32], width: int
) -> tuple[I64, U8, int]:
    """Return starts and payloads of at most `len(ones)` reports in a window of words, and how many words they use.

    As `follow`, but where the step is 0 the member is unary and takes as many words as its coins need: the report is
    drawn by row members[i] of `unary`, which is (column, size, t1, t0), with its one at ones[report, column].
    Payloads of the other members are left zero.
    """
    window, payloads = WindowCoins(words), np.zeros((len(ones), width), np.uint8)
    starts: list[int] = []
    at, rows = 0, unary.tolist()
    while len(starts) < len(ones) and at < len(words):
        window.place = at + int(steps[at])
        if not steps[at]:
            column, size, t1, t0 = rows[int(members[at])]
            window.place = at + 1
            try:
                packed = draw_layers(size, 1 << int(ones[len(starts), column]), [bit_planes(t1, t0)], window)
            except WindowEnd:
                break
            payloads[len(starts), : len(packed)] = np.frombuffer(packed, np.uint8)
        if window.place > len(words):
            break
        starts.append(at + 1)
        at = window.place
    return np.array(starts, np.int64), payloads[: len(starts)], at


def isotonic(values: F64, weights: F64 | None) -> F64:
    """Return the nearest non-decreasing sequence in (weighted) least squares, by pooling adjacent violators.

    Blocks of pooled values lie on a stack; a new value joins the top block for as long as that one's mean is larger.
    """
    means: list[float] = []
    blocks: list[tuple[float, float, int]] = []  # Sum, weight and number of values of every block.
    each = [1.0] * len(values) if weights is None else np.asarray(weights, np.float64).tolist()
    for mean, weight in zip(np.asarray(values, np.float64).tolist(), each, strict=True):
        total, count = mean * weight, 1
        while means and means[-1] > mean:
            means.pop()
            before, other, length = blocks.pop()
            total, weight, count = before + total, other + weight, length + count
            mean = total / weight
        means.append(mean)
        blocks.append((total, weight, count))
    return np.repeat(np.array(means, np.float64), [count for _, _, count in blocks])


def sha256_rows(first: int | None, rows: U8) -> U8:
    """Return the SHA-256 of a first byte, if any, and each row, 32 bytes a row."""
    mark = b"" if first is None else bytes([first])
    hashes = b"".join([sha256(mark + row.tobytes()).digest() for row in rows])
    return np.frombuffer(hashes, np.uint8).reshape(len(rows), 32)
