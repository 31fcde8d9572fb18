"""`tacit demo`: one categorical question, asked of a simulated crowd."""

from pathlib import Path
from typing import Any

import click

from tacit.cli.output import percent, print_table, progress

QUESTION = "Which of these did you use last?"
SHARES = {
    "a search engine": 0.31,
    "a map": 0.22,
    "a messenger": 0.17,
    "online banking": 0.12,
    "a dating site": 0.08,
    "a health forum": 0.06,
    "a gambling site": 0.04,
}


@click.command()
@click.option("--n", type=int, default=200_000, show_default=True, help="Simulated respondents.")
@click.option("--epsilon", default="1.0", show_default=True, help="Privacy budget of each respondent.")
@click.option("--output", default="demo", show_default=True, help="Folder for the chart.")
def demo(n: int, epsilon: str, output: str) -> None:
    """Ask simulated respondents one question; print truth against estimate and draw a chart with error bars."""
    from tacit.tasks.choose import choose_oracle

    choice = choose_oracle(size=len(SHARES), epsilon=epsilon, n=n)
    mechanism: Any = choice.pick.mechanism
    click.echo(f"{QUESTION}\n{n:,} respondents, epsilon {epsilon}, mechanism {mechanism.kind} ({choice.reason}).\n")
    counts, estimate = _collect(mechanism, n)
    low, high = estimate.interval(0.95)
    truth = counts / n
    rows = list(zip(SHARES, truth, estimate.value, low, high, strict=True))
    header = ["answer", "true share", "estimate", "95 % low", "high"]
    print_table(header, [[label, *map(percent, numbers)] for label, *numbers in rows])
    covered = int(((low <= truth) & (truth <= high)).sum())
    click.echo(f"\n{covered} of {len(rows)} intervals contain the true share; each does so with probability 95 %.")
    click.echo(f"Realised epsilon {mechanism.realised_epsilon():.12f}, declared {epsilon}.")
    click.echo(f"Chart: {_draw(rows, n, epsilon, mechanism.kind, output)}")


def _collect(mechanism: Any, n: int) -> tuple[Any, Any]:
    import numpy as np

    from tacit.device.coins import SystemCoins
    from tacit.simulate.population import respondents, rounded_counts

    counts = rounded_counts(np.array(list(SHARES.values())), n)
    values, coins = respondents(counts, np.random.default_rng(1)), SystemCoins()
    tally = mechanism.tally(np.empty(0, mechanism.report_dtype))
    with progress("collecting", n) as advance:
        for start in range(0, n, 2000):  # Batches as a collector would receive them, each folded into the tally.
            chunk = values[start : start + 2000]
            tally = tally + mechanism.tally(mechanism.privatize(chunk, coins))
            advance(len(chunk))
    return counts, mechanism.estimate(tally)


def _draw(rows: list[Any], n: int, epsilon: str, kind: str, output: str) -> Path:
    from tacit.cli.chart import Bar, bar_chart_page

    bars = [Bar(label, value, low, high, truth) for label, truth, value, low, high in rows]
    about = f"{n:,} simulated respondents, epsilon {epsilon}, mechanism {kind}. Every report was perturbed on its own."
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    page.write_text(bar_chart_page(bars, title=QUESTION, about=about), encoding="utf-8")
    return page
