"""Bundle the JavaScript client into one minified module, and refuse it when it has grown too large.

Usage: python tools/bundle_js.py

Writes js/dist/tacit.js with its types, and a copy into the dashboard's static files; neither is committed. The bundler
and the minifier are packages of the npm registry, installed into build/js at exact versions.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from find_node import OLDEST, candidates, major_version

ROOT = Path(__file__).resolve().parent.parent
SOURCE, DIST = ROOT / "js" / "src", ROOT / "js" / "dist"
WORKSHOP = ROOT / "build" / "js"
SERVED = ROOT / "src" / "tacit" / "dashboard" / "static" / "tacit.js"
PACKAGES = {"esbuild": "0.28.2", "terser": "5.51.2"}
MOST_BYTES = 15_000

# Both tools through their interfaces: the executables differ between platforms. Esbuild puts the modules together,
# terser gives short names that repeat, which gzip rewards with another four per cent. Before that, modules lose:
#
# - Rules of specs. A page reads documents that a collector has checked, so errors say who is wrong ("grr", "grr: size")
#   and leave the rule ("must be an integer from 2 to 16777216") to the modules. What the client itself says to people,
#   about collections and reports, stays. Throwing is left to a function: a call is shorter than a statement.
# - Assignments that only tell the type of a field, which is stored already, and methods that every kind must define.
# - Names of members, unless the same word is declared in the types of the package, is quoted, as fields on the wire
#   are, belongs to the language, or stands in a module that reads documents, replies or what a page stores.
#
# js/test/bundle.test.js holds the bundle to every golden vector and to the reports, receipts and ledger of the modules.
SCRIPT = r"""
const { build } = require("esbuild");
const { minify } = require("terser");
const { readFileSync, readdirSync, writeFileSync } = require("fs");
const { basename, dirname, join } = require("path");
const { runInNewContext } = require("vm");
const [entry, target, ...declarations] = process.argv.slice(1);
const folder = dirname(entry);
const read = (path) => readFileSync(path, "utf8");

