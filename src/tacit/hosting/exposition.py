"""Counters and gauges in the Prometheus text format."""

from collections import Counter
from collections.abc import Mapping
from threading import Lock

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def counter_lines(helps: Mapping[str, str], counts: Mapping[tuple[str, str], int]) -> list[str]:
    """All counters with their explanations; a count is keyed by name and labels."""
    lines: list[str] = []
    for name, words in helps.items():
        values = {labels: value for (owner, labels), value in sorted(counts.items()) if owner == name}
        lines += [f"# HELP {name} {words}", f"# TYPE {name} counter"]
        lines += [f"{name}{{{labels}}} {value}" if labels else f"{name} {value}" for labels, value in values.items()]
    return lines


def gauge_lines(gauges: Mapping[str, float]) -> list[str]:
    """Gauges that the caller has read now."""
    return [line for name, value in gauges.items() for line in (f"# TYPE {name} gauge", f"{name} {value:g}")]


class Tallies:
    """Counters of a process since it started, with their explanations; thread-safe."""

    def __init__(self, helps: Mapping[str, str]) -> None:
        """Begin at zero."""
        self._helps, self._counts, self._lock = helps, Counter[tuple[str, str]](), Lock()

    def count(self, name: str, labels: str = "") -> None:
        """Add one; `labels` as in 'outcome="stored"'."""
        with self._lock:
            self._counts[name, labels] += 1

    def text(self, gauges: Mapping[str, float]) -> str:
        """The exposition text."""
        with self._lock:
            counts = dict(self._counts)
        return "\n".join([*counter_lines(self._helps, counts), *gauge_lines(gauges)]) + "\n"
