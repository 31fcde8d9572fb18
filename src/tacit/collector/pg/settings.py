"""Settings of a session: what SET, SHOW, RESET and the opening of a connection say."""

import re
from collections.abc import Mapping
from difflib import get_close_matches

from tacit.collector.pg.catalog_data import VERSION
from tacit.collector.pg.messages import PgError
from tacit.collector.pg.values import truth
from tacit.core.statistics.level import check_level
from tacit.errors import InvalidSpec

_MOST, _LONGEST = 300, 1000
_NAME = re.compile(r"[a-z_][a-z0-9_$]*(\.[a-z_][a-z0-9_$]*)*", re.IGNORECASE)

_TOLD = {
    "server_version": VERSION,
    "server_version_num": str(int(VERSION.split(".")[0]) * 10000),
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "session_authorization": "",
    "application_name": "",
    "default_transaction_read_only": "on",
    "in_hot_standby": "off",
}
DEFAULTS = _TOLD | {
    "transaction_read_only": "on",
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "transaction_deferrable": "off",
    "search_path": '"$user", public',
    "statement_timeout": "0",
    "client_min_messages": "notice",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "block_size": "8192",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "port": "5432",
    "ssl": "off",
    "jit": "off",
    "role": "none",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "row_security": "on",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "tacit.errors": "off",
    "tacit.level": "0.95",
}

REPORTED = tuple(_TOLD)
"""Settings whose values clients are told at the beginning and when they change."""

_FIXED = {
    "server_version", "server_version_num", "server_encoding", "integer_datetimes", "is_superuser", "in_hot_standby",
    "max_identifier_length", "max_index_keys", "block_size", "lc_collate", "lc_ctype", "port", "ssl",
}  # fmt: skip
_LIKE = {name.lower(): name for name in DEFAULTS}


class SessionSettings:
    """Names with values. Those that would change how answers are spelt or whether they are read only stay."""

    def __init__(self, user: str, application: str = "") -> None:
        """What holds at the beginning."""
        self._first = DEFAULTS | {"session_authorization": user, "application_name": application[:_LONGEST]}
        self._now = dict(self._first)

    def get(self, name: str) -> str:
        """The value of a setting, whatever the case of its name."""
        key = _LIKE.get(name.lower(), name.lower())
        if key not in self._now:
            raise PgError("42704", f"unrecognized configuration parameter {name[:63]!r}", hint=_hint(name))
        return self._now[key]

    def find(self, name: str) -> str | None:
        """The value of a setting, if there is one."""
        return self._now.get(_LIKE.get(name.lower(), name.lower()))

    def all(self) -> Mapping[str, str]:
        """All settings."""
        return self._now

    def set(self, name: str, value: str | None) -> str:
        """Give a setting a value, or (None) its first one; returns its proper name."""
        key = _LIKE.get(name.lower(), name.lower())
        if not _NAME.fullmatch(name) or len(name) > 63 or (value is not None and len(value) > _LONGEST):
            raise PgError("22023", "a setting has a name of letters and a short value")
        if value is None:
            return self._reset(key)
        if key not in self._now and len(self._now) >= _MOST:
            raise PgError("54000", f"a session has at most {_MOST} settings")
        self._now[key] = _checked(key, value)
        return key

    def _reset(self, key: str) -> str:
        if key in self._first:
            self._now[key] = self._first[key]
        else:
            self._now.pop(key, None)
        return key

    def reset_all(self) -> None:
        """Everything as it was at the beginning."""
        self._now = dict(self._first)

    @property
    def errors(self) -> bool:
        """Whether every aggregate is followed by its standard error and interval."""
        return truth(self._now["tacit.errors"])

    @property
    def level(self) -> float:
        """The confidence of intervals."""
        return float(self._now["tacit.level"])

    @property
    def digits(self) -> int:
        """Digits of numbers as text: 15 and those of extra_float_digits; 0 for as many as it takes."""
        extra = int(self._now["extra_float_digits"])
        return 0 if extra > 0 else 15 + extra

    @property
    def timeout_seconds(self) -> float:
        """How long a statement may take; 0 for as long as the server lets it."""
        return _seconds(self._now["statement_timeout"])


def _hint(name: str) -> str:
    near = get_close_matches(name.lower(), [known.lower() for known in DEFAULTS], 1, 0.6)
    return f"Did you mean {near[0]}?" if near else ""


def _checked(key: str, value: str) -> str:
    """A value that a setting can have."""
    word = value.strip().lower()
    if key.startswith("tacit.") and key not in DEFAULTS:
        raise PgError("42704", f"there is no setting {key}", hint="There are tacit.errors and tacit.level.")
    if key == "tacit.errors":
        return "on" if truth(value) else "off"
    if key == "tacit.level":
        return _level(value)
    if key == "statement_timeout":
        _seconds(value)
    if key == "extra_float_digits" and not (re.fullmatch(r"-?[0-9]{1,2}", word) and -14 <= int(word) <= 3):
        raise PgError("22023", "extra_float_digits must be a whole number from -14 to 3")
    if key == "client_encoding":
        if re.sub(r"[^a-z0-9]", "", word) not in ("utf8", "unicode", "sqlascii", "default", "auto"):
            raise PgError("22023", "client_encoding must be UTF8; everything here is UTF-8")
        return "UTF8"
    if key == "DateStyle":
        if not re.fullmatch(r"(iso|default|mdy|dmy|ymd)(\s*,\s*(iso|mdy|dmy|ymd))?", word):
            raise PgError("22023", "DateStyle must be ISO; dates are written as 2030-12-31")
        return "ISO, MDY"
    if key in ("transaction_read_only", "default_transaction_read_only") and not truth(value):
        raise PgError("25006", "answers are read only; a transaction cannot be made to write")
    if key == "standard_conforming_strings" and not truth(value):
        raise PgError("22023", "standard_conforming_strings must be on; a backslash in quotes is a backslash")
    if key in _FIXED and value != DEFAULTS[key]:
        raise PgError("55P02", f"parameter {key!r} cannot be changed")
    return value


def _level(value: str) -> str:
    try:
        check_level(value)
    except InvalidSpec as error:
        raise PgError("22023", f"tacit.{error}") from None
    return value.strip()


_UNITS = {"": 0.001, "us": 1e-6, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def _seconds(value: str) -> float:
    found = re.fullmatch(r"\s*(\d{1,10}(?:\.\d{1,6})?)\s*(us|ms|s|min|h|d|)\s*", value)
    if found is None:
        raise PgError("22023", "statement_timeout must be a time such as 5000 (milliseconds) or '5s'")
    return float(found[1]) * _UNITS[found[2]]


def opening_options(text: str) -> list[tuple[str, str]]:
    """Settings in the option string of a connection: `-c name=value` or `--name=value`.

    >>> opening_options("-c tacit.errors=on --tacit.level=0.9")
    [('tacit.errors', 'on'), ('tacit.level', '0.9')]
    """
    words = [re.sub(r"\\(.)", r"\1", word) for word in re.findall(r"(?:\\.|\S)+", text)]
    joined = re.sub(r"(^|\n)-c\n?", r"\1--", "\n".join(words))
    found: list[tuple[str, str]] = []
    for word in filter(None, joined.split("\n")):
        name, sign, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not sign:
            raise PgError("42601", "connection options must be of the form -c name=value", fatal=True)
        found.append((name.replace("-", "_"), value))
    return found
