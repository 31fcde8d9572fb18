"""MARG-HT with equal coefficients pooled: a Hadamard coefficient is the same in every table that contains it.

Respondents of different tables who drew the same coefficient answered the same question, so their signs are added up,
and every coefficient is divided by its own respondents, as in INP-HT (Kulkarni's dissertation, section 4.3.3, keeps
tables apart). What `solve_marginals` does with any views, agreement, pools as well; dividing by each coefficient's own
respondents takes off what is left of the spread of signs. For binary attributes.
"""

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tacit.core.compose import OneOf
from tacit.core.mechanism import Mechanism
from tacit.core.members import PerMember
from tacit.device.coefficients import Coefficients
from tacit.device.views import Views
from tacit.errors import InvalidSpec
from tacit.oracles.grr import GRR
from tacit.oracles.hadamard import HRR
from tacit.post.marginal_table import Attributes
from tacit.tasks.marginal_sources import FromSigns
from tacit.tasks.marginals import Marginals

I64 = npt.NDArray[np.int64]


def pool_signs(mechanism: Mechanism, tally: PerMember, *, respondents: int | None = None) -> Marginals:
    """The answers of MARG-HT over binary attributes, from pooled coefficients."""
    family = getattr(mechanism, "family", None)
    if not isinstance(mechanism, OneOf) or not isinstance(family, Views) or not _is_plain(mechanism, family):
        raise InvalidSpec("marginals: coefficients are pooled over views of binary attributes that are asked by hrr")
    known = Coefficients(
        sizes=family.sizes, k=max(map(len, family.views)), mechanisms=(GRR(size=2, epsilon=_budget(family)),)
    )
    plus, minus = np.zeros(len(known), np.int64), np.zeros(len(known), np.int64)
    for i, view in enumerate(family.views):
        cells = _by_row(tally.member(i))
        places = _ranks(known, view)
        plus[places] += cells[1:, 0]
        minus[places] += cells[1:, 1]
    n = (plus + minus).astype(np.float64)
    keep = float(cast("HRR", mechanism.member(0)).keep)
    everybody = float(tally.n if respondents is None else respondents)
    theta = (plus - minus) / np.where(n > 0, n, 1.0) / keep
    scale = np.where(n > 0, 1 / np.where(n > 0, n, 1.0), np.inf)
    source = FromSigns(known, theta, 1 / keep**2 - 1, scale, everybody)
    return Marginals(family.sizes, source, tally.n, everybody, tuple(range(len(family.sizes))))


def _is_plain(mechanism: OneOf, family: Views) -> bool:
    members = [mechanism.member(i) for i in range(len(family))]
    return set(family.sizes) == {2} and all(isinstance(member, HRR) and member.skip_zero for member in members)


def _budget(family: Views) -> Any:
    return cast("Any", family.mechanisms[0]).epsilon


def _by_row(tally: Any) -> I64:
    """Reports of every row of a view's matrix: plus signs, minus signs."""
    if tally.is_weighted:
        raise InvalidSpec("marginals: weighted reports are not pooled; use solve_marginals")
    return tally.cells.reshape(-1, 2)


def _ranks(known: Coefficients, view: Attributes) -> list[int]:
    """The coefficients of rows 1, 2, ...: the first attribute is the most significant bit of a row."""
    width = len(view)
    return [
        known.rank(tuple((a, 1) for place, a in enumerate(view) if row >> (width - 1 - place) & 1))
        for row in range(1, 1 << width)
    ]
