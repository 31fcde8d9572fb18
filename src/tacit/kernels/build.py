"""Compile the C core into a shared library beside its sources.

Run it with ``python -m tacit.kernels.build``. It needs nothing but the standard library and does not import
the package, so that ``setup.py`` can load it by path before anything is installed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = "_tacit.so"

# Contracting a * b + c into one rounding would make the library differ from its numpy twin.
_COMMON = ("-fPIC", "-shared", "-std=gnu11", "-ffp-contract=off")

# From best to plainest. TACIT_PLAIN tells the sources that this compiler or C library has no function
# multiversioning, so that they leave out target_clones.
FLAG_SETS: tuple[tuple[str, ...], ...] = (
    ("-O3", *_COMMON, "-pthread"),
    ("-O3", *_COMMON, "-pthread", "-DTACIT_PLAIN"),
    ("-O2", "-fPIC", "-shared", "-DTACIT_PLAIN"),
)

SANITIZED: tuple[tuple[str, ...], ...] = (
    ("-O1", "-g", *_COMMON, "-pthread", "-DTACIT_PLAIN", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
"""Flags of a core that stops at the first read or write out of bounds; it runs with the sanitiser preloaded."""


class CompileError(RuntimeError):
    """The compiler failed; the message is its output."""


def build(target_dir: Path = HERE, flag_sets: Sequence[Sequence[str]] = FLAG_SETS) -> Path | None:
    """Compile every C file beside this one into ``target_dir``; return the library, or None without one."""
    sources = sorted(HERE.glob("*.c"))
    if not sources:
        print("tacit: no C sources to compile; the numpy twin will be used")
        return None
    library = target_dir / LIBRARY
    if _is_fresh(library, [*sources, *HERE.glob("*.h"), Path(__file__)]):
        return library
    compiler = find_compiler()
    if compiler is None:
        print("tacit: no C compiler was found; the numpy twin will be used")
        return None
    target_dir.mkdir(parents=True, exist_ok=True)
    _compile(compiler, sources, library, flag_sets)
    return library


def find_compiler() -> list[str] | None:
    """Return the compiler's command, from the environment variable CC or else ``cc``; None if not there."""
    command = shlex.split(os.environ.get("CC", "")) or ["cc"]
    return command if shutil.which(command[0]) else None


def _is_fresh(library: Path, sources: Sequence[Path]) -> bool:
    if not library.exists():
        return False
    built = library.stat().st_mtime_ns
    return all(source.stat().st_mtime_ns < built for source in sources)


def _compile(
    compiler: Sequence[str], sources: Sequence[Path], library: Path, flag_sets: Sequence[Sequence[str]]
) -> None:
    """Try the flag sets in turn; the library appears under its name only when it is complete."""
    complaints: list[str] = []
    # The scratch folder is beside the library, so that the rename stays within one file system.
    with tempfile.TemporaryDirectory(prefix=".build-", dir=library.parent) as scratch:
        output = Path(scratch) / library.name
        for flags in flag_sets:
            command = [*compiler, *flags, "-o", str(output), *map(str, sources), "-lm"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode == 0:
                output.replace(library)
                return
            complaints.append(result.stderr or result.stdout)
    # The first set's complaint is the telling one: later sets only take features away.
    raise CompileError(complaints[0].rstrip() or f"{compiler[0]} failed without a message")


def main() -> int:
    """Build in place; return the exit status."""
    try:
        build()
    except CompileError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
