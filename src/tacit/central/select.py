"""Choice of a count mechanism: by name, by wanted properties, and what can be derived from GM. Not local."""

from collections.abc import Callable, Iterable
from fractions import Fraction

from tacit.central.count import Alpha, CountMechanism, as_alpha, check_n
from tacit.central.design import design
from tacit.central.mechanisms import em, exp, gm, lap, rr, um
from tacit.central.objectives import Objective
from tacit.central.properties import as_properties
from tacit.errors import InvalidSpec

Make = Callable[[int, Alpha], CountMechanism]

CLOSED: dict[str, Make] = {"rr": rr, "gm": gm, "em": em, "um": um, "exp": exp, "lap": lap}
"""Mechanisms in closed form, by name."""

PROGRAMS: dict[str, tuple[str, ...]] = {
    "wm-wh": ("weak-honesty", "row-monotonicity", "symmetry"),
    "wm-cm": ("weak-honesty", "row-monotonicity", "column-monotonicity", "symmetry"),
    "ucm": (),
    "wm": ("weak-honesty",),
    "fm": ("fairness",),
    "am": ("all",),
}
"""Mechanisms by linear program, and their properties. The literature calls both of the first two WM, under L0; the
others are compared under L1 and L2 (Kulkarni, dissertation, sections 6.6.3, 6.7 and 6.7.4)."""

NAMES = (*CLOSED, *PROGRAMS)


def make(name: str, n: int, alpha: Alpha, objective: Objective | str = "l0") -> CountMechanism:
    """Return a mechanism by its name; the objective matters for linear programs alone.

    >>> make("gm", 4, "0.5").name
    'gm'
    """
    if name in CLOSED:
        return CLOSED[name](n, alpha)
    if name in PROGRAMS:
        return design(n, alpha, objective, PROGRAMS[name], name=name)
    raise InvalidSpec(f"count mechanism {name[:40]!r} does not exist, must be one of {', '.join(NAMES)}")


def select(n: int, alpha: Alpha, properties: Iterable[str] = ()) -> tuple[CountMechanism, str]:
    """Return the mechanism of least L0 with the properties, and why: 128 sets of properties have four answers.

    Kulkarni, dissertation, section 6.6.3 and Figure 6.4.

    >>> select(8, "0.5", ["column-monotonicity"])[0].name
    'gm'
    """
    n, exact, wanted = check_n(n), as_alpha(alpha), as_properties(properties)
    if n == 1:
        return rr(1, exact), "randomised response is the only choice for one person, and has every property"
    if "fairness" in wanted:
        return em(n, exact), "fairness was asked for, and em has the least L0 of all fair mechanisms"
    if wanted & {"column-honesty", "column-monotonicity"}:
        if exact <= Fraction(1, 2):
            return gm(n, exact), "alpha is at most 1/2, so that gm has column properties"
        return make("wm-cm", n, exact), "gm lacks column properties above alpha = 1/2, so a linear program is solved"
    if "weak-honesty" in wanted and n < weakly_honest_from(exact):
        return make("wm-wh", n, exact), "gm is not weakly honest below n = 2 alpha/(1 - alpha); a program is solved"
    return gm(n, exact), "gm has these properties, and the least L0 of all"


def weakly_honest_from(alpha: Alpha) -> Fraction:
    """Return 2 alpha/(1 - alpha), the size of a group from which GM is weakly honest.

    >>> [float(weakly_honest_from(a)) for a in ("2/3", "10/11", "0.99")]
    [4.0, 20.0, 198.0]
    """
    exact = as_alpha(alpha)
    return 2 * exact / (1 - exact)


def derivable_from_gm(mechanism: CountMechanism) -> bool:
    """Return whether the mechanism is GM followed by post-processing, in exact arithmetic.

    Gupte and Sundararajan, PODS 2010: P[i][j] (1 + alpha^2) >= alpha (P[i][j-1] + P[i][j+1]) for inner columns.
    """
    return gm_shortfall(mechanism) <= 0


def gm_shortfall(mechanism: CountMechanism) -> Fraction:
    """Return by how much the rule of `derivable_from_gm` is violated at worst; zero or less if it holds."""
    a, columns = mechanism.alpha, mechanism.columns
    # Second differences along the rows, over all inner columns and outputs.
    worst = (
        a * (before + after) - here * (1 + a * a)
        for left, middle, right in zip(columns, columns[1:], columns[2:], strict=False)
        for before, here, after in zip(left, middle, right, strict=True)
    )
    return max(worst, default=Fraction(0))
