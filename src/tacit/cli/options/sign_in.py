"""Options of `tacit serve` that let people sign in through an OpenID Connect provider."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tacit.cli.options.settings import read_variable, setting

_OPTIONS = (
    setting("--oidc-issuer", default="", help="OpenID Connect provider that people sign in with, https://..."),
    setting("--oidc-client-id", default="", help="What this collector is called at --oidc-issuer."),
    setting("--oidc-group", "oidc_groups", multiple=True, metavar="NAME=SCOPE[:TEAM]",
            help="What a group may do; the first that fits decides. May be given several times."),
    setting("--oidc-claim", default="groups", show_default=True, help="The claim that lists somebody's groups."),
    setting("--oidc-scopes", default="openid profile email", show_default=True, help="What is asked for."),
    setting("--oidc-name", default="single sign-on", show_default=True, help="Name on the sign-in page."),
)  # fmt: skip


def sign_in_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, and hand them on as one argument `sign_in`, None without an issuer."""

    @wraps(command)
    def called(
        *args: Any, oidc_issuer: str, oidc_client_id: str, oidc_groups: tuple[str, ...], oidc_claim: str,
        oidc_scopes: str, oidc_name: str, **rest: Any,
    ) -> Any:  # fmt: skip
        if not oidc_issuer:
            if oidc_client_id or oidc_groups:
                raise click.UsageError("--oidc-client-id and --oidc-group go with --oidc-issuer")
            return command(*args, sign_in=None, **rest)
        # Imported where it is used: `tacit --help` must not load the pages.
        from tacit.core.extras import need

        need("collector", "oidc")
        from tacit.dashboard.sign_in import GroupRule, SignIn

        rules = tuple(GroupRule.parse(text) for text in oidc_groups)
        secret = read_variable("TACIT_OIDC_CLIENT_SECRET")
        found = SignIn(oidc_issuer, oidc_client_id, rules, secret, oidc_claim, oidc_scopes, oidc_name)
        return command(*args, sign_in=found, **rest)

    # Reversed, as the decorator applied last is listed first.
    for option in reversed(_OPTIONS):
        called = option(called)
    return called
