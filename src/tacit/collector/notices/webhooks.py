"""Webhooks: who is told about which events, messages that are signed, retried and logged.

    event  --mark, one transaction-->  a message per webhook in the queue  --POST, signed-->  delivered, or tried again

A message holds the names of event and collection, counts and a state; never a report, and no answer.
"""

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from threading import Thread
from typing import Any, cast

from tacit.collector.collections.access import OWNER, Bearer
from tacit.collector.notices.lanes import Lanes
from tacit.collector.notices.outgoing import NotDelivered, checked_url, post
from tacit.collector.ports import DeliveryRecord, NoticeStore, WebhookRecord
from tacit.errors import InvalidSpec
from tacit.hosting.clock import Clock
from tacit.hosting.problems import Problem

EVENTS = ("alarm", "rejects", "cohort", "closed")
TEST = "test"
MOST_WEBHOOKS = 50
MOST_OF_TEAM = 10
PAUSES = (30, 120, 480, 1920, 7680, 21600, 21600)
"""Seconds after a failed attempt until the next; after the last of them it is given up."""
MOST_LOG = 200
_MOST_KEPT = 20_000
"""More than any store keeps."""
_LEASE = 120
"""Seconds after which a message whose sender died is taken by another."""
TURN_SECONDS = 15.0
"""For all that is tried at once: more than an attempt takes, unless the name of its host is resolved for long."""

Post = Callable[..., int]


@dataclass(frozen=True)
class Event:
    """Something that happened to a collection, once: the mark is what "once" means."""

    name: str
    collection: str
    team: str
    mark: str
    about: Mapping[str, Any]
    """Counts and states, for the body."""


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """What the header Tacit-Signature holds: HMAC-SHA256 over the timestamp, a dot and the body.

    >>> signature("whs_example", 1, b"{}")[:15]
    'v1=d5b870458e8c'
    """
    return "v1=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, sha256).hexdigest()


def shown(webhook: WebhookRecord) -> dict[str, Any]:
    """A webhook as operators see it: without its secret."""
    return {
        "id": webhook.id,
        "url": webhook.url,
        "events": webhook.events.split(","),
        "team": webhook.team,
        "day": webhook.day,
    }


