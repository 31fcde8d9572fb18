"""What a party keeps survives it, once, and what is erased is gone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import ProtocolViolation, SessionAborted, StorageUnavailable
from tacit.hosting.sqlite import open_writer
from tacit.shuffle.crypto.envelope import Envelope, is_evidence
from tacit.shuffle.protocol.rehearsal import Rehearsed, rehearse
from tacit.shuffle.protocol.session import SignedSession
from tacit.shuffler.admission import admission_hash
from tacit.shuffler.letters import Letter, letter, place_of
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.party_uploads import FULL, REPEATED, STORED, UNINVITED, NewUpload

MADE = rehearse(ReplayCoins(b"parties"), n_max=5)
ID = MADE.session.id


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PartyStore]:
    made = PartyStore(tmp_path)
    made.add_session(MADE.signed, 1, "JOINED")
    yield made
    made.close()


def note(made: Rehearsed, sender: int, body: bytes = b"x" * 32, phase: str = "commit", round_number: int = 0) -> Letter:
    return letter(place_of(made.session, phase, sender, 1, round_number), body, made.identities[sender])


def test_keys_are_drawn_once(tmp_path: Path) -> None:
    first = PartyStore(tmp_path)
    keys = first.identity.public, first.seal_key.public
    first.close()
    again = PartyStore(tmp_path)
    assert (again.identity.public, again.seal_key.public) == keys
    assert oct((tmp_path / "party.sqlite").stat().st_mode & 0o777) == "0o600"
    again.close()


def test_rotation_keeps_one_key_before_and_those_of_live_sessions(tmp_path: Path) -> None:
    store = PartyStore(tmp_path, coins=ReplayCoins(b"keys"))
    first = store.seal_key.public
    second = store.rotate_seal_key().public
    assert [key.public for key in store.seal_keys()] == [second, first]
    third = store.rotate_seal_key().public
    assert [key.public for key in store.seal_keys()] == [third, second]
    store.close()


def test_a_key_that_a_session_needs_is_not_erased(tmp_path: Path) -> None:
    store = PartyStore(tmp_path, coins=ReplayCoins(b"keys"))
    old = store.seal_key.public
    first, *others = MADE.session.shufflers
    session = replace(MADE.session, shufflers=(replace(first, seal_key=old.hex()), *others))
    store.add_session(SignedSession(session=session, signatures={}), 1, "JOINED")
    for _ in range(3):
        store.rotate_seal_key()
    assert old in [key.public for key in store.seal_keys()]
    store.end(session.id, PhaseChange(state="ABORTED"))
    store.rotate_seal_key()
    assert old not in [key.public for key in store.seal_keys()]
    store.close()


def test_a_database_of_a_newer_release_is_refused(store: PartyStore, tmp_path: Path) -> None:
    store._rows("UPDATE meta SET value = 99 WHERE key = 'version'")
    with pytest.raises(StorageUnavailable, match="schema version 99"):
        PartyStore(tmp_path)


def test_a_session_comes_back_as_it_was(store: PartyStore, tmp_path: Path) -> None:
    store.commit(ID, PhaseChange(state="ROUND", progress={"round": 2, "phase": "reveal"}, keep={"machine": b"{}"}))
    again = PartyStore(tmp_path)
    record = again.session(ID)
    assert record is not None
    assert (record.id, record.party, record.state, dict(record.progress)) == (
        ID, 1, "ROUND", {"round": 2, "phase": "reveal"}
    )  # fmt: skip
    assert again.kept(ID, "machine") == b"{}"
    assert record.signed.verify(MADE.pinned).id == ID
    assert again.session("") is None
    again.close()


def test_a_phase_is_stored_whole_or_not_at_all(store: PartyStore) -> None:
    store.take(note(MADE, 2))
    own = place_of(MADE.session, "reshare", 1, 1)
    change = PhaseChange(
        state="ROUND",
        keep={"vector 0": b"rows"},
        letters=[letter(place_of(MADE.session, "reveal", 1, 2), b"seed", MADE.identities[1])],
        # The second of two bodies to oneself for one place cannot be stored, after all the rest was.
        own=[(own, b"one"), (own, b"two")],
        used=[note(MADE, 2).place],
    )
    with pytest.raises(Exception, match="UNIQUE"):
        store.commit(ID, change)
    record = store.session(ID)
    assert record is not None
    assert record.state == "JOINED"
    assert store.kept(ID, "vector 0") is None
    assert (store.waiting(), store.arrived(ID)) == ([], {(0, "commit", "shuffler_2")})


def test_a_letter_is_taken_once_and_a_contradiction_is_evidence(store: PartyStore) -> None:
    assert store.take(note(MADE, 2))
    assert not store.take(note(MADE, 2))
    assert store.take(note(MADE, 2, round_number=1))
    # The body has been used and dropped; a contradiction is still noticed.
    store.commit(ID, PhaseChange(state="ROUND", used=[note(MADE, 2).place]))
    assert store.arrived(ID) == {(1, "commit", "shuffler_2")}
    with pytest.raises(ProtocolViolation) as caught:
        store.take(note(MADE, 2, b"y" * 32))
    first, second = (Envelope.from_json(item) for item in caught.value.evidence)
    assert is_evidence(first, second, MADE.pinned)
    assert not store.take(note(MADE, 2))


def test_letters_wait_until_they_are_acknowledged(store: PartyStore, tmp_path: Path) -> None:
    letters = [letter(place_of(MADE.session, "split", 1, to), bytes([to]) * 56, MADE.identities[1]) for to in (2, 3)]
    store.commit(ID, PhaseChange(state="ROUND", letters=letters))
    again = PartyStore(tmp_path)
    first, second = again.waiting()
    assert (first.receiver, second.receiver, first.phase) == ("shuffler_2", "shuffler_3", "split")
    kept = again.outgoing(first.number)
    assert kept is not None
    assert (kept.head, kept.body) == (letters[0].head, letters[0].body)
    again.acknowledge(first.number)
    assert [each.number for each in again.waiting()] == [second.number]
    assert again.outgoing(first.number) is None
    assert [each.to_json() for each in again.sent(ID)] == [each.envelope.to_json() for each in letters]
    again.close()


def test_uploads_of_a_group_are_judged_one_by_one(store: PartyStore) -> None:
    uploads = [NewUpload(ID, bytes([i]) * 16, b"share") for i in (9, 3, 9, 1, 2, 4, 5)]
    assert store.add_uploads(uploads[:1]) == ["closed"]
    store.commit(ID, PhaseChange(state="COLLECTING", is_open=True))
    refused = NewUpload(ID, b"", b"", refusal="unreadable")
    strange = NewUpload("ff" * 32, b"s" * 16, b"")
    outcomes = store.add_uploads([*uploads, refused, strange])
    assert outcomes == [STORED, STORED, REPEATED, STORED, STORED, STORED, FULL, "unreadable", "closed"]
    assert store.slots(ID) == b"".join(bytes([i]) * 16 for i in (1, 2, 3, 4, 9))
    assert store.counters(ID) == {"closed": 1, "full": 1, "repeated": 1, "stored": 5, "unreadable": 1}
    assert store.add_uploads([uploads[-1], uploads[0]]) == [FULL, REPEATED]


def test_dropping_the_uploads_of_a_session_leaves_those_of_others(store: PartyStore) -> None:
    other = rehearse(ReplayCoins(b"others"), n_max=5)
    store.add_session(other.signed, 1, "JOINED")
    sessions = (ID, other.session.id)
    for session in sessions:
        store.commit(session, PhaseChange(state="COLLECTING", is_open=True))
    store.add_uploads([NewUpload(session, bytes([i]) * 16, b"share") for session in sessions for i in (1, 2)])
    store.commit(ID, PhaseChange(state="FROZEN", drops_uploads=True))
    assert [len(store.uploads(session).shares) for session in sessions] == [0, 2]
    # The last ones go by whole pages.
    store.commit(other.session.id, PhaseChange(state="FROZEN", drops_uploads=True))
    assert [len(store.uploads(session).shares) for session in sessions] == [0, 0]


def test_uploads_of_an_older_database_stay(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    PartyStore(folder).close()
    db = open_writer(folder / "party.sqlite", None)
    # What the first version had, with an upload in it.
    db.run("DROP TABLE uploads; CREATE TABLE uploads (session INTEGER NOT NULL REFERENCES sessions, "
           "slot BLOB NOT NULL, share BLOB NOT NULL, PRIMARY KEY (session, slot)) STRICT, WITHOUT ROWID;"
           "UPDATE meta SET value = 1 WHERE key = 'version'")  # fmt: skip
    db.run("INSERT INTO sessions (key, id, document, party, state, progress, most_uploads) VALUES "
           "(1, ?, x'', 1, 'COLLECTING', '{}', 5)", ID)  # fmt: skip
    db.run("INSERT INTO uploads VALUES (1, ?, ?)", b"s" * 16, b"share")
    db.close()
    store = PartyStore(folder)
    assert (held := store.uploads(ID)).slots == b"s" * 16 and held.shares.tobytes() == b"share"
    store.close()


def test_a_token_is_spent_with_the_upload_that_is_stored(store: PartyStore) -> None:
    store.commit(ID, PhaseChange(state="COLLECTING", is_open=True))
    store.add_admissions(ID, [admission_hash(bytes([i]) * 32) for i in range(2)])
    store.add_admissions(ID, [admission_hash(bytes(32))])
    tries = [(1, 0), (2, 0), (1, 0), (3, 7), (4, 1)]
    uploads = [NewUpload(ID, bytes([slot]) * 16, b"s", bytes([token]) * 32) for slot, token in tries]
    assert store.add_uploads(uploads) == [STORED, UNINVITED, REPEATED, UNINVITED, STORED]


def test_the_end_of_a_session_leaves_no_secret_in_the_file(store: PartyStore, tmp_path: Path) -> None:
    store.commit(ID, PhaseChange(state="COLLECTING", is_open=True))
    secrets = [bytes([65 + i]) * 40 for i in range(5)]
    store.add_uploads([NewUpload(ID, secret[:16], secret) for secret in secrets])
    store.take(note(MADE, 2, b"seed of another!" * 2))
    kept = {"vector 0": b"rows of a vector" * 1000}
    mail = [letter(place_of(MADE.session, "reveal", 1, 2), b"seed of my own!!" * 2, MADE.identities[1])]
    store.commit(ID, PhaseChange(state="ROUND", keep=kept, letters=mail))

    def content() -> bytes:
        return b"".join((tmp_path / f"party.sqlite{end}").read_bytes() for end in ("", "-wal"))

    needles = [*(secret[:16] for secret in secrets), b"seed of another!", b"rows of a vector", b"seed of my own!!"]
    assert all(needle in content() for needle in needles)
    last = letter(place_of(MADE.session, "erasure", 1, 0), b"the last letter", MADE.identities[1])
    store.end(ID, PhaseChange(state="ERASED", letters=[last]), {"reason": "done"})
    assert [needle for needle in needles if needle in content()] == []
    assert b"the last letter" in content()
    record = store.session(ID)
    assert record is not None
    assert (record.is_over, record.ending["reason"], record.uploads) == (True, "done", 5)
    assert not store.take(note(MADE, 3))
    with pytest.raises(SessionAborted):
        store.commit(ID, PhaseChange(state="ROUND", keep={"machine": b"again"}))
    store.forget(ID)
    assert store.sessions() == []


def test_a_live_session_is_not_forgotten(store: PartyStore) -> None:
    with pytest.raises(StorageUnavailable, match="has not ended"):
        store.forget(ID)
