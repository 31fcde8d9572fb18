"""Counters and a latency histogram in the Prometheus text format. None of them tells anything about a single report."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from threading import Lock

from tacit.collector.ports import CLOSED, DUPLICATE, SPENT, STORED, Outcome
from tacit.hosting.exposition import counter_lines, gauge_lines

# Upper bounds of the histogram's buckets, in seconds; an acknowledged batch takes about one fsync.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

_HELP = {
    "tacit_batches_total": "Batches taken in, by outcome.",
    "tacit_reports_total": "Reports accepted.",
    "tacit_rejected_total": "Reports and uploads refused, by reason.",
    "tacit_requests_total": "Responses, by route and status.",
    "tacit_folded_batches_total": "Batches folded into tallies.",
    "tacit_queries_total": "SQL queries over rows, by outcome; their texts are not kept.",
    "tacit_query_milliseconds_total": "Time spent on SQL queries.",
}

_STATES: tuple[Outcome, ...] = (STORED, DUPLICATE, CLOSED, SPENT)
_BATCHES = {outcome: ("tacit_batches_total", f'outcome="{outcome}"') for outcome in _STATES}
_REPORTS = ("tacit_reports_total", "")


class Metrics:
    """The counters of this process since it started; thread-safe."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._lock, self._counts = Lock(), Counter[tuple[str, str]]()
        # Apart from the other counters, as these are counted for every report: no key to put together.
        self._batches, self._reports = Counter[Outcome](), 0
        self._commits, self._seconds = [0] * (len(_BOUNDS) + 1), 0.0

    def count(self, name: str, labels: str = "", amount: int = 1) -> None:
        """Add to a counter; `labels` as in 'reason="range"'."""
        with self._lock:
            self._counts[name, labels] += amount

    def batch(self, outcome: Outcome, reports: int, seconds: float) -> None:
        """Count a batch: its outcome, its reports, and the seconds from its last byte to its acknowledgement."""
        place = bisect_left(_BOUNDS, seconds)
        with self._lock:
            self._batches[outcome] += 1
            self._reports += reports
            self._commits[place] += 1
            self._seconds += seconds

    def stored(self, reports: int, seconds: Sequence[float]) -> None:
        """Count many batches that were stored, with the reports in all of them and the seconds of each."""
        places = [bisect_left(_BOUNDS, each) for each in seconds]
        with self._lock:
            self._batches[STORED] += len(seconds)
            self._reports += reports
            self._seconds += sum(seconds)
            for place in places:
                self._commits[place] += 1

    def text(self, gauges: Mapping[str, float]) -> str:
        """The exposition text of all counters, and of gauges that the caller reads now."""
        with self._lock:
            counts, commits, seconds = dict(self._counts), list(self._commits), self._seconds
            counts |= {_BATCHES[outcome]: batches for outcome, batches in self._batches.items()}
            if self._batches:
                counts[_REPORTS] = self._reports
        lines = counter_lines(_HELP, counts) + _histogram("tacit_acknowledge_seconds", commits, seconds)
        return "\n".join([*lines, *gauge_lines(gauges)]) + "\n"


def _histogram(name: str, cells: list[int], total: float) -> list[str]:
    lines = [f"# HELP {name} From the last byte of a batch to its acknowledgement.", f"# TYPE {name} histogram"]
    # Buckets of Prometheus are cumulative.
    running = 0
    for bound, cell in zip((*(f"{bound:g}" for bound in _BOUNDS), "+Inf"), cells, strict=True):
        running += cell
        lines.append(f'{name}_bucket{{le="{bound}"}} {running}')
    return [*lines, f"{name}_sum {total:.6f}", f"{name}_count {running}"]
