"""Slices of the reports over the threads of a pool: the compiled core releases the interpreter lock while it counts."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise

from tacit.arrays import I64

THREADED_WORK = 1 << 18
"""Below this many operations, starting threads takes longer than the work."""


def thread_count() -> int:
    """Threads for counting: TACIT_THREADS, or one per core this process may use."""
    return max(1, int(os.environ.get("TACIT_THREADS", "0")) or len(os.sched_getaffinity(0)))


def sum_over_threads(part: Callable[[slice], I64], n: int, work: int) -> I64:
    """The sum of `part` over slices of n reports, one slice per thread."""
    parts = over_threads(part, n, work)
    return sum(parts[1:], parts[0])


def over_threads(part: Callable[[slice], I64], n: int, work: int) -> list[I64]:
    """`part` of slices of n items, one slice per thread; small work stays on the calling thread."""
    threads = min(thread_count(), n) if work > THREADED_WORK else 1
    if threads <= 1:
        return [part(slice(0, n))]
    edges = [n * i // threads for i in range(threads + 1)]
    # The calling thread takes the first slice itself.
    others = [_pool(threads - 1).submit(part, slice(a, b)) for a, b in pairwise(edges[1:])]
    return [part(slice(0, edges[1])), *(other.result() for other in others)]


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    """The thread pool of this process, kept between calls."""
    return ThreadPoolExecutor(threads, thread_name_prefix="tacit")


# Threads do not survive a fork; a child makes its own.
os.register_at_fork(after_in_child=_pool.cache_clear)
