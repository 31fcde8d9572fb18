"""One connection of a client that speaks PostgreSQL's protocol: how it is let in, and what it is answered."""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tacit.collector.pg import messages as say
from tacit.collector.pg import values as pg
from tacit.collector.pg.catalog_functions import SessionFacts
from tacit.collector.pg.channel import Channel, Closed
from tacit.collector.pg.commands import (
    Portal,
    SessionState,
    check_command,
    check_transaction,
    declared,
    fetched,
    is_query,
    run_command,
    show_fields,
)
from tacit.collector.pg.copying import CopyFormat, copy_messages, read_copy
from tacit.collector.pg.messages import PgError, PgLimits
from tacit.collector.pg.settings import REPORTED
from tacit.collector.pg.statement import Desk, Prepared, StatementResult, as_error
from tacit.collector.pg.text import Statement, statements
from tacit.collector.pg.values import Field
from tacit.collector.work import Work
from tacit.hosting.problems import Problem

_FLUSH_BYTES = 1 << 16
_MOST_FETCHED = 10**9
_SHORT_TEXT = 1000
T = TypeVar("T")

ENDING = PgError("57P01", "terminating connection due to administrator command", fatal=True)
"""What clients are told when the server stops."""


@dataclass(frozen=True)
class Jobs:
    """Where statements are answered, for whom, and what that token holds already in all of its sessions."""

    work: Work
    owner: str
    cells_held: Callable[[], int]


