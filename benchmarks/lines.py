"""The lines of the benchmark: what is measured, against what, and which ratio is the target.

Ratios instead of seconds: both sides run on the same machine in the same minutes, so that a busy machine slows both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from memory import added_memory
from session import NotMeasured, Session

DOMAINS = (128, 1024, 16384)
PEER_SECONDS = 10.0
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Row:
    """One row of the table of targets; `met` is None where something was not measured."""

    line: str
    tacit: str
    baseline: str
    ratio: str
    target: str
    met: bool | None


def milliseconds(seconds: float) -> str:
    """Write a duration."""
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def rate(per_second: float) -> str:
    """Write a rate of reports per second."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if per_second >= unit:
            return f"{per_second / unit:.3g} {name}/s"
    return f"{per_second:.3g} /s"


def times(ratio: float) -> str:
    """Write how many times faster."""
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.3g}x"


def peer_rate(answer: dict[str, Any]) -> str:
    """Write a peer's rate with the n it was measured at, when that n was cut."""
    if "error" in answer:
        return f"not measured: {answer['error']}"
    cut = f" (extrapolated from n={answer['n']:,})" if answer["extrapolated"] else ""
    return rate(answer["rate"]) + cut


def against_peer(line: str, tacit_rate: float, peer: dict[str, Any], least: float) -> Row:
    """A row whose target is a multiple of pure-ldp's rate."""
    target = f">= {least:g}x pure-ldp"
    baseline = f"pure-ldp {peer_rate(peer)}"
    if "error" in peer:
        return Row(line, rate(tacit_rate), baseline, "-", target, None)
    ratio = tacit_rate / peer["rate"]
    return Row(line, rate(tacit_rate), baseline, times(ratio), target, ratio >= least)


def at_most(line: str, seconds: float, baseline: float, name: str, most: float) -> Row:
    """A row whose target is a multiple of a baseline's time."""
    ratio = seconds / baseline
    return Row(
        line, milliseconds(seconds), f"{name} {milliseconds(baseline)}", f"{ratio:.2f}x the time",
        f"<= {most:g}x the time", ratio <= most,
    )  # fmt: skip


def olh_tally(session: Session) -> Iterator[Row]:
    """OLH tally on one thread, against pure-ldp and against the bare loop."""
    n = session.size(100_000)
    for d in DOMAINS:
        name = f"OLH tally, n={n:,}, d={d:,}, one thread"
        spent = session.work("olh_tally", n=n, d=d, repeats=session.repeats)
        peer = session.peer("pure-ldp", "server", "OLH", d, seconds=PEER_SECONDS)
        yield against_peer(name, n / spent["tacit"], peer, 1000)
        yield at_most(name, spent["tacit"], spent["bare"], "bare loop", 2.2)


def olh_threads(session: Session) -> Iterator[Row]:
    """What a second thread brings, against what it brings to two independent spin loops."""
    n = session.size(100_000)
    for d in DOMAINS:
        spent = session.work("olh_threads", threads=None, n=n, d=d, repeats=session.repeats + 2)
        speedup = spent["tacit_1"] / spent["tacit_2"]
        # Two loops do twice the work of one. Below 2 where the cores share power, caches or a hypervisor.
        ceiling = 2 * spent["spin_1"] / spent["spin_2"]
        share = speedup / ceiling
        yield Row(
            f"OLH tally, n={n:,}, d={d:,}, two threads against one", f"speed-up {speedup:.2f}",
            f"two spin loops {ceiling:.2f}", f"{share:.2f}x the speed-up", ">= 0.9x the speed-up",
            share >= 0.9,
        )  # fmt: skip


def oue_tally(session: Session) -> Iterator[Row]:
    """OUE tally from packed bits, against numpy."""
    n = session.size(100_000)
    spent = session.work("oue_tally", n=n, d=1024, repeats=session.repeats)
    ratio = spent["numpy"] / spent["tacit"]
    name = f"OUE tally from packed bits, n={n:,}, d=1,024, one thread"
    numpy = f"numpy unpackbits+sum {rate(n / spent['numpy'])}"
    yield Row(name, rate(n / spent["tacit"]), numpy, f"{ratio:.1f}x", ">= 5x", ratio >= 5)


def cbr_decode(session: Session) -> Iterator[Row]:
    """Cyclic block response: tally and decode by one FFT."""
    n = session.size(1_000_000)
    spent = session.work("cbr_decode", threads=None, n=n, d=150_000, repeats=session.repeats)
    name = f"CBR tally and estimate, n={n:,}, m={spent['cells']:,.0f}"
    first = f"first time {milliseconds(spent['first'])}"
    yield Row(name, milliseconds(spent["tacit"]), first, "-", "< 50 ms", spent["tacit"] < 0.050)


def hadamard(session: Session) -> Iterator[Row]:
    """HRR and HCMS, tally and estimate, against one bincount pass and one transform.

    The pass in C counts in 32 bits and checks nothing; numpy's counts in 64 bits and checks its input.
    """
    n, d = session.size(10_000_000), 1 << 20
    for kind in ("HRR", "HCMS"):
        spent = session.work(f"{kind.lower()}_estimate", n=n, d=d, repeats=session.repeats)
        sketch = " (2 rows of 2^19 cells)" if kind == "HCMS" else ""
        name = f"{kind}{sketch} tally and estimate, n={n:,}, d=2^20, one thread"
        for count in ("bincount", "numpy_bincount"):
            baseline = f"{'C' if count == 'bincount' else 'numpy'} bincount + C transform"
            yield at_most(name, spent["tacit"], spent[count] + spent["transform"], baseline, 3)


def privatize(session: Session) -> Iterator[Row]:
    """Privatizing with the operating system's entropy, against pure-ldp."""
    for kind in ("GRR", "OLH", "HRR", "OUE"):
        n = session.size(100_000 if kind == "OUE" else 1_000_000)
        spent = session.work("privatize", kind=kind, n=n, d=1024, repeats=session.repeats)
        peer = session.peer("pure-ldp", "encode", kind, 1024)
        yield against_peer(f"{kind} privatize, d=1,024, one thread", n / spent["tacit"], peer, 10)


def memory(session: Session) -> Iterator[Row]:
    """Memory that tallying a large file of OLH reports adds to tallying a small one."""
    n = session.size(10_000_000)
    small, large = added_memory(n)
    added = (large - small) / MEGABYTE
    yield Row(
        f"tacit tally, file of {n:,} OLH reports, d=1,024", f"peak {large / MEGABYTE:.0f} MB",
        f"1,000 reports {small / MEGABYTE:.0f} MB", f"+{added:.0f} MB", "< +300 MB", added < 300,
    )  # fmt: skip


LINES: dict[str, Callable[[Session], Iterator[Row]]] = {
    "olh-tally": olh_tally,
    "olh-threads": olh_threads,
    "oue-tally": oue_tally,
    "cbr": cbr_decode,
    "hadamard": hadamard,
    "privatize": privatize,
    "memory": memory,
}


def measure(name: str, session: Session) -> list[Row]:
    """Measure one line; what goes wrong becomes a row of its own, and the rows before it are kept."""
    rows: list[Row] = []
    try:
        rows.extend(LINES[name](session))
    except NotMeasured as error:
        rows.append(Row(name, f"not measured: {error}", "-", "-", "-", None))
    return rows
