"""The routes of webhooks under /api/v1, for operators of the collector or of a team."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from starlette.responses import Response
from starlette.routing import BaseRoute

from tacit.collector.collections.access import WRITE
from tacit.collector.notices.webhooks import Webhooks, shown
from tacit.collector.service import Collector
from tacit.hosting.responses import json_response

if TYPE_CHECKING:
    from tacit.collector.http.api import Call


class WebhookRoutes:
    """Add, list, remove and test webhooks, and read their log."""

    def __init__(self, collector: Collector, route: Callable[..., BaseRoute]) -> None:
        """Serve a collector; `route` makes a route that checks the token."""
        self._collector, self._route = collector, route

    @property
    def _webhooks(self) -> Webhooks:
        return self._collector.notices.webhooks

    def routes(self) -> list[BaseRoute]:
        """All routes; each changes something, or tells addresses that only operators may know."""
        several = "/api/v1/webhooks"
        return [
            self._route("GET", several, WRITE, self.list),
            self._route("POST", several, WRITE, self.add),
            self._route("GET", f"{several}/log", WRITE, self.log),
            self._route("DELETE", f"{several}/{{id}}", WRITE, self.remove),
            self._route("POST", f"{several}/{{id}}/test", WRITE, self.test),
        ]

    def list(self, call: "Call") -> Response:
        """Every webhook, or those of the token's team."""
        return json_response({"webhooks": [shown(one) for one in self._webhooks.all(call.bearer)]})

    def add(self, call: "Call") -> Response:
        """Add a webhook; its secret is shown this once."""
        given: dict[str, Any] = call.fields_among("webhook", "url", "events", "team")
        secret, record = self._webhooks.add(
            given.get("url"), given.get("events"), team=given.get("team", ""), by=call.bearer
        )
        self._collector.access.note(call.bearer, "add webhook", record.id)
        return json_response(shown(record) | {"secret": secret}, 201)

    def log(self, call: "Call") -> Response:
        """The latest messages."""
        return json_response({"deliveries": self._webhooks.log(call.bearer)})

    def remove(self, call: "Call") -> Response:
        """Remove a webhook."""
        self._webhooks.remove(call.id, call.bearer)
        self._collector.access.note(call.bearer, "remove webhook", call.id)
        return Response(status_code=204)

    def test(self, call: "Call") -> Response:
        """Queue a message that says that it is a test."""
        self._webhooks.test(call.id, call.bearer)
        return Response(status_code=202)
