"""Tasks and the simplex."""

from typing import Any

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
from tacit.tasks.rows import ANALYTICS
from tacit.tasks.table import TASKS, find_task
from tacit.tasks.task import JointQuestions, PublicRows, QuestionTally


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


def test_a_table_that_is_planned_again_is_not_planned_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Saving, showing and publishing a draft plan it; another budget is another plan."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("sqlglot")
    from tacit.sql import documents

    asked = JointQuestions(("age",), (Integers("age", 0, 9),))
    rows, planned, plan_table = PublicRows("visits", (("os", "text"),), ()), list[str](), documents.plan_table

    def counted(schema: Any, columns: Any, epsilon: str, *more: Any) -> Any:
        planned.append(epsilon)
        return plan_table(schema, columns, epsilon, *more)

    monkeypatch.setattr(documents, "plan_table", counted)
    first, again, other = (ANALYTICS.plan(asked, rows, Epsilon(text), 1234) for text in ("1", "1", "2"))
    assert first is again and planned == ["1", "2"]
    assert first[1].spec()["epsilon"] == "1" and other[1].spec()["epsilon"] == "2"
