"""What counting report files takes, from measured costs; writes its table of `docs/scale.md`.

    .venv/bin/python benchmarks/capacity_files.py            print the table
    .venv/bin/python benchmarks/capacity_files.py --write    and put it into docs/scale.md

Costs come from `scale.json`, which `make bench-scale` writes. CPU time per report is what a larger machine or a
larger cluster divides among its cores; start-up is not in it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from capacity import LOADS, amount, table

HERE = Path(__file__).resolve().parent
COSTS, PAGE = HERE / "scale.json", HERE.parent / "docs" / "scale.md"
BEGIN, END = "<!-- capacity_files.py writes from here -->\n", "<!-- capacity_files.py ends here -->\n"


def rows(costs: dict[str, Any]) -> list[list[str]]:
    """By command: what a report costs, and what 10^9 and the largest day take."""
    most = LOADS[-1]
    return [
        [
            name, f"{cost['cpu_microseconds']:.2f}", f"{cost['stored_bytes']:.1f}",
            amount(cost["cpu_microseconds"] * 1e9 / 3.6e9), amount(cost["stored_bytes"]),
            amount(cost["cpu_microseconds"] * most / 3.6e9), amount(cost["stored_bytes"] * most / 1e9),
        ]
        for name, cost in costs.items()
    ]  # fmt: skip


def text(kept: dict[str, Any]) -> str:
    """The table, and where it was measured."""
    header = ["counted by", "CPU us a report", "bytes a report in Parquet"]
    for n in ("10^9", "10^10"):
        header += [f"CPU hours for {n} a day", f"GB for {n} a day"]
    told = (
        f"Measured by `{kept['command']}` on {kept['machine']} (load average {kept['load']} at the end). CPU time is "
        "that of all processes, Java and Python.\n"
    )
    return "\n".join([told, *table(header, rows(kept["costs"]))]) + "\n"


def page(old: str, new: str) -> str:
    """The page with its table replaced."""
    head, rest = old.split(BEGIN)
    return f"{head}{BEGIN}\n{new}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the table into docs/scale.md")
    new = text(json.loads(COSTS.read_text(encoding="utf-8")))
    print(new)
    if parser.parse_args().write:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), new), encoding="utf-8")


if __name__ == "__main__":
    main()
