"""What a report file says about itself: a JSON object in the key-value metadata of its Parquet footer.

layout          1
document        the collection document; or, for reports that belong to no collection,
spec            the mechanism, with `domain` beside it where values have labels
digest          the id of the collection, or the digest of the mechanism
reports         number of rows
batches         how many batches of reports are in it, and
batches_digest  the sum of the SHA-256 of their ids: it tells whether files together hold a set of batches, and
                says of no row which batch it came in
nonce           something random, where the name of a file must be its own
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, cast

import numpy as np

from tacit.catalog import CATALOG, parse
from tacit.core.mechanism import Mechanism
from tacit.core.tally import same_mechanism
from tacit.device.numbers.canonical import canonical, digest
from tacit.errors import InvalidSpec, ReportRejected, SpecMismatch
from tacit.kernels import sha256_rows
from tacit.wire.document import Collection

LAYOUT = 1
KEY = b"tacit"
"""The key of the metadata that holds the JSON object."""

_RING = 1 << 256
_MANY = 8
"""From so many ids of one length on they are hashed side by side."""

Catalog = tuple[type[Mechanism], ...]


@dataclass(frozen=True)
class BatchSet:
    """How many batches, and a digest of their ids that does not depend on their order and that adds."""

    count: int = 0
    sum: int = 0

    @classmethod
    def of(cls, ids: Iterable[bytes]) -> "BatchSet":
        """The set of some batch ids."""
        ids = list(ids)
        rows = b"".join(ids)
        if len(ids) < _MANY or len(rows) != len(ids) * len(ids[0]):
            return cls(len(ids), sum([int.from_bytes(sha256(batch).digest(), "big") for batch in ids]) % _RING)
        hashes = sha256_rows(None, np.frombuffer(rows, np.uint8).reshape(len(ids), -1))
        # Words of 32 bits, most significant first, in sums of 64 bits.
        words = hashes.view(">u4").sum(0, np.uint64).tolist()
        return cls(len(ids), sum([word << 224 - 32 * i for i, word in enumerate(words)]) % _RING)

    def __add__(self, other: "BatchSet") -> "BatchSet":
        """Both sets together, if no batch is in both."""
        return BatchSet(self.count + other.count, (self.sum + other.sum) % _RING)

    @property
    def bytes(self) -> bytes:
        """The digest."""
        return self.sum.to_bytes(32, "big")

    @property
    def hex(self) -> str:
        """The digest, in hexadecimal."""
        return self.bytes.hex()


@dataclass(frozen=True)
class About:
    """The mechanism of a file's reports, and the collection that they belong to if there is one."""

    mechanism: Mechanism
    document: dict[str, Any] | None = None
    domain: dict[str, Any] | None = None
    reports: int | None = None
    """None where the writer did not state it; the footer's own count of rows is the truth."""
    batches: BatchSet = BatchSet()
    nonce: str = ""
    """Something random that makes the name of a file its own, where files are named by their checksum."""

    @property
    def digest(self) -> str:
        """The id of the collection, or the digest of the mechanism where there is none."""
        return self.mechanism.digest if self.document is None else digest(self.document)

    def to_json(self) -> dict[str, Any]:
        """The JSON object."""
        of = {"spec": self.mechanism.spec()} if self.document is None else {"document": self.document}
        labels = {} if self.domain is None else {"domain": self.domain}
        counted = {} if self.reports is None else {"reports": self.reports}
        batches = {"batches": self.batches.count, "batches_digest": self.batches.hex}
        nonce = {"nonce": self.nonce} if self.nonce else {}
        return {"layout": LAYOUT, "digest": self.digest} | of | labels | counted | batches | nonce

    def to_metadata(self, reports: int) -> dict[bytes, bytes]:
        """The key-value metadata of a file with so many reports: canonical, so that equal files are equal bytes."""
        return {KEY: canonical(replace(self, reports=reports).to_json())}


def about_collection(collection: Collection) -> About:
    """What the files of a collection say, without reports."""
    assert isinstance(collection.mechanism, Mechanism)
    return About(collection.mechanism, collection.to_json())


