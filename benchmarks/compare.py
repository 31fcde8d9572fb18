"""The fixed comparison on public data: is anything better than what is answered by default?

    TACIT_DATA=data python benchmarks/compare.py [--tasks histogram,ranges,marginals] [--epsilon 0.5,1,2] [--seeds 3]
                                                 [--sets adult,nltcs] [--k 2] [--json FILE]

Every data set of `benchmarks/answers.py` as a histogram, those with an order as ranges, and four tables of several
questions (`adult`, `nltcs`, and `fair` and `randhie` of the package statsmodels), each also with its columns shuffled
apart (`indep-...`), so that there is no association at all. A line is a setting: the error of the pick and what its
plan forecast, the best other method and the ratio of both, with its standard error over the draws. Seeds are fixed;
absent data are left out.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from answers import DATA, ORDERED, SETS

from tacit.simulate.compare.data import AttributeRecords, CountedValues
from tacit.simulate.compare.run import Data, compare

RESPONDENTS = 100_000
"""Respondents of histograms and ranges, drawn from the data; tables have those of the data."""


def _coded(columns: Sequence[Any]) -> AttributeRecords:
    codes = [np.unique(column, return_inverse=True)[1] for column in columns]
    sizes = tuple(int(code.max()) + 1 for code in codes)
    return AttributeRecords(tuple(f"q{i}" for i in range(len(codes))), sizes, np.stack(codes, axis=1).astype(np.uint8))


def adult() -> AttributeRecords:
    """Twelve questions of the census data; ages, hours and gains in classes."""
    lines = (DATA / "adult.data").read_text().splitlines()
    c = [np.array(column) for column in zip(*(line.split(", ") for line in lines if line.count(",") > 10), strict=True)]
    age = np.digitize(c[0].astype(int), [25, 32, 38, 45, 52, 60])
    hours = np.digitize(c[12].astype(float), [20, 35, 40.5, 50])
    gain, abroad = c[10].astype(int) > 0, c[13] != "United-States"
    return _coded([age, c[1], c[3], c[5], c[6], c[7], c[8], c[9], gain, hours, abroad, c[14]])


def nltcs() -> AttributeRecords:
    """Sixteen items of one scale of disability."""
    return _coded(list(np.genfromtxt(DATA / "nltcs.csv", delimiter=",", skip_header=1, dtype=int).T))


def _statsmodels(name: str) -> Any:
    import statsmodels.api as sm  # pyright: ignore

    return getattr(sm.datasets, name).load_pandas().data


def fair() -> AttributeRecords:
    """Nine questions of a survey of marriages."""
    data = _statsmodels("fair")
    return _coded([data[c].to_numpy() > 0 if c == "affairs" else data[c].to_numpy() for c in data])


def randhie() -> AttributeRecords:
    """Ten variables of the health insurance experiment; numbers in quarters."""
    data = _statsmodels("randhie")

    def quarters(name: str) -> Any:
        return np.digitize(data[name], np.quantile(data[name], [0.25, 0.5, 0.75]))

    plain = [data[name].to_numpy() for name in ("lncoins", "idp", "hlthg", "hlthf", "hlthp")]
    visits, limited = np.digitize(data["mdvis"], [1, 3, 6]), data["physlm"].to_numpy() > 0
    return _coded([visits, limited, *map(quarters, ("lpi", "fmde", "disea")), *plain])


TABLES: dict[str, Callable[[], AttributeRecords]] = {"adult": adult, "nltcs": nltcs, "fair": fair, "randhie": randhie}


def apart(records: AttributeRecords) -> AttributeRecords:
    """The same questions without any association: every column in an order of its own."""
    rng = np.random.default_rng(99)
    rows = np.stack([rng.permutation(column) for column in records.rows.T], axis=1)
    return AttributeRecords(records.names, records.sizes, rows)


def data_of(task: str, name: str) -> Data:
    if task == "marginals":
        return apart(TABLES[name[6:]]()) if name.startswith("indep-") else TABLES[name]()
    counts = np.asarray(SETS[name](), np.float64)
    drawn = np.random.default_rng(7).multinomial(RESPONDENTS, counts / counts.sum())
    return CountedValues(drawn.astype(np.int64), name in ORDERED)


def names_of(task: str) -> list[str]:
    if task == "marginals":
        return [*TABLES, *(f"indep-{name}" for name in TABLES)]
    return list(ORDERED if task == "ranges" else SETS)


def line_of(rows: list[dict[str, Any]]) -> str:
    """The pick against the best other method; plans that happen to be the pick compare as equal."""
    pick = next(row for row in rows if row["pick"])
    best = min((row for row in rows if not row["pick"]), key=lambda row: row["error"])
    spread = pick["error_se"] / best["error"] if pick["error_se"] is not None and best["error"] else 0.0
    ratio = (pick["error"] + 1e-18) / (best["error"] + 1e-18)
    cover = "-" if pick["coverage"] is None else f"{pick['coverage']:.3f}"
    forecast = "-" if pick["forecast"] is None else f"{pick['forecast']:.1e}"
    between = "-" if pick["forecast"] is None else f"{pick['forecast_low']:.1e}..{pick['forecast_high']:.1e}"
    return (
        f"{pick['error']:.3e}  {forecast:>8} {between:>17}  {ratio:6.3f} ± {spread:.3f}  {cover:>5}  {best['method']}"
    )


def main() -> None:
    """Run the settings and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="histogram,ranges,marginals")
    parser.add_argument("--epsilon", default="0.5,1,2")
    parser.add_argument("--sets", help="names of data sets, with commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--k", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write every row to this file")
    given = parser.parse_args()
    kept: list[dict[str, Any]] = []
    print(
        "task       data           epsilon  error      forecast           between  over the best    cover  best other"
    )
    for task in given.tasks.split(","):
        for name in names_of(task) if given.sets is None else given.sets.split(","):
            try:
                data = data_of(task, name)
            except (OSError, ImportError) as error:
                print(f"left out: {name} ({error})", file=sys.stderr)
                continue
            for epsilon in given.epsilon.split(","):
                rows = compare(data, task, [epsilon], seeds=given.seeds, k=given.k)
                kept += [{"data": name} | row for row in rows]
                print(f"{task:10} {name:14} {epsilon:>7}  {line_of(rows)}", flush=True)
    if given.json:
        given.json.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    main()
