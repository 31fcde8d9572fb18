"""SQL over private columns: time of one warm query, of a batch, and of a second aggregate on the same condition.

Run it with ``python benchmarks/analytics.py [--rows 1000000] [--queries 100]``.
"""

import argparse
from time import perf_counter

import numpy as np
import pyarrow as pa

from tacit.core.simulated import GeneratorCoins
from tacit.tasks.analytics.levels import hio
from tacit.tasks.analytics.linked import collect
from tacit.tasks.analytics.open import open_table
from tacit.tasks.analytics.schema import Dimension, Schema

SIZE = 1 << 10


def make_connection(n: int, rng: np.random.Generator):
    schema = Schema((Dimension("a", low=0, high=SIZE - 1), Dimension("b", low=0, high=SIZE - 1)))
    design = hio(schema.shape(5), "2")
    values = rng.integers(0, SIZE, (n, 2))
    table = pa.table({"x": rng.gamma(2, 3, n), "os": rng.choice(["ios", "win", "mac"], n)})
    start = perf_counter()
    linked = collect(design, values, GeneratorCoins(rng), rng)
    print(f"collect {n:,} reports of {len(design.places)} levels: {perf_counter() - start:.2f} s")
    return open_table(schema, table, design, linked)


def ranges(count: int, rng: np.random.Generator) -> list[str]:
    edges = np.sort(rng.integers(0, SIZE, (count, 2, 2)), axis=2).tolist()
    return [f"SELECT SUM(x) FROM t WHERE a BETWEEN {a} AND {b} AND b BETWEEN {c} AND {d}" for (a, b), (c, d) in edges]


def timed(connection, text: str) -> float:
    start = perf_counter()
    connection.query(text)
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    connection = make_connection(given.rows, rng)
    timed(connection, "SELECT SUM(x) FROM t WHERE a < 7")  # Warms up the parser and the pages of the reports.
    worst = "SELECT SUM(x) FROM t WHERE a BETWEEN 1 AND 1022 AND b BETWEEN 1 AND 1022"
    print(f"the range without its ends: {1e3 * timed(connection, worst):.0f} ms")
    nodes = "SELECT SUM(x) FROM t WHERE a BETWEEN 157 AND 637 AND b BETWEEN 134 AND 761"
    print(
        f"a range of many nodes ({connection.explain(nodes).steps[0].nodes}): {1e3 * timed(connection, nodes):.0f} ms"
    )
    print(f"the same condition again, AVG: {1e3 * timed(connection, nodes.replace('SUM', 'AVG')):.0f} ms")
    grouped = nodes.replace("SELECT", "SELECT os,") + " GROUP BY os"
    print(f"the same condition by public groups: {1e3 * timed(connection, grouped):.0f} ms")
    seconds = np.array([timed(connection, text) for text in ranges(given.queries, rng)])
    start = perf_counter()
    connection.queries(ranges(given.queries, rng))
    print(f"a batch of {given.queries} other random ranges: {perf_counter() - start:.2f} s")
    low, high = np.quantile(seconds, [0.5, 0.95])
    print(
        f"{given.queries} random ranges: {seconds.sum():.2f} s, median {1e3 * low:.0f} ms, 95 % below "
        f"{1e3 * high:.0f} ms, slowest {1e3 * seconds.max():.0f} ms"
    )


if __name__ == "__main__":
    main()
