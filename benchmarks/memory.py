"""The memory of `tacit tally` on files of reports, as the operating system counts it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from session import checked, progress

HERE = Path(__file__).resolve().parent
OLH = ("--kind", "olh", "--size", "1024", "--epsilon", "1.0")


def tacit_command() -> list[str]:
    """The `tacit` command of the environment that runs the benchmark."""
    return [str(Path(sys.executable).with_name("tacit"))]


def write_values(path: Path, n: int) -> None:
    """Write n values below 1024, one a row under a header."""
    values = np.random.default_rng(24).integers(0, 1024, n)
    with path.open("w") as stream:
        stream.write("value\n")
        for block in np.array_split(values, max(1, n // 1_000_000)):
            stream.write("\n".join(map(str, block.tolist())) + "\n")


def peak_of_tally(folder: Path, n: int) -> int:
    """Make a file of n reports and return the peak memory of tallying it, in bytes."""
    values, reports, tally = folder / "values.csv", folder / "a.reports", folder / "a.tally"
    write_values(values, n)
    checked([*tacit_command(), "privatize", *OLH, str(values), "-o", str(reports)])
    progress(f"tacit tally of {n:,} reports in a file of {reports.stat().st_size / 1e6:.0f} MB")
    # The values are large and not needed any more; the disk may be small.
    for stale in (values, tally):
        stale.unlink(missing_ok=True)
    measured = [*tacit_command(), "tally", str(reports), "-o", str(tally)]
    return int(checked([sys.executable, str(HERE / "peak.py"), *measured]).split()[-1])


def added_memory(n: int) -> tuple[int, int]:
    """Return the peaks, in bytes, of tallying 1,000 reports and n reports."""
    with tempfile.TemporaryDirectory(prefix="tacit-bench-") as name:
        progress(f"tacit privatize of {n:,} values")
        folder = Path(name)
        return peak_of_tally(folder, 1000), peak_of_tally(folder, n)
