"""Whole shuffles over HTTP: shufflers in threads or in processes that can be killed, and a collector's stand-in."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tests.service.served import CONTEXT, free_port
from tests.service.waiting import PATIENT_SECONDS, wait_until

from tacit.client.transport import Patience
from tacit.device.numbers.canonical import canonical
from tacit.device.numbers.coins import SystemCoins
from tacit.errors import ProtocolViolation
from tacit.hosting.clock import Clock
from tacit.hosting.limits import Limits
from tacit.hosting.serving import server_config
from tacit.shuffle.crypto.dgk import DgkPrivateKey, DgkPublicKey
from tacit.shuffle.protocol.opening import OpenedRows, acknowledge, combine, open_rows, sift
from tacit.shuffle.protocol.parties import COLLECTOR, party_name, rounds_of
from tacit.shuffle.protocol.peos import combine_encrypted, open_encrypted
from tacit.shuffle.protocol.resharing import OUTPUT
from tacit.shuffle.protocol.sealing import SEALED_WORD_BYTES, ShuffleUpload, seal_upload
from tacit.shuffle.protocol.session import PEOS, RESHARING, ShuffleParty, ShuffleSession, SignedSession
from tacit.shuffle.protocol.shares import as_rows
from tacit.shuffle.protocol.transcript import HOP_PHASE, Transcript, expected_places
from tacit.shuffle.protocol.words import WordRule
from tacit.shuffler.joining import Offer
from tacit.shuffler.letters import (
    ABORT,
    ACK,
    ADMISSIONS,
    ATTEMPT,
    CLOSE,
    COUNTS,
    ENVELOPES,
    ERASURE,
    LEAVES,
    PROTOCOL,
    STATEMENT,
    Letter,
    RosterStatement,
    letter,
    place_of,
    text_letters,
)
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.post import Courier, Reception
from tacit.shuffler.server import listening, make_shuffler

HASTY = Patience(first_seconds=0.02, longest_seconds=0.1, timeout_seconds=PATIENT_SECONDS)
"""Pauses of the courier in tests, where everybody is near."""
OFFER = Offer(any_collector=True)
COINS = SystemCoins()
SERIAL = count(1)


def request(url: str, method: str = "GET", body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    """One request; status 0 if nobody answers."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=PATIENT_SECONDS)
    try:
        connection.request(method, parts.path, body or None, headers)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, HTTPException):
        return 0, b""
    finally:
        connection.close()


@dataclass(frozen=True)
class Crash:
    """Where a process kills itself: at the n-th change into a state, before it is stored or after."""

    state: str
    phase: str = ""
    is_stored: bool = True


class CrashingStore(PartyStore):
    """A store that ends its process with SIGKILL at one place."""

    crash: Crash | None = None

    def commit(self, session: str, change: PhaseChange) -> None:
        self._around(change, lambda: super(CrashingStore, self).commit(session, change))

    def end(self, session: str, change: PhaseChange, ending: Any = None) -> None:
        self._around(change, lambda: super(CrashingStore, self).end(session, change, ending))

    def _around(self, change: PhaseChange, store: Callable[[], None]) -> None:
        crash = self.crash
        here = crash is not None and crash.state == change.state and change.progress.get("phase", "") == crash.phase
        if not (here and crash is not None and not crash.is_stored):
            store()
        if here:
            os.kill(os.getpid(), signal.SIGKILL)


def _serve(folder: Path, port: int, crash: Crash | None, log: Path) -> None:
    """What the process of a shuffler does."""
    output = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.dup2(output, 1)
    os.dup2(output, 2)
    store = CrashingStore(folder)
    store.crash = crash
    app = make_shuffler(store, "a shuffler", OFFER, courier=Courier(store, patience=HASTY))
    uvicorn.Server(server_config(app, "127.0.0.1", port, Limits(requests_per_second=0))).run()


