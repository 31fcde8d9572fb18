"""`tacit privatize | tally | merge | estimate`: report and tally files, on disk and in pipes."""

import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from io import BytesIO, TextIOWrapper
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from tacit.cli.options.post import POST
from tacit.cli.output import percent, print_json, print_table, progress
from tacit.core.statistics.level import check_level, selected_level

if TYPE_CHECKING:
    from tacit.cli.lake.source import TallyPart

POST_COLUMNS = ("processed", "processed_low", "processed_high")


@contextmanager
def writing(path: str, *, whole: bool = False) -> Generator[BinaryIO]:
    """Open a binary output, atomically: a file gets its name only when it is complete.

    Standard output is written as it comes, unless `whole` asks for it to be held back until everything succeeded.
    """
    if path == "-":
        with TemporaryFile() if whole else nullcontext(sys.stdout.buffer) as stream:
            yield cast("BinaryIO", stream)
            if whole:
                stream.seek(0)
                copyfileobj(stream, sys.stdout.buffer)
        return
    # Beside the target, so that the rename stays within one file system and is atomic.
    partial = Path(f"{path}.partial")
    try:
        with partial.open("wb") as stream:
            yield stream
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def reading(path: str) -> Generator[BinaryIO]:
    """Open a binary input: a file, or standard input."""
    if path == "-":
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as stream:
        yield stream


