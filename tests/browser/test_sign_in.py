"""Signing in through a provider on another site, in a real browser: its rules for cookies decide whether that works."""

from functools import partial
from typing import Any

import pytest
from tests.service.memory import MemoryStore
from tests.service.oidc_provider import SECRET, TinyProvider, providing

from tacit.collector.server import make_app, running
from tacit.dashboard import routes
from tacit.dashboard.sign_in import GroupRule, SignIn


@pytest.mark.slow
def test_somebody_signs_in_with_a_provider_and_out_again(page: Any) -> None:
    with providing(TinyProvider()) as provider:
        # Another name of this machine is another site to a browser, and so its cookies are treated as they will be.
        provider.url = provider.url.replace("127.0.0.1", "localhost")
        settings = SignIn(provider.url, "tacit", (GroupRule("staff", "admin", "zoo"),), SECRET, name="the zoo")
        app = make_app(MemoryStore(), pages=partial(routes, sign_in=settings))
        with running(app) as server:
            provider.redirect = f"{server.url}/dashboard/oidc/callback"
            page.goto(f"{server.url}/dashboard/tokens")
            page.click("text=Sign in with the zoo")
            page.wait_for_selector("text=ada@example.org (signed in)")
            assert page.url == f"{server.url}/dashboard/tokens"
            assert page.get_by_text("Team zoo").is_visible()
            page.click("text=Sign out")
            page.wait_for_selector("text=Sign in to Tacit")
            assert app.collector.access.tokens() == []
