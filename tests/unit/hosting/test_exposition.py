"""Metrics of several processes in one exposition."""

from pathlib import Path

from tacit.hosting.exposition import Board, Tallies, labelled, merged

HELPS = {"seen_total": "What was seen.", "lost_total": "What was lost."}


def text(**counts: int) -> str:
    tallies = Tallies(HELPS)
    for name, number in counts.items():
        for _ in range(number):
            tallies.count(name, 'kind="x"' if name == "seen_total" else "")
    return tallies.text({"waiting": 3.5})


def test_every_sample_gets_the_label_and_no_comment_does():
    lines = labelled(text(seen_total=2, lost_total=1), 'worker="7"').splitlines()
    assert 'seen_total{worker="7",kind="x"} 2' in lines
    assert 'lost_total{worker="7"} 1' in lines
    assert 'waiting{worker="7"} 3.5' in lines
    assert [line for line in lines if line.startswith("#")] == [line for line in text().splitlines() if line[0] == "#"]


def test_samples_of_a_metric_stand_together_below_its_comments_once():
    one, two = (labelled(text(seen_total=n), f'worker="{n}"') for n in (1, 2))
    lines = merged([one, two]).splitlines()
    at = lines.index("# TYPE seen_total counter")
    assert lines[at - 1] == "# HELP seen_total What was seen."
    assert lines[at + 1 : at + 3] == ['seen_total{worker="1",kind="x"} 1', 'seen_total{worker="2",kind="x"} 2']
    assert len(lines) == len(set(lines))


def test_any_process_shows_what_all_have_posted(tmp_path: Path):
    one, two = Board(tmp_path, "1"), Board(tmp_path, "2")
    one.post(text(seen_total=1))
    one.post(text(seen_total=4))
    two.post(text(seen_total=2))
    assert one.read() == two.read()
    assert {line for line in one.read().splitlines() if line.startswith("seen")} == {
        'seen_total{worker="1",kind="x"} 4',
        'seen_total{worker="2",kind="x"} 2',
    }
