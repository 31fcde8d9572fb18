"""Which windows a device takes part in, and the names of its batches: both from one secret, under labels of their own.

The slot is drawn once per document and never again. A slot that is drawn anew for every block of windows may fall on
the last window of one block and the first of the next: two reports within one run (docs/maths/time.md).
"""

import hmac

from tacit.device.numbers.hashing import labelled

_SLOT, _BATCH = b"LDP-SLOT-1", b"LDP-BATCH-1"


def slot_of(secret: bytes, document: bytes, per: int) -> int:
    """Return the slot of a device in a document: it reports on windows k with k mod per = slot.

    >>> slot_of(bytes(range(32)), bytes(32), 365)
    16
    """
    block = hmac.digest(secret, labelled(_SLOT, document), "sha256")
    # The same uniform(m) = (word m) >> 64 as coins have; the word is read as the digest is printed.
    return int.from_bytes(block[:8], "big") * per >> 64


def window_batch_id(secret: bytes, document: bytes, window: int) -> bytes:
    """Return the 16 bytes that name the batch of a window.

    They follow from secret and window, so that a crash between drawing and recording cannot be counted twice. To those
    who lack the secret they are random, and those of one device cannot be linked.
    """
    message = labelled(_BATCH, document, window.to_bytes(4, "big"))
    return hmac.digest(secret, message, "sha256")[:16]
