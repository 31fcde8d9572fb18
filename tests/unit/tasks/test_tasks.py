"""Tasks and the simplex."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.core.estimate import no_data
from tacit.device.domains.domain import Categories
from tacit.device.domains.reals import Integers
from tacit.device.numbers.budget import Epsilon
from tacit.errors import InvalidSpec
from tacit.post.frequencies.simplex import norm_sub, project_to_simplex
from tacit.simulate.coins import SimulationCoins
from tacit.tasks.histogram import HISTOGRAM
from tacit.tasks.mean import MEAN
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import QuestionTally


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=40))
def test_the_projection_is_the_nearest_point_of_the_simplex(values: list[float]) -> None:
    """Optimality: the residual is one offset on the support and at most it elsewhere."""
    value = np.array(values)
    found = project_to_simplex(value)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    residual = value - found
    offset = residual[found > 0].max()
    assert np.allclose(residual[found > 0], offset, atol=1e-9)
    assert np.all(residual[found == 0] <= offset + 1e-9)


def test_norm_sub_of_nothing_is_nothing() -> None:
    assert not norm_sub(no_data(3)).has_data


def test_a_histogram_is_answered_with_labels_raw_and_consistent() -> None:
    domain = Categories("c", ("a", "b", "c"))
    mechanism = HISTOGRAM.plan(domain, Epsilon("1"), 100)
    tally = mechanism.tally(mechanism.privatize(np.array([0] * 70 + [1] * 30), SimulationCoins(1)))
    answer = HISTOGRAM.answer(domain, QuestionTally(mechanism, tally, tally.n))
    assert list(answer.raw.labels or []) == ["a", "b", "c"]
    assert answer.consistent is not None
    assert answer.consistent.value.sum() == pytest.approx(1)
    assert np.array_equal(answer.raw.value, mechanism.estimate(tally).value)


def test_a_mean_is_answered_on_the_scale_of_its_domain() -> None:
    """20,000 respondents at epsilon 4; the interval of 6 standard errors misses with probability 2e-9."""
    domain = Integers("age", 20, 120, 10)
    mechanism = MEAN.plan(domain, Epsilon("4"), 1000)
    values = [domain.encode(age) for age in (20, 40, 120)] * 7000
    tally = mechanism.tally(mechanism.privatize(np.array(values), SimulationCoins(1)))
    raw = MEAN.answer(domain, QuestionTally(mechanism, tally, tally.n)).raw
    assert abs(raw.value[0] - 60) < 6 * raw.standard_error[0]
    assert raw.standard_error[0] < 1


def test_a_mean_needs_integers() -> None:
    with pytest.raises(InvalidSpec, match="integers"):
        MEAN.plan(Categories("c", ("a", "b")), Epsilon("1"), 10)


def test_tasks_are_found_by_name() -> None:
    assert [find_task(task.name) for task in TASKS] == list(TASKS)
    with pytest.raises(InvalidSpec, match="histogram"):
        find_task("horoscope")