def _setting(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE to a field of a spec: booleans and integers by their looks, anything else is text."""
    name, separator, value = text.partition("=")
    if not separator:
        raise click.UsageError("--set takes name=value")
    if value in ("true", "false"):
        return name, value == "true"
    return name, int(value) if value.lstrip("-").isdecimal() else value


def make_mechanism(kind: str, size: int | None, epsilon: str, settings: tuple[str, ...]) -> Any:
    """Return a mechanism built from command-line options."""
    from tacit.catalog import CATALOG
    from tacit.device.catalog import find_kind

    cls: Any = find_kind({"kind": kind}, CATALOG)
    fields = dict(map(_setting, settings)) | ({} if size is None else {"size": size})
    try:
        return cls(epsilon=epsilon, **fields)
    except TypeError as error:
        # Python's message names the missing or unknown field: "GRR.__init__() missing 1 required ...".
        raise click.UsageError(f"{kind}: {str(error).split('__init__() ')[-1]}; give it with --size or --set") from None


@click.command()
@click.argument("values", default="-")
@click.option("--kind", required=True, help="Mechanism, such as olh.")
@click.option("--size", type=int, help="Number of values; implied by --labels.")
@click.option("--epsilon", required=True, help="Privacy budget, as decimal text.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other field of the spec.")
@click.option("--labels", help="Comma-separated labels of the values; without it values are integers from 0.")
@click.option("--column", help="Column by name or number; needed when there are several.")
@click.option("--strict", is_flag=True, help="Exit with 2 if any row cannot be read.")
@click.option("-o", "--output", default="-", help="The .reports file to write.")
def privatize(
    values: str, kind: str, size: int | None, epsilon: str, settings: tuple[str, ...], labels: str | None,
    column: str | None, strict: bool, output: str,
) -> None:  # fmt: skip
    """Turn a column of VALUES (a CSV file, or - for standard input) into noisy reports."""
    from tacit.cli.values import CsvColumn, integer_encoder
    from tacit.device.numbers.coins import SystemCoins
    from tacit.wire.files import REPORTS_MAGIC, Writer

    encode, domain, size = _encoder(labels, size)
    mechanism = make_mechanism(kind, size, epsilon, settings)
    if encode is None:
        encode = integer_encoder(mechanism.value_count)
    coins = SystemCoins()
    with _reading_text(values) as stream, progress("privatizing", None) as advance:
        source = CsvColumn(stream, encode, column)
        with writing(output, whole=strict) as sink:
            extra = {} if domain is None else {"domain": domain}
            writer = Writer(sink, REPORTS_MAGIC, mechanism, **extra)
            # A block per chunk: values are never in memory all at once.
            for chunk in source.chunks():
                writer.block(mechanism.privatize(chunk, coins).tobytes(), len(chunk))
                advance(len(chunk))
            # Raised inside `writing`, so that neither a file nor a held-back stream appears.
            if strict and source.skipped:
                _fail(f"{source.skipped} rows could not be read, the first is row {source.first_bad}; nothing written")
            n = writer.close()
    note = f", {source.skipped} rows skipped (the first is row {source.first_bad})" if source.skipped else ""
    click.echo(f"tacit: {n} reports{note}", err=True)


def _fail(message: str) -> None:
    from tacit.errors import InvalidValue

    raise InvalidValue(message)


def _encoder(labels: str | None, size: int | None) -> tuple[Any, dict[str, Any] | None, int | None]:
    """Return encoder, domain spec and size from --labels; without labels, values are integers below the size."""
    if labels is None:
        return None, None, size
    from tacit.device.domains.domain import Categories

    domain = Categories(name="value", labels=tuple(label.strip() for label in labels.split(",")))
    return domain.encode, domain.spec(), domain.size


@contextmanager
def _reading_text(path: str) -> Generator[Any]:
    """Open text; utf-8-sig skips the byte order mark that spreadsheets write."""
    if path == "-":
        yield TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="replace", newline="")
        return
    with Path(path).open(newline="", encoding="utf-8-sig", errors="replace") as stream:
        yield stream


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "--output", default="-", help="The .tally file to write.")
def tally(files: tuple[str, ...], output: str) -> None:
    """Count report FILES into one tally: .reports (- for standard input), Parquet, folders and URLs of Parquet."""
    n = _write_sum(_tallies(files), output)
    click.echo(f"tacit: {n} reports counted", err=True)


def _tallies(files: tuple[str, ...]) -> "Iterator[TallyPart]":
    """The tally of every .reports file, and one of all Parquet files together."""
    from tacit.cli.lake.source import is_lake, tally_lake

    lakes = [path for path in files if is_lake(path)]
    if lakes:
        with ExitStack() as stack:
            yield tally_lake(lakes, lambda rows: stack.enter_context(progress("tallying", rows)))
    with progress("tallying", None) as advance:
        for path in files:
            if path not in lakes:
                yield _tally_file(path, advance)


def _tally_file(path: str, advance: Any) -> "TallyPart":
    from tacit.cli.lake.source import TallyPart
    from tacit.wire.files import REPORTS_MAGIC, Reader, report_blocks

    with reading(path) as stream:
        reader = Reader(stream, REPORTS_MAGIC, path)
        mechanism = reader.header.mechanism
        # Block by block onto an empty tally: memory does not grow with the file.
        total = mechanism.tally(mechanism.decode(b""))
        for reports in report_blocks(reader):
            total = total + mechanism.tally(reports)
            advance(len(reports))
    return TallyPart(total, reader.header.domain)


def _write_sum(parts: "Iterable[TallyPart]", output: str) -> int:
    """Add tallies of the same mechanism, domain and collection and write the sum; returns the number of reports."""
    from tacit.cli.lake.source import origin_of
    from tacit.errors import SpecMismatch
    from tacit.wire.files import write_tally

    # Mechanisms are compared by the tallies' own addition; labels are not part of a mechanism, so they are here.
    total, domain, origins = None, None, list[Any]()
    for part, part_domain, origin in parts:
        if total is not None and domain != part_domain:
            raise SpecMismatch("cannot merge tallies: their labels differ; the same index would mean different values")
        total, domain = part if total is None else total + part, part_domain
        origins.append(origin)
    with writing(output) as sink:
        assert total is not None
        write_tally(sink, total, domain, origin_of(origins))
    return total.n


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "--output", default="-", help="The .tally file to write.")
def merge(files: tuple[str, ...], output: str) -> None:
    """Add tally FILES of the same mechanism."""
    total = _write_sum((_read_part(path) for path in files), output)
    click.echo(f"tacit: {total} reports in {len(files)} tallies", err=True)


def _read_part(path: str) -> "TallyPart":
    from tacit.cli.lake.source import TallyPart
    from tacit.wire.files import read_origin, read_tally

    with reading(path) as stream:
        data = stream.read()
    return TallyPart(*read_tally(BytesIO(data), path), read_origin(data, path))


def read_tally_file(path: str) -> tuple[Any, dict[str, Any] | None]:
    """Return a tally and, where it has labels, the spec of its domain."""
    from tacit.wire.files import read_tally

    with reading(path) as stream:
        return read_tally(stream, path)


@click.command()
@click.argument("file")
@click.option("--candidates", help="Comma-separated values to estimate; needed for domains nobody enumerates.")
@click.option("--level", type=float, default=0.95, show_default=True, help="Confidence level of the intervals.")
@click.option("--top", type=int, help="Only the values with the largest estimates.")
@POST
@click.option("--likelihood", is_flag=True, help="Also the frequencies under which the reports are most likely.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def estimate(
    file: str, candidates: str | None, level: float, top: int | None, post: str | None, likelihood: bool, as_json: bool
) -> None:
    """Estimate frequencies with intervals from a tally FILE (- for standard input)."""
    check_level(level)
    tally, domain = read_tally_file(file)
    mechanism: Any = tally.mechanism
    chosen = None if candidates is None else [_candidate(domain, text.strip()) for text in candidates.split(",")]
    raw = _joint_table(mechanism, tally, candidates) if is_joint(mechanism) else mechanism.estimate(tally, chosen)
    # Post-processing needs the indices, so labels are put in after it, and --top comes last.
    cut = top is not None and top < len(raw)
    # The largest estimates are listed because they are high; their intervals allow for that.
    wide = selected_level(level, top or 1, len(raw)) if cut else level
    rows, about_post = raw.to_rows(wide), {"adjusted_for_selection": True} if cut else {}
    if post is not None:
        _check_processable(mechanism, raw, chosen)
        about_post |= _add_processed(rows, raw, post, wide, whole=chosen is None)
    if likelihood:
        about_post |= _add_likelihood(rows, mechanism, tally)
    if domain is not None:
        rows = [row | {"value": _label(domain, row["value"])} for row in rows]
    if top is not None:
        rows = sorted(rows, key=lambda row: -(row["frequency"] or 0))[:top]
    if as_json:
        about = {"kind": mechanism.kind, "epsilon": mechanism.spec()["epsilon"]} | _caution(raw)
        realised = {"realised_epsilon": mechanism.realised_epsilon()}
        print_json({"n": tally.n} | about | realised | {"level": level} | about_post | {"estimates": rows})
    else:
        _print_rows(rows, f"{tally.n:,} reports, {mechanism.kind}, epsilon {mechanism.spec()['epsilon']}", level)
        if cut:
            click.echo(f"The {top} largest of {len(raw)}; intervals are adjusted for selection.")
        if raw.caution:
            click.echo(CAUTIONS.get(raw.caution, raw.caution))


CAUTIONS = {
    "uneven_weights": "Caution: a few reports carry most of the weight. Intervals allow for the worst and are wide.",
    "even_blocks": "Caution: shares are spread evenly inside cells that were not divided. Intervals are approximate.",
}
"""Cautions of estimates, spelt out for readers."""


def _caution(raw: Any) -> dict[str, Any]:
    return {"caution": raw.caution} if raw.caution else {}


def is_joint(mechanism: Any) -> bool:
    """Whether a report is about several attributes that are asked together, by views or coefficients."""
    from tacit.tasks.marginals.solve import has_tables

    return has_tables(mechanism)


def _joint_table(mechanism: Any, tally: Any, candidates: str | None) -> Any:
    """Return the raw table of all attributes together; its values are tuples of answers."""
    from tacit.tasks.marginals.solve import solve_marginals

    if candidates is not None:
        raise click.UsageError("--candidates works on one attribute; this tally is about several together")
    return solve_marginals(mechanism, tally).table(range(len(mechanism.drawn_from.answer_sizes()))).raw


def is_histogram(mechanism: Any, estimate: Any) -> bool:
    """Return whether an estimate has one cell for every value of the mechanism's domain; a mean has not."""
    return len(estimate) == getattr(mechanism, "size", -1)


def _check_processable(mechanism: Any, raw: Any, candidates: list[int] | None) -> None:
    """Refuse to post-process what is no frequency, such as a mean."""
    if candidates is None and not is_histogram(mechanism, raw):
        raise click.UsageError("--post works on the frequencies of a whole domain or of --candidates, not on means")


def _add_processed(rows: list[dict[str, Any]], raw: Any, post: str, level: float, *, whole: bool) -> dict[str, Any]:
    """Add the processed values to the rows beside the raw ones; return what the method promises."""
    from tacit.post.frequencies.methods import process

    processed = process(raw, post, whole=whole)
    low, high = processed.interval(level)
    for i, row in enumerate(rows):
        cells = (processed.value[i], low[i], high[i]) if raw.has_data else (None, None, None)
        row |= {name: cell if cell is None else float(cell) for name, cell in zip(POST_COLUMNS, cells, strict=True)}
    return {"post": processed.method.to_row()}


def _add_likelihood(rows: list[dict[str, Any]], mechanism: Any, tally: Any) -> dict[str, Any]:
    """Add the maximum-likelihood frequencies to the rows; return how the fit converged."""
    from tacit.decode.em import all_values, maximum_likelihood

    if len(rows) != (len(all_values(mechanism)) if is_joint(mechanism) else getattr(mechanism, "size", -1)):
        raise click.UsageError("--likelihood works on the frequencies of a whole domain, not on means or --candidates")
    fit = maximum_likelihood(mechanism, tally) if tally.n else None
    for i, row in enumerate(rows):
        row["likelihood"] = None if fit is None else float(fit.frequency[i])
    return {} if fit is None else {
        "likelihood": {"converged": fit.converged, "gap": fit.gap, "iterations": fit.iterations}
    }  # fmt: skip


def _candidate(domain: dict[str, Any] | None, text: str) -> int:
    from tacit.device.domains.product import domain_of

    if domain is not None:
        return domain_of(domain).encode(text)
    if not text.isdecimal():
        raise click.UsageError("--candidates takes comma-separated integers; this tally has no labels")
    return int(text)


def _label(domain: dict[str, Any], index: int) -> Any:
    from tacit.device.domains.product import domain_of

    return domain_of(domain).decode(index)


def _print_rows(rows: list[dict[str, Any]], title: str, level: float) -> None:
    def cell(x: float | None) -> str:
        return "no data" if x is None else percent(x)

    header = ["value", "frequency", "standard error", f"{100 * level:g} % low", "high"]
    names = ["frequency", "standard_error", "low", "high"]
    if rows and POST_COLUMNS[0] in rows[0]:
        header, names = [*header, "processed", "low", "high"], [*names, *POST_COLUMNS]
    if rows and "likelihood" in rows[0]:
        header, names = [*header, "most likely"], [*names, "likelihood"]
    print_table(header, [[str(row["value"]), *(cell(row[name]) for name in names)] for row in rows], title)
