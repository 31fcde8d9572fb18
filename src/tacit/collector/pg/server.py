"""The server of PostgreSQL's protocol: listens beside the HTTP server, lets in who shows a token, and ends in order.

The password is a token with the right to read. Only hashes of tokens are kept, so no challenge can be computed from
them and the password comes in the clear: inside TLS, or on this machine, or not at all.
"""

import asyncio
import hmac
import secrets
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from struct import unpack
from time import monotonic
from typing import Any

from tacit.collector.collections.access import READ, Access, Bearer
from tacit.collector.pg import messages as say
from tacit.collector.pg.catalog_functions import SessionFacts
from tacit.collector.pg.channel import Channel, Closed
from tacit.collector.pg.listen import PgSettings
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.session import ENDING, Jobs, Session, say_goodbye, secure
from tacit.collector.pg.settings import REPORTED, SessionSettings, opening_options
from tacit.collector.pg.statement import Desk, as_error
from tacit.collector.tables.info import DATABASE
from tacit.collector.tables.tables import Tables
from tacit.collector.work import Work

_GRACE_SECONDS = 5.0
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3))


@dataclass(eq=False)
class _Guest:
    """A connection, and its session once it has been let in."""

    process: int
    channel: Channel
    secret: bytes
    since: float
    task: "asyncio.Task[None] | None" = None
    session: Session | None = None
    shown: bool = False
    """Whether a token was shown; it may still turn out to be wrong."""


