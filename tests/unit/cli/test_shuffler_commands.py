"""`tacit shuffler` and `tacit relay`, without a network."""

import json
from pathlib import Path

from click.testing import CliRunner

from tacit.cli import cli
from tacit.device.numbers.coins import ReplayCoins
from tacit.errors import InvalidSpec
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffler.letters import ABORT, ERASURE
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.party_uploads import NewUpload


def run(*arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exit_code == status, result.output
    return result.output


def test_the_identity_stays_and_the_seal_key_rotates(tmp_path: Path) -> None:
    shown = run("shuffler", "key", "--data", str(tmp_path))
    first, second = (
        json.loads(run("shuffler", "key", "--data", str(tmp_path), "--json", *more)) for more in ([], ["--rotate"])
    )
    assert first["identity"] in shown and first["seal_key"] in shown
    assert first["identity"] == second["identity"] and first["seal_key"] != second["seal_key"]


def test_sessions_are_listed_and_given_up(tmp_path: Path) -> None:
    made = rehearse(ReplayCoins(b"parties"))
    store = PartyStore(tmp_path)
    store.add_session(made.signed, 2, "JOINED")
    store.commit(made.session.id, PhaseChange(state="COLLECTING", is_open=True))
    store.add_uploads([NewUpload(made.session.id, bytes(16), b"share"), NewUpload(made.session.id, bytes(16), b"")])
    table = run("shuffler", "status", "--data", str(tmp_path))
    assert made.session.id[:16] in table and "COLLECTING" in table
    (row,) = json.loads(run("shuffler", "status", "--data", str(tmp_path), "--json"))
    assert (row["uploads"], row["counters"]) == (1, {"repeated": 1, "stored": 1})
    run("shuffler", "abort", made.session.id[:8], "--data", str(tmp_path), "--reason", "the wrong survey")
    (row,) = json.loads(run("shuffler", "status", "--data", str(tmp_path), "--json"))
    assert (row["state"], row["reason"]) == ("ABORTED", "the wrong survey")
    assert store.slots(made.session.id) == b""
    assert sorted(each.phase for each in store.waiting()) == [ABORT, ABORT, ABORT, ERASURE]
    store.close()
    again = CliRunner().invoke(cli, ["shuffler", "abort", "", "--data", str(tmp_path), "--reason", "x"])
    assert isinstance(again.exception, InvalidSpec)


def test_a_shuffler_is_told_for_whom_it_works(tmp_path: Path) -> None:
    place = ["--data", str(tmp_path), "--name", "x"]
    assert "--any-collector" in run("shuffler", "serve", *place, status=2)
    wrong = CliRunner().invoke(cli, ["shuffler", "serve", *place, "--collector", "12"])
    assert isinstance(wrong.exception, InvalidSpec)
    assert "Missing option '--to'" in run("relay", "serve", status=2)