const TEXT = /("[^"]*"|'[^']*'|`(?:[^`$]|\$\{[^}]*\})*`),?\s*\)/.source;
const REFUSAL = new RegExp(/throw new (Invalid(?:Spec|Value))\(\s*/.source + TEXT, "g");
const GIVEN_RULE = new RegExp(/(\.(?:refuse|reject)\()\s*/.source + TEXT, "g");
const ABSTRACT = /\n  (?:get )?\w+\([^)]*\) \{\n    throw new \w+\(ABSTRACT\);\n  \}\n/g;
const TYPE_ALONE = /^ *this\.(\w+) = \/\*\* @type \{any\} \*\/ \(this\)\.\1;\n/gm;
const STORED = /this\.(\w+) = (?=this\.checkInteger\("\1"|this\.checkSize\()/g;
const SPEAKING = ["client.js", "ledger.js"];
const OUTSIDE = [...SPEAKING, "budget.js", "document.js"];
const TYPES = ["InvalidSpec", "InvalidValue"];
const THROWING = TYPES.map((type) => `throw${type} = (words) => { throw new ${type}(words); }`);

const refusal = (said) => (_, type, text) => {
  const words = text.slice(1, -1).replace(/(,? must |;|, \$\{rule\})[^]*/, "");
  const who = said || type === "InvalidValue" ? words : words.replace(/: (?!\$\{\w+\}$)[^]*/, "");
  const variable = /^\$\{([^}]*)\}$/.exec(who);
  return `throw${type}(${variable ? variable[1] : text[0] + who + text[0]})`;
};

function shortened(path) {
  const needed = [ABSTRACT, TYPE_ALONE, STORED].reduce((source, pattern) => source.replace(pattern, ""), read(path));
  const short = needed.replace(GIVEN_RULE, "$1)").replace(REFUSAL, refusal(SPEAKING.includes(basename(path))));
  if (basename(path) === "errors.js") return `${short}\nexport const ${THROWING.join(", ")};`;
  return `import { throwInvalidSpec, throwInvalidValue } from "./errors.js";\n${short}`;
}
const short = {
  name: "short",
  setup: ({ onLoad }) => onLoad({ filter: /\.js$/ }, ({ path }) => ({ contents: shortened(path) })),
};

function internalNames() {
  const bare = (path) => read(path).replace(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
  const found = (texts, ...patterns) =>
    texts.flatMap((text) => patterns.flatMap((pattern) => [...text.matchAll(pattern)].map(([, name]) => name)));
  const sources = readdirSync(folder).map((name) => bare(join(folder, name)));
  const members = found(sources, /^  (?:static |get )*(\w+)(?:\(.*\) \{$| = )/gm, /\bthis\.(\w+) = /g);
  const language = runInNewContext(`Object.getOwnPropertyNames(globalThis).flatMap((name) =>
    [Object(globalThis[name]), Object(globalThis[name]?.prototype)].flatMap(Object.getOwnPropertyNames))`);
  const outside = OUTSIDE.map((name) => bare(join(folder, name)));
  const known = found([...declarations.map(bare), ...outside], /(?<![#/])\b(\w+)/g);
  const kept = new Set([...known, ...found(sources, /"(\w+)"/g), ...language]);
  return [...new Set(members)].filter((name) => !kept.has(name));
}

async function bundle() {
  const options = { bundle: true, format: "esm", minify: true, target: "es2022", write: false, plugins: [short] };
  const { outputFiles } = await build({ entryPoints: [entry], ...options });
  const compress = { passes: 3, hoist_funs: true, keep_fargs: false, pure_getters: true, pure_funcs: ["BigInt"] };
  const properties = { regex: new RegExp(`^(${internalNames().join("|")})$`), builtins: true };
  const { code } = await minify(outputFiles[0].text, { module: true, ecma: 2022, compress, mangle: { properties } });
  writeFileSync(target, code);
}

bundle();
"""


class Failed(Exception):
    """The bundle cannot be made; the message says why."""


def find_node() -> str:
    """The Node.js that also runs the tests."""
    for node in candidates():
        if major_version(node) >= OLDEST:
            return node
    raise Failed(f"no Node.js of version {OLDEST} or newer; `make install` brings one in .venv")


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
    result = subprocess.run([*npm_command(node), "install", *quiet, *wanted], cwd=WORKSHOP, check=False)
    if result.returncode:
        raise Failed(f"npm could not install {' and '.join(wanted)}")


def write_types() -> None:
    """The types of the package, and a declaration of what the bundle exports of them."""
    shutil.copy(ROOT / "js" / "index.d.ts", DIST)
    shutil.copytree(ROOT / "js" / "types", DIST / "types", dirs_exist_ok=True)
    exported = re.findall(
        r"^export \{ (.+?) \} from", (SOURCE / "browser.js").read_text(encoding="utf-8"), re.MULTILINE
    )
    lines = [f'export {{ {names} }} from "./index.js";\n' for names in exported]
    (DIST / "tacit.d.ts").write_text("".join(lines), encoding="utf-8")


def bundle(node: str) -> int:
    """Make the bundle; return its size, compressed."""
    DIST.mkdir(parents=True, exist_ok=True)
    target = DIST / "tacit.js"
    types = [ROOT / "js" / "index.d.ts", *sorted((ROOT / "js" / "types").glob("*.d.ts"))]
    arguments = [str(path) for path in (SOURCE / "browser.js", target, *types)]
    result = subprocess.run([node, "-e", SCRIPT, *arguments], cwd=WORKSHOP, check=False)
    if result.returncode:
        raise Failed("the modules could not be bundled")
    return len(gzip.compress(target.read_bytes(), 9, mtime=0))


def main() -> int:
    """Make, measure, check and copy; return the exit status."""
    try:
        node = find_node()
        install(node)
        size = bundle(node)
        if size > MOST_BYTES:
            raise Failed(f"js/dist/tacit.js has {size} bytes compressed, must have at most {MOST_BYTES}")
        write_types()
        # The bundle must make the same reports as the modules it was made of.
        if subprocess.run(
            [node, "--test", str(ROOT / "js" / "test" / "bundle.test.js")], stdout=subprocess.DEVNULL
        ).returncode:
            raise Failed("js/dist/tacit.js does not reproduce the golden vectors; see js/test/bundle.test.js")
        SERVED.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DIST / "tacit.js", SERVED)
    except Failed as failure:
        print(f"bundle: {failure}", file=sys.stderr)
        return 1
    print(f"js/dist/tacit.js: {size} bytes compressed, at most {MOST_BYTES}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
