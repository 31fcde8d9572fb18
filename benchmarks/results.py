"""The results as a page of Markdown."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import bare
import numpy as np
from lines import Row, rate
from peer_table import PeerTable
from session import Session

INTRODUCTION = """\
# Benchmark results

Written by `make bench`. Absolute figures belong to one machine; compare the ratios, whose two sides were
measured in the same run. Medians of {repeats} runs, epsilon 1 (CBR: 4), Zipf(1.1) values. One-thread lines
use the CPU time of the process; two-thread lines, CBR and peers that start processes of their own use the
wall clock. A peer that needs more than its budget runs on fewer reports and its rate is extrapolated, as
said in its cell. The bare loops are in `bare.c`, compiled with the flags of the project.
"""

QUICK = "**A quick run: sizes are cut, so that the verdicts below mean nothing.**\n"


def machine() -> list[str]:
    """Describe the machine and the tools."""
    version = subprocess.run([*bare.compiler(), "--version"], capture_output=True, text=True, check=False)
    return [
        f"- Machine: {processor()}, {len(os.sched_getaffinity(0))} cores, {platform.machine()}",
        f"- Python {platform.python_version()}, numpy {np.__version__}",
        f"- Compiler: {version.stdout.splitlines()[0]}",
        "- Command: `make bench`",
    ]


def processor() -> str:
    """The name of the processor, as the kernel gives it."""
    info = Path("/proc/cpuinfo")
    names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line]
    return names[0] if names else platform.processor() or "unknown processor"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def targets(rows: Iterable[Row]) -> list[str]:
    """The table of targets."""
    verdict = {True: "yes", False: "**no**", None: "not measured"}
    header = ("line", "Tacit", "against", "ratio", "target", "met")
    return table(header, [(row.line, row.tacit, row.baseline, row.ratio, row.target, verdict[row.met]) for row in rows])


def peers(answers: PeerTable) -> list[str]:
    """The table of peers' rates, and what is known of each peer."""
    header = ("mechanism", "half", "Tacit", *answers.names)
    rows = [
        (entry.mechanism, entry.half, rate(entry.tacit) if entry.tacit else "-", *entry.cells)
        for entry in answers.entries
    ]
    return [*table(header, rows), "", *(f"- {note}" for note in answers.notes)]


def page(rows: Sequence[Row], answers: PeerTable | None, session: Session) -> str:
    """The whole page."""
    warning = [QUICK] if session.quick else []
    parts = [
        INTRODUCTION.format(repeats=session.repeats),
        *warning,
        *machine(),
        "",
        "## Targets",
        "",
        *targets(rows),
    ]
    if answers is not None:
        parts += ["", "## Rates of the peers, d=1,024, reports per second", "", *peers(answers)]
    return "\n".join(parts) + "\n"
