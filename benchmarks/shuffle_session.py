"""A whole session: shufflers as processes on this machine, letters over HTTP, rows opened in the end.

    python benchmarks/shuffle_session.py [--reports 100000] [--shufflers 3] [--mode osh] [--json]
    python benchmarks/shuffle_session.py --mode peos-dgk --reports 2000       target: under 60 s, encryption included

Shares are put into the databases of the shufflers beforehand, as if uploads had been opened when they arrived: the
clock starts when the collector closes the session. Per phase it prints elapsed seconds, CPU seconds of each shuffler
and of the collector's side, and in the end what each shuffler needed in all, its peak memory, and the bytes it sent.
What a shuffler needed is split as its own /metrics split it: rounds (agreeing on slots, the Merkle tree, fakes, adding
and permuting), storage (the database), other (letters over HTTP, hashing and signing them, waiting). What opening the
uploads takes is measured apart, on a sample, in this process.

    slots     from `close` until every shuffler has signed the same slots
    rounds    until the last hiders' rows are with the collector
    opening   the collector adds up the rows and opens or decrypts them
    erasing   until every shuffler has erased what it held
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.collector.shuffle.opening import SessionKeys, open_all, rows_of
from tacit.device.numbers.coins import SystemCoins
from tacit.shuffle.crypto.dgk import draw_dgk_key, public_key_of
from tacit.shuffle.crypto.hpke import HpkeKey
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.layouts import LAYOUTS
from tacit.shuffle.protocol.opening import acknowledge
from tacit.shuffle.protocol.parties import COLLECTOR, party_name, rounds_of
from tacit.shuffle.protocol.resharing import OUTPUT
from tacit.shuffle.protocol.sealing import SLOT_BYTES, seal_upload, seal_word
from tacit.shuffle.protocol.session import OSH, PEOS, ShuffleParty, ShuffleSession, SignedSession
from tacit.shuffle.protocol.shares import PlainAlgebra, as_words
from tacit.shuffle.protocol.words import WordRule
from tacit.shuffler.letters import ABORT, ACK, ATTEMPT, CLOSE, ENVELOPES, ERASURE, STATEMENT, text_letters
from tacit.shuffler.modes import read_upload
from tacit.shuffler.party_store import PartyStore, PhaseChange
from tacit.shuffler.party_uploads import NewUpload
from tacit.shuffler.post import Courier, Reception
from tacit.shuffler.server import listening

TICKS = os.sysconf("SC_CLK_TCK")
GROUP = 10_000
SAMPLE = 1_000


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def cpu_of(pid: int) -> float:
    """CPU seconds of a process, from the kernel's accounting."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def peak_of(pid: int) -> int:
    """Peak resident memory of a process, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def parts_of(port: int) -> dict[str, float]:
    """CPU seconds of a shuffler by what they were spent on, from itself."""
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
        lines = reply.read().decode().splitlines()
    found = [re.fullmatch(r"tacit_shuffler_cpu_(\w+)_seconds (\S+)", line) for line in lines]
    return {match[1]: float(match[2]) for match in found if match}


def opening_seconds(session: ShuffleSession, key: HpkeKey) -> float:
    """CPU seconds that a shuffler needs to open one upload, on average over a sample."""
    coins = SystemCoins()
    encrypt = None if session.dgk is None else public_key_of(session.dgk).encrypt
    uploads = [seal_upload(session, word, coins, encrypt=encrypt) for word in range(SAMPLE)]
    began = time.process_time()
    for upload in uploads:
        assert not read_upload(session, 1, key, upload.slot + upload.parts[0]).refusal
    return (time.process_time() - began) / SAMPLE


def wait_for(holds: Callable[[], Any]) -> None:
    while not holds():
        time.sleep(0.02)


class Bench:
    """The parties of one session."""

    def __init__(self, folder: Path, shufflers: int, reports: int, mode: str) -> None:
        self.folder, self.reports, self.mode = folder, reports, mode
        self.dgk = draw_dgk_key(SystemCoins()) if mode == PEOS else None
        self.ports = [free_port() for _ in range(shufflers)]
        self.store = PartyStore(folder / "collector")
        self.courier = Courier(self.store)
        reception = Reception(self.store, lambda _: None, lambda *_: None)

        async def message(request: Request) -> Response:
            reply = await reception.take(self.session.id, request.stream())
            return Response(status_code=reply.status)

        self.app = Starlette(routes=[Route("/c/{id}/session/messages", message, methods=["POST"])])

    def prepare(self, url: str, *, relay: str = "", with_shares: bool = True) -> None:
        """Sign a session, and put the shares of all respondents into the databases of the shufflers."""
        stores = [PartyStore(self.folder / f"shuffler-{i}") for i in range(1, len(self.ports) + 1)]
        urls = [url, *(f"http://127.0.0.1:{port}" for port in self.ports)]
        parties = [
            ShuffleParty(
                operator=f"operator {i}",
                url=urls[i],
                identity=store.identity.public.hex(),
                seal_key=store.seal_key.public.hex(),
            )
            for i, store in enumerate([self.store, *stores])
        ]
        self.session = ShuffleSession(
            collection="00" * 32, mode=self.mode, collector=parties[0], shufflers=tuple(parties[1:]),
            words=WordRule(1024, seeded=False), n_min=2, n_max=self.reports, fakes=self.reports // 100,
            spot_checks=1 if self.dgk else 0, closes=int(time.time()) + 86_400, retention_seconds=0,
            certificate={"epsilon": "1"}, dgk=self.dgk and self.dgk.public.to_json(),
            relay={"operator": "relay", "url": relay} if relay else None,
        )  # fmt: skip
        signatures = {party_name(i): self.session.sign(s.identity) for i, s in enumerate([self.store, *stores])}
        signed = SignedSession(session=self.session, signatures=signatures)
        self.store.add_session(signed, COLLECTOR, "COLLECTING")
        for number, store in enumerate(stores, start=1):
            store.add_session(signed, number, "COLLECTING")
            store.commit(self.session.id, PhaseChange(state="COLLECTING", is_open=True))
        if with_shares:
            self._upload(stores)
        self.opening = opening_seconds(self.session, stores[0].seal_key)
        for store in stores:
            store.close()

    def _upload(self, stores: list[PartyStore]) -> None:
        coins, stream = SystemCoins(), AesStream.from_system()
        for start in range(0, self.reports, GROUP):
            count = min(GROUP, self.reports - start)
            shares = self._shares(range(start, start + count), len(stores), coins, stream)
            slots = stream.rows(count, SLOT_BYTES)
            for store, part in zip(stores, shares, strict=True):
                pairs = zip(slots, part, strict=True)
                store.add_uploads([NewUpload(self.session.id, a.tobytes(), b.tobytes()) for a, b in pairs])

    def _shares(self, words: range, parties: int, coins: SystemCoins, stream: AesStream) -> list[np.ndarray]:
        """What every shuffler finds in the uploads of these words."""
        if self.dgk is None:
            sealed = b"".join(seal_word(self.session, word, coins) for word in words)
            rows = np.frombuffer(sealed, np.uint8).reshape(len(words), -1)
            return PlainAlgebra(LAYOUTS["osh"]).split((rows,), parties, stream)
        rows = np.array(words, "<u8").view(np.uint8).reshape(-1, 8)
        *plain, last = PlainAlgebra(LAYOUTS[PEOS]).split((rows,), parties, stream)
        # One by one and without tables, as every respondent's device does it.
        sealed = b"".join(self.dgk.public.encrypt(int(word), coins) for word in as_words(last).reshape(-1))
        return [*plain, np.frombuffer(sealed, np.uint8).reshape(len(words), -1)]

    def write(self, phase: str, document: Any) -> None:
        everybody = list(range(1, len(self.ports) + 1))
        letters = text_letters(self.session, phase, COLLECTOR, everybody, document, self.store.identity)
        self.store.commit(self.session.id, PhaseChange(state="SHUFFLING", letters=letters))
        self.courier.wake()

    def count(self, phase: str) -> int:
        phases = [each for _, each, _ in self.store.arrived(self.session.id)]
        if ABORT in phases:
            raise SystemExit(f"aborted: {self.store.letters(self.session.id, ABORT)[0].json()['reason']}")
        return phases.count(phase)


@contextmanager
def shuffler(folder: Path, number: int, port: int) -> Iterator[int]:
    """`tacit shuffler serve` in a process of its own; yields its id."""
    place = ["--data", str(folder / f"shuffler-{number}"), "--port", str(port)]
    command = [sys.executable, "-m", "tacit.cli", "shuffler", "serve", *place, "--name", "bench", "--any-collector"]
    with running(command, lambda: is_up(port)) as pid:
        yield pid


@contextmanager
def running(command: list[str], is_ready: Callable[[], bool]) -> Iterator[int]:
    """A command in a process of its own; yields its id as soon as it is ready."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(is_ready)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def is_up(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as reply:
            return reply.status == 200
    except OSError:
        return False


