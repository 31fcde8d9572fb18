"""The kernels in numpy: slower, and the same integers bit for bit. Used where no C compiler was at hand."""

import numpy as np
import numpy.typing as npt

from tacit.device.coins import Coins
from tacit.device.hashing import bucket
from tacit.device.unary import bit_planes, draw_layers

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

Layers = list[tuple[int, int]]
"""Thresholds (t1, t0) of one or more layers of noise, first one first."""

_CHUNK_CELLS = 1 << 20


def mix32(x: U32) -> U32:
    """A bijection of 32-bit words (Murmur3's finaliser), element by element."""
    x = x ^ x >> np.uint32(16)
    x = x * np.uint32(0x85EBCA6B)
    x = x ^ x >> np.uint32(13)
    x = x * np.uint32(0xC2B2AE35)
    return x ^ x >> np.uint32(16)


def hash32(seeds: U32, values: U64) -> U32:
    """The seeded hash of 64-bit values; the two arrays broadcast."""
    first = mix32(seeds ^ (values >> np.uint64(32)).astype(np.uint32))
    second = mix32(first + np.uint32(0x9E3779B9))
    x = (mix32(values.astype(np.uint32)) ^ first) * np.uint32(0x85EBCA6B)
    return (x ^ x >> np.uint32(15) ^ second) * np.uint32(0xC2B2AE35)


def buckets_of(seeds: U32, values: U64, g: int) -> U32:
    """The bucket (h * g) >> 32 of every value under its seed."""
    return (hash32(seeds, values).astype(np.uint64) * np.uint64(g) >> np.uint64(32)).astype(np.uint32)


