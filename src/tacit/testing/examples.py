"""One small and one ordinary instance of every kind, for laws, audits and documentation."""

from typing import Any

from tacit.catalog import CATALOG
from tacit.core.mechanism import Mechanism

_FIELDS: dict[str, dict[str, Any]] = {
    "cbr": {"size": 5, "family": "singer", "order": 2, "dimension": 3},
    "brappor": {"size": 5, "zero": "0.25", "one": "0.75"},
    "rappor": {"bits": 6, "cohorts": 2, "key": 7},
    "cms": {"size": 5, "rows": 2, "width": 4, "key": 7},
    "hcms": {"size": 5, "rows": 2, "width": 4, "key": 7},
    "flh": {"size": 5, "pool": 16, "key": 7},
    "rmp": {"size": 5, "pool": 16, "key": 7},
}
"""Fields of a tiny instance, where `size=5` alone would not do."""


def example(kind: str, epsilon: Any) -> Mechanism:
    """A tiny instance of a kind: small enough to enumerate, large enough to be itself."""
    cls: Any = next(entry for entry in CATALOG if entry.kind == kind)
    return cls(epsilon=epsilon, **_FIELDS.get(kind, {"size": 5}))
