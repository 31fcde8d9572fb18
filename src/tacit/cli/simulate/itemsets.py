"""`tacit simulate itemsets`: rehearse the search for frequent items and itemsets."""

from typing import Any

import click

from tacit.cli.output import percent, print_json, print_table, progress


@click.command()
@click.option("--data", required=True, help="pos-like, quest, or a file: a basket of items split by spaces per line.")
@click.option("--epsilon", required=True, help="Privacy budget of one respondent, as decimal text.")
@click.option("--k", type=int, default=32, show_default=True, help="How many items or itemsets to look for.")
@click.option("--method", default="svsm", show_default=True, help="svim, svsm, ldpminer, v1 to v6, svsm-ldpminer.")
@click.option("--n", type=int, default=100_000, show_default=True, help="Respondents (made-up data only).")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of data and (insecure) simulation coins.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Repeat with fresh noise.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def itemsets(
    data: str, epsilon: str, k: int, method: str, n: int, seed: int, seeds: int, as_json: bool
) -> None:  # fmt: skip
    """Frequent items and itemsets of answers that are sets."""
    from tacit.baselines.itemsets import plan_steps
    from tacit.simulate.itemsets import simulate_itemsets, true_itemsets
    from tacit.tasks.itemsets.itemsets import Mining

    baskets = _baskets(data, n, seed)
    respondents = len(baskets.sets)
    mining = Mining(epsilon, baskets.size, k, respondents)
    plan_steps(method, mining)  # An unknown method is refused before the truth is looked for.
    truth = true_itemsets(baskets.sets, baskets.size, k, method)
    with progress("simulating", seeds * respondents) as advance:
        outcomes = [
            simulate_itemsets(baskets.sets, mining, method, seed=seed + i, truth=truth, advance=advance)
            for i in range(seeds)
        ]
    _show(_summary(outcomes, baskets, truth, {"method": method, "epsilon": epsilon, "k": k}), as_json)


def _baskets(data: str, n: int, seed: int) -> Any:
    from tacit.simulate.baskets import Quest, labelled, pos_like, quest, read_baskets

    if data in ("pos-like", "quest") and n < 1:
        raise click.UsageError("--n must be at least 1")
    if data == "pos-like":
        return labelled(pos_like(n, seed=seed), 1657)
    if data == "quest":
        return labelled(quest(n, seed=seed), Quest().items)
    baskets = read_baskets(data)
    if baskets.repeated:
        click.echo(f"tacit: {baskets.repeated} repeated items in baskets count once", err=True)
    return baskets


def _summary(outcomes: list[Any], baskets: Any, truth: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return the request, mean scores of all runs, and the itemsets of the last run."""
    last = outcomes[-1]
    scores: dict[str, float] = {}
    for name in ("f1", "ncr"):
        values = [getattr(outcome, name) for outcome in outcomes]
        scores |= {name: sum(values) / len(values)}
        if len(values) > 1:
            scores |= {f"{name}_sd": _spread(values)}
    counts = {items: count / len(baskets.sets) for items, count in truth}
    errors = [outcome.variance for outcome in outcomes if outcome.variance is not None]
    return (
        request
        | {"n": len(baskets.sets), "items": baskets.size, "runs": len(outcomes)}
        | scores
        | {
            "hits": sum(outcome.hits for outcome in outcomes) / len(outcomes),
            "count_variance": sum(errors) / len(errors) if errors else None,
            "detectable": last.result.detectable,
            "found": [_row(row, baskets.labels, counts) for row in last.result.rows],
            "notes": list(last.result.notes),
            "seconds": sum(outcome.seconds for outcome in outcomes) / len(outcomes),
        }
    )


def _spread(values: list[float]) -> float:
    """Return the sample standard deviation."""
    mean = sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5


def _row(row: Any, labels: Any, counts: dict[tuple[int, ...], float]) -> dict[str, Any]:
    """Return one itemset with labels; `truth` is None for a false positive."""
    named = row.to_row() | {"items": [labels[item] for item in row.items], "truth": counts.get(row.items)}
    return {"value": " ".join(named["items"])} | named


def _show(summary: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(summary)
        return
    hidden = ("found", "notes")
    click.echo("\n".join(f"{name:>15}  {value}" for name, value in summary.items() if name not in hidden))
    rows = [
        [row["value"], *(percent(row[name]) for name in ("frequency", "low", "high")), _percent(row["truth"])]
        for row in summary["found"]
    ]
    print_table(["found", "share", "95 % low", "high", "truth"], rows)
    for note in summary["notes"]:
        click.echo(f"note: {note}")


def _percent(share: float | None) -> str:
    return "-" if share is None else percent(share)