def measure(reports: int, shufflers: int, mode: str) -> dict[str, Any]:
    """Run one session and say what it took."""
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        bench = Bench(Path(place), shufflers, reports, mode)
        before = time.monotonic(), time.process_time()
        bench.prepare(stack.enter_context(listening(bench.app)))
        sealing = {"sealing": time.monotonic() - before[0], "sealing_cpu": time.process_time() - before[1]}
        stack.callback(bench.courier.stop)
        numbered = list(enumerate(bench.ports, start=1))
        pids = [stack.enter_context(shuffler(bench.folder, number, port)) for number, port in numbered]
        # In this order: the first request to a process loads what serves it.
        before = [parts_of(port) for port in bench.ports]
        idle = [cpu_of(pid) for pid in pids]
        rows: list[dict[str, Any]] = []
        last = {"elapsed": time.monotonic(), "own": time.process_time(), "theirs": idle}

        def note(phase: str) -> None:
            now = {"elapsed": time.monotonic(), "own": time.process_time(), "theirs": [cpu_of(pid) for pid in pids]}
            theirs = [b - a for a, b in zip(last["theirs"], now["theirs"], strict=True)]
            own, elapsed = now["own"] - last["own"], now["elapsed"] - last["elapsed"]
            rows.append({"phase": phase, "elapsed": elapsed, "collector_cpu": own, "shuffler_cpu": theirs})
            last.update(now)

        bench.write(CLOSE, {})
        wait_for(lambda: bench.count(STATEMENT) == shufflers)
        note("slots")
        hiders = rounds_of(shufflers)[-1]
        wait_for(lambda: bench.count(OUTPUT) == len(hiders) and bench.count(ENVELOPES) == shufflers)
        note("rounds")
        outputs = {int(each.place.sender[9:]): each.body for each in bench.store.letters(bench.session.id, OUTPUT)}
        mixed = rows_of(bench.session, outputs, reports + bench.session.fake_rows)
        keys = SessionKeys(bench.session, bench.store.seal_key.private, bench.dgk and bench.dgk.to_json())
        opened = open_all(keys, mixed, lambda done: None)
        assert opened.bad == 0 and set(range(reports)) <= set(map(int, opened.words))
        note("opening")
        bench.write(ACK, acknowledge(bench.session, ATTEMPT, opened, bench.store.identity))
        wait_for(lambda: bench.count(ERASURE) == shufflers)
        note("erasing")
        lists = [each.json()["envelopes"] for each in bench.store.letters(bench.session.id, ENVELOPES)]
        sent = [sum(item["rows"] * item["width"] for item in items) for items in lists]
        totals = [cpu_of(pid) - start for pid, start in zip(pids, idle, strict=True)]
        pairs = zip(before, [parts_of(port) for port in bench.ports], strict=True)
        spent = [{part: after[part] - start.get(part, 0.0) for part in after} for start, after in pairs]
        return {
            "mode": mode,
            **sealing,
            "reports": reports,
            "rows": opened.rows,
            "phases": rows,
            "shuffler_cpu": totals,
            "shuffler_cpu_parts": spent,
            "shuffler_opening_cpu": reports * bench.opening,
            "released_seconds": sum(row["elapsed"] for row in rows[:3]),
            "shuffler_peak_bytes": [peak_of(pid) for pid in pids],
            "shuffler_sent_bytes": sent,
        }


