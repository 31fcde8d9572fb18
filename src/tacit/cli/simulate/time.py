"""`tacit simulate time`: follow a stream window after window, or rehearse a year of devices with ledgers."""

from typing import Any

import click

from tacit.cli.output import print_json, progress

_METHODS = ("lpu", "lbu", "lsp", "lpd", "lpa", "lbd", "lba")
_MEANING = {
    "mse": "squared error of the raw answers of windows against the share in the whole population, mean over windows "
    "and seeds; never of the filter",
    "mse_sd": "standard deviation of that mean over seeds",
    "coverage": "share of windows whose 95 % interval holds the population's share",
    "online": "the same three after the online filter (--smooth), which knows the windows so far",
    "afterwards": "the same three after the smoother (--smooth), which knows all windows",
}
"""What the figures of a stream are, printed with them: raw and filtered errors are easily mixed up."""
_MEANING_OF_DEVICES = {
    "mse": "squared error of the raw answers of windows against the shares of all, mean over windows, values and draws",
    "coverage": "share of 95 % intervals that hold the share of all",
    "band_coverage": "share of draws (--seeds) in which the 95 % band holds all windows and values together",
    "change_alarms": "share of draws in which a change is announced at 5 %: false alarms on synthetic:flat, else power",
    "jump_alarms": "the same for jumps between neighbouring weeks",
    "located": "median distance of announced changes from the true one, in windows (synthetic:step)",
    "devices": "what ledgers did; violations are runs of windows in which a device was charged more than epsilon, "
    "violations_right_clock those of devices whose clock was right",
}


