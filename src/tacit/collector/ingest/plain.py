"""The common form of an upload: one block of reports in one piece, as browsers send it.

Nearly all that is known of such a body is known from its length and its collection, so that a batch is cut out of it
and not parsed. Its reports are validated later, together with those of other requests.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.collector.collections.active import Active
from tacit.collector.ports import NewBatch
from tacit.collector.store.singles import SingleBatches
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

    @property
    def is_single(self) -> bool:
        """Whether bodies have one report and spend nothing, so that many are taken apart together (`singles`)."""
        return self.count == 1 and self._spends is None

    def fits(self, data: bytes, start: int) -> bool:
        """Whether a body that begins at `start` and ends with the data is in the common form."""
        if not data.startswith(self._begin, start):
            return False
        if self._sampled:
            # A device sends one report, about the member that was drawn.
            return data.startswith(_ONE, start + _BLOCK + 4)
        return data.startswith(self._told, start + _BLOCK)

    def batch(self, data: bytes, start: int) -> NewBatch | None:
        """The batch of a body that begins at `start` and ends with the data; its reports are not validated.

        None for everything else, which `Ingest.judge` decodes carefully, or refuses with an explanation.
        """
        if not self.fits(data, start):
            return None
        block, payload = start + _BLOCK, start + _PAYLOAD
        reports = data[payload:]
        if self._sampled:
            # In the store a report begins with its member. All are equally wide.
            reports = data[block : block + 4] + reports
        return NewBatch(self._collection, data[start + _ID : block], reports, self.count, _NONE, self._spends)


def singles(active: Active, bodies: Sequence[bytes]) -> "tuple[SingleBatches, npt.NDArray[np.bool_]]":
    """The batches of bodies that fit a form of single reports, and which of their reports are valid."""
    n = len(bodies)
    rows: npt.NDArray[np.uint8] = np.frombuffer(b"".join(bodies), np.uint8).reshape(n, -1)
    named, reports = rows[:, _ID:_BLOCK].tobytes(), rows[:, _PAYLOAD:]
    if active.sampled:
        # As above, a report begins with its member.
        reports = np.concatenate((rows[:, _BLOCK : _BLOCK + 4], reports), axis=1)
    payload = reports.tobytes()
    size = _BLOCK - _ID
    batches = SingleBatches(active.id, [named[i : i + size] for i in range(0, n * size, size)], payload)
    judged: Any = active.mechanism.valid(np.frombuffer(payload, active.dtype))
    return batches, judged


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
