"""Attacks: the gains that were published, for every oracle, and what the command prints."""

import json
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tacit
from tacit.cli import cli
from tacit.core.mechanism import Oracle
from tacit.errors import InvalidSpec
from tacit.simulate.poisoning.attacks import Attack, fake_reports, random_reports
from tacit.simulate.poisoning.composed import composed_fakes
from tacit.simulate.poisoning.run import PoisoningPlan, simulate_poisoning, summary
from tacit.simulate.poisoning.tasks import simulate_task_poisoning
from tacit.simulate.population import zipf_counts
from tacit.testing.examples import example

ORACLES = [entry.kind for entry in tacit.CATALOG if issubclass(entry, Oracle)]

GAINS = [  # attack, mechanism, published gain with 10 targets and 1 % fakes
    ("mga", tacit.GRR(128, "1"), 0.690),
    ("mga", tacit.OUE(128, "1"), 0.313),
    ("mga", tacit.SUE(128, "1"), 0.251),
    ("mga", tacit.SS(64, "1", subset=17), 0.312),
    ("rpa", tacit.OUE(128, "1"), 0.099),
    ("rpa", tacit.SUE(128, "1"), 0.049),
    ("rpa", tacit.OLH(128, "1"), 0.0),
    ("ria", tacit.OUE(128, "1"), 0.0097),
    ("ria", tacit.OLH(128, "1"), 0.0097),
    ("ria", tacit.GRR(128, "1"), 0.0097),
]


@pytest.mark.parametrize(("attack", "mechanism", "gain"), GAINS)
def test_gains_are_the_published_ones(attack: Any, mechanism: Any, gain: float) -> None:
    """The noise of 1,000 fakes on ten targets has standard deviation 0.006 at most; twice that over three runs."""
    runs = simulate_poisoning(mechanism, zipf_counts(mechanism.size, 30_000), PoisoningPlan(attack, 10, 0.01, seeds=3))
    found = summary(runs, mechanism, 30_000)
    assert found["gain"] == pytest.approx(gain, abs=0.012)
    assert found["predicted_gain"] == pytest.approx(gain, abs=0.003)
    assert found["detected"] == (
        attack != "ria" and not isinstance(mechanism, tacit.GRR) and (attack, mechanism.kind) != ("rpa", "olh")
    )


def test_ria_is_not_told_from_honest_reports() -> None:
    runs = simulate_poisoning(tacit.OUE(64, "1"), zipf_counts(64, 20_000), PoisoningPlan("ria", 10, 0.05, seeds=3))
    assert not any(run.detected for run in runs)


@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.slow_cases("rmp", "flh", "cbr", "hrr_t", "dbitflip", "hcms", "cms", "hrr_subspace")
def test_every_oracle_can_be_attacked_and_predictions_hold(kind: str) -> None:
    """Fakes of every attack are valid reports; MGA gains more than honest liars would, as predicted."""
    mechanism: Any = example(kind, "1")
    targets = np.array([1, 2])
    for name in ("rpa", "ria", "mga"):
        fakes = fake_reports(mechanism, Attack(name, targets, search=2_000), 40, 1)
        assert len(fakes) == 40 and mechanism.valid(fakes).all()
    counts = np.full(mechanism.size, 400)
    (run,) = simulate_poisoning(mechanism, counts, PoisoningPlan("mga", 2, 0.2, search=2_000))
    assert (run.predicted_gain is None) == (kind == "dbitflip")  # Its estimates are not linear in the reports.
    if run.predicted_gain is not None:
        # Collisions of shared hash functions and the noise of the clean estimate are in both.
        assert run.gain == pytest.approx(run.predicted_gain, abs=0.12 + 0.1 * abs(run.predicted_gain))
    if kind != "hrr_signed":  # Its answers are differences of halves, not shares.
        assert run.gain > 0.02


