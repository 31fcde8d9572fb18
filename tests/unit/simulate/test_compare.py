"""`tacit compare`: reading data, the rows of every task, and the page."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.errors import InvalidSpec, NoData
from tacit.oracles.blocks import SS
from tacit.oracles.hadamard import HRR
from tacit.post.frequencies.methods import METHODS
from tacit.simulate.compare.data import read_counted, read_records
from tacit.simulate.compare.draws import drawn_estimate, is_cheap
from tacit.simulate.compare.page import render_page
from tacit.simulate.compare.run import compare, read_data

FIELDS = {"method", "pick", "epsilon", "error", "error_se", "coverage", "seconds", "bias", "bits"}


def _write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def _run(path: str, task: str, *more: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(cli, ["compare", "--data", path, "--task", task, "--json", *more])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("value\n3\n1\n3\n", [1, 2]),  # a header over numbers
        ("3\n1\n3\n\n", [1, 2]),  # none, and a blank line
        ("colour\nred\nblue\nred\n", [1, 2]),  # a header over labels: nobody answered it
        ("red\nblue\nred\n", [1, 2]),  # labels without one
        ("only\nred\n", [1, 0]),  # a single answer is padded to two
    ],
)
def test_a_column_of_values_is_counted_with_or_without_a_header(tmp_path, text, counts):
    assert read_counted(_write(tmp_path / "a.csv", text)).counts.tolist() == counts


def test_ranges_are_over_all_integers_between_or_over_buckets(tmp_path):
    assert read_counted(_write(tmp_path / "a.csv", "2\n5\n5\n"), ranges=True).counts.tolist() == [1, 0, 0, 2]
    assert len(read_counted(_write(tmp_path / "b.csv", "0.5\n1\n"), ranges=True).counts) == 256
    assert read_counted(_write(tmp_path / "d.csv", "0.5\n0.5\n"), ranges=True).counts[:2].tolist() == [2, 0]
    with pytest.raises(InvalidSpec, match="ranges need numbers"):
        read_counted(_write(tmp_path / "c.csv", "red\nblue\nred\n"), ranges=True)


def test_files_that_cannot_be_compared_are_refused_by_name(tmp_path):
    with pytest.raises(NoData, match="is empty"):
        read_counted(_write(tmp_path / "a.csv", ""))
    with pytest.raises(InvalidSpec, match="has 2 columns"):
        read_counted(_write(tmp_path / "b.csv", "a,b\n1,2\n"))
    with pytest.raises(InvalidSpec, match="no column 'x'"):
        read_counted(_write(tmp_path / "b.csv", "a,b\n1,2\n"), column="x")
    with pytest.raises(InvalidSpec, match="more or fewer fields"):
        read_records(_write(tmp_path / "c.csv", "a,b\n1,2\n1\n"))
    with pytest.raises(InvalidSpec, match="two columns or more"):
        read_records(_write(tmp_path / "d.csv", "a\n1\n"))
    with pytest.raises(InvalidSpec, match="one column"):
        read_data(str(tmp_path / "b.csv"), "histogram", ["a", "b"])
    np.save(tmp_path / "e.npy", np.array([1.5, 2]))
    with pytest.raises(InvalidSpec, match="whole numbers"):
        read_counted(str(tmp_path / "e.npy"))


def test_records_are_numbered_in_the_order_of_their_labels(tmp_path):
    read = read_records(_write(tmp_path / "a.csv", "x,y,z\nb,1,p\na,2,p\nb,1,q\n"), columns=["y", "x"])
    assert (read.names, read.sizes, read.rows.tolist()) == (("y", "x"), (2, 2), [[0, 1], [1, 0], [0, 1]])
    np.save(tmp_path / "t.npy", np.array([[1, 0], [0, 2]]))
    assert read_records(str(tmp_path / "t.npy")).rows.tolist() == [[0, 0], [1, 1], [1, 1]]


def test_a_histogram_has_a_row_for_every_method_of_the_registry_and_one_pick(tmp_path):
    np.save(tmp_path / "a.npy", 1000 // np.arange(1, 41))
    rows = _run(str(tmp_path / "a.npy"), "histogram", "--epsilon", "1,2", "--seeds", "2")
    for epsilon in (1, 2):
        some = {row["method"]: row for row in rows if row["epsilon"] == epsilon}
        assert {m.name for m in METHODS if m.name != "base"} | {"raw", "uniform", "default"} <= some.keys()
        assert [row["method"] for row in some.values() if row["pick"]] == ["default"]
        assert some["default"].keys() >= FIELDS
        assert set(some["default"]["chosen"]) <= {m.name for m in METHODS}
        # The same reports: what was chosen has that method's error in every draw.
        (name, times), *rest = some["default"]["chosen"].items()
        assert rest or (some["default"]["error"] == pytest.approx(some[name]["error"]) and times == 2)


@pytest.mark.slow
def test_ranges_and_tables_have_baselines_and_repeat(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(1, 17) * 40)
    rows = _run(str(tmp_path / "a.npy"), "ranges", "--epsilon", "1", "--seeds", "2")
    named = {row["method"]: row for row in rows}
    assert {"default", "raw", "uniform", "cells:norm_sub"} <= named.keys() and len(named) == len(rows)
    # Projection onto a convex set that holds the truth.
    assert named["default"]["error"] <= named["raw"]["error"] + 1e-12
    lines = ["a,b,c"] + [f"{i % 2},{i % 3},{(i // 2) % 2}" for i in range(3000)]
    data = read_data(_write(tmp_path / "b.csv", "\n".join(lines)), "marginals")
    first, again = (compare(data, "marginals", ["1"], seeds=1) for _ in range(2))
    assert {"default", "raw", "uniform"} <= {row["method"] for row in first}
    assert [row["error"] for row in first] == [row["error"] for row in again]
    assert all(row["error_se"] is None for row in first)


@pytest.mark.parametrize("mechanism", [SS(size=8, epsilon="1"), HRR(size=8, epsilon="1")])
def test_estimates_of_very_many_respondents_have_the_variances_of_real_ones(mechanism):
    """Chi-square of 400 draws of a cell and of a sum of cells: false alarms below 1e-6, and 1.5 times is seen."""
    counts, rng = np.array([8, 4, 2, 1, 1, 0, 0, 0]) * 100_000, np.random.default_rng(5)
    truth = counts / counts.sum()
    assert not is_cheap(mechanism, int(counts.sum()))
    rows = np.array([[1.0, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1]])
    expected = mechanism.moments.combined(rows, truth) / counts.sum()
    drawn = np.array([rows @ (drawn_estimate(mechanism, counts, rng).value - truth) for _ in range(400)])
    # A mean of 400 squares of normal numbers has a standard deviation of sqrt(2/400) = 0.071: five of them.
    assert np.all(np.abs((drawn**2).mean(axis=0) / expected - 1) < 0.36)


def test_the_page_needs_nothing_from_elsewhere_and_keeps_the_rows():
    row = {"method": "default", "pick": True, "epsilon": 1.0, "error": 0.1, "error_se": None, "relative": 1.0}
    page = render_page([row | {"about": "</script>"}], "histogram on a.csv", "mean squared error")
    assert "http" not in page and "src=" not in page
    start = page.index('id="rows">') + len('id="rows">')
    assert json.loads(page[start : page.index("</script>", start)])[0]["about"] == "</script>"


def test_a_page_is_written(tmp_path):
    np.save(tmp_path / "a.npy", [50, 30, 20])
    target = tmp_path / "report.html"
    given = ["compare", "--data", str(tmp_path / "a.npy"), "--task", "histogram", "--epsilon", "1", "--seeds", "1"]
    result = CliRunner().invoke(cli, [*given, "-o", str(target)])
    assert (result.exit_code, result.output) == (0, "")
    assert target.read_text().startswith("<!doctype html>")
    shown = CliRunner().invoke(cli, given)
    assert "* default" in shown.output
