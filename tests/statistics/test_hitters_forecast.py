"""Forecasts of searches on real words: within 0.1 of what a search finds, from counted words."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tacit.device.domains.domain import Domain
from tacit.errors import InvalidValue
from tacit.simulate.hitters import Population, Search, simulate_hitters
from tacit.simulate.hitters_data import Columns, read_population, value_domain
from tacit.tasks.hitters.forecast import counted_reference, forecast_f1, told_reference
from tacit.tasks.hitters.plan import plan_pem
from tacit.tasks.hitters.spelling import spelling_of

N, CAP, SEEDS = 600_000, 5e9, range(1, 7)
DATA = Path(os.environ.get("TACIT_DATA", "data"))


def queries() -> Population:
    domain = value_domain("text", 48, "bytes", 6)
    return read_population(str(DATA / "aol_query_6bytes.txt.gz"), domain, columns=Columns()).population


def names() -> Population:
    domain: Domain = value_domain("text", 48, "lower", 10)
    held = Counter[int]()
    for line in (DATA / "yob2010.txt").read_text().splitlines():
        name, _, count = line.split(",")
        try:
            held[domain.encode(name.lower()[:10])] += int(count)
        except InvalidValue:
            continue
    return Population(domain, np.array(list(held), np.uint64), np.array(list(held.values()), np.int64))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1", "2", "4"])
@pytest.mark.parametrize("read", [queries, names])
def test_forecasts_are_within_a_tenth(read, epsilon: str) -> None:
    """Six searches each: their mean has a standard error of about 0.02, and so have twelve walks. Seeds are fixed."""
    try:
        everybody = read()
    except OSError:
        pytest.skip("the data are not in TACIT_DATA")
    order = np.argsort(-everybody.counts, kind="stable")
    values, shares = everybody.values[order], everybody.counts[order] / everybody.n
    spelling, found = spelling_of(everybody.domain), dict[int, float]()
    counts = np.random.default_rng(3).multinomial(N, shares).astype(np.int64)
    population = Population(everybody.domain, values, counts)
    reference = counted_reference(values.tolist(), everybody.counts[order].tolist())
    for k in (16, 24, 32):
        runs = [simulate_hitters(population, Search(epsilon, k, most_evaluations=CAP), "pem", seed=s) for s in SEEDS]
        found[k] = float(np.mean([run.f1 for run in runs]))
        plan = plan_pem(spelling, epsilon=epsilon, n=N, k=k, most_evaluations=CAP)
        assert forecast_f1(plan, reference, k=k, walks=12) == pytest.approx(found[k], abs=0.1)
        # Four shares and the words alone say nearly as much.
        told = told_reference(spelling, k, shares[[0, k // 4 - 1, k - 1, 4 * k - 1]].tolist(), values.tolist())
        assert forecast_f1(plan, told, k=k, walks=12) == pytest.approx(found[k], abs=0.2)
    # Of a shorter list at least as large a part is right, up to what one value more or less changes.
    assert found[16] >= found[32] - 1 / 16
