"""What the demo of a shuffled collection tells: truth against estimate, claims, what was verified; a line of JSON."""

from dataclasses import dataclass, field
from typing import Any

import click

from tacit.cli.output import print_table
from tacit.cli.shuffled.sessions import claims
from tacit.demo.check import DemoOutcome, complaints, covered_of
from tacit.demo.show import show_one


@dataclass
class ShuffledDemo:
    """A run of the demo, as far as it came."""

    n: int
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """How long each phase took, by name."""
    status: dict[str, Any] = field(default_factory=dict[str, Any])
    """Of the session, when it had ended."""
    outcome: DemoOutcome | None = None
    transcript: dict[str, Any] | None = None
    """What follows from the transcript, if it could be verified."""
    wrong: list[str] = field(default_factory=list[str])
    """What went wrong on the way."""

    @property
    def failures(self) -> list[str]:
        """Everything that went wrong, answers that disagree with the truth included."""
        return [*self.wrong, *complaints([] if self.outcome is None else [self.outcome])]

    @property
    def covered(self) -> tuple[int, int]:
        """How many intervals contain the truth, and how many there are."""
        return covered_of([] if self.outcome is None else self.outcome.rows)


def summary(run: ShuffledDemo) -> dict[str, Any]:
    """The fields of the line of JSON."""
    inside, intervals = run.covered
    return {
        "reports": 0 if run.outcome is None else run.outcome.answers["n"],
        "failures": len(run.failures),
        "coverage": inside / intervals if intervals else None,
        "triple": run.status.get("epsilon"),
        "delta": run.status.get("delta"),
        "seconds": {name: round(seconds, 2) for name, seconds in run.seconds.items()},
    }


def show(run: ShuffledDemo) -> None:
    """Print what came out, for people."""
    if run.outcome is not None:
        show_one(run.outcome)
        inside, intervals = run.covered
        click.echo(f"{inside} of {intervals} intervals contain the truth; each does so with probability 95 %.\n")
    if run.status:
        told = f"{run.status.get('respondents', 0):,} respondents, {run.status.get('fakes', 0):,} fakes beside them"
        print_table(["against", "epsilon", "delta"], claims(run.status["epsilon"], run.status["delta"]), told)
        click.echo("Here one program runs all parties; the first two need parties that are apart.\n")
    if run.transcript is not None:
        click.echo("The transcript was verified:")
        for line in run.transcript["checked"]:
            click.echo(f"- {line}")
        click.echo()
    for name, seconds in run.seconds.items():
        click.echo(f"{name:<8} {seconds:8.2f} s")


def invite(url: str, token: str, collection: str) -> None:
    """Print the addresses that are left to look at."""
    click.echo(f"\nDashboard  {url}/dashboard\n    token  {token}\n")
    click.echo(f"The collection:\n  {url}/dashboard/collections/{collection}")
    click.echo(f"Its transcript, for tacit shuffle verify:\n  {url}/c/{collection}/transcript.json")
