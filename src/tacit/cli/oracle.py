"""`tacit oracle`: compare frequency oracles."""

import click

from tacit.cli.output import print_json, print_table


@click.group()
def oracle() -> None:
    """Compare frequency oracles and choose one."""


@oracle.command()
@click.option("--size", type=int, required=True, help="Number of values in the domain.")
@click.option("--epsilon", required=True, help="Privacy budget, as decimal text.")
@click.option("--n", type=int, required=True, help="Expected number of respondents.")
@click.option("--target-error", type=float, help="Also say how many respondents this standard error needs.")
@click.option("--max-report-bits", type=int, help="Leave out oracles with longer reports.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def choose(
    size: int, epsilon: str, n: int, target_error: float | None, max_report_bits: int | None, as_json: bool
) -> None:
    """Choose the oracle for a domain by exact error, report size and server work."""
    from tacit.tasks.choose import choose_oracle

    choice = choose_oracle(size=size, epsilon=epsilon, n=n, target_error=target_error, max_report_bits=max_report_bits)
    if as_json:
        candidates = [option.to_row() for option in choice.options]
        print_json({"pick": choice.pick.kind, "reason": choice.reason, "candidates": candidates})
        return
    header = ["oracle", "standard error", "report bits", "server operations", "1 % can move"]
    rows = [
        [
            option.kind,
            f"{option.standard_error:.6f}",
            str(option.report_bits),
            f"{option.server_operations:.2g}",
            "-" if option.coalition_influence is None else f"{option.coalition_influence:.4f}",
        ]
        for option in choice.options
    ]
    # The extra column appears only where a target was named.
    if target_error is not None:
        header.append(f"n for {target_error:g}")
        rows = [[*row, f"{option.n_needed:,}"] for row, option in zip(rows, choice.options, strict=True)]
    print_table(header, rows, f"{size} values, epsilon {epsilon}, {n:,} respondents")
    click.echo(f"\npick: {choice.pick.kind} ({choice.reason})")
