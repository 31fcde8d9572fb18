"""`tacit shuffle verify`: a transcript checked offline, and what that proves, in plain words."""

import json
from typing import TYPE_CHECKING, Any, cast

import click

from tacit.cli.output import print_json, print_table
from tacit.cli.shuffled.sessions import claims

if TYPE_CHECKING:
    from tacit.shuffle.protocol.transcript import Transcript


def show_transcript(content: bytes, slot: str, as_json: bool) -> bool:
    """Check a transcript as it was published, and a slot if one is named; whether everything is as it must be."""
    from tacit.errors import TacitError

    try:
        found = checked_transcript(content, slot)
    except TacitError as error:
        if as_json:
            print_json({"valid": False, "reason": str(error)})
        else:
            click.echo(f"NOT VALID: {error}", err=True)
        return False
    print_json({"valid": True} | found) if as_json else _print(found)
    return True


def checked_transcript(content: bytes, slot: str = "") -> dict[str, Any]:
    """Verify document, session, certificate and transcript; ProtocolViolation or InvalidSpec names what is wrong."""
    from tacit.shuffle.protocol.session import SignedSession
    from tacit.shuffle.protocol.transcript import Transcript, verify
    from tacit.wire.document import Collection
    from tacit.wire.sessions import check_session, pinned_keys, terms_of

    fields = _fields(content)
    collection = Collection.from_json(fields["document"])
    agreed = check_session(collection, fields["session"])
    transcript = Transcript.from_json(fields["transcript"])
    pinned = pinned_keys(terms_of(collection))
    result = verify(transcript, SignedSession.from_json(fields["session"]), pinned)
    receipt = [_found(transcript, slot)] if slot else []
    certificate, terms = agreed.certificate, terms_of(collection)
    again = "the certificate was computed again, and its claims hold"
    return {
        "collection": collection.id,
        "session": transcript.session,
        "root": transcript.root,
        "parties": {name: key.hex() for name, key in pinned.items()},
        "operators": [party.name for party in terms.parties],
        "uploads": transcript.roster["n"],
        "rows": transcript.rows,
        "epsilon": dict(zip(("collector", "others", "local"), certificate.triple, strict=True)),
        "delta": certificate.delta,
        "checked": [*result.checked, again, *receipt],
        "proves": list(result.proves),
        "does_not_prove": list(result.does_not_prove),
    }


def _found(transcript: "Transcript", slot: str) -> str:
    from tacit.errors import ProtocolViolation
    from tacit.shuffle.protocol.transcript import check_receipt

    if check_receipt(transcript, {"session": transcript.session, "slot": slot}) is None:
        raise ProtocolViolation(
            f"slot {slot[:32]}: its report is not one of the {transcript.roster['n']} that took part"
        )
    return f"the report with slot {slot} took part"


def _fields(content: bytes) -> dict[str, Any]:
    from tacit.errors import ProtocolViolation

    try:
        value: Any = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict) or set(cast("dict[str, Any]", value)) != {"document", "session", "transcript"}:
        raise ProtocolViolation("transcript: the file must be JSON with document, session and transcript")
    return cast("dict[str, Any]", value)


def _print(found: dict[str, Any]) -> None:
    click.echo(f"collection {found['collection']}")
    click.echo(f"session    {found['session']}")
    click.echo(f"root       {found['root']}")
    for name, key in found["parties"].items():
        click.echo(f"{name:<10} {key}")
    for title, name in (("Checked", "checked"), ("This proves", "proves"), ("It does not prove", "does_not_prove")):
        click.echo(f"\n{title}:")
        for line in found[name]:
            click.echo(f"- {line}")
    click.echo("\nCompare the collection and the keys with those that you were given.\n")
    print_table(["against", "epsilon", "delta"], claims(found["epsilon"], found["delta"]))
