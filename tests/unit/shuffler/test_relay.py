"""Parts that come while a gateway is busy travel together, and none is forgotten."""

import asyncio
from collections.abc import Sequence
from threading import Event

from tests.service.waiting import run_async

from tacit.shuffle.protocol.relayed import RESPONSE_BYTES, unpack
from tacit.shuffler.http import MAX_PACKED
from tacit.shuffler.relay import Target


class Slow(Target):
    """A gateway that answers when it is told to; `None` in its answers stands for no reply."""

    def __init__(self) -> None:
        super().__init__("http://gateway.example")
        self.groups, self.begun, self.gate, self.is_away = list[list[bytes]](), Event(), Event(), False

    def _exchange(self, path: str, body: bytes, media_type: str, sizes: Sequence[int]) -> bytes | None:
        self.groups.append(unpack(body))
        self.begun.set()
        self.gate.wait()
        return None if self.is_away else b"".join(part[:1] * RESPONSE_BYTES for part in unpack(body))


async def sent_to(target: Slow, count: int) -> list[bytes | None]:
    """Send a part; as soon as it is on its way, all others."""
    first = asyncio.create_task(target.upload(b"\x00"))
    await asyncio.to_thread(target.begun.wait)
    others = [asyncio.create_task(target.upload(bytes([1 + i % 100]))) for i in range(count - 1)]
    await asyncio.sleep(0)
    target.gate.set()
    return await asyncio.gather(first, *others)


def test_what_comes_while_a_request_is_on_its_way_is_in_the_next_one() -> None:
    target = Slow()
    answers = run_async(sent_to(target, 6))
    assert [len(group) for group in target.groups] == [1, 5]
    # Everybody gets the answer to the own part.
    assert answers == [bytes([i]) * RESPONSE_BYTES for i in range(6)]
    # Nothing waits for somebody else to come.
    assert run_async(target.upload(b"\x07")) == b"\x07" * RESPONSE_BYTES


def test_too_many_for_one_request_take_several() -> None:
    target = Slow()
    answers = run_async(sent_to(target, 2 * MAX_PACKED))
    assert None not in answers and len(answers) == 2 * MAX_PACKED
    assert sum(map(len, target.groups)) == 2 * MAX_PACKED and max(map(len, target.groups)) <= MAX_PACKED


def test_a_gateway_that_does_not_answer_has_no_answer_for_anybody_and_may_come_back() -> None:
    target = Slow()
    target.is_away = True
    assert run_async(sent_to(target, 3)) == [None] * 3
    target.is_away = False
    assert run_async(target.upload(b"\x01")) == b"\x01" * RESPONSE_BYTES
