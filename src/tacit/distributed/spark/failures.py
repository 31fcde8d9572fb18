"""What goes wrong on executors, in one line: errors of Tacit come back as themselves, others say what to do."""

import re
import sys
from collections.abc import Generator
from contextlib import contextmanager

from tacit import errors
from tacit.errors import MissingExtra, ReportRejected, TacitError

_RAISED = re.compile(r"tacit\.errors\.(\w+): (.*)")
_MODULE = re.compile(r"No module named '(\w+)[.\w]*'")
_FILE = re.compile(r"(?:file:|s3a?:|hdfs:|abfss?:|gs:|dbfs:)[^\s,;]*\.parquet")

SEND = (
    "pack the driver's environment (`venv-pack -o tacit.tar.gz`) and send it with the job: "
    "`--archives tacit.tar.gz#env` with PYSPARK_PYTHON=env/bin/python, or on Spark Connect "
    "`spark.addArtifacts('tacit.tar.gz#env', archive=True)` with spark.sql.execution.pyspark.python=env/bin/python"
)
"""How the package gets to executors that do not have it."""

_UNREADABLE = ("FAILED_READ_FILE", "CANNOT_READ_FILE", "is not a Parquet file", "could not verify page integrity",
               "ParquetDecodingException", "corrupt")  # fmt: skip
_MISFIT = ("FAILED_MERGE_SCHEMA", "CANNOT_MERGE_SCHEMAS", "PARQUET_COLUMN_DATA_TYPE_MISMATCH")


def explain(text: str) -> TacitError | None:
    """The error of Tacit behind the text of an error of Spark; None where it is Spark's own affair."""
    # The most specific first: an error of Tacit on an executor arrives inside a traceback inside an error of Spark.
    raised = _RAISED.findall(text)
    for name, message in raised[-1:]:
        kind = getattr(errors, name, TacitError)
        return kind(message.strip()) if issubclass(kind, TacitError) else TacitError(message.strip())
    if "PYTHON_VERSION_MISMATCH" in text or "different version in worker" in text:
        mine = ".".join(map(str, sys.version_info[:2]))
        return MissingExtra(
            f"spark: executors run another Python than this driver's {mine}; minor versions must be equal: set "
            f"PYSPARK_PYTHON to a Python {mine} there, or {SEND}"
        )
    missing = _MODULE.search(text)
    if missing is not None:
        return MissingExtra(f"spark: executors have no package {missing[1]}; {SEND}")
    return _about_files(text)


def _about_files(text: str) -> TacitError | None:
    name = _FILE.search(text)
    which = name[0] if name else "a file"
    if any(word in text for word in _UNREADABLE):
        return ReportRejected(f"{which}: cannot be read, it is damaged or no Parquet file; nothing was counted")
    if any(word in text for word in _MISFIT):
        return ReportRejected(f"{which}: has other columns than the first file; nothing was counted")
    return None


@contextmanager
def explained() -> Generator[None]:
    """Raise what happened on executors as an error of Tacit, where it is one."""
    try:
        yield
    except TacitError:
        raise
    # Of any type: what a job of a classic session fails with may come as pyspark's own error or as py4j's.
    except Exception as error:
        found = explain(str(error))
        if found is None:
            raise
        raise found from error
