"""`tacit count`: mechanisms for the count of a small group, in the central model (not local)."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.central import MODEL
from tacit.cli.output import print_json, print_table

if TYPE_CHECKING:
    from tacit.central.count import CountMechanism
    from tacit.central.objectives import Objective


@click.group()
def count() -> None:
    """Release the count of a small group with noise. Central, NOT LOCAL: a trusted curator knows the true count."""


def _group(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for the size of the group and its privacy."""
    for option in (
        click.option("--n", type=int, required=True, help="Number of people in the group."),
        click.option("--alpha", help='e^-epsilon, as "0.9" or "10/11"; near 1 is private.'),
        click.option("--epsilon", help="Instead of --alpha: the privacy budget, as decimal text."),
    ):
        command = option(command)
    return command


_objective = click.option(
    "--objective", default="l0", show_default=True, help="l0, l1, l2, or with a distance: l0,1 ignores errors of one."
)
_properties = click.option(
    "--property", "properties", multiple=True, help="A property to keep, by name or abbreviation; may be repeated."
)
_plot = click.option("--plot", type=click.Path(dir_okay=False), help="Also draw the matrix: an .svg or .html file.")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@count.command()
@_group
@_objective
@click.option("--worst", is_flag=True, help="Minimise the worst cost of a true count, not their mean.")
@click.option("--prior", help="Weights of the true counts 0 to n, separated by commas; all the same by default.")
@_properties
@_plot
@_json
def design(
    n: int,
    alpha: str,
    epsilon: str,
    objective: str,
    worst: bool,
    prior: str | None,
    properties: tuple[str, ...],
    plot: str,
    as_json: bool,
) -> None:
    """Find the best mechanism with the properties, by linear program."""
    from tacit.central.design import design as solve
    from tacit.central.objectives import Objective

    goal = Objective.parse(objective, worst=worst, prior=_weights(prior))
    _show(solve(n, _alpha(alpha, epsilon), goal, properties), goal, objective, plot, as_json)


@count.command()
@_group
@_properties
@_plot
@_json
def choose(n: int, alpha: str, epsilon: str, properties: tuple[str, ...], plot: str, as_json: bool) -> None:
    """Choose the mechanism with the fewest wrong answers (L0) that has the properties, and say why."""
    from tacit.central.objectives import Objective
    from tacit.central.select import select

    mechanism, why = select(n, _alpha(alpha, epsilon), properties)
    click.echo(f"{mechanism.name}: {why}", err=True)
    _show(mechanism, Objective(), "l0", plot, as_json)


@count.command()
@click.argument("mechanism")
@_group
@_objective
@_plot
@_json
def show(mechanism: str, n: int, alpha: str, epsilon: str, objective: str, plot: str, as_json: bool) -> None:
    """Show a mechanism by name: rr, gm, em, um, exp, lap, wm-wh, wm-cm, ucm, wm, fm or am."""
    from tacit.central.objectives import Objective
    from tacit.central.select import make

    built = make(mechanism, n, _alpha(alpha, epsilon), objective)
    _show(built, Objective.parse(objective), objective, plot, as_json)


@count.command()
@_group
@click.option("--p", type=float, default=0.5, show_default=True, help="Share of people who say yes, for the errors.")
@_json
def compare(n: int, alpha: str, epsilon: str, p: float, as_json: bool) -> None:
    """Compare all mechanisms: objectives over the uniform mechanism's, errors, and properties."""
    from tacit.central.select import NAMES, PROGRAMS, make

    private = _alpha(alpha, epsilon)
    # Closed forms (RR is for one person alone), the two programs under L0, and the other programs under L1 and L2.
    mechanisms = {
        name: make(name, n, private) for name in NAMES if not (name == "rr" and n > 1) and name not in PROGRAMS
    }
    mechanisms |= {name: make(name, n, private) for name in ("wm-wh", "wm-cm")}
    mechanisms |= {
        f"{name} {goal}": make(name, n, private, goal) for goal in ("l1", "l2") for name in list(PROGRAMS)[2:]
    }
    rows = [_row(name, mechanism, p) for name, mechanism in mechanisms.items()]
    if as_json:
        print_json({"model": MODEL, "n": n, "alpha": str(private), "p": p, "mechanisms": rows})
        return
    header = ["mechanism", "l0", "l1", "l2", "wrong", "rmse", "properties"]
    lines = [[r["mechanism"], *(f"{r[k]:.4f}" for k in header[1:-1]), _abbreviated(r["properties"])] for r in rows]
    print_table(header, lines, f"n = {n}, alpha = {float(private):.6g}; wrong and rmse for shares of {p:g}; {MODEL}")


