"""Losses of whole streams, by enumeration from the devices' integer thresholds (AL-1, AL-2).

Three wrong schemes are enumerated as well, so that nobody reintroduces them: a slot that is drawn anew in every block,
reports that make up for missed slots, and the epsilon of memoised reports times their keys as a total.
"""

from math import exp, inf, log

import pytest

from tacit.oracles.grr import GRR
from tacit.tasks.time.guarantees import stream_guarantee
from tacit.testing.streams import (
    any_pair,
    every_window,
    made_up_reports,
    memoised,
    population_division,
    redrawn_slots,
    same_pattern,
    stream_loss,
    within_run,
)

ONE = GRR(size=2, epsilon="1")


def layered(eps_inf: float, eps_1: float, size: int):
    """The memoised layer and the fresh one that makes a single report cost eps_1 (L-GRR, Arcolezi et al., 2022)."""
    a, y = exp(eps_inf), exp(eps_1)
    ratio = (y * (a + size - 2) - (size - 1)) / (a - y)
    return memoised(GRR(size=size, epsilon=str(eps_inf)), GRR(size=size, epsilon=f"{log(ratio):.15f}"))


@pytest.mark.parametrize(("per", "windows"), [(1, 3), (2, 3), (2, 4), (3, 4), (4, 4)])
def test_population_division_keeps_epsilon_in_every_run(per: int, windows: int) -> None:
    scheme = population_division(ONE, per)
    stated = stream_guarantee("lpu", epsilon=1.0, run=per, windows=windows)
    found = [stream_loss(scheme, 2, windows, pairs) for pairs in (within_run(1), within_run(per), any_pair)]
    assert found == pytest.approx([stated.event, stated.run, stated.lifetime], abs=1e-12)


def test_population_division_over_more_values() -> None:
    scheme = population_division(GRR(size=3, epsilon="0.5"), 2)
    found = [stream_loss(scheme, 3, 3, pairs) for pairs in (within_run(1), within_run(2), any_pair)]
    assert found == pytest.approx([0.5, 0.5, 1.0], abs=1e-12)


def test_fresh_reports_and_shares_of_epsilon_add_up() -> None:
    fresh, shares = every_window(ONE), every_window(GRR(size=2, epsilon="0.5"))
    for name, scheme in (("fresh", fresh), ("lbu", shares)):
        stated = stream_guarantee(name, epsilon=1.0, run=2, windows=4)
        found = [stream_loss(scheme, 2, 4, pairs) for pairs in (within_run(1), within_run(2), any_pair)]
        assert found == pytest.approx([stated.event, stated.run, stated.lifetime], abs=1e-12)


def test_a_slot_that_is_drawn_anew_breaks_the_guarantee_of_a_run() -> None:
    assert stream_loss(redrawn_slots(ONE, 2), 2, 4, within_run(2)) == pytest.approx(2.0)


def test_reports_that_make_up_for_missed_slots_break_the_guarantee_of_a_run() -> None:
    assert stream_loss(made_up_reports(ONE, 2), 2, 4, within_run(2)) == pytest.approx(2.0)


def test_memoised_reports_without_fresh_noise_prove_a_change() -> None:
    scheme = memoised(ONE)
    assert stream_loss(scheme, 2, 2, within_run(1)) == inf
    assert stream_loss(scheme, 2, 3, same_pattern) == pytest.approx(2.0)


# Windows, loss for life and for one event of layered reports (2, 1) over two keys.
TWO_KEYS = [(1, 1.0, 1.0), (2, 2.0, 1.219), (3, 2.642, 1.289), (4, 3.359, 1.359)]


@pytest.mark.parametrize(("windows", "lifetime", "event"), TWO_KEYS)
def test_layered_reports_lose_more_with_every_window(windows: int, lifetime: float, event: float) -> None:
    scheme = layered(2, 1, 2)
    assert stream_loss(scheme, 2, windows, any_pair) == pytest.approx(lifetime, abs=5e-4)
    assert stream_loss(scheme, 2, windows, within_run(1)) == pytest.approx(event, abs=5e-4)


def test_keys_times_the_permanent_epsilon_is_no_total() -> None:
    """The claim "g eps_inf" fails: (1, .5) loses 2.034 > 2 in four windows, (2, 1) loses 4.019 > 4 in five."""
    assert stream_loss(layered(1, 0.5, 2), 2, 4, any_pair) == pytest.approx(2.034, abs=5e-4)
    assert stream_loss(layered(2, 1, 2), 2, 5, any_pair) == pytest.approx(4.019, abs=5e-4)


@pytest.mark.parametrize(("windows", "loss"), [(2, 2.135), (3, 3.210)])
def test_layered_reports_lose_more_than_fresh_ones(windows: int, loss: float) -> None:
    assert stream_loss(layered(2, 1, 3), 3, windows, any_pair) == pytest.approx(loss, abs=5e-4)
    assert loss > stream_loss(every_window(GRR(size=3, epsilon="1")), 3, windows, any_pair)
