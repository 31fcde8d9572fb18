"""Models of one question by all others, from tables of it with each: nobody's answers are put together.

A star asks every respondent about the target and one feature. Naive Bayes multiplies the shares of answers given each
class. A share that noise cut to zero would have a huge log-ratio, so that every cell is lifted by one standard error
times the share of its class first; the factors of the tables themselves matter less. Made-up records draw a class, then
every feature given the class. A feature may also depend on another one (tree-augmented naive Bayes: Friedman, Geiger
and Goldszmidt, 1997), where all three were asked together and their interaction stands out of the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tacit.arrays import F64, I64
from tacit.core.mechanism import Mechanism
from tacit.device.numbers.budget import Budget
from tacit.errors import InvalidSpec, NoData
from tacit.tasks.marginals.association import entropy_gain
from tacit.tasks.marginals.dependence import Edge, Logistic, spanning_tree
from tacit.tasks.marginals.junction import draw_rows
from tacit.tasks.marginals.marginals import Marginals, Table
from tacit.tasks.marginals.methods import adaptive_oracle, one_of_views

LEAST_FACTOR = 0.5
"""A feature depends on another one only if so much of their interaction with the target is kept."""


def plan_star(sizes: Sequence[int], target: int, budget: Budget) -> Mechanism:
    """Ask every respondent about the target and one of the other attributes, all alike."""
    if len(sizes) < 2 or not 0 <= target < len(sizes) or min(sizes) < 2:
        raise InvalidSpec("target: a model needs a target and a feature, each with two answers or more")
    views = [(min(target, a), max(target, a)) for a in range(len(sizes)) if a != target]
    return one_of_views(sizes, views, lambda cells: adaptive_oracle(cells, budget))


@dataclass(frozen=True, eq=False)
class TargetModel:
    """The share of every class, and of every feature's answers given the class (and another feature's answer)."""

    target: int
    features: tuple[int, ...]
    classes: F64
    given: tuple[F64, ...]
    """Per feature, shares by class in rows; of a feature with a parent, by class and the parent's answer."""
    parents: tuple[int | None, ...]
    note: str = ""
    """What is to be said about the model, such as that there is no tree."""

    def scores(self, records: I64) -> F64:
        """Return the log-probability of every class (up to a constant) for records with a column per attribute."""
        out = np.log(self.classes)[None, :] + np.zeros((len(records), 1))
        for feature, parent, table in zip(self.features, self.parents, self.given, strict=True):
            logs = np.log(table)
            out = out + (
                logs[:, records[:, feature]].T if parent is None else logs[:, records[:, parent], records[:, feature]].T
            )
        return out

    def predict(self, records: I64) -> I64:
        """Return the likeliest class of every record."""
        return self.scores(records).argmax(axis=1)

    def logistic(self) -> Logistic:
        """Return naive Bayes as the logistic regression that it is: intercept and a weight per answer.

        It is fitted to this model of the features given the class, not to records: tables of pairs do not determine
        the score equations of a logistic regression, unless there is one feature.
        """
        if len(self.classes) != 2 or any(parent is not None for parent in self.parents):
            raise InvalidSpec("logistic: needs a target of two answers and features without parents")
        intercept, weights = float(np.log(self.classes[1] / self.classes[0])), list[F64]()
        for table in self.given:
            ratio = np.log(table[1] / table[0])
            intercept += float(ratio[0])
            weights.append(ratio - ratio[0])
        return Logistic(intercept, tuple(weights))

    def sample(self, n: int, rng: np.random.Generator) -> I64:
        """Draw made-up records with a column per attribute: the class, then every feature given it."""
        out = np.zeros((n, 1 + max(self.target, *self.features)), np.int64)
        out[:, self.target] = draw_rows(np.broadcast_to(self.classes, (n, len(self.classes))), rng)
        order = sorted(range(len(self.features)), key=self._depth)
        for i in order:
            parent, label = self.parents[i], out[:, self.target]
            rows = self.given[i][label] if parent is None else self.given[i][label, out[:, parent]]
            out[:, self.features[i]] = draw_rows(rows, rng)
        return out

    def _depth(self, i: int) -> int:
        """How many features must be drawn before this one."""
        parent = self.parents[i]
        return 0 if parent is None else 1 + self._depth(self.features.index(parent))


