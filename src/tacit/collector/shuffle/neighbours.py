"""What the collector asks shufflers for: who they are, their signatures, and their counts."""

import json
from collections.abc import Mapping
from typing import Any, cast

from tacit.client.transport import JSON_TYPE, Patience, Reply, Transport, Unreachable
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.signing import is_signed
from tacit.shuffle.protocol.session import SignedSession
from tacit.shuffler.http import IDENTITY_LABEL
from tacit.shuffler.letters import PROTOCOL, check_protocol

_ONCE = Patience(attempts=1, timeout_seconds=15.0)
"""Nothing is tried again here: the driver comes back by itself."""


class SessionRefused(Exception):
    """A shuffler does not take part in a session; the message is its own."""


class Neighbours:
    """Calls to shufflers over HTTP."""

    def __init__(self, transport: Transport | None = None) -> None:
        """Use a transport; by default one that tries once."""
        self._transport = transport or Transport(_ONCE)

    def seal_key(self, url: str, identity: str, mode: str) -> str:
        """The key that respondents seal for; ProtocolViolation unless it is of the shuffler that the document names."""
        shown = dict(self._json(f"{url}/identity.json", f"the identity of {url}"))
        signature = str(shown.pop("signature", ""))
        # The seal key is believed for this signature alone: whoever answers at the address could name a key of theirs.
        if not is_signed(bytes.fromhex(identity), IDENTITY_LABEL, shown, signature):
            raise ProtocolViolation(f"{url}: it has another identity than the document names; ask its operator")
        check_protocol(url, shown.get("protocol", 1))
        if mode not in (shown.get("modes") or ()):
            raise ProtocolViolation(f"{url}: it does not offer mode {mode}; ask its operator")
        return str(shown.get("seal_key", ""))

    def sign(self, url: str, signed: SignedSession) -> str:
        """Show a session to a shuffler and return its signature; SessionRefused with its reason."""
        document = {**signed.to_json(), "protocol": PROTOCOL}
        reply = self._transport.post(f"{url}/sessions", json.dumps(document).encode(), JSON_TYPE)
        if 200 <= reply.status < 300:
            return str(_fields(reply).get("signature", ""))
        # What a shuffler refuses is said to the operator in its own words; everything else is a matter of time.
        if 400 <= reply.status < 500:
            raise SessionRefused(f"{url}: {_detail(reply)}")
        raise Unreachable(f"{url} cannot be reached ({reply.status or 'no reply'})")

    def uploads(self, url: str, session: str) -> int | None:
        """How many uploads a shuffler holds; None if it does not say."""
        try:
            shown = self._json(f"{url}/s/{session}/status", "the status of a session")
        except Unreachable:
            return None
        count = shown.get("uploads")
        return count if type(count) is int else None

    def _json(self, url: str, what: str) -> Mapping[str, Any]:
        value = self._transport.fetch_json(url, what)
        if not isinstance(value, dict):
            raise Unreachable(f"{what} is not a JSON object")
        return cast("dict[str, Any]", value)


def _fields(reply: Reply) -> dict[str, Any]:
    value = reply.json()
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _detail(reply: Reply) -> str:
    fields = _fields(reply)
    return str(fields.get("detail") or fields.get("title") or f"status {reply.status}")[:300]
