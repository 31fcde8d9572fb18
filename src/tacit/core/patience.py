"""Cancellation of long work: loops call `check` between their steps, which raises past a deadline or a cancellation.

The check belongs to the running context and not to every signature on the way: planners and solvers call each other
through many layers, and only whoever starts the work (the collector) knows how long somebody waits for it. Without
such a caller `check` does nothing.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

Check = Callable[[], None]
"""Raises if the work should end now; called often, so it must be cheap."""


def _never() -> None:
    """The default check, which never raises: no time limit."""


_CHECK: ContextVar[Check] = ContextVar("tacit_check", default=_never)


def check() -> None:
    """Raise if the running work should be given up; call it in every loop that may take longer than 0.1 seconds."""
    _CHECK.get()()


@contextmanager
def checked_by(hook: Check) -> Generator[None]:
    """Have `check` call this function inside the block, in this thread or task alone."""
    token = _CHECK.set(hook)
    try:
        yield
    finally:
        _CHECK.reset(token)
