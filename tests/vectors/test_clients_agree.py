"""Both clients must agree on every document: what one answers and the other refuses is an attack on somebody."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.vectors.mutations import TERMS, VALUES, Mutator, documents

from tacit.errors import InvalidSpec
from tacit.wire.document import Collection

ROOT = Path(__file__).resolve().parents[2]


def verdict(text: str) -> str:
    """The id of a document, or the name of the error."""
    try:
        return Collection.from_text(text).id
    except InvalidSpec:
        return "InvalidSpec"


def javascript(texts: list[str]) -> list[str]:
    """What the modules make of the same texts."""
    node = subprocess.run([sys.executable, "tools/find_node.py"], cwd=ROOT, capture_output=True, text=True)
    if node.returncode:
        pytest.skip(node.stderr.strip())
    command = [node.stdout.strip(), "js/test/verdicts.js", (ROOT / "js" / "src" / "browser.js").as_uri()]
    lines = "\n".join(map(json.dumps, texts))
    return subprocess.run(command, cwd=ROOT, input=lines, capture_output=True, text=True, check=True).stdout.split()


def agreed(texts: list[str]) -> int:
    """How many of these texts are documents, of which both clients must have the same view."""
    expected = [verdict(text) for text in texts]
    found = javascript(texts)
    assert [text for text, one, other in zip(texts, expected, found, strict=True) if one != other] == []
    return sum(len(one) == 64 for one in expected)


@pytest.mark.parametrize(("seed", "count"), [(12, 300), pytest.param(13, 5000, marks=pytest.mark.slow)])
def test_both_clients_accept_the_same_of_thousands_of_changed_documents(seed: int, count: int) -> None:
    """A third of the changes leave a good document, so that agreement is not for want of documents to agree on."""
    pool = documents()
    accepted = agreed([*map(json.dumps, pool), *Mutator(seed, pool).texts(count)])
    assert count / 5 < accepted < count / 2 + len(pool)


@pytest.mark.parametrize(("seed", "count"), [(13, 200), pytest.param(14, 3000, marks=pytest.mark.slow)])
def test_both_clients_accept_the_same_of_changed_terms_of_a_shuffle(seed: int, count: int) -> None:
    """Most changes here hit the terms, which have few free texts, so that fewer leave a good document."""
    pool = [document for document in documents() if document["version"] == 2]
    assert sum(document["shuffle"] is not None for document in pool) > 5
    accepted = agreed([*map(json.dumps, pool), *Mutator(seed, pool, (*VALUES, *3 * TERMS)).texts(count)])
    assert count / 8 < accepted < count / 2
