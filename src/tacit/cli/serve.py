"""`tacit serve`: the collector until it is stopped."""

from functools import partial
from pathlib import Path

import click


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the embedded database.")
@click.option("--database", default="", envvar="TACIT_DATABASE", help="PostgreSQL address, instead of a folder.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port to listen on.")
@click.option(
    "--public-url",
    default="",
    help="Address that respondents use, such as https://example.org, if a proxy is in front.",
)
@click.option("--trusted-proxies", default="", help="Addresses whose X-Forwarded-For is believed, comma-separated.")
@click.option("--rate", type=click.FloatRange(0), default=500.0, show_default=True,
              help="Requests per second of one address; 0 for no limit.")  # fmt: skip
@click.option(
    "--max-body", type=click.IntRange(1024), default=4 << 20, show_default=True, help="Largest body in bytes."
)
def serve(
    data: Path | None, database: str, host: str, port: int, public_url: str, trusted_proxies: str, rate: float,
    max_body: int,
) -> None:  # fmt: skip
    """Collect reports over HTTP and answer with error bars. SIGTERM finishes what was acknowledged."""
    if (data is None) == (not database):
        raise click.UsageError("give either a folder with --data or a PostgreSQL address with --database")
    from tacit.collector.limits import Limits
    from tacit.collector.server import Settings
    from tacit.collector.server import serve as run
    from tacit.dashboard import routes

    limits = Limits(requests_per_second=rate, burst=max(1, int(10 * rate)), body_bytes=max_body)
    settings = Settings(data, database, host, port, public_url, trusted_proxies, limits)
    run(settings, click.echo, partial(routes, public_url=settings.public_url))
