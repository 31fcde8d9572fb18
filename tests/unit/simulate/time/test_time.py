"""Simulated streams and crowds: schemes keep their budget, and devices on arrays decide as ledgers do."""

from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pytest

from tacit.device.windows.account import AccountRecord, Asked, refusal
from tacit.device.windows.terms import AccountTerms, WindowTerms
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.simulate.time import devices
from tacit.simulate.time.devices import CrowdTerms, History, simulate_devices
from tacit.simulate.time.rehearsal import crowd_shares, rehearse, step_window
from tacit.simulate.time.run import simulate_time
from tacit.simulate.time.schemes import SCHEMES, StreamCrowd, largest_charge
from tacit.simulate.time.streams import STREAMS, stream_counts

FIRST = date(2030, 1, 7)


@pytest.mark.parametrize("method", SCHEMES)
def test_no_run_charges_a_device_more_than_epsilon(method: str) -> None:
    outcome = simulate_time("step", method, n=20_000, windows=60, epsilon=1.0, run=10, seeds=1)
    assert 0.3 < outcome.largest_charge <= 1 + 1e-9


def test_asking_too_many_in_one_run_is_noticed() -> None:
    crowd = StreamCrowd(stream_counts("flat", 4, 1000, 0), 1000, 1.0, 3, np.random.default_rng(1))
    for window in range(4):
        crowd.ask(window, 0.4, 1.0)
    assert largest_charge(crowd) == 2.0


def test_smoothing_lowers_the_error_and_refuses_repeated_releases() -> None:
    outcome = simulate_time("flat", "lpu", n=20_000, windows=80, epsilon=1.0, run=10, seeds=2, filtered=True)
    assert outcome.online is not None and outcome.smoothed is not None
    assert outcome.smoothed.mse < outcome.online.mse < outcome.raw.mse / 3
    # Closed form of population division: (w/N)(.9207 + f(1-f)(1-1/w)).
    assert outcome.raw.mse == pytest.approx(10 / 20_000 * (0.9207 + 0.1875 * 0.9), rel=0.4)
    with pytest.raises(InvalidSpec, match="lsp repeats releases"):
        simulate_time("flat", "lsp", n=1000, windows=20, epsilon=1.0, run=10, seeds=1, filtered=True)
    with pytest.raises(InvalidSpec, match="must be one of"):
        simulate_time("flat", "best", n=1000, windows=20, epsilon=1.0, run=10, seeds=1)


def test_streams_stay_shares() -> None:
    for name in STREAMS:
        counts = stream_counts(name, 200, 1000, 3)
        assert counts.shape == (200,) and counts.min() >= 0 and counts.max() <= 1000
    with pytest.raises(InvalidSpec, match="must be one of"):
        stream_counts("noise", 3, 10, 0)


def test_devices_on_arrays_decide_as_a_ledger_does() -> None:
    terms = CrowdTerms(devices=4000, windows=40, per=6, late=2)
    windows = WindowTerms(every="day", first="2030-01-07", count=40, late=2, per=6, guarantee="run")
    caps = AccountTerms(name="a", run=6, run_epsilon="1")
    rng = np.random.default_rng(5)
    crowd = devices._made(terms, rng)  # pyright: ignore[reportPrivateUsage]
    crowd.born[:] = rng.integers(-3, 40, 4000)
    crowd.high[:] = rng.integers(-1, 40, 4000)
    now = rng.integers(-3, 44, 4000).astype(np.int16)
    asked = (now - (now - crowd.slot) % 6).astype(np.int16)
    near = np.flatnonzero(now - asked <= terms.late)
    before = crowd.high.copy()
    decide = devices._decide  # pyright: ignore[reportPrivateUsage]
    drawn, _ = decide(terms, crowd, near, asked[near], now[near], History(np.zeros((40, 2), np.int64)))
    expected = [
        refusal(Asked(
            windows=windows, account=caps, epsilon=Fraction(1), window=int(asked[i]),
            today=FIRST + timedelta(days=int(now[i])), born=FIRST + timedelta(days=int(crowd.born[i])),
            slot=int(crowd.slot[i]), drawn_before=int(asked[i]) == int(before[i]), record=_record(int(before[i])),
        ))
        for i in near
    ]  # fmt: skip
    assert [not reason for reason in expected] == np.isin(near, drawn).tolist()
    assert {"outside", "passed", "cold", "run_cap", ""} <= set(expected)


def _record(high: int) -> AccountRecord:
    return AccountRecord() if high < 0 else AccountRecord().charged(high, Fraction(1), 6)


def test_a_crowd_keeps_its_guarantee_through_reinstalls() -> None:
    terms = CrowdTerms(devices=20_000, windows=90, per=10, reinstalls=0.9, clock_errors=0.0)
    history = simulate_devices(terms, crowd_shares("flat", 90, 4, 0), 1)
    assert history.violations == 0 and history.charges > 50_000
    assert history.most_reports <= 9
    assert history.reasons["cold"] > 1000
    assert history.reports.sum() == history.charges


def test_without_the_cold_start_reinstalls_would_break_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(terms, crowd, window, rng):
        lost = rng.integers(0, terms.devices, terms.devices // 50)
        crowd.born[lost], crowd.high[lost] = -1, -1
        crowd.slot[lost] = rng.integers(0, terms.per, len(lost), dtype=np.int16)

    monkeypatch.setattr(devices, "_reinstall", forgetful)
    history = simulate_devices(CrowdTerms(devices=5000, windows=60, per=10), crowd_shares("flat", 60, 4, 0), 1)
    assert history.violations_right_clock > 100


def test_wrong_clocks_cost_reports_and_no_privacy() -> None:
    terms = CrowdTerms(devices=20_000, windows=90, per=10, reinstalls=0.0, clock_errors=1.0)
    history = simulate_devices(terms, crowd_shares("flat", 90, 4, 0), 1)
    assert history.violations == 0
    assert history.refused > 0 and history.reports.sum() + history.refused == history.charges


def test_a_rehearsal_finds_a_step_where_it_is() -> None:
    shares = crowd_shares("step", 84, 4, 0)
    reports = np.rint(shares * 40_000).astype(np.int64)
    found = rehearse(GRR(size=4, epsilon="2"), reports, shares, draws=4, seed=1, stream="step")
    assert found.change_alarms == 1.0 and found.located is not None and found.located <= 7
    assert step_window(84) % 7 == 0 and found.coverage > 0.85


def test_crowds_that_make_no_sense() -> None:
    with pytest.raises(InvalidSpec, match="churn"):
        CrowdTerms(devices=10, windows=10, per=5, churn=2.0)
    with pytest.raises(InvalidSpec, match="per is 20"):
        CrowdTerms(devices=10, windows=10, per=20)
    with pytest.raises(InvalidSpec, match="flat, drift and step"):
        crowd_shares("sin", 10, 4, 0)
