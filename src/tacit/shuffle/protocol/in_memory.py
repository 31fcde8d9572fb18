"""A whole shuffle inside one process: for examples, simulations, benchmarks and tests. It hides nothing from anybody.

All parties run the machines that real ones run; the network is a list of messages, and a picker decides which one
arrives next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np

from tacit.arrays import U8
from tacit.errors import ProtocolViolation
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.parties import COLLECTOR, party_name
from tacit.shuffle.protocol.resharing import Need, Outgoing, Setup, ShareState, begin, step
from tacit.shuffle.protocol.shares import Algebra, Vector

Picker = Callable[[int], int]
"""Given how many messages are on their way, the number of the one that arrives next."""


def oldest_first(count: int) -> int:
    """The picker of a network that keeps the order."""
    del count
    return 0


@dataclass
class Station:
    """One shuffler with its inbox: takes a message once, and steps as soon as it can."""

    state: ShareState
    stream: AesStream
    inbox: dict[Need, U8] = field(default_factory=dict[Need, U8])
    seen: dict[Need, bytes] = field(default_factory=dict[Need, bytes])
    """SHA-256 of what has arrived, so that a repetition is told from an equivocation."""

    def take(self, need: Need, body: U8) -> list[Outgoing]:
        """Accept a message, and return all that follows from it."""
        name = sha256(np.ascontiguousarray(body).data).digest()
        if self.seen.setdefault(need, name) != name:
            raise ProtocolViolation(f"{party_name(need.sender)}: two different bodies for the same place; abort")
        # Late repetitions of what was used long ago.
        if need.round < self.state.round or self.state.is_done:
            return []
        self.inbox.setdefault(need, body)
        return self.advance()

    def advance(self) -> list[Outgoing]:
        """Step as long as everything is there that the next step needs."""
        sent: list[Outgoing] = []
        while not self.state.is_done and all(need in self.inbox for need in self.state.needs()):
            # Taken out of the inbox, so that memory holds only what is still needed.
            bodies = {need: self.inbox.pop(need) for need in self.state.needs()}
            self.state, more = step(self.state, bodies, self.stream)
            sent += more
        return sent


@dataclass(frozen=True)
class Message:
    """An outgoing body with its sender."""

    sender: int
    outgoing: Outgoing


def shuffle_in_memory(
    vectors: Sequence[Vector],
    algebra: Algebra,
    streams: Sequence[AesStream],
    *,
    session: bytes = bytes(32),
    attempt: int = 1,
    pick: Picker = oldest_first,
    watch: Callable[[Message], None] | None = None,
) -> dict[int, U8]:
    """Run all rounds; returns what the last hiders hand to the collector, by party.

    `watch` sees every message once when it is made. Messages that are not delivered yet wait in the network.
    """
    stations: dict[int, Station] = {}
    network: list[Message] = []

    def send(sender: int, bodies: Sequence[Outgoing]) -> None:
        for outgoing in bodies:
            message = Message(sender, outgoing)
            network.append(message)
            if watch is not None:
                watch(message)

    for party, (vector, stream) in enumerate(zip(vectors, streams, strict=True), start=1):
        state, sent = begin(Setup(session, attempt, party, len(vectors), algebra), vector, stream)
        stations[party] = Station(state, stream)
        send(party, sent)
    outputs: dict[int, U8] = {}
    while network:
        message = network.pop(pick(len(network)))
        outgoing, sender = message.outgoing, message.sender
        if outgoing.receiver == COLLECTOR:
            outputs[sender] = outgoing.body
        else:
            send(outgoing.receiver, stations[outgoing.receiver].take(outgoing.need(sender), outgoing.body))
    return outputs
