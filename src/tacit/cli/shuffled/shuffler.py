"""`tacit shuffler`: runs a shuffler, shows its key, and how its sessions stand."""

from pathlib import Path
from typing import Any

import click

from tacit.cli.options.settings import setting
from tacit.cli.output import print_json, print_table
from tacit.cli.shuffled.tls import ca_option, tls_options
from tacit.errors import InvalidSpec

_MODES = ("relay", "ss", "osh", "osh-z", "peos-dgk")
_FOLDER = click.Path(path_type=Path, file_okay=False)
_OLD_FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.group()
def shuffler() -> None:
    """Mix reports of respondents for a collector of another organisation, without seeing any of them."""


@shuffler.command()
@setting("--data", type=_FOLDER, required=True, help="Folder of the keys and the database; keep it private.")
@setting("--name", required=True, help="What this shuffler is called, such as the name of the organisation.")
@setting("--collector", "collectors", multiple=True, metavar="KEY",
              help="Identity of a collector to work for; may be given several times.")  # fmt: skip
@setting("--any-collector", is_flag=True, help="Work for whoever asks: for tests and demonstrations.")
@setting("--mode", "modes", multiple=True, type=click.Choice(_MODES), help="Offer this mode.  [default: all]")
@setting("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@setting("--port", type=click.IntRange(1, 65535), default=8100, show_default=True, help="Port to listen on.")
@setting("--public-url", default="", help="Address that others use, such as https://shuffler.example.")
@setting("--trusted-proxies", default="", help="Addresses whose X-Forwarded-For is believed, comma-separated.")
@setting("--rate", type=click.FloatRange(0), default=500.0, show_default=True,
              help="Uploads per second of one address; 0 for no limit.")  # fmt: skip
@setting("--relay-rate", type=click.FloatRange(0), default=0.0, show_default=True,
              help="Uploads per second through one relay of a session; 0 for no limit.")  # fmt: skip
@setting("--relay-address", "relay_addresses", multiple=True, metavar="ADDRESS",
              help="Address that a relay sends from, if its name has another; may be given several times.")  # fmt: skip
@setting("--max-body", type=click.IntRange(1 << 16), default=512 << 20, show_default=True,
              help="Largest vector of rows, in bytes.")  # fmt: skip
@tls_options
@ca_option
def serve(
    data: Path, name: str, collectors: tuple[str, ...], any_collector: bool, modes: tuple[str, ...], host: str,
    port: int, public_url: str, trusted_proxies: str, rate: float, relay_rate: float, relay_addresses: tuple[str, ...],
    max_body: int, tls_cert: Path | None, tls_key: Path | None, ca_file: Path | None,
) -> None:  # fmt: skip
    """Shuffle until stopped. SIGTERM finishes the step under way; a crash at any time loses nothing."""
    if not collectors and not any_collector:
        raise click.UsageError("name the collectors to work for with --collector KEY, or give --any-collector")
    for key in collectors:
        if len(key) != 64 or set(key) - set("0123456789abcdef"):
            raise InvalidSpec("shuffler: --collector is an identity of 64 lower-case hexadecimal digits")
    from tacit.core.extras import need

    need("collector", "shuffle")
    from tacit.hosting.limits import Limits
    from tacit.hosting.tls import TlsFiles
    from tacit.shuffler.joining import Offer
    from tacit.shuffler.server import ShufflerSettings, serve_shuffler

    limits = Limits(body_bytes=1 << 20, requests_per_second=rate, burst=max(1, int(10 * rate)))
    offer = Offer(frozenset(collectors), any_collector, modes or _MODES, public_url, max_body)
    settings = ShufflerSettings(
        data, name, offer, host, port, public_url, trusted_proxies, limits, relay_rate, relay_addresses,
        TlsFiles.given(tls_cert, tls_key), ca_file,
    )  # fmt: skip
    serve_shuffler(settings, click.echo)


@shuffler.command()
@setting("--data", type=_FOLDER, required=True, help="Folder of the shuffler; it is made if there is none.")
@click.option("--rotate", is_flag=True, help="Draw a new key for sealing; the one before stays valid.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def key(data: Path, rotate: bool, as_json: bool) -> None:
    """Show the identity, which the collector's operator pins, and the present key for sealing."""
    from tacit.core.extras import need

    need("collector", "shuffle")
    from tacit.shuffler.party_store import PartyStore

    store = PartyStore(data)
    try:
        seal_key = store.rotate_seal_key() if rotate else store.seal_key
        found = {"identity": store.identity.public.hex(), "seal_key": seal_key.public.hex()}
    finally:
        store.close()
    if as_json:
        print_json(found)
        return
    click.echo(f"identity  {found['identity']}")
    click.echo(f"seal key  {found['seal_key']}")


@shuffler.command()
@setting("--data", type=_OLD_FOLDER, required=True, help="Folder of the shuffler.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(data: Path, as_json: bool) -> None:
    """Show all sessions: their states, numbers of uploads and refusals, and how they ended."""
    from tacit.core.extras import need

    need("collector", "shuffle")
    from tacit.shuffler.party_store import PartyStore

    store = PartyStore(data)
    try:
        rows: list[dict[str, Any]] = [
            {
                "session": record.id,
                "mode": record.session.mode,
                "state": record.state,
                "phase": str(record.progress.get("phase", "")),
                "uploads": record.uploads,
                "counters": store.counters(record.id),
                "reason": str(record.ending.get("reason", "")),
                "blames": str(record.ending.get("blames", "")),
                "evidence": record.ending.get("evidence", []),
            }
            for record in store.sessions()
        ]
    finally:
        store.close()
    if as_json:
        print_json(rows)
        return
    header = ["session", "mode", "state", "uploads", "refused", "ending"]
    print_table(header, [_row(row) for row in rows], f"{len(rows)} sessions")


@shuffler.command()
@click.argument("session")
@setting("--data", type=_OLD_FOLDER, required=True, help="Folder of the shuffler.")
@click.option("--reason", required=True, help="Why; all other parties are told.")
def abort(session: str, data: Path, reason: str) -> None:
    """Give a session up, by its id or the beginning of it: erase all that is held of it, and tell the other parties."""
    from tacit.core.extras import need

    need("collector", "shuffle")
    from tacit.shuffler.driver import ShufflerDriver
    from tacit.shuffler.joining import Offer
    from tacit.shuffler.party_store import PartyStore
    from tacit.shuffler.post import Courier

    store = PartyStore(data)
    try:
        found = [record for record in store.sessions(only_live=True) if record.id.startswith(session)]
        if len(found) != 1:
            raise InvalidSpec(f"shuffler: {len(found)} sessions under way begin with {session[:64]!r}; name one")
        # Nothing is sent from here: the letters wait in the outbox for the server, whether it runs or starts later.
        driver = ShufflerDriver(store, Courier(store, is_idle=True), Offer())
        driver.abort(found[0].id, reason)
    finally:
        store.close()
    click.echo(f"session {found[0].id[:16]}: aborted and erased")


def _row(row: dict[str, Any]) -> list[str]:
    refused = sum(amount for reason, amount in row["counters"].items() if reason != "stored")
    state = f"{row['state']} {row['phase']}".strip()
    return [row["session"][:16], row["mode"], state, f"{row['uploads']:,}", f"{refused:,}", row["reason"]]
