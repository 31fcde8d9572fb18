"""Counters and gauges in the Prometheus text format, of one process or of several."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
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
    """Gauges that the caller has read now; a name may have labels, and then those of one metric stand together.

    >>> gauge_lines({'a{x="1"}': 1.0, 'a{x="2"}': 2.5})
    ['# TYPE a gauge', 'a{x="1"} 1', 'a{x="2"} 2.5']
    """
    lines: list[str] = []
    last = ""
    for name, value in gauges.items():
        metric = name.partition("{")[0]
        lines += [*([] if metric == last else [f"# TYPE {metric} gauge"]), f"{name} {value:g}"]
        last = metric
    return lines


_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
_COMMENT = re.compile(r"# (?:HELP|TYPE) (\w+) .*")


def labelled(text: str, label: str) -> str:
    """An exposition whose every sample has one more label, such as 'worker="1"'."""
    lines = (_SAMPLE.fullmatch(line) or line for line in text.splitlines())
    with_label = (
        line if isinstance(line, str) else f"{line[1]}{{{label}{',' if line[2] else ''}{line[2] or ''}}} {line[3]}"
        for line in lines
    )
    return "\n".join(with_label) + "\n"


def merged(texts: Iterable[str]) -> str:
    """One exposition of several: the format wants all samples of a metric together, below its comments."""
    comments, samples = dict[str, dict[str, None]](), dict[str, list[str]]()
    for text in texts:
        name = ""
        for line in text.splitlines():
            comment = _COMMENT.fullmatch(line)
            if comment is None:
                samples[name].append(line)
                continue
            name = comment[1]
            comments.setdefault(name, {})[line] = None
            samples.setdefault(name, [])
    return "\n".join(line for name in comments for line in (*comments[name], *samples[name])) + "\n"


class Board:
    """Expositions of several processes, each of which posts its own now and then; any of them shows all.

    Every sample says whose it is. Sums would do harm: when one process starts again at zero, a sum falls, and what
    reads it takes the whole rest for new.
    """

    def __init__(self, folder: Path, name: str) -> None:
        """Post as `name` in a folder."""
        self._folder, self._name = folder, name

    def post(self, text: str) -> None:
        """Replace what this process has posted."""
        part = self._folder / f"{self._name}.part"
        part.write_text(labelled(text, f'worker="{self._name}"'))
        part.replace(part.with_suffix(".prom"))

    def read(self) -> str:
        """What all processes have posted last."""
        texts: list[str] = []
        for file in sorted(self._folder.glob("*.prom")):
            # The server may be stopping, and its folder going away.
            with suppress(FileNotFoundError):
                texts.append(file.read_text())
        return merged(texts)


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
