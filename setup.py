"""Compile the C core and bundle the browser client while a wheel is built; all else is declared in pyproject.toml."""

import runpy
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist
from setuptools.errors import ExecError

KERNELS = Path("src", "tacit", "kernels")
BUNDLE = Path("src", "tacit", "dashboard", "bundle", "tacit.js")
BUNDLER = Path("tools", "bundle_js.py")


def bundle_client() -> None:
    """Make what survey pages load. A source distribution carries it, and has nothing to make it of."""
    made = not BUNDLER.is_file() or subprocess.run([sys.executable, str(BUNDLER), "--if-stale"]).returncode == 0
    if not made or not BUNDLE.is_file():
        raise ExecError(
            "the browser client could not be bundled, and without it no survey page can be answered; this needs "
            "Node.js 18 or newer with npm on PATH, or a source distribution, which carries the bundle"
        )


class build_with_core(build_py):
    def run(self) -> None:
        # An editable install runs from the sources, where browsers load the modules of the client one by one and
        # `python -m tacit.kernels.build` compiles.
        if not self.editable_mode:
            bundle_client()
        super().run()
        if not self.editable_mode:
            build = runpy.run_path(str(KERNELS / "build.py"))["build"]
            build(Path(self.build_lib, "tacit", "kernels"))


class sdist_with_bundle(sdist):
    def run(self) -> None:
        bundle_client()
        super().run()


class platform_wheel(bdist_wheel):
    """A wheel is for one platform when it holds a library, and for all of them when it does not."""

    def get_tag(self) -> tuple[str, str, str]:
        if any(Path(self.bdist_dir).rglob("_tacit.so")):
            self.root_is_pure = False
            return ("py3", "none", super().get_tag()[2])
        return super().get_tag()


setup(cmdclass={"build_py": build_with_core, "bdist_wheel": platform_wheel, "sdist": sdist_with_bundle})
