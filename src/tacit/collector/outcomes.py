"""From the writer's thread to the event loop: one wake-up for the outcomes of a whole commit."""

import asyncio
from concurrent.futures import Future
from threading import Lock

Waiter = asyncio.Future[str]


class Outcomes:
    """Hands outcomes to the requests that wait for them.

    A commit settles many batches at once. Waking the event loop for each would cost more than the commit; so the first
    outcome wakes it, and all that arrive before it looks are handed over together.
    """

    def __init__(self) -> None:
        """Begin with nothing to hand over."""
        self._lock, self._done = Lock(), list[tuple[Waiter, Future[str]]]()

    def of(self, future: "Future[str]") -> Waiter:
        """A future of the running loop with the outcome of the writer's."""
        loop = asyncio.get_running_loop()
        waiter: Waiter = loop.create_future()

        def settled(done: "Future[str]") -> None:
            with self._lock:
                asleep = not self._done
                self._done.append((waiter, done))
            if asleep:
                loop.call_soon_threadsafe(self._hand_over)

        future.add_done_callback(settled)
        return waiter

    def _hand_over(self) -> None:
        with self._lock:
            done_now, self._done = self._done, []
        for waiter, done in done_now:
            if waiter.done():
                continue
            error = done.exception()
            if error is None:
                waiter.set_result(done.result())
            else:
                waiter.set_exception(error)
