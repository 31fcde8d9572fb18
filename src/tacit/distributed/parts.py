"""The two functions that count reports on any engine: one tally per partition, and sums of such tallies.

    partition of record batches --count_part--> bytes of a tally
    bytes of some tallies       --add_parts---> bytes of their sum

Tallies are integers, so that any order and any tree of additions gives the same bits as one machine. Both functions
take the mechanism as bytes of its spec, which every engine can send along: executors parse it again.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from tacit import __version__
from tacit.catalog import parse
from tacit.core.extras import load
from tacit.core.mechanism import Mechanism
from tacit.core.members import AnyTally
from tacit.device.numbers.canonical import canonical
from tacit.errors import InvalidSpec
from tacit.kernels import compiled
from tacit.lake.count import tally_batch
from tacit.wire.tallies import dump_tally, empty_tally, load_tally

KERNEL = "c" if compiled else "numpy"
"""Which of the two kernels this process counts with; both give the same integers, and numpy takes longer."""

# Engines hand over some thousand rows at a time. Every call of a kernel has overhead, so that small batches are joined.
_JOINED_ROWS = 1 << 17


def spec_of(mechanism: Mechanism) -> bytes:
    """The mechanism as bytes, from which any process makes the same one again; InvalidSpec if it could not."""
    spec = canonical(mechanism.spec())
    if mechanism_of(spec).digest != mechanism.digest:
        raise InvalidSpec(f"{mechanism.kind}: the spec does not give the same mechanism on another machine")
    return spec


@lru_cache(maxsize=64)
def mechanism_of(spec: bytes) -> Mechanism:
    """The mechanism of a spec, parsed once per process."""
    return parse(json.loads(spec))


def joined(batches: Iterable[Any], rows: int = _JOINED_ROWS) -> Iterator[Any]:
    """Record batches as tables of at least `rows` rows each, but for the last."""
    pa, waiting, n = load("pyarrow"), list[Any](), 0
    for batch in batches:
        waiting.append(batch)
        n += batch.num_rows
        if n >= rows:
            yield pa.Table.from_batches(waiting)
            waiting, n = [], 0
    if n:
        yield pa.Table.from_batches(waiting)


def count_batches(mechanism: Mechanism, batches: Iterable[Any]) -> AnyTally:
    """The tally of Arrow record batches in the layout of report files, in memory that does not grow with them."""
    total: Any = empty_tally(mechanism)
    for table in joined(batches):
        total = total + tally_batch(mechanism, table)
    return total


def count_part(spec: bytes, batches: Iterable[Any]) -> bytes:
    """The tally of one partition of report files, as bytes."""
    return dump_tally(count_batches(mechanism_of(spec), batches))


def add_parts(spec: bytes, parts: Iterable[bytes]) -> bytes:
    """The sum of tallies of `count_part` or `add_parts`, one at a time: two are in memory, however many there are."""
    return dump_tally(sum_of_parts(mechanism_of(spec), parts))


def sum_of_parts(mechanism: Mechanism, parts: Iterable[bytes]) -> AnyTally:
    """The sum of tallies of `count_part` or `add_parts`; each is checked before it is added."""
    total: Any = empty_tally(mechanism)
    for part in parts:
        total = total + load_tally(mechanism, part)
    return total


@lru_cache(maxsize=1)
def log_kernel() -> None:
    """Log once per process which kernel it counts with."""
    # Workers of engines configure no logging, so that a logger would be silent; their standard error is their log.
    told = "the C kernels" if compiled else "the numpy kernels (slow; install a wheel with compiled kernels)"
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"tacit {__version__}: Python {version} counts with {told}", file=sys.stderr, flush=True)
