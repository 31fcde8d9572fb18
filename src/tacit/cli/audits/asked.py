"""Which mechanism an audit is about: kind, size and epsilon, or a question of a published document."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click


def mechanism_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a mechanism."""
    for option in reversed(
        (
            click.option("--kind", help="Mechanism, such as grr."),
            click.option("--size", type=int, help="Number of values in the domain."),
            click.option("--epsilon", help="Privacy budget that is claimed, as decimal text."),
            click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any other field of the spec."),
            click.option(
                "--document",
                type=click.Path(exists=True, dir_okay=False),
                help="A collection document instead of kind, size and epsilon.",
            ),
            click.option("--question", help="Which question of the document; its mechanism alone is audited."),
        )
    ):
        command = option(command)
    return command


@dataclass(frozen=True)
class AuditRequest:
    """The options that name a mechanism, as they were given."""

    kind: str | None
    size: int | None
    epsilon: str | None
    settings: tuple[str, ...]
    document: str | None
    question: str | None

    def mechanism(self) -> Any:
        """The mechanism built from the options of the command."""
        from tacit.cli.reports import make_mechanism

        if self.document is not None:
            if self.kind or self.size or self.epsilon or self.settings:
                raise click.UsageError("--document takes the place of --kind, --size, --epsilon and --set")
            return self._of_document(Path(self.document))
        if self.question is not None:
            raise click.UsageError("--question names a question of --document")
        if not self.kind or not self.epsilon:
            raise click.UsageError("name the mechanism: --kind and --epsilon, or --document")
        return make_mechanism(self.kind, self.size, self.epsilon, self.settings)

    def questions(self) -> dict[str, Any]:
        """The mechanism of every question of the document by name; empty where one mechanism is meant."""
        from tacit.catalog import parse
        from tacit.wire.document import Collection

        if self.document is None or self.question is not None:
            return {}
        collection = Collection.from_text(Path(self.document).read_bytes())
        if len(collection.members) < 2:
            return {}
        names = [question.name for question in collection.questions]
        return {name: parse(member.spec()) for name, member in zip(names, collection.members, strict=True)}

    def _of_document(self, path: Path) -> Any:
        from tacit.catalog import parse
        from tacit.errors import InvalidSpec
        from tacit.wire.document import Collection

        collection = Collection.from_text(path.read_bytes())
        names = [question.name for question in collection.questions]
        if self.question is None and len(collection.members) > 1:
            raise InvalidSpec(f"document: it has {len(names)} questions; name one with --question: {', '.join(names)}")
        if self.question is not None and self.question not in names:
            raise InvalidSpec(f"document: there is no question {self.question[:40]}, only {', '.join(names)}")
        # Questions that are asked together have one mechanism for all of them.
        at = names.index(self.question) if self.question is not None and len(collection.members) > 1 else 0
        return parse(collection.members[at].spec())
