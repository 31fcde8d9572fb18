"""What the collector does with shuffled rows (message M6): add up, open, count what is wrong, and decide on release."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any

import numpy as np

from tacit.arrays import U8, U64, Mask
from tacit.core.statistics.normal import normal_sf
from tacit.errors import OpenFailed, ProtocolViolation, ReleaseRefused
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.crypto.signing import Identity
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.parties import party_name, rounds_of
from tacit.shuffle.protocol.sealing import SEALED_WORD_BYTES, word_info
from tacit.shuffle.protocol.session import OSH_Z, ShuffleSession
from tacit.shuffle.protocol.shares import Body, PlainAlgebra, as_rows, as_words

MAX_BAD_PER_THOUSAND = 1
"""More rows than this that do not open, or come twice, and nothing is released."""
ALARM = 1e-9
"""False-alarm probability of each statistical check; an alarm is a note, never a refusal."""
ACK_LABEL = "ack"
_SEED_CELLS = 256


def vectors_of(session: ShuffleSession, outputs: Mapping[int, Body], count: int, widths: Sequence[int]) -> list[U8]:
    """The vectors of all t last hiders, in their order; ProtocolViolation names whose has other rows than agreed."""
    wanted = rounds_of(session.shuffler_count)[-1]
    if set(outputs) != set(wanted):
        missing = [party_name(party) for party in wanted if party not in outputs]
        raise ProtocolViolation(f"output: vectors are needed of {len(wanted)} shufflers; missing: {', '.join(missing)}")
    for party in wanted:
        body = outputs[party]
        if (body.size if isinstance(body, np.ndarray) else len(body)) not in [count * width for width in widths]:
            raise ProtocolViolation(f"{party_name(party)}: the output is not {count} rows of mode {session.mode}")
    return [as_rows(outputs[party], count) for party in wanted]


def combine(session: ShuffleSession, outputs: Mapping[int, Body], count: int) -> U8:
    """The permuted rows, from the vectors of all t last hiders (modes osh and osh-z)."""
    layout = LAYOUTS[session.mode]
    return PlainAlgebra(layout).join(count, None, vectors_of(session, outputs, count, [layout.width]))[0]


def open_rows(session: ShuffleSession, key: HpkeKey, rows: U8) -> tuple[U64, Mask]:
    """The words of rows, and which rows opened; rows can be opened in pieces, by several processes.

    A row that was tampered with does not open in mode osh. In mode osh-z the added word beside it shifts unseen.
    """
    info = word_info(session)
    words, opened = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.bool_)
    for i, row in enumerate(rows[:, :SEALED_WORD_BYTES]):
        try:
            words[i] = int.from_bytes(key.open(row.tobytes(), info=info), "little")
            opened[i] = True
        # Which rows fail is known to the collector alone, and only their number is published.
        except OpenFailed:
            continue
    if session.mode == OSH_Z:
        words += as_words(rows)[:, -1]
    return words, opened


@dataclass(frozen=True, eq=False)
class OpenedRows:
    """The words of all rows that opened, each sealed row once, and how many did not or came again."""

    words: U64
    rows: int
    failures: int
    duplicates: int

    @property
    def bad(self) -> int:
        """Rows that are not counted."""
        return self.failures + self.duplicates


def sift(rows: U8, words: U64, opened: Mask) -> OpenedRows:
    """Leave out what did not open, and further copies of the same sealed bytes: replays, or clients that sent twice."""
    sealed = np.ascontiguousarray(rows[:, :SEALED_WORD_BYTES]).view(f"V{SEALED_WORD_BYTES}").reshape(-1)
    # The first of equal rows stays, wherever it is: their order is random anyway.
    kept = np.flatnonzero(opened)
    _, first = np.unique(sealed[kept], return_index=True)
    counted = words[kept[np.sort(first)]]
    return OpenedRows(counted, len(rows), len(rows) - len(kept), len(kept) - len(counted))


@dataclass(frozen=True, eq=False)
class Released:
    """Words that may be decoded and counted, fakes among them, and what the operator should know."""

    words: U64
    n: int
    """Respondents, without spot checks, fakes and bad rows."""
    fakes: int
    alarms: tuple[str, ...]


def release(
    session: ShuffleSession, opened: OpenedRows, n: int, spot_words: Sequence[int], *, dropped: int = 0
) -> Released:
    """The words to be counted, or ReleaseRefused: nothing is counted of a shuffle in which too much went wrong.

    `n` is the number of slots that the shufflers signed; `spot_words` are the words of the spot checks whose slots are
    among them. A fraction f of replaced rows escapes s spot checks with probability (1 - f)^s. `dropped` is the number
    of rows that the hops of a chain signed to have dropped.
    """
    agreed = n + session.fake_rows - dropped
    if opened.rows != agreed:
        raise ReleaseRefused(f"release: {opened.rows} rows arrived, {agreed} were signed for")
    if (opened.bad + dropped) * 1000 > MAX_BAD_PER_THOUSAND * opened.rows:
        raise ReleaseRefused(
            f"release: {opened.failures + dropped} of {opened.rows} rows do not open and {opened.duplicates} came "
            f"twice, more than {MAX_BAD_PER_THOUSAND} in 1000; somebody alters rows"
        )
    words = _without_spot_checks(session, opened.words, spot_words)
    # Which of the bad rows were fakes is unknown; for the certificate all of them count as lost respondents.
    respondents = len(words) - session.fake_rows
    if respondents < session.n_min:
        raise ReleaseRefused(f"release: {respondents} respondents, the certificate needs {session.n_min}")
    return Released(words, respondents, session.fake_rows, _alarms(session, opened))


def _without_spot_checks(session: ShuffleSession, words: U64, spot_words: Sequence[int]) -> U64:
    wanted = np.asarray(spot_words, np.uint64)
    if len(np.unique(wanted)) != len(wanted) or len(wanted) > session.spot_checks:
        raise ReleaseRefused(f"release: spot checks must be distinct words, at most {session.spot_checks} of them")
    # One missing spot check is enough: honest parties lose no row whose slot they signed for.
    missing = int(np.count_nonzero(~np.isin(wanted, words)))
    if missing:
        raise ReleaseRefused(f"release: {missing} of {len(wanted)} spot checks are missing; somebody replaces rows")
    _, first = np.unique(words, return_index=True)
    return np.delete(words, first[np.isin(words[first], wanted)])


def _alarms(session: ShuffleSession, opened: OpenedRows) -> tuple[str, ...]:
    notes: list[str] = []
    if opened.failures:
        notes.append(f"{opened.failures} rows did not open: a broken client, or somebody alters rows")
    if opened.duplicates:
        notes.append(f"{opened.duplicates} sealed rows came twice: a client sent twice, or somebody replays rows")
    pairs = len(opened.words) - len(np.unique(opened.words))
    # Words of one report are uniform, so that chance repeats a word about n^2/2^65 times the number of codes at most.
    codes = 1 if session.words.seeded else session.words.outcomes
    expected = len(opened.words) ** 2 / 2**65 * codes
    if pairs > _poisson_limit(expected):
        notes.append(f"{pairs} words came twice, chance explains {expected:.2g}: somebody copies reports")
    if session.words.seeded and _uneven(opened.words >> np.uint64(56)):
        notes.append("seeds are not evenly spread: somebody chooses them")
    return tuple(notes)


def _poisson_limit(mean: float) -> int:
    """The least k that a Poisson count exceeds with probability below ALARM."""
    mass, limit = exp(-mean), 0
    tail = 1 - mass
    while tail > ALARM:
        limit += 1
        mass *= mean / limit
        tail -= mass
    return limit


def _uneven(cells: U64) -> bool:
    """Whether a chi-square test, by the cube-root normal approximation, rejects that all cells are equally likely."""
    expected = len(cells) / _SEED_CELLS
    # The chi-square law needs a few reports in every cell.
    if expected < 5:
        return False
    counts = np.bincount(cells.astype(np.int64), minlength=_SEED_CELLS)
    degrees = _SEED_CELLS - 1
    statistic = float(((counts - expected) ** 2).sum() / expected)
    spread = 2 / (9 * degrees)
    return normal_sf(((statistic / degrees) ** (1 / 3) - (1 - spread)) / sqrt(spread)) < ALARM


def acknowledge(session: ShuffleSession, attempt: int, opened: OpenedRows, identity: Identity) -> dict[str, Any]:
    """The collector's signed statement that it has the rows: shufflers may erase theirs."""
    document = {"session": session.id, "attempt": attempt, "rows": opened.rows, "failures": opened.failures}
    return {**document, "signature": identity.sign(ACK_LABEL, document)}
