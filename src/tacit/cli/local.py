"""The operator's calls on the folder of an embedded database, for a machine that holds the data.

Modules of the collector are imported when they are used, so that `tacit --help` stays quick.
"""

import json
from functools import cached_property
from time import monotonic
from typing import Any


class LocalOperator:
    """The same methods as `tacit.client.operator.Operator`, on a folder; a collector may be running there or not.

    Whoever can read the folder can read all of it, so queries run with the rights of the owner and need no token.
    """

    def __init__(self, collector: Any) -> None:
        """Work on a collector of this process."""
        self._collector, self._store = collector, collector.store

    def _shown(self, record: Any) -> dict[str, Any]:
        # A draft has no document yet: what publishing would fix is still open.
        name = "draft" if record.state == "draft" else "document"
        return {"id": record.id, "state": record.state, "team": record.team, name: json.loads(record.document)}

    def create(self, draft: Any, team: str = "") -> dict[str, Any]:
        """Store a draft, for a team if one is named, and return it with its id."""
        from tacit.collector.collections.access import check_team
        from tacit.collector.collections.publish import create_draft

        return self._shown(create_draft(self._store, self._collector.planner, draft, check_team(team)))

    def assign(self, collection: str, team: str) -> dict[str, Any]:
        """Give a collection to a team, or to none."""
        from tacit.collector.collections.access import check_team
        from tacit.collector.collections.publish import find_record

        find_record(self._store, collection)
        self._store.assign(collection, check_team(team))
        return self._shown(find_record(self._store, collection))

    def publish(self, collection: str) -> dict[str, Any]:
        """Publish a draft as a collection."""
        return self._shown(self._collector.publish(collection))

    def close(self, collection: str) -> dict[str, Any]:
        """Close a collection: it takes no more reports."""
        return self._shown(self._collector.close(collection))

    def shuffle_identity(self) -> str:
        """Return the key that drafts of shuffled collections name as the collector's."""
        return self._collector.shuffle.desk.identity

    def session(self, collection: str) -> dict[str, Any]:
        """Return how the latest session of a shuffled collection is."""
        active = self._collector.find(collection)
        return self._collector.shuffle.of(active).status(active)

    def open_session(self, collection: str, days: int) -> dict[str, Any]:
        """Refused: a session is a conversation of servers."""
        raise self._no_sessions(collection)

    def close_session(self, collection: str) -> dict[str, Any]:
        """Refused: a session is a conversation of servers."""
        raise self._no_sessions(collection)

    def abort_session(self, collection: str) -> dict[str, Any]:
        """Refused: a session is a conversation of servers."""
        raise self._no_sessions(collection)

    def _no_sessions(self, collection: str) -> Exception:
        from tacit.hosting.problems import Problem

        self._collector.shuffle.of(self._collector.find(collection))
        return Problem("conflict", "sessions are run by a collector that listens; name it with --server and --token")

    def advance(self, collection: str) -> dict[str, Any]:
        """Close the current round of an adaptive plan and publish the next one."""
        return self._collector.advance(collection)

    def invite(self, collection: str, count: int) -> "list[str]":
        """Make single-use invitations."""
        return self._collector.invite(collection, count)

    def tokens(self, collection: str) -> "dict[str, int]":
        """How many anonymous tokens were signed, and how many came with reports."""
        return self._collector.issuing.numbers(self._collector.find(collection))

    def origins(self, collection: str) -> "dict[str, list[str]]":
        """Return the sites that may show a collection."""
        return self._collector.allowed(collection)

    def allow(self, collection: str, origins: "list[str]") -> "dict[str, list[str]]":
        """Allow these sites beside those of the document, and no others."""
        from tacit.collector.collections.access import OWNER

        return self._collector.allow(OWNER, collection, origins)

    def import_tally(self, collection: str, data: bytes) -> dict[str, Any]:
        """Count the tally of a `.tally` file in a collection, once, and return what became of it."""
        return self._collector.import_tally(collection, data)

    def list(self) -> list[dict[str, Any]]:
        """Return all collections."""
        return self._collector.summaries()

    def show(self, collection: str) -> dict[str, Any]:
        """Return one collection with its counts of reports."""
        from tacit.collector.collections.publish import find_record

        return self._shown(find_record(self._store, collection)) | self._collector.status(collection)

    def export(self, collection: str, form: str, level: float, post: str | None = None) -> bytes:
        """Return the answers as JSON, CSV or Parquet."""
        from tacit.collector.answers.answer import to_csv, to_parquet

        answers = self._collector.answers(collection, level, post)
        if form == "parquet":
            return to_parquet(answers)
        return to_csv(answers).encode() if form == "csv" else json.dumps(answers.to_json(), ensure_ascii=False).encode()

    def series(self, collection: str, given: dict[str, str], level: float, form: str = "json") -> bytes:
        """Return the series of a collection with windows, as JSON or CSV."""
        from tacit.collector.answers.series import SeriesRequest, series_csv

        found = self._collector.series(collection, SeriesRequest.from_query(given, level))
        return (series_csv(found) if form == "csv" else json.dumps(found, ensure_ascii=False)).encode()

    def integrity(self, collection: str) -> dict[str, Any]:
        """Return whether the reports of a collection look forged."""
        return self._collector.integrity(collection)

    def ask(self, collection: str, question: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """Return the answer to a query about one question."""
        return self._collector.ask(collection, question, query, given, level)

    def joint(self, collection: str, query: str, given: dict[str, str], level: float) -> dict[str, Any]:
        """Return the answer to a query about questions that were asked together."""
        return self._collector.joint(collection, query, given, level)

    @cached_property
    def _tables(self) -> Any:
        from tacit.collector.tables.tables import Tables

        return Tables(self._collector)

    def add_webhook(self, url: str, events: "list[str]", team: str = "") -> dict[str, Any]:
        """Add a webhook and return it with its secret."""
        from tacit.collector.notices.webhooks import shown

        secret, record = self._collector.notices.webhooks.add(url, events, team=team)
        return shown(record) | {"secret": secret}

    def webhooks(self) -> "list[dict[str, Any]]":
        """Return all webhooks."""
        from tacit.collector.notices.webhooks import shown

        return [shown(one) for one in self._collector.notices.webhooks.all()]

    def remove_webhook(self, webhook: str) -> None:
        """Remove a webhook."""
        self._collector.notices.webhooks.remove(webhook)

    def test_webhook(self, webhook: str) -> None:
        """Queue a test message."""
        self._collector.notices.webhooks.test(webhook)

    def webhook_log(self) -> "list[dict[str, Any]]":
        """Return the latest messages to webhooks."""
        return self._collector.notices.webhooks.log()

    def tables(self) -> "list[dict[str, Any]]":
        """Return the collections with rows, as tables."""
        from tacit.collector.collections.access import OWNER
        from tacit.collector.tables.rendering import table_json

        return [table_json(info) for info in self._tables.readable(OWNER)]

    def query(self, collection: str, sql: str, level: float) -> dict[str, Any]:
        """Return the answer to SQL as JSON."""
        from tacit.collector.collections.access import OWNER
        from tacit.collector.tables.rendering import query_json, run_query

        started = monotonic()
        info, select, answer = run_query(self._tables, OWNER, collection, sql, level)
        return query_json(info, select, answer, level, monotonic() - started)

    def query_csv(self, collection: str, sql: str, level: float) -> str:
        """Return the answer to SQL as the text of a CSV file."""
        from tacit.collector.collections.access import OWNER
        from tacit.collector.tables.rendering import query_csv, run_query

        _, select, answer = run_query(self._tables, OWNER, collection, sql, level)
        return query_csv(select, answer)
