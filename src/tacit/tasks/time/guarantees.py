"""What a way of asking again and again realises over T windows: per event, per run of w windows, and for life.

Exact, and tight for every scheme here; derived in docs/maths/time.md and enumerated in the tests. Pairs of streams may
differ in one window (event), anywhere inside w windows in a row (run), or everywhere (lifetime).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from tacit.errors import InvalidSpec


@dataclass(frozen=True)
class StreamGuarantee:
    """The largest log-likelihood ratio of everything that one device sends."""

    event: float
    run: float
    lifetime: float
    run_windows: int
    windows: int

    def to_row(self) -> dict[str, Any]:
        """Plain numbers, and the same in words."""
        return {
            "event": self.event,
            "run": self.run,
            "run_windows": self.run_windows,
            "lifetime": self.lifetime,
            "windows": self.windows,
            "words": self.to_words(),
        }

    def to_words(self) -> str:
        """One sentence that names the pairs that the number is about."""
        return (
            f"epsilon {self.run:g} for any {self.run_windows} windows in a row, whatever they hold; "
            f"{self.lifetime:g} for all {self.windows} windows together; per device"
        )


def _population(epsilon: float, run: int, windows: int) -> StreamGuarantee:
    """One report with all of epsilon in any w windows."""
    return StreamGuarantee(epsilon, epsilon, ceil(windows / run) * epsilon, run, windows)


def _shares(epsilon: float, run: int, windows: int) -> StreamGuarantee:
    """A w-th of epsilon in every window."""
    return StreamGuarantee(epsilon / run, min(run, windows) * epsilon / run, windows * epsilon / run, run, windows)


def _adaptive_shares(epsilon: float, run: int, windows: int) -> StreamGuarantee:
    """Budgets of at most epsilon in any w windows; a single one may take nearly all of a half."""
    # The first publication may take a quarter of epsilon (LBD), later ones up to a half (LBA), beside the look.
    event = epsilon / 2 + epsilon / (2 * run)
    return StreamGuarantee(min(event, epsilon), epsilon, ceil(windows / run) * epsilon, run, windows)


def _fresh(epsilon: float, run: int, windows: int) -> StreamGuarantee:
    """All of epsilon in every window: protects single windows alone."""
    return StreamGuarantee(epsilon, min(run, windows) * epsilon, windows * epsilon, run, windows)


_REALISED: dict[str, Callable[[float, int, int], StreamGuarantee]] = {
    "lpu": _population,
    "lsp": _population,
    "lpd": _population,
    "lpa": _population,
    "lbu": _shares,
    "lbd": _adaptive_shares,
    "lba": _adaptive_shares,
    "fresh": _fresh,
}


def stream_guarantee(method: str, *, epsilon: float, run: int, windows: int) -> StreamGuarantee:
    """Return what a scheme guarantees over all windows."""
    if method not in _REALISED:
        raise InvalidSpec(f"method is {method[:40]!r}, must be one of {', '.join(_REALISED)}")
    return _REALISED[method](epsilon, run, windows)
