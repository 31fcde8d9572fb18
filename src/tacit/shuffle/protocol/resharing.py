"""The oblivious shuffle by resharing: r shufflers hold shares of N rows and permute them without seeing any.

In every round t = (r + 1)/2 shufflers are hiders and know the round's order; the others are seekers and give their
shares to the hiders before. There is a round for every set of t shufflers (Laur, Willemson and Zhang, 2011; Wang's
dissertation, section 9.1), so that a minority of r - t shufflers is in none of the hiders of some round and does not
know its order. What one shuffler does is a pure machine:

    state, outgoing = begin(setup, vector, stream)
    while not state.is_done:
        bodies = {need: ... for need in state.needs()}          # wait until all of them have arrived
        state, outgoing = step(state, bodies, stream)

Outgoing bodies and the state are stored together, before anything is sent, and bodies are sent again byte for byte
after a crash. A second random split of the same vector would not add up with the first, and would leak a relation
between the two; therefore `step` is never called twice for one state whose bodies may have been seen.

    phase     from               to                   body
    commit    each hider         the other hiders     SHA-256 of its seed
    reveal    each hider         the other hiders     the seed, once all commitments are in
    split     each seeker        each hider           one of t summands of its rows
    reshare   each hider         every shuffler       one of r summands of the permuted rows; not in the last round
    output    each last hider    the collector        its rows

Summands are random but for the last, the rest. Where rows are added word by word, random ones travel as the seeds of
their streams (`shares`): most bodies of a round are then 32 bytes long, whatever the number of rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tacit.arrays import U8
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.stream import SEED_BYTES, AesStream
from tacit.shuffle.protocol.parties import COLLECTOR, party_name, rounds_of
from tacit.shuffle.protocol.permutation import check_reveal, commit, permutation, round_key
from tacit.shuffle.protocol.shares import Algebra, Body, Vector, as_rows

COMMIT, REVEAL, SPLIT, RESHARE, OUTPUT, DONE = "commit", "reveal", "split", "reshare", "output", "done"
PHASES = (COMMIT, REVEAL, SPLIT, RESHARE, OUTPUT)


class Need(NamedTuple):
    """A body that a shuffler waits for."""

    round: int
    phase: str
    sender: int


@dataclass(frozen=True, eq=False)
class Outgoing:
    """A body to be sent; one to oneself is stored like one that arrived."""

    round: int
    phase: str
    receiver: int
    body: U8

    def need(self, sender: int) -> Need:
        """What the receiver calls it."""
        return Need(self.round, self.phase, sender)


@dataclass(frozen=True)
class Setup:
    """What does not change for one shuffler during an attempt."""

    session: bytes
    attempt: int
    party: int
    parties: int
    algebra: Algebra

    @property
    def rounds(self) -> list[tuple[int, ...]]:
        """The hiders of every round."""
        return rounds_of(self.parties)


@dataclass(frozen=True, eq=False)
class ShareState:
    """One shuffler between two steps. `vector` is empty while the rows are on their way to others."""

    setup: Setup
    count: int
    round: int
    phase: str
    vector: Vector
    seed: bytes = b""
    commitments: tuple[bytes, ...] = ()

    @property
    def is_done(self) -> bool:
        """Whether nothing remains to be done but to send what is stored."""
        return self.phase == DONE

    @property
    def hiders(self) -> tuple[int, ...]:
        """Who knows the order of this round."""
        return self.setup.rounds[self.round]

    @property
    def is_last_round(self) -> bool:
        """Whether the hiders of this round hand over to the collector."""
        return self.round == len(self.setup.rounds) - 1

    @property
    def others(self) -> list[int]:
        """The other hiders of this round."""
        return [hider for hider in self.hiders if hider != self.setup.party]

    @property
    def seekers(self) -> list[int]:
        """Who does not know the order of this round."""
        return [party for party in range(1, self.setup.parties + 1) if party not in self.hiders]

    def needs(self) -> list[Need]:
        """The bodies without which the next step cannot be made."""
        if self.phase == COMMIT:
            return [Need(self.round, COMMIT, party) for party in self.others]
        if self.phase == REVEAL:
            reveals = [Need(self.round, REVEAL, party) for party in self.others]
            return [*reveals, *(Need(self.round, SPLIT, party) for party in self.seekers)]
        if self.phase == RESHARE:
            return [Need(self.round, RESHARE, party) for party in self.hiders]
        return []

    def to_json(self) -> dict[str, Any]:
        """Everything but the vector, to be stored beside it; holds the secret seed."""
        return {
            "count": self.count,
            "round": self.round,
            "phase": self.phase,
            "seed": self.seed.hex(),
            "commitments": [item.hex() for item in self.commitments],
        }

    @classmethod
    def from_json(cls, setup: Setup, document: Mapping[str, Any], vector: Vector) -> "ShareState":
        """A state as it was stored."""
        return cls(
            setup=setup,
            count=document["count"],
            round=document["round"],
            phase=document["phase"],
            vector=vector,
            seed=bytes.fromhex(document["seed"]),
            commitments=tuple(bytes.fromhex(item) for item in document["commitments"]),
        )


Step = tuple[ShareState, list[Outgoing]]


def begin(setup: Setup, vector: Vector, stream: AesStream) -> Step:
    """Enter the first round with the own shares, fakes included (M3)."""
    if not vector or any(len(part) != len(vector[0]) for part in vector):
        raise InvalidSpec("resharing: all matrices of a vector must have one row per report")
    return _enter(ShareState(setup, len(vector[0]), 0, "", vector), stream)


def step(state: ShareState, bodies: Mapping[Need, Body], stream: AesStream) -> Step:
    """The next state and what is to be sent, given all the bodies that `needs` lists."""
    # All or nothing: a step that used only some bodies would have to be undone after a crash.
    missing = [need for need in state.needs() if need not in bodies]
    if missing or state.is_done:
        raise InvalidSpec(
            f"resharing: {len(missing)} bodies are missing for {state.phase} of round {state.round}; wait"
        )
    if state.phase == COMMIT:
        return _reveal(state, bodies)
    if state.phase == REVEAL:
        return _permute(state, bodies, stream)
    return _collect(state, bodies, stream)


def _enter(state: ShareState, stream: AesStream) -> Step:
    """Begin a round: a hider commits to a seed (M4a), a seeker gives its rows away (M4b)."""
    if state.setup.party in state.hiders:
        seed = stream.rows(1, SEED_BYTES).tobytes()
        sent = _to(state, COMMIT, state.others, [_row(commit(seed))] * len(state.others))
        return replace(state, phase=COMMIT, seed=seed, commitments=()), sent
    # The rows leave with the summands: a seeker keeps nothing that a later break-in could find.
    summands = state.setup.algebra.pack(state.vector, len(state.hiders), stream)
    sent = _to(state, SPLIT, state.hiders, summands)
    return replace(state, phase=DONE if state.is_last_round else RESHARE, vector=()), sent


def _reveal(state: ShareState, bodies: Mapping[Need, Body]) -> Step:
    """All commitments are in, so that the own seed may be shown."""
    # Commitments are kept in the state: what arrives later under the same place cannot replace them.
    taken = [_small(bodies, need) for need in state.needs()]
    sent = _to(state, REVEAL, state.others, [_row(state.seed)] * len(taken))
    return replace(state, phase=REVEAL, commitments=tuple(taken)), sent


def _permute(state: ShareState, bodies: Mapping[Need, Body], stream: AesStream) -> Step:
    """Add what the seekers gave, permute (M4c), and reshare (M4d) or hand over (M5)."""
    algebra, order = state.setup.algebra, permutation(_key(state, bodies), state.count)
    parts = _vectors(state, bodies, [Need(state.round, SPLIT, party) for party in state.seekers])
    vector = algebra.permute(algebra.join(state.count, state.vector, parts), order)
    if state.is_last_round:
        sent = _to(state, OUTPUT, [COLLECTOR], [algebra.output(vector, stream)])
        return replace(state, phase=DONE, vector=(), seed=b"", commitments=()), sent
    everybody = range(1, state.setup.parties + 1)
    sent = _to(state, RESHARE, everybody, algebra.pack(vector, state.setup.parties, stream))
    # The seed is forgotten with the rows: who is broken into later cannot tell the order of this round.
    return replace(state, phase=RESHARE, vector=(), seed=b"", commitments=()), sent


def _collect(state: ShareState, bodies: Mapping[Need, Body], stream: AesStream) -> Step:
    """Add up the shares of the permuted rows, and enter the next round."""
    return _enter(replace(state, round=state.round + 1, vector=gather(state, bodies)), stream)


def gather(state: ShareState, bodies: Mapping[Need, Body]) -> Vector:
    """The rows with which a shuffler enters the next round: the sum of all that was reshared in this one."""
    return state.setup.algebra.join(state.count, None, _vectors(state, bodies, state.needs()))


def _key(state: ShareState, bodies: Mapping[Need, Body]) -> bytes:
    seeds = {state.setup.party: state.seed}
    for party, commitment in zip(state.others, state.commitments, strict=True):
        seeds[party] = _small(bodies, Need(state.round, REVEAL, party))
        check_reveal(commitment, seeds[party], party_name(party))
    ordered = [seeds[party] for party in state.hiders]
    return round_key(state.setup.session, state.setup.attempt, state.round, ordered)


def _to(state: ShareState, phase: str, receivers: Sequence[int], bodies: Sequence[U8]) -> list[Outgoing]:
    pairs = zip(receivers, bodies, strict=True)
    return [Outgoing(state.round, phase, receiver, body) for receiver, body in pairs]


def _row(content: bytes) -> U8:
    return np.frombuffer(content, np.uint8).reshape(1, -1)


def _small(bodies: Mapping[Need, Body], need: Need) -> bytes:
    content = as_rows(bodies[need], 1).tobytes()
    if len(content) != SEED_BYTES:
        raise ProtocolViolation(f"{party_name(need.sender)}: a {need.phase} has {SEED_BYTES} bytes; this one does not")
    return content


def _vectors(state: ShareState, bodies: Mapping[Need, Body], needs: Sequence[Need]) -> list[U8]:
    """Bodies as rows; a body of another size is refused, and its sender named."""
    algebra, vectors = state.setup.algebra, list[U8]()
    for need in needs:
        is_rest = takes_rest(state.setup.parties, need.round, need.phase, state.setup.party)
        rows = algebra.unpack(as_rows(bodies[need], 1), state.count, is_rest=is_rest)
        if rows is None:
            raise ProtocolViolation(
                f"{party_name(need.sender)}: {need.phase} of round {need.round} is not {state.count} rows of this mode"
            )
        vectors.append(rows)
    return vectors


def takes_rest(parties: int, round_number: int, phase: str, receiver: int) -> bool:
    """Whether a receiver of summands gets the last one, the rest; the others may get seeds."""
    return receiver == (rounds_of(parties)[round_number][-1] if phase == SPLIT else parties)
