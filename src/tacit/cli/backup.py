"""`tacit backup` and `tacit restore`: a whole collector as one file, with what rows and shuffles need beside it."""

from pathlib import Path

import click

from tacit.cli.options.settings import setting

# Either a folder with SQLite and segments, or a PostgreSQL address with a folder for segments.
_data = setting("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the database.")
_database = setting("--database", default="", help="PostgreSQL address, instead.")
_segments = setting(
    "--segments",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for rows, with --database.",
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@_data
@_database
@_segments
def backup(file: Path, data: Path | None, database: str, segments: Path | None) -> None:
    """Write a consistent copy of a collector to a new FILE, while it goes on collecting.

    Rows go into a folder beside it, FILE.segments, and keys and letters of shuffles into FILE.shuffle; all belong
    together.
    """
    from tacit.collector.server import open_store

    # `open_store` would create the folder, and an empty backup of a mistyped path would look like a success.
    if data is not None and not data.is_dir():
        raise click.UsageError(f"{data} is not a folder")
    store = open_store(data, database, segments)
    try:
        store.backup(str(file))
    finally:
        store.close()
    click.echo(f"tacit: wrote {_all_of(file)}", err=True)


def _all_of(file: Path) -> str:
    """The backup file and the files beside it, which are only useful together."""
    beside = [path.name for path in (Path(f"{file}.segments"), Path(f"{file}.shuffle")) if path.exists()]
    return " and ".join([str(file), *beside]) + (", which belong together" if beside else "")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_data
@_database
@_segments
def restore(file: Path, data: Path | None, database: str, segments: Path | None) -> None:
    """Make a collector from a backup FILE, in an empty folder or database."""
    from tacit.collector.server import restore_store

    if (data is None) == (not database):
        raise click.UsageError(
            "say where to: a new folder with --data, or an empty PostgreSQL database with --database"
        )
    restore_store(file, data, database, segments)
    click.echo(f"tacit: restored {file}", err=True)
