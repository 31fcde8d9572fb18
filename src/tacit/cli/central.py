"""`tacit central`: histograms of a trusted curator, in the central model (not local)."""

from pathlib import Path
from typing import Any

import click

from tacit.central import MODEL
from tacit.cli.output import print_json, print_table

_METHODS = ("flat", "sorted", "tree", "hh", "wavelet")


@click.group()
def central() -> None:
    """Histograms of a trusted curator. Central, NOT LOCAL: whoever runs this holds the true counts."""


@central.command()
@click.argument("source", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@click.option("--epsilon", required=True, help="Privacy budget for one tuple added or removed, as decimal text.")
@click.option("--method", type=click.Choice(_METHODS), default="tree", show_default=True, help="How it is released.")
@click.option("--fanout", type=int, default=2, show_default=True, help="Children of a node, for tree and hh.")
@click.option("--counts", "whole", is_flag=True, help="Finish with non-negative integers. Biased.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Write the counts: .npy, or one per line.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def histogram(
    source: str, epsilon: str, method: str, fanout: int, whole: bool, output: str | None, as_json: bool
) -> None:
    """Release a histogram with noise: exact integer noise, coins of the operating system.

    SOURCE holds the true counts, as .npy or one per line. flat: noise on every cell. sorted: the counts in order, not
    saying whose. tree, hh: a tree of counts made consistent, with and without its root. wavelet: Haar coefficients.
    """
    true = _read(source)
    released, details = _release(true, epsilon, method, fanout, whole)
    answer: dict[str, Any] = {
        "model": MODEL,
        "method": method,
        "epsilon": epsilon,
        "size": len(true),
        **details,
        "biased": whole or method == "sorted",
    }
    click.echo(f"tacit: {len(true)} counts released; {MODEL}", err=True)
    if output:
        _write(released, Path(output))
    if as_json:
        print_json(answer if output else {**answer, "counts": released.tolist()})
    elif not output:
        print_table(["cell", "count"], [[str(i), f"{c:.10g}"] for i, c in enumerate(released.tolist())], MODEL)


def _release(true: Any, epsilon: str, method: str, fanout: int, whole: bool) -> tuple[Any, dict[str, Any]]:
    """Return the released counts, and the variances that are known in advance (they cost no privacy)."""
    from tacit.central.histograms import HayL, HayS, whole_counts
    from tacit.central.noise import Geometric
    from tacit.device.numbers.coins import SystemCoins

    coins = SystemCoins()
    if method == "flat":
        released = HayL(epsilon=epsilon).release(true, coins)
    elif method == "sorted":
        ordered = HayS(epsilon=epsilon)
        released = ordered.infer(ordered.release(true, coins))
    else:
        return _release_linear(true, epsilon, method, fanout, whole)
    # Only the variance is read here. Isotonic regression is not linear, so sorted counts have no variance per cell.
    noise = Geometric(epsilon, 1, coins)
    known = {"noise_variance": noise.variance} | ({"first_cell_variance": noise.variance} if method == "flat" else {})
    return (whole_counts(released) if whole else released), known


def _release_linear(true: Any, epsilon: str, method: str, fanout: int, whole: bool) -> tuple[Any, dict[str, Any]]:
    """Release trees and wavelets: consistent, with an exact variance for every cell and for the total."""
    import numpy as np

    from tacit.central.histograms import whole_counts, whole_prefixes
    from tacit.central.privelet import Privelet
    from tacit.central.trees import CDPHH, HayH
    from tacit.device.numbers.coins import SystemCoins

    size, coins = len(true), SystemCoins()
    if method == "wavelet":
        wavelet = Privelet(size=size, epsilon=epsilon)
        released, linear = wavelet.infer(wavelet.release(true, coins)), wavelet
    else:
        linear = (HayH if method == "tree" else CDPHH)(size=size, epsilon=epsilon, fanout=fanout)
        nodes = linear.infer_nodes(linear.release(true, coins))
        released = whole_prefixes(linear.nonnegative(nodes)[0]) if whole else nodes[0]
    # Two linear queries: the first cell alone, and the total.
    queries = np.stack([np.eye(1, size)[0], np.ones(size)])
    first, total = linear.variance_of(queries).tolist()
    details = {"noise_variance": linear.node_variance, "first_cell_variance": first, "total_variance": total}
    return (whole_counts(released) if whole and method == "wavelet" else released), details


def _read(source: str) -> Any:
    """Read counts from .npy, or one per line; the error for an unreadable one does not show it."""
    import numpy as np

    from tacit.central.histograms import true_counts
    from tacit.errors import InvalidValue

    try:
        if source.endswith(".npy"):
            return true_counts(np.load(source, allow_pickle=False))
        with click.open_file(source, encoding="utf-8") as lines:
            return true_counts(np.array([int(line) for line in lines if line.strip()]))
    except (ValueError, OverflowError) as error:
        # InvalidValue is a ValueError with a message of its own; numpy's would quote the line.
        if isinstance(error, InvalidValue):
            raise
        raise InvalidValue("the file must hold counts, as .npy or one whole number per line") from None


def _write(released: Any, path: Path) -> None:
    import numpy as np

    if path.suffix == ".npy":
        np.save(path, released)
    else:
        # 17 digits give every double back exactly.
        path.write_text("".join(f"{count:.17g}\n" for count in released.tolist()), encoding="utf-8")
