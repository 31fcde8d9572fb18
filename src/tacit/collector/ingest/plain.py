"""The common form of an upload: one block of reports in one piece, as browsers send it.

Nearly all that is known of such a body is known from its length and its collection, so that a batch is cut out of it
and not parsed. Its reports are validated later, together with those of other requests.
"""

from collections.abc import Mapping

from tacit.collector.collections.active import Active
from tacit.collector.ports import NewBatch
from tacit.wire.batch import MAGIC, invitation_hash

# Layout of a binary batch of one block: magic, collection id (32 bytes), batch id (16), member (4), count (4), reports.
_ID = len(MAGIC) + 32
_BLOCK = _ID + 16
_PAYLOAD = _BLOCK + 8
_NONE: Mapping[str, int] = {}
_ONE = (1).to_bytes(4, "little")


class PlainForm:
    """What all bodies of one length have in common that hold one block for one collection."""

    __slots__ = ("_begin", "_collection", "_sampled", "_spends", "_told", "count")

    def __init__(self, active: Active, count: int, spends: bytes | None) -> None:
        """Bodies of so many reports, which spend an invitation or none."""
        self._collection, self._begin, self._sampled = active.id, active.head, active.sampled
        # The count must be exactly what the length of the body implies.
        self.count, self._spends, self._told = count, spends, bytes(4) + count.to_bytes(4, "little")

    def batch(self, data: bytes, start: int) -> NewBatch | None:
        """The batch of a body that begins at `start` and ends with the data; its reports are not validated.

        None for everything else, which `Ingest.judge` decodes carefully, or refuses with an explanation.
        """
        block, payload = start + _BLOCK, start + _PAYLOAD
        if not data.startswith(self._begin, start):
            return None
        if not self._sampled:
            if data[block:payload] != self._told:
                return None
            reports = data[payload:]
        elif data[block + 4 : payload] == _ONE:
            # A device sends one report, and in the store a report begins with its member. All are equally wide.
            reports = data[block : block + 4] + data[payload:]
        else:
            return None
        return NewBatch(self._collection, data[start + _ID : block], reports, self.count, _NONE, self._spends)


def plain_form(active: Active, length: int, invitation: str = "") -> PlainForm | None:
    """The form of bodies of a length; None if none of them can be in the common form."""
    count, rest = divmod(length - _PAYLOAD, active.widths[0])
    if not active.plain or rest or not 0 < count < 1 << 32 or (active.sampled and count != 1):
        return None
    if not active.collection.invitations:
        return PlainForm(active, count, None)
    # A token's signature has to be checked, which `Ingest.judge` does.
    if active.collection.tokens is not None:
        return None
    return PlainForm(active, count, invitation_hash(invitation)) if invitation and count == 1 else None


def plain_batch(active: Active, body: bytes, invitation: str = "") -> NewBatch | None:
    """The batch of one body; None if it is not in the common form."""
    form = plain_form(active, len(body), invitation)
    return None if form is None else form.batch(body, 0)
