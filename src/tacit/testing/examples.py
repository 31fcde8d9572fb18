"""Tiny instances of every kind, small enough to enumerate, for laws, audits and documentation."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tacit.catalog import CATALOG
from tacit.core.compose import Questions
from tacit.core.mechanism import Mechanism
from tacit.device.numbers.budget import Share
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.oracles.sets import Padded
from tacit.oracles.unary import OUE

_FIELDS: dict[str, dict[str, Any]] = {
    "cbr": {"size": 5, "family": "singer", "order": 2, "dimension": 3},
    "brappor": {"size": 5, "zero": "0.25", "one": "0.75"},
    "she": {"size": 3, "grid": 2, "bound": 1},
    "onebit": {"top": 4},
    "dlap": {"top": 4},
    "dbitflip": {"size": 5, "sampled": 2},
    "tree_steps": {"fanout": 3, "levels": 2, "changes": 2},
    "rappor": {"bits": 6, "cohorts": 2, "key": 7},
    "cms": {"size": 5, "rows": 2, "width": 4, "key": 7},
    "hcms": {"size": 5, "rows": 2, "width": 4, "key": 7},
    "flh": {"size": 5, "pool": 16, "key": 7},
    "rmp": {"size": 5, "pool": 16, "key": 7},
}
"""Fields of a tiny instance, where `size=5` alone would not do."""


_COMPOSED: dict[str, Callable[[Any], dict[str, Any]]] = {
    "one_of": lambda epsilon: {
        "family": Questions(mechanisms=(GRR(size=3, epsilon=epsilon), OUE(size=4, epsilon=epsilon)))
    },
    "all_of": lambda epsilon: {
        "members": (GRR(size=3, epsilon=Share(epsilon, "1/2")), HRR(size=4, epsilon=Share(epsilon, "1/2")))
    },
    "padded": lambda epsilon: {
        "size": 4,
        "length": 2,
        "inner": Padded.amplified(epsilon=epsilon, size=4, length=2).inner,
    },
    "set_size": lambda epsilon: {"size": 4, "candidates": ((0,), (0, 1), (3,)), "inner": GRR(size=4, epsilon=epsilon)},
    "rounded": lambda epsilon: {"top": 2, "inner": GRR(size=4, epsilon=epsilon)},
    "memo": lambda epsilon: {"inner": {"kind": "grr", "size": 5, "epsilon": epsilon}, "most_values": 3},
    "layered": lambda epsilon: {
        "inner": {"kind": "grr", "size": 4, "epsilon": epsilon},
        "first": Share(epsilon, "1/2"),
        "most_values": 2,
    },
}
"""Fields of kinds that hold other mechanisms, for a given epsilon."""


def example(kind: str, epsilon: Any) -> Mechanism:
    """Return a tiny instance of a kind: small enough to enumerate, large enough to show all of its behaviour."""
    cls: Any = next(entry for entry in CATALOG if entry.kind == kind)
    make = _COMPOSED.get(kind)
    fields = _FIELDS.get(kind, {"size": 5}) if make is None else make(epsilon)
    return cls(epsilon=epsilon, **fields)


_FURTHER: dict[str, tuple[dict[str, Any], ...]] = {
    "memo": ({"kind": "oue", "size": 3}, {"kind": "onebit", "top": 4}, {"kind": "dbitflip", "size": 4, "sampled": 1}),
    "layered": ({"kind": "hrr", "size": 5, "skip_zero": True}, {"kind": "onebit", "top": 4}),
}
"""Inner mechanisms of more instances, for kinds whose guarantees depend on what they hold."""


def examples(kind: str, epsilon: Any) -> list[Mechanism]:
    """Return tiny instances of a kind, one for every set of guarantees that it can have."""
    first: Any = example(kind, epsilon)
    others = [inner | {"epsilon": epsilon} for inner in _FURTHER.get(kind, ())]
    return [first, *(replace(first, inner=inner, most_values=2, step=0) for inner in others)]
