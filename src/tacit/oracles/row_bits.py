"""Reports that are a row number and packed bits: layout and counting. The row is a cohort in RAPPOR, a hash in CMS."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tacit import kernels
from tacit.arrays import I64, U8
from tacit.core.mechanism import Reports, bits_dtype, code_dtype
from tacit.oracles.unary import unpack

# Unpacked bits that are in memory at a time.
_CHUNK_CELLS = 1 << 22
# From this many reports per row on, one kernel call per row beats unpacking all bits.
_DENSE = 4


def row_bits_dtype(name: str, rows: int, size: int) -> "np.dtype[Any]":
    """Return the layout of a row number of the smallest width, then `size` packed bits."""
    return np.dtype([(name, code_dtype(rows)), ("bits", bits_dtype(size))])


def row_tables(rows: npt.NDArray[Any], packed: U8, shape: "tuple[int, int]", weights: I64 | None) -> I64:
    """Return a line per row: total weight of its reports, then the total weight of those with each bit set."""
    out = np.zeros((shape[0], 1 + shape[1]), np.int64)
    if len(rows) == 0:
        return out
    out[:, 0] = kernels.histogram(np.ascontiguousarray(rows), shape[0], weights)[0]
    # Sorted by row, the reports of a row lie side by side and can be summed as one block.
    order = np.argsort(rows, kind="stable")
    sorted_rows, packed = rows[order].astype(np.intp), np.ascontiguousarray(packed[order])
    weights = None if weights is None else weights[order]
    # Rows in use; with weights of both signs some may cancel, which only makes the choice below less apt.
    groups = int(np.count_nonzero(out[:, 0])) or 1
    fill = _fill_by_kernel if len(rows) >= _DENSE * groups else _fill_by_chunk
    fill(out[:, 1:], sorted_rows, packed, weights)
    return out


def _starts(sorted_rows: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Offsets at which a new row begins."""
    return np.flatnonzero(np.diff(sorted_rows, prepend=-1))


def _fill_by_kernel(out: I64, rows: npt.NDArray[np.intp], packed: U8, weights: I64 | None) -> None:
    """Sum the packed bits of every row by a kernel call of its own."""
    starts = _starts(rows)
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(rows)], strict=True):
        part = None if weights is None else weights[start:stop]
        out[rows[start]] = kernels.bit_columns(packed[start:stop], out.shape[1], part)


def _fill_by_chunk(out: I64, rows: npt.NDArray[np.intp], packed: U8, weights: I64 | None) -> None:
    """Sum runs of equal rows within chunks of unpacked bits; a row may go on in the next chunk, hence the +=."""
    step = max(1, _CHUNK_CELLS // out.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        bits = unpack(packed[part], out.shape[1])
        cells = bits if weights is None else bits * weights[part, None]
        starts = _starts(rows[part])
        out[rows[part][starts]] += np.add.reduceat(cells, starts, axis=0, dtype=np.int64)


def all_row_bits(dtype: "np.dtype[Any]", name: str, rows: int, bitmaps: U8) -> Reports:
    """Return every row with every bitmap, for audits by enumeration."""
    reports = np.empty(rows * len(bitmaps), dtype)
    reports[name] = np.repeat(np.arange(rows), len(bitmaps))
    reports["bits"] = np.tile(bitmaps, (rows, 1))
    return reports
