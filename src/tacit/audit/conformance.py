"""The golden vectors, run against any client in any language.

A program reads one JSON object per line and prints one for each:

    {"spec": ..., "value": ..., "seed": "00ff"}   ->   {"report": "03", "words": 1, "digest": "..."}
    {"spec": ..., "value": ...}                   ->   {"error": "InvalidValue"}
    {"spec": ...}                                 ->   {"error": "InvalidSpec"}

`seed` is the seed of replayed coins (spec/wire.md). `words` and `digest` are compared where they are printed. Vectors
of reports that a collector must refuse are not for clients.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tacit.audit.program import check_timeout, run_bounded, words_of
from tacit.errors import InvalidSpec, ProgramFailed

VECTORS = Path(__file__).parents[3] / "spec" / "vectors"
"""The vectors of a source tree."""
_ROOM = 1 << 12
"""Bytes that an answer may have beside what is expected, in which it may be written at length."""


@dataclass(frozen=True)
class VectorCase:
    """One line for the program, and what it must answer."""

    name: str
    asked: dict[str, Any]
    expected: dict[str, Any]

    def fits(self, answer: Any) -> bool:
        """Whether the answer is the expected one; what it leaves out besides report and error is not compared."""
        needed = "error" if "error" in self.expected else "report"
        if not isinstance(answer, dict) or needed not in answer:
            return False
        said = cast("dict[str, Any]", answer)
        return all(said[key] == value for key, value in self.expected.items() if key in said)


@dataclass(frozen=True)
class Conformance:
    """How many golden vectors a client reproduces."""

    cases: int
    failures: tuple[str, ...]
    """The names of the vectors that it does not."""

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain values."""
        return {"cases": self.cases, "conforms": not self.failures, "failures": list(self.failures)}


def vector_cases(folder: Path = VECTORS, kinds: Sequence[str] = ()) -> list[VectorCase]:
    """Return the cases of all golden vectors for clients, or of some kinds."""
    if not folder.is_dir():
        raise InvalidSpec("conformance: there are no golden vectors here; name the folder spec/vectors of the sources")
    files = [path for path in sorted(folder.glob("*/*.json")) if not kinds or path.parent.name in kinds]
    missing = sorted(set(kinds) - {path.parent.name for path in files})
    if missing:
        raise InvalidSpec(f"conformance: there are no vectors of {', '.join(missing)}")
    return [case for path in files for case in _cases(path)]


def _cases(path: Path) -> Iterator[VectorCase]:
    vector = json.loads(path.read_text(encoding="utf-8"))
    name = f"{path.parent.name}/{path.stem}"
    if "error" in vector:
        if "report" not in vector:
            asked = {key: vector[key] for key in ("spec", "value") if key in vector}
            yield VectorCase(name, asked, {"error": vector["error"]})
        return
    for i, case in enumerate(vector["cases"]):
        expected = {"report": case["report"], "words": case["words"], "digest": vector["digest"]}
        yield VectorCase(f"{name}[{i}]", {"spec": vector["spec"]} | {k: case[k] for k in ("value", "seed")}, expected)


def check_conformance(command: str, cases: Sequence[VectorCase], *, timeout_seconds: float = 600.0) -> Conformance:
    """Run a program over the cases and compare its output with the expected answers."""
    lines = "".join(json.dumps(case.asked, separators=(",", ":")) + "\n" for case in cases)
    check_timeout(timeout_seconds)
    most = sum(_ROOM + 4 * len(json.dumps(case.expected)) for case in cases) + 1
    printed = run_bounded(words_of(command), lines.encode(), most, timeout_seconds).splitlines()
    if len(printed) != len(cases):
        raise ProgramFailed(f"program: it printed {len(printed)} answers to {len(cases)} vectors; one line for each")
    failures = (case.name for case, line in zip(cases, printed, strict=True) if not case.fits(_read(line)))
    return Conformance(len(cases), tuple(failures))


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    # What is nested too deep to be read is no answer either.
    except (ValueError, RecursionError):
        return None
