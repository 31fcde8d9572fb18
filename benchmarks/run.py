"""Measure Tacit against bare loops and against its peers; write `RESULTS.md`.

    make bench                                             everything, at most ten minutes
    .venv/bin/python benchmarks/run.py --quick             small sizes: does it run?
    .venv/bin/python benchmarks/run.py --only olh-tally    one line (may be repeated)

Progress goes to standard error and the page to standard output. RESULTS.md is written by a full run alone.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lines import LINES, Row, measure
from peer_table import measure_peers
from results import page
from session import Session, progress

RESULTS = Path(__file__).resolve().with_name("RESULTS.md")
PEERS_LINE = "peers"


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    as_written = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=as_written)
    parser.add_argument("--quick", action="store_true", help="small sizes and budgets, for a smoke test")
    parser.add_argument("--only", action="append", choices=[*LINES, PEERS_LINE], metavar="NAME",
                        help=f"one of: {', '.join([*LINES, PEERS_LINE])}")  # fmt: skip
    return parser.parse_args()


def main() -> int:
    """Run the chosen lines; the status is 1 if a line of Tacit could not be measured."""
    options = arguments()
    chosen: list[str] = options.only or [*LINES, PEERS_LINE]
    session = Session(quick=options.quick)
    rows: list[Row] = []
    for name in chosen:
        if name in LINES:
            progress(f"line {name}")
            rows += measure(name, session)
    answers = measure_peers(session) if PEERS_LINE in chosen else None
    text = page(rows, answers, session)
    print(text)
    if not options.quick and not options.only:
        RESULTS.write_text(text)
        progress(f"wrote benchmarks/{RESULTS.name}")
    return int(any(row.tacit.startswith("not measured") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
