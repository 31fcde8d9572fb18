"""Every law over every kind of the catalogue."""

import pytest

from tacit.catalog import CATALOG
from tacit.testing.examples import example
from tacit.testing.laws import EXEMPT, LAWS

KINDS = [kind.kind for kind in CATALOG]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", KINDS)
def test_law(kind: str, law: str) -> None:
    if (kind, law) in EXEMPT:
        pytest.skip(EXEMPT[kind, law])
    LAWS[law](example(kind, "1.5"))


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1", "4", "16", "32"])
@pytest.mark.parametrize("kind", KINDS)
def test_privacy_holds_at_every_epsilon(kind: str, epsilon: str) -> None:
    LAWS["privacy"](example(kind, epsilon))


def test_every_exemption_names_a_kind_and_a_law() -> None:
    for kind, law in EXEMPT:
        assert kind in KINDS
        assert law in LAWS
