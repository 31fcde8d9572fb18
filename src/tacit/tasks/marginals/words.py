"""Sentences for the dashboard and the command line that say what a table or a test means, and how far to trust it.

Readers need no statistics: p-values become "x of 1000 collections", statuses become what was asked of whom.
"""

from collections.abc import Sequence

from tacit.tasks.marginals.association import Verdict
from tacit.tasks.marginals.marginals import Table

_MANY = 3
"""The most missing combinations that a sentence lists by name."""


def spoken(names: Sequence[str]) -> str:
    """Names of questions as words: "age group, sport and smoking".

    >>> spoken(["age_group", "sport", "smoking"])
    'age group, sport and smoking'
    """
    words = [name.replace("_", " ") for name in names]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def sentence(text: str) -> str:
    """Return the text with a capital at the beginning."""
    return text[:1].upper() + text[1:]


def chance(p: float) -> str:
    """Return a p-value as a frequency: in how many of 100 or 1000 such collections chance alone would do this.

    >>> chance(0.0002), chance(0.004), chance(0.31)
    ('fewer than 1 of 1000 collections', 'about 4 of 1000 collections', 'about 31 of 100 collections')
    """
    if p < 0.001:
        return "fewer than 1 of 1000 collections"
    return f"about {round(1000 * p)} of 1000 collections" if p < 0.01 else f"about {round(100 * p)} of 100 collections"


def table_words(names: Sequence[str], missing: Sequence[Sequence[str]], table: Table) -> str:
    """Say how far a table can be trusted: measured, completed, or without any report."""
    if table.status == "no_data":
        return "There are no reports yet."
    # From worst to best: the first status that applies decides what is said.
    if table.status == "unseen":
        unknown = [names_of_one[0] for names_of_one in missing if len(names_of_one) == 1]
        return f"No report says anything about {spoken(unknown)}; its shares here are not measured."
    if table.status == "independent":
        first = f"Nobody was asked about {spoken(names)} together."
        second = "They are taken for independent; the intervals are what the shares of each allow."
    elif table.status == "reconstructed":
        parts = "; ".join(spoken(part) for part in missing[:_MANY]) + ("; and more" if len(missing) > _MANY else "")
        first = f"Nobody was asked about these together: {parts}."
        second = "The table is completed as if there were nothing more between them; intervals allow for more."
    elif len(names) == 1:
        first, second = f"The shares of {spoken(names)} come with intervals for the noise.", ""
    else:
        first = f"{sentence(spoken(names))} were asked together."
        second = "Every share comes with an interval for the noise."
    agreed = "" if table.agrees else "Its margins contradict each other; the consistent table is a compromise."
    return " ".join(part for part in (first, second, agreed) if part)


def association_words(names: Sequence[str], verdict: Verdict, level: float) -> str:
    """Say whether two questions depend on each other, and how surely."""
    both = sentence(spoken(names))
    alone, often = "if they were independent, noise and sampling alone would look", chance(verdict.p_value)
    if verdict.rejects(1 - level):
        said = f"{both} go together: {alone} like this in {often}."
    else:
        said = f"Nothing shows that {spoken(names)} go together: {alone} as connected as this in {often}."
        said += " A weak connection could hide in the noise."
    return said if verdict.reliable else f"{said} Some answers are so rare that this test is only a hint."


def unknown_words(names: Sequence[str], table: Table) -> str:
    """Say why there is no verdict about two questions."""
    if table.status in ("no_data", "unseen"):
        return table_words(names, [[name] for name in names], table)
    return (
        f"Nobody was asked about {spoken(names)} together, so nothing can be said about their connection; "
        "plan the next collection for tables of two."
    )


NAIVE_WORDS = (
    "The textbook chi-square test takes the shares for exact counts. It ignores the noise, so that it calls most "
    "independent pairs dependent; it is here for comparison only."
)


def pairs_words(tested: int, dependent: int, unknown: int) -> str:
    """Say how many of all pairs are dependent, after the correction for multiple tests."""
    first = f"{dependent} of {tested} pairs go together, counting that {tested} tests were made at once."
    return first if not unknown else f"{first} {unknown} pairs were never asked together, so nothing is known of them."


def tree_words(edges: int, linked: int, unknown: int) -> str:
    """Say how to read a Chow-Liu tree, and how many of its edges could be noise."""
    first = "Lines join the questions that tell the most about each other, so that every question is in the tree."
    second = f"{edges - linked} of {edges} lines could be noise alone." if linked < edges else ""
    third = f"{unknown} pairs were never asked together and count as unconnected." if unknown else ""
    return " ".join(part for part in (first, second, third) if part)