@count.command()
@click.argument("mechanism")
@_group
@click.argument("source", type=click.File("r"), default="-")
def release(mechanism: str, n: int, alpha: str, epsilon: str, source: Any) -> None:
    """Release counts with noise, one per line, with coins of the operating system."""
    from tacit.central.select import make
    from tacit.cli.values import integer_encoder
    from tacit.device.numbers.coins import SystemCoins
    from tacit.errors import InvalidValue

    built, encode, coins = make(mechanism, n, _alpha(alpha, epsilon)), integer_encoder(n + 1), SystemCoins()
    # All lines are read before anything is released: a bad one must not cost privacy for the others.
    try:
        counts = [encode(line) for line in source if line.strip()]
    except ValueError:
        raise InvalidValue(f"a line is not a count from 0 to {n}; nothing was released") from None
    click.echo(f"tacit: {len(counts)} counts released by {built.name}; {MODEL}", err=True)
    for count_ in counts:
        click.echo(built.release_one(count_, coins))


def _alpha(alpha: str | None, epsilon: str | None) -> Any:
    """Return alpha = e^-epsilon from --alpha, or from --epsilon rounded towards more privacy."""
    from tacit.central.count import alpha_of, as_alpha

    if (alpha is None) == (epsilon is None):
        raise click.UsageError("give one of --alpha and --epsilon")
    return as_alpha(alpha) if alpha is not None else alpha_of(str(epsilon))


def _weights(prior: str | None) -> tuple[float, ...] | None:
    try:
        return tuple(float(weight) for weight in prior.split(",")) if prior is not None else None
    except ValueError:
        raise click.UsageError("--prior must be numbers separated by commas") from None


def _described(mechanism: "CountMechanism", goal: "Objective", objective: str) -> dict[str, Any]:
    """Return everything about a mechanism as plain data for JSON."""
    from math import log

    from tacit.central.properties import properties_of
    from tacit.central.select import derivable_from_gm

    return {
        "mechanism": mechanism.name,
        "model": MODEL,
        "n": mechanism.n,
        "alpha": float(mechanism.alpha),
        "epsilon": -log(mechanism.alpha),
        "realised_epsilon": -log(mechanism.realised_alpha()),
        "minimised": objective,
        "objective": goal.scaled(mechanism.matrix),
        "unscaled": goal.value(mechanism.matrix),
        "properties": properties_of(mechanism.matrix),
        "derivable_from_gm": derivable_from_gm(mechanism),
        "mixed": float(mechanism.mixed),
        "matrix": mechanism.matrix.tolist(),
    }


def _show(mechanism: "CountMechanism", goal: "Objective", objective: str, plot: str | None, as_json: bool) -> None:
    """Print a mechanism as JSON or as a table, and draw it."""
    described = _described(mechanism, goal, objective)
    if plot:
        _draw(mechanism, Path(plot))
    if as_json:
        print_json(described)
        return
    size = mechanism.n + 1
    rows = [[str(i), *(f"{p:.4f}" for p in row)] for i, row in enumerate(described["matrix"])]
    print_table(["released"] + [str(j) for j in range(size)], rows, f"columns are true counts; {MODEL}")
    click.echo(f"\n{objective} = {described['objective']:.5f} of the uniform mechanism's")
    held = [name for name, has in described["properties"].items() if has]
    click.echo(f"properties: {', '.join(held) or 'none'}")


def _draw(mechanism: "CountMechanism", path: Path) -> None:
    """Write the heat map as an SVG file, or as an HTML page around it."""
    from html import escape

    from tacit.central.heatmap import heat_map

    picture = heat_map(mechanism)
    if path.suffix.lower() != ".svg":
        title = escape(f"{mechanism.name}: a count mechanism, not local")
        picture = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
            f"<title>{title}</title><style>body{{font:16px system-ui,sans-serif;max-width:46rem;margin:auto}}</style>"
            f"<h1>{title}</h1>{picture}</html>\n"
        )
    path.write_text(picture, encoding="utf-8")


def _row(name: str, mechanism: "CountMechanism", p: float) -> dict[str, Any]:
    from tacit.central.objectives import Objective, binomial_prior, error_probability, rmse
    from tacit.central.properties import properties_of

    matrix, prior = mechanism.matrix, binomial_prior(mechanism.n, p)
    return {
        "mechanism": name,
        **{goal: Objective.parse(goal).scaled(matrix) for goal in ("l0", "l1", "l2")},
        "wrong": error_probability(matrix, prior),
        "rmse": rmse(matrix, prior),
        "properties": properties_of(matrix),
    }


def _abbreviated(properties: dict[str, bool]) -> str:
    from tacit.central.properties import SHORT

    return " ".join(short for short, name in SHORT.items() if properties[name]) or "-"
