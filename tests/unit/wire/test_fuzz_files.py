"""Forged files of reports and tallies: each is refused with words or is a tally that reports could have added up to."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.service.fuzz import INPUTS
from tests.unit.wire.file_fuzz import FORMS, fuzz, mechanisms

from tacit.kernels import build

ROOT = Path(__file__).parents[3]
EACH = max(1, INPUTS // 250)
"""Files of one form and kind; TACIT_FUZZ_INPUTS asks for more."""


@pytest.mark.parametrize("name", list(mechanisms()))
def test_no_forged_file_reaches_more_than_an_error_of_ours(name: str):
    outcomes = fuzz(name, EACH)
    assert outcomes.total() == len(FORMS) * EACH
    assert outcomes["ReportRejected"] > outcomes.total() // 2


def _sanitizer(compiler: list[str]) -> str | None:
    """The run-time library of the address sanitiser; None if this compiler brings none."""
    asked = [*compiler, "-print-file-name=libasan.so"]
    path = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return path if os.path.isabs(path) else None


Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def sanitized(tmp_path: Path) -> Run:
    """Runs Python with kernels that stop at the first wrong access."""
    compiler = build.find_compiler()
    if compiler is None:
        pytest.skip("there is no C compiler")
    runtime = _sanitizer(compiler)
    if runtime is None:
        pytest.skip("the compiler has no address sanitiser")
    try:
        library = build.build(tmp_path, build.SANITIZED)
    except build.CompileError as error:
        pytest.skip(f"the compiler cannot sanitise: {str(error).splitlines()[0]}")
    environment = os.environ | {
        "TACIT_KERNELS": str(library),
        "TACIT_THREADS": "1",
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",  # The interpreter never frees some of its own memory.
    }

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.slow
def test_forged_files_never_make_a_kernel_read_out_of_bounds(sanitized: Run):
    """The same files, and that a wrong access is noticed."""
    done = sanitized("-m", "tests.unit.wire.file_fuzz", str(EACH // 4))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "compiled=True" in done.stdout
    caught = sanitized("-c", OUT_OF_BOUNDS)
    assert caught.returncode != 0
    assert "AddressSanitizer" in caught.stderr


@pytest.mark.slow
def test_no_kernel_leaves_its_bounds_at_any_size(sanitized: Run):
    """Samplers and expanded keys are not reached by files: what compares kernels with the twin passes all of them."""
    done = sanitized("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/kernels")
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
    assert "skipped" not in done.stdout


OUT_OF_BOUNDS = """
import numpy as np
from tacit import kernels
kernels.hash_support(np.zeros(9, np.uint32), np.full(9, 1 << 20, np.uint32), 4, np.arange(9, dtype=np.uint64), None)
"""
"""A bucket far beyond the table of bounds, handed to a kernel unchecked."""
