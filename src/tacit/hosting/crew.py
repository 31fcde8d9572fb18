"""Several processes for one server: forked by a parent that only watches, started again if they die, stopped in order.

The parent has no threads and opens no database, so that a fork copies nothing that is in use: SQLite, for one, must not
be carried through a fork. Children end with their parent, however that ends: each waits for the end of a pipe whose
other side the parent alone holds (`_Lifeline`).
"""

import gc
import logging
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tacit.errors import StorageUnavailable

LOG = logging.getLogger("tacit.hosting")

_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}
_STOP_SECONDS = 40
"""How long a child may take to stop before it is killed: the grace of requests that have begun, and as much again."""
_LONG_ENOUGH = 1.0
"""A child that lived for fewer seconds failed to start."""
_MOST_FAILURES = 5


class CrewJob(Protocol):
    """What a process of a crew does."""

    @property
    def name(self) -> str:
        """The name of the process in log lines."""
        ...

    @property
    def is_first(self) -> bool:
        """Whether the others need it: it starts before them, stops after them, and if it dies all are started again."""
        ...

    def prepare(self) -> Callable[[], None]:
        """Called in the parent: make the resources of the process, and return its main function."""
        ...

    def started(self) -> None:
        """Close in the parent what the process alone needs."""
        ...

    def stop(self, pid: int) -> None:
        """Ask the process to stop."""
        ...


class _Lifeline:
    """A pipe that ends when the parent does."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def hold(self) -> None:
        """In a child: end this process at once when the parent has gone, as nobody would stop or restart it."""
        os.close(self._write)
        threading.Thread(target=self._wait, name="tacit-lifeline", daemon=True).start()

    def _wait(self) -> None:
        os.read(self._read, 1)
        # Without ceremony, like a kill: what was acknowledged is durable, and a new parent may want the ports now.
        os._exit(1)

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


def _fork(run: Callable[[], None], lifeline: _Lifeline) -> int:
    """Run a function in a new process; its number."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        lifeline.hold()
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        run()
        status = 0
    except Exception as error:
        # By type, as a message might hold data.
        LOG.error("crew: a process ended with %s", type(error).__name__)
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        # The parent's exit handlers are not this process's to run.
        os._exit(status)


def run_apart(work: Callable[[], None]) -> None:
    """Run a function to its end in a child process; its exception is raised here."""
    told, tell = os.pipe()
    lifeline = _Lifeline()

    def run() -> None:
        os.close(told)
        try:
            work()
        except Exception as error:
            os.write(tell, pickle.dumps(error))
            raise SystemExit(1) from None

    pid = _fork(run, lifeline)
    os.close(tell)
    with os.fdopen(told, "rb") as pipe:
        raised = pipe.read()
    status = os.waitpid(pid, 0)[1]
    lifeline.close()
    if raised:
        raise pickle.loads(raised)
    if status:
        raise StorageUnavailable("serve: the process that prepares the storage was killed")


@dataclass
class _Running:
    """A job and the process that does it."""

    job: CrewJob
    pid: int = 0
    since: float = 0.0


@dataclass
class Crew:
    """The processes of a server."""

    jobs: Sequence[CrewJob]
    stopping: Callable[[], None]
    """Called when the crew is told to stop, before the processes are: no more connections."""
    _lifeline: _Lifeline = field(default_factory=_Lifeline)
    _failures: int = 0
    _running: list[_Running] = field(default_factory=list[_Running])

    def run(self) -> None:
        """Keep all jobs running until SIGTERM or SIGINT; StorageUnavailable if they cannot be started."""
        # Blocked, and waited for one by one: a handler could run between looking and sleeping.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        # What is there now never becomes garbage; a collection in a child would copy its pages for nothing.
        gc.freeze()
        self._running = [_Running(job) for job in sorted(self.jobs, key=lambda job: not job.is_first)]
        try:
            self._start()
            while signal.sigwait(_SIGNALS) == signal.SIGCHLD:
                self._replace(self._reap())
        finally:
            self.stopping()
            self._stop()
            self._lifeline.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _start(self) -> None:
        for member in self._running:
            if not member.pid:
                run = member.job.prepare()
                member.pid, member.since = _fork(run, self._lifeline), time.monotonic()
                member.job.started()

    def _reap(self) -> list[_Running]:
        """Those whose process has ended."""
        dead: list[_Running] = []
        for member in self._running:
            if member.pid and os.waitpid(member.pid, os.WNOHANG)[0]:
                member.pid = 0
                dead.append(member)
        return dead

    def _replace(self, dead: list[_Running]) -> None:
        for member in dead:
            lived = time.monotonic() - member.since
            self._failures = self._failures + 1 if lived < _LONG_ENOUGH else 0
            LOG.warning("crew: %s has ended and is started again", member.job.name)
        if self._failures > _MOST_FAILURES:
            raise StorageUnavailable("serve: a process of this server ends again and again right after its start")
        if any(member.job.is_first for member in dead):
            self._stop()
        if dead:
            # Not at full speed if whatever ended it is still there.
            time.sleep(0.1 * self._failures)
            self._start()

    def _stop(self) -> None:
        """Stop all: first those that need others."""
        for first in (False, True):
            members = [member for member in self._running if member.pid and member.job.is_first == first]
            for member in members:
                member.job.stop(member.pid)
            self._wait(members)

    def _wait(self, members: list[_Running]) -> None:
        end = time.monotonic() + _STOP_SECONDS
        while any(member.pid for member in members):
            self._reap()
            if time.monotonic() >= end:
                for member in members:
                    if member.pid:
                        os.kill(member.pid, signal.SIGKILL)
            # A child may have ended before the wait began: look again soon in any case.
            signal.sigtimedwait({signal.SIGCHLD}, 0.05)
