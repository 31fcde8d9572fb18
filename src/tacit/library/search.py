"""`tacit.heavy_hitters` and `tacit.itemsets`: what is frequent among more values than anybody lists."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from tacit.arrays import I64
from tacit.core.mechanism import Mechanism
from tacit.core.sets import Sets
from tacit.core.statistics.level import selected_level
from tacit.device.arguments import explained
from tacit.device.domains.domain import Domain
from tacit.device.domains.reals import Integers
from tacit.device.domains.text import ALPHABETS, Text
from tacit.device.numbers.budget import Budget, Declared
from tacit.device.numbers.coins import Coins, SystemCoins
from tacit.errors import InvalidSpec, InvalidValue
from tacit.library.columns import Column, column_of
from tacit.library.domains import Scope, advice, as_items, check_missing, item_scope
from tacit.library.finding import Ends, Finding
from tacit.library.inquiry import RESPONDENTS, Inquiry, checked_epsilon, respondents
from tacit.library.text import text_of
from tacit.tasks.hitters.hitters import ALPHA, find_hitters
from tacit.tasks.hitters.options import detectable_words
from tacit.tasks.hitters.plan import plan_pem
from tacit.tasks.hitters.spelling import spelling_of
from tacit.tasks.hitters.task import HEAVY_HITTERS
from tacit.tasks.itemsets.task import ITEMSETS
from tacit.tasks.plans import PlanResult, Received, Round, Steps, proceed

K = 16
"""How many are looked for where nobody says."""


def _text_scope(name: str, domain: Any, column: Column | None, alphabet: str | None, length: int | None) -> Scope:
    """The domain of texts or whole numbers: declared, or the least that holds all values."""
    if domain is not None and not isinstance(domain, Domain):
        raise InvalidSpec(
            "heavy_hitters: domain must be one such as tacit.Text('word', 'lower', 8) or tacit.Bits('id', 32); "
            "a list of labels is counted by tacit.histogram"
        )
    if isinstance(domain, Domain):
        return Scope(domain, True)
    if alphabet is not None and length is not None:
        return Scope(Text(name, _in_order(alphabet), length), True)
    if column is None or alphabet is not None or length is not None:
        raise InvalidSpec("heavy_hitters: declare what may be answered: alphabet='lower', length=8, or a domain")
    return Scope(_least_domain(name, [item for item in column.items if item is not None]), False)


def _in_order(alphabet: str) -> str:
    """Characters as a domain lists them, in the order of their code points; names of alphabets as they are."""
    return alphabet if alphabet in ALPHABETS else "".join(sorted(alphabet))


def _least_domain(name: str, held: list[Any]) -> Domain:
    if held and all(type(item) is int for item in held):
        return Integers(name, min(held), max(held) + (min(held) == max(held)))
    if not held or not all(isinstance(item, str) for item in held):
        raise InvalidValue("heavy_hitters: values must be texts or whole numbers, all of one type")
    # The smallest alphabet with a name, so that the domain tells little more than the longest word.
    longest, used = max(map(len, held)), set("".join(held))
    for alphabet, symbols in (("lower", ALPHABETS["lower"]), ("printable", ALPHABETS["printable"])):
        if used <= set(symbols) and longest <= Text.most_symbols(len(symbols) + 1):
            return Text(name, alphabet, max(1, longest))
    return Text(name, "".join(sorted(used)), max(1, longest))


def _hitters(k: int, inquiry: Inquiry, tally: Any) -> Finding:
    """The values that stand out from noise; `answers` has all that were looked at."""
    scope = inquiry.scopes[0]
    found = find_hitters(inquiry.mechanism, tally, spelling_of(scope.domain), k=k)
    sure = found.sure(ALPHA)
    labels = [scope.label(index) for index in sure.values.tolist()]
    raw = replace(sure.estimate, labels=labels, covariance=None)

    def ends(level: float) -> Ends:
        # Listing the highest of all that were looked at makes plain intervals miss too often.
        return raw.interval(selected_level(level, len(labels), found.examined)) if labels else raw.interval(level)

    nothing = "nothing stands out from noise; ask more respondents, or spend more epsilon"
    notes = ("intervals are adjusted for having listed the most frequent",) if labels else (nothing,)
    name = str(getattr(scope.domain, "name", "value"))
    return Finding(inquiry, tally, (name,), labels, raw.value, ends, "share", raw, answers=found, notes=notes)


@explained
def ask_heavy_hitters(
    column: Column | None = None, *, epsilon: Declared | None = None, n: int = RESPONDENTS, k: int = K,
    domain: Any = None, alphabet: str | None = None, length: int | None = None, name: str = "value",
) -> Inquiry:  # fmt: skip
    """Plan the search for frequent values, prefix by prefix."""
    who = "heavy_hitters"
    scope, count = _text_scope(name, domain, column, alphabet, length), respondents(who, n, column)
    plan = plan_pem(spelling_of(scope.domain), epsilon=checked_epsilon(who, epsilon), n=count, k=k)

    def predict(mechanism: Mechanism, people: int) -> Any:
        told = HEAVY_HITTERS.forecast(scope.domain, mechanism, people)
        return replace(told, why=detectable_words(plan))

    return Inquiry(who, plan.mechanism, (scope,), count, partial(_hitters, k), predict)


@explained
def heavy_hitters(
    values: Any, epsilon: Declared | None = None, *, k: int = K, domain: Any = None, alphabet: str | None = None,
    length: int | None = None, name: str = "value", coins: Coins | None = None,
) -> Finding:  # fmt: skip
    """Return up to k of the most frequent texts or whole numbers, as far as they stand out from noise.

    `alphabet` ("lower", "printable", "bytes" or the characters) and `length` declare the texts there may be; `domain`
    takes `tacit.Text`, `tacit.Bits` or `tacit.Integers`.

    >>> words = ["tea"] * 6_000 + ["oat"] * 3_000 + ["rye"] * 1_000
    >>> heavy_hitters(words, epsilon=4, k=4, alphabet="lower", length=3).labels[0]
    'tea'
    """
    column = column_of("heavy_hitters", values)
    inquiry = ask_heavy_hitters(
        column, epsilon=epsilon, k=k, domain=domain, alphabet=alphabet, length=length, name=name
    )
    return inquiry.simulate((column,), coins)


@dataclass(frozen=True, eq=False, repr=False)
class RoundInquiry(Inquiry):
    """One round of a plan that asks in rounds: what it asks depends on the rounds before, which it replays.

    `collect` gives a finding without values, whose `next` is the next round, until the plan has come to its end.
    """

    epsilon_budget: Budget | None = None
    k: int = K
    received: tuple[Received, ...] = ()
    """The mechanisms and tallies of the rounds before."""

    @property
    def share(self) -> float:
        """The part of all respondents that this round is put to; they must not have been asked before."""
        said = self._said(self.received)
        return said.share if isinstance(said, Round) else 0.0

    def _said(self, received: Sequence[Received]) -> Round | PlanResult:
        """What the plan says after so many rounds: the next one, or the result."""
        assert self.epsilon_budget is not None
        steps: Steps = ITEMSETS.steps(self.scopes[0].domain, self.epsilon_budget, self.k, self.n)
        said = proceed(steps)
        for one in received:
            said = proceed(steps, one)
        return said

    def answer(self, tally: Any) -> Finding:
        """The next round, or the finding if there is none."""
        received = (*self.received, (self.mechanism, tally))
        said, tallies = self._said(received), tuple(part for _, part in received)
        if isinstance(said, PlanResult):
            return _itemsets(self, tallies, said)
        later = replace(self, mechanism=said.mechanism, received=received)
        note = f"round {len(received)} is counted; hand out .next.device, and collect its reports with .next.collect"
        return Finding(self, tallies, ("itemset",), [], np.zeros(0), lambda level: (np.zeros(0), np.zeros(0)),
                       notes=(note,), next=later)  # fmt: skip

    def encode(self, columns: tuple[Column, ...]) -> Any:
        """Sets of items by their numbers."""
        domain = self.scopes[0].domain
        check_missing(self.task, None, columns[0])
        texts = [[text_of(item) for item in as_items(self.task, one)] for one in columns[0].items]
        sets, wrong = list[Any](), list[InvalidValue]()
        for items in texts:
            try:
                sets.append(domain.encode(items))
            except InvalidValue as error:
                wrong.append(error)
        if wrong:
            count = f"{len(wrong)} of {len(texts)} values are refused"
            raise InvalidValue(f"{self.task}: {count} ({wrong[0]}); {advice(domain)}")
        return Sets.of(sets)

    def simulate(self, columns: tuple[Column, ...], coins: Coins | None) -> Finding:
        """Ask round after round, each of respondents who were not asked before, in an order that coins draw."""
        # Rounds take respondents in a random order: values often come sorted, and a group must speak for all.
        source = SystemCoins() if coins is None else coins
        sets = cast("Sets", self.encode(columns))
        order = np.argsort(np.frombuffer(source.words(len(sets)), "<u8"), kind="stable")
        now, taken, found = self, 0.0, None
        while found is None or found.next is not None:
            group, taken = _group(order, taken, now.share), taken + now.share
            mechanism = now.mechanism
            found = now.answer(mechanism.tally(mechanism.privatize(cast("Any", sets.take(group)), source)))
            now = cast("RoundInquiry", found.next)
        return found


def _group(order: I64, taken: float, share: float) -> I64:
    """The next respondents; rounded running sums neither overlap nor leave a gap."""
    n = len(order)
    return order[round(taken * n) : min(n, round((taken + share) * n))]


def _itemsets(inquiry: Inquiry, tallies: tuple[Any, ...], result: PlanResult) -> Finding:
    raw = ITEMSETS.answer(inquiry.scopes[0].domain, result).raw
    labels = [tuple(items) for items in raw.labels or ()]
    return Finding(inquiry, tallies, ("itemset",), labels, raw.value, result.intervals, "share", raw,
                   answers=result, notes=result.notes)  # fmt: skip


@explained
def ask_itemsets(
    column: Column | None = None, *, epsilon: Declared | None = None, n: int = RESPONDENTS, k: int = K,
    domain: Any = None, name: str = "items",
) -> Inquiry:  # fmt: skip
    """Plan the search for frequent itemsets, round by round."""
    scope, count = item_scope("itemsets", name, domain, column), respondents("itemsets", n, column)
    budget = checked_epsilon("itemsets", epsilon)
    first = next(ITEMSETS.steps(scope.domain, budget, k, count))
    predict = partial(ITEMSETS.forecast, scope.domain)
    return RoundInquiry("itemsets", first.mechanism, (scope,), count, _unused, predict, epsilon_budget=budget, k=k)


def _unused(inquiry: Inquiry, tally: Any) -> Finding:
    """A round answers by replaying its plan."""
    return inquiry.answer(tally)


@explained
def itemsets(
    values: Any, epsilon: Declared | None = None, *, k: int = K, domain: Any = None, name: str = "items",
    coins: Coins | None = None,
) -> Finding:  # fmt: skip
    """Return the k most frequent items and sets of items, each value a list of items; asked in rounds.

    >>> baskets = [["bread", "milk"], ["bread"], [], ["milk", "eggs", "bread"]] * 5_000
    >>> found = itemsets(baskets, epsilon=4, k=4, domain=["bread", "milk", "eggs", "tea"])
    >>> found.labels[0]
    ('bread',)
    """
    column = column_of("itemsets", values)
    return ask_itemsets(column, epsilon=epsilon, k=k, domain=domain, name=name).simulate((column,), coins)
