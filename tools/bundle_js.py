"""Bundle the JavaScript client for pages: a base, and a module for every group of kinds, loaded when it is needed.

Usage: python tools/bundle_js.py [--if-stale]

Writes js/dist with types, and a copy of its scripts that the dashboard serves and the wheel carries; neither is
committed. With --if-stale, nothing is done where that copy was made of the same sources. The bundler and the minifier
are packages of the npm registry, installed into build/js at exact versions.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from find_node import OLDEST, candidates, major_version

ROOT = Path(__file__).resolve().parent.parent
SOURCE, DIST = ROOT / "js" / "src", ROOT / "js" / "dist"
WORKSHOP = ROOT / "build" / "js"
SERVED = ROOT / "src" / "tacit" / "dashboard" / "bundle"
PACKAGES = {"rollup": "4.68.3", "terser": "5.51.2"}
MOST_BYTES = {"tacit.js": 15_000, "tacit-sealing.js": 10_000}
"""What every page loads, and what pages of shuffled collections load besides; compressed."""

# Both tools through their interfaces: the executables differ between platforms. A module that is loaded dynamically
# becomes a file of its own, with the imports that it needs from the base and from other kinds; what those need of the
# base is exported by it under its own name, so that files of two versions do not fit by accident. The telemetry kit is
# a second door, for pages of applications; as it is loaded after the base, it shares all of it. `build` is the digest
# of the sources: a page that was open while the collector was updated refuses kinds of another build.
SCRIPT = r"""
import { rollup } from "rollup";
import { minify } from "terser";
const [entry, beside, target, build] = process.argv.slice(1);

const stamp = {
  name: "stamp",
  buildStart() {
    const rest = { implicitlyLoadedAfterOneOf: [entry], preserveSignature: "strict" };
    this.emitFile({ type: "chunk", id: beside, name: "telemetry", ...rest });
  },
  transform: (code, id) => (id.endsWith("/load.js") ? code.replace('BUILD = ""', `BUILD = "${build}"`) : null),
  renderChunk: (code, { isDynamicEntry }) => (isDynamicEntry ? `${code}export const build = "${build}";` : null),
};
const short = {
  name: "short",
  renderChunk: async (code) => minify(code, { module: true, ecma: 2022, compress: { passes: 3 } }),
};
const bundle = await rollup({
  input: { tacit: entry },
  plugins: [stamp, short],
  preserveEntrySignatures: "allow-extension",
  onwarn: ({ message }) => {
    throw new Error(message);
  },
});
const names = { entryFileNames: "[name].js", chunkFileNames: "tacit-[name].js", minifyInternalExports: false };
await bundle.write({ dir: target, format: "es", ...names });
"""


class Failed(Exception):
    """The bundle cannot be made; the message says why."""


def find_node() -> str:
    """The Node.js that also runs the tests."""
    for node in candidates():
        if major_version(node) >= OLDEST:
            return node
    raise Failed(
        f"there is no Node.js of version {OLDEST} or newer, and the browser client is bundled with it. Put `node` and "
        "`npm` on PATH (`make install` brings both in .venv/bin), or build from the source distribution, which carries "
        "the bundle and needs neither"
    )


def npm_command(node: str) -> list[str]:
    """The package manager that came with this Node.js, or the one on PATH."""
    prefix = Path(node).resolve().parent.parent
    script = prefix / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if script.is_file():
        return [node, str(script)]
    npm = shutil.which("npm")
    if npm is None:
        raise Failed("there is no npm beside Node.js nor on PATH; it is needed to install the bundler")
    return [npm]


def installed(name: str) -> str:
    """The version of a package in the workshop, or nothing."""
    path = WORKSHOP / "node_modules" / name / "package.json"
    return json.loads(path.read_text(encoding="utf-8"))["version"] if path.is_file() else ""


def install(node: str) -> None:
    """Fetch the tools, unless they are there."""
    if all(installed(name) == version for name, version in PACKAGES.items()):
        return
    WORKSHOP.mkdir(parents=True, exist_ok=True)
    (WORKSHOP / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    quiet = ["--no-save", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
    command = [*npm_command(node), "install", *quiet, *wanted]
    if subprocess.run(command, cwd=WORKSHOP, check=False, stdout=subprocess.DEVNULL).returncode:
        raise Failed(f"npm could not install {' and '.join(wanted)}; is the registry reachable?")


def build_id() -> str:
    """What a bundle is made of: a digest of the modules and of this script."""
    digest = sha256()
    for path in [Path(__file__), *sorted(SOURCE.rglob("*.js"))]:
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def write_types() -> None:
    """The types of the package, and a declaration of what the bundle exports of them."""
    shutil.copy(ROOT / "js" / "index.d.ts", DIST)
    shutil.copytree(ROOT / "js" / "types", DIST / "types", dirs_exist_ok=True)
    exported = re.findall(
        r"^export \{ (.+?) \} from", (SOURCE / "browser.js").read_text(encoding="utf-8"), re.MULTILINE
    )
    lines = [f'export {{ {names} }} from "./index.js";\n' for names in exported]
    (DIST / "tacit.d.ts").write_text("".join(lines), encoding="utf-8")


def bundle(node: str, build: str) -> dict[str, int]:
    """Make the bundle; return the size of every file, compressed."""
    shutil.rmtree(DIST, ignore_errors=True)
    entries = [str(SOURCE / name) for name in ("browser.js", "telemetry.js")]
    command = [node, "--input-type=module", "-e", SCRIPT, *entries, str(DIST), build]
    if subprocess.run(command, cwd=WORKSHOP, check=False).returncode:
        raise Failed("the modules could not be bundled")
    return {path.name: len(gzip.compress(path.read_bytes(), 9, mtime=0)) for path in sorted(DIST.glob("*.js"))}


def check(node: str) -> None:
    """The bundle must make the same reports as the modules it was made of, and as the Python reference."""
    test = ROOT / "js" / "test" / "bundle.test.js"
    if subprocess.run([node, "--test", str(test)], stdout=subprocess.DEVNULL).returncode:
        raise Failed(f"js/dist does not do what the modules do; see `node --test {test.relative_to(ROOT)}`")


def serve() -> None:
    """Copy the scripts to where the dashboard serves them from."""
    shutil.rmtree(SERVED, ignore_errors=True)
    SERVED.mkdir(parents=True)
    for path in DIST.glob("*.js"):
        shutil.copy(path, SERVED)


def is_stale(build: str) -> bool:
    """Whether what is served was made of other sources, or not at all."""
    served = SERVED / "tacit.js"
    return not served.is_file() or build not in served.read_text(encoding="utf-8")


def make() -> None:
    """Make, measure, check and copy."""
    node, build = find_node(), build_id()
    install(node)
    sizes = bundle(node, build)
    for name, most in MOST_BYTES.items():
        if sizes[name] > most:
            raise Failed(f"js/dist/{name} has {sizes[name]} bytes compressed, must have at most {most}")
    write_types()
    check(node)
    serve()
    for name, most in MOST_BYTES.items():
        print(f"js/dist/{name}: {sizes.pop(name)} bytes compressed, at most {most}")
    print(f"kinds, when needed: {', '.join(f'{name} {size}' for name, size in sizes.items())}")


def main() -> int:
    """Return the exit status."""
    try:
        if "--if-stale" not in sys.argv or is_stale(build_id()):
            make()
    except Failed as failure:
        print(f"bundle: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
