"""`tacit compare` for searches and SQL: rows with the same fields, errors that are what they say, peers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.device.domains.domain import Bits
from tacit.errors import InvalidSpec, NoData
from tacit.simulate.baskets import count_itemsets, number_items
from tacit.simulate.compare.histogram import compare_histogram
from tacit.simulate.compare.peers import Peer, compare_peers, installed_peers
from tacit.simulate.compare.run import DataOptions, compare, read_data
from tacit.simulate.compare.searches import compare_hitters
from tacit.simulate.hitters import METHODS, Population

FIELDS = {"method", "pick", "epsilon", "error", "error_se", "coverage", "seconds", "bias", "bits", "relative", "about"}


def run(path: Path, task: str, *more: str) -> dict[str, dict[str, Any]]:
    given = ["compare", "--data", str(path), "--task", task, "--epsilon", "4", "--seeds", "2", "--json", *more]
    result = CliRunner().invoke(cli, given)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.output)
    assert all(row.keys() >= FIELDS for row in rows)
    assert [row["error"] for row in rows] == sorted(row["error"] for row in rows)
    assert [row["method"] for row in rows if row["pick"]] == ["default"]
    return {row["method"]: row for row in rows}


@pytest.mark.slow
def test_searches_for_heavy_hitters_are_scored_by_f1(tmp_path: Path) -> None:
    lines = [f"{i:016b}\t{6000 // i}" for i in range(1, 40)]
    (tmp_path / "values.txt").write_text("\n".join(lines))
    rows = run(tmp_path / "values.txt", "heavy-hitters", "--values", "bits", "--bits", "16", "--k", "4")
    # Left out are what needs a threshold, and pairs of segments, of which so short values have one alone.
    left = {"pem", "privtrie", "spm", "spm-split"}
    assert rows.keys() == {"default", *(m.name for m in METHODS)} - left
    for row in rows.values():
        assert row["error"] == pytest.approx(1 - row["f1"]) and 0 <= row["ncr"] <= 1
    assert rows["default"]["f1"] >= 0.75 and rows["default"]["coverage"] is not None
    assert rows["default"]["bits"] > 0 and rows["hash"]["bits"] is None


def test_only_so_many_respondents_are_searched_and_the_same_ones_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.simulate.compare.searches.MOST_ASKED", 2_000)
    crowd = Population(Bits("value", 8), np.arange(50, dtype=np.uint64), 5_000 // np.arange(1, 51))
    first, again = (compare_hitters(crowd, "4", [1], k=3) for _ in range(2))
    assert [c.trials[0].error for c in first] == [c.trials[0].error for c in again]


def test_itemsets_are_held_to_one_truth_and_their_intervals_to_exact_counts(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    baskets = [[0, 1, *rng.choice(20, 2)] if rng.random() < 0.7 else rng.choice(20, 2).tolist() for _ in range(4_000)]
    (tmp_path / "baskets.dat").write_text("\n".join(" ".join(map(str, basket)) for basket in baskets))
    rows = run(tmp_path / "baskets.dat", "itemsets", "--k", "3")
    assert {"default", "svim", "ldpminer", "v6", "svsm-ldpminer"} <= rows.keys()
    # The three most frequent are two items and their pair, which plans for single items cannot find.
    assert rows["default"]["error"] < 0.1 and rows["svim"]["error"] > 0.3
    numbered = number_items([["a", "b"], ["a"], ["b", "a", "c"], []])
    assert count_itemsets(numbered.sets, 3, [(0,), (0, 1), (0, 1, 2)]).tolist() == [3, 2, 1]
    assert count_itemsets(numbered.sets, 3, []).tolist() == []


def test_designs_for_a_query_are_compared_in_units_of_its_answers(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rows = ["age,town"] + [f"{i % 16},{'ab'[i % 3 == 0]}" for i in range(3_000)]
    (tmp_path / "rows.csv").write_text("\n".join(rows))
    query = ("--private", "age:0-15", "--sql", "SELECT town, COUNT(*) FROM t WHERE age < 6 GROUP BY town")
    found = run(tmp_path / "rows.csv", "sql", *query)
    assert {"default", "better", "hio"} <= found.keys()
    assert found["default"]["error"] < 1 and found["default"]["coverage"] >= 0.5
    with pytest.raises(InvalidSpec, match="--private"):
        read_data(str(tmp_path / "rows.csv"), "sql")
    explained = DataOptions(private="age:0-15", sql="EXPLAIN SELECT COUNT(*) FROM t WHERE age < 6")
    with pytest.raises(InvalidSpec, match="EXPLAIN"):
        compare(read_data(str(tmp_path / "rows.csv"), "sql", options=explained), "sql", ["1"], seeds=1)


def test_files_without_values_of_the_domain_are_refused(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("word\n")
    with pytest.raises(NoData, match="--values"):
        read_data(str(tmp_path / "words.txt"), "heavy-hitters", options=DataOptions(values="integers"))
    result = CliRunner().invoke(
        cli, ["compare", "--data", str(tmp_path / "words.txt"), "--task", "marginals", "--k", "9"]
    )
    assert result.exit_code == 2 and "at most 6" in result.output


def test_peers_are_rows_of_their_own_where_crowds_are_small() -> None:
    """A library that answers uniform shares, and one that is too slow for its crowd."""
    uniform = Peer("even", "GRR", lambda values, d, epsilon: np.full(d, 1 / d))
    counts = np.array([30, 10])
    (found,) = compare_peers(counts, "1", [1, 2], [uniform])
    row = found.to_row("1")
    assert (row["method"], row["error"], row["bits"]) == ("peer:even:GRR", pytest.approx(1 / 16), None)
    assert compare_peers(counts * 10_000, "1", [1], [uniform]) == []
    assert compare_peers(np.full(1 << 12, 2), "1", [1], [Peer("slow", "OLH", uniform.run)]) == []
    # Whichever are installed here appear in the comparison by themselves.
    names = {contender.method for contender in compare_histogram(np.array([60, 30, 10]), "1", [1])}
    assert {peer.name for peer in installed_peers()} <= names