class PgServer:
    """Serves tables of a collector to clients of PostgreSQL."""

    def __init__(self, tables: Tables, access: Access, work: Work, settings: PgSettings) -> None:
        """Nothing listens yet; statements are answered as jobs of `work`."""
        self._tables, self._access, self._work, self._settings = tables, access, work, settings
        self._limits, self._context = settings.limits, settings.context()
        self._guests: dict[int, _Guest] = {}
        # Tokens are looked up on threads of their own, so that neither queries nor uploads keep anybody waiting.
        self._door = ThreadPoolExecutor(2, "tacit-pg-door")
        self._server: asyncio.Server | None = None
        self._stopping = False

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._guests)

    async def start(self, listener: socket.socket) -> None:
        """Accept connections on the running loop."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Channel(self._welcome), sock=listener)

    async def stop(self) -> None:
        """Accept nobody, let running statements end, say goodbye, and close."""
        self._stopping = True
        if self._server is not None:
            self._server.close()
        tasks = [guest.task for guest in self._guests.values() if guest.task is not None]
        for guest in list(self._guests.values()):
            if guest.session is not None and guest.session.busy:
                guest.session.leaving = True
            elif guest.task is not None:
                guest.task.cancel()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_GRACE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        self._door.shutdown(wait=False, cancel_futures=True)

    def _welcome(self, channel: Channel) -> None:
        if not self._make_room(channel.origin):
            channel.abort()
            return
        process = secrets.randbelow(2**31 - 1) + 1
        while process in self._guests:
            process = secrets.randbelow(2**31 - 1) + 1
        guest = self._guests[process] = _Guest(process, channel, secrets.token_bytes(4), monotonic())
        channel.keep_alive(_KEEPALIVE)
        guest.task = asyncio.get_running_loop().create_task(self._attend(guest))

    def _make_room(self, origin: str) -> bool:
        """Whether a stranger may come in, if need be after another had to leave who took a place and showed nothing.

        The newest wins: whoever knows a token shows it at once, and silence must not keep anybody out. Beyond a few
        from one address, whoever lingers leaves; where all places are taken, the one who has waited longest among
        those of the address that has most of them.
        """
        late = monotonic() - self._limits.lingering_seconds
        same = [guest for guest in self._strangers() if guest.channel.origin == origin and not guest.shown]
        for guest in same[: max(0, len(same) + 1 - self._limits.strangers_each)]:
            if guest.since < late:
                self._drop(guest)
        if len(self._strangers()) < self._limits.strangers:
            return True
        silent = [guest for guest in self._strangers() if not guest.shown]
        most = Counter(guest.channel.origin for guest in silent).most_common(1)
        for guest in [guest for guest in silent if guest.channel.origin == most[0][0]][:1]:
            self._drop(guest)
        return bool(silent)

    def _strangers(self) -> list[_Guest]:
        """Connections that were not let in yet, the oldest first."""
        return [guest for guest in self._guests.values() if guest.session is None]

    def _drop(self, guest: _Guest) -> None:
        guest.channel.abort()
        self._guests.pop(guest.process, None)

    def _check_room(self, owner: str = "") -> None:
        """Refuse a session where all places are taken, or all those of one token, whose key is `owner`."""
        sessions = self._sessions()
        if len(sessions) >= self._limits.connections or self._stopping:
            raise PgError("53300", "too many connections; close some, or try again shortly")
        if owner and len(self._sessions(owner)) >= self._limits.connections_each:
            raise PgError("53300", f"a token may have at most {self._limits.connections_each} connections; close some")

    def _sessions(self, owner: str = "") -> list[Session]:
        """The sessions of a token, or all of them."""
        sessions = [guest.session for guest in self._guests.values() if guest.session is not None]
        return [session for session in sessions if not owner or session.owner == owner]

    def _cells_held(self, owner: str) -> int:
        """Cells of results that open cursors of a token hold, in all of its sessions."""
        return sum(session.cells_held for session in self._sessions(owner))

    async def _attend(self, guest: _Guest) -> None:
        """One connection from beginning to end; nothing that happens in it reaches the others."""
        channel = guest.channel
        try:
            await self._open_and_run(guest)
        except PgError as error:
            await say_goodbye(channel, error, self._limits)
        except asyncio.CancelledError:
            await say_goodbye(channel, ENDING, self._limits)
        except (Closed, TimeoutError, OSError):
            channel.abort()
        except Exception as error:
            await say_goodbye(channel, as_error(error), self._limits)
        finally:
            channel.close()
            self._guests.pop(guest.process, None)

    async def _open_and_run(self, guest: _Guest) -> None:
        try:
            async with asyncio.timeout(self._limits.opening_seconds):
                session = await self._open(guest)
        except TimeoutError:
            raise PgError("08006", "no token was shown in time") from None
        if session is not None:
            await session.run()

    async def _open(self, guest: _Guest) -> Session | None:
        """Let a client in, or cancel what another connection runs."""
        given = await self._opening(guest.channel)
        if given is None:
            return None
        self._check_room()
        token = await self._password(guest.channel)
        guest.shown = True
        user, wanted = given.get("user", ""), given.get("database", "") or given.get("user", "")
        # Libraries name the database after the user, or "postgres", where nobody says which one is meant.
        database = "" if wanted in (DATABASE, "postgres", user) else wanted
        port = self._settings.port
        facts = SessionFacts(user or "tacit", wanted or DATABASE, guest.process, port, self._options(given, user))
        desk = Desk(self._tables, self._access, token, facts, database)
        owner = (await self._check(desk, token, wanted if database else "")).key
        # Others may have been let in meanwhile.
        self._check_room(owner)
        self._greet(guest, facts.settings)
        jobs = Jobs(self._work, owner, partial(self._cells_held, owner))
        guest.session = Session(guest.channel, desk, facts, self._limits, jobs)
        return guest.session

    async def _opening(self, channel: Channel) -> dict[str, str] | None:
        seconds = self._limits.opening_seconds
        for _ in range(4):
            length, code = say.OPENING.unpack(await channel.read(8, seconds))
            if not 8 <= length <= self._limits.opening_bytes:
                raise say.malformed("the opening message is too long, or not of PostgreSQL's protocol")
            rest = await channel.read(length - 8, seconds)
            if code in (say.SSL_REQUEST, say.GSS_REQUEST):
                await secure(channel, self._context, code, self._limits)
            elif code == say.CANCEL_REQUEST:
                self._cancel(rest)
                return None
            elif code >> 16 == 3:
                return self._version(channel, code, say.decode_opening(rest))
            else:
                raise PgError("0A000", "only version 3 of the protocol is spoken here")
        raise say.malformed("encryption was asked for too often")

    def _version(self, channel: Channel, code: int, given: dict[str, str]) -> dict[str, str]:
        unknown = [name for name in given if name.startswith("_pq_.")]
        if code != say.VERSION_3 or unknown:
            channel.write(say.negotiate_version(0, unknown))
        return given

    def _cancel(self, data: bytes) -> None:
        if len(data) != 8:
            return
        guest = self._guests.get(unpack("!I", data[:4])[0])
        if guest is not None and guest.session is not None and hmac.compare_digest(guest.secret, data[4:]):
            guest.session.cancel()

    async def _password(self, channel: Channel) -> str:
        if not (channel.secure or channel.is_local or self._settings.insecure):
            raise PgError("28000", "the token would cross the network in the clear",
                          hint="Connect with sslmode=require.")  # fmt: skip
        channel.write(say.encode("R", b"\0\0\0\3"))
        await channel.flush(self._limits.write_seconds)
        letter, length = say.HEAD.unpack(await channel.read(5, self._limits.opening_seconds))
        if letter != b"p" or not 5 <= length <= 1000:
            raise say.malformed("a password was expected")
        body = say.Body(await channel.read(length - 4, self._limits.opening_seconds))
        found = body.text()
        body.end()
        return found

    def _options(self, given: dict[str, str], user: str) -> SessionSettings:
        settings = SessionSettings(user, given.get("application_name", ""))
        for name, value in opening_options(given.get("options", "")):
            settings.set(name, value)
        skipped = ("user", "database", "options", "replication", "client_encoding", "application_name")
        for name, value in given.items():
            if name not in skipped and not name.startswith("_pq_."):
                # What a library prefers is no reason to turn it away; what it gets is reported to it below.
                with suppress(PgError):
                    settings.set(name, value)
        return settings

    async def _check(self, desk: Desk, token: str, database: str) -> Bearer:
        """Whoever shows the token; refuse tokens that cannot read, and databases that do not exist."""
        loop = asyncio.get_running_loop()
        try:
            bearer = await loop.run_in_executor(self._door, self._access.bearer, token)
            if bearer is None:
                raise PgError("28P01", "password authentication failed",
                              hint="The password is a token with the right to read, tct_...")  # fmt: skip
            if not bearer.may(READ, bearer.collection):
                raise PgError("28000", f"a token with the scope '{bearer.scope}' may not read")
            found = await loop.run_in_executor(self._door, desk.readable)
        except Exception as error:
            raise as_error(error) from None
        if database and not found:
            raise PgError("3D000", f'database "{database[:63]}" does not exist',
                          hint=f'Connect to "{DATABASE}", or to the id of a collection with rows.')  # fmt: skip
        return bearer

    def _greet(self, guest: _Guest, settings: SessionSettings) -> None:
        channel = guest.channel
        channel.write(say.encode("R", b"\0\0\0\0"))
        for name in REPORTED:
            channel.write(say.parameter_status(name, settings.get(name)))
        channel.write(say.backend_key(guest.process, int.from_bytes(guest.secret, "big")))


def pg_server(app: Any, settings: PgSettings) -> PgServer:
    """The server for the tables of an application."""
    return PgServer(app.tables, app.collector.access, app.collector.work, settings)
