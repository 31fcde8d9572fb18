"""Any program in any language that prints reports: one report per line, its wire bytes in hexadecimal."""

import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from signal import SIGKILL
from tempfile import TemporaryFile
from threading import TIMEOUT_MAX, Event, Timer
from typing import Any

from tacit.core.mechanism import Mechanism, Reports
from tacit.errors import InvalidSpec, ProgramFailed, ReportRejected

AT_ONCE = 1 << 18
"""Reports that one start of a program is asked for at most, so that memory stays bounded."""
VALUE, RUNS = "{value}", "{runs}"


def value_text(value: Any) -> str:
    """A value as a program is given it: an integer as digits, anything else as JSON without spaces."""
    return str(value) if isinstance(value, (int, str)) else json.dumps(value, separators=(",", ":"))


def words_of(command: str) -> list[str]:
    """A command as the program and its arguments; InvalidSpec if there is none, or a quote is open."""
    try:
        words = shlex.split(command)
    except ValueError:
        raise InvalidSpec("command: a quote is not closed; write it as for a shell") from None
    if not words:
        raise InvalidSpec('command is empty; write the program and its arguments, such as "node my.js {value}"')
    return words


def check_timeout(seconds: float) -> None:
    """Refuse what is no time to wait."""
    if not 0 < seconds <= TIMEOUT_MAX:
        raise InvalidSpec(f"timeout is {seconds:g}, must be a number of seconds above 0")


@dataclass(frozen=True)
class Program:
    """A command that prints reports.

    `{value}` and `{runs}` in it are replaced. Without `{runs}` the program reads one value per line from standard
    input; where it prints fewer reports than that and its command names the value, it is started again for the rest.
    """

    command: str
    timeout_seconds: float = 600.0
    """The longest that one start of the program may take."""

    def __post_init__(self) -> None:
        """Refuse a command that is empty or not quoted well."""
        words_of(self.command)
        check_timeout(self.timeout_seconds)

    def sample(self, mechanism: Mechanism, value: Any, runs: int) -> Iterator[Reports]:
        """Yield batches of reports on one value, `runs` in all; anything else that is printed raises."""
        left = runs
        while left:
            asked = min(left, AT_ONCE)
            reports = read_reports(mechanism, self._start(mechanism, value_text(value), asked))
            if len(reports) != asked:
                self._check_count(len(reports), asked)
            left -= len(reports)
            yield reports

    def _check_count(self, printed: int, asked: int) -> None:
        one_by_one = VALUE in self.command and RUNS not in self.command
        if not (one_by_one and 0 < printed < asked):
            raise ProgramFailed(
                f"program: it printed {printed} reports and was asked for {asked}; print one report per line, as often "
                "as {runs} says or as lines were read"
            )

    def _start(self, mechanism: Mechanism, value: str, asked: int) -> bytes:
        # Split before replacing, so that a value with spaces stays one argument.
        words = [w.replace(VALUE, value).replace(RUNS, str(asked)) for w in words_of(self.command)]
        lines = b"" if RUNS in self.command else (value + "\n").encode() * asked
        # Two characters a byte, and two for the end of a line; one more byte shows that there was too much.
        most = asked * (2 * mechanism.report_dtype.itemsize + 2) + 1
        return run_bounded(words, lines, most, self.timeout_seconds)


def run_bounded(words: list[str], lines: bytes, most: int, timeout_seconds: float) -> bytes:
    """Return what a program printed, at most so many bytes in so many seconds; a failure raises ProgramFailed.

    Whatever it started itself is ended with it: a program that goes on in the background holds nobody up.
    """
    # Files instead of pipes, so that a program that does not read, or complains at length, never blocks.
    with TemporaryFile() as stdin, TemporaryFile() as stderr:
        stdin.write(lines)
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                words, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "its arguments hold a zero byte"
            raise ProgramFailed(f"program: {words[0]} cannot be started: {why}") from None
        printed, late = _printed(process, most, timeout_seconds)
        if len(printed) == most:
            raise ProgramFailed("program: it printed more than it was asked for; print one report per line")
        if late or process.returncode:
            stderr.seek(0)
            said = stderr.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
            why = f"stopped after {timeout_seconds:g} s" if late else f"ended with status {process.returncode}"
            raise ProgramFailed(f"program: it {'was ' if late else ''}{why}{': ' + said[-1][:200] if said else ''}")
        return printed


def _printed(process: "subprocess.Popen[bytes]", most: int, timeout_seconds: float) -> tuple[bytes, bool]:
    """What a process prints, and whether it had to be stopped for taking too long; it has ended afterwards."""
    is_late = Event()

    def give_up() -> None:
        is_late.set()
        _end(process)

    timer = Timer(timeout_seconds, give_up)
    timer.daemon = True
    timer.start()
    stdout = process.stdout
    assert stdout is not None
    try:
        printed = stdout.read(most)
        stdout.close()
        # Whoever prints too much is ended below, and not waited for. Not reaped yet: until then its number, which is
        # that of its group, is nobody else's.
        if len(printed) < most:
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    finally:
        timer.cancel()
        # Also when the audit itself is interrupted: a group of its own is not told of that.
        _end(process)
        process.wait()
    return printed, is_late.is_set()


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a program and all that it started; its group has the number of the program, which began a session."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, SIGKILL)


def read_reports(mechanism: Mechanism, printed: bytes) -> Reports:
    """Return reports from lines of hexadecimal digits; a line that is none, or that no device sends, is refused."""
    digits = 2 * mechanism.report_dtype.itemsize
    lines, report = printed.split(), re.compile(rb"[0-9a-fA-F]{%d}" % digits)
    wrong = next((i for i, line in enumerate(lines, 1) if not report.fullmatch(line)), None)
    if wrong is not None:
        raise ReportRejected(
            f"{mechanism.kind} {mechanism.digest[:6]}: line {wrong} is no report; a report is {digits} hexadecimal "
            "digits on a line of its own"
        )
    return mechanism.check_reports(mechanism.decode(bytes.fromhex(b"".join(lines).decode("ascii"))))
