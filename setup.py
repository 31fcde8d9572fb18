"""Compile the C core while a wheel is built; everything else is declared in pyproject.toml."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

KERNELS = Path("src", "tacit", "kernels")


class build_with_core(build_py):
    def run(self) -> None:
        super().run()
        # An editable install runs from the sources, where `python -m tacit.kernels.build` compiles.
        if not self.editable_mode:
            build = runpy.run_path(str(KERNELS / "build.py"))["build"]
            build(Path(self.build_lib, "tacit", "kernels"))


class platform_wheel(bdist_wheel):
    """A wheel is for one platform when it holds a library, and for all of them when it does not."""

    def get_tag(self) -> tuple[str, str, str]:
        if any(Path(self.bdist_dir).rglob("_tacit.so")):
            self.root_is_pure = False
            return ("py3", "none", super().get_tag()[2])
        return super().get_tag()


setup(cmdclass={"build_py": build_with_core, "bdist_wheel": platform_wheel})
