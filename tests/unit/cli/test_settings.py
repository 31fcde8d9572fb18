"""Every option of every server is also a variable, or the file of one, and means the same either way."""

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tacit.cli import cli
from tacit.cli.options.settings import Setting, mistyped, read_variable, variable_of

ROOT = Path(__file__).resolve().parents[3]
MAKER = runpy.run_path(str(ROOT / "tools" / "make_settings.py"))
SERVERS, PAGE, page_text = MAKER["SERVERS"], MAKER["PAGE"], MAKER["page_text"]


command = MAKER["command"]


def options() -> Iterator[Any]:
    for words in SERVERS:
        for option in command(words).params:
            if isinstance(option, click.Option):
                yield pytest.param(words, option, id=f"{words} {option.opts[0]}")


def example(option: click.Option) -> str:
    """A value that an option takes and that is not its default."""
    if option.is_flag:
        return "true"
    if isinstance(option.type, click.Choice):
        return str(option.type.choices[-1])
    if isinstance(option.type, click.IntRange | click.FloatRange):
        return str(int(option.type.min or 0) + 1)
    return "some-value"


def parsed(words: str, option: click.Option, *given: str) -> tuple[Any, Any]:
    """What a command makes of its option, and where it found it."""
    # Other options of a command may be required, and are not looked at here.
    context = click.Context(command(words))
    parser = command(words).make_parser(context)
    values, _, _ = parser.parse_args(list(given))
    value, _ = option.handle_parse_result(context, values, [])
    return value, context.get_parameter_source(str(option.name))


@pytest.mark.parametrize(("words", "option"), list(options()))
def test_a_variable_and_its_file_mean_what_the_option_means(
    words: str, option: click.Option, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert isinstance(option, Setting), "declare it with `setting` in the place of `click.option`"
    flag, name, value = option.opts[0], variable_of(option.opts[0]), example(option)
    typed, _ = parsed(words, option, *([flag] if option.is_flag else [flag, value]))
    monkeypatch.setenv(name, value)
    assert parsed(words, option)[0] == typed
    monkeypatch.delenv(name)
    (tmp_path / "value").write_text(f"{value}\n")
    monkeypatch.setenv(f"{name}_FILE", str(tmp_path / "value"))
    assert parsed(words, option)[0] == typed != option.get_default(click.Context(command(words)))


def test_what_is_typed_wins_and_several_values_are_separated_by_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    by_flag = {option.opts[0]: option for option in command("relay serve").params}
    monkeypatch.setenv("TACIT_PORT", "9000")
    monkeypatch.setenv("TACIT_TO", "http://a.example http://b.example")
    assert parsed("relay serve", by_flag["--port"], "--port", "9001")[0] == 9001
    assert parsed("relay serve", by_flag["--to"])[0] == ("http://a.example", "http://b.example")


def test_a_variable_and_its_file_may_not_both_be_set_and_a_file_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "value").write_text(" secret\n")
    assert read_variable("TACIT_X", {"TACIT_X_FILE": str(tmp_path / "value")}) == "secret"
    assert read_variable("TACIT_X", {"TACIT_X": " y "}) == "y" and read_variable("TACIT_X", {}) == ""
    with pytest.raises(click.UsageError, match="both set"):
        read_variable("TACIT_X", {"TACIT_X": "y", "TACIT_X_FILE": str(tmp_path / "value")})
    with pytest.raises(click.UsageError, match="cannot be read as text"):
        read_variable("TACIT_X", {"TACIT_X_FILE": str(tmp_path)})


def test_a_wrong_value_of_a_variable_is_refused_in_one_line_that_names_the_option() -> None:
    done = CliRunner().invoke(cli, ["serve", "--data", "x"], env={"TACIT_PORT": "99999"})
    assert done.exit_code == 2 and "--port" in done.output and "99999" in done.output


def test_the_table_of_variables_is_the_present_one() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page_text(), "run tools/make_settings.py"


def test_a_variable_that_looks_like_a_setting_is_named_and_others_are_left_alone() -> None:
    known = {"TACIT_PORT", "TACIT_DATABASE", "TACIT_METRICS_TOKEN"}
    environment = {"TACIT_METRIC_TOKEN": "x", "TACIT_PORT_FILE": "x", "TACIT_DATA": "x", "TACIT_SOMETHING": "x"}
    assert list(mistyped(known, environment)) == [("TACIT_METRIC_TOKEN", "TACIT_METRICS_TOKEN")]
    told = CliRunner().invoke(cli, ["serve"], env={"TACIT_TRUSTED_PROXY": "127.0.0.1"})
    assert "TACIT_TRUSTED_PROXY is no setting and was not read; did you mean TACIT_TRUSTED_PROXIES?" in told.output