def show(result: dict[str, Any]) -> None:
    parties = f"{len(result['shuffler_cpu'])} shufflers, mode {result['mode']}"
    print(f"{result['reports']:,} reports, {result['rows']:,} rows with fakes, {parties}")
    print(f"sealing and storing uploads beforehand: {result['sealing']:.2f} s, {result['sealing_cpu']:.2f} CPU s\n")
    print(f"{'phase':10}{'elapsed s':>10}{'collector CPU s':>17}   CPU s of each shuffler")
    for row in result["phases"]:
        theirs = "  ".join(f"{seconds:6.2f}" for seconds in row["shuffler_cpu"])
        print(f"{row['phase']:10}{row['elapsed']:10.2f}{row['collector_cpu']:17.2f}   {theirs}")
    print()
    fields = ("shuffler_cpu", "shuffler_cpu_parts", "shuffler_peak_bytes", "shuffler_sent_bytes")
    each = zip(*(result[name] for name in fields), strict=True)
    for number, (cpu, parts, peak, sent) in enumerate(each, start=1):
        split = ", ".join(f"{part} {parts.get(part, 0.0):.2f}" for part in ("rounds", "storage", "other"))
        print(f"shuffler {number}: {cpu:.2f} CPU s ({split}), peak {peak / 2**20:.0f} MB, sent {sent / 1e6:.1f} MB")
    print(f"all shufflers: {sum(result['shuffler_cpu']):.2f} CPU s; from closing to opened rows "
          f"{result['released_seconds']:.1f} s")  # fmt: skip
    opening = result["shuffler_opening_cpu"]
    print(f"beside it, opening {result['reports']:,} uploads: {opening:.1f} CPU s for each, from {SAMPLE:,} of them")


def run(parser: argparse.ArgumentParser, measure: Callable[..., Any], show: Callable[[Any], None]) -> None:
    """Measure with the options of the command line; print what people read, or with --json what programs do."""
    parser.add_argument("--json", action="store_true")
    options = vars(parser.parse_args())
    as_json = options.pop("json")
    result = measure(**options)
    if as_json:
        print(json.dumps(result))
    else:
        show(result)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reports", type=int, default=100_000)
    parser.add_argument("--shufflers", type=int, default=3)
    parser.add_argument("--mode", choices=[OSH, PEOS], default=OSH)
    run(parser, measure, show)


if __name__ == "__main__":
    main()
