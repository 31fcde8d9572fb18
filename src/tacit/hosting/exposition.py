"""Counters and gauges in the Prometheus text format, and a meter of CPU time."""

from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from threading import Lock, local
from time import process_time, thread_time

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


class CpuMeter:
    """CPU seconds of a process by what they were spent on; thread-safe.

    Parts may be nested: what an inner one takes is not counted for the outer one.
    """

    def __init__(self) -> None:
        """Begin at zero."""
        self._spent, self._lock, self._inner = dict[str, float](), Lock(), local()

    @contextmanager
    def spent_on(self, part: str) -> Generator[None]:
        """Count what this thread computes in the block; waiting is not counted."""
        outer, self._inner.seconds = getattr(self._inner, "seconds", 0.0), 0.0
        began = thread_time()
        try:
            yield
        finally:
            whole = thread_time() - began
            with self._lock:
                self._spent[part] = self._spent.get(part, 0.0) + whole - self._inner.seconds
            self._inner.seconds = outer + whole

    def seconds(self) -> dict[str, float]:
        """By part; all other time of the process is "other"."""
        with self._lock:
            spent = dict(self._spent)
        return {**spent, "other": process_time() - sum(spent.values())}
