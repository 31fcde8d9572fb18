"""Tallies that were made elsewhere, such as on Spark: counted once, with everything that a collection promises.

A tally names its sources, the files that were counted into it. Their ids are kept like those of batches, for as long as
the collection keeps reports: a tally whose sources are all known counts as sent before, and one of which some are known
is refused, since no part of a tally can be left out.
"""

from hashlib import sha256
from io import BytesIO
from typing import Any

from tacit.collector.collections.active import Active
from tacit.collector.ports import CLOSED, DUPLICATE, OVERLAP, Store, StoredTally
from tacit.core.tally import same_mechanism
from tacit.errors import SpecMismatch
from tacit.hosting.problems import Problem
from tacit.wire.files import Origin, read_origin, read_tally, sources_of
from tacit.wire.tallies import dump_tally

MEDIA_TYPE = "application/vnd.tacit.tally"
SHARD = "import-"
"""How the shards of imported tallies begin; no process folds into these."""


def import_tally(store: Store, active: Active, data: bytes) -> dict[str, Any]:
    """Add the tally of a `.tally` file to a collection; says how many reports it has, and whether they are new."""
    _refuse_unfit(active)
    tally, _ = read_tally(BytesIO(data), "tally")
    try:
        same_mechanism(active.mechanism, tally.mechanism, action="import this tally")
    except SpecMismatch as error:
        raise Problem("conflict", str(error)) from None
    _refuse_other(active, read_origin(data, "tally"))
    if tally.is_weighted:
        raise Problem("conflict", "the tally is weighted, and reports of a collection are not")
    sources = [_id(source) for source in sources_of(data, "tally")]
    shard = SHARD + sha256(b"".join(sorted(sources))).hexdigest()[:32]
    outcome = store.add_tally(active.id, StoredTally(shard, tally.n, dump_tally(tally)), sources)
    if outcome == CLOSED:
        raise Problem("collection_closed", "the collection takes no more reports")
    if outcome == OVERLAP:
        raise Problem(
            "conflict",
            "some of the files in this tally were imported before and others were not; tally only the new files",
        )
    return {"reports": tally.n, "sources": len(sources), "duplicate": outcome == DUPLICATE}


def _refuse_other(active: Active, origin: Origin | None) -> None:
    """Two collections may ask by one mechanism; the files of a collection say which one they are of."""
    if origin is not None and origin.collection not in ("", active.id):
        raise Problem(
            "conflict",
            f"the tally is of files of collection {origin.collection[:6]}…, not of this one; import it there",
        )


def _id(source: str) -> bytes:
    """The id that is kept of a source; a prefix sets it apart from the ids that clients choose for batches."""
    return sha256(b"import:" + source.encode()).digest()[:16]


def _refuse_unfit(active: Active) -> None:
    """Collections whose promises a tally would bypass."""
    document = active.collection
    if document.rows is not None:
        raise Problem("conflict", "reports of this collection come with rows, which a tally does not have; send rows")
    if document.shuffle is not None:
        raise Problem("conflict", "reports of this collection are shuffled, and are counted by its sessions alone")
    if document.windows is not None:
        raise Problem("conflict", "reports of this collection belong to windows, which a tally does not name")
    if document.invitations:
        raise Problem("conflict", "reports of this collection need invitations, which a tally cannot spend")
