"""A shuffler as its own gateway of Oblivious HTTP: uploads and questions that came through a relay.

Whatever becomes of an upload, its response has the same size, and who cannot be answered gets noise of that size: a
relay learns nothing from a response. Answers to questions have another size, the same for all of them.
"""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from tacit.errors import OpenFailed, ReportRejected
from tacit.hosting.problems import Problem
from tacit.shuffle.crypto.bhttp import BinaryRequest
from tacit.shuffle.crypto.ohttp import Gateway, ResponseSealer
from tacit.shuffle.crypto.stream import AesStream
from tacit.shuffle.protocol.relayed import (
    ACCEPTED,
    RESPONSE_BYTES,
    answer_message,
    asked_proof,
    asked_status,
    gateway_config,
    upload_path,
)
from tacit.shuffler.party_store import OPENING, PartyStore

Take = Callable[..., Awaitable[None]]
"""Takes uploads: pairs of a session and a body."""
Opened = tuple[BinaryRequest, ResponseSealer]
Answer = Callable[..., Awaitable[dict[str, Any]]]


class GatewayDoor:
    """Opens encapsulated requests with the keys of a store, and seals what is answered."""

    def __init__(self, store: PartyStore, take: Take, status: Answer, proof: Answer) -> None:
        """Uploads go to `take`, questions to `status` (of a session) and `proof` (of a slot in a session)."""
        self._store, self._take, self._status, self._proof = store, take, status, proof
        self._stream = AesStream.from_system()
        self._gateways: list[Gateway] = []

    async def uploads(self, sealed: Sequence[bytes]) -> list[bytes]:
        """The responses to requests that are to be uploads; everything else is refused, and looks the same."""
        return await self._uploaded([self._opened(each) for each in sealed])

    async def _uploaded(self, opened: Sequence[Opened | None]) -> list[bytes]:
        # All of them wait for one write of the database. What is refused is not stored, but takes the same way.
        await self._take(*(_body_of(each[0]) if each else ("", b"") for each in opened))
        return [each[1].seal(ACCEPTED, self._stream) if each else self._noise() for each in opened]

    async def response(self, sealed: bytes) -> bytes:
        """The response to an upload or a question."""
        opened = self._opened(sealed)
        if opened is None or opened[0].method != "GET":
            return (await self._uploaded([opened]))[0]
        asked, sealer = opened
        return sealer.seal(await self._answered(asked.path), self._stream)

    async def _answered(self, path: str) -> bytes:
        session, slot = asked_status(path), asked_proof(path)
        try:
            found = await self._status(session) if session else await self._proof(*slot) if slot else None
        except Problem as problem:
            return answer_message(problem.status, b"")
        return answer_message(404, b"") if found is None else answer_message(200, json.dumps(found).encode())

    def _noise(self) -> bytes:
        return self._stream.rows(1, RESPONSE_BYTES).tobytes()

    def _opened(self, sealed: bytes) -> Opened | None:
        with self._store.meter.spent_on(OPENING):
            self._learn(sealed[:1])
            # The number is one byte, so that two keys may share it; authentication tells which one was meant.
            for gateway in self._gateways:
                try:
                    inner, sealer = gateway.open(sealed)
                    return BinaryRequest.from_bytes(inner), sealer
                except OpenFailed:
                    continue
                except ReportRejected:
                    return None
            return None

    def _learn(self, key_id: bytes) -> None:
        """Look for keys that were made meanwhile, if none has this number."""
        if any(key_id == bytes([gateway.config.key_id]) for gateway in self._gateways):
            return
        known = {gateway.config.public for gateway in self._gateways}
        keys = [key for key in self._store.seal_keys() if key.public not in known]
        self._gateways += [Gateway(gateway_config(key.public).key_id, key) for key in keys]


def _body_of(asked: BinaryRequest) -> tuple[str, bytes]:
    """The session and the body of an upload; nothing for any other request."""
    session = asked.path[len("/s/") : -len("/uploads")]
    return (session, asked.content) if (asked.method, asked.path) == ("POST", upload_path(session)) else ("", b"")
