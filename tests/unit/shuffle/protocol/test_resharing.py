"""The shuffle by resharing: every row comes out once, in a uniform order that a minority cannot see."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from tacit.arrays import U8
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.in_memory import Message, Station, oldest_first, shuffle_in_memory
from tacit.shuffle.protocol.layouts import LAYOUTS, RowLayout
from tacit.shuffle.protocol.parties import hiders_needed, party_names, rounds_of
from tacit.shuffle.protocol.resharing import (
    COMMIT,
    RESHARE,
    REVEAL,
    SPLIT,
    Need,
    Outgoing,
    Setup,
    ShareState,
    begin,
    step,
)  # fmt: skip
from tacit.shuffle.protocol.shares import PlainAlgebra, as_rows
from tacit.testing.statistics import assert_fits, chi_square_p

OSH, OSH_Z = (PlainAlgebra(LAYOUTS[mode]) for mode in ("osh", "osh-z"))
TINY = PlainAlgebra(RowLayout(1, 0))


def stream(*parts: int) -> AesStream:
    return AesStream(b"".join(part.to_bytes(4, "little") for part in parts).ljust(32, b"\x00"))


def streams(parties: int, seed: int) -> list[AesStream]:
    return [stream(seed, party) for party in range(1, parties + 1)]


def shared(rows: U8, algebra: PlainAlgebra, parties: int, seed: int) -> list[tuple[U8]]:
    return [(share,) for share in algebra.split((rows,), parties, stream(seed, 0))]


def multiset(rows: U8) -> list[bytes]:
    return sorted(row.tobytes() for row in rows)


def test_majorities_and_rounds():
    assert [hiders_needed(r) for r in (3, 5, 7)] == [2, 3, 4]
    assert [len(rounds_of(r)) for r in (3, 5, 7)] == [3, 10, 35]
    assert party_names(2) == ["collector", "shuffler_1", "shuffler_2"]
    for r in (3, 5, 7):
        # Whatever minority colludes, some round has none of it among its hiders.
        minority = set(range(1, r - hiders_needed(r) + 1))
        assert any(not minority & set(hiders) for hiders in rounds_of(r))
    for r in (0, 1, 2, 4):
        with pytest.raises(InvalidSpec, match="odd number"):
            hiders_needed(r)


@pytest.mark.parametrize("layout", [RowLayout(7, 0), RowLayout(7, 1), RowLayout(0, 1)], ids=str)
def test_shares_of_arrays_and_of_single_rows_add_up(layout: RowLayout):
    algebra, rows = PlainAlgebra(layout), stream(1).rows(20, layout.width)
    before = rows.copy()
    parts = algebra.split((rows,), 3, stream(2))
    assert (rows == before).all() and len(parts) == 3
    assert (algebra.join(20, None, parts)[0] == rows).all()
    assert not (algebra.join(20, None, parts[:2])[0] == rows).any(axis=1).all()
    single = layout.split(rows[0].tobytes(), 3, stream(2))
    assert layout.join(single) == rows[0].tobytes()
    # One row is split in the same way by both.
    assert single == [part.tobytes() for part in algebra.split((rows[:1],), 3, stream(2))]


@pytest.mark.parametrize("layout", [RowLayout(7, 0), RowLayout(7, 1)], ids=str)
def test_summands_travel_as_seeds_but_for_the_rest(layout: RowLayout):
    # More rows than a piece of a stream has.
    count = 10_000
    algebra, rows = PlainAlgebra(layout), stream(1).rows(count, layout.width)
    before = rows.copy()
    packed = algebra.pack((rows,), 3, stream(2))
    assert (rows == before).all() and [body.shape for body in packed] == [(1, 32), (1, 32), rows.shape]
    unpacked = [algebra.unpack(body, count, is_rest=i == 2) for i, body in enumerate(packed)]
    parts = [part for part in unpacked if part is not None]
    assert len(parts) == 3 and (algebra.join(count, None, parts)[0] == rows).all()
    # Every seed is a stream of its own, whose bytes are those of anybody who expands it.
    assert (algebra.join(count, None, parts[:1])[0] == AesStream(packed[0].tobytes()).rows(count, layout.width)).all()
    assert (packed[0] != packed[1]).any()
    # A rest is no seed, a seed no rest, and a part of a row neither.
    assert (
        algebra.unpack(packed[2], count, is_rest=False) is None
        and algebra.unpack(packed[0], count, is_rest=True) is None
    )
    assert algebra.unpack(rows.reshape(-1)[1:], count, is_rest=True) is None


@examples(25)
@given(
    parties=st.sampled_from([3, 3, 5]),
    count=st.integers(1, 30),
    mode=st.sampled_from(["osh", "osh-z"]),
    seed=st.integers(0, 1 << 30),
    picks=st.lists(st.integers(0, 1 << 16), min_size=1, max_size=40),
    copies=st.integers(0, 3),
)
def test_every_row_comes_out_once_in_whatever_order_messages_arrive(
    parties: int, count: int, mode: str, seed: int, picks: list[int], copies: int
):
    """Messages overtake each other, are lost and sent again, and arrive several times."""
    algebra = PlainAlgebra(LAYOUTS[mode])
    rows = stream(seed).rows(count, algebra.layout.width)
    stations, network = open_stations(parties, algebra, rows, seed)
    outputs: dict[int, U8] = {}
    turn = 0
    while network:
        turn += 1
        message = network.pop(picks[turn % len(picks)] % len(network))
        if copies and turn % 7 == 0:
            # Lost here; the sender stored it and sends the same bytes again, later.
            network.append(message)
            continue
        outgoing = message.outgoing
        if outgoing.receiver == 0:
            outputs[message.sender] = outgoing.body
            continue
        for _ in range(1 + copies):
            station = stations[outgoing.receiver]
            for more in station.take(outgoing.need(message.sender), outgoing.body):
                network.append(Message(outgoing.receiver, more))
    assert all(station.state.is_done for station in stations.values())
    assert set(outputs) == set(rounds_of(parties)[-1])
    (out,) = algebra.join(count, None, list(outputs.values()))
    assert multiset(out) == multiset(rows)


def open_stations(parties: int, algebra: PlainAlgebra, rows: U8, seed: int) -> tuple[dict[int, Station], list[Message]]:
    stations: dict[int, Station] = {}
    network: list[Message] = []
    vectors = shared(rows, algebra, parties, seed)
    for party, (vector, own) in enumerate(zip(vectors, streams(parties, seed), strict=True), start=1):
        state, sent = begin(Setup(bytes(32), 1, party, parties, algebra), vector, own)
        stations[party] = Station(state, own)
        network += [Message(party, outgoing) for outgoing in sent]
    return stations, network


def test_the_order_of_the_output_is_uniform():
    """False-alarm probability 1e-7. Power: a shuffle that always keeps the first of three rows in its place, or that
    misses one of the six orders, would have p below 1e-10."""
    places = {order: i for i, order in enumerate(permutations(range(3)))}
    rows = np.arange(3, dtype="<u8").view(np.uint8).reshape(3, 8)
    runs, cells = 300, np.zeros(6, np.int64)
    for seed in range(runs):
        outputs = shuffle_in_memory(
            shared(rows, TINY, 3, seed), TINY, streams(3, seed), session=seed.to_bytes(32, "big")
        )
        (out,) = TINY.join(3, None, list(outputs.values()))
        cells[places[tuple(out[:, 0].tolist())]] += 1
    assert_fits(cells, np.full(6, 1 / 6))
    one_missing = runs / 6 + runs / 6 / 5
    assert chi_square_p(one_missing, 5) < 1e-10


class Masked(AesStream):
    """A stream whose rows are given: lets a test choose the random summands of a split."""

    def __init__(self, rows: list[U8]) -> None:
        super().__init__(bytes(32))
        self._given = rows

    def rows(self, count: int, width: int) -> U8:
        given = self._given.pop(0)
        assert given.shape == (count, width)
        return given


@pytest.mark.parametrize("seeker", [1, 2, 3])
def test_a_seeker_sees_the_same_bytes_whatever_the_order_was(seeker: int):
    """Exact: for every other order there are coins of the hiders, one for one, that give the seeker the same view.

    A hider sends summands x_1 .. x_r of its permuted vector v; the seeker gets x_seeker. If the order were another one
    and the vector w, the same hider with x_other + (w - v) for one other party would send the seeker the same bytes.
    That is a bijection of uniform coins, so that the view has the same law under every order.
    """
    hiders = [party for party in (1, 2, 3) if party != seeker]
    vectors = {hider: stream(9, hider).rows(3, 56) for hider in hiders}
    masks = {hider: [stream(8, hider, i).rows(3, 56) for i in range(2)] for hider in hiders}
    views: set[bytes] = set()
    for order in permutations(range(3)):
        view = b""
        for hider in hiders:
            before, after = vectors[hider], vectors[hider][list(order)]
            drawn = [mask.copy() for mask in masks[hider]]
            # Parties 1 and 2 get drawn masks, which know of no order; party 3 gets what is missing.
            if seeker == 3:
                drawn[0] ^= before ^ after
            view += OSH.split((after,), 3, Masked(drawn))[seeker - 1].tobytes()
        views.add(view)
    assert len(views) == 1


def test_what_a_minority_sees_does_not_depend_on_the_order():
    """Statistics over whole runs: the words that shuffler 3 receives as a seeker, against the secret order.

    Rows are 0 and all ones, so that a leak of any bit of the order would show. Each of 15 bits of the view is tested
    for independence of the order with false-alarm probability 1e-7; a bit that follows the order in 75 % of runs
    would give p below 1e-9.
    """
    rows = np.array([0, (1 << 64) - 1], "<u8").view(np.uint8).reshape(2, 8)
    runs, tables = 160, np.zeros((15, 2, 2), np.int64)
    for seed in range(runs):
        view: list[int] = []

        def watch(message: Message, view: list[int] = view) -> None:
            if message.outgoing.receiver == 3 and message.outgoing.phase == RESHARE and message.outgoing.round == 0:
                view.extend(message.outgoing.body.reshape(-1)[:8].tolist())

        outputs = shuffle_in_memory(shared(rows, TINY, 3, seed), TINY, streams(3, seed), watch=watch)
        # What the first round's seeker could want to know is the order of the first row at the end.
        (out,) = TINY.join(2, None, list(outputs.values()))
        for i in range(15):
            tables[i, int(out[0, 0] != 0), view[i] & 1] += 1
    for table in tables:
        expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
        assert chi_square_p(float(((table - expected) ** 2 / expected).sum()), 1) > 1e-7
    assert chi_square_p(runs * 0.25, 1) < 1e-9


def test_a_state_is_stored_and_continues_where_it_was():
    """After a crash, the stored state and the stored bodies lead to the same rows."""
    rows = stream(4).rows(10, 56)
    parties: dict[int, ShareState] = {}
    network: list[tuple[int, Outgoing]] = []
    own = streams(3, 4)
    for party, vector in enumerate(shared(rows, OSH, 3, 4), start=1):
        parties[party], sent = begin(Setup(bytes(32), 1, party, 3, OSH), vector, own[party - 1])
        network += [(party, outgoing) for outgoing in sent]
    inbox: dict[int, dict[Need, bytes]] = {party: {} for party in parties}
    outputs: list[U8] = []
    while network:
        sender, outgoing = network.pop()
        if outgoing.receiver == 0:
            outputs.append(outgoing.body)
            continue
        inbox[outgoing.receiver][outgoing.need(sender)] = outgoing.body.tobytes()
        state = parties[outgoing.receiver]
        stored = (state.to_json(), [part.tobytes() for part in state.vector])
        vector = tuple(as_rows(part, state.count) for part in stored[1])
        state = ShareState.from_json(state.setup, stored[0], vector)
        if not state.is_done and all(need in inbox[outgoing.receiver] for need in state.needs()):
            state, sent = step(state, inbox[outgoing.receiver], own[outgoing.receiver - 1])
            network += [(outgoing.receiver, more) for more in sent]
        parties[outgoing.receiver] = state
    assert multiset(OSH.join(10, None, outputs)[0]) == multiset(rows)
    # Nothing secret is left in a state that has handed over.
    assert all(state.is_done and state.vector == () and state.seed == b"" for state in parties.values())


def first_states() -> dict[int, tuple[ShareState, list[Outgoing]]]:
    rows = stream(5).rows(4, 56)
    pairs = zip(shared(rows, OSH, 3, 5), streams(3, 5), strict=True)
    return {i: begin(Setup(bytes(32), 1, i, 3, OSH), vector, own) for i, (vector, own) in enumerate(pairs, start=1)}


def test_what_is_sent_in_the_first_round():
    made = first_states()
    sent = {party: [(o.phase, o.receiver, o.body.shape) for o in outgoing] for party, (_, outgoing) in made.items()}
    assert sent == {
        1: [(COMMIT, 2, (1, 32))],
        2: [(COMMIT, 1, (1, 32))],
        # A seed for all but the last hider.
        3: [(SPLIT, 1, (1, 32)), (SPLIT, 2, (4, 56))],
    }
    assert made[1][0].needs() == [Need(0, COMMIT, 2)]
    assert made[3][0].needs() == [Need(0, RESHARE, 1), Need(0, RESHARE, 2)]


def test_a_step_waits_for_all_bodies():
    state = first_states()[1][0]
    with pytest.raises(InvalidSpec, match="1 bodies are missing"):
        step(state, {}, stream(1))


def test_a_wrong_seed_a_wrong_size_and_a_copied_commitment_are_noticed():
    made = first_states()
    state, own = made[1][0], stream(6)
    split = {Need(0, SPLIT, 3): made[3][1][0].body}
    honest = {Need(0, COMMIT, 2): made[2][1][0].body}
    revealing, sent = step(state, honest, own)
    assert [(o.phase, o.receiver) for o in sent] == [(REVEAL, 2)]
    with pytest.raises(ProtocolViolation, match="shuffler_2: the revealed seed"):
        step(revealing, {**split, Need(0, REVEAL, 2): bytes(32)}, own)
    seed = made[2][0].seed
    # Rows where a seed belongs are refused like any other size: the transcript would not hold.
    for size in (4 * 56, 31, 0):
        with pytest.raises(ProtocolViolation, match="shuffler_3: split of round 0 is not 4 rows"):
            step(revealing, {Need(0, SPLIT, 3): bytes(size), Need(0, REVEAL, 2): seed}, own)
    with pytest.raises(ProtocolViolation, match="shuffler_2: a commit has 32 bytes"):
        step(state, {Need(0, COMMIT, 2): bytes(31)}, own)
    copied, _ = step(state, {Need(0, COMMIT, 2): made[1][1][0].body}, own)
    with pytest.raises(ProtocolViolation, match="copied"):
        step(copied, {**split, Need(0, REVEAL, 2): state.seed}, own)


def test_two_bodies_for_one_place_are_noticed():
    made = first_states()
    station = Station(made[1][0], stream(7))
    need, body = Need(0, SPLIT, 3), made[3][1][0].body
    assert station.take(need, body) == [] and station.take(need, body.copy()) == []
    with pytest.raises(ProtocolViolation, match="two different bodies"):
        station.take(need, body ^ np.uint8(1))


def test_vectors_must_be_whole():
    with pytest.raises(InvalidSpec, match="one row per report"):
        begin(Setup(bytes(32), 1, 1, 3, OSH), (), stream(1))
    with pytest.raises(InvalidSpec, match="equal width"):
        as_rows(b"12345", 2)
    assert oldest_first(5) == 0
    assert OSH_Z.accepts(np.zeros((1, 64), np.uint8)) and not OSH_Z.accepts(np.zeros((1, 56), np.uint8))
