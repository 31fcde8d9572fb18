"""`tacit relay`: passes sealed requests of respondents on to shufflers, who never learn from whom they came."""

from pathlib import Path

import click

from tacit.cli.options.settings import setting
from tacit.cli.shuffled.tls import ca_option, tls_options


@click.group()
def relay() -> None:
    """Hide the addresses of respondents from shufflers, without seeing what they send."""


@relay.command()
@setting("--to", "targets", multiple=True, required=True, metavar="URL",
              help="Address of a shuffler; several in the order of the session document.")  # fmt: skip
@setting("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@setting("--port", type=click.IntRange(1, 65535), default=8200, show_default=True, help="Port to listen on.")
@setting("--trusted-proxies", default="", help="Addresses whose X-Forwarded-For is believed, comma-separated.")
@setting("--rate", type=click.FloatRange(0), default=50.0, show_default=True,
              help="Requests per second of one address; 0 for no limit.")  # fmt: skip
@tls_options
@ca_option
def serve(
    targets: tuple[str, ...], host: str, port: int, trusted_proxies: str, rate: float, tls_cert: Path | None,
    tls_key: Path | None, ca_file: Path | None,
) -> None:  # fmt: skip
    """Relay until stopped: the k-th part of an upload goes to the k-th shuffler. Nothing is stored or logged."""
    from tacit.core.extras import need

    need("collector", "shuffle")
    from tacit.hosting.tls import TlsFiles
    from tacit.shuffler.relay import RelaySettings, serve_relay

    tls = TlsFiles.given(tls_cert, tls_key)
    serve_relay(RelaySettings(targets, host, port, rate, trusted_proxies, tls, ca_file), click.echo)
