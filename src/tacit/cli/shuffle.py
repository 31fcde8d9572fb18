"""`tacit shuffle`: what shuffling reports is worth, as certificates; and the plan of a shuffled collection."""

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click

from tacit.cli.output import print_json, print_table, progress
from tacit.cli.place import open_place, place_options


def decimal_option(name: str, text: str | None) -> Decimal | None:
    """A number given as decimal text, such as 0.5 or 1e-9; None where it was not given."""
    if text is None:
        return None
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite():
        raise click.UsageError(f"{name} is {text[:40]!r}, must be a number such as 0.5 or 1e-9")
    return value


@click.group()
def shuffle() -> None:
    """Certify what shuffled reports keep: epsilon and delta against whoever sees them without their order."""


@shuffle.command()
@click.option("--kind", required=True, help="Mechanism, such as grr.")
@click.option("--size", type=int, help="Number of values in the domain.")
@click.option("--local-epsilon", required=True, help="Privacy budget of one report, as decimal text.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other field of the spec.")
@click.option("--n", type=int, required=True, help="Honest respondents that there are at least before a release.")
@click.option("--delta", required=True, help="Probability that the epsilon fails, well below 1/n, such as 1e-9.")
@click.option("--fakes", type=int, default=0, show_default=True, help="Honest uniform words among the reports.")
@click.option("--accountant", default="", help="Use this one, such as amp_clone or published_bbgn.")
@click.option("--fragmented", is_flag=True, help="Every bit of a report is shuffled on its own.")
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Also say what so many rounds with the same people, each with fresh noise, keep together.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def certify(
    kind: str, size: int | None, local_epsilon: str, settings: tuple[str, ...], n: int, delta: str, fakes: int,
    accountant: str, fragmented: bool, rounds: int, as_json: bool,
) -> None:  # fmt: skip
    """Issue a certificate: the epsilon that shuffled reports keep, against whom, and by which accountant."""
    from tacit.cli.reports import make_mechanism
    from tacit.shuffle.accounting.fakes import counted_fakes
    from tacit.shuffle.certificate import certify as issue

    mechanism = make_mechanism(kind, size, local_epsilon, settings)
    exact = decimal_option("--delta", delta)
    assert exact is not None
    certificate = issue(
        mechanism,
        n_min=n,
        delta=exact,
        fakes=counted_fakes(mechanism, fakes) if fakes else 0,
        accountant=accountant,
        fragmented=fragmented,
    )
    together = "" if rounds == 1 else _composed(mechanism, n, certificate, rounds)
    if exact * n >= 1:
        click.echo(f"tacit: delta is {delta}, at least one over {n} respondents; take a much smaller one", err=True)
    if as_json:
        certified = certificate.to_json()
        numbers = {name: float(certified[name]) for name in ("epsilon", "epsilon_others", "local_epsilon", "delta")}
        numbers |= {"rounds": rounds, "rounds_epsilon": float(together)} if together else {}
        print_json(numbers | {"accountant": certificate.accountant, "n_min": n, "fakes": certificate.fakes}
                   | {"spec": mechanism.spec(), "certificate": certified})  # fmt: skip
        return
    rows = [
        ["the collector", certificate.epsilon, certificate.delta],
        ["the collector and all other respondents", certificate.epsilon_others, certificate.delta],
        ["the collector and the shufflers", certificate.local_epsilon, "0"],
    ]
    rows += [[f"the collector, after {rounds} rounds", together, certificate.delta]] if together else []
    title = f"{kind}, local epsilon {certificate.local_epsilon}, at least {n:,} honest respondents, {fakes:,} fakes"
    print_table(["against", "epsilon", "delta"], rows, f"{title}, {certificate.accountant}")


def _composed(mechanism: Any, n: int, certificate: Any, rounds: int) -> str:
    """The epsilon of several rounds alike against the collector; no certificate claims it for one session."""
    from tacit.shuffle.accounting.compose import ShuffleRound, compose_epsilon
    from tacit.shuffle.certificate import decimal_text

    if certificate.fragmented or not certificate.accountant.startswith("amp_"):
        raise click.UsageError("--rounds composes what amp_blanket and amp_clone account for; leave the accountant out")
    alike = ShuffleRound(mechanism, n, certificate.fakes, rounds)
    return decimal_text(compose_epsilon([alike], float(certificate.delta)))


