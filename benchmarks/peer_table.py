"""The rates of all peers side by side, with Tacit's and the ratio to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lines import rate, times
from peers.environments import PEERS
from session import NotMeasured, Session

OFFERS: dict[str, tuple[str, ...]] = {
    "pure-ldp": ("GRR", "OLH", "HRR", "OUE"),
    "multi-freq-ldpy": ("GRR", "OLH", "OUE"),
    "ldp-toolbox": ("GRR", "OLH", "OUE"),
    "opendp": ("GRR", "SUE"),
}
# OpenDP has the client half of randomized response over categories alone.
CLIENT_ONLY = {("opendp", "GRR")}
MECHANISMS = ("GRR", "OLH", "HRR", "OUE", "SUE")
HALVES = {"encode": "privatize", "server": "tally"}
NOTES = (
    "A cell is the peer's rate and, in brackets, how many times faster Tacit is; * means extrapolated.",
    "Environments: `benchmarks/peers/requirements-*.txt`. Without xxhash<4, local hashing raises "
    "TypeError in pure-ldp, multi-freq-ldpy and ldp-toolbox.",
    "multi-freq-ldpy and ldp-toolbox count, invert, clip and normalise in one call; pure-ldp's and Tacit's "
    "tally is counting alone.",
    "ldp-toolbox tallies OLH in worker processes on all cores (wall clock); everything else is one thread.",
    "All peers but opendp draw their noise from generators that are not cryptographic; Tacit's SystemCoins "
    "are the operating system's.",
)


@dataclass(frozen=True)
class Entry:
    """One row: a mechanism, a half of it, Tacit's rate (0: not measured) and a cell for each peer."""

    mechanism: str
    half: str
    tacit: float
    cells: tuple[str, ...]


@dataclass(frozen=True)
class PeerTable:
    """All rows, the names of the columns and the notes below."""

    names: tuple[str, ...]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...]


def measure_peers(session: Session) -> PeerTable:
    """Measure every half of every mechanism that some peer has."""
    entries = tuple(_entry(session, mechanism, what) for mechanism in MECHANISMS for what in HALVES)
    return PeerTable(tuple(_named(session, peer) for peer in PEERS), entries, NOTES)


def _named(session: Session, peer: str) -> str:
    versions = {answer["version"] for answer in session.answers(peer) if "version" in answer}
    return f"{peer} {versions.pop() if versions else '(not running)'}"


def _entry(session: Session, mechanism: str, what: str) -> Entry:
    tacit = _tacit_rate(session, mechanism, HALVES[what])
    cells = tuple(_cell(session, peer, mechanism, what, tacit) for peer in PEERS)
    return Entry(mechanism, HALVES[what], tacit, cells)


def _tacit_rate(session: Session, mechanism: str, half: str) -> float:
    n = session.size(100_000)
    try:
        return n / session.work(half, kind=mechanism, n=n, d=1024, repeats=session.repeats)["tacit"]
    except NotMeasured:
        return 0.0


def _cell(session: Session, peer: str, mechanism: str, what: str, tacit: float) -> str:
    if mechanism not in OFFERS[peer] or (what == "server" and (peer, mechanism) in CLIENT_ONLY):
        return "-"
    answer: dict[str, Any] = session.peer(peer, what, mechanism, 1024)
    if "error" in answer:
        return f"broken: {answer['error']}"
    faster = f" ({times(tacit / answer['rate'])})" if tacit else ""
    return f"{rate(answer['rate'])}{'*' if answer['extrapolated'] else ''}{faster}"
