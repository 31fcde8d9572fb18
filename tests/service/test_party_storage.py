"""What a collector keeps of shuffles, on a file and on PostgreSQL: the same contract, and one process that leads."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.service.conftest import Open
from tests.service.waiting import wait_until

from tacit.collector.store.postgres.store import PostgresStore
from tacit.collector.store.sqlite.store import SqliteStore
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import ProtocolViolation, SessionAborted, StorageUnavailable
from tacit.shuffle.crypto.envelope import Envelope, is_evidence
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffler.admission import admission_hash
from tacit.shuffler.letters import Letter, letter, place_of
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.party_uploads import REPEATED, STORED, UNINVITED, NewUpload

MADE = rehearse(ReplayCoins(b"parties"), n_max=5)
ID = MADE.session.id


@pytest.fixture
def opened(open_store: Open) -> Iterator[Callable[[], PartyStore]]:
    """Opens the same database again and again, as several processes would."""
    store, parties = open_store(), list[PartyStore]()

    def open_it() -> PartyStore:
        parties.append(PartyStore(store.open_party()))
        return parties[-1]

    yield open_it
    for each in parties:
        each.close()


@pytest.fixture
def party(opened: Callable[[], PartyStore]) -> PartyStore:
    made = opened()
    made.add_session(MADE.signed, 0, "DRAFT", first=PhaseChange(state="DRAFT", keep={"key": b"secret"}))
    return made


def note(sender: int, body: bytes = b"x" * 32, round_number: int = 0) -> Letter:
    return letter(place_of(MADE.session, "output", sender, 0, round_number), body, MADE.identities[sender])


def test_keys_and_sessions_come_back_as_they_were(party: PartyStore, opened: Callable[[], PartyStore]) -> None:
    keys = party.identity.public, party.seal_key.public
    party.commit(ID, PhaseChange(state="SHUFFLING", progress={"n": 3}, keep={"spots": b"[]"}))
    again = opened()
    assert (again.identity.public, again.seal_key.public) == keys
    record = again.session(ID)
    assert record is not None and (record.state, dict(record.progress)) == ("SHUFFLING", {"n": 3})
    assert record.signed.verify(MADE.pinned).id == ID
    assert (again.kept(ID, "key"), again.kept(ID, "spots"), again.kept(ID, "nothing")) == (b"secret", b"[]", None)
    assert [each.id for each in again.sessions(only_live=True)] == [ID]
    # A session that is there already stays as it is, and so does a secret.
    again.add_session(MADE.signed, 0, "DRAFT", first=PhaseChange(state="DRAFT", keep={"key": b"other"}))
    assert again.kept(ID, "key") == b"secret"
    assert [again.add_secret("salt", text) for text in (b"one", b"two")] == [b"one", b"one"]


def test_rotation_keeps_one_key_before(party: PartyStore) -> None:
    first, second, third = party.seal_key.public, party.rotate_seal_key().public, party.rotate_seal_key().public
    assert [key.public for key in party.seal_keys()] == [third, second] and first != second


def test_a_phase_is_stored_whole_or_not_at_all(party: PartyStore) -> None:
    party.take(note(2))
    mail = [letter(place_of(MADE.session, "close", 0, 2), b"{}", MADE.identities[0])]
    own = place_of(MADE.session, "output", 1, 1)
    with pytest.raises(Exception, match=r"(?i)unique"):
        party.commit(ID, PhaseChange(state="VERIFIED", letters=mail, own=[(own, b"1"), (own, b"2")], used=[own]))
    record = party.session(ID)
    assert record is not None and record.state == "DRAFT"
    assert (party.waiting(), party.arrived(ID)) == ([], {(0, "output", "shuffler_2")})


def test_a_letter_is_taken_once_by_whichever_process(party: PartyStore, opened: Callable[[], PartyStore]) -> None:
    other = opened()
    assert [party.take(note(2)), other.take(note(2)), other.take(note(2, round_number=1))] == [True, False, True]
    assert [each.body for each in party.letters(ID, "output")] == [b"x" * 32] * 2
    party.commit(ID, PhaseChange(state="SHUFFLING", used=[note(2).place]))
    assert other.arrived(ID) == {(1, "output", "shuffler_2")} and other.body(note(2).place) is None
    with pytest.raises(ProtocolViolation) as caught:
        other.take(note(2, b"y" * 32))
    first, second = (Envelope.from_json(item) for item in caught.value.evidence)
    assert is_evidence(first, second, MADE.pinned)


def test_letters_wait_until_they_are_acknowledged(party: PartyStore, opened: Callable[[], PartyStore]) -> None:
    mail = [letter(place_of(MADE.session, "ack", 0, to), bytes([to]) * 9, MADE.identities[0]) for to in (1, 2)]
    party.commit(ID, PhaseChange(state="RELEASED", letters=mail))
    again = opened()
    first, second = again.waiting()
    kept = again.outgoing(first.number)
    assert kept is not None and (kept.head, kept.body) == (mail[0].head, mail[0].body)
    again.acknowledge(first.number)
    assert [each.number for each in party.waiting()] == [second.number] and party.outgoing(first.number) is None
    assert [each.to_json() for each in party.sent(ID)] == [each.envelope.to_json() for each in mail]


def test_uploads_and_tokens_are_judged_one_by_one(party: PartyStore) -> None:
    party.commit(ID, PhaseChange(state="COLLECTING", is_open=True))
    party.add_admissions(ID, [admission_hash(bytes([i]) * 32) for i in (0, 0, 1)])
    tries = [(1, 0), (2, 0), (1, 0), (4, 1)]
    uploads = [NewUpload(ID, bytes([slot]) * 16, b"s", bytes([token]) * 32) for slot, token in tries]
    assert party.add_uploads(uploads) == [STORED, UNINVITED, REPEATED, STORED]
    assert party.add_uploads(uploads[:1]) == [REPEATED]
    assert party.counters(ID) == {STORED: 2, UNINVITED: 1, REPEATED: 2}
    assert party.slots(ID) == bytes([1]) * 16 + bytes([4]) * 16


def test_the_end_erases_all_but_the_last_letters(party: PartyStore) -> None:
    party.take(note(2))
    party.commit(ID, PhaseChange(state="SHUFFLING", keep={"spots": b"secret"}))
    last = letter(place_of(MADE.session, "abort", 0, 1), b"{}", MADE.identities[0])
    party.end(ID, PhaseChange(state="ABORTED", letters=[last]), {"reason": "enough"})
    record = party.session(ID)
    assert record is not None and (record.is_over, record.ending["reason"]) == (True, "enough")
    assert (party.kept(ID, "key"), party.arrived(ID), len(party.waiting())) == (None, set(), 1)
    assert not party.take(note(3))
    with pytest.raises(SessionAborted):
        party.commit(ID, PhaseChange(state="SHUFFLING"))
    party.probe()
    party.forget(ID)
    assert party.sessions() == []


def test_one_process_leads_and_another_takes_over(place: str, opened: Callable[[], PartyStore]) -> None:
    first, second = opened(), opened()
    assert first.leads() and first.leads()
    # A file belongs to one process, so that nobody has to be kept out of it.
    assert second.leads() == ("host=" not in place)
    first.close()
    # The server notices a moment later that the connection is gone.
    wait_until(second.leads)


def test_what_one_process_decides_another_waits_for(
    place: str, opened: Callable[[], PartyStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = opened(), opened()
    monkeypatch.setattr("tacit.shuffler.party_store._PATIENCE_SECONDS", 0.0)
    with first.alone(), first.alone():
        if "host=" in place:
            with pytest.raises(StorageUnavailable, match="another process"), second.alone():
                pass
    with second.alone():
        pass


def test_a_process_whose_connection_broke_does_not_go_on_as_if_it_led(
    place: str, opened: Callable[[], PartyStore]
) -> None:
    if "host=" not in place:
        pytest.skip("a file has no connection that breaks")
    first, second = opened(), opened()
    assert first.leads() and not second.leads()
    database: Any = first._db
    number = database.run("SELECT pg_backend_pid()")[0][0]
    second._rows("SELECT pg_terminate_backend(?)", number)
    # Whatever was begun fails, at the first statement or the second, and never ends up over what the other does.
    with pytest.raises(StorageUnavailable):
        for _ in range(2):
            first.add_session(MADE.signed, 0, "DRAFT")
    wait_until(second.leads)
    assert second.sessions() == [] and not first.leads()


def test_tables_of_a_newer_release_are_refused(party: PartyStore, opened: Callable[[], PartyStore]) -> None:
    party._rows("UPDATE meta SET value = 99 WHERE key = 'version'")
    with pytest.raises(StorageUnavailable, match="schema version 99"):
        opened()


def test_a_backup_takes_shuffles_along_and_marks_what_was_under_way(
    open_store: Open, opened: Callable[[], PartyStore], tmp_path: Path, postgres: Any
) -> None:
    party, ended = opened(), rehearse(ReplayCoins(b"ended")).signed
    party.add_session(ended, 0, "ABORTED")
    party.end(ended.session.id, PhaseChange(state="ABORTED"), {"reason": "too few"})
    party.add_session(MADE.signed, 0, "SHUFFLING", first=PhaseChange(state="SHUFFLING", keep={"key": b"secret"}))
    party.take(note(2))
    mail = letter(place_of(MADE.session, "close", 0, 1), b"{}", MADE.identities[0])
    party.commit(ID, PhaseChange(state="SHUFFLING", progress={"n": 3}, letters=[mail]))
    file, keys = str(tmp_path / "copy.sqlite"), (party.identity.public, party.seal_key.public)
    open_store().backup(file)
    assert oct(Path(f"{file}.shuffle").stat().st_mode & 0o777) == "0o600"
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.sqlite", "copy.sqlite.shuffle"]
    party.close()
    before = Path(f"{file}.shuffle").read_bytes()
    postgres.forget()
    shared = PostgresStore(postgres.url)
    shared.restore(file)
    for store in (SqliteStore.restore(file, tmp_path / "again"), shared):
        again = PartyStore(store.open_party())
        assert (again.identity.public, again.seal_key.public) == keys
        live, over = again.session(ID), again.session(ended.session.id)
        assert live is not None and dict(live.progress) == {"n": 3, "restored": True}
        assert over is not None and over.is_over and "restored" not in over.progress
        assert (again.kept(ID, "key"), again.body(note(2).place)) == (b"secret", b"x" * 32)
        # What waits is sent as it was, byte for byte, and new letters have new numbers.
        (waiting,) = again.waiting()
        kept = again.outgoing(waiting.number)
        assert kept is not None and (kept.head, kept.body) == (mail.head, mail.body)
        again.commit(ID, PhaseChange(state="SHUFFLING", letters=[mail]))
        assert len({each.number for each in again.waiting()}) == 2
        again.rotate_seal_key()
        again.close()
        store.close()
    assert Path(f"{file}.shuffle").read_bytes() == before
    with (
        closing(PostgresStore(postgres.url)) as full,
        pytest.raises(StorageUnavailable, match="has keys of a collector"),
    ):
        full.restore(file)


def test_a_backup_without_shuffles_has_no_file_about_them(open_store: Open, tmp_path: Path) -> None:
    open_store().backup(str(tmp_path / "copy.sqlite"))
    assert [path.name for path in tmp_path.glob("copy*")] == ["copy.sqlite"]
