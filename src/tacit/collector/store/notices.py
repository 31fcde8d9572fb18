"""Webhooks, messages to them and events that were told, in the tables of either database.

Both speak the same SQL here. Texts are written once, with "?" for a value and "@" before a table; every method is one
transaction of the store that it belongs to.
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any, LiteralString

from tacit.collector.ports import DeliveryRecord, WebhookRecord

MOST_DELIVERIES = 1000
"""Messages that are kept when they are done; the oldest make room."""
MOST_OF_ONE = 200
"""Messages to one webhook that are kept, waiting or done: much news of one team takes no place from that of others."""

Run = Callable[..., list[tuple[Any, ...]]]
"""Runs one statement inside the transaction and returns its rows."""
Transaction = Callable[[Callable[[Run], Any]], Any]
"""Runs a function that gets a `Run` in one transaction."""

_HOOK: LiteralString = "id, url, events, secret, team, day"
_SENT: LiteralString = "webhook, event, collection, body, state, attempts, due, day, note"


def _keep(those: LiteralString) -> LiteralString:
    """A statement that deletes all but the latest of some messages; `those` says which, and the number comes last."""
    first: LiteralString = f"SELECT number FROM @deliveries WHERE {those} ORDER BY number DESC LIMIT 1 OFFSET ?"
    return f"DELETE FROM @deliveries WHERE {those} AND number <= ({first})"


class NoticeTables:
    """The port `NoticeStore` over a transaction of SQLite or PostgreSQL."""

    def __init__(self, transaction: Transaction) -> None:
        """Work through the transactions of a store."""
        self._transaction = transaction

    def add_webhook(self, webhook: WebhookRecord) -> None:
        """Add a webhook."""
        text = f"INSERT INTO @webhooks ({_HOOK}) VALUES (?, ?, ?, ?, ?, ?)"
        self._transaction(lambda run: run(text, *astuple(webhook)))

    def webhooks(self) -> list[WebhookRecord]:
        """All webhooks, in order of their ids."""
        rows = self._transaction(lambda run: run(f"SELECT {_HOOK} FROM @webhooks ORDER BY id"))
        return [WebhookRecord(*row) for row in rows]

    def remove_webhook(self, webhook: str) -> bool:
        """Remove a webhook and what is queued for it; False if there is none."""

        def remove(run: Run) -> bool:
            run("DELETE FROM @deliveries WHERE webhook = ? AND state = 'waiting'", webhook)
            return bool(run("DELETE FROM @webhooks WHERE id = ? RETURNING id", webhook))

        return self._transaction(remove)

    def announce(self, mark: str, deliveries: Sequence[DeliveryRecord]) -> bool:
        """Queue messages about an event, unless its mark is there already; whether it was new, as no mark always is."""
        day = deliveries[0].day if deliveries else 0

        def announce(run: Run) -> bool:
            # Of two processes that see the same event the later one waits for the row of the first, and gets none.
            text = "INSERT INTO @marks VALUES (?, ?) ON CONFLICT DO NOTHING RETURNING mark"
            if mark and not run(text, mark, day):
                return False
            for delivery in deliveries:
                run(f"INSERT INTO @deliveries ({_SENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *astuple(delivery)[1:])
            for webhook in sorted({delivery.webhook for delivery in deliveries}):
                run(_keep("webhook = ?"), webhook, webhook, MOST_OF_ONE)
            run(_keep("state <> 'waiting'"), MOST_DELIVERIES)
            return True

        return self._transaction(announce)

    def due(self, now: int) -> list[str]:
        """The webhooks for which messages are due, in order of their ids."""
        text = "SELECT DISTINCT webhook FROM @deliveries WHERE state = 'waiting' AND due <= ? ORDER BY webhook"
        return [str(webhook) for (webhook,) in self._transaction(lambda run: run(text, now))]

    def put_off(self, webhook: str, due: int) -> None:
        """Have no waiting message to a webhook due before a time."""
        text = "UPDATE @deliveries SET due = ? WHERE webhook = ? AND state = 'waiting' AND due < ?"
        self._transaction(lambda run: run(text, due, webhook, due))

    def claim(self, webhook: str, now: int, lease: int) -> DeliveryRecord | None:
        """The oldest message to a webhook that is due; nobody else gets it before the lease is over."""
        oldest = """SELECT number FROM @deliveries WHERE webhook = ? AND state = 'waiting' AND due <= ?
            ORDER BY due, number LIMIT 1"""
        # That it is due is asked twice: whoever waited for the row of another process finds it leased.
        text = f"""UPDATE @deliveries SET attempts = attempts + 1, due = ? WHERE number = ({oldest})
            AND state = 'waiting' AND due <= ? RETURNING number, {_SENT}"""
        rows = self._transaction(lambda run: run(text, now + lease, webhook, now, now))
        return DeliveryRecord(*rows[0]) if rows else None

    def settle(self, delivery: DeliveryRecord) -> None:
        """Write what became of an attempt."""
        text = "UPDATE @deliveries SET state = ?, due = ?, day = ?, note = ? WHERE number = ?"
        values = (delivery.state, delivery.due, delivery.day, delivery.note, delivery.number)
        self._transaction(lambda run: run(text, *values))

    def deliveries(self, most: int) -> list[DeliveryRecord]:
        """The latest messages, newest first."""
        text = f"SELECT number, {_SENT} FROM @deliveries ORDER BY number DESC LIMIT ?"
        rows = self._transaction(lambda run: run(text, most))
        return [DeliveryRecord(*row) for row in rows]