def _row_chunks(n: int, columns: int) -> "list[slice]":
    step = max(1, _CHUNK_CELLS // max(1, columns))
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


def hash_support(seeds: U32, buckets: U32, g: int, candidates: U64, weights: I64 | None) -> I64:
    """Total weight of the reports that support each candidate."""
    out = np.zeros(len(candidates), np.int64)
    for rows in _row_chunks(len(seeds), len(candidates)):
        supported = buckets_of(seeds[rows, None], candidates[None, :], g) == buckets[rows, None]
        out += _weighted_columns(supported, None if weights is None else weights[rows])
    return out


def hash_matches(seeds: U32, buckets: U32, g: int, values: U64) -> "npt.NDArray[np.int32]":
    """How many of the values every report supports."""
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
    """Sum over public hash functions of the table cell each candidate falls into."""
    out = np.zeros(len(candidates), np.int64)
    for seed, cells in zip(seeds, table, strict=True):
        out += cells[buckets_of(np.asarray([seed], np.uint32), candidates, table.shape[1])]
    return out


def bit_columns(packed: U8, size: int, weights: I64 | None) -> I64:
    """Column sums of packed bits, bit 0 first."""
    out = np.zeros(size, np.int64)
    for rows in _row_chunks(len(packed), size):
        bits = np.unpackbits(packed[rows], axis=1, count=size, bitorder="little")
        out += _weighted_columns(bits, None if weights is None else weights[rows])
    return out


def histogram(codes: npt.NDArray[np.unsignedinteger], cells: int, weights: I64 | None) -> tuple[I64, int]:
    """Counts (or total weights) per code, and how many codes were not below `cells`."""
    good = codes < cells
    bad = len(codes) - int(np.count_nonzero(good))
    codes = codes[good] if bad else codes
    if weights is None:
        return np.bincount(codes.astype(np.intp), minlength=cells).astype(np.int64), bad
    out = np.zeros(cells, np.int64)
    np.add.at(out, codes.astype(np.intp), weights[good] if bad else weights)
    return out, bad


def count_members(reports: U8, starts: U64, weights: I64 | None) -> tuple[I64, int]:
    """Counts (or total weights) per cell of reports of many members, and how many were out of range.

    A report is its member (4 bytes) and a code of up to 8 bytes; member m owns cells starts[m] up to starts[m + 1].
    """
    rows = np.zeros((len(reports), 12), np.uint8)
    rows[:, : reports.shape[1]] = reports
    members = rows[:, :4].copy().view("<u4")[:, 0].astype(np.intp)
    codes = rows[:, 4:].copy().view("<u8")[:, 0]
    known = members < len(starts) - 1
    members = np.where(known, members, 0)
    good = known & (codes < starts[members + 1] - starts[members])
    cells = (starts[members] + codes)[good]
    out, _ = histogram(cells, int(starts[-1]), None if weights is None else weights[good])
    return out, len(reports) - int(np.count_nonzero(good))


def walsh_hadamard(x: I64) -> I64:
    """The unscaled Walsh-Hadamard transform along the last axis."""
    size = x.shape[-1]
    out = x.astype(np.int64).reshape(-1, size)
    h = 1
    while h < size:
        pairs = out.reshape(-1, size // (2 * h), 2, h)
        out = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2)
        h *= 2
    return out.reshape(x.shape)


def draw_bits(ones: npt.NDArray[np.int32], size: int, layers: Layers, coins: Coins) -> U8:
    """Noisy bits of vectors with ones at the given positions (-1: none), by the device reference, row by row."""
    planes = [bit_planes(*layer) for layer in layers]
    masks = (sum({1 << one for one in row if one >= 0}) for row in ones.tolist())
    packed = b"".join(draw_layers(size, mask, planes, coins) for mask in masks)
    return np.frombuffer(packed, np.uint8).reshape(len(ones), -(-size // 8)).copy()


def draw_hashed_bits(values: U64, seeds: U32, size: int, layers: Layers, coins: Coins) -> tuple[U32, U8]:
    """Rows, and noisy bits with ones at the buckets of the values under the hash functions of their row."""
    planes = [bit_planes(*layer) for layer in layers]
    rows, packed = np.empty(len(values), np.uint32), bytearray()
    for i, value in enumerate(values.tolist()):
        rows[i] = coins.uniform(len(seeds))
        mask = sum({1 << bucket(seed, value, size) for seed in seeds[rows[i]].tolist()})
        packed += draw_layers(size, mask, planes, coins)
    return rows, np.frombuffer(packed, np.uint8).reshape(len(values), -(-size // 8)).copy()


def affine_support(w: U32, c: U32, m: int, k: int, candidates: U64, weights: I64 | None) -> I64:
    """Total weight of the reports (w, c) with (w i - c) mod m below k, for each candidate i."""
    out = np.zeros(len(candidates), np.int64)
    modulus = np.uint64(m)
    for rows in _row_chunks(len(w), len(candidates)):
        points = w[rows, None].astype(np.uint64) * candidates[None, :] + (modulus - c[rows, None])
        supported = points % modulus < np.uint64(k)
        out += _weighted_columns(supported, None if weights is None else weights[rows])
    return out


def uniform(words: U64, m: int) -> U64:
    """(word * m) >> 64 in 32-bit limbs, for m up to 2^64."""
    low_mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    m_high, m_low = np.uint64(m >> 32), np.uint64(m & 0xFFFFFFFF)
    w_high, w_low = words >> half, words & low_mask
    middle = w_high * m_low + (w_low * m_low >> half)
    if m_high == 0:
        return middle >> half
    second = w_low * m_high + (middle & low_mask)
    return w_high * m_high + (middle >> half) + (second >> half)


def draw_subsets(values: U32, keep: U8, size: int, take: int, words: U64) -> U8:
    """Bitmaps of uniform subsets of size `take` that contain `values` where `keep` is set (Floyd's sampler)."""
    n = len(values)
    rows, skip = np.arange(n), values.astype(np.int64)
    member = np.zeros((n, size), np.uint8)
    member[rows, skip] = keep
    for s in range(take):
        count = take - keep.astype(np.int64)
        top = np.minimum(size - 1 - count + s, size - 2)
        drawn = _uniform_each(words[:, s], (top + 1).astype(np.uint64)).astype(np.int64)
        at, last = drawn + (drawn >= skip), top + (top >= skip)
        at = np.where(member[rows, at] == 1, last, at)
        active = s < count
        member[rows[active], at[active]] = 1
    return np.packbits(member, axis=1, bitorder="little")


def _uniform_each(words: U64, m: U64) -> U64:
    """(word * m) >> 64 for moduli below 2^32, element by element."""
    half = np.uint64(32)
    return ((words >> half) * m + ((words & np.uint64(0xFFFFFFFF)) * m >> half)) >> half


def isotonic(values: F64, weights: F64 | None) -> F64:
    """The nearest non-decreasing sequence in (weighted) squares, by pooling adjacent violators one value at a time."""
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
