"""Maximum likelihood from `log_prob` alone: against the closed form, a general solver, and its own stated errors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize

import tacit
from tacit.cli import cli
from tacit.core.estimate import Estimate
from tacit.decode.em import LikelihoodFit, all_values, group_reports, maximum_likelihood, observed, smooth_once
from tacit.errors import InvalidSpec, NoData
from tacit.simulate.coins import SimulationCoins
from tacit.testing.statistics import assert_variance

F64 = npt.NDArray[np.float64]
SHARES = np.array([0.45, 0.25, 0.15, 0.1, 0.05])


def values(n: int, seed: int = 1, shares: F64 = SHARES) -> Any:
    return np.random.default_rng(seed).choice(len(shares), n, p=shares)


def fit(mechanism: Any, n: int = 20_000, seed: int = 1, **options: Any) -> tuple[LikelihoodFit, Estimate]:
    reports = mechanism.privatize(values(n, seed), SimulationCoins(seed))
    return maximum_likelihood(mechanism, reports, **options), mechanism.estimate(mechanism.tally(reports))


def test_inside_the_simplex_grr_is_inverted_exactly() -> None:
    """As many parameters as reports: the likelihood is largest at the unbiased estimate, with its standard error."""
    found, raw = fit(tacit.GRR(size=5, epsilon="2"), tolerance=1e-9)
    assert found.converged
    assert found.frequency == pytest.approx(raw.value, abs=1e-6)
    # The variance formula plugs in the same frequencies.
    assert found.standard_error == pytest.approx(raw.standard_error, rel=1e-3)
    assert not found.boundary.any()
    assert found.frequency.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["GRR", "OUE", "OLH", "HRR", "SS"])
def test_no_other_frequencies_are_more_likely(kind: str) -> None:
    """A general solver finds nothing better than the stated gap allows."""
    mechanism = getattr(tacit, kind)(size=5, epsilon="1")
    reports = mechanism.privatize(values(400, 3), SimulationCoins(3))
    found = maximum_likelihood(mechanism, reports, tolerance=1e-6)
    seen = group_reports(reports)
    table = np.exp(np.stack([mechanism.log_prob(seen.reports, v) for v in range(5)], axis=1))

    def minus_likelihood(theta: F64) -> float:
        return -float(seen.counts @ np.log(table @ theta))

    solved = minimize(
        minus_likelihood, np.full(5, 0.2), bounds=[(1e-12, 1)] * 5, method="SLSQP",
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
    )  # fmt: skip
    assert found.log_likelihood == pytest.approx(-minus_likelihood(found.frequency))
    assert -solved.fun <= found.log_likelihood + found.gap + 1e-9
    assert found.gap <= 1e-6


def test_the_gap_bounds_what_is_left() -> None:
    mechanism = tacit.HRR(size=5, epsilon="1")
    best = fit(mechanism, tolerance=1e-9)[0].log_likelihood
    for steps in (1, 4, 10, 30):
        early = fit(mechanism, tolerance=1e-9, max_iterations=steps)[0]
        assert early.log_likelihood <= best + 1e-9
        assert best <= early.log_likelihood + early.gap
        assert early.converged == (early.gap <= 1e-9)


def test_standard_errors_are_those_of_repeated_collections() -> None:
    """OUE, 150 collections of the same respondents: errors against them fit; false-alarm probability 1e-7.

    The five errors of a collection sum to zero, so one is left out and the others are whitened by their scatter.
    """
    mechanism, people = tacit.OUE(size=5, epsilon="2"), values(4000, 9)
    truth = np.bincount(people, minlength=5) / len(people)
    fits = [maximum_likelihood(mechanism, mechanism.privatize(people, SimulationCoins(s))) for s in range(150)]
    errors = np.array([one.frequency - truth for one in fits])
    variance = np.array([one.standard_error**2 for one in fits])
    assert not np.array([one.boundary for one in fits]).any()
    assert_variance(errors[:, 0], variance[:, 0], must_reject=2.2)
    assert_variance(errors[:, 3], variance[:, 3], must_reject=2.2)


def test_values_on_the_boundary_have_no_standard_error() -> None:
    mechanism = tacit.GRR(size=5, epsilon="3")
    reports = np.repeat(np.arange(4), [500, 300, 100, 100]).astype(mechanism.report_dtype)  # Nobody reports 4.
    found = maximum_likelihood(mechanism, reports)
    assert found.boundary.tolist() == [False, False, False, False, True]
    assert np.isinf(found.standard_error[4])
    assert np.isfinite(found.standard_error[:4]).all()
    rows = found.to_rows()
    assert rows[4]["standard_error"] is None
    assert rows[4]["boundary"] is True
    assert rows[0]["value"] == 0


def test_several_questions_are_fitted_jointly() -> None:
    """All answers from everybody give the joint table: within six standard errors, 3e-8 of false alarms."""
    mechanism = tacit.AllOf(epsilon="4", members=(tacit.GRR(size=2, epsilon="2"), tacit.GRR(size=3, epsilon="2")))
    people = values(20_000)
    answers = np.stack([people % 2, people % 3], axis=1)
    reports = mechanism.privatize(answers, SimulationCoins(2))
    found = maximum_likelihood(mechanism, mechanism.tally(reports))
    assert list(found.values) == [(a, b) for a in range(2) for b in range(3)]
    joint = np.bincount(people % 2 * 3 + people % 3, minlength=6) / len(people)
    assert (np.abs(found.frequency - joint) < 6 * found.standard_error).all()
    assert found.standard_error.max() < 0.02
    from_reports = maximum_likelihood(mechanism, reports)
    assert from_reports.frequency == pytest.approx(found.frequency)


def test_one_question_from_everybody_tells_margins_and_not_the_joint() -> None:
    family = tacit.Questions(mechanisms=(tacit.GRR(size=2, epsilon="2"), tacit.GRR(size=3, epsilon="2")))
    mechanism = tacit.OneOf(family=family)
    people = values(20_000)
    tally = mechanism.tally(mechanism.privatize(np.stack([people % 2, people % 3], axis=1), SimulationCoins(4)))
    found = maximum_likelihood(mechanism, tally)
    assert not found.identified
    assert np.isinf(found.standard_error).all()
    margins = found.frequency.reshape(2, 3)
    raw = mechanism.estimate(tally)
    assert margins.sum(axis=1) == pytest.approx(raw[0].value, abs=5e-3)
    assert margins.sum(axis=0) == pytest.approx(raw[1].value, abs=5e-3)


def test_smoothing_leaves_the_uniform_alone_and_is_labelled() -> None:
    """The expected tally of a uniform population, which a smoothing step must not bend at its ends."""
    mechanism = tacit.GRR(size=8, epsilon="1")
    reports = np.repeat(np.arange(8), 500).astype(mechanism.report_dtype)
    found = maximum_likelihood(mechanism, reports, smooth=True)
    assert found.frequency == pytest.approx(np.full(8, 1 / 8), abs=1e-3)
    assert found.smoothed
    assert np.isinf(found.standard_error).all()
    assert smooth_once(np.full(5, 0.2)) == pytest.approx(np.full(5, 0.2))
    assert smooth_once(np.array([1.0])).tolist() == [1.0]
    spiky = smooth_once(np.array([0.0, 0.0, 1.0, 0.0, 0.0]))
    assert spiky == pytest.approx([0, 0.25, 0.5, 0.25, 0])


def test_reports_are_read_from_tallies_that_still_tell_them() -> None:
    people = values(500)
    for kind in ("GRR", "HRR", "CBR", "OneBit"):
        mechanism = tacit.OneBit(top=4, epsilon="1") if kind == "OneBit" else getattr(tacit, kind)(size=5, epsilon="1")
        reports = mechanism.privatize(people, SimulationCoins(5))
        seen, expected = observed(mechanism, mechanism.tally(reports)), group_reports(reports)
        order = np.argsort(seen.reports)
        assert np.array_equal(seen.reports[order], np.sort(expected.reports))
        assert int(seen.counts.sum()) == 500
    large = tacit.OLH(size=1 << 20, epsilon="1", state="log")
    log = large.tally(large.privatize(people, SimulationCoins(6)))
    named = maximum_likelihood(large, log, values=[0, 1, 2, 3, 4])
    assert named.frequency.sum() == pytest.approx(1)


def test_grouping_works_on_any_layout() -> None:
    mechanism = tacit.OUE(size=20, epsilon="1")
    reports = mechanism.privatize(np.zeros(7, int), SimulationCoins(1))
    seen = group_reports(np.concatenate([reports, reports]))
    assert seen.counts.tolist() == [2] * 7
    assert len(group_reports(reports[:0]).counts) == 0


def test_what_cannot_be_fitted_is_refused() -> None:
    unary, grr = tacit.OUE(size=5, epsilon="1"), tacit.GRR(size=5, epsilon="1")
    reports = unary.privatize(values(50), SimulationCoins(1))
    with pytest.raises(InvalidSpec, match="keep the reports"):
        maximum_likelihood(unary, unary.tally(reports))
    codes = grr.privatize(values(50), SimulationCoins(1))
    with pytest.raises(InvalidSpec, match="weighted"):
        maximum_likelihood(grr, grr.tally(codes, np.full(50, 2)))
    with pytest.raises(NoData):
        maximum_likelihood(grr, codes[:0])
    with pytest.raises(InvalidSpec, match="tolerance"):
        maximum_likelihood(grr, codes, tolerance=0)
    with pytest.raises(InvalidSpec, match="name"):
        maximum_likelihood(grr, codes, values=[])
    with pytest.raises(InvalidSpec, match="no list of values"):
        all_values(tacit.RAPPOR(epsilon="1", bits=16, hashes=2, cohorts=2, key=1))
    with pytest.raises(InvalidSpec, match="too many"):
        all_values(tacit.OLH(size=1 << 40, epsilon="1"))


def test_the_command_line_puts_the_most_likely_frequencies_beside_the_raw_ones(tmp_path: Path) -> None:
    values = tmp_path / "values.csv"
    values.write_text("value\n" + "\n".join(["0"] * 300 + ["1"] * 100 + ["2"] * 5), encoding="utf-8")
    reports, tally = str(tmp_path / "r.reports"), str(tmp_path / "t.tally")
    for command in (
        ["privatize", str(values), "--kind", "grr", "--size", "4", "--epsilon", "3", "-o", reports],
        ["tally", reports, "-o", tally],
    ):
        assert CliRunner().invoke(cli, command).exit_code == 0
    run = CliRunner().invoke(cli, ["estimate", tally, "--likelihood", "--json"])
    assert run.exit_code == 0, run.output
    found = json.loads(run.output)
    assert found["likelihood"]["converged"]
    likely = [row["likelihood"] for row in found["estimates"]]
    assert sum(likely) == pytest.approx(1)
    assert min(likely) >= 0
    assert "most likely" in CliRunner().invoke(cli, ["estimate", tally, "--likelihood"]).output
    refused = CliRunner().invoke(cli, ["estimate", tally, "--likelihood", "--candidates", "1"])
    assert refused.exit_code == 2
