"""The page that a reviewer signs, and what many reports of one device tell."""

import numpy as np
import pytest

import tacit
from tacit.audit.dossier import dossier, longitudinal
from tacit.audit.longitudinal import guess_success, joint_epsilon, response_matrix, sequence_law
from tacit.audit.page import audit_page
from tacit.errors import InvalidSpec
from tacit.testing.examples import example


@pytest.mark.parametrize("kind", [entry.kind for entry in tacit.CATALOG])
def test_every_kind_has_a_page(kind: str) -> None:
    found = dossier(example(kind, "1"))
    assert found["holds"] and all(row["holds"] for row in found["guarantees"])
    page = audit_page(found)
    assert found["mechanism"]["digest"] in page and "Signature" in page and "<script" not in page


def test_the_witness_is_the_largest_ratio() -> None:
    found = dossier(tacit.GRR(5, "1"))["witness"]
    assert found["log_ratio"] == pytest.approx(1)
    assert found["probabilities"][0] / found["probabilities"][1] == pytest.approx(np.e)


def test_large_mechanisms_are_enumerated_on_a_tiny_one() -> None:
    found = dossier(tacit.OUE(1000, "1"))
    assert found["witness"] is None
    assert found["guarantees"][0]["enumerated"] == pytest.approx(1)
    assert found["guarantees"][0]["enumerated_on"]["size"] == 5


def test_texts_are_escaped_and_a_refuted_client_refutes_the_page() -> None:
    client = {"program": "<b>x</b>", "runs": 1, "pairs": [], "declared": 1.0, "epsilon_lower": 2.0, "confidence": 0.9}
    found = dossier(tacit.GRR(5, "1"), clients=[client | {"refuted": True}])
    page = audit_page(found)
    assert not found["holds"] and "REFUTED" in page and "&lt;b&gt;" in page and "<b>x" not in page


def test_what_is_kept_over_time_is_said() -> None:
    assert "any number of reports" in longitudinal(example("memo", "1"))
    assert "T times epsilon" in longitudinal(tacit.GRR(5, "1"))


def test_reports_of_a_permanent_answer_never_tell_more_than_it() -> None:
    permanent, fresh = response_matrix(4, 1.5), response_matrix(4, 1.0)
    losses = [joint_epsilon(permanent, fresh, reports) for reports in range(1, 7)]
    assert losses == sorted(losses) and losses[-1] < 1.5
    guesses = [guess_success(permanent, fresh, reports) for reports in range(1, 7)]
    assert guesses == sorted(guesses) and guesses[-1] < permanent[0, 0]
    # A memoised answer is repeated: any number of reports tells what one tells.
    same = np.eye(4)
    assert joint_epsilon(permanent, fresh @ np.eye(4), 1) < 1.5
    assert guess_success(permanent, same, 3) == pytest.approx(permanent[0, 0])
    assert sequence_law(permanent, fresh, 3).sum(axis=1) == pytest.approx(np.ones(4))
    with pytest.raises(InvalidSpec, match="too many"):
        sequence_law(permanent, fresh, 20)
