"""The golden vectors of domains, as every other implementation reads them."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from tacit import errors
from tacit.device.domains.product import DOMAINS, domain_of

ROOT = Path(__file__).parents[2]
VECTORS: dict[str, list[dict[str, Any]]] = json.loads(
    (ROOT / "spec" / "vectors" / "domains.json").read_text(encoding="utf-8")
)


def as_text(index: Any) -> str:
    return ",".join(map(str, index)) if isinstance(index, tuple) else str(index)


def as_lists(label: Any) -> Any:
    return [as_lists(item) for item in label] if isinstance(label, tuple) else label


@pytest.mark.parametrize("case", VECTORS["good"], ids=lambda case: case["spec"]["kind"])
def test_answers_have_the_published_indices(case: dict[str, Any]) -> None:
    domain = domain_of(case["spec"])
    assert domain.spec() == case["spec"]
    assert domain.digest == case["digest"]
    assert str(domain.size) == case["size"]
    assert [as_text(domain.encode(value)) for value, _ in case["cases"]] == [index for _, index in case["cases"]]
    if case["labels"] is not None:
        assert as_lists(tuple(domain.all_labels())) == case["labels"]


def test_refused_values_get_the_published_message() -> None:
    for case in VECTORS["bad_values"]:
        with pytest.raises(getattr(errors, case["error"])) as caught:
            domain_of(case["spec"]).encode(case["value"])
        assert str(caught.value) == case["message"]


def test_refused_specs_get_the_published_message() -> None:
    for case in VECTORS["bad_specs"]:
        with pytest.raises(getattr(errors, case["error"])) as caught:
            domain_of(case["spec"])
        assert str(caught.value) == case["message"]


def test_every_kind_has_good_and_bad_vectors() -> None:
    kinds = {domain.kind for domain in DOMAINS}
    assert {case["spec"]["kind"] for case in VECTORS["good"]} == kinds
    assert {case["spec"]["kind"] for case in VECTORS["bad_values"]} == kinds


def test_the_file_is_what_the_script_makes() -> None:
    script = runpy.run_path(str(ROOT / "tools" / "make_domain_vectors.py"))
    assert script["make"]() == script["TARGET"].read_text(encoding="utf-8")
