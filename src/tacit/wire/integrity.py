"""The field `integrity` of a document: whether reports are kept after they were counted, to look for forged ones."""

from dataclasses import dataclass
from typing import Any, Self

from tacit.errors import InvalidSpec
from tacit.wire.fields import stated_fields

UNTIL_CLOSED = "until_closed"


@dataclass(frozen=True)
class IntegrityTerms:
    """How long reports are kept: until the collection is closed, in no order and without batch ids."""

    reports: str = UNTIL_CLOSED

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """Read `document.integrity`."""
        given = stated_fields(value, "document.integrity", ("reports",))
        if given["reports"] != UNTIL_CLOSED:
            raise InvalidSpec(f'document.integrity.reports must be "{UNTIL_CLOSED}"')
        return cls(given["reports"])

    def to_json(self) -> dict[str, Any]:
        """The wire form."""
        return {"reports": self.reports}


_EXCLUDED = {
    "shuffle": "fakes of shufflers are no reports of anybody",
    "windows": "windows are counted one by one",
    "plan": "rounds of a plan are counted one by one",
    "rows": "reports with rows are kept anyway",
}


def check_kept(document: Any) -> None:
    """Refuse to keep reports where they are not looked at; `document` is a `Collection`."""
    if document.integrity is None:
        return
    for name, why in _EXCLUDED.items():
        if getattr(document, name) is not None:
            raise InvalidSpec(f"document.{name} must be null where reports are kept for integrity: {why}")
