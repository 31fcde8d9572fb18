"""What a number of reports a day takes, from measured rates; writes the tables of `docs/scale.md`.

    .venv/bin/python benchmarks/capacity.py            print the tables
    .venv/bin/python benchmarks/capacity.py --write    and put them into docs/scale.md

Rates come from `rates.json`, which `make bench-load` writes, and the parts of a report's way from `steps.json`, which
`steps.py --write` does. Everything else is arithmetic, and a simulated day
(`surge.py`).
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from surge import DAY, Course, Day, Fleet, Simulation

HERE = Path(__file__).resolve().parent
RATES, PAGE = HERE / "rates.json", HERE.parent / "docs" / "scale.md"
STEPS = HERE / "steps.json"
BEGIN, END = "<!-- capacity.py writes from here -->\n", "<!-- to here -->\n"
LOADS = [10**n for n in range(6, 11)]
PEAK, FLASH = Day(1).peak, Day(1).flash
BUSY = 0.7
"""Share of its measured rate that a collector is planned to work at in the busiest minute."""
SINGLE, BATCHED = "one question", "batches of 100"


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    """A table of Markdown."""
    return ["| " + " | ".join(cells) + " |" for cells in (header, ["---"] * len(header), *rows)]


def amount(number: float) -> str:
    """Three digits of a number, or as many as it has before the point."""
    digits = max(0, 2 - math.floor(math.log10(number))) if number > 0 else 0
    return f"{number:,.{digits}f}"


def collectors(per_day: float, per_second: float) -> int:
    """Collectors of one process that a day takes: enough for its busiest minute, and one more that may be lost."""
    return math.ceil(per_day / DAY * PEAK * FLASH / (BUSY * per_second)) + 1


def cpu_hours(per_day: float, rate: dict[str, float]) -> float:
    """CPU time of the collectors in a day, in hours."""
    return per_day * rate["cpu_microseconds"] / 3.6e9


def costs(rates: dict[str, Any]) -> list[str]:
    """What 10^9 reports cost, by the way they come."""
    rows = [
        [name, f"{rate['per_second']:,.0f}", f"{rate['cpu_microseconds']:.1f}", amount(cpu_hours(1e9, rate)),
         f"{rate['stored_bytes']:.1f}", amount(rate["stored_bytes"])]
        for name, rate in rates.items()
    ]  # fmt: skip
    header = ["reports come as", "reports/s, one machine of two cores", "CPU us a report", "CPU hours for 10^9"]
    return table([*header, "bytes a report in the database", "GB for 10^9"], rows)


def capacity(rates: dict[str, Any]) -> list[str]:
    """What 10^6 to 10^10 reports a day take."""
    single, batched = rates[SINGLE], rates[BATCHED]
    rows = [
        [
            *(f"10^{math.log10(n):.0f}", amount(n / DAY), amount(n / DAY * PEAK * FLASH)),
            *_takes(n, single),
            *_takes(n, batched),
        ]
        for n in LOADS
    ]
    header = ["reports a day", "mean/s", "busiest minute/s"]
    for how in ("single", "in hundreds"):
        header += [f"collectors, {how}", f"CPU hours a day, {how}", f"GB a day, {how}"]
    return table(header, rows)


def _takes(per_day: float, rate: dict[str, float]) -> list[str]:
    number = collectors(per_day, rate["per_second"])
    return [str(number), amount(cpu_hours(per_day, rate)), amount(per_day * rate["stored_bytes"] / 1e9)]


def surges(rates: dict[str, Any]) -> list[str]:
    """The largest case: a day with all collectors, with one lost, and with too few."""
    per_day, rate = float(LOADS[-1]), float(rates[SINGLE]["per_second"])
    enough = collectors(per_day, rate)
    short = math.ceil(0.8 * per_day / DAY * PEAK / rate)
    days = {
        "nothing is lost": (Day(per_day, lost_seconds=0), enough),
        "one collector is lost in the busiest minute": (Day(per_day), enough),
        "too few collectors for the busiest hours": (Day(per_day), short),
    }
    rows = [_row(what, number, Simulation(day, Fleet(number, rate)).run()) for what, (day, number) in days.items()]
    header = ["day", "collectors", "longest queue of a collector", "refusals", "most waiting to send again"]
    return table([*header, "time with anybody waiting", "stored at the end of the day"], rows)


def _row(what: str, number: int, course: Course) -> list[str]:
    minutes = course.backlog_seconds / 60
    told = [f"{course.longest_queue:,.0f}", f"{course.refused:,.0f}", f"{course.most_again:,.0f}"]
    return [what, str(number), *told, f"{minutes:,.1f} min", f"{100 * course.stored / course.arrived:.4f} %"]


def steps(kept: dict[str, Any]) -> list[str]:
    """What a report's CPU time is spent on."""
    rows = [[name, *(f"{each:.1f}" for each in spent)] for name, spent in kept["steps"].items()]
    return table(
        ["part of a single report's way, without the network", "event loop, CPU us", "other threads, CPU us"], rows
    )


def shares(kept: dict[str, Any]) -> list[str]:
    """Who spends the CPU time of a request."""
    rows = [
        [name, f"{each['user']:.1f}", f"{each['kernel']:.1f}", f"{each['switches']:.2f}"] for name, each in kept.items()
    ]
    header = ["wrk's requests to", "CPU us in the process", "CPU us in the kernel", "thread switches"]
    return table([header[0], *(f"{each} a request" for each in header[1:])], rows)


def tables(kept: dict[str, Any], parts_of_way: dict[str, Any]) -> str:
    """All tables of the page."""
    rates = kept["rates"]
    parts = [
        f"Measured by `{kept['command']}` on {kept['machine']} (server and load generator share the "
        f"cores; load average {kept['load']} at the end).\n",
        "### What a report costs\n", *costs(rates), "",
        f"`benchmarks/steps.py` on {parts_of_way['machine']}, each line with what the lines above it do:\n",
        *steps(parts_of_way), "",
        "Who spends it, as the kernel counts it while wrk runs (`/proc`): sockets, disk and waking threads are the "
        "kernel's.\n",
        *shares(kept["shares"]), "",
        "### What a day takes\n", *capacity(rates), "",
        "### The largest day, simulated\n", *surges(rates),
    ]  # fmt: skip
    return "\n".join(parts) + "\n"


def page(text: str, new: str) -> str:
    """The page with its tables replaced."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{new}\n{END}{rest.split(END)[1]}"


def main() -> None:
    """Print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="put the tables into docs/scale.md")
    new = tables(json.loads(RATES.read_text()), json.loads(STEPS.read_text()))
    print(new)
    if parser.parse_args().write:
        PAGE.write_text(page(PAGE.read_text(), new))


if __name__ == "__main__":
    main()
