"""What every test run shares: quick collection, and the time spent per folder printed at its end."""

import gc
import os
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

# Set before anything imports numpy. Workers of a test run use all cores already, and the small matrices of tests are
# slower on several threads than on one: idle BLAS threads spin, at the cost of the other workers.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")


@dataclass
class Spent:
    """What the tests of one folder took."""

    tests: int = 0
    cpu: float = 0.0
    elapsed: float = 0.0


class FolderTimes:
    """Sums seconds by folder: `tests/unit`, `tests/service`, ..., `src`, `docs`.

    Each process that runs tests measures itself and sends the seconds along with its reports; under xdist the sums
    are those of the controller, which sees the reports of all workers.
    """

    def __init__(self) -> None:
        self.before = 0.0
        self.folders: defaultdict[str, Spent] = defaultdict(Spent)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> None:
        """Start to measure after collection."""
        self.before = _cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        """Note what this phase of a test took; differences of one clock lose nothing to rounding when summed."""
        report = yield
        now = _cpu_seconds()
        report.cpu, self.before = now - self.before, now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Add one phase (setup, call or teardown) to its folder."""
        parts = report.nodeid.split("::")[0].split("/")
        spent = self.folders["/".join(parts[: 2 if parts[0] == "tests" else 1])]
        spent.tests += report.when == "call"
        spent.cpu += getattr(report, "cpu", 0.0)
        spent.elapsed += report.duration

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print one line per folder, the most expensive first."""
        if not self.folders:
            return
        terminalreporter.section("time per folder")
        terminalreporter.write_line(f"{'':<16} {'tests':>6} {'CPU s':>7} {'elapsed s':>10}")
        rows = sorted(self.folders.items(), key=lambda row: -row[1].cpu)
        total = Spent(*(sum(getattr(spent, name) for _, spent in rows) for name in ("tests", "cpu", "elapsed")))
        for name, spent in [*rows, ("together", total)]:
            terminalreporter.write_line(f"{name:<16} {spent.tests:>6} {spent.cpu:>7.1f} {spent.elapsed:>10.1f}")


def _cpu_seconds() -> float:
    """CPU seconds of this process and of the processes that it has waited for."""
    return sum(os.times()[:4])


class Examples:
    """Looks for examples where there are some.

    Searching the docstrings of four hundred modules for the eighty that have examples is a tenth of the CPU time of
    collection. Those of tests have none.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_collect_file(self, file_path: Path) -> Generator[None, Any, Any]:
        """Of a Python file, keep the tests, and the examples in docstrings if there is a prompt at all."""
        collectors = yield
        if file_path.suffix != ".py":
            return collectors
        if "src" in file_path.parts and b">>> " in file_path.read_bytes():
            return collectors
        return [collector for collector in collectors if isinstance(collector, pytest.Module)]


def pytest_configure(config: pytest.Config) -> None:
    """Hooks for all tests: those of a conftest file alone would miss the examples in src and docs."""
    config.pluginmanager.register(FolderTimes(), "folder-times")
    config.pluginmanager.register(Examples(), "examples")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collect without garbage collection.

    Twelve thousand tests are objects that stay until the end: looking for garbage among them again and again costs a
    tenth of the CPU time of collection, and more in tests that allocate much.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
