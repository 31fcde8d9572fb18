"""Every acknowledged batch is counted exactly once: over random histories, and over processes that are killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.service.numbered import A, add, counted

from tacit.collector.ports import (
    CLOSED,
    DUPLICATE,
    SPENT,
    STORED,
    CollectionRecord,
    NewBatch,
    Store,
)
from tacit.errors import InvalidSpec

Open = Callable[[], Store]


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On the disk: where a commit takes its time, a kill comes before its acknowledgement more often."""
    return tmp_path_factory.mktemp("killed")


class Machine(RuleBasedStateMachine):
    """A store beside a model of it that is too simple to be wrong."""

    open: staticmethod[[], Store]

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).open()
        self.states: dict[str, str] = {}
        self.stored: dict[tuple[str, int], int] = {}
        self.invitations: dict[tuple[str, int], bool] = {}
        self.rejected: Counter[str] = Counter()
        # Histories share a database and have collections of their own.
        self.made = len(self.store.collections())

    collections: Bundle[str] = Bundle("collections")

    @rule(target=collections)
    def publish(self) -> str:
        self.made += 1
        name = f"{self.made:064x}"
        self.store.add_collection(CollectionRecord(name, "published", b"{}"))
        self.states[name] = "published"
        return name

    @rule(collection=collections)
    def close(self, collection: str) -> None:
        self.store.close_collection(collection)
        self.states[collection] = "closed"

    @rule(collection=collections, numbers=st.sets(st.integers(0, 5)))
    def invite(self, collection: str, numbers: set[int]) -> None:
        self.store.add_invitations(collection, [bytes([number]) for number in numbers])
        for number in numbers:
            self.invitations.setdefault((collection, number), True)

    @rule(
        uploads=st.lists(
            st.tuples(collections, st.integers(0, 30), st.integers(0, 3), st.none() | st.integers(0, 6)), max_size=12
        )
    )
    def upload(self, uploads: list[tuple[str, int, int, int | None]]) -> None:
        batches = [
            NewBatch(
                collection,
                number.to_bytes(16, "little"),
                number.to_bytes(4, "little") * count,
                count,
                {"range": 1},
                None if invitation is None else bytes([invitation]),
            )
            for collection, number, count, invitation in uploads
        ]
        assert self.store.add_batches(batches) == [self.expect(*upload) for upload in uploads]

    def expect(self, collection: str, number: int, count: int, invitation: int | None) -> str:
        if (collection, number) in self.stored:
            return DUPLICATE
        if self.states[collection] != "published":
            return CLOSED
        if invitation is not None:
            if not self.invitations.get((collection, invitation), False):
                return SPENT
            self.invitations[collection, invitation] = False
        self.stored[collection, number] = count
        self.rejected[collection] += 1
        return STORED

    @rule(collection=collections, shard=st.sampled_from(["one", "two"]), most=st.integers(1, 10))
    def fold(self, collection: str, shard: str, most: int) -> None:
        self.store.fold_some(collection, shard, add, most)

    @rule(collection=collections)
    def fold_all(self, collection: str) -> None:
        while self.store.fold_some(collection, "one", add, 10):
            pass
        model = {n: count for (name, n), count in self.stored.items() if name == collection and count}
        assert counted(self.store, collection) == model

    @rule(collection=collections)
    def drop(self, collection: str) -> None:
        self.store.drop_reports(collection)
        self.states[collection] = "closed"
        self.stored = {key: count for key, count in self.stored.items() if key[0] != collection}
        self.invitations = {key: unspent for key, unspent in self.invitations.items() if key[0] != collection}

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = type(self).open()

    @rule(collection=collections)
    def replace(self, collection: str) -> None:
        with pytest.raises(InvalidSpec):
            self.store.replace_draft(CollectionRecord(collection, "draft", b"forged"))

    @invariant()
    def agrees(self) -> None:
        for collection, state in self.states.items():
            record = self.store.collection(collection)
            assert record is not None and record.state == state
            model = sum(count for (name, _), count in self.stored.items() if name == collection)
            assert self.store.stored_reports(collection) == model
            assert self.store.rejected(collection).get("range", 0) == self.rejected[collection]

    def teardown(self) -> None:
        self.store.close()


@pytest.mark.parametrize("examples", [6, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.slow_cases("postgres-6")
def test_any_history_counts_every_batch_once(place: str, make_store: Callable[[str], Store], examples: int):
    machine = type("Machine", (Machine,), {"open": staticmethod(lambda: make_store(place))})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        ),
    )


def live_and_die(place: str, first: int, seconds: float) -> list[int]:
    """Run a writing process for a while after its first acknowledgement, kill it, and return all of them."""
    command = [sys.executable, "-m", "tests.service.writing_process", place, str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout is not None
        begin = process.stdout.readline()
        time.sleep(seconds)
        process.kill()
        lines = [begin, *process.stdout.readlines()]
    return [int(line) for line in lines if line.endswith(b"\n")]


@pytest.mark.slow_cases("postgres")
@pytest.mark.parametrize("cycles", [2, pytest.param(25, marks=pytest.mark.slow)])
def test_killed_processes_lose_nothing_and_count_nothing_twice(place: str, open_store: Open, cycles: int):
    rng = np.random.default_rng(25)
    store = open_store()
    store.add_collection(CollectionRecord(A, "published", b"{}"))
    acknowledged: set[int] = set()
    for cycle in range(cycles):
        heard = live_and_die(place, 1 + 1_000_000 * cycle, float(rng.uniform(0.1, 0.5)))
        assert heard
        acknowledged.update(heard)
    # A server may take a moment to roll back the fold of a process that was killed; until then its batches are skipped.
    while store.fold_some(A, "main", add, 10_000) or store.batch_numbers(A).waiting:
        pass
    counts = counted(store)
    assert acknowledged <= set(counts)
    assert set(counts.values()) == {1}
    assert store.stored_reports(A) == len(counts)