@shuffle.command()
@place_options
def identity(server: str, token: str, data: Path | None) -> None:
    """Print the key of a collector, which drafts of shuffled collections name as draft.shuffle.collector.identity."""
    with open_place(server, token, data) as place:
        click.echo(place.shuffle_identity())


@shuffle.command()
@click.argument("file", type=click.File("rb"))
@click.option("--slot", default="", help="A receipt's slot: say whether its report took part; exit code 1 if not.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(file: Any, slot: str, as_json: bool) -> None:
    """Check the transcript of a shuffled collection (FILE as published, - for standard input) without any network."""
    from tacit.cli.shuffled.transcripts import show_transcript

    if not show_transcript(file.read(), slot, as_json):
        raise SystemExit(1)


def show_plan(
    size: int | None, n: int, epsilon: str | None, delta: str, cap: str | None, epsilon_others: str | None,
    target_error: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Print the plan of a shuffled collection and the frontier over caps: `tacit plan --task shuffle`."""
    from tacit.shuffle.plan import CAPS, ShuffleGoal, plan_shuffle

    if size is None:
        raise click.UsageError("--size is needed: the number of values in the domain")
    others, limit = decimal_option("--epsilon-others", epsilon_others), decimal_option("--cap", cap)
    start = Decimal(1) if epsilon is None else decimal_option("--epsilon", epsilon) or Decimal(0)
    goal = ShuffleGoal(start, decimal_option("--delta", delta) or Decimal(0), n, size, others)
    chosen = None
    if epsilon is None:
        chosen = _least(goal, limit, target_error or 0.0)
        goal = replace(goal, epsilon=Decimal(chosen.epsilon))
    with progress("plans", len(CAPS) + (cap is not None)) as advance:
        plans = plan_shuffle(goal, cap=limit, advance=advance)
    for warning in plans.warnings:
        click.echo(f"tacit: {warning}", err=True)
    if as_json:
        rows = [plan.to_row() for plan in plans.frontier]
        shown = {"task": "shuffle", "pick": plans.pick.to_row(), "frontier": rows, "warnings": plans.warnings}
        print_json(shown | ({} if chosen is None else chosen.to_row()))
        return
    _plan_table(goal, plans)
    if chosen is not None:
        click.echo(f"epsilon, against whoever sees the reports shuffled: {chosen.words}")


def _least(goal: Any, cap: Decimal | None, target_error: float) -> Any:
    """The least epsilon of shuffled reports whose plan reaches the wanted error."""
    from tacit.shuffle.plan import MOST_EPSILON, plan_shuffle
    from tacit.tasks.outcome import least_epsilon

    def error(epsilon: str) -> float:
        return plan_shuffle(replace(goal, epsilon=Decimal(epsilon)), cap=cap, caps=()).pick.rmse

    return least_epsilon(error, target_error, highest=float(MOST_EPSILON))


def _plan_table(goal: Any, plans: Any) -> None:
    """Print the frontier and the pick."""

    def row(name: str, plan: Any) -> list[str]:
        buckets = getattr(plan.mechanism, "buckets", 0)
        what = plan.mechanism.kind + (f", {buckets} buckets" if buckets else "")
        return [name, what, str(plan.local_epsilon), plan.certificate.epsilon, f"{plan.fakes:,}", f"{plan.rmse:.3g}"]

    header = ["cap", "mechanism", "local epsilon", "epsilon", "fakes", "rmse"]
    kept = f"epsilon {goal.epsilon} and delta {float(goal.delta):g} shuffled"
    title = f"{goal.size:,} values, {kept}, {goal.n:,} honest respondents"
    rows = [row("none" if plan.cap is None else str(plan.cap), plan) for plan in plans.frontier]
    print_table(header, rows, title)
    pick = plans.pick
    chosen = "no cap" if pick.cap is None else f"a cap of {pick.cap}"
    click.echo(f"\npick: {row(chosen, pick)[1]} at local epsilon {pick.local_epsilon}, for {chosen}")
