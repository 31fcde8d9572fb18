"""The commands of the central model: what they print, that they say "not local", and what they refuse."""

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tacit.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run `tacit` in this process, as its entry point would: exit code, output, errors."""

    def call(*arguments: Any, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tacit", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_design_prints_matrix_objective_and_properties(run: Run) -> None:
    command = "count design --n 8 --alpha 0.9 --objective l0 --property weak-honesty --json".split()
    code, out, _ = run(*command)
    answer = json.loads(out)
    assert code == 0 and "NOT LOCAL" in answer["model"]
    assert np.shape(answer["matrix"]) == (9, 9)
    assert np.allclose(np.sum(answer["matrix"], axis=0), 1)
    assert np.isclose(answer["objective"], 0.961689, atol=1e-6)  # the uniform mechanism is 1
    assert answer["properties"]["weak-honesty"] and not answer["properties"]["fairness"]
    assert answer["realised_epsilon"] <= answer["epsilon"]


def test_pictures_are_self_contained(run: Run, tmp_path: Path) -> None:
    for name in ("em.svg", "em.html"):
        path = tmp_path / name
        assert run("count", "show", "em", "--n", 4, "--alpha", "10/11", "--plot", path)[0] == 0
        text = path.read_text()
        assert "NOT LOCAL" in text and text.count('class="cell"') == 25
        assert "<script" not in text and not re.search(r'(src|href)="', text)
    ElementTree.parse(tmp_path / "em.svg")


def test_large_pictures_have_no_numbers_in_their_cells(run: Run, tmp_path: Path) -> None:
    run("count", "show", "gm", "--n", 30, "--alpha", "0.9", "--plot", tmp_path / "gm.svg")
    assert (tmp_path / "gm.svg").read_text().count("<text") < 80


def test_choose_says_why(run: Run) -> None:
    code, out, err = run("count", "choose", "--n", 5, "--epsilon", "0.1", "--property", "F")
    assert code == 0 and "fairness was asked for" in err and "NOT LOCAL" in out


def test_compare_lists_mechanisms_with_errors_and_properties(run: Run) -> None:
    code, out, _ = run("count", "compare", "--n", 4, "--alpha", "10/11", "--json")
    rows = {row["mechanism"]: row for row in json.loads(out)["mechanisms"]}
    assert code == 0 and {"gm", "em", "um", "exp", "lap", "wm-wh", "wm-cm", "am l2"} <= rows.keys()
    assert rows["um"]["l0"] == rows["um"]["l2"] == 1 and all(rows["em"]["properties"].values())
    code, out, _ = run("count", "compare", "--n", 1, "--alpha", "0.5")
    assert code == 0 and "NOT LOCAL" in out and out.count("rh rm ch cm f s wh") >= 4


def test_release_answers_every_line(run: Run) -> None:
    code, out, err = run("count", "release", "gm", "--n", 4, "--alpha", "0.01", stdin="3\n\n0\n4\n")
    released = [int(line) for line in out.split()]
    assert code == 0 and len(released) == 3 and all(0 <= x <= 4 for x in released) and "NOT LOCAL" in err
    code, out, err = run("count", "release", "gm", "--n", 4, "--alpha", "0.9", stdin="3\n987654\n")
    assert code == 2 and not out and "987654" not in err


def test_a_prior_and_the_worst_case_can_be_given(run: Run) -> None:
    code, out, _ = run("count", "design", "--n", 1, "--alpha", "0.5", "--prior", "1,0.2", "--json")
    assert code == 0 and np.allclose(json.loads(out)["matrix"], [[1, 1], [0, 0]], atol=1e-6)
    assert run("count", "design", "--n", 2, "--alpha", "0.5", "--worst")[0] == 0


@pytest.mark.parametrize("method", ["flat", "sorted", "tree", "hh", "wavelet"])
def test_histogram_releases_every_cell(run: Run, tmp_path: Path, method: str) -> None:
    np.save(tmp_path / "true.npy", np.arange(10) * 100)
    options = ("--epsilon", "32", "--method", method, "--counts", "--json")
    code, out, err = run("central", "histogram", tmp_path / "true.npy", *options)
    answer = json.loads(out)
    assert code == 0 and "NOT LOCAL" in err and "NOT LOCAL" in answer["model"]
    assert np.abs(np.array(answer["counts"]) - np.arange(10) * 100).max() < 40  # epsilon 32 over 5 levels
    assert answer["noise_variance"] < 1


def test_histogram_writes_files(run: Run, tmp_path: Path) -> None:
    for name in ("out.npy", "out.txt"):
        assert run("central", "histogram", "-", "--epsilon", "1", "-o", tmp_path / name, stdin="3\n4\n5\n")[0] == 0
    assert len(np.load(tmp_path / "out.npy")) == len((tmp_path / "out.txt").read_text().split()) == 3
    code, out, _ = run("central", "histogram", "-", "--epsilon", "1", stdin="3\n4\n5\n")
    assert code == 0 and "NOT LOCAL" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("count design --n 0 --alpha 0.9", "n is 0"),
        ("count design --n 4 --alpha 1", "alpha is 1, must be strictly between 0 and 1"),
        ("count design --n 4 --alpha 0.9 --epsilon 1", "one of --alpha and --epsilon"),
        ("count design --n 4", "one of --alpha and --epsilon"),
        ("count design --n 4 --alpha 0.9 --property bravery", "'bravery' does not exist"),
        ("count design --n 4 --alpha 0.9 --objective l7", "must be l0, l1, l2"),
        ("count design --n 4 --alpha 0.9 --objective l0,4", "must be below n = 4"),
        ("count design --n 4 --alpha 0.9 --prior a,b", "numbers separated by commas"),
        ("count design --n 4 --alpha 0.9 --prior 1,2", "5 weights"),
        ("count show xm --n 4 --alpha 0.9", "'xm' does not exist"),
        ("count show rr --n 4 --alpha 0.9", "must be 1"),
        ("central histogram - --epsilon 0", "epsilon is 0"),
        ("central histogram - --epsilon 1 --fanout 1", "fanout is 1"),
    ],
)
def test_bad_input_is_one_clear_line(run: Run, arguments: str, said: str) -> None:
    code, out, err = run(*arguments.split(), stdin="1\n2\n")
    assert code == 2 and not out and said in err and "Traceback" not in err


def test_bad_counts_are_refused_without_being_shown(run: Run, tmp_path: Path) -> None:
    for text in ("1\n-987654\n", "1\nx987654\n", "987654987654987654987654\n", ""):
        code, out, err = run("central", "histogram", "-", "--epsilon", "1", stdin=text)
        assert code == 2 and not out and "987654" not in err and "Traceback" not in err
    (tmp_path / "bad.npy").write_bytes(b"no array")
    assert run("central", "histogram", tmp_path / "bad.npy", "--epsilon", "1")[0] == 2
