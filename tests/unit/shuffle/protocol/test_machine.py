"""The tables of states: every path that is allowed, and none that is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ProtocolViolation
from tacit.shuffle.protocol.machine import (
    COLLECTOR_TABLE,
    FAILURES,
    SHUFFLER_TABLE,
    CollectorProgress,
    ShufflerProgress,
    failure,
)  # fmt: skip

EVENTS = sorted({event for table in (SHUFFLER_TABLE, COLLECTOR_TABLE) for row in table.values() for event in row})


def test_a_shuffler_goes_all_the_way():
    progress = ShufflerProgress()
    for event in ("open", "freeze"):
        progress = progress.after(event)
    progress = progress.after("begin", round_number=0, phase="commit")
    assert (progress.state, progress.round, progress.phase) == ("ROUND", 0, "commit")
    progress = progress.after("step", round_number=0, phase="reveal").after("step", round_number=1, phase="commit")
    assert (progress.round, progress.phase) == (1, "commit")
    with pytest.raises(ProtocolViolation, match="another phase"):
        progress.after("step", round_number=1, phase="commit")
    assert progress.after("send").after("acknowledged") == ShufflerProgress("ERASED")


def test_a_collector_goes_all_the_way_and_counts_vectors():
    progress = CollectorProgress(2)
    for event in ("publish", "open", "shuffle", "receive"):
        progress = progress.after(event)
    assert (progress.state, progress.received) == ("RECEIVED", 1)
    with pytest.raises(ProtocolViolation, match="1 of 2 vectors"):
        progress.after("verify")
    again = progress.after("retry")
    assert again == CollectorProgress(2, "COLLECTING", 2, 0)
    progress = progress.after("receive")
    for event, reason in (("retry", "the result stands"), ("receive", "already")):
        with pytest.raises(ProtocolViolation, match=reason):
            progress.after(event)
    assert progress.after("verify").after("release").state == "RELEASED"


@given(st.lists(st.sampled_from(EVENTS), max_size=30))
def test_no_sequence_of_events_leaves_the_tables(events: list[str]):
    shuffler, collector = ShufflerProgress(), CollectorProgress(2)
    for i, event in enumerate(events):
        if event in SHUFFLER_TABLE[shuffler.state]:
            shuffler = shuffler.after(event, round_number=i, phase="x")
        else:
            with pytest.raises(ProtocolViolation, match=f"{event} does not follow {shuffler.state}"):
                shuffler.after(event)
        if event not in COLLECTOR_TABLE[collector.state]:
            with pytest.raises(ProtocolViolation):
                collector.after(event)
        else:
            try:
                collector = collector.after(event)
            except ProtocolViolation:
                assert event in ("retry", "verify", "receive")
    assert shuffler.state in SHUFFLER_TABLE and collector.state in COLLECTOR_TABLE
    # Nothing is released that was not received completely.
    assert collector.state not in ("VERIFIED", "RELEASED") or collector.received == 2


def test_every_state_but_the_last_can_be_aborted():
    for table, last in ((SHUFFLER_TABLE, "ERASED"), (COLLECTOR_TABLE, "RELEASED")):
        for state, row in table.items():
            assert (row.get("abort") == "ABORTED") == (state not in (last, "ABORTED"))
            assert set(row.values()) <= set(table)


def test_failures_are_distinct_and_lead_to_events_of_the_tables():
    assert len({rule.name for rule in FAILURES}) == len(FAILURES)
    assert {rule.event for rule in FAILURES} == {"", "abort"}
    assert "memoised" in failure("shuffler_lost_before_freeze").action
    assert all(rule.privacy_cost.startswith("none") for rule in FAILURES if rule.event == "abort")
