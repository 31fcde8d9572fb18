"""The option `--post`, which several commands take."""

import click


def _method(context: click.Context, parameter: click.Parameter, name: str | None) -> str | None:
    """Check a name against the registry of methods, which is imported only if the option is used."""
    if name is None:
        return None
    from tacit.errors import InvalidSpec
    from tacit.post.frequencies.methods import find_method

    try:
        return find_method(name).name
    except InvalidSpec as error:
        raise click.BadParameter(str(error), context, parameter) from None


POST = click.option(
    "--post", callback=_method, metavar="NAME", help="Post-process as well; `tacit post list` names the methods."
)
"""The option of every command that can show post-processed values beside raw ones."""
