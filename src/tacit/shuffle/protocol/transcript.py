"""The transcript of a session: what everybody may check afterwards, and what follows from it.

It holds signatures, hashes and counts; no row, seed, slot or word. A respondent looks for the hash of its slot, an
auditor checks that all messages of all rounds were signed, once, and of the stated size.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.device.numbers.canonical import canonical
from tacit.errors import InvalidSpec, ProtocolViolation
from tacit.shuffle.crypto.envelope import LABEL as ENVELOPE_LABEL
from tacit.shuffle.crypto.envelope import Envelope, MessagePlace
from tacit.shuffle.crypto.merkle import merkle_root
from tacit.shuffle.crypto.signing import Identity, check_signature
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.leaves import SlotLeaves, check_statements, took_part
from tacit.shuffle.protocol.opening import ACK_LABEL
from tacit.shuffle.protocol.parties import COLLECTOR, party_name, party_names, rounds_of
from tacit.shuffle.protocol.resharing import COMMIT, OUTPUT, RESHARE, REVEAL, SPLIT, takes_rest
from tacit.shuffle.protocol.sealing import CIPHERTEXT_BYTES, onion_bytes
from tacit.shuffle.protocol.session import PEOS, RESHARING, ShuffleSession, SignedSession

ERASURE_LABEL = "erasure"
HOP_LABEL = "hop"
HOP_PHASE = "hop"
ERASED = "shares, seeds, slots and bodies"
_SEED_WIDTH = 32


def expected_places(session: ShuffleSession, attempt: int) -> list[MessagePlace]:
    """Every message between two parties of a session, in order; messages to oneself are not sent."""
    routes = _chain(session) if session.mode not in RESHARING else _rounds(session)
    return [
        MessagePlace(
            session=session.id, attempt=attempt, round=k, phase=phase, sender=party_name(a), receiver=party_name(b)
        )
        for k, phase, a, b in routes
    ]


def _chain(session: ShuffleSession) -> Iterable[tuple[int, str, int, int]]:
    for hop in range(1, session.shuffler_count + 1):
        yield hop - 1, HOP_PHASE, hop, hop + 1 if hop < session.shuffler_count else COLLECTOR


def _rounds(session: ShuffleSession) -> Iterable[tuple[int, str, int, int]]:
    everybody = range(1, session.shuffler_count + 1)
    rounds = rounds_of(session.shuffler_count)
    for k, hiders in enumerate(rounds):
        pairs = [(a, b) for a in hiders for b in hiders if a != b]
        yield from ((k, COMMIT, a, b) for a, b in pairs)
        yield from ((k, REVEAL, a, b) for a, b in pairs)
        yield from ((k, SPLIT, a, b) for a in everybody if a not in hiders for b in hiders)
        if k < len(rounds) - 1:
            yield from ((k, RESHARE, a, b) for a in hiders for b in everybody if a != b)
        else:
            yield from ((k, OUTPUT, a, COLLECTOR) for a in hiders)


def erasure_note(session: ShuffleSession, attempt: int, party: int, identity: Identity) -> dict[str, Any]:
    """A shuffler's signed statement that it has erased what it held (message M7)."""
    document = {"session": session.id, "attempt": attempt, "by": party_name(party), "erased": ERASED}
    return {**document, "signature": identity.sign(ERASURE_LABEL, document)}


