"""The operator's calls to a collector over HTTP: create, publish, close and read collections, and ask SQL.

Standard library only. The command line, the demo and `tacit.client.sql` all speak to a collector through this module.
"""

import json
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from tacit.client.transport import Unreachable
from tacit.errors import InvalidQuery, TacitError

TIMEOUT_SECONDS = 60.0
"""Longer than a device's: an analyst's query may take the collector many seconds."""


class Refused(TacitError):
    """The collector refused a call: a token that may not do it, no such collection, a draft that cannot be asked.

    `kind` is that of the problem document (spec/errors.md), empty where the reply was none.
    """

    def __init__(self, message: str, *, kind: str = "") -> None:
        """Refuse a call."""
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Operator:
    """A collector and a token for it; what a method may do depends on the scope of the token.

    Every method raises `Refused` with the words of the collector, `InvalidQuery` where the text of a query is at fault,
    and `Unreachable` if nothing comes back. Nothing is tried again: an operator sees the failure and decides.
    """

    server: str
    token: str
    timeout_seconds: float = TIMEOUT_SECONDS

    def create(self, draft: Any, team: str = "") -> dict[str, Any]:
        """Store a draft on the collector, for a team if one is named, and return it with its id."""
        return self._json("POST", f"collections?{urlencode({'team': team})}" if team else "collections", draft)

    def publish(self, collection: str) -> dict[str, Any]:
        """Publish a draft: from now on its document is fixed and it takes reports."""
        return self._json("POST", f"{_path(collection)}/publish")

    def close(self, collection: str) -> dict[str, Any]:
        """Close a collection: it takes no more reports, and its answers stay."""
        return self._json("POST", f"{_path(collection)}/close")

    def assign(self, collection: str, team: str) -> dict[str, Any]:
        """Give a collection to a team, or to none."""
        return self._json("PUT", f"{_path(collection)}/team", {"team": team})

    def shuffle_identity(self) -> str:
        """Return the key that drafts of shuffled collections name as the collector's."""
        return self._json("GET", "shuffle/identity")["identity"]

    def session(self, collection: str) -> dict[str, Any]:
        """Return how the latest session of a shuffled collection is."""
        return self._json("GET", f"{_path(collection)}/session")

    def open_session(self, collection: str, days: int) -> dict[str, Any]:
        """Open another session of a shuffled collection, after one that was aborted."""
        return self._json("POST", f"{_path(collection)}/session", {"days": days})

    def close_session(self, collection: str) -> dict[str, Any]:
        """Close the session of a shuffled collection: its shufflers begin."""
        return self._json("POST", f"{_path(collection)}/session/close")

    def abort_session(self, collection: str) -> dict[str, Any]:
        """Give the session of a shuffled collection up."""
        return self._json("POST", f"{_path(collection)}/session/abort")

    def advance(self, collection: str) -> dict[str, Any]:
        """Close the current round of an adaptive plan and publish the next one."""
        return self._json("POST", f"{_path(collection)}/advance")

    def invite(self, collection: str, count: int) -> "list[str]":
        """Make single-use invitations."""
        return self._json("POST", f"{_path(collection)}/invitations", {"count": count})["invitations"]

    def tokens(self, collection: str) -> "dict[str, int]":
        """How many anonymous tokens were signed, and how many came with reports."""
        return self._json("GET", f"{_path(collection)}/tokens")

    def origins(self, collection: str) -> "dict[str, list[str]]":
        """Return the sites that may show a collection: those of its document, and those that were added."""
        return self._json("GET", f"{_path(collection)}/origins")

    def allow(self, collection: str, origins: "list[str]") -> "dict[str, list[str]]":
        """Allow these sites beside those of the document, and no others; the document stays as it is."""
        return self._json("PUT", f"{_path(collection)}/origins", {"origins": origins})

    def import_tally(self, collection: str, data: bytes) -> dict[str, Any]:
        """Count the tally of a `.tally` file in a collection, once, and return what became of it."""
        return self._json("POST", f"{_path(collection)}/tallies", data)

    def list(self) -> "list[dict[str, Any]]":
        """Return all collections that the token may read."""
        return self._json("GET", "collections")["collections"]

    def show(self, collection: str) -> dict[str, Any]:
        """Return one collection with its counts of reports."""
        counts = self._json("GET", f"{_path(collection)}/status")
        return self._json("GET", _path(collection)) | counts

    def export(self, collection: str, form: str, level: float, post: str | None = None) -> bytes:
        """Return the answers as JSON, CSV or Parquet; `post` names a post-processing method other than the default."""
        suffix = "" if form == "json" else f".{form}"
        chosen = {"level": str(level)} | ({} if post is None else {"post": post})
        return self._call("GET", f"{_path(collection)}/answers{suffix}?{urlencode(chosen)}")

    def series(self, collection: str, given: dict[str, str], level: float, form: str = "json") -> bytes:
        """Return the series of a collection with windows, as JSON or CSV; `given` are parameters such as `by`."""
        suffix = "" if form == "json" else f".{form}"
        return self._call("GET", f"{_path(collection)}/series{suffix}?{urlencode(given | {'level': str(level)})}")

    def integrity(self, collection: str) -> dict[str, Any]:
        """Return whether the reports of a collection look forged, and how far forged ones could push."""
        return self._json("GET", f"{_path(collection)}/integrity")

    def ask(self, collection: str, question: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """Return the answer to a query about one question, such as a range or quantiles."""
        path = f"{_path(collection)}/questions/{quote(question, '')}/{quote(query, '')}"
        return self._json("GET", f"{path}?{urlencode(given | {'level': str(level)})}")

    def joint(self, collection: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """Return the answer to a query about questions that were asked together, such as a table of two of them."""
        path = f"{_path(collection)}/joint/{quote(query, '')}"
        return self._json("GET", f"{path}?{urlencode(given | {'level': str(level)})}")

    def add_webhook(self, url: str, events: "list[str]", team: str = "") -> dict[str, Any]:
        """Add a webhook and return it with its secret, which is not shown again."""
        return self._json("POST", "webhooks", {"url": url, "events": events, "team": team})

    def webhooks(self) -> "list[dict[str, Any]]":
        """Return the webhooks that the token may see."""
        return self._json("GET", "webhooks")["webhooks"]

    def remove_webhook(self, webhook: str) -> None:
        """Remove a webhook."""
        self._call("DELETE", f"webhooks/{quote(webhook, '')}")

    def test_webhook(self, webhook: str) -> None:
        """Queue a test message."""
        self._call("POST", f"webhooks/{quote(webhook, '')}/test", {})

    def webhook_log(self) -> "list[dict[str, Any]]":
        """Return the latest messages to webhooks, newest first."""
        return self._json("GET", "webhooks/log")["deliveries"]

    def tables(self) -> "list[dict[str, Any]]":
        """Return the collections with rows that the token may read, as tables: collection, name and columns."""
        return self._json("GET", "tables")["tables"]

    def query(self, collection: str, sql: str, level: float) -> dict[str, Any]:
        """Return the answer to SQL as JSON."""
        return self._json("POST", f"{_path(collection)}/query", {"sql": sql, "level": level})

    def query_csv(self, collection: str, sql: str, level: float) -> str:
        """Return the answer to SQL as the text of a CSV file."""
        return self._call("POST", f"{_path(collection)}/query.csv", {"sql": sql, "level": level}).decode()

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        """Call the collector and parse its reply as JSON."""
        reply = self._call(method, path, body)
        try:
            return json.loads(reply)
        except ValueError:
            # A proxy or a login page answers 200 as well.
            raise Refused(f"{self.server}: the reply is not JSON; give the address of a collector") from None

    def _call(self, method: str, path: str, body: Any = None) -> bytes:
        """Send one request with the token and return the body; failures as the class describes."""
        binary = isinstance(body, bytes)
        data: bytes | None = body if body is None or binary else json.dumps(body).encode()
        kind = "application/vnd.tacit.tally" if binary else "application/json"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        request = Request(f"{self.server.rstrip('/')}/api/v1/{path}", data, headers, method=method)
        try:
            with urlopen(request, timeout=self.timeout_seconds) as response:
                return response.read()
        except HTTPError as error:
            with error:
                raise _problem(error) from None
        # URLError and timeouts are an OSError; a reply that breaks off in the middle is an HTTPException.
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise Unreachable(f"{self.server} cannot be reached: {getattr(reason, 'strerror', '') or reason}") from None


def _path(collection: str) -> str:
    return f"collections/{quote(collection, '')}"


def _problem(error: HTTPError) -> TacitError:
    """Return the error that a problem document (RFC 9457) describes, or the bare status if there is none."""
    try:
        problem = json.loads(error.read())
        place = f" (at character {problem['position']})" if "position" in problem else ""
        # The type is a URN; its last part names the kind of problem.
        kind, words = problem["type"].rpartition(":")[2], f"{problem['title']}: {problem['detail']}{place}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return Refused(f"the server answered {error.code} {error.reason}")
    if kind != "invalid_query":
        return Refused(f"{words} ({error.code})", kind=kind)
    return InvalidQuery(f"{words} ({error.code})", code=problem.get("code", ""), position=problem.get("position", 0))
