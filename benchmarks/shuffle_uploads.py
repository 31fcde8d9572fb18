"""What one respondent of a shuffled collection costs everybody: sealing, a relay, and three shufflers over HTTP.

    python benchmarks/shuffle_uploads.py [--respondents 2000] [--json]

Every respondent seals a report in mode osh and sends it through a relay, in two ways that alternate, a group at a time,
so that both meet the same machine: `together`, one request with all parts, as clients do; and `apart`, one request for
each part. It prints CPU milliseconds per respondent of the respondent's side, the relay and all shufflers; what a
shuffler's time goes to (opening, storage, other) is what its /metrics say, over both ways.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import local
from typing import Any

from shuffle_session import Bench, cpu_of, free_port, is_up, parts_of, run, running, shuffler

from tacit.client.sealed.posting import SealedPost
from tacit.client.sealed.sealing import SealedReport, seal_word_for
from tacit.client.transport import Patience, Transport
from tacit.demo.shuffled.respondents import CONNECTIONS, KeptOpen
from tacit.device.numbers.coins import SystemCoins
from tacit.shuffle.crypto.ohttp import REQUEST_TYPE
from tacit.shuffle.protocol.relayed import ACCEPTED, encapsulate_body
from tacit.shuffle.protocol.session import OSH
from tacit.shuffler.server import listening

GROUP = 500
PATIENCE = Patience(attempts=10, timeout_seconds=60)


class Device(local):
    """Coins and connections of a thread."""

    def __init__(self) -> None:
        self.coins, self.transport = SystemCoins(), Transport(PATIENCE, opener=KeptOpen())


def together(device: Device, sealed: SealedReport) -> None:
    outcome = SealedPost(device.transport, device.coins).send(sealed)
    assert outcome.state == "sent", outcome.reason


def apart(device: Device, sealed: SealedReport) -> None:
    for number, part in enumerate(sealed.parts, start=1):
        key, body = bytes.fromhex(part.key), bytes.fromhex(part.body)
        sent, waiting = encapsulate_body(key, sealed.session, body, device.coins)
        reply = device.transport.post(f"{sealed.relay}/r/{number}", sent, REQUEST_TYPE)
        assert waiting.open(reply.body) == ACCEPTED


WAYS: dict[str, Callable[[Device, SealedReport], None]] = {"together": together, "apart": apart}


def measure(respondents: int) -> dict[str, Any]:
    """Send all uploads and say what they took."""
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        bench = Bench(Path(place), 3, 4 * respondents, OSH)
        relay_port = free_port()
        relay = f"http://127.0.0.1:{relay_port}"
        bench.prepare(stack.enter_context(listening(bench.app)), relay=relay, with_shares=False)
        stack.callback(bench.courier.stop)
        pids = [stack.enter_context(shuffler(bench.folder, number, port)) for number, port in enumerate(bench.ports, 1)]
        to = [word for port in bench.ports for word in ("--to", f"http://127.0.0.1:{port}")]
        command = [sys.executable, "-m", "tacit.cli", "relay", "serve", "--port", str(relay_port), "--rate", "0", *to]
        relay_pid = stack.enter_context(running(command, lambda: is_up(relay_port)))
        parties = {"relay": [relay_pid], "shufflers": pids}
        device, pool = Device(), stack.enter_context(ThreadPoolExecutor(CONNECTIONS))
        spent = {way: dict.fromkeys(("respondent", *parties), 0.0) for way in WAYS}
        elapsed = dict.fromkeys(WAYS, 0.0)

        def send(way: str, words: Sequence[int]) -> None:
            def one(word: int) -> None:
                WAYS[way](device, seal_word_for(bench.session, word, device.coins))

            before, began, own = cpu(parties), time.monotonic(), time.process_time()
            list(pool.map(one, words))
            spent[way]["respondent"] += time.process_time() - own
            elapsed[way] += time.monotonic() - began
            for name, seconds in cpu(parties).items():
                spent[way][name] += seconds - before[name]

        # Once each beforehand, so that connections and imports are nobody's cost.
        for way in WAYS:
            send(way, range(20))
        spent = {way: dict.fromkeys(("respondent", *parties), 0.0) for way in WAYS}
        elapsed, parts = dict.fromkeys(WAYS, 0.0), [parts_of(port) for port in bench.ports]
        for start in range(0, respondents, GROUP):
            for way in WAYS:
                send(way, range(start, min(start + GROUP, respondents)))
        after = [parts_of(port) for port in bench.ports]
        names = ("opening", "storage", "other")
        split = {name: sum(b[name] - a.get(name, 0) for a, b in zip(parts, after, strict=True)) for name in names}
        return {"respondents": respondents, "cpu_seconds": spent, "elapsed": elapsed, "shufflers_split": split}


def cpu(parties: dict[str, list[int]]) -> dict[str, float]:
    return {name: sum(map(cpu_of, pids)) for name, pids in parties.items()}


def show(result: dict[str, Any]) -> None:
    count, spent = result["respondents"], result["cpu_seconds"]
    print(f"{count:,} respondents each way; CPU milliseconds per respondent\n")
    columns = [*next(iter(spent.values())), "all"]
    print(f"{'':10}" + "".join(f"{name:>12}" for name in columns) + f"{'elapsed s':>12}")
    for way, parts in spent.items():
        values = [*parts.values(), sum(parts.values())]
        numbers = "".join(f"{1000 * value / count:12.2f}" for value in values)
        print(f"{way:10}{numbers}{result['elapsed'][way]:12.1f}")
    totals = {way: sum(parts.values()) for way, parts in spent.items()}
    print(f"\napart / together: {totals['apart'] / totals['together']:.2f}")
    split = ", ".join(f"{name} {seconds:.2f}" for name, seconds in result["shufflers_split"].items())
    print(f"CPU seconds of all shufflers, both ways: {split}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--respondents", type=int, default=2_000)
    run(parser, measure, show)


if __name__ == "__main__":
    main()
