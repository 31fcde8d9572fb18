"""Fake reports for mechanisms whose respondents answer one of several members: trees, grids, views, prefixes.

A fake draws its member as honest devices do, so that the numbers of reports per member say nothing, and pushes what the
target values look like in the eyes of that member: nodes of a level, cells of a view, prefixes.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from tacit.core.all_of import AllOf
from tacit.core.mechanism import Mechanism, Reports
from tacit.core.one_of import OneOf
from tacit.errors import InvalidSpec
from tacit.simulate.coins import SimulationCoins
from tacit.simulate.poisoning.attacks import Attack, fake_reports, random_reports


def composed_fakes(mechanism: Mechanism, attack: Attack, values: Any, count: int, seed: int) -> Reports:
    """Return so many fakes that push these values: indices, or rows of answers to several attributes.

    `attack` says how; its targets are those of a plain mechanism alone.
    """
    if isinstance(mechanism, AllOf):
        raise InvalidSpec("poisoning: there is no attack on all_of; name a method in which one member is answered")
    if not isinstance(mechanism, OneOf):
        return fake_reports(mechanism, replace(attack, targets=np.unique(np.asarray(values))), count, seed)
    rng = np.random.default_rng([0x636F6D70, seed])
    if attack.name == "ria":
        rows = np.asarray(values)
        return mechanism.privatize(rows[rng.integers(len(rows), size=count)], SimulationCoins(seed + (1 << 40)))
    weights = np.asarray(mechanism.family.weights, np.float64)
    members = rng.choice(len(weights), count, p=weights / weights.sum())
    parts = [
        mechanism.wrapped(i, _member_fakes(mechanism, i, attack, values, int(np.count_nonzero(members == i)), seed))
        for i in np.unique(members).tolist()
    ]
    return np.concatenate([np.empty(0, mechanism.report_dtype), *parts])


def _member_fakes(mechanism: OneOf, i: int, attack: Attack, values: Any, count: int, seed: int) -> Reports:
    """Fakes of one member, which push the images of the targets; random ones where every value is such an image."""
    member = mechanism.member(i)
    rows = np.asarray(values)
    # Projections take values along the last axis.
    seen = np.unique(np.asarray(mechanism.family.view(i)(rows if rows.ndim == 1 else rows.T)))
    if attack.name == "mga" and len(seen) >= member.value_count:
        return random_reports(member, count, np.random.default_rng([0x72616E64, seed, i]))
    return fake_reports(member, replace(attack, targets=seen), count, seed + 1_000_003 * (i + 1))