class Session:
    """Answers the messages of one client that has been let in."""

    def __init__(self, channel: Channel, desk: Desk, facts: SessionFacts, limits: PgLimits, jobs: Jobs) -> None:
        """Statements are answered as jobs of the token's bearer."""
        self._channel, self._desk, self._limits, self._jobs = channel, desk, limits, jobs
        self._state = SessionState(facts)
        self._cancelled = asyncio.Event()
        self._skipping = False
        self.busy = self.leaving = False
        """Whether a statement runs now, and whether the session ends after it."""

    @property
    def owner(self) -> str:
        """The key of the token that was shown."""
        return self._jobs.owner

    @property
    def cells_held(self) -> int:
        """Cells of results that open portals hold."""
        return sum(portal.cells for portal in self._state.portals.values())

    def cancel(self) -> None:
        """End the statement that runs now, if one does."""
        # A request that comes between two statements is about the one before, and must not end the next.
        if self.busy:
            self._cancelled.set()

    async def run(self) -> None:
        """Answer until the client leaves."""
        await self._ready()
        while not self.leaving:
            letter, body = await self._message()
            if letter == b"X":
                return
            # After an error everything up to Sync is dropped: what was sent ahead relies on the message that failed.
            if self._skipping and letter != b"S":
                continue
            try:
                await self._handle(say.decode(letter, body))
            except PgError as error:
                # A function call is no part of the extended protocol: its client waits for no Sync of its own.
                await self._fail(error, simple=letter in (b"Q", b"F"))
        raise ENDING

    async def _message(self) -> tuple[bytes, bytes]:
        limits = self._limits
        try:
            # Only the first byte may take long: a message that has begun and stalls would hold the connection.
            head = await self._channel.read(1, limits.idle_seconds)
        except TimeoutError:
            raise PgError("57P05", "terminating connection due to idle-session timeout", fatal=True) from None
        async with asyncio.timeout(limits.message_seconds):
            head += await self._channel.read(4, limits.message_seconds)
            letter, length = say.HEAD.unpack(head)
            if not 4 <= length <= limits.message_bytes:
                raise say.malformed(f"a message may have at most {limits.message_bytes} bytes")
            return letter, await self._channel.read(length - 4, limits.message_seconds)

    async def _fail(self, error: PgError, *, simple: bool) -> None:
        if error.fatal:
            raise error
        self._state.fail()
        self._channel.write(say.encode_error(error))
        if simple:
            await self._ready()
        else:
            self._skipping = True
            await self._flush()

    async def _ready(self) -> None:
        self._report_settings()
        self._channel.write(say.ready(self._state.transaction))
        await self._flush()

    def _report_settings(self) -> None:
        facts = self._state.facts
        for name in sorted(facts.changed & set(REPORTED)):
            self._channel.write(say.parameter_status(name, facts.settings.get(name)))
        facts.changed.clear()

    async def _flush(self) -> None:
        await self._channel.flush(self._limits.write_seconds)

    async def _handle(self, message: say.Message) -> None:
        match message:
            case say.SimpleQuery(sql):
                await self._simple(sql)
            case say.Parse():
                await self._parse(message)
            case say.Bind():
                self._bind(message)
            case say.Describe(kind, name):
                self._describe(kind, name)
            case say.Execute(name, limit):
                await self._execute(name, limit)
            case say.Close(kind, name):
                (self._state.statements if kind == "S" else self._state.portals).pop(name, None)
                self._channel.write(say.encode("3"))
            case say.Plain(letter):
                await self._plain(letter)

    async def _plain(self, letter: str) -> None:
        if letter == "S":
            self._skipping = False
            # Outside a transaction block Sync ends the implicit one, and the unnamed portal with it.
            if self._state.transaction == "I":
                self._state.portals.pop("", None)
            await self._ready()
        elif letter == "H":
            await self._flush()
        elif letter == "F":
            raise PgError("0A000", "function calls of the protocol are not supported", hint="Send a SELECT.")

    async def _simple(self, sql: str) -> None:
        found = await self._cut(sql)
        if not found:
            self._channel.write(say.encode("I"))
        for statement in found:
            check_transaction(self._state, statement)
            if statement.parameters:
                raise PgError("42P02", f"there is no parameter ${statement.parameters[0]}")
            result = await self._answer(statement)
            if result.copy is not None:
                await self._copy(result, result.copy)
            elif result.fields is not None:
                formats = (0,) * len(result.fields)
                self._channel.write(say.row_description([item.described for item in result.fields], formats))
                await self._send(result.rows, result.fields, formats)
            self._finish(result)
        await self._ready()

    async def _answer(self, statement: Statement) -> StatementResult:
        """The result of a statement of the simple protocol: a query is one job, under one time limit."""
        if not is_query(statement):
            return await self._run(Portal(await self._prepare(statement, ())))
        return await self._in_thread(lambda: self._desk.run(self._desk.prepare(statement)), statement)

    async def _cut(self, sql: str) -> list[Statement]:
        """The statements of a text. A long one is cut in a thread, as the lexer would hold up the event loop."""
        if len(sql) < _SHORT_TEXT:
            return statements(sql, self._limits.text_bytes)
        return await self._in_thread(lambda: statements(sql, self._limits.text_bytes))

    def _finish(self, result: StatementResult, rows: int | None = None) -> None:
        self._notify(result)
        self._report_settings()
        tag = result.tag if rows is None or not result.tag.startswith("SELECT") else f"SELECT {rows}"
        self._channel.write(say.complete(tag))

    def _notify(self, result: StatementResult) -> None:
        if self._state.facts.settings.get("client_min_messages").lower() in ("warning", "error", "log", "fatal"):
            return
        for words in result.notices:
            self._channel.write(say.encode_notice(words))

    async def _send(self, rows: Sequence[tuple[Any, ...]], fields: tuple[Field, ...], formats: Sequence[int]) -> None:
        digits = self._state.facts.settings.digits
        kinds = [(field.type, form) for field, form in zip(fields, formats, strict=True)]
        for row in rows:
            values = [pg.encode_value(value, *kind, digits) for value, kind in zip(row, kinds, strict=True)]
            self._channel.write(say.data_row(values))
            await self._pause()

    async def _copy(self, result: StatementResult, form: CopyFormat) -> None:
        for message in copy_messages(form, result.fields or (), result.rows, self._state.facts.settings.digits):
            self._channel.write(message)
            await self._pause()

    async def _pause(self) -> None:
        """Flush a part of a long answer and yield to the event loop."""
        if self._channel.unsent > _FLUSH_BYTES:
            await self._flush()
            await asyncio.sleep(0)

    async def _prepare(self, statement: Statement, types: Sequence[int]) -> Prepared:
        """Parse a statement when it is sent, so that mistakes are reported by Parse and not first by Execute."""
        word = statement.words[0]
        if is_query(statement):
            return await self._in_thread(lambda: self._desk.prepare(statement, types), statement)
        if word == "DECLARE":
            start = declared(statement)[2]
            inner = statements(statement.text[start:], self._limits.text_bytes)
            if len(inner) != 1 or not is_query(inner[0]):
                raise PgError("42601", "a cursor is for one SELECT")
            query = await self._in_thread(
                lambda: self._desk.prepare(inner[0], types),
                replace(inner[0], start=statement.start + start + inner[0].start),
            )
            return Prepared(statement, "declare", query.types, inner=query)
        if word == "COPY":
            query, form = read_copy(statement, self._limits.text_bytes)
            inner = await self._in_thread(lambda: self._desk.prepare(query, types), query)
            return Prepared(statement, "copy", inner.types, inner=inner, copy=form)
        check_command(statement)
        fields = show_fields(statement) if word == "SHOW" else None
        if word == "FETCH":
            fields = self._fields(self._portal(fetched(statement)[0]).prepared)
        return Prepared(statement, "command", fields=fields)

    def _portal(self, name: str) -> Portal:
        found = self._state.portals.get(name)
        if found is None:
            raise PgError("34000", f"portal {name[:63]!r} does not exist")
        return found

    def _fields(self, prepared: Prepared) -> tuple[Field, ...] | None:
        return self._desk.fields(prepared)

    async def _run(self, portal: Portal) -> StatementResult:
        """The result of a portal, which is computed once."""
        prepared = portal.prepared
        if portal.result is not None:
            return portal.result
        word = prepared.statement.words[0]
        if prepared.kind == "declare":
            portal.result = self._declare(prepared, portal)
        elif prepared.kind == "copy" and (query := prepared.inner) is not None:
            result = await self._in_thread(lambda: self._desk.run(query, portal.values), query.statement)
            portal.result = replace(result, tag=f"COPY {len(result.rows)}", copy=prepared.copy)
        elif prepared.kind != "command":
            portal.result = await self._in_thread(lambda: self._desk.run(prepared, portal.values), prepared.statement)
        elif word in ("FETCH", "MOVE"):
            portal.result = await self._fetch(prepared.statement)
        else:
            portal.result = run_command(self._state, prepared.statement)
        self._check_held(portal)
        return portal.result

    def _check_held(self, portal: Portal) -> None:
        """Refuse a result that would stay in a cursor beyond what one token may hold."""
        if portal in self._state.portals.values() and self._jobs.cells_held() > self._limits.cells_each:
            portal.result = None
            raise PgError("53200", f"the open cursors of this token hold more than {self._limits.cells_each} cells",
                          hint="Close cursors, or end the transactions that they belong to.")  # fmt: skip

    async def _run_or_check(self, portal: Portal) -> StatementResult:
        """The result of a portal. Rows of an earlier computation are sent only if the token may still read them."""
        if portal.result is not None and is_query(portal.prepared.statement):
            await self._in_thread(lambda: self._desk.check(portal.prepared))
        return await self._run(portal)

    def _declare(self, prepared: Prepared, portal: Portal) -> StatementResult:
        name, hold, _ = declared(prepared.statement)
        if name in self._state.portals:
            raise PgError("42P03", f"cursor {name[:63]!r} already exists")
        assert prepared.inner is not None
        self._keep_portal(name, Portal(prepared.inner, portal.values, hold=hold))
        return StatementResult("DECLARE CURSOR")

    async def _fetch(self, statement: Statement) -> StatementResult:
        name, limit = fetched(statement)
        cursor = self._portal(name)
        try:
            result = await self._run_or_check(cursor)
        except PgError as error:
            error.position = 0  # The text at fault is that of DECLARE, which was sent before.
            raise
        rows, _ = cursor.take(min(limit, _MOST_FETCHED))
        if statement.words[0] == "MOVE":
            return StatementResult(f"MOVE {len(rows)}")
        notices = result.notices if cursor.at == len(rows) else ()
        return StatementResult(f"FETCH {len(rows)}", result.fields, rows, notices)

    def _keep_portal(self, name: str, portal: Portal) -> None:
        if len(self._state.portals) >= self._limits.portals and name not in self._state.portals:
            raise PgError("54000", f"a session has at most {self._limits.portals} open portals")
        self._state.portals[name] = portal

    async def _parse(self, message: say.Parse) -> None:
        kept = self._state.statements
        if message.name and message.name in kept:
            raise PgError("42P05", f"prepared statement {message.name[:63]!r} already exists")
        # The unnamed statement is replaced, and is gone even if the new text is refused.
        kept.pop(message.name, None)
        size = sum(len(item.statement.text) for item in kept.values()) + len(message.sql)
        if len(kept) >= self._limits.statements or size > self._limits.kept_bytes:
            raise PgError("54000", "too many prepared statements; close some")
        found = await self._cut(message.sql)
        if len(found) > 1:
            raise PgError("42601", "cannot insert multiple commands into a prepared statement")
        if found:
            check_transaction(self._state, found[0])
            kept[message.name] = await self._prepare(found[0], message.types)
        else:
            kept[message.name] = Prepared(Statement("", ("",)), "empty")
        self._channel.write(say.encode("1"))

    def _statement(self, name: str) -> Prepared:
        found = self._state.statements.get(name)
        if found is None:
            raise PgError("26000", f"prepared statement {name[:63]!r} does not exist")
        return found

    def _bind(self, message: say.Bind) -> None:
        prepared = self._statement(message.statement)
        if message.portal and message.portal in self._state.portals:
            raise PgError("42P03", f"portal {message.portal[:63]!r} already exists")
        if len(message.values) != len(prepared.types):
            raise PgError("08P01", f"{len(message.values)} parameters were sent, the statement has "
                          f"{len(prepared.types)}")  # fmt: skip
        forms = say.spread(message.formats, len(message.values))
        given = zip(message.values, prepared.types, forms, strict=True)
        values = [pg.decode_parameter(value, oid, form) for value, oid, form in given]
        self._keep_portal(message.portal, Portal(prepared, values, message.results))
        self._channel.write(say.encode("2"))

    def _describe(self, kind: str, name: str) -> None:
        prepared = self._statement(name) if kind == "S" else self._portal(name).prepared
        if kind == "S":
            self._channel.write(say.parameter_description(prepared.types))
        fields = self._fields(prepared)
        if fields is None:
            self._channel.write(say.encode("n"))
            return
        # A statement has no formats before it is bound, and the protocol says text for all of its columns.
        formats = (0,) * len(fields) if kind == "S" else say.spread(self._portal(name).formats, len(fields))
        self._channel.write(say.row_description([item.described for item in fields], formats))

    async def _execute(self, name: str, limit: int) -> None:
        portal = self._portal(name)
        if portal.prepared.kind == "empty":
            self._channel.write(say.encode("I"))
            return
        check_transaction(self._state, portal.prepared.statement)
        first = portal.result is None
        result = await self._run_or_check(portal)
        if result.copy is not None:
            await self._copy(result, result.copy)
            self._finish(result)
            return
        if result.fields is None:
            self._finish(result)
            return
        rows, more = portal.take(limit)
        await self._send(rows, result.fields, say.spread(portal.formats, len(result.fields)))
        if first and more:
            self._notify(result)
        if more:
            self._channel.write(say.encode("s"))
        else:
            self._finish(result if first else StatementResult(result.tag), len(rows))

    async def _in_thread(self, work: Callable[[], T], about: Statement | None = None) -> T:
        """The result of a job on the collector's threads, under their time limit or a shorter `statement_timeout`.

        The job is given up when the client cancels it, leaves, or the time is over. `about` is the statement in whose
        text an error has its position.
        """
        longest = self._jobs.work.limits.seconds
        seconds = min(self._state.facts.settings.timeout_seconds or longest, longest)
        self._cancelled.clear()
        self.busy = True
        try:
            job = self._jobs.work.submit(self._jobs.owner, work, seconds)
        except Problem as problem:
            self.busy = False
            raise as_error(problem) from None
        future = asyncio.wrap_future(job.future)
        ends = [asyncio.ensure_future(self._cancelled.wait()), asyncio.ensure_future(self._channel.gone.wait())]
        try:
            await asyncio.wait({future, *ends}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
        except Exception as error:
            raise _placed(as_error(error), about) from None
        finally:
            self.busy = False
            for end in ends:
                end.cancel()
            if not future.done():
                future.cancel()
                job.give_up()
        if self._channel.gone.is_set():
            raise Closed
        reason = "user request" if self._cancelled.is_set() else "statement timeout"
        raise PgError("57014", f"canceling statement due to {reason}")


def _placed(error: PgError, statement: Statement | None) -> PgError:
    """An error that points into the text as it was sent, in which the statement may not be the first."""
    error.position = error.position + statement.start if error.position and statement is not None else 0
    return error


async def secure(channel: Channel, context: ssl.SSLContext | None, code: int, limits: PgLimits) -> None:
    """Answer to a request for encryption."""
    if code == say.SSL_REQUEST and context is not None and not channel.secure:
        await channel.start_tls(context, limits.opening_seconds)
        return
    # A bare byte, as the client does not speak in messages yet; it goes on in clear text, or leaves.
    channel.write(b"N")
    await channel.flush(limits.write_seconds)


async def say_goodbye(channel: Channel, error: PgError, limits: PgLimits) -> None:
    """The last words of a connection."""
    with suppress(Closed, TimeoutError, OSError):
        channel.write(say.encode_error(PgError(error.state, error.message, hint=error.hint, fatal=True)))
        await channel.flush(min(1.0, limits.write_seconds))
