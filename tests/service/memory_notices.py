"""Webhooks and messages to them in memory, as a model of what a database must do."""

from collections.abc import Sequence
from dataclasses import replace
from threading import RLock

from tacit.collector.ports import DeliveryRecord, WebhookRecord
from tacit.collector.store.notices import MOST_DELIVERIES, MOST_OF_ONE


class MemoryNotices:
    """The port `NoticeStore` over dictionaries."""

    def __init__(self) -> None:
        """Begin empty."""
        self._lock = RLock()
        self._webhooks: dict[str, WebhookRecord] = {}
        self._deliveries: dict[int, DeliveryRecord] = {}
        self._marks: set[str] = set()
        self._last = 0

    def add_webhook(self, webhook: WebhookRecord) -> None:
        """Add a webhook."""
        with self._lock:
            self._webhooks[webhook.id] = webhook

    def webhooks(self) -> list[WebhookRecord]:
        """All webhooks, in order of their ids."""
        with self._lock:
            return [self._webhooks[name] for name in sorted(self._webhooks)]

    def remove_webhook(self, webhook: str) -> bool:
        """Remove a webhook and what is queued for it; False if there is none."""
        with self._lock:
            for number, one in list(self._deliveries.items()):
                if one.webhook == webhook and one.state == "waiting":
                    del self._deliveries[number]
            return self._webhooks.pop(webhook, None) is not None

    def announce(self, mark: str, deliveries: Sequence[DeliveryRecord]) -> bool:
        """Queue messages about an event, unless its mark is there already; whether it was new."""
        with self._lock:
            if mark and mark in self._marks:
                return False
            self._marks.add(mark)
            for delivery in deliveries:
                self._last += 1
                self._deliveries[self._last] = replace(delivery, number=self._last)
            for webhook in {delivery.webhook for delivery in deliveries}:
                self._keep(MOST_OF_ONE, [n for n, one in self._deliveries.items() if one.webhook == webhook])
            self._keep(MOST_DELIVERIES, [n for n, one in self._deliveries.items() if one.state != "waiting"])
            return True

    def _keep(self, most: int, numbers: list[int]) -> None:
        for number in sorted(numbers)[:-most]:
            del self._deliveries[number]

    def _due(self, now: int) -> list[DeliveryRecord]:
        return [one for one in self._deliveries.values() if one.state == "waiting" and one.due <= now]

    def due(self, now: int) -> list[str]:
        """The webhooks for which messages are due."""
        with self._lock:
            return sorted({one.webhook for one in self._due(now)})

    def put_off(self, webhook: str, due: int) -> None:
        """Have no message to a webhook due before a time."""
        with self._lock:
            for number, one in self._deliveries.items():
                if one.webhook == webhook and one.state == "waiting":
                    self._deliveries[number] = replace(one, due=max(due, one.due))

    def claim(self, webhook: str, now: int, lease: int) -> DeliveryRecord | None:
        """The oldest message to a webhook that is due, with one attempt more."""
        with self._lock:
            due = [one for one in self._due(now) if one.webhook == webhook]
            if not due:
                return None
            first = min(due, key=lambda one: (one.due, one.number))
            self._deliveries[first.number] = replace(first, attempts=first.attempts + 1, due=now + lease)
            return self._deliveries[first.number]

    def settle(self, delivery: DeliveryRecord) -> None:
        """Write what became of an attempt."""
        with self._lock:
            if delivery.number in self._deliveries:
                self._deliveries[delivery.number] = delivery

    def deliveries(self, most: int) -> list[DeliveryRecord]:
        """The latest messages, newest first."""
        with self._lock:
            return [self._deliveries[number] for number in sorted(self._deliveries, reverse=True)[:most]]
