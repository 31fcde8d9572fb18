"""The collector with one more route, `/raw`, which reads a body and does nothing: what its work is measured against.

python benchmarks/load_server.py FOLDER PORT
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import uvicorn

from tacit.collector.server import Settings, make_app, make_config, open_store
from tacit.dashboard import routes
from tacit.hosting.limits import Limits


class WithRaw:
    """An application with a raw route in front."""

    def __init__(self, app: Any) -> None:
        self._app, self.reports = app, app.reports

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the body of `/raw` and say no more than that; pass on everything else."""
        if scope["type"] != "http" or scope["path"] != "/raw":
            await self._app(scope, receive, send)
            return
        while (await receive()).get("more_body", False):
            pass
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


def main(folder: str, port: str) -> None:
    """Serve until stopped."""
    limits = Limits(requests_per_second=1e9, burst=1 << 30)
    app = make_app(open_store(Path(folder)), limits, pages=routes)
    print(f"admin token, shown this once: {app.collector.access.first_admin()}", flush=True)
    uvicorn.Server(make_config(WithRaw(app), Settings(port=int(port), limits=limits))).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