class Webhooks:
    """The webhooks of a store."""

    def __init__(self, store: NoticeStore, clock: Clock, *, private: bool = False, post: Post = post) -> None:
        """Keep them in a store; `private` allows addresses inside this network."""
        self._store, self._clock, self._private, self._post = store, clock, private, post
        self._lanes = Lanes(self._deliver_one)

    def add(self, url: Any, events: Any, *, team: Any = "", by: Bearer = OWNER) -> tuple[str, WebhookRecord]:
        """Add a webhook in the name of `by`; returns its secret, which cannot be shown again, and its record."""
        url, team = checked_url(url, private=self._private), by.within(team)
        self._need_room(team)
        secret = "whs_" + secrets.token_urlsafe(32)
        record = WebhookRecord(secrets.token_hex(8), url, _events(events), secret, team, self._clock.day())
        self._store.add_webhook(record)
        return secret, record

    def _need_room(self, team: str) -> None:
        """Problem `conflict` if there are as many webhooks as may be, of all or of a team."""
        teams = [webhook.team for webhook in self._store.webhooks()]
        if len(teams) >= MOST_WEBHOOKS:
            raise Problem("conflict", f"there are {MOST_WEBHOOKS} webhooks, which is the most; remove one first")
        if team and teams.count(team) >= MOST_OF_TEAM:
            raise Problem("conflict", f"{MOST_OF_TEAM} webhooks are the most for the team '{team}'; remove one first")

    def all(self, by: Bearer = OWNER) -> list[WebhookRecord]:
        """All webhooks, or those of the bearer's team."""
        return [webhook for webhook in self._store.webhooks() if by.team in ("", webhook.team)]

    def find(self, name: str, by: Bearer = OWNER) -> WebhookRecord:
        """One webhook; Problem `not_found` if `by` can see none of this id."""
        for webhook in self.all(by):
            if webhook.id == name:
                return webhook
        raise Problem("not_found", "there is no such webhook")

    def remove(self, name: str, by: Bearer = OWNER) -> None:
        """Remove a webhook and what is queued for it; the log stays."""
        self._store.remove_webhook(self.find(name, by).id)

    def test(self, name: str, by: Bearer = OWNER) -> None:
        """Queue a message that says that it is a test."""
        webhook = self.find(name, by)
        # Without a mark: every test is told, and marks are kept for good.
        event = Event(TEST, "", webhook.team, "", {})
        self._store.announce(event.mark, [self._message(webhook, event)])

    def log(self, by: Bearer = OWNER) -> list[dict[str, Any]]:
        """The latest messages, newest first, without their bodies."""
        known = {webhook.id for webhook in self.all(by)}
        names = ("number", "webhook", "event", "collection", "state", "attempts", "day", "note")
        # For a team all are looked through, as the latest may be those of others.
        found = self._store.deliveries(_MOST_KEPT if by.team else MOST_LOG)
        mine = [one for one in found if not by.team or one.webhook in known]
        return [{name: getattr(one, name) for name in names} for one in mine[:MOST_LOG]]

    def announce(self, event: Event) -> bool:
        """Queue an event for every webhook that is to be told; False if it was announced before."""
        told = [hook for hook in self._store.webhooks() if _is_told(hook, event)]
        return self._store.announce(event.mark, [self._message(hook, event) for hook in told])

    def _message(self, webhook: WebhookRecord, event: Event) -> DeliveryRecord:
        now = int(self._clock.now())
        about = {"id": secrets.token_hex(16), "event": event.name, "collection": event.collection, "time": now}
        body = json.dumps(about | dict(event.about))
        return DeliveryRecord(
            0, webhook.id, event.name, event.collection, body, "waiting", 0, now, self._clock.day(), ""
        )

    def deliver_due(self) -> None:
        """Begin all deliveries that are due, and wait some seconds for them to end."""
        self._lanes.wait(self.begin_due(), TURN_SECONDS)

    def begin_due(self) -> "list[Thread]":
        """Begin all deliveries that are due, in one thread per webhook so that none waits for another."""
        return [lane for name in self._store.due(int(self._clock.now())) if (lane := self._lanes.start(name))]

    def stop(self, seconds: float = TURN_SECONDS) -> None:
        """Begin no further message, and wait a while for those that are under way."""
        self._lanes.stop(seconds)

    def _deliver_one(self, name: str) -> bool:
        """Try the oldest message to a webhook; False if there is none, or those behind it shall wait."""
        delivery = self._store.claim(name, int(self._clock.now()), _LEASE)
        if delivery is None:
            return False
        tried = self._tried(delivery)
        self._store.settle(tried)
        if tried.state == "waiting":
            # Who does not answer one message is not asked for ten seconds with each of the others; nor do new ones wait
            # as long as one that has failed for hours.
            self._store.put_off(name, int(self._clock.now()) + PAUSES[0])
        return tried.state == "delivered"

    def _tried(self, delivery: DeliveryRecord) -> DeliveryRecord:
        webhook = next((hook for hook in self._store.webhooks() if hook.id == delivery.webhook), None)
        if webhook is None:
            return replace(delivery, state="failed", due=0, note="the webhook was removed")
        now, body = int(self._clock.now()), delivery.body.encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "tacit-webhook/1",
            "Tacit-Event": delivery.event,
            "Tacit-Timestamp": str(now),
            "Tacit-Signature": signature(webhook.secret, now, body),
        }
        try:
            status = self._post(webhook.url, body, headers, private=self._private)
        except NotDelivered as error:
            return self._again(delivery, str(error))
        if 200 <= status < 300:
            return replace(delivery, state="delivered", due=0, day=self._clock.day(), note=f"answered {status}")
        return self._again(delivery, f"answered {status}")

    def _again(self, delivery: DeliveryRecord, note: str) -> DeliveryRecord:
        """The next attempt, later each time, or none."""
        if delivery.attempts > len(PAUSES):
            return replace(delivery, state="failed", due=0, day=self._clock.day(), note=note)
        due = int(self._clock.now()) + PAUSES[delivery.attempts - 1]
        return replace(delivery, due=due, day=self._clock.day(), note=note)


def _is_told(webhook: WebhookRecord, event: Event) -> bool:
    return event.name in webhook.events.split(",") and webhook.team in ("", event.team)


def _events(given: Any) -> str:
    names = cast("list[Any]", given) if isinstance(given, list) else []
    if not names or any(name not in EVENTS for name in names):
        raise InvalidSpec(f"webhook: events must be a list of {', '.join(EVENTS)}, at least one of them")
    return ",".join(name for name in EVENTS if name in names)
