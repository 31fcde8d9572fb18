"""How a session stands at a shuffler, as it tells respondents: signed, since they seal a report again for what it says.

Whoever answers at a shuffler's address, or is on the way to it, could say "aborted" after the reports were counted: the
same report in a second session, among other respondents, can be told from theirs.

    >>> from tacit.device.numbers.coins import ReplayCoins
    >>> identity = Identity.draw(ReplayCoins(b"identity"))
    >>> told = signed_status(identity, "00" * 32, ABORTED, had_sent=False)
    >>> says_aborted(told, "00" * 32, identity.public), says_aborted(told, "11" * 32, identity.public)
    (True, False)
"""

from collections.abc import Mapping
from typing import Any

from tacit.shuffle.crypto.signing import Identity, is_signed

STATUS_LABEL = "status"
ABORTED = "ABORTED"


def signed_status(identity: Identity, session: str, state: str, *, had_sent: bool) -> dict[str, Any]:
    """What a shuffler says of a session; `had_sent` if its last rows had left it before it gave up."""
    statement = _statement(session, state, had_sent)
    return {**statement, "signature": identity.sign(STATUS_LABEL, statement)}


def says_aborted(reply: Mapping[str, Any] | None, session: str, identity: bytes) -> bool:
    """Whether the holder of an identity says that it gave the session up before anything could reach the collector.

    The session is the one that was asked about, and the identity the pinned one, whatever else the reply has. An abort
    is final, so that a statement may be old.
    """
    # A shuffler that had sent its last rows cannot know whether the collector put them together before it gave up.
    signature = None if reply is None else reply.get("signature")
    statement = _statement(session, ABORTED, False)
    return isinstance(signature, str) and is_signed(identity, STATUS_LABEL, statement, signature)


def _statement(session: str, state: str, had_sent: bool) -> dict[str, Any]:
    return {"session": session, "state": state, "had_sent": had_sent}
