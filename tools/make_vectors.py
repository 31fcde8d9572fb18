"""Write the golden vectors that every implementation must reproduce byte for byte.

Usage: python tools/make_vectors.py [--check]

The cases are in tools/vector_cases. With --check nothing is written; the exit status is 1 if a file differs.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from vector_cases import Loaded, load

from tacit.device.base import Device
from tacit.device.catalog import KINDS, device_of, find_kind
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import TacitError

TARGET = Path(__file__).resolve().parents[1] / "spec" / "vectors"
SEEDS = 4
LONG_REPORT = 64
"""Reports of more bytes are given for one seed only, to keep the files small."""


class CountingCoins(ReplayCoins):
    """Replayed words that know how many were consumed."""

    used = 0

    def skip(self, count: int) -> None:
        """Consume and count."""
        self.used += count
        super().skip(count)


def encode(value: Any) -> Any:
    """A private value in JSON: integers from 2^53 on are {"integer": digits}."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53:
        return {"integer": str(value)}
    if isinstance(value, (list, tuple)):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        return [encode(item) for item in items]
    if isinstance(value, dict):
        pairs: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {key: encode(item) for key, item in pairs.items()}
    return value


def build(kind: str, spec: dict[str, Any]) -> Device:
    """The device of a case, with defaults where the case leaves fields out."""
    cls = find_kind({"kind": kind}, KINDS)
    return cls(**{name: value for name, value in spec.items() if name != "kind"})


def answer(device: Device, value: Any, seed: bytes) -> dict[str, Any]:
    """One report, with the number of words it took."""
    coins = CountingCoins(seed)
    report = device.privatize_one(value, coins)
    return {"value": encode(value), "seed": seed.hex(), "report": report.hex(), "words": coins.used}


def good_vector(kind: str, name: str, spec: dict[str, Any], values: list[Any]) -> dict[str, Any]:
    """The file of a good case."""
    device = build(kind, spec)
    cases: list[dict[str, Any]] = []
    for i, value in enumerate(values):
        for j in range(SEEDS):
            case = answer(device, value, sha256(f"{kind}/{name}/{i}/{j}".encode()).digest()[:16])
            cases.append(case)
            if len(case["report"]) > 2 * LONG_REPORT:
                break
    return {"spec": device.spec(), "digest": device.digest, "cases": cases}


def bad_vector(kind: str, case: dict[str, Any], error: str) -> dict[str, Any]:
    """The file of a bad case, after making sure that the reference refuses it."""
    spec: Any = case["spec"]
    vector = {"spec": {"kind": kind} | spec if isinstance(spec, dict) else spec}
    if "value" in case:
        vector["value"] = encode(case["value"])
    if "report" in case:
        # A device never reads reports: the batch code refuses this one, in the tests.
        device_of(vector["spec"])
        return vector | {"report": case["report"], "error": error}
    try:
        device = device_of(vector["spec"])
        if "value" in case:
            device.privatize_one(case["value"], ReplayCoins(b""))
    except TacitError as raised:
        if type(raised).__name__ == error:
            return vector | {"error": error}
        raise
    raise AssertionError(f"was accepted, {error} was expected")


def render(content: dict[str, Any]) -> str:
    """JSON with one line per field, and one per item of a list."""
    lines = [f"{json.dumps(name)}: {_lines(value)}" for name, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _lines(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
    return "[\n" + ",\n".join("  " + json.dumps(item) for item in items) + "\n]"


def drop_unknown_kinds(loaded: Loaded) -> None:
    """Leave out kinds that no device has, with one problem for each."""
    known = {cls.kind for cls in KINDS}
    for kind in sorted({case[0] for case in [*loaded.good, *loaded.bad]} - known):
        loaded.problems.append(f"{kind}: has cases, but tacit.device.catalog does not know this kind")
    loaded.good = [case for case in loaded.good if case[0] in known]
    loaded.bad = [case for case in loaded.bad if case[0] in known]


def make(loaded: Loaded) -> dict[str, str]:
    """All files by path; a case that cannot be made becomes a problem."""
    drop_unknown_kinds(loaded)
    jobs: dict[str, Any] = dict(loaded.files)
    for kind, name, spec, values in loaded.good:
        jobs[f"{kind}/{name}.json"] = lambda k=kind, n=name, s=spec, v=values: good_vector(k, n, s, v)
    for kind, name, case, error in loaded.bad:
        path = f"{kind}/bad_{name.removeprefix('bad_')}.json"
        jobs[path] = lambda k=kind, c=case, e=error: bad_vector(k, c, e)
    files: dict[str, str] = {}
    for path, job in jobs.items():
        try:
            files[path] = render(job())
        except Exception as error:
            loaded.problems.append(f"{path}: {type(error).__name__}: {error}")
    return files


def stale(files: dict[str, str]) -> list[Path]:
    """Files of the kinds made here that no case makes any more."""
    folders = {TARGET / path.split("/")[0] for path in files if "/" in path}
    found = [path for folder in sorted(folders) for path in sorted(folder.glob("*.json"))]
    return [path for path in found if path.relative_to(TARGET).as_posix() not in files]


def compare(files: dict[str, str]) -> list[str]:
    """What differs between the files and the disk."""
    differing = [
        f"{path}: differs; run tools/make_vectors.py"
        for path, text in files.items()
        if not (TARGET / path).exists() or (TARGET / path).read_text(encoding="utf-8") != text
    ]
    return differing + [f"{path.relative_to(TARGET).as_posix()}: no case makes this file" for path in stale(files)]


def write(files: dict[str, str], *, remove_stale: bool) -> None:
    """Write the files; removing stale ones is safe only when every case could be made."""
    for path, text in files.items():
        (TARGET / path).parent.mkdir(parents=True, exist_ok=True)
        (TARGET / path).write_text(text, encoding="utf-8")
    for path in stale(files) if remove_stale else []:
        path.unlink()


def main(arguments: list[str]) -> int:
    """Write or check; return 1 if anything is wrong."""
    loaded = load()
    files = make(loaded)
    problems = list(loaded.problems)
    if arguments == ["--check"]:
        problems += compare(files)
    elif arguments:
        problems.append("usage: make_vectors.py [--check]")
    else:
        write(files, remove_stale=not problems)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