def test_partial_support_and_searched_seeds() -> None:
    plan = PoisoningPlan("mga", 10, 0.02, support=0.8, seeds=2)
    runs = simulate_poisoning(tacit.OUE(64, "1"), zipf_counts(64, 30_000), plan)
    assert all(run.detected and run.false_targets == 0 for run in runs)
    # bt (8 - 10 q)/(p - q), the share of the targets themselves taken off.
    assert summary(runs, tacit.OUE(64, "1"), 30_000)["gain"] == pytest.approx(0.0196 * 22.98, abs=0.02)
    assert abs(summary(runs, tacit.OUE(64, "1"), 30_000)["repaired_gain"]) < 0.12
    mechanism = tacit.OLH(64, "1")
    best, worse = (
        summary(
            simulate_poisoning(mechanism, zipf_counts(64, 20_000), PoisoningPlan("mga", 10, 0.01, search=search)),
            mechanism,
            1,
        )["gain"]
        for search in (200_000, 200)
    )
    assert best > worse + 0.05


def test_nonsense_is_refused() -> None:
    for wrong in (
        {"attack": "mgb"},
        {"share": 2.0},
        {"seeds": 0},
        {"targets": 0},
        {"support": 0.0},
        {"targets": 99},
        {"search": 0},
    ):
        with pytest.raises(InvalidSpec):
            plan = PoisoningPlan(**({"attack": "mga", "targets": 2, "share": 0.1} | wrong))  # pyright: ignore[reportArgumentType]
            simulate_poisoning(tacit.OUE(8, "1"), np.full(8, 10), plan)
    with pytest.raises(InvalidSpec, match="no attack mga"):
        fake_reports(tacit.OneBit(top=4, epsilon="1"), Attack("mga", np.array([1])), 1, 1)
    assert len(random_reports(tacit.OneBit(top=4, epsilon="1"), 5, np.random.default_rng(1))) == 5


def test_the_command_as_it_is_written() -> None:
    line = "simulate poisoning --kind oue --size 128 --epsilon 1 --n 20000 --attack mga --targets 10 --share 0.02"
    line += " --seeds 2"
    shown = CliRunner().invoke(cli, [*line.split(), "--json"])
    found = json.loads(shown.output)
    assert found["detected"] is True and found["false_targets"] == 0
    assert found["gain"] == pytest.approx(found["predicted_gain"], abs=0.01)
    assert abs(found["repaired_gain"]) < 0.15 < found["gain"]
    assert "predicted_gain" in CliRunner().invoke(cli, line.split()).output
    assert (
        CliRunner()
        .invoke(cli, ["simulate", "poisoning", "--kind", "onebit", "--set", "top=4", "--epsilon", "1", "--size", "4"])
        .exit_code
        != 0
    )


@pytest.mark.parametrize("task", ["ranges", "marginals", "sql"])
@pytest.mark.slow
def test_tasks_are_pushed_as_predicted(task: str) -> None:
    """MGA gains more than RIA, whose gain is at most the share of fakes; predictions hold to a few thousandths."""
    gains: dict[str, float] = {}
    for name in ("mga", "ria"):
        plan = PoisoningPlan(name, 4, 0.05, search=2_000)
        (run,) = simulate_task_poisoning(task, plan, size=32, epsilon="2", n=6_000)
        assert run.predicted_gain == pytest.approx(run.gain, abs=0.02)
        gains[name] = run.gain
    assert gains["mga"] > 1.3 * gains["ria"] > 0.02


@pytest.mark.slow
def test_strangers_are_pushed_into_a_list_of_heavy_hitters() -> None:
    plan = PoisoningPlan("mga", 3, 0.1, search=2_000)
    (run,) = simulate_task_poisoning("heavy-hitters", plan, size=0, epsilon="3", n=20_000)
    assert run.gain >= 1 and run.predicted_gain is None


def test_tasks_that_cannot_be_attacked_are_refused() -> None:
    plan = PoisoningPlan("mga", 4, 0.05)
    with pytest.raises(InvalidSpec, match="must be one of"):
        simulate_task_poisoning("weather", plan, size=8, epsilon="1", n=10)
    with pytest.raises(InvalidSpec, match="everything"):
        simulate_task_poisoning("ranges", plan, size=4, epsilon="1", n=10)
    with pytest.raises(InvalidSpec, match="all_of"):
        composed_fakes(example("all_of", "1"), Attack("mga", np.array([1])), [[0, 0]], 2, 1)
    plain = composed_fakes(tacit.OUE(8, "1"), Attack("mga", np.array([1])), [2, 3], 5, 1)
    assert tacit.OUE(8, "1").valid(plain).all()
