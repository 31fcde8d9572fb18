"""`tacit plan`: compare mechanisms for a question by exact error. `PLANNERS` has one planner per task."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import click

from tacit.cli.output import print_json, print_table

Row = dict[str, Any]


@dataclass(frozen=True)
class PlanRequest:
    """The options of the command, checked; a planner takes from them what its task needs."""

    size: int
    epsilon: str
    n: int
    workload: str | None
    target_error: float | None
    max_report_bits: int | None
    even_levels: bool
    sizes: tuple[int, ...] = ()
    k: int = 2
    cover: bool = False
    domain: Any = None
    """The domain of heavy hitters, where more than its size is known."""
    shares: tuple[float, ...] = ()
    words: tuple[str, ...] = ()
    """What is known of the values of heavy hitters: shares of the first ranks, and the values themselves."""
    ends: tuple[float, float] | None = None
    """The least and the largest number, for a mean."""
    simulated: bool = True
    """Whether what is only said in words is simulated too."""

    @property
    def values(self) -> str:
        """The domain in words, for the title of the table."""
        if self.domain is not None:
            length = self.domain.length
            kind = f"texts of up to {length} symbols" if self.domain.kind == "text" else f"strings of {length} bits"
            return f"{kind} ({self.domain.size:.3g})"
        if self.ends is not None:
            return "numbers from {:g} to {:g}".format(*self.ends)
        return f"{len(self.sizes)} attributes" if self.sizes else f"{self.size} values"


_MOST_WAVE = 256
"""Square waves are simulated for a plan up to this many values."""


@dataclass(frozen=True)
class PlanReport:
    """The result of a planner: the pick, all options best first, and one sentence about it."""

    pick: Row
    options: list[Row]
    reason: str
    names: list[str]
    over: str


def _ranges(question: PlanRequest) -> PlanReport:
    from tacit.tasks.ranges.forecast import forecast_monotone
    from tacit.tasks.ranges.plan import choose_ranges

    choice = choose_ranges(
        size=question.size,
        epsilon=question.epsilon,
        n=question.n,
        workload=question.workload or "ranges",
        target_error=question.target_error,
        max_report_bits=question.max_report_bits,
        even_levels=question.even_levels,
    )
    # The table compares raw errors, which are exact; what users get of the pick is simulated.
    expected = forecast_monotone(choice.pick.mechanism, question.n, choice.pick.rmse, choice.workload)
    answered = {"rmse_answered": expected.normal, "rmse_answered_between": list(expected.between)}
    pick = choice.pick.to_row() | answered | {"spec": choice.pick.mechanism.spec()}
    rows, names = [option.to_row() for option in choice.options], [option.name for option in choice.options]
    reason = f"{choice.reason}; {expected.to_words()}{_wave(question, choice.workload)}"
    return PlanReport(pick, rows, reason, names, str(choice.workload))


def _wave(question: PlanRequest, workload: Any) -> str:
    """What square waves would do, in words; they are biased, and no option beside exact errors."""
    from tacit.numeric.square_wave import SquareWave
    from tacit.tasks.ranges.forecast import forecast_monotone

    if question.size > _MOST_WAVE or not question.simulated:
        return ""
    found = forecast_monotone(SquareWave(size=question.size, epsilon=question.epsilon), question.n, 0.0, workload)
    low, high = found.between
    return f"; square waves (sw), which are biased, about {found.normal:.6f} ({low:.6f} to {high:.6f})"


def _rectangles(question: PlanRequest) -> PlanReport:
    from math import ceil

    from tacit.tasks.ranges.grid_task import rectangle_options

    if question.workload is not None or question.even_levels:
        raise click.UsageError("--workload and --even-levels are for ranges; rectangles are planned for all of them")
    if question.target_error is not None and not question.target_error > 0:
        raise click.UsageError("--target-error must be above 0")
    options = rectangle_options(question.sizes, question.epsilon, question.n)
    most = question.max_report_bits
    options = [option for option in options if most is None or option.report_bits <= most]
    if not options:
        raise click.UsageError(f"--max-report-bits {most} leaves no way to ask for rectangles of these sizes")

    def row(option: Any) -> Row:
        found = {"method": option.name, "rmse": option.rmse(question.n), "report_bits": option.report_bits}
        found |= {"members": len(option.heights)}
        between = getattr(option, "between", None)
        # The error of grids of pairs is in part that of the shape of the data, which more respondents do not remove.
        found |= {} if between is None else {"rmse_between": list(between)}
        wanted = question.target_error
        needed = None if wanted is None or between else ceil(option.error / wanted**2)
        return found if wanted is None else found | {"n_needed": needed}

    # The planner has sorted them by error, the one to publish first.
    rows, names = [row(option) for option in options], [option.name for option in options]
    pick = rows[0] | {"spec": options[0].mechanism.spec()}
    reason = f"{names[0]} has the least expected error over all rectangles"
    if "rmse_between" in pick:
        low, high = pick["rmse_between"]
        reason += f"; grids of pairs are biased, their error is {low:.6f} to {high:.6f} by the shape of the data"
    over = "rectangles" if len(question.sizes) <= 3 else "rectangles of two attributes"
    return PlanReport(pick, rows, reason, names, over)


def _histogram(question: PlanRequest) -> PlanReport:
    from tacit.tasks.choose import choose_oracle

    if question.workload not in (None, "points"):
        raise click.UsageError("--workload is for ranges; a histogram is asked for its points")
    choice = choose_oracle(
        size=question.size,
        epsilon=question.epsilon,
        n=question.n,
        target_error=question.target_error,
        max_report_bits=question.max_report_bits,
    )

    def row(option: Any) -> Row:
        # The same names as in plans for ranges, so that scripts read both alike.
        whole = option.to_row()
        names = ("report_bits", "server_operations", "coalition_influence", "n_needed")
        shared = {name: whole[name] for name in names if name in whole}
        return {"method": "flat", "oracle": option.kind, "rmse": option.standard_error} | shared

    pick = row(choice.pick) | {"spec": choice.pick.mechanism.spec()}
    names = [option.kind for option in choice.options]
    return PlanReport(pick, [row(option) for option in choice.options], choice.reason, names, "points")


def _mean(question: PlanRequest) -> PlanReport:
    """One noisy bit each, which is what a mean is asked with, beside whole numbers with noise (discrete Laplace)."""
    from tacit.library.asking import ask
    from tacit.numeric.laplace import DiscreteLaplace

    assert question.ends is not None
    low, high = question.ends
    asked = ask("mean", question.epsilon, n=question.n, low=low, high=high)
    bit: Any = asked.mechanism
    unit = asked.expected_error / bit.standard_error(question.n)

    def row(mechanism: Any) -> Row:
        error = unit * mechanism.standard_error(question.n)
        found = {"method": "mean", "oracle": mechanism.kind, "rmse": error, "report_bits": mechanism.report_bits}
        needed = (
            {} if not question.target_error else {"n_needed": ceil(question.n * (error / question.target_error) ** 2)}
        )
        return found | {"server_operations": 1.0} | needed

    other = DiscreteLaplace(top=bit.top, epsilon=question.epsilon)
    rows = [row(each) for each in (bit, other) if each.report_bits <= (question.max_report_bits or each.report_bits)]
    reason = (
        f"{bit.kind}: every respondent sends one noisy bit; the standard error of the mean is at most "
        f"{rows[0]['rmse']:.4g}, on numbers from {low:g} to {high:g}"
    )
    return PlanReport(rows[0] | {"spec": bit.spec()}, rows, reason, [r["oracle"] for r in rows], "the mean")


def _marginals(question: PlanRequest) -> PlanReport:
    from tacit.tasks.marginals.plan import choose_marginals

    choice = choose_marginals(
        sizes=question.sizes,
        k=question.k,
        epsilon=question.epsilon,
        n=question.n,
        target_error=question.target_error,
        max_report_bits=question.max_report_bits,
        cover=question.cover,
    )
    pick = choice.pick.to_row() | {"spec": choice.pick.mechanism.spec()}
    rows, names = [option.to_row() for option in choice.options], [option.method for option in choice.options]
    over = f"tables of {question.k} of {len(question.sizes)} attributes"
    return PlanReport(pick, rows, choice.reason, names, over)


def _heavy_hitters(question: PlanRequest) -> PlanReport:
    from tacit.tasks.hitters.options import hitters_options

    options, reason = hitters_options(
        size=question.size, domain=question.domain, epsilon=question.epsilon, n=question.n, k=question.k,
        reference=_reference(question), simulated=question.simulated,
    )  # fmt: skip
    rows = [option.to_row() for option in options]
    pick = rows[0] | {"spec": options[0].plan.mechanism.spec()}
    return PlanReport(pick, rows, reason, [option.name for option in options], f"the {question.k} most frequent values")


def _reference(question: PlanRequest) -> Any:
    """What the user knows of the values: head shares, and a list of words, most frequent first."""
    from tacit.errors import InvalidValue
    from tacit.tasks.hitters.forecast import counted_reference, told_reference
    from tacit.tasks.hitters.spelling import spelling_of, values_below

    domain, held = question.domain, dict[int, int]()
    for line in question.words:
        word, _, count = line.partition("\t")
        try:
            value = domain.encode(word) if domain is not None else int(word)
            held[value] = held.get(value, 0) + int(count or 0)
        except (InvalidValue, ValueError):
            continue  # A list of words may hold some that are outside the domain.
    values = list(held)
    if sum(held.values()) and not question.shares:
        return counted_reference(values, list(held.values()))
    if not question.shares:
        return None
    spelling = spelling_of(domain) if domain is not None else values_below(question.size)
    return told_reference(spelling, question.k, question.shares, values)


PLANNERS: dict[str, Callable[[PlanRequest], PlanReport]] = {
    "heavy-hitters": _heavy_hitters, "histogram": _histogram, "marginals": _marginals, "mean": _mean,
    "ranges": _ranges, "rectangles": _rectangles,
}  # fmt: skip
"""The planner of every task that can be planned before there are data."""


@click.command()
@click.option(
    "--task", type=click.Choice(sorted([*PLANNERS, "shuffle", "time"])), required=True, help="What will be asked for."
)
@click.option("--size", type=int, help="Number of values in the domain.")
@click.option("--bits", type=click.IntRange(1, 64), help="Length of bit strings, instead of a size (heavy-hitters).")
@click.option("--alphabet", help="Text over lower, printable, bytes, or the characters given (heavy-hitters).")
@click.option("--length", type=click.IntRange(1), help="Longest text over --alphabet (heavy-hitters).")
@click.option("--low", type=float, help="Least number there may be (task mean).")
@click.option("--high", type=float, help="Largest number there may be (task mean).")
@click.option("--binary", type=click.IntRange(1, 1024), help="Number of binary attributes (task marginals).")
@click.option("--sizes", help="Numbers of answers of the attributes, with commas (marginals, rectangles).")
@click.option("--k", type=int, help="Attributes of one table (marginals: 2), or values to find (heavy-hitters: 32).")
@click.option("--shares", help="Shares of the ranks 1, k/4, k and 4k, with commas, as far as known (heavy-hitters).")
@click.option(
    "--words",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Values of that kind, one a line, the most frequent first; or with a tab and a count (heavy-hitters).",
)
@click.option("--cover", is_flag=True, help="Views of CALM must cover all tables (task marginals).")
@click.option("--epsilon", help="Privacy budget, as decimal text; without it, the one that --target-error needs.")
@click.option("--n", type=int, required=True, help="Expected number of respondents.")
@click.option(
    "--workload", help="Errors are averaged over: ranges, prefixes, points or length:r.  [default: all ranges]"
)
@click.option("--target-error", type=float, help="Say how many respondents this error needs, or which epsilon.")
@click.option("--max-report-bits", type=int, help="Leave out mechanisms with longer reports.")
@click.option("--even-levels", is_flag=True, help="Ask all levels of a tree alike, not as the workload likes best.")
@click.option("--delta", default="1e-9", show_default=True, help="Probability that epsilon fails (shuffle).")
@click.option("--cap", help="Largest local epsilon that one report may spend (shuffle).")
@click.option("--epsilon-others", help="Epsilon against the collector and all other respondents (shuffle).")
@click.option("--every", type=click.Choice(["day", "week", "month"]), help="Length of a window (time).  [default: day]")
@click.option("--run", type=click.IntRange(1), help="Windows in a row that epsilon is for (time).")
@click.option("--windows", type=click.IntRange(1, 4096), help="Windows in all (time).  [default: 365]")
@click.option("--frequency", type=click.FloatRange(0, 1), help="Share to compare at (time).  [default: 0.05]")
@click.option("--drift", type=click.FloatRange(0, 1), help="Its drift per window (time).  [default: 0.0005]")
@click.option("--changes", type=click.IntRange(1, 32), help="Changes of one answer at most, for life (time).")
@click.option(
    "--unchanged", type=click.FloatRange(0, 1), help="Answers that stay between rounds, in place of --run (time)."
)
@click.option("--first", help="Epsilon of a single report, below that of an answer that stays (time, --unchanged).")
@click.option("--all", "everything", is_flag=True, help="Show all options in the table, not the 12 best.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def plan(
    task: str, size: int | None, bits: int | None, alphabet: str | None, length: int | None, low: float | None,
    high: float | None, binary: int | None,
    sizes: str | None, k: int | None, shares: str | None, words: Path | None, cover: bool,
    epsilon: str | None, n: int, workload: str | None,
    target_error: float | None, max_report_bits: int | None, even_levels: bool,
    delta: str, cap: str | None, epsilon_others: str | None, every: str | None, run: int | None, windows: int | None,
    frequency: float | None, drift: float | None, changes: int | None, unchanged: float | None, first: str | None,
    everything: bool, as_json: bool,
) -> None:  # fmt: skip
    """Compare the mechanisms for a question by exact error and choose one; or choose epsilon by a wanted error."""
    if epsilon is None and target_error is None:
        raise click.UsageError("--epsilon is needed; or --target-error, and the epsilon that reaches it is found")
    if task == "shuffle":
        from tacit.cli.shuffle import show_plan

        show_plan(size, n, epsilon, delta, cap, epsilon_others, target_error, as_json)
        return
    timed = {
        "every": every, "run": run, "windows": windows, "frequency": frequency, "drift": drift, "changes": changes,
        "unchanged": unchanged, "first": first,
    }  # fmt: skip
    if task == "time":
        from tacit.cli.time.plan import show_time_plan

        show_time_plan(size, n, epsilon, timed, as_json)
        return
    if any(value is not None for value in timed.values()):
        raise click.UsageError(
            "--every, --run, --windows, --frequency, --drift, --changes, --unchanged and --first are for task time"
        )
    if cap is not None or epsilon_others is not None:
        raise click.UsageError("--cap and --epsilon-others are for task shuffle; other reports are not shuffled")
    domain = _domain(task, size, bits, alphabet, length)
    whole = _sizes(task, size, binary, sizes)
    # k has two meanings and two defaults: values to find, or attributes of a table.
    k = (32 if task == "heavy-hitters" else 2) if k is None else k
    question = PlanRequest(
        size or 0,
        epsilon or "",
        n,
        workload,
        target_error,
        max_report_bits,
        even_levels,
        sizes=whole,
        k=k,
        cover=cover,
        domain=domain,
        shares=_numbers(shares),
        words=tuple(words.read_text(encoding="utf-8").splitlines()) if words else (),
        ends=_ends(task, low, high),
    )
    chosen = None
    if epsilon is None:
        chosen = _least(question, PLANNERS[task])
        question = replace(question, epsilon=chosen.epsilon)
    _show(task, PLANNERS[task](question), question, chosen, everything, as_json)


def _show(task: str, report: PlanReport, question: PlanRequest, chosen: Any, everything: bool, as_json: bool) -> None:
    """Print the options as JSON or as a table, with the pick, and epsilon where it was looked for."""
    if as_json:
        shown: Row = {"task": task, "workload": report.over, "pick": report.pick, "reason": report.reason}
        print_json(shown | ({} if chosen is None else chosen.to_row()) | {"options": report.options})
        return
    most = len(report.options) if everything else 12
    _table(report, most, question)
    if len(report.options) > most:
        click.echo(f"({len(report.options) - most} more with --all)")
    click.echo(f"\npick: {report.reason}")
    if chosen is not None:
        click.echo(f"epsilon: {chosen.words}")


def _numbers(text: str | None) -> tuple[float, ...]:
    try:
        return tuple(float(item) for item in text.split(",")) if text else ()
    except ValueError:
        raise click.UsageError("--shares must be numbers with commas, such as 0.03,0.01,0.004") from None


def _least(question: PlanRequest, planner: Callable[[PlanRequest], PlanReport]) -> Any:
    """The least epsilon whose pick reaches the wanted error."""
    from tacit.tasks.outcome import least_epsilon

    def error(epsilon: str) -> float:
        pick = planner(replace(question, epsilon=epsilon, simulated=False)).pick
        # Levels of a tree are asked as the workload likes best, unless they are asked alike.
        return float(pick.get("rmse_weighted", pick["rmse"]))

    return least_epsilon(error, question.target_error or 0.0)


def _domain(task: str, size: int | None, bits: int | None, alphabet: str | None, length: int | None) -> Any:
    """Return the domain of heavy hitters, which is given in one of three ways; None for a size."""
    if task != "heavy-hitters":
        if bits is not None or alphabet is not None or length is not None:
            raise click.UsageError("--bits, --alphabet and --length are for task heavy-hitters; others take --size")
        return None
    ways = [size is not None, bits is not None, alphabet is not None or length is not None]
    if sum(ways) != 1 or (alphabet is None) != (length is None):
        raise click.UsageError(
            "say once what is looked for: --bits 48 for bit strings, --alphabet lower --length 8 for text, "
            "or --size for the number of values"
        )
    # Domains are checked by the device's own code, which names the longest text that fits.
    from tacit.device.domains.domain import Bits
    from tacit.device.domains.text import ALPHABETS, Text

    if alphabet is not None and length is not None:
        return Text("text", alphabet if alphabet in ALPHABETS else "".join(sorted(set(alphabet))), length)
    return None if bits is None else Bits("bits", bits)


def _ends(task: str, low: float | None, high: float | None) -> tuple[float, float] | None:
    """Return the range of the numbers of a mean; None for other tasks."""
    if task != "mean":
        if low is not None or high is not None:
            raise click.UsageError("--low and --high are for task mean; others take --size")
        return None
    if low is None or high is None:
        raise click.UsageError("--low and --high are needed for task mean, such as --low 0 --high 100")
    return low, high


def _sizes(task: str, size: int | None, binary: int | None, sizes: str | None) -> tuple[int, ...]:
    """Return the numbers of answers of the attributes; empty for other tasks, which have one attribute of a size."""
    if task == "rectangles" and (size is not None or binary or not sizes):
        raise click.UsageError("--sizes 64,64 is needed for task rectangles: the numbers of answers of the attributes")
    if task not in ("marginals", "rectangles"):
        if size is None and task not in ("heavy-hitters", "mean"):
            raise click.UsageError("--size is needed: the number of values in the domain")
        return ()
    try:
        return (2,) * binary if binary else tuple(int(item) for item in (sizes or "").split(","))
    except ValueError:
        raise click.UsageError("--binary 8 or --sizes 2,3,5 is needed: whole numbers with commas") from None


def _table(report: PlanReport, most: int, question: PlanRequest) -> None:
    """Print the best options; columns that only some tasks or requests have come last."""
    header = ["option", "rmse", "report bits"]
    worked = any("server_operations" in row for row in report.options)
    header += ["server operations"] if worked else []
    weighted = any("gain" in row for row in report.options)
    header += ["rmse, weighted levels"] if weighted else []
    pushed = any("coalition_influence" in row for row in report.options)
    header += ["1 % can move"] if pushed else []
    # Heavy hitters are planned for what is found, which more respondents change in more ways than one.
    counted = any("n_needed" in row for row in report.options)
    header += [f"n for {question.target_error:g}"] if counted and question.target_error is not None else []
    rows: list[list[str]] = []
    for name, row in list(zip(report.names, report.options, strict=True))[:most]:
        cells = [name, f"{row['rmse']:.6f}", str(row["report_bits"])]
        cells += [f"{row['server_operations']:.2g}"] if worked else []
        cells += [f"{row['rmse_weighted']:.6f}"] if weighted else []
        cells += [f"{row['coalition_influence']:.4f}"] if pushed else []
        needed = row.get("n_needed", "")
        rows.append([*cells, "-" if needed is None else f"{needed:,}"] if "n_needed" in row else cells)
    title = f"{question.values}, epsilon {question.epsilon}, {question.n:,} respondents, error over {report.over}"
    print_table(header, rows, title)
