"""Subspaces of bit vectors in numpy, the twin of subspaces.c: draw them, check them, count them."""

import numpy as np
import numpy.typing as npt

from tacit.arrays import I64, U8, U64


def draw_rows(codes: "list[U64]", order: int) -> U64:
    """Return rows outside the span of the earlier ones, the r-th numbered by codes[r] below order - 2^r.

    The span is kept as a reduced basis, so that the vectors outside it are those with a non-zero part off its pivots.
    """
    n = len(codes[0])
    rows, basis = np.zeros((n, len(codes)), np.uint64), np.zeros((n, 0), np.uint64)
    for r, code in enumerate(codes):
        # order - 2^r = 2^r (spread - 1): 2^r choices on the pivot bits, times the non-zero parts off them.
        spread = order >> r
        inside, part = np.divmod(code, np.uint64(spread - 1))
        row = _scatter(part + np.uint64(1), basis, order)
        for i in range(r):
            row ^= np.where(inside >> np.uint64(i) & np.uint64(1), basis[:, i], np.uint64(0))
        rows[:, r] = row
        basis = _reduced(basis, row)
    return rows


def parities(rows: U64, values: U64) -> U64:
    """Return the parity of every value with each of its rows, row i in bit i."""
    odd = np.bitwise_count(rows & values[:, None]).astype(np.uint64) & np.uint64(1)
    return (odd << np.arange(rows.shape[1], dtype=np.uint64)).sum(axis=1, dtype=np.uint64)


def read_reports(reports: U8, t: int) -> tuple[U64, U64]:
    """Return the rows and the patterns of reports that are t rows of equal width, little-endian, and a byte."""
    n, width = len(reports), (reports.shape[1] - 1) // t
    wide = np.zeros((n, t, 8), np.uint8)
    wide[:, :, :width] = reports[:, :-1].reshape(n, t, width)
    return wide.view("<u8").reshape(n, t), reports[:, -1].astype(np.uint64)


def combinations(rows: U64) -> "list[tuple[int, U64]]":
    """Return the sums (XOR) of all non-empty sets of rows, each with its set as a mask."""
    sums = [np.zeros(len(rows), np.uint64)]
    for i in range(rows.shape[1]):
        sums += [one ^ rows[:, i] for one in sums]
    return list(enumerate(sums))[1:]


def possible(rows: U64, patterns: U64, order: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the reports whose rows are below the order and independent, with a sign for no others."""
    good = (rows < np.uint64(order)).all(axis=1) & (patterns < np.uint64(1 << rows.shape[1]))
    # Rows are independent if no combination of them is zero.
    return np.logical_and.reduce([good, *(combined != 0 for _, combined in combinations(rows))])


def signed_codes(rows: U64, patterns: U64) -> "list[U64]":
    """Return the codes 2 row + sign of every report, one array per combination of its rows."""
    return [
        combined << np.uint64(1) | np.bitwise_count(patterns & np.uint64(mask)).astype(np.uint64) & np.uint64(1)
        for mask, combined in combinations(rows)
    ]


def count_codes(codes: "list[U64]", cells: int, weights: I64 | None) -> I64:
    """Return how often (or with which total weight) every code occurs."""
    out = np.zeros(cells, np.int64)
    for code in codes:
        # np.bincount would add weights as doubles, which are not exact beyond 2^53.
        if weights is None:
            out += np.bincount(code.astype(np.intp), minlength=cells)
        else:
            np.add.at(out, code.astype(np.intp), weights)
    return out


def _scatter(code: U64, basis: U64, order: int) -> U64:
    """Put the bits of every code onto the positions that are not pivots of its basis."""
    pivots = np.bitwise_or.reduce(_pivot(basis), axis=1) if basis.shape[1] else np.zeros(len(code), np.uint64)
    row, left = np.zeros(len(code), np.uint64), code.copy()
    for j in range(order.bit_length() - 1):
        free = (pivots >> np.uint64(j) & np.uint64(1)) == 0
        row |= np.where(free, (left & np.uint64(1)) << np.uint64(j), np.uint64(0))
        left = np.where(free, left >> np.uint64(1), left)
    return row


def _pivot(x: U64) -> U64:
    """The highest set bit of every word below 2^53."""
    # frexp says x = m 2^e with 1/2 <= m < 1, so that e - 1 is the place of the highest bit.
    return np.uint64(1) << (np.frexp(x.astype(np.float64))[1] - 1).astype(np.uint64)


def _reduced(basis: U64, row: U64) -> U64:
    """Reduced bases of the spans of `basis` and `row`, highest pivot first."""
    for i in range(basis.shape[1]):
        row = np.where(row & _pivot(basis[:, i]), row ^ basis[:, i], row)
    pivot = _pivot(row)[:, None]
    cleared = np.where(basis & pivot, basis ^ row[:, None], basis)
    return np.sort(np.concatenate([cleared, row[:, None]], axis=1), axis=1)[:, ::-1]
