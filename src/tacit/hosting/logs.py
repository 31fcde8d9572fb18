"""Logs: plain lines for people, JSON for everything else; never a payload, never an address."""

import json
import logging
import sys
import time
import warnings
from typing import Any

LOG = logging.getLogger("tacit")


class _JsonLines(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line = {"time": when, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        return json.dumps(line, ensure_ascii=False)


class _Plain(logging.Formatter):
    """A formatter of single lines without tracebacks, which could quote a request."""

    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {record.getMessage()}"


def _note_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any) -> None:
    """Log a library's warning by category and line; its message, which could quote input, is left out."""
    del message, rest
    LOG.warning("%s at %s:%d", category.__name__, filename, lineno)


def set_up_logs() -> None:
    """Plain lines for people, JSON for everything else; never a payload, never an address."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain() if sys.stderr.isatty() else _JsonLines())
    # What sqlglot warns of are texts of queries, which nobody logs.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    warnings.showwarning = _note_warning
    for name in ("tacit", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO)
