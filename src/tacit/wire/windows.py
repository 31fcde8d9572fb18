"""The fields `windows` and `account` of a document: reading them, and what else a document that asks again must be."""

from fractions import Fraction
from typing import Any

from tacit.device.windows.terms import AccountTerms, WindowTerms, check_terms
from tacit.errors import InvalidSpec
from tacit.wire.fields import stated_fields

WINDOW_FIELDS = ("every", "first", "count", "zone", "late", "per", "schedule", "guarantee")
ACCOUNT_FIELDS = ("name", "run", "run_epsilon", "lifetime_epsilon")


def windows_from_json(value: Any) -> WindowTerms:
    """Read `document.windows`."""
    return WindowTerms(**stated_fields(value, "document.windows", WINDOW_FIELDS))


def account_from_json(value: Any) -> AccountTerms:
    """Read `document.account`."""
    return AccountTerms(**stated_fields(value, "document.account", ACCOUNT_FIELDS))


_EXCLUDED = {
    "plan": "rounds of an adaptive plan are asked once",
    "rows": "public columns would link the reports of a device over time",
    "shuffle": "what windows of shuffled reports keep together is not certified",
}


def check_told(document: Any) -> None:
    """Refuse kinds whose value is a history (a list of states): a question of a collection has one value per answer."""
    if any(part.kind == "tree_steps" for part in document.members):
        raise InvalidSpec(
            "document.mechanism is tree_steps, which no document carries yet: a device would have to be told its past "
            "states; use it from the library, or ask with windows and one report for life (per = count)"
        )


def check_windowed(document: Any) -> None:
    """Refuse windows without an account, accounts without windows, and what does not go with windows.

    `document` is a `Collection`, whose module imports this one.
    """
    windows, account = document.windows, document.account
    if windows is None or account is None:
        if windows is not None:
            raise InvalidSpec("document.account must be stated where there are windows: devices charge it")
        if account is not None:
            raise InvalidSpec("document.account must be null without windows: a single answer needs no account")
        return
    for name, why in _EXCLUDED.items():
        if getattr(document, name) is not None:
            raise InvalidSpec(f"document.{name} must be null where there are windows: {why}")
    if document.invitations:
        raise InvalidSpec("document.invitations must be false where there are windows: an invitation is for one report")
    if document.policy != "single":
        raise InvalidSpec(
            f'document.policy is {document.policy}, must be "single" where there are windows; ask the other questions '
            "in collections of their own, which may share the account"
        )
    if document.mechanism.kind in ("memo", "layered"):
        raise InvalidSpec(
            f"document.mechanism is {document.mechanism.kind}, must draw fresh noise alone where there are windows: "
            "what memoised windows keep depends on how answers change; ask every device in one of several windows (per)"
        )
    check_terms(windows, account, Fraction(document.mechanism.budget.declared), memoised=False)