def fit_target(
    answers: Marginals, target: int, features: Sequence[int] | None = None, *, model: str = "naive_bayes"
) -> TargetModel:
    """Fit a model of the target by some features (all others by default): naive_bayes, or tan for a tree of features.

    NoData where a class has an estimated share of zero, since no record could be scored for it.
    """
    chosen = tuple(a for a in range(len(answers.sizes)) if a != target) if features is None else tuple(features)
    if model not in ("naive_bayes", "tan"):
        raise InvalidSpec(f"model is {model[:40]!r}, must be naive_bayes or tan")
    if not chosen or target in chosen or len(set(chosen)) < len(chosen):
        raise InvalidSpec("model: features must be different attributes, at least one, without the target")
    classes = answers.table([target]).consistent
    if classes.min() <= 0:
        raise NoData(
            f"model: answer {int(classes.argmin())} of the target has an estimated share of zero, so that nothing can "
            "be scored for it; merge it with another answer, or ask more respondents"
        )
    parents = _parents(answers, target, chosen) if model == "tan" else dict[int, int]()
    given = tuple(_given(answers, classes, target, feature, parents.get(feature)) for feature in chosen)
    missing = model == "tan" and not parents
    note = "no three questions stand out of the noise together: this is naive Bayes" if missing else ""
    return TargetModel(target, chosen, classes, given, tuple(parents.get(f) for f in chosen), note)


def _lifted(table: Table, target: int, classes: F64) -> F64:
    """A table with the target first, every cell lifted by a standard error times the share of its class."""
    joint = np.moveaxis(table.consistent, table.attributes.index(target), 0)
    error = float(np.sqrt(table.raw.variance.mean())) if np.isfinite(table.raw.variance).all() else 1.0
    return joint + max(error, 1e-9) * classes.reshape(-1, *[1] * (joint.ndim - 1))


def _given(answers: Marginals, classes: F64, target: int, feature: int, parent: int | None) -> F64:
    """Shares of a feature's answers by class, and by the answer of its parent where it has one."""
    attributes = [target, feature] if parent is None else [target, feature, parent]
    lifted = _lifted(answers.table(attributes), target, classes)
    if parent is not None and parent > feature:
        lifted = np.swapaxes(lifted, 1, 2)
    return lifted / lifted.sum(axis=-1, keepdims=True)


def _parents(answers: Marginals, target: int, features: Sequence[int]) -> dict[int, int]:
    """The tree of features that tell most of each other given the target, where that stands out of the noise."""
    weight: dict[Edge, float] = {}
    for i, j in combinations(range(len(features)), 2):
        table = answers.table([target, features[i], features[j]])
        inner = tuple(answers.kept.index(a) for a in table.attributes)
        kept = table.status == "covered" and answers.shrunken.factor(inner) > LEAST_FACTOR
        weight[i, j] = _conditional_information(table, target) if kept else 0.0
    edges = spanning_tree(len(features), weight) if len(features) > 1 else ()
    return {
        features[child]: features[parent]
        for parent, child in edges
        if weight[min(parent, child), max(parent, child)] > 0
    }


def _conditional_information(table: Table, target: int) -> float:
    """What two features tell of each other given the target, on average over its classes."""
    joint = np.moveaxis(table.consistent, table.attributes.index(target), 0)
    mass = joint.sum(axis=(1, 2))
    return sum(float(m) * entropy_gain(part / m) for m, part in zip(mass, joint, strict=True) if m > 0)


def auc(score: F64, label: I64) -> float:
    """Return how often a record of class 1 scores higher than one of class 0; ties count half."""
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    # Mean rank of every distinct score, from how many are below it.
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    ones = int(label.sum())
    zeros = len(label) - ones
    if not ones or not zeros:
        raise NoData("auc: there must be records of both classes")
    return float((ranks[label == 1].sum() - ones * (ones + 1) / 2) / (ones * zeros))
