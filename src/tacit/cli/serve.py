"""`tacit serve`: runs the collector until it is stopped."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from tacit.cli.options.settings import ServerCommand, read_variable, setting
from tacit.cli.options.sign_in import sign_in_options
from tacit.cli.shuffled.tls import tls_options


@click.command(cls=ServerCommand)
@setting("--data", type=click.Path(path_type=Path, file_okay=False), help="Folder of the embedded database.")
@setting("--database", default="", help="PostgreSQL address, instead of a folder.")
@setting("--segments", type=click.Path(path_type=Path, file_okay=False),
              help="Folder for rows, with --database; collectors on one database share it.")  # fmt: skip
@setting("--lake", default="",
              help="Keep reports as Parquet files at this folder or URL, such as s3://bucket/lake.")  # fmt: skip
@setting("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@setting("--port", type=click.IntRange(1, 65535), default=8000, show_default=True, help="Port to listen on.")
@setting(
    "--public-url",
    default="",
    help="Address that respondents use, such as https://example.org, if a proxy is in front.",
)
@setting("--trusted-proxies", default="", help="Addresses whose X-Forwarded-For is believed, comma-separated.")
@setting("--rate", type=click.FloatRange(0), default=500.0, show_default=True,
              help="Requests per second of one address; 0 for no limit.")  # fmt: skip
@setting("--max-body", type=click.IntRange(1024), default=4 << 20, show_default=True, help="Largest body in bytes.")
@tls_options
@setting("--workers", type=click.IntRange(1, 128), default=1, show_default=True,
              help="Processes that take requests; --rate is for each of them.")  # fmt: skip
@setting("--webhook-private", is_flag=True, help="Let webhooks have addresses inside this network, and http://.")
@setting("--pg-port", type=click.IntRange(1, 65535), help="Serve tables to clients of PostgreSQL on this port.")
@setting("--pg-host", default="", help="Address for --pg-port.  [default: that of --host]")
@setting("--pg-cert", type=click.Path(path_type=Path, dir_okay=False), help="TLS certificate for --pg-port, PEM.")
@setting("--pg-key", type=click.Path(path_type=Path, dir_okay=False), help="Key of --pg-cert, PEM.")
@setting("--pg-insecure", is_flag=True, help="Take tokens in the clear from other machines on --pg-port.")
@sign_in_options
@click.pass_obj
def serve(
    run: Callable[..., None] | None, data: Path | None, database: str, host: str, port: int, public_url: str,
    trusted_proxies: str, rate: float,
    max_body: int, tls_cert: Path | None, tls_key: Path | None, segments: Path | None, lake: str, workers: int,
    pg_port: int | None, pg_host: str, pg_cert: Path | None, pg_key: Path | None,
    pg_insecure: bool, webhook_private: bool, sign_in: Any,
) -> None:  # fmt: skip
    """Collect reports over HTTP and answer with error bars. SIGTERM finishes what was acknowledged.

    The first admin token is printed at the first start, unless TACIT_ADMIN_TOKEN_FILE names a file that holds it, or
    TACIT_ADMIN_TOKEN is it. `tacit token` makes, lists and revokes tokens on this machine.
    """
    if (data is None) == (not database):
        raise click.UsageError("give either a folder with --data or a PostgreSQL address with --database")
    if pg_port is None and (pg_host or pg_cert or pg_key or pg_insecure):
        raise click.UsageError("--pg-host, --pg-cert, --pg-key and --pg-insecure go with --pg-port")
    from tacit.core.extras import need

    need("collector", *(["postgres"] if database else []), *(["analytics"] if pg_port or lake else []))
    from tacit.collector import server
    from tacit.collector import workers as crew
    from tacit.collector.pg.listen import PgSettings
    from tacit.dashboard import routes
    from tacit.hosting.limits import Limits
    from tacit.hosting.tls import TlsFiles

    # A burst of ten seconds' worth of requests is allowed before the rate limit applies.
    limits = Limits(requests_per_second=rate, burst=max(1, int(10 * rate)), body_bytes=max_body)
    pg = None if pg_port is None else PgSettings(pg_port, pg_host or host, pg_cert, pg_key, pg_insecure)
    token = read_variable("TACIT_ADMIN_TOKEN")
    settings = server.Settings(
        data, database, host, port, public_url, trusted_proxies, limits, segments=segments, lake=lake, pg=pg,
        admin_token=token, metrics_token=read_variable("TACIT_METRICS_TOKEN"), tls=TlsFiles.given(tls_cert, tls_key),
        workers=workers, webhook_private=webhook_private,
    )  # fmt: skip
    # The context object is what serves, where a caller of the command brings its own; nobody at a shell does.
    (run or crew.serve)(settings, click.echo, partial(routes, public_url=settings.public_url, sign_in=sign_in))
