"""`tacit backup` and `tacit restore`: a whole collector as one file."""

from pathlib import Path

import click

_data = click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the database.")
_database = click.option("--database", default="", envvar="TACIT_DATABASE", help="PostgreSQL address, instead.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@_data
@_database
def backup(file: Path, data: Path | None, database: str) -> None:
    """Write a consistent copy of a collector to a new FILE, while it goes on collecting."""
    from tacit.collector.server import open_store

    if data is not None and not data.is_dir():
        raise click.UsageError(f"{data} is not a folder")
    store = open_store(data, database)
    try:
        store.backup(str(file))
    finally:
        store.close()
    click.echo(f"tacit: wrote {file}", err=True)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_data
@_database
def restore(file: Path, data: Path | None, database: str) -> None:
    """Make a collector from a backup FILE, in an empty folder or database."""
    from tacit.collector.server import restore_store

    restore_store(file, data, database)
    click.echo(f"tacit: restored {file}", err=True)
