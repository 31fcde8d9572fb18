"""Large tallies as rows (array, cell, count), of which only those that are not zero are sent, and which an engine sums.

A tally is a list of integer arrays (see `tacit.wire.tallies`): totals, cells, and their squares where reports are
weighted; of a composed mechanism those of every block of members, with a line of cells per member. `array` is the
place in this list, so that it tells the block, and `cell` the place in the array, which tells member and cell. The
number of reports is a row too, in an array of its own. Adding tallies is adding rows with equal places.
"""

from typing import Any

import numpy as np

from tacit.arrays import I64
from tacit.core.extras import load
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally
from tacit.errors import Overflow
from tacit.wire.tallies import empty_tally, tally_arrays, tally_of_arrays

N, SQUARED = -1, -2
"""Arrays beside those of the tally: the number of reports, and which arrays of squared weights there are."""


def rows_of(tally: AnyTally) -> Any:
    """The cells of a tally that are not zero, as an Arrow record batch; none of an empty one."""
    pa, arrays = load("pyarrow"), [] if tally.is_empty else [array.reshape(-1) for array in tally_arrays(tally)]
    found = [np.flatnonzero(array) for array in arrays]
    # Squares may all be zero even where reports are weighted, so that their being there is a row of its own; a block
    # of members that nobody answered has none.
    squares = [i for i, size in enumerate(_sizes(tally.mechanism)) if arrays and not size and arrays[i].size]
    heads = [(N, 0, tally.n), *((SQUARED, i, 1) for i in squares)] if arrays else []
    numbers = [np.full(len(cells), i) for i, cells in enumerate(found)]
    counts = [array[cells] for array, cells in zip(arrays, found, strict=True)]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(_joined([[number for number, _, _ in heads], *numbers]), pa.int32()),
            pa.array(_joined([[cell for _, cell, _ in heads], *found]), pa.int64()),
            pa.array(_joined([[count for _, _, count in heads], *counts]), pa.int64()),
        ],
        names=["array", "cell", "count"],
    )


def _joined(parts: list[Any]) -> I64:
    return np.concatenate([np.asarray(part, np.int64) for part in parts])


def tally_of_rows(mechanism: Mechanism, table: Any) -> AnyTally:
    """The tally whose rows, summed by an engine, are those of an Arrow table; Overflow where a sum is NULL."""
    if table.column("count").null_count:
        raise Overflow("tally: a sum of weights exceeds 64 bits; use a coarser decimal scale for the weights")
    numbers, cells, counts = (table.column(name).to_numpy() for name in ("array", "cell", "count"))
    squares = set(cells[numbers == SQUARED].tolist())
    # Squares stand behind the cells that they are the squares of.
    sizes = _sizes(mechanism)
    arrays = [np.zeros(sizes[i - 1] if i in squares else size, np.int64) for i, size in enumerate(sizes)]
    for i, array in enumerate(arrays):
        mine = numbers == i
        array[cells[mine]] = counts[mine]
    return tally_of_arrays(mechanism, int(counts[numbers == N].sum()), arrays)


def _sizes(mechanism: Any) -> list[int]:
    """The sizes of the arrays of an empty tally; those of squares are 0."""
    return [array.size for array in tally_arrays(empty_tally(mechanism))]
