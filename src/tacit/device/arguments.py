"""Arguments of calls: first mistakes are told by errors of Tacit that say what to write instead.

Kinds are made as `GRR(size, epsilon)`; every other field has to be named. Python itself would answer a wrong call with
a TypeError that knows neither what was meant nor that there is an error tree.
"""

from abc import ABCMeta
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from tacit.device.numbers.coins import Coins
from tacit.errors import InvalidSpec

MEANT: dict[str, tuple[str, ...]] = {
    "size": ("d", "domain", "domain_size", "labels", "categories", "k"),
    "epsilon": ("eps", "e", "budget", "privacy", "privacy_budget"),
    "coins": ("seed", "rng", "random_state", "generator"),
    "domain": ("labels", "categories", "size", "d", "bins", "classes"),
    "n": ("respondents", "n_users", "users"),
    "target_error": ("error", "rmse", "accuracy"),
    "shares": ("at", "q", "quantiles", "probs"),
    "low": ("lower", "min", "minimum"),
    "high": ("upper", "max", "maximum"),
}
"""Names of arguments, and what other libraries and papers call them."""

CHOSEN = ("mechanism", "kind", "method", "oracle", "protocol", "algorithm")
"""Names under which other libraries let one choose what is chosen here."""

_CHOICES = ("GRR", "SUE", "OUE", "THE", "BLH", "OLH", "HRR", "SS", "SHE")
"""Kinds of size and epsilon that people ask for by name."""

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def explained(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Let a function answer calls that do not fit its arguments with InvalidSpec."""
    known = signature(function)

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Returned:
        try:
            known.bind(*given, **named)
        except TypeError:
            raise wrong_call(function.__name__.removeprefix("ask_"), known, given, named) from None
        return function(*given, **named)

    return call


def wrong_call(who: str, known: Signature, given: Sequence[Any], named: Mapping[str, Any]) -> InvalidSpec:
    """Return the error for arguments that do not fit, which says how the call is written."""
    usual = f"write {who}({', '.join(_shown(known))})"
    if (wish := next((name for name in named if name in CHOSEN), "")) and wish not in known.parameters:
        return InvalidSpec(f"{who}: there is no argument '{wish}', {_own_choice(named[wish])}")
    anything = any(p.kind is Parameter.VAR_KEYWORD for p in known.parameters.values())
    for name in named:
        if name not in known.parameters and not anything:
            return InvalidSpec(f"{who}: there is no argument '{name[:40]}'{_meant(name, known)}; {usual}")
    places = [p.name for p in known.parameters.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    if len(given) > len(places):
        return InvalidSpec(f"{who}: {len(given)} arguments without a name, at most {len(places)}; {usual}")
    twice = [name for name in places[: len(given)] if name in named]
    if twice:
        return InvalidSpec(f"{who}: {twice[0]} is given twice, in its place and by its name; {usual}")
    needed = [p.name for p in known.parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    missing = [name for name in needed if name not in named and name not in places[: len(given)]]
    return InvalidSpec(f"{who}: {' and '.join(missing) or 'an argument'} is missing; {usual}")


def _own_choice(given: Any) -> str:
    """Where a mechanism of one's own choice is used, as an end of a sentence."""
    wanted = str(given).upper() if isinstance(given, str) else getattr(given, "__name__", type(given).__name__)
    name = wanted if wanted in _CHOICES else "OUE"
    steps = "privatize(indices, tacit.SystemCoins()), tally(reports) and estimate(tally)"
    return f"the mechanism is chosen for you; a choice of your own is tacit.{name}(size, epsilon), with {steps}"


def _shown(known: Signature) -> list[str]:
    """The arguments that most calls have: those in places, and those without a default."""
    parameters = [p for p in known.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    return [p.name if p.default is Parameter.empty and p.kind is Parameter.POSITIONAL_OR_KEYWORD else f"{p.name}=…"
            for p in parameters if p.default is Parameter.empty or p.name in ("epsilon", "domain")]  # fmt: skip


def _meant(name: str, known: Signature) -> str:
    """What an unknown argument may have meant, as an end of a sentence."""
    names = list(known.parameters)
    found = [right for right, wrong in MEANT.items() if name.lower() in wrong and right in names]
    near = found or get_close_matches(name, names, 1, 0.6)
    return f", it is called '{near[0]}'" if near else f", there are {', '.join(names)}"


class KindType(ABCMeta):
    """The type of all kinds: `GRR(4, 1)` is size and epsilon, and a wrong call is told by InvalidSpec."""

    @property
    def __signature__(cls) -> Signature:
        """What `help` shows: the first field that has to be stated, and epsilon, in places; all others by name."""
        fields = list(signature(cls.__init__).parameters.values())[1:]
        first = next((p for p in fields if p.default is Parameter.empty and p.name != "epsilon"), None)
        front = [p for p in (first, *(p for p in fields if p.name == "epsilon")) if p is not None]
        placed = [p.replace(kind=Parameter.POSITIONAL_OR_KEYWORD) for p in front]
        both = [*placed, *(p for p in fields if p not in front)]
        # Without types: all that a budget may be made of would hide the names.
        return Signature([p.replace(annotation=Parameter.empty) for p in both])

    # Type checkers see the fields, which are keywords; the places exist at run time alone.
    if not TYPE_CHECKING:

        def __call__(cls, *given: Any, **named: Any) -> Any:
            """Make one; the usual call, by keywords alone, is not looked at unless it fails."""
            try:
                return super().__call__(**(_bound(cls, given, named) if given else named))
            except TypeError:
                _bound(cls, given, named)
                raise


def _bound(kind: KindType, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The fields by their names, or InvalidSpec where arguments do not fit them."""
    known = signature(kind)
    try:
        return dict(known.bind(*given, **named).arguments)
    except TypeError:
        raise wrong_call(kind.__name__, known, given, named) from None


def takes_coins(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method of a mechanism, called with values and coins, refuse everything else that is given as coins."""

    @wraps(method)
    def call(self: Any, *given: Any, **named: Any) -> Any:
        coins = given[1] if len(given) > 1 else named.get("coins")
        if not isinstance(coins, Coins):
            raise InvalidSpec(f"{self.kind}: {_coins_fault(coins)}; write {method.__name__}(…, tacit.SystemCoins())")
        return method(self, *given, **named)

    return call


def _coins_fault(given: Any) -> str:
    if given is None:
        return "coins are missing"
    # An uninitialised class is the likeliest slip, and a seed or a numpy generator the most dangerous one.
    name = str(getattr(given, "__name__", ""))
    if isinstance(given, type) and name.endswith("Coins"):
        return f"coins are the class {name}, must be an object of it, with parentheses"
    return f"coins are of type {type(given).__name__}, must be Coins: noise that can be predicted protects nobody"
