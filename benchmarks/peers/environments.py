"""One virtual environment per peer, made on demand, and the running of one job inside it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1] / ".venv-bench"
PEERS = ("pure-ldp", "multi-freq-ldpy", "ldp-toolbox", "opendp")
INSTALL_SECONDS = 600


class PeerUnavailable(Exception):
    """A peer could not be installed or did not finish its job; the message is one line."""


def requirements(peer: str) -> Path:
    """Return the file that lists what a peer needs."""
    return HERE / f"requirements-{peer}.txt"


def ensure(peer: str) -> Path:
    """Return the interpreter of a peer's environment, installing the peer if its requirements changed."""
    folder = HOME / peer
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = hashlib.sha256(requirements(peer).read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    _checked([sys.executable, "-m", "venv", str(folder)], INSTALL_SECONDS)
    install = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(requirements(peer))]
    _checked([str(python), *install], INSTALL_SECONDS)
    # Written last: an installation that was interrupted is done again.
    stamp.write_text(wanted)
    return python


def run_job(peer: str, job: dict[str, Any]) -> dict[str, Any]:
    """Run one job (see `common.py`) in the environment of a peer and return its answer."""
    script = HERE / f"run_{peer.replace('-', '_')}.py"
    # Beyond the budget of the timed part come the imports, a pilot, and the encoding of what is tallied.
    allowed = 90 + 8 * job["seconds"]
    output = _checked([str(ensure(peer)), str(script), json.dumps(job)], allowed)
    return json.loads(output.splitlines()[-1])


def _checked(command: Sequence[str], seconds: float) -> str:
    """Return what a command prints; turn every way of failing into PeerUnavailable."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise PeerUnavailable(f"no answer within {seconds:.0f} s") from None
    except subprocess.CalledProcessError as error:
        raise PeerUnavailable(_last_line(error.stderr) or f"exit status {error.returncode}") from None
    except OSError as error:
        raise PeerUnavailable(str(error.strerror)) from None
    return done.stdout


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
