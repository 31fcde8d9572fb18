"""A thread for every webhook that has messages, so that one whose host is slow holds up no other."""

import logging
from collections.abc import Callable, Iterable
from threading import Event, Lock, Thread
from time import monotonic

LOG = logging.getLogger("tacit.collector")
LANE_SECONDS = 10.0
"""After so long a lane begins no further message; the rest is for the next turn."""


class Lanes:
    """At most one thread by name. They are never waited for without end: a resolver of names may hang."""

    def __init__(self, step: Callable[[str], bool]) -> None:
        """Call `step` with a name again and again, until it returns False."""
        self._step, self._lock, self._stopped = step, Lock(), Event()
        self._running: dict[str, Thread] = {}

    def start(self, name: str) -> Thread | None:
        """Start the lane of a name; None if it is running already, or all are stopped."""
        with self._lock:
            if name in self._running or self._stopped.is_set():
                return None
            # A daemon, so that the process can end while a name is being resolved.
            lane = self._running[name] = Thread(target=self._run, args=(name,), name="tacit-webhook", daemon=True)
        lane.start()
        return lane

    def wait(self, lanes: Iterable[Thread], seconds: float) -> None:
        """Wait until lanes have ended, all are stopped, or so many seconds are over."""
        end = monotonic() + seconds
        for lane in lanes:
            while lane.is_alive() and not self._stopped.is_set() and monotonic() < end:
                lane.join(min(0.1, max(0.0, end - monotonic())))

    def stop(self, seconds: float) -> None:
        """Begin nothing more, and wait at most so long for what is under way; it is tried again later otherwise."""
        self._stopped.set()
        with self._lock:
            running = list(self._running.values())
        end = monotonic() + seconds
        for lane in running:
            lane.join(max(0.0, end - monotonic()))

    def _run(self, name: str) -> None:
        end = monotonic() + LANE_SECONDS
        try:
            while not self._stopped.is_set() and monotonic() < end and self._step(name):
                pass
        except Exception as error:
            # By type only, as a message might hold an address. The message is tried again when its lease is over.
            LOG.warning("webhooks: a delivery failed with %s", type(error).__name__)
        finally:
            with self._lock:
                del self._running[name]