class ShufflerProcess:
    """A shuffler in a process of its own, always at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self._process = folder, free_port(), None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, crash: Crash | None = None) -> None:
        log = self.folder.with_suffix(".log")
        self._process: Any = CONTEXT.Process(target=_serve, args=(self.folder, self.port, crash, log))
        self._process.start()
        wait_until(lambda: request(f"{self.url}/healthz")[0] == 200 or not self._process.is_alive())
        assert self._process.is_alive(), log.read_text()[-2000:]

    def wait_for_death(self) -> None:
        self._process.join(PATIENT_SECONDS)
        assert self._process.exitcode == -signal.SIGKILL

    def kill(self) -> None:
        self._process.kill()
        self._process.join()


def shown(signed: SignedSession) -> bytes:
    """A session as a collector shows it to shufflers."""
    return canonical(signed.to_json() | {"protocol": PROTOCOL})


class StandIn:
    """The collector's side: a store, a courier and a reception, without anything that a collector does besides."""

    def __init__(self, folder: Path) -> None:
        self.store = PartyStore(folder)
        self.courier = Courier(self.store, patience=HASTY)
        self.violations: list[ProtocolViolation] = []
        self.reception = Reception(self.store, lambda _: None, lambda *told: self.violations.append(told[2]))
        self.app = Starlette(routes=[Route("/c/{id}/session/messages", self._message, methods=["POST"])])
        self.session: ShuffleSession
        self.dgk: DgkPrivateKey | None = None

    async def _message(self, asked: Request) -> Response:
        reply = await self.reception.take(self.session.id, asked.stream())
        return Response(status_code=reply.status)

    def publish(self, session: ShuffleSession) -> SignedSession:
        """Have everybody sign."""
        self.session = session
        signatures = {party_name(COLLECTOR): session.sign(self.store.identity)}
        first = SignedSession(session=session, signatures=signatures)
        for number, party in enumerate(session.shufflers, start=1):
            status, reply = request(f"{party.url}/sessions", "POST", shown(first))
            assert status == 200, reply
            signatures[party_name(number)] = json.loads(reply)["signature"]
        signed = SignedSession(session=session, signatures=signatures)
        self.store.add_session(signed, COLLECTOR, "PUBLISHED")
        return signed

    def open(self, signed: SignedSession) -> None:
        for party in signed.session.shufflers:
            status, reply = request(f"{party.url}/sessions", "POST", shown(signed))
            assert status == 200, reply

    def write(self, phase: str, document: Any, receivers: Sequence[int] = ()) -> None:
        """The same JSON to all shufflers, or to some."""
        session = self.session
        everybody = receivers or range(1, session.shuffler_count + 1)
        letters = text_letters(session, phase, COLLECTOR, list(everybody), document, self.store.identity)
        self.store.commit(session.id, PhaseChange(state="SHUFFLING", letters=letters))
        self.courier.wake()

    def admit(self, hashes: Sequence[bytes]) -> None:
        session = self.session
        places = [place_of(session, ADMISSIONS, COLLECTOR, party) for party in range(1, session.shuffler_count + 1)]
        letters = [letter(place, b"".join(hashes), self.store.identity, rows=len(hashes)) for place in places]
        self.store.commit(session.id, PhaseChange(state="PUBLISHED", letters=letters))
        self.courier.wake()
        wait_until(lambda: not self.store.waiting())

    def close(self) -> None:
        self.write(CLOSE, {})

    def heard(self, phase: str) -> dict[str, Any]:
        """Letters of a phase, by sender."""
        return {each.place.sender: each for each in self.store.letters(self.session.id, phase)}

    def phases(self) -> set[str]:
        """What kinds of letters have reached the collector."""
        return {phase for _, phase, _ in self.store.arrived(self.session.id)}

    def outputs(self) -> dict[int, bytes]:
        """What the last shufflers have handed over."""
        phase = OUTPUT if self.session.mode in RESHARING else HOP_PHASE
        numbers = range(1, self.session.shuffler_count + 1)
        return {i: self.heard(phase)[party_name(i)].body for i in numbers if party_name(i) in self.heard(phase)}

    def wait_for_outputs(self, problem: Callable[[], Any] = lambda: "no output") -> None:
        last = len(rounds_of(self.session.shuffler_count)[-1]) if self.session.mode in RESHARING else 1
        phase = OUTPUT if self.session.mode in RESHARING else HOP_PHASE

        def is_done() -> bool:
            phases = [phase for _, phase, _ in self.store.arrived(self.session.id)]
            whole = phases.count(phase) == last and phases.count(ENVELOPES) == self.session.shuffler_count
            return whole or ABORT in phases

        wait_until(is_done, problem)
        assert ABORT not in self.phases(), [each.json() for each in self.heard(ABORT).values()]

    def opened(self) -> OpenedRows:
        """The words of all rows."""
        session, outputs = self.session, self.outputs()
        if session.mode == PEOS:
            assert self.dgk is not None
            count = min(len(body) for body in outputs.values()) // 8
            words, right = open_encrypted(self.dgk, combine_encrypted(session, outputs, count))
            return OpenedRows(words[right], count, int((~right).sum()), 0)
        if session.mode in RESHARING:
            rows = combine(session, outputs, self.statement().n + session.fake_rows)
        else:
            body = outputs[session.shuffler_count]
            rows = as_rows(body, len(body) // SEALED_WORD_BYTES)
        words, right = open_rows(session, self.store.seal_key, rows)
        return sift(rows, words, right)

    def statement(self) -> RosterStatement:
        return RosterStatement.read(self.heard(STATEMENT)[party_name(1)])

    def acknowledge(self, opened: OpenedRows) -> None:
        ack = acknowledge(self.session, ATTEMPT, opened, self.store.identity)
        self.write(ACK, ack)
        wait_until(lambda: len(self.heard(ERASURE)) == self.session.shuffler_count)

    def transcript(self, opened: OpenedRows) -> Transcript:
        said = {name: RosterStatement.read(each) for name, each in self.heard(STATEMENT).items()}
        lists = [each.json()["envelopes"] for each in self.heard(ENVELOPES).values()]
        sent = {(item["round"], item["phase"], item["from"], item["to"]): item for items in lists for item in items}
        places = expected_places(self.session, ATTEMPT)
        statement = self.statement()
        signatures = {name: each.signature for name, each in said.items()}
        leaves = self.heard(LEAVES)[party_name(1)].body.hex()
        return Transcript(
            session=self.session.id,
            attempt=ATTEMPT,
            roster={"root": statement.root, "n": statement.n, "signatures": signatures, "leaves": leaves},
            rows=opened.rows,
            envelopes=[sent[place.round, place.phase, place.sender, place.receiver] for place in places],
            hops=[self.heard(COUNTS)[party_name(i)].json() for i in range(1, self.session.shuffler_count + 1)]
            if self.session.mode not in RESHARING
            else (),
            ack=acknowledge(self.session, ATTEMPT, opened, self.store.identity),
            erasures=[each.json() for each in self.heard(ERASURE).values()],
        )


@dataclass
class Cluster:
    """Shufflers in threads, processes where they are to be killed, and a collector's stand-in."""

    folder: Path
    count: int = 3
    clock: Clock = field(default_factory=Clock)
    killable: tuple[int, ...] = ()
    send: dict[int, Any] = field(default_factory=dict[int, Any])
    """Another way to post letters, by shuffler."""
    stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Cluster:
        self.apps: dict[int, Any] = {}
        self.processes: dict[int, ShufflerProcess] = {}
        self.urls: dict[int, str] = {}
        for number in range(1, self.count + 1):
            self.urls[number] = self._start(number)
        self.collector = StandIn(self.folder / "collector")
        self.urls[0] = self.stack.enter_context(listening(self.collector.app))
        self.stack.callback(self.collector.courier.stop)
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def _start(self, number: int) -> str:
        folder = self.folder / f"shuffler-{number}"
        if number in self.killable:
            process = self.processes[number] = ShufflerProcess(folder)
            process.start()
            self.stack.callback(process.kill)
            return process.url
        store = PartyStore(folder)
        given = {"send": self.send[number]} if number in self.send else {}
        courier = Courier(store, patience=HASTY, **given)
        self.apps[number] = make_shuffler(store, f"shuffler {number}", OFFER, clock=self.clock, courier=courier)
        return self.stack.enter_context(listening(self.apps[number]))

    def store(self, number: int) -> PartyStore:
        return self.apps[number].driver.store

    def session(self, mode: str = "osh", **changes: Any) -> ShuffleSession:
        """A session document for these parties."""
        parties: list[ShuffleParty] = []
        for number in range(self.count + 1):
            if number == COLLECTOR:
                keys = self.collector.store.identity.public.hex(), self.collector.store.seal_key.public.hex()
            else:
                shown = json.loads(request(f"{self.urls[number]}/identity.json")[1])
                keys = shown["identity"], shown["seal_key"]
            operator, url = f"operator {number}", self.urls[number]
            parties.append(ShuffleParty(operator=operator, url=url, identity=keys[0], seal_key=keys[1]))
        fields: dict[str, Any] = {
            "collection": "ab" * 32,
            "mode": mode,
            "collector": parties[0],
            "shufflers": tuple(parties[1:]),
            "words": WordRule(10, seeded=False),
            "n_min": 2,
            "n_max": 1000,
            "fakes": 0,
            "spot_checks": 0,
            "closes": int(self.clock.now()) + 86_400,
            "retention_seconds": 0,
            # Sessions with equal documents would be one session. So few respondents keep no more than their epsilon.
            "certificate": {"epsilon": "1", "serial": next(SERIAL)},
            "claims_amplification": False,
        }
        return ShuffleSession(**{**fields, **changes})

    def begin(self, mode: str = "osh", **changes: Any) -> ShuffleSession:
        """A session that is open for uploads."""
        session = self.session(mode, **changes)
        self.collector.open(self.collector.publish(session))
        return session

    def upload(self, upload: ShuffleUpload, *, token: bytes = b"", only: Sequence[int] = ()) -> None:
        for number, part in enumerate(upload.parts, start=1):
            if only and number not in only:
                continue
            url = f"{self.urls[number]}/s/{upload.session}/uploads"
            assert request(url, "POST", upload.slot + part + token) == (202, b"")

    def send_words(self, words: Sequence[int]) -> list[ShuffleUpload]:
        """Upload words as respondents do."""
        session = self.collector.session
        encrypt = DgkPublicKey.from_json(session.dgk).encrypt if session.dgk else None
        uploads = [seal_upload(session, word, COINS, encrypt=encrypt) for word in words]
        for upload in uploads:
            self.upload(upload)
        return uploads

    def state(self, number: int) -> dict[str, Any]:
        with suppress(ValueError):
            return json.loads(request(f"{self.urls[number]}/s/{self.collector.session.id}/status")[1])
        return {}

    def wait_for_state(self, state: str, numbers: Sequence[int] = ()) -> None:
        for number in numbers or range(1, self.count + 1):
            wait_until(lambda n=number: self.state(n).get("state") == state, lambda n=number: self.state(n))

    def finish(self) -> OpenedRows:
        """From the last upload to the erasure."""
        self.collector.close()
        self.collector.wait_for_outputs(lambda: [self.state(n) for n in range(1, self.count + 1)])
        opened = self.collector.opened()
        self.collector.acknowledge(opened)
        return opened


def tamper(app: Any, change: Callable[[Letter], Letter]) -> None:
    """Make a shuffler malicious: it stores and sends other letters than an honest one would."""
    honest = app.driver.steps.make

    def make(record: Any) -> Any:
        made = honest(record)
        return made and replace(made, letters=[change(each) for each in made.letters])

    app.driver.steps.make = make


def resigned(store: PartyStore, taken: Letter, body: bytes) -> Letter:
    """The same letter with another body, properly signed."""
    return letter(taken.place, body, store.identity, rows=taken.envelope.rows)
