"""TLS between all parties: certificates of an own authority, believed by those who name it and by nobody else."""

import datetime
import json
import os
import ssl
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.service.plain import DRAFT
from tests.service.shuffled import FREE, HASTY
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.client import Respondent, Transport
from tacit.client.operator import Operator
from tacit.demo.serve import free_ports
from tacit.device.numbers.coins import SystemCoins
from tacit.errors import InvalidSpec
from tacit.hosting.tls import TlsFiles, trusting
from tacit.shuffle.crypto.bhttp import BinaryResponse
from tacit.shuffle.protocol.rehearsal import rehearse
from tacit.shuffle.protocol.relayed import encapsulate_question, status_path
from tacit.shuffler.joining import Offer
from tacit.shuffler.letters import place_of, text_letters
from tacit.shuffler.party_store import PartyStore
from tacit.shuffler.post import post_letter
from tacit.shuffler.relay import RelayApp
from tacit.shuffler.server import listening, make_shuffler

COINS = SystemCoins()
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Authority:
    """A certificate authority in a folder, and a certificate of it for this machine."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def tls(self) -> TlsFiles:
        return TlsFiles(self.folder / "server.pem", self.folder / "server.key")

    def make(self) -> "Authority":
        self.folder.mkdir()
        ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        issuer = named("an authority of a test")
        root = certificate(issuer, issuer, ca_key.public_key(), is_ca=True).sign(ca_key, hashes.SHA256())
        mine = certificate(named("a party"), issuer, key.public_key(), is_ca=False).sign(ca_key, hashes.SHA256())
        self.ca.write_bytes(root.public_bytes(Encoding.PEM))
        self.tls.cert.write_bytes(mine.public_bytes(Encoding.PEM))
        self.tls.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return self


def named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def certificate(subject: x509.Name, issuer: x509.Name, key: Any, *, is_ca: bool) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
    made = made.not_valid_after(now + datetime.timedelta(days=1))
    made = made.add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    return made.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls") / "authority").make()


@pytest.fixture
def shuffler(tmp_path: Path, authority: Authority) -> Iterator[tuple[PartyStore, str]]:
    store = PartyStore(tmp_path / "shuffler")
    app = make_shuffler(store, "Shuffler", Offer(any_collector=True), limits=FREE)
    with listening(app, tls=authority.tls) as url:
        assert url.startswith("https://")
        yield store, url


def test_a_relay_and_a_shuffler_talk_over_tls_if_the_authority_is_named(
    authority: Authority, shuffler: tuple[PartyStore, str]
) -> None:
    store, url = shuffler
    sealed, waiting = encapsulate_question(store.seal_key.public, status_path("0" * 64), COINS)
    replies: dict[bool, tuple[int, bytes]] = {}
    for is_named in (True, False):
        relay = RelayApp([url], trust=trusting(authority.ca if is_named else None))
        with listening(relay, tls=authority.tls) as front:
            asked = Request(f"{front}/r/1", sealed, method="POST")
            try:
                with urlopen(asked, timeout=PATIENT_SECONDS, context=trusting(authority.ca)) as reply:
                    replies[is_named] = (reply.status, reply.read())
            except URLError as error:
                replies[is_named] = (int(getattr(error, "code", 0)), b"")
            # Whoever does not know the authority does not even send the request.
            with pytest.raises(URLError, match="CERTIFICATE_VERIFY_FAILED"):
                urlopen(asked, timeout=PATIENT_SECONDS)
    assert replies[True][0] == 200
    assert BinaryResponse.from_bytes(waiting.open(replies[True][1])).status == 404
    assert replies[False][0] == 503


def test_letters_travel_over_tls_and_to_nobody_who_is_not_certified(
    authority: Authority, shuffler: tuple[PartyStore, str]
) -> None:
    made = rehearse(COINS)
    (letter,) = text_letters(made.session, "close", 0, [1], {}, made.identities[0])
    assert letter.place == place_of(made.session, "close", 0, 1)
    address = f"{shuffler[1]}/s/{made.session.id}/messages"
    # 404: the session is not known there, but the letter arrived.
    assert post_letter(address, letter, PATIENT_SECONDS, trust=trusting(authority.ca)) == 404
    assert post_letter(address, letter, PATIENT_SECONDS, trust=trusting(None)) == 0
    assert post_letter(address, letter, PATIENT_SECONDS) == 0
    # A certificate is for a name: the same server under another one is somebody else.
    other = address.replace(HOST, "localhost")
    assert post_letter(other, letter, PATIENT_SECONDS, trust=trusting(authority.ca)) == 0


def test_files_that_are_no_certificates_are_named(tmp_path: Path, authority: Authority) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    for tls in (TlsFiles(nothing, authority.tls.key), TlsFiles(authority.tls.cert, tmp_path / "missing")):
        with pytest.raises(InvalidSpec, match="the certificate or its key cannot be read"):
            tls.context()
    for file in (nothing, tmp_path / "missing"):
        with pytest.raises(InvalidSpec, match=r"--ca-file: .* holds no certificates"):
            trusting(file)
    with pytest.raises(InvalidSpec, match="--tls-cert and --tls-key go together"):
        TlsFiles.given(nothing, None)
    assert TlsFiles.given(None, None) is None
    assert authority.tls.context().minimum_version == ssl.TLSVersion.TLSv1_2


@contextmanager
def serving(authority: Authority, port: int, *words: str, believes: bool = True) -> Generator[str]:
    """`tacit ... serve` behind TLS in a process of its own; yields its address."""
    url, where = f"https://{HOST}:{port}", ["--port", str(port)]
    files = ["--tls-cert", str(authority.tls.cert), "--tls-key", str(authority.tls.key)]
    env = os.environ | ({} if believes else {"SSL_CERT_FILE": str(authority.ca)})
    more = ["--ca-file", str(authority.ca)] if believes else []
    command = [sys.executable, "-P", "-m", "tacit.cli", *words, *where, *files, *more]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def answers() -> bool:
        assert process.poll() is None, f"{words[0]} has ended"
        try:
            urlopen(f"{url}/healthz", timeout=PATIENT_SECONDS, context=trusting(authority.ca)).close()
        except URLError:
            return False
        return True

    try:
        wait_until(answers, lambda: words)
        yield url
    finally:
        process.terminate()
        process.wait()


@pytest.mark.slow
def test_a_whole_session_among_processes_over_tls(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Collector, relay, three shufflers and respondents; every connection is a handshake with the authority's key."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca))
    token, ports = f"tct_{'a' * 43}", free_ports(5)
    monkeypatch.setenv("TACIT_ADMIN_TOKEN", token)
    with ExitStack() as stack:
        names = [f"Shuffler {number}" for number in (1, 2, 3)]
        urls = [
            stack.enter_context(
                serving(authority, port, "shuffler", "serve", "--data", str(tmp_path / name), "--name", name,
                        "--any-collector")
            )
            for name, port in zip(names, ports, strict=False)
        ]  # fmt: skip
        to = [word for url in urls for word in ("--to", url)]
        relay = stack.enter_context(serving(authority, ports[3], "relay", "serve", *to))
        data = str(tmp_path / "collector")
        url = stack.enter_context(serving(authority, ports[4], "serve", "--data", data, believes=False))
        place = Operator(url, token)
        shufflers = [json.loads(urlopen(f"{each}/identity.json").read()) for each in urls]
        terms = {
            "mode": "osh", "collector": {"name": "Pets", "identity": place.shuffle_identity()},
            "shufflers": [
                {"name": name, "url": each, "identity": stated["identity"]}
                for name, each, stated in zip(names, urls, shufflers, strict=True)
            ],
            "relay": {"name": "Relay", "url": relay}, "minimum": 20, "maximum": 1000, "fakes": 30, "spot_checks": 0,
            "delta": "1e-6", "together": [],
        }  # fmt: skip
        draft = DRAFT | {"epsilon": "4", "invitations": False, "shuffle": terms}
        collection = place.publish(place.create(draft)["id"])["id"]

        def session() -> Any:
            return place.session(collection)

        wait_until(lambda: session()["state"] == "COLLECTING", session)
        people = [Respondent(transport=Transport(HASTY)) for _ in range(25)]
        receipts = [person.answer(f"{url}/c/{collection}", {"pet": "cat"}) for person in people]
        assert [receipt.state for receipt in receipts] == ["sent"] * 25, receipts[0].reason
        place.close_session(collection)
        wait_until(lambda: session()["state"] in ("RELEASED", "ABORTED"), session)
        assert session()["state"] == "RELEASED", session()
        assert people[0].check(receipts[0]).state in ("included", "missing")