@click.command()
@click.option(
    "--data",
    help="synthetic:lns (the default), sin, log, step or flat; with --devices: synthetic:flat (the default), drift or "
    "step.",
)
@click.option("--n", type=click.IntRange(1), default=200_000, show_default=True, help="Devices.")
@click.option("--windows", type=click.IntRange(2, 4096), default=365, show_default=True, help="Windows in all.")
@click.option("--epsilon", required=True, help="Privacy budget of any --run windows in a row, as decimal text.")
@click.option("--run", type=click.IntRange(1, 4096), default=30, show_default=True, help="Windows of a run.")
@click.option("--method", type=click.Choice(_METHODS), default="lpu", show_default=True, help="How to ask again.")
@click.option("--smooth", is_flag=True, help="Filter the series as well, online and afterwards (lpu and lbu).")
@click.option("--seeds", type=click.IntRange(1), help="Repeat with seeds 0, 1, 2, ...: 1, or 10 with --devices.")
@click.option("--devices", is_flag=True, help="Simulate every device with its ledger (method lpu).")
@click.option("--size", type=click.IntRange(2), default=16, show_default=True, help="Number of values (devices).")
@click.option("--late", type=click.IntRange(0, 31), default=2, show_default=True, help="Windows of lateness (devices).")
@click.option("--churn", type=click.FloatRange(0, 1), default=0.2, show_default=True, help="Join or leave (devices).")
@click.option("--offline", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Asleep (devices).")
@click.option(
    "--clock-errors", type=click.FloatRange(0, 1), default=0.02, show_default=True, help="Wrong clocks (devices)."
)
@click.option(
    "--reinstalls", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Lose the ledger (devices)."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def time(**options: Any) -> None:
    """The same question again and again: error, coverage and the guarantee that was realised."""
    devices = bool(options["devices"])
    options["data"] = options["data"] or ("synthetic:flat" if devices else "synthetic:lns")
    options["seeds"] = options["seeds"] or (10 if devices else 1)
    kind, _, stream = options["data"].partition(":")
    if kind != "synthetic" or not stream:
        raise click.UsageError("--data must be synthetic:NAME, such as synthetic:lns")
    result = _devices(options, stream) if devices else _stream(options, stream)
    if options["as_json"]:
        print_json(result)
        return
    for name, value in result.items():
        if isinstance(value, dict):
            click.echo(f"{name}:")
            click.echo("\n".join(f"{inner:>22}  {number}" for inner, number in value.items()))  # pyright: ignore
        else:
            click.echo(f"{name:>22}  {value}")


def _stream(options: dict[str, Any], stream: str) -> dict[str, Any]:
    from tacit.device.numbers.budget import Epsilon
    from tacit.simulate.time.run import simulate_time

    epsilon = float(Epsilon(options["epsilon"]).declared)
    with progress("simulating", options["seeds"]) as advance:
        outcome = simulate_time(
            stream, options["method"], n=options["n"], windows=options["windows"], epsilon=epsilon, run=options["run"],
            seeds=options["seeds"], filtered=options["smooth"], advance=advance,
        )  # fmt: skip
    about = {name: options[name] for name in ("method", "data", "n", "windows", "epsilon", "run", "seeds")}
    guarantee = _guarantee(options["method"], epsilon, options["run"], options["windows"])
    charged = {"largest_charge_of_a_run": outcome.largest_charge}
    row = outcome.to_row()
    meaning = {name: words for name, words in _MEANING.items() if name in row}
    return about | row | {"meaning": meaning, "guarantee": guarantee | charged, "seconds": outcome.seconds}


def _devices(options: dict[str, Any], stream: str) -> dict[str, Any]:
    from time import perf_counter

    from tacit.device.numbers.budget import Epsilon
    from tacit.simulate.time.devices import CrowdTerms, simulate_devices
    from tacit.simulate.time.rehearsal import crowd_shares, rehearse
    from tacit.tasks.choose import choose_oracle

    if options["method"] != "lpu" or options["smooth"]:
        raise click.UsageError("--devices is for method lpu, without --smooth")
    begin, windows = perf_counter(), options["windows"]
    terms = CrowdTerms(
        devices=options["n"], windows=windows, per=options["run"],
        **{name: options[name] for name in ("late", "churn", "offline", "clock_errors", "reinstalls")},
    )  # fmt: skip
    shares = crowd_shares(stream, windows, options["size"], 0)
    mechanism = choose_oracle(size=options["size"], epsilon=options["epsilon"], n=options["n"]).options[0].mechanism
    with progress("simulating", windows + options["seeds"]) as advance:
        history = simulate_devices(terms, shares, 0, advance=advance)
        found = rehearse(
            mechanism, history.reports, shares, draws=options["seeds"], seed=0, stream=stream, advance=advance
        )
    about = {name: options[name] for name in ("method", "data", "n", "windows", "epsilon", "run", "seeds", "size")}
    guarantee = _guarantee("lpu", float(Epsilon(options["epsilon"]).declared), options["run"], windows)
    row = about | {"kind": mechanism.kind} | found.to_row() | {"guarantee": guarantee, "devices": history.to_row()}
    return row | {"meaning": _MEANING_OF_DEVICES, "seconds": perf_counter() - begin}


def _guarantee(method: str, epsilon: float, run: int, windows: int) -> dict[str, Any]:
    """What the scheme realises, and, where streams can be listed, what enumeration of a small one finds."""
    from tacit.tasks.time.guarantees import stream_guarantee

    row = stream_guarantee(method, epsilon=epsilon, run=run, windows=windows).to_row()
    return row | ({"enumerated": _enumerated(epsilon)} if method == "lpu" else {})


def _enumerated(epsilon: float) -> dict[str, Any]:
    """Losses of yes/no streams of four windows with runs of two, from the integer thresholds of the device."""
    from tacit.oracles.grr import GRR
    from tacit.testing.streams import any_pair, population_division, stream_loss, within_run

    scheme = population_division(GRR(size=2, epsilon=f"{epsilon:.9f}"), 2)
    found = {name: stream_loss(scheme, 2, 4, pairs) for name, pairs in (
        ("event", within_run(1)), ("run", within_run(2)), ("lifetime", any_pair),
    )}  # fmt: skip
    return {"windows": 4, "run_windows": 2} | found
