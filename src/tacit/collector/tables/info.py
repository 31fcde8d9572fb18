"""What analysts see of a collection with rows: a table with its columns. Nothing here needs the engine of SQL."""

from dataclasses import dataclass, field, replace

DATABASE = "tacit"
"""The database that has all tables; any other is the id of a collection, or its beginning."""

_SHORT = 8
"""Digits of a collection's id that tell tables of one name apart."""


@dataclass(frozen=True)
class ColumnInfo:
    """A column of a table: a public one, or the domain of a private one."""

    name: str
    type: str
    """integer, number, text, boolean or date."""
    private: bool
    domain: str = ""
    """What a private column may hold, in words."""
    labels: tuple[str, ...] = ()
    """The values of a private column that has labels, or the first thousand of them."""
    low: int = 0
    """The least value of a private column that holds whole numbers."""
    high: int = 0
    ordered: bool = False
    """Whether the values of a private column have an order, in which groups come."""

    @property
    def is_in_order(self) -> bool:
        """Whether neighbouring groups belong together: private values in an order, public numbers and dates."""
        return self.ordered if self.private else self.type in ("integer", "number", "date")


@dataclass(frozen=True)
class TableInfo:
    """A collection as a table."""

    collection: str
    name: str
    """What it is called in FROM; equal names are told apart, and the newest keeps the plain one."""
    columns: tuple[ColumnInfo, ...]
    n: int
    """Reports that are stored, each with its row."""
    minimum_cohort: int = 1
    title: dict[str, str] = field(default_factory=dict[str, str])
    damaged: bool = False
    """Whether what is stored is not as it was written; nothing is answered then, and n is 0."""

    def called(self, name: str) -> "TableInfo":
        """The same table under its longer name, if that is what a query calls it; else as it is."""
        longer = longer_name(self.name, self.collection)
        return replace(self, name=longer) if name.lower() == longer.lower() else self


def longer_name(name: str, collection: str) -> str:
    """The name of a table whose plain name belongs to a newer one."""
    return f"{name}_{collection[:_SHORT]}"
