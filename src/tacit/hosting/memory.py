"""How a process uses the memory that it has freed."""

import ctypes

# Numbers of <malloc.h> of the GNU C library.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGEST, _LARGEST_OF_OLD = 1 << 30, 32 << 20


def keep_freed_memory() -> bool:
    """Use freed memory again instead of giving it back to the system at once; False where that cannot be chosen.

    A process that makes and drops buffers of megabytes otherwise spends half of its time on getting pages that are
    zero. It keeps the memory of its busiest moment instead. To be called before there are threads.
    """
    try:
        choose = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    # Older libraries refuse large sizes here. One arena: what one thread frees is there for the others.
    is_chosen = choose(_MMAP_THRESHOLD, _LARGEST) or choose(_MMAP_THRESHOLD, _LARGEST_OF_OLD)
    return bool(is_chosen and choose(_TRIM_THRESHOLD, _LARGEST) and choose(_ARENA_MAX, 1))