@dataclass(frozen=True, kw_only=True)
class Transcript:
    """Everything that is published about one attempt of a session."""

    session: str
    attempt: int
    roster: Mapping[str, Any]
    """root, n, the shufflers' signatures by name, and the hashes of the slots (`SlotLeaves`) in hexadecimal."""
    rows: int
    """Rows that went through the shuffle, fakes included."""
    envelopes: Sequence[Mapping[str, Any]]
    """All envelopes, in the order of `expected_places`."""
    hops: Sequence[Mapping[str, Any]] = ()
    """What each hop of a chain signed: counts and roots."""
    ack: Mapping[str, Any]
    erasures: Sequence[Mapping[str, Any]] = ()

    def to_json(self) -> dict[str, Any]:
        """The transcript as it is published."""
        return {**vars(self), **{name: list(getattr(self, name)) for name in ("envelopes", "hops", "erasures")}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Transcript":
        """A transcript as it was fetched; nothing is verified yet."""
        try:
            return cls(**document)
        except TypeError:
            raise InvalidSpec("transcript: fields are unknown or missing; see spec/shuffle.md") from None

    @property
    def root(self) -> str:
        """One hash for the whole history of messages: to be printed, posted or signed elsewhere."""
        return merkle_root([canonical(dict(envelope)) for envelope in self.envelopes]).hex()


@dataclass(frozen=True)
class Verification:
    """What was checked, and what that does and does not prove, in plain sentences."""

    checked: tuple[str, ...]
    proves: tuple[str, ...]
    does_not_prove: tuple[str, ...]


def verify(transcript: Transcript, signed: SignedSession, pinned: Mapping[str, bytes]) -> Verification:
    """Check a transcript against its session and the pinned keys; ProtocolViolation names what is wrong.

    >>> Verification((), ("all rows came out",), ()).proves[0]
    'all rows came out'
    """
    # Parts come from several parties, any of which may have sent anything: what has no shape is no evidence.
    try:
        return _verified(transcript, signed, pinned)
    except (KeyError, TypeError, AttributeError):
        raise ProtocolViolation("transcript: a part of it is missing or has another type") from None


def _verified(transcript: Transcript, signed: SignedSession, pinned: Mapping[str, bytes]) -> Verification:
    session = signed.verify(pinned)
    if transcript.session != session.id:
        raise ProtocolViolation("transcript: it is about another session")
    checked = [f"the session is signed by the collector and all {session.shuffler_count} shufflers"]
    checked.append(_check_roster(transcript, session, pinned))
    checked.append(_check_envelopes(transcript, session, pinned))
    if session.mode not in RESHARING:
        checked.append(_check_hops(transcript, session, pinned))
    elif list(transcript.hops):
        raise ProtocolViolation(f"transcript: mode {session.mode} has no hops")
    checked.append(_check_ack(transcript, session, pinned))
    erased = _check_erasures(transcript, session, pinned)
    checked.append(f"{len(erased)} of {session.shuffler_count} shufflers have signed that they erased what they held")
    return Verification(tuple(checked), *_meaning(session, len(erased)))


def leaves_of(transcript: Transcript) -> SlotLeaves:
    """The hashes of the slots in a transcript; they are not compared with its root yet."""
    try:
        return SlotLeaves(bytes.fromhex(transcript.roster["leaves"]))
    except (KeyError, TypeError, ValueError):
        raise ProtocolViolation("transcript: the hashes of the slots are missing or no hexadecimal digits") from None


def check_receipt(transcript: Transcript, receipt: Mapping[str, Any]) -> dict[str, Any] | None:
    """What shows that the slot of a receipt is among those of a verified transcript; None if it is not."""
    proof = leaves_of(transcript).proof(bytes.fromhex(receipt["slot"]))
    if receipt["session"] != transcript.session or proof is None:
        return None
    return proof if took_part(transcript.roster["root"], transcript.roster["n"], proof) else None


def _check_roster(transcript: Transcript, session: ShuffleSession, pinned: Mapping[str, bytes]) -> str:
    roster = transcript.roster
    statement = {
        "session": session.id,
        "attempt": transcript.attempt,
        "root": roster["root"],
        "n": roster["n"],
    }
    check_statements(session, statement, roster["signatures"], pinned)
    leaves_of(transcript).check(roster["root"], roster["n"])
    if roster["n"] - session.spot_checks < session.n_min:
        raise ProtocolViolation(f"transcript: {roster['n']} uploads are too few; the session had to be aborted")
    if session.mode in RESHARING and transcript.rows != roster["n"] + session.fake_rows:
        raise ProtocolViolation(f"transcript: {transcript.rows} rows are not the uploads and the fakes together")
    return f"all shufflers signed the same {roster['n']} uploads, whose hashes are here, enough for the certificate"


def _check_envelopes(transcript: Transcript, session: ShuffleSession, pinned: Mapping[str, bytes]) -> str:
    envelopes = [Envelope.from_json(item) for item in transcript.envelopes]
    # Exactly the expected list: a message too few, too many or in another place is the same complaint.
    if [envelope.place for envelope in envelopes] != expected_places(session, transcript.attempt):
        raise ProtocolViolation("transcript: the envelopes are not those of all messages of this session, each once")
    for envelope in envelopes:
        check_signature(pinned, envelope.place.sender, ENVELOPE_LABEL, envelope.document, envelope.signature)
        if not _right_size(envelope, session, transcript.rows):
            raise ProtocolViolation(f"{envelope.place}: it has another size than the session prescribes")
    return f"{len(envelopes)} messages are there, each once, signed by its sender and of the right size"


def _right_size(envelope: Envelope, session: ShuffleSession, rows: int) -> bool:
    place, size = envelope.place, (envelope.rows, envelope.width)
    if place.phase in (COMMIT, REVEAL):
        return size == (1, _SEED_WIDTH)
    if place.phase == HOP_PHASE:
        return envelope.width == onion_bytes(session, place.round + 2)
    is_ciphertext = session.mode == PEOS and envelope.width == CIPHERTEXT_BYTES
    if place.phase in (SPLIT, RESHARE) and session.mode != PEOS:
        receiver = party_names(session.shuffler_count).index(place.receiver)
        if not takes_rest(session.shuffler_count, place.round, place.phase, receiver):
            return size == (1, _SEED_WIDTH)
    return envelope.rows == rows and (is_ciphertext or envelope.width == LAYOUTS[session.mode].width)


def _check_hops(transcript: Transcript, session: ShuffleSession, pinned: Mapping[str, bytes]) -> str:
    if len(transcript.hops) != session.shuffler_count:
        raise ProtocolViolation("transcript: every hop must have signed its counts")
    taken, root = transcript.roster["n"], transcript.hops[0]["root_in"]
    for number, hop in enumerate(transcript.hops, start=1):
        document = {name: value for name, value in hop.items() if name != "signature"}
        check_signature(pinned, party_name(number), HOP_LABEL, document, hop["signature"])
        # A hop signs in every session; one statement must not stand for another.
        if (hop["session"], hop["attempt"], hop["by"]) != (session.id, transcript.attempt, party_name(number)):
            raise ProtocolViolation(f"{party_name(number)}: the counts of its hop are about another session")
        # Both sides signed: a hop cannot blame the one before it for rows that it lost itself.
        if (hop["taken"], hop["root_in"]) != (taken, root):
            raise ProtocolViolation(f"{party_name(number)}: it took other rows than were sent to it")
        _check_counts(hop, session, transcript.envelopes[number - 1]["rows"])
        taken, root = hop["sent"], hop["root_out"]
    if taken != transcript.rows:
        raise ProtocolViolation(f"transcript: {transcript.rows} rows are not the {taken} that the last hop sent")
    return "at every hop, rows taken, dropped, added and sent add up, and it took what the one before it sent"


def _check_counts(hop: Mapping[str, Any], session: ShuffleSession, enclosed: int) -> None:
    """Refuse counts of a hop that no honest one has: every row is kept or dropped, and all fakes are there."""
    counts = [hop[name] for name in ("taken", "duplicates", "failures", "fakes", "sent")]
    if any(type(count) is not int or count < 0 for count in counts):
        raise ProtocolViolation(f"{hop['by']}: the counts of its hop are not whole numbers of at least 0")
    if hop["taken"] - hop["duplicates"] - hop["failures"] + hop["fakes"] != hop["sent"] or hop["sent"] != enclosed:
        raise ProtocolViolation(f"{hop['by']}: the counts of its hop do not add up")
    if hop["fakes"] != session.fakes_each:
        raise ProtocolViolation(f"{hop['by']}: it made {hop['fakes']} fakes, the session asks for {session.fakes_each}")


def _check_ack(transcript: Transcript, session: ShuffleSession, pinned: Mapping[str, bytes]) -> str:
    document = {name: value for name, value in transcript.ack.items() if name != "signature"}
    check_signature(pinned, party_name(COLLECTOR), ACK_LABEL, document, transcript.ack["signature"])
    same = (document["session"], document["attempt"], document["rows"])
    if same != (session.id, transcript.attempt, transcript.rows):
        raise ProtocolViolation("collector: it acknowledged other rows than the shufflers sent")
    return f"the collector signed that it has {document['rows']} rows, {document['failures']} of which did not open"


def _check_erasures(transcript: Transcript, session: ShuffleSession, pinned: Mapping[str, bytes]) -> list[str]:
    names: list[str] = []
    for note in transcript.erasures:
        document = {name: value for name, value in note.items() if name != "signature"}
        check_signature(pinned, document["by"], ERASURE_LABEL, document, note["signature"])
        if (document["session"], document["attempt"]) != (session.id, transcript.attempt):
            raise ProtocolViolation(f"{document['by']}: the erasure note is about another session")
        names.append(document["by"])
    return sorted(set(names))


def _meaning(session: ShuffleSession, erased: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    r, honest = session.shuffler_count, session.honest
    proves = (
        "The parties that are named here, and nobody else, exchanged these messages, and none of them can deny it.",
        "Every slot whose hash is listed took part; a receipt shows whether its report was among them, now or later.",
        f"All shufflers agreed that at least {session.n_min} respondents took part before anything was shuffled.",
    )
    hidden = f"{honest} of the {r} shufflers" if honest > 1 else f"one of the {r} shufflers"
    limits = [
        f"That the order is secret: it is if at least {hidden} kept their part secret. No signature shows that.",
        "That respondents are different people: who admits uploads can surround one person with made-up ones.",
        "That fakes were drawn uniformly: a shuffler knows and may choose the fakes that it makes alone.",
        "That erased data are gone: a note is a promise.",
    ]
    # Only sealed rows authenticate themselves to the collector.
    if session.mode not in ("osh",):
        limits.insert(1, "That nobody shifted or replaced rows: in this mode only the spot checks speak for that.")
    if erased < r:
        limits.append(f"{r - erased} shufflers have not yet signed that they erased what they held.")
    if not session.claims_amplification:
        limits.insert(0, "Any protection beyond the local epsilon: one party runs several roles of this session.")
    return proves, tuple(limits)