def about_of(metadata: Mapping[bytes, bytes] | None, name: str, catalog: Catalog = CATALOG) -> About | None:
    """Read the key-value metadata of a file called `name`; None where it does not say what its reports are."""
    data = (metadata or {}).get(KEY)
    return None if data is None else read_about(data, name, catalog)


def read_about(data: bytes, name: str, catalog: Catalog = CATALOG) -> About:
    """Read the JSON object of a file; ReportRejected if it is damaged, and InvalidSpec if it states no mechanism."""
    fields = object_of(data, name)
    of = [key for key in ("document", "spec") if key in fields]
    if len(of) != 1:
        raise ReportRejected(f'{name}: the metadata must have either "document" or "spec"')
    document = cast("dict[str, Any] | None", fields.get("document"))
    try:
        device = Collection.from_json(document, catalog).mechanism if document else parse(fields["spec"], catalog)
    except InvalidSpec as error:
        raise InvalidSpec(f"{name}: {error}") from None
    about = About(
        cast("Mechanism", device), document, fields.get("domain"), fields.get("reports"), _batches(fields, name)
    )
    # Optional, because a digest takes canonical JSON; where it is stated it must be right.
    if fields.get("digest", about.digest) != about.digest:
        raise ReportRejected(f"{name}: the metadata's digest does not match its {of[0]}; the file was altered")
    return about


def object_of(data: bytes, name: str) -> dict[str, Any]:
    """The JSON object of this version of the layout."""
    try:
        value = json.loads(data)
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    except (ValueError, RecursionError):
        fields = {}
    if type(fields.get("layout")) is not int:
        raise ReportRejected(f"{name}: the metadata is damaged; it must be a JSON object with the layout's version")
    if fields["layout"] != LAYOUT:
        raise ReportRejected(f"{name}: layout version is {fields['layout']}, must be {LAYOUT}; update tacit to read it")
    return fields


def _batches(fields: dict[str, Any], name: str) -> BatchSet:
    count, text = fields.get("batches", 0), fields.get("batches_digest", "0" * 64)
    try:
        if type(count) is not int or count < 0 or len(bytes.fromhex(text)) != 32:
            raise ValueError
    except (TypeError, ValueError):
        raise ReportRejected(f"{name}: the metadata's batches must be a count and 64 hexadecimal digits") from None
    return BatchSet(count, int(text, 16))


def stated_batches(data: bytes) -> BatchSet:
    """The batches that the metadata of a file states, without reading the rest of it."""
    return _batches(object_of(data, "file"), "file")


def same_reports(here: About, there: About, name: str) -> None:
    """Refuse to count reports of two collections together, naming the file and the first field that differs."""
    try:
        same_mechanism(here.mechanism, there.mechanism, action="count these files together")
    except SpecMismatch as error:
        raise SpecMismatch(f"{name}: {error}") from None
    a, b = here.document, there.document
    if (a is None) != (b is None):
        raise SpecMismatch(
            f"{name}: cannot count these files together: document is stated in one and not in the other; "
            "count a collection's files and other reports apart"
        )
    # Mechanisms agree, but a title, a cohort or a retention may differ: those are two promises to respondents.
    differing = _differing(a or {}, b or {})
    if differing:
        raise SpecMismatch(
            f"{name}: cannot count these files together: they are of two collections whose documents differ in "
            f"{differing} (ids {here.digest[:6]}…, {there.digest[:6]}…)"
        )
    if here.domain != there.domain:
        raise SpecMismatch(f"{name}: cannot count these files together: their labels (domain) differ")


def _differing(a: dict[str, Any], b: dict[str, Any]) -> str:
    """The first field in which two documents differ, such as about.title; empty if they are equal."""
    for key in sorted({**a, **b}):
        here, there = a.get(key), b.get(key)
        if isinstance(here, dict) and isinstance(there, dict):
            within = _differing(cast("dict[str, Any]", here), cast("dict[str, Any]", there))
            if within:
                return f"{key}.{within}"
        elif here != there:
            return key
    return ""
