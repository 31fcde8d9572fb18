"""The simulated day keeps its books, its queue bounded, and tells a fleet that is too small."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# Short days, so that thousands of steps are enough.
REPORTS = 1e9


@pytest.fixture(scope="module")
def surge() -> Any:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import surge
    finally:
        sys.path.remove(str(BENCHMARKS))
    return surge


def around_noon(surge: Any, collectors: int, seconds: float, **day: Any) -> Any:
    """A simulation from a quarter of an hour before the busiest minute on."""
    made = surge.Simulation(surge.Day(REPORTS, **day), surge.Fleet(collectors, 10_000))
    made.step = round((surge.DAY / 2 - 900) / surge.STEP)
    made.run(seconds)
    return made


def test_the_curve_has_the_stated_sum_and_peak(surge: Any):
    day = surge.Day(REPORTS, flash=1.0)
    arrivals = day.curve()
    each = [arrivals(second) for second in range(0, 86_400, 60)]
    assert sum(each) * 60 == pytest.approx(REPORTS, rel=1e-6)
    assert max(each) == pytest.approx(day.peak * REPORTS / surge.DAY, rel=1e-6)
    assert min(each) >= 0


@pytest.mark.slow_cases("2", "8")
@pytest.mark.parametrize("collectors", [2, 4, 8])
def test_every_report_is_somewhere_and_queues_are_bounded_after_every_step(surge: Any, collectors: int):
    made = around_noon(surge, collectors, 0)
    course, most = made.course, collectors * made.fleet.per_second * surge.STEP
    for _ in range(3000):
        before = course.stored
        made.advance()
        assert course.stored - before <= most * (1 + 1e-9), "no faster than collectors are"
        held = course.stored + course.queued + course.again
        assert held == pytest.approx(course.arrived, rel=1e-9)
        assert -1e-6 <= course.queued and course.longest_queue <= made.fleet.queue * (1 + 1e-9)
        waiting = sum(sum(due) for due in course.due.values()) + sum(course.back.values())
        assert course.again == pytest.approx(waiting, rel=1e-9, abs=1e-3)
        assert 0 <= course.parked + 1e-6 <= course.again + 2e-6


def test_a_lost_collector_is_made_up_for(surge: Any):
    course = around_noon(surge, 8, 1800).course
    assert course.refused > 0, "for some seconds requests go to a collector that is gone"
    assert course.most_parked < 1e-6 * course.arrived, "and hardly anybody gives up"
    assert course.again == pytest.approx(course.parked) and course.queued == 0


def test_too_few_collectors_are_told(surge: Any):
    """The proof that the test above can fail: devices hold a backlog, and collectors a full queue."""
    course = around_noon(surge, 3, 1800).course
    assert course.longest_queue == pytest.approx(4096)
    assert course.most_parked > 1e5


def test_nothing_lost_and_enough_collectors_refuse_nobody(surge: Any):
    course = around_noon(surge, 8, 1800, lost_seconds=0).course
    assert course.refused == 0 and course.longest_queue == 0


def test_the_page_has_the_tables_of_the_measured_rates(monkeypatch: pytest.MonkeyPatch):
    """All but the simulated days, which take seconds."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import capacity

    kept, text = json.loads(capacity.RATES.read_text()), capacity.PAGE.read_text()
    for lines in (capacity.costs(kept["rates"]), capacity.capacity(kept["rates"])):
        assert "\n".join(lines) in text, "run: .venv/bin/python benchmarks/capacity.py --write"
