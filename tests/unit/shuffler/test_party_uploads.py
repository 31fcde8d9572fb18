"""Uploads are rows of many: each slot counts once, whatever happens in between, and comes out in its order."""

from itertools import permutations
from pathlib import Path

import pytest

from tacit.device.numbers.coins import ReplayCoins
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffler.admission import Invitations
from tacit.shuffler.party_database import PartyDatabase
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.party_uploads import REPEATED, STORED, NewUpload, StoredUploads

MADE = rehearse(ReplayCoins(b"uploads"), n_max=9)
ID = MADE.session.id


def upload(number: int, token: bytes = b"") -> NewUpload:
    return NewUpload(ID, bytes([number]) * 16, bytes([number]) * 56, token)


def opened(folder: Path, admission: Invitations | None = None) -> PartyStore:
    store = PartyStore(folder, admission=admission)
    store.add_session(MADE.signed, 1, "COLLECTING")
    store.commit(ID, PhaseChange(state="COLLECTING", is_open=True))
    return store


def test_what_was_stored_before_a_restart_is_known_after_it(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert store.add_uploads([upload(7), upload(2)]) == [STORED, STORED]
    store.close()
    again = opened(tmp_path)
    assert again.add_uploads([upload(2), upload(5), upload(7), upload(5)]) == [REPEATED, STORED, REPEATED, REPEATED]
    held = again.uploads(ID)
    assert held.slots == again.slots(ID) == b"".join(bytes([i]) * 16 for i in (2, 5, 7))
    assert held.shares[:, 0].tolist() == [2, 5, 7]
    again.close()


class Failing(Invitations):
    """Invitations whose table breaks when a certain token comes."""

    def spend(self, db: PartyDatabase, session: int, token: bytes) -> bool:
        if token == b"broken":
            raise OSError("no table")
        return True


def test_what_was_rolled_back_can_be_sent_again(tmp_path: Path) -> None:
    store = opened(tmp_path, Failing())
    store.add_admissions(ID, [bytes(32)])
    with pytest.raises(OSError, match="no table"):
        store.add_uploads([upload(1), upload(2, b"broken")])
    assert store.slots(ID) == b""
    assert store.add_uploads([upload(1)]) == [STORED]
    record = store.session(ID)
    assert record is not None and record.uploads == 1
    store.close()


def test_slots_that_begin_alike_are_sorted_whole() -> None:
    slots = [bytes(8) + bytes([i]) * 8 for i in (1, 2, 200)] + [b"\xff" * 16]
    for order in permutations(range(4)):
        groups = [(slots[i], bytes([i]) * 8) for i in order]
        held = StoredUploads.of(groups)
        assert held.slots == b"".join(slots) and held.shares[:, 0].tolist() == [0, 1, 2, 3]
    assert StoredUploads.of([]).slots == b""
