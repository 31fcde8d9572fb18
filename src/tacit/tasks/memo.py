"""A small thread-safe LRU cache of results computed from one tally, held by whoever holds the tally."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, TypeVar, cast

Result = TypeVar("Result")

MOST_RESULTS = 8
"""Results kept per tally: they can be large, and an analyst alternates between few queries."""


class Memo:
    """The latest results computed from one tally, by key; dropping the object drops all of them.

    Solving a set of tables or walking a prefix tree takes much longer than reading a tally, and an analyst asks the
    same tally many things. The cache lives beside the tally and not in the module of the task, so that reports past
    their retention leave memory together with everything derived from them.
    """

    def __init__(self) -> None:
        self._lock, self._results = Lock(), OrderedDict[Hashable, Any]()

    def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """The result of this key, computed now if it is not cached; the least recently used result is evicted."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return cast("Result", self._results[key])
        # Outside the lock: two threads that ask at once compute twice, but neither waits for an unrelated key.
        result = compute()
        with self._lock:
            # Whoever comes second takes the first one's result, so that all callers share what hangs on the object.
            result = cast("Result", self._results.setdefault(key, result))
            self._results.move_to_end(key)
            while len(self._results) > MOST_RESULTS:
                self._results.popitem(last=False)
        return result
