"""Counts of ranges in SQL: the unbiased ones, cut to what is possible, and monotone.

    python benchmarks/sql_ranges.py [--seeds 6] [--epsilon 1]

Root mean squared errors of shares over 10,000 rows of 64 values: 28 ranges with random ends and 20 of at most five
values, by shape of the data and design; and the share of the 95 % intervals beside the monotone counts that hold.
Seeds are fixed.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.simulate.analytics import rehearse
from tacit.sql.schema.schema import Dimension, Schema

SIZE, ROWS = 64, 10_000


def shapes(rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Values of all rows."""
    yield "normal", rng.binomial(SIZE - 1, 0.4, ROWS)
    yield "spikes", rng.choice([3, 4, 20, 50], ROWS, p=[0.4, 0.3, 0.2, 0.1])
    yield "geometric", np.minimum(SIZE - 1, rng.geometric(0.12, ROWS) - 1)
    yield "uniform", rng.integers(0, SIZE, ROWS)


def ranges(rng: np.random.Generator) -> Any:
    """Random ends first, short ranges behind."""
    wide = np.sort(rng.integers(0, SIZE, (28, 2)), axis=1)
    low = rng.integers(0, SIZE - 6, 20)
    return np.concatenate([wide, np.stack([low, low + rng.integers(0, 5, 20)], axis=1)])


def main() -> None:
    """Print a line per shape and design."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--epsilon", default="1")
    given = parser.parse_args()
    asked = ranges(np.random.default_rng(4))
    queries = [f"SELECT COUNT(*) FROM t WHERE age BETWEEN {low} AND {high}" for low, high in asked]
    schema = Schema((Dimension("age", low=0, high=SIZE - 1),))
    print("                            wide ranges                  short ranges")
    print("data       design           unbiased  cut     monotone   unbiased  cut     monotone   covered")
    for name, ages in shapes(np.random.default_rng(3)):
        truth = np.array([((low <= ages) & (ages <= high)).mean() for low, high in asked])
        for method in ("auto", "hio"):
            rehearsal = rehearse(pa.table({"age": ages}), schema, epsilon=given.epsilon, queries=queries, method=method)
            errors, held = np.zeros((3, len(queries))), 0.0
            for seed in range(given.seeds):
                answers = rehearsal.collect(np.random.default_rng(seed)).queries(queries)
                cells = [answer.cells()[0] for answer in answers]
                raw = np.array([cell.estimate for cell in cells]) / ROWS
                better = [cell.better for cell in cells]
                shown = np.array([one.estimate for one in better]) / ROWS
                errors += (np.stack([raw, raw.clip(0, 1), shown]) - truth) ** 2
                low, high = (np.array([getattr(one, end) for one in better]) / ROWS for end in ("low", "high"))
                held += float(np.mean((low <= truth + 1e-12) & (truth - 1e-12 <= high)))
            wide, short = (np.sqrt(part.mean(axis=1) / given.seeds) for part in (errors[:, :28], errors[:, 28:]))
            numbers = "  ".join(f"{one:.4f}" for one in wide) + "     " + "  ".join(f"{one:.4f}" for one in short)
            print(f"{name:10} {rehearsal.design.method:16} {numbers}     {held / given.seeds:.3f}", flush=True)


if __name__ == "__main__":
    main()
