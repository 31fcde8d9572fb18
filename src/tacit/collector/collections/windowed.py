"""Drafts that ask again and again: defaults of their windows and account, and what a collector refuses of them."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

from tacit.device.windows.terms import WindowTerms, realised_guarantee
from tacit.errors import InvalidSpec
from tacit.tasks.histogram import HISTOGRAM
from tacit.wire.document import Collection
from tacit.wire.windows import WINDOW_FIELDS

_DEFAULTS: dict[str, Any] = {"zone": "utc", "late": 0, "schedule": "fixed"}


def windowed_fields(fields: Mapping[str, Any], epsilon: Any) -> dict[str, Any]:
    """The fields `windows` and `account` of a document, from those of a draft; None each where it has no windows."""
    windows, account = fields["windows"], fields["account"]
    if windows is None:
        return {"windows": None, "account": account}
    if not isinstance(windows, dict):
        raise InvalidSpec("draft.windows must be an object with every, first, count and per")
    given: dict[str, Any] = _DEFAULTS | cast("dict[str, Any]", windows)
    if "guarantee" not in given and {"every", "first", "count", "per"} <= given.keys():
        # Any of them will do to read the rest; what is realised is then stated.
        known: dict[str, Any] = {name: value for name, value in given.items() if name in WINDOW_FIELDS} | {
            "guarantee": "run"
        }
        given["guarantee"] = realised_guarantee(WindowTerms(**known))
    return {"windows": given, "account": _account(account, given, epsilon)}


def _account(account: Any, windows: Mapping[str, Any], epsilon: Any) -> dict[str, Any]:
    """The account of a draft: by default one report per run."""
    if account is not None and not isinstance(account, dict):
        raise InvalidSpec("draft.account must be an object with name, run and run_epsilon")
    defaults = {"name": "default", "run": windows.get("per"), "run_epsilon": epsilon, "lifetime_epsilon": None}
    return defaults | cast("dict[str, Any]", account or {})


def check_windows(collection: Collection, *, in_lake: bool) -> None:
    """InvalidSpec for windows that this collector could not count or answer."""
    if collection.windows is None:
        return
    (question,) = collection.questions
    if question.task != HISTOGRAM.name:
        raise InvalidSpec(
            f"draft.windows: the task of '{question.name}' is {question.task}, must be {HISTOGRAM.name}; series are "
            "answered for lists of answers"
        )
    if in_lake:
        raise InvalidSpec(
            "draft.windows must be null on a collector with a lake: windows are counted and dropped apart"
        )


def declared(collection: Collection) -> Fraction:
    """The epsilon of one report."""
    return Fraction(collection.mechanism.budget.declared)
