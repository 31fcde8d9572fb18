"""Collections from the command line: on a server over HTTP, or directly in the folder of an embedded database."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import click

from tacit.core.extras import load

_TIMEOUT_SECONDS = 60


class Refused(click.ClickException):
    """What a server or a file refused, in one line."""

    exit_code = 2


class Collections(Protocol):
    """What the commands can do, wherever the collections are."""

    def create(self, draft: Any) -> dict[str, Any]:
        """Keep a draft."""
        ...

    def publish(self, collection: str) -> dict[str, Any]:
        """Publish a draft."""
        ...

    def close(self, collection: str) -> dict[str, Any]:
        """Take no more reports."""
        ...

    def advance(self, collection: str) -> dict[str, Any]:
        """Go to the next round of a plan."""
        ...

    def list(self) -> list[dict[str, Any]]:
        """All collections."""
        ...

    def show(self, collection: str) -> dict[str, Any]:
        """One collection with its counts."""
        ...

    def export(self, collection: str, form: str, level: float, post: str | None = None) -> bytes:
        """Its answers as JSON, CSV or Parquet."""
        ...

    def ask(self, collection: str, question: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """The answer of a question's task to a query."""
        ...

    def joint(self, collection: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """The answer of questions that were asked together to a query."""
        ...

    def tables(self) -> "list[dict[str, Any]]":
        """Collections with rows, as tables."""
        ...

    def query(self, collection: str, sql: str, level: float, form: str) -> Any:
        """The answer to SQL: JSON, or the text of a CSV file."""
        ...


class Remote:
    """Collections of a server."""

    def __init__(self, server: str, token: str) -> None:
        """Speak to a server with a token."""
        self._server, self._token = server.rstrip("/"), token

    def _call(self, method: str, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = Request(f"{self._server}/api/v1{path}", data, headers, method=method)
        try:
            with urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
                return response.read()
        except HTTPError as error:
            raise Refused(_told(error)) from None
        except URLError as error:
            raise Refused(f"{self._server} cannot be reached: {error.reason}") from None

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self._call(method, path, body))

    def create(self, draft: Any) -> dict[str, Any]:
        """Keep a draft."""
        return self._json("POST", "/collections", draft)

    def publish(self, collection: str) -> dict[str, Any]:
        """Publish a draft."""
        return self._json("POST", f"/collections/{collection}/publish")

    def close(self, collection: str) -> dict[str, Any]:
        """Take no more reports."""
        return self._json("POST", f"/collections/{collection}/close")

    def advance(self, collection: str) -> dict[str, Any]:
        """Go to the next round of a plan."""
        return self._json("POST", f"/collections/{collection}/advance")

    def list(self) -> list[dict[str, Any]]:
        """All collections."""
        return self._json("GET", "/collections")["collections"]

    def show(self, collection: str) -> dict[str, Any]:
        """One collection with its counts."""
        counts = self._json("GET", f"/collections/{collection}/status")
        return self._json("GET", f"/collections/{collection}") | counts

    def export(self, collection: str, form: str, level: float, post: str | None = None) -> bytes:
        """Its answers as JSON, CSV or Parquet."""
        suffix, chosen = "" if form == "json" else f".{form}", "" if post is None else f"&post={post}"
        return self._call("GET", f"/collections/{collection}/answers{suffix}?level={level}{chosen}")

    def ask(self, collection: str, question: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """The answer of a question's task to a query."""
        path = f"/collections/{quote(collection, '')}/questions/{quote(question, '')}/{quote(query, '')}"
        return self._json("GET", f"{path}?{urlencode(given | {'level': str(level)})}")

    def joint(self, collection: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """The answer of questions that were asked together to a query."""
        path = f"/collections/{quote(collection, '')}/joint/{quote(query, '')}"
        return self._json("GET", f"{path}?{urlencode(given | {'level': str(level)})}")

    def tables(self) -> "list[dict[str, Any]]":
        """Collections with rows, as tables."""
        return self._json("GET", "/tables")["tables"]

    def query(self, collection: str, sql: str, level: float, form: str) -> Any:
        """The answer to SQL: JSON, or the text of a CSV file."""
        asked, path = {"sql": sql, "level": level}, f"/collections/{quote(collection, '')}/query"
        if form == "csv":
            return self._call("POST", f"{path}.csv", asked).decode()
        return self._json("POST", path, asked)


def _told(error: HTTPError) -> str:
    """What a problem document says."""
    try:
        problem = json.loads(error.read())
        place = f" (at character {problem['position']})" if "position" in problem else ""
        return f"{problem['title']}: {problem['detail']}{place} ({error.code})"
    except (ValueError, KeyError, TypeError):
        return f"the server answered {error.code} {error.reason}"


class Local:
    """Collections of a folder that no server is using, or of one that is: the database keeps order."""

    def __init__(self, collector: Any) -> None:
        """Work on a collector of this process."""
        self._collector, self._store = collector, collector.store

    def _shown(self, record: Any) -> dict[str, Any]:
        name = "draft" if record.state == "draft" else "document"
        return {"id": record.id, "state": record.state, name: json.loads(record.document)}

    def create(self, draft: Any) -> dict[str, Any]:
        """Keep a draft."""
        from tacit.collector.publish import create_draft

        return self._shown(create_draft(self._store, self._collector.planner, draft))

    def publish(self, collection: str) -> dict[str, Any]:
        """Publish a draft."""
        from tacit.collector.publish import publish

        return self._shown(publish(self._store, self._collector.planner, collection))

    def close(self, collection: str) -> dict[str, Any]:
        """Take no more reports."""
        from tacit.collector.publish import close

        return self._shown(close(self._store, collection))

    def advance(self, collection: str) -> dict[str, Any]:
        """Go to the next round of a plan."""
        return self._collector.advance(collection)

    def list(self) -> list[dict[str, Any]]:
        """All collections."""
        return self._collector.summaries()

    def show(self, collection: str) -> dict[str, Any]:
        """One collection with its counts."""
        from tacit.collector.publish import find_record

        return self._shown(find_record(self._store, collection)) | self._collector.status(collection)

    def export(self, collection: str, form: str, level: float, post: str | None = None) -> bytes:
        """Its answers as JSON, CSV or Parquet."""
        from tacit.collector.answer import to_csv, to_parquet

        answers = self._collector.answers(collection, level, post)
        if form == "parquet":
            return to_parquet(answers)
        return to_csv(answers).encode() if form == "csv" else json.dumps(answers.to_json(), ensure_ascii=False).encode()

    def ask(self, collection: str, question: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """The answer of a question's task to a query."""
        return self._collector.ask(collection, question, query, given, level)

    def joint(self, collection: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """The answer of questions that were asked together to a query."""
        return self._collector.joint(collection, query, given, level)

    @cached_property
    def _tables(self) -> Any:
        from tacit.collector.tables import Tables

        return Tables(self._collector)

    def tables(self) -> "list[dict[str, Any]]":
        """Collections with rows, as tables."""
        from tacit.collector.access import OWNER
        from tacit.collector.http_query import table_json

        return [table_json(info) for info in self._tables.readable(OWNER)]

    def query(self, collection: str, sql: str, level: float, form: str) -> Any:
        """The answer to SQL: JSON, or the text of a CSV file."""
        from tacit.collector.access import OWNER
        from tacit.collector.http_query import query_csv, query_json, run_query

        started = monotonic()
        info, select, found = run_query(self._tables, OWNER, collection, sql, level)
        if form == "csv":
            return query_csv(select, found)
        return query_json(info, select, found, level, monotonic() - started)


@contextmanager
def open_collections(server: str, token: str, data: Path | None) -> Generator[Collections]:
    """The collections that the options name."""
    if data is None:
        if not server:
            raise click.UsageError("name a server with --server (and --token), or a folder with --data")
        yield Remote(server, token)
        return
    from tacit.collector.problems import Problem
    from tacit.collector.server import open_store
    from tacit.collector.service import Collector

    collector = Collector(open_store(data))
    try:
        yield Local(collector)
    except Problem as problem:
        place = problem.to_json().get("position")
        raise Refused(problem.detail + (f" (at character {place})" if place else "")) from None
    finally:
        collector.stop()


def read_draft(path: str) -> Any:
    """A draft from a JSON or YAML file, or from standard input."""
    with click.open_file(path, encoding="utf-8") as stream:
        text = stream.read()
    if not path.endswith((".yaml", ".yml")):
        try:
            return json.loads(text)
        except ValueError:
            if path.endswith(".json"):
                raise Refused(f"{path}: is not JSON") from None
    return _from_yaml(path, text)


def _from_yaml(path: str, text: str) -> Any:
    yaml = load("yaml")
    try:
        draft = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise Refused(f"{path}{place}: is neither JSON nor YAML; put text with a colon in quotes") from None
    # YAML reads 1.0 as a float, which has no exact text; what was written is what is meant.
    if isinstance(draft, dict) and isinstance(draft.get("epsilon"), float):  # pyright: ignore[reportUnknownMemberType]
        draft["epsilon"] = repr(draft["epsilon"])  # pyright: ignore[reportUnknownArgumentType]
    return draft  # pyright: ignore[reportUnknownVariableType]
