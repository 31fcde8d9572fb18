"""First mistakes on the command line: each refusal is one line that says what to type instead."""

import re
import socket
from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.service.plain import Client, plain_app, serving

from tacit import cli as cli_package
from tacit.cli import cli
from tacit.collector.server import Settings, announce_start
from tacit.errors import NoData, StorageUnavailable
from tacit.hosting.serving import listen


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words), env={"TACIT_SERVER": "", "TACIT_TOKEN": ""})


UNKNOWN = [
    ("publish", "did you mean: tacit collection publish;"),
    ("colection", "did you mean: tacit collection;"),
    ("create", "did you mean: tacit collection create or tacit token create;"),
    ("estimat", "did you mean: tacit estimate;"),
    ("xyzzy", "there is no command 'xyzzy'; tacit --help lists all"),
]


@pytest.mark.parametrize(("name", "said"), UNKNOWN)
def test_an_unknown_command_is_told_the_right_one(name: str, said: str):
    refused = run(name, "--option")
    assert refused.exit_code == 2 and said in refused.stderr


def test_a_simulation_of_labels_is_sent_to_the_command_that_takes_them(tmp_path: Path):
    words = tmp_path / "words.csv"
    words.write_text("tea\nmilk\n")
    refused = run("simulate", "oracle", "--data", str(words), "--epsilon", "1")
    assert isinstance(refused.exception, NoData)
    assert "labels are simulated by tacit compare --task histogram" in str(refused.exception)


@pytest.fixture(scope="module")
def collector() -> Generator[Client]:
    with serving(plain_app()) as client:
        yield client


LOST = "make another on the machine of the collector: tacit token create --scope admin --data FOLDER"
REFUSED = [
    (["list"], "", "the server needs a token (401); give one with --token or as TACIT_TOKEN"),
    (["list"], "", LOST),
    (["list"], "tct_wrong", "the server does not know this token, or it has ended (401)"),
    (["list"], "tct_wrong", LOST),
    (["show", "0" * 64], "right", "there is no such collection (404); tacit collection list"),
    (["publish", "draft"], "right", "field 'epsilon' is missing; write epsilon: \"1\""),
]


@pytest.mark.parametrize(("words", "token", "said"), REFUSED)
def test_a_refusal_of_a_server_says_what_to_do(
    collector: Client, tmp_path: Path, words: list[str], token: str, said: str
):
    draft = tmp_path / "draft.json"
    draft.write_text('{"title": "x", "questions": []}')
    given = [str(draft) if word == "draft" else word for word in words]
    place = ["--server", str(collector.http.base_url), "--token", collector.token if token == "right" else token]
    refused = run("collection", *given, *place)
    assert refused.exit_code == 2 and said in refused.stderr, refused.stderr


def test_a_draft_that_is_not_yaml_is_told_with_its_line(tmp_path: Path):
    draft = tmp_path / "draft.yaml"
    draft.write_text("title: x\nlabels: [A?, B]\n")
    refused = run("collection", "publish", str(draft), "--data", str(tmp_path))
    assert refused.exit_code == 2 and "line 2, column 11: is neither JSON nor YAML" in refused.stderr
    assert "a question mark or a bracket in quotes: labels: [A?, B]" in refused.stderr


def test_shares_are_written_in_one_way_in_what_is_printed():
    # "2.39 %", with a space, as everywhere else; a format such as .2% has none.
    sources = [path for path in Path(cli_package.__file__).parents[1].rglob("*.py") if path.parts[-2] != "dashboard"]
    assert len(sources) > 300
    assert not [str(path) for path in sources if re.search(r"\{[^{}]*:\.\d%\}", path.read_text(encoding="utf-8"))]


def taken() -> socket.socket:
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    return held


def test_a_server_that_is_not_there_is_told_with_the_command_that_starts_one():
    with taken() as held:  # Bound and not listening: connections are refused.
        refused = run("collection", "list", "--server", f"http://127.0.0.1:{held.getsockname()[1]}", "--token", "x")
    assert "cannot be reached: Connection refused; is it running" in refused.stderr
    assert "tacit serve --data FOLDER" in refused.stderr and "Errno" not in refused.stderr


def test_a_folder_without_a_collector_is_named_in_the_command_that_begins_one(tmp_path: Path):
    refused = run("token", "create", "--scope", "admin", "--data", str(tmp_path / "my data"))
    assert refused.exit_code == 2 and f"tacit serve --data '{tmp_path / 'my data'}'" in refused.stderr


def test_a_port_that_is_taken_costs_neither_a_folder_nor_a_token(tmp_path: Path):
    with taken() as held:
        held.listen()
        port = held.getsockname()[1]
        refused = run("serve", "--data", str(tmp_path / "new"), "--port", str(port))
    assert isinstance(refused.exception, StorageUnavailable)
    said = str(refused.exception)
    assert f"port {port} on 127.0.0.1 is taken by another program" in said and "another port: --port " in said
    assert not refused.stdout and not (tmp_path / "new").exists()


def test_addresses_and_ports_that_cannot_be_had_name_their_option():
    with pytest.raises(StorageUnavailable, match=r"shuffler: 192\.0\.2\.1:80 is no address .*--host 127\.0\.0\.1"):
        listen("192.0.2.1", 80, who="shuffler")
    with taken() as held, pytest.raises(StorageUnavailable, match="another port: --pg-port "):
        held.listen()
        listen("127.0.0.1", held.getsockname()[1], option="--pg-port")


def test_the_first_token_is_set_apart_with_how_to_make_another(tmp_path: Path):
    said: list[str] = []
    announce_start(Settings(tmp_path / "my data"), "tct_first", said.append)
    token = next(at for at, line in enumerate(said) if line.endswith("tct_first"))
    assert said[token - 1].endswith("-" * 79) and said[token - 1].startswith("\n")
    assert "TACIT_TOKEN or --token" in said[token + 1]
    assert f"tacit token create --scope admin --data '{tmp_path / 'my data'}'" in said[token + 2]
    said.clear()
    announce_start(Settings(None, "postgresql://me:secret@host/name"), "tct_first", said.append)
    assert "--database ADDRESS" in "".join(said) and "secret" not in "".join(said)
    said.clear()
    announce_start(Settings(tmp_path), None, said.append)
    assert said == ["tacit collects at http://127.0.0.1:8000"]
