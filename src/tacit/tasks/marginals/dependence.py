"""Chow-Liu trees, classifiers and synthetic data from tables: all post-processing, so it costs no privacy.

Chow and Liu (1968); Kulkarni's dissertation, sections 2.5.1 and 4.5.2. Logistic regression and naive Bayes need nothing
but tables of the label with the features. Synthetic records come from a tree, or from the table of all attributes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from tacit.arrays import I64
from tacit.core.extras import load
from tacit.core.patience import check
from tacit.errors import InvalidSpec
from tacit.post.views.table import given_rows
from tacit.tasks.marginals.association import Information, entropy_gain, mutual_information
from tacit.tasks.marginals.junction import draw_rows, junction_tree, sample_cliques
from tacit.tasks.marginals.marginals import Marginals
from tacit.tasks.marginals.sources import F64

Edge = tuple[int, int]


@dataclass(frozen=True, eq=False)
class DependenceTree:
    """A tree over all attributes, with the mutual information of its edges in nats."""

    edges: tuple[Edge, ...]
    """Parent and child, parents first; attribute 0 is the root."""
    information: dict[Edge, float]
    """Mutual information of all pairs (smaller attribute first), from consistent tables: biased upwards by noise."""
    corrected: dict[Edge, float]
    """The same, less the bias that noise adds, and not below zero."""

    @property
    def total(self) -> float:
        """The corrected information, summed over the edges."""
        return sum(self.corrected[_sorted(edge)] for edge in self.edges)


def _sorted(edge: Edge) -> Edge:
    return (min(edge), max(edge))


def spanning_tree(m: int, weight: dict[Edge, float]) -> tuple[Edge, ...]:
    """Return the maximum spanning tree, grown from attribute 0 (Prim's algorithm); ties go to the smaller attributes.

    >>> spanning_tree(3, {(0, 1): .1, (0, 2): .5, (1, 2): .4})
    ((0, 2), (2, 1))
    """
    inside, edges = {0}, list[Edge]()
    while len(inside) < m:
        # Prim's step: the heaviest edge that leaves the tree, so that parents come before children.
        outward = ((a, b) for a in sorted(inside) for b in range(m) if b not in inside)
        best = max(outward, key=lambda edge: (weight[_sorted(edge)], -edge[0], -edge[1]))
        edges.append(best)
        inside.add(best[1])
    return tuple(edges)


def chow_liu(answers: Marginals) -> DependenceTree:
    """Return the tree that explains most of the dependence between pairs of attributes.

    Pairs are ranked by the corrected information: noise would make the least known pairs look the most dependent.
    Pairs that nobody was asked about together count as independent.
    """
    pairs = list(combinations(range(len(answers.sizes)), 2))
    information: dict[Edge, Information] = {}
    for pair, table in zip(pairs, answers.tables(pairs), strict=True):
        check()
        known = table.status == "covered" and min(table.shape) > 1
        information[pair] = mutual_information(table) if known else Information(0.0, 0.0)
    return tree_of(len(answers.sizes), information)


def tree_of(m: int, found: dict[Edge, Information]) -> DependenceTree:
    """Return the Chow-Liu tree of all pairs' information."""
    # Many corrected values are exactly zero. A tiny share of the plugged-in value orders those among themselves.
    plugged, corrected = ({p: getattr(i, name) for p, i in found.items()} for name in ("plugged_in", "corrected"))
    ranked = {pair: (corrected[pair] or 1e-9 * plugged[pair]) for pair in found}
    return DependenceTree(spanning_tree(m, ranked), plugged, corrected)


def true_information(records: I64, sizes: Sequence[int], edges: Sequence[Edge]) -> float:
    """Return the true information on some edges, from known records: to judge a private tree by."""
    total = 0.0
    for a, b in edges:
        joint = np.bincount(records[:, a] * sizes[b] + records[:, b], minlength=sizes[a] * sizes[b])
        total += entropy_gain(joint.reshape(sizes[a], sizes[b]) / max(1, len(records)))
    return total


def sample_tree(answers: Marginals, tree: DependenceTree, n: int, rng: np.random.Generator) -> I64:
    """Draw n synthetic records: the root, then every child given its parent (ancestral sampling)."""
    out = np.zeros((n, len(answers.sizes)), np.int64)
    out[:, 0] = draw_rows(np.broadcast_to(answers.table([0]).consistent, (n, answers.sizes[0])), rng)
    for parent, child in tree.edges:
        # Tables have their axes in rising order, so the parent is the second axis where its number is larger.
        joint = answers.table([parent, child]).consistent
        conditional = given_rows(joint if parent < child else joint.T)
        out[:, child] = draw_rows(conditional[out[:, parent]], rng)
    return out


def sample_table(answers: Marginals, attributes: Sequence[int], n: int, rng: np.random.Generator) -> I64:
    """Draw n synthetic records of a few attributes from their joint table, covered or reconstructed."""
    table = answers.table(attributes)
    flat = rng.choice(prod(table.shape), n, p=table.consistent.ravel() / table.consistent.sum())
    return np.stack(np.unravel_index(flat, table.shape), axis=1).astype(np.int64)


def sample_views(answers: Marginals, views: Sequence[tuple[int, ...]], n: int, rng: np.random.Generator) -> I64:
    """Draw n synthetic records from views by the junction tree grown from them; see `marginals.junction`."""
    return sample_cliques(answers, junction_tree(answers, views), n, rng)


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """Log-probabilities of the label (`prior`), and of every feature's answers given it (`given`, labels in rows)."""

    prior: F64
    given: tuple[F64, ...]

    def predict(self, features: I64) -> I64:
        """Return the likeliest label of every row of features."""
        score = np.broadcast_to(self.prior, (len(features), len(self.prior)))
        for i, table in enumerate(self.given):
            score = score + table[:, features[:, i]].T
        return score.argmax(axis=1)


def naive_bayes(answers: Marginals, label: int, features: Sequence[int], *, floor: float = 1e-4) -> NaiveBayes:
    """Fit naive Bayes from the tables of the label with every feature; no record is needed.

    Probabilities are floored at `floor`: a cell that noise pushed to zero must not veto a label with log 0.
    """
    _check(answers, label, features)
    prior = np.log(np.maximum(answers.table([label]).consistent, floor))
    conditionals: list[F64] = []
    for feature in features:
        # Label in rows, whichever attribute has the smaller number.
        joint = np.maximum(answers.table([label, feature]).consistent, floor * floor)
        joint = joint if label < feature else joint.T
        conditionals.append(np.log(joint / joint.sum(axis=1, keepdims=True)))
    return NaiveBayes(prior, tuple(conditionals))


def _check(answers: Marginals, label: int, features: Sequence[int]) -> None:
    if not features or label in features or len(set(features)) < len(features):
        raise InvalidSpec("model: features must be different attributes, at least one, without the label")
    if not all(0 <= a < len(answers.sizes) for a in (label, *features)):
        raise InvalidSpec(f"model: attributes must be integers from 0 to {len(answers.sizes) - 1}")


@dataclass(frozen=True, eq=False)
class Logistic:
    """A logistic regression of a binary label on indicator features."""

    intercept: float
    weights: tuple[F64, ...]
    """Per feature, one coefficient per answer; the first answer is the reference category with coefficient zero."""

    def predict(self, features: I64) -> I64:
        """Return the likelier label of every row of features."""
        score = np.full(len(features), self.intercept)
        for i, weight in enumerate(self.weights):
            score += weight[features[:, i]]
        return (score > 0).astype(np.int64)


def logistic(
    answers: Marginals, label: int, features: Sequence[int], *, penalty: float = 1e-3, steps: int = 50
) -> Logistic:
    """Fit a ridge-penalised logistic regression by Newton's method.

    Every combination of features is one observation, weighted by its share in the joint table of label and features.
    The joint table may be reconstructed; then interactions that nobody was asked about are not in it.
    """
    _check(answers, label, features)
    if answers.sizes[label] != 2:
        raise InvalidSpec("logistic: the label must be binary; use naive Bayes for more answers")
    table = answers.table([label, *features])
    joint = np.moveaxis(table.consistent, table.attributes.index(label), 0)
    rest = [a for a in table.attributes if a != label]
    shape = [answers.sizes[a] for a in rest]
    cells = np.indices(shape).reshape(len(rest), -1)
    # Design matrix: intercept, then per feature one indicator for every answer but the first.
    columns = [np.ones(cells.shape[1])]
    for i, size in enumerate(shape):
        columns += [(cells[i] == value).astype(np.float64) for value in range(1, size)]
    beta = _newton(np.stack(columns, axis=1), joint.reshape(2, -1), penalty, steps)
    weights: dict[int, F64] = {}
    at = 1
    for attribute, size in zip(rest, shape, strict=True):
        weights[attribute] = np.concatenate([[0.0], beta[at : at + size - 1]])
        at += size - 1
    return Logistic(float(beta[0]), tuple(weights[a] for a in features))


def _newton(design: F64, joint: F64, penalty: float, steps: int) -> F64:
    """Return the coefficients by damped Newton steps from zero, until no coefficient moves by 1e-9."""
    ridge = np.full(design.shape[1], penalty)
    ridge[0] = 1e-12  # The intercept is not shrunk.
    beta = np.zeros(design.shape[1])
    for _ in range(steps):
        move = _step(design, joint, beta, ridge)
        # Clipped steps keep Newton's method from overshooting on separable tables, where the optimum is far away.
        beta = beta + np.clip(move, -2, 2)
        if np.abs(move).max() < 1e-9:
            break
    return beta


def _step(design: F64, joint: F64, beta: F64, ridge: F64) -> F64:
    """Return one Newton step (iteratively reweighted least squares) on the penalised log-likelihood."""
    total = joint.sum(axis=0)
    chance = 1 / (1 + np.exp(-np.clip(design @ beta, -30, 30)))
    gradient = design.T @ (joint[1] - total * chance) - ridge * beta
    curvature = (design * (total * chance * (1 - chance))[:, None]).T @ design + np.diag(ridge + 1e-12)
    return np.asarray(np.linalg.solve(curvature, gradient), np.float64)


def misclassified(predicted: I64, label: I64) -> float:
    """Return the share of wrong predictions."""
    return float(np.count_nonzero(predicted != label)) / max(1, len(label))


def majority(label: I64, held_out: I64) -> float:
    """Return the error of the baseline that always predicts the most frequent label."""
    return misclassified(np.full(len(held_out), np.bincount(label).argmax()), held_out)


def classify_synthetic(train: I64, test: I64, *, kind: str = "linear", seed: int = 0) -> float:
    """Train a support vector machine on records whose last column is the label, and return its error on others.

    Needs scikit-learn (extra `models`). Features are one-hot; Wang's dissertation, section 6.3.4, does not say how it
    encodes them. `kind` is linear or rbf.
    """
    if kind not in ("linear", "rbf"):
        raise InvalidSpec(f"classify: kind is {kind[:40]!r}, must be linear or rbf")
    pipeline, encoding, svm = (load(f"sklearn.{part}") for part in ("pipeline", "preprocessing", "svm"))
    # Noise may leave a single label in synthetic records, which a support vector machine refuses.
    if len(np.unique(train[:, -1])) < 2:
        return misclassified(np.full(len(test), train[0, -1]), test[:, -1])
    machine = svm.LinearSVC(random_state=seed) if kind == "linear" else svm.SVC()
    model = pipeline.make_pipeline(encoding.OneHotEncoder(handle_unknown="ignore"), machine)
    model.fit(train[:, :-1], train[:, -1])
    return misclassified(np.asarray(model.predict(test[:, :-1])), test[:, -1])
