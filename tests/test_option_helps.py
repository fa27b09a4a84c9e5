"""Helps of options and arguments: a noun phrase with its default, for every command and every parser of argparse."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner

import synthlang_bench.pretrain
import synthlang_bench.probes
import synthlang_bench.synthlang
from pretrain import train
from pretrain.adjust import __main__ as adjust
from probes.cli import app
from probes.reference import commands
from synthlang.errors import InputError

OPENINGS = re.compile(r"(Of|The same|The|A|An|Its|Those|They|It|What|Which|Whether|How|Where|Also|As|Say|Show|Give)\b")
"""No help begins with a pronoun, an article, a preposition, a clause or a verb."""
PROGRAMS: list[Callable[[], object]] = [
    train.main,
    adjust.main,
    synthlang_bench.pretrain.main,
    synthlang_bench.probes.main,
    synthlang_bench.synthlang.main,
]
"""Every program that reads its arguments by argparse."""


class _ReadError(Exception):
    """Raised in place of reading the arguments."""


def parser_of(program: Callable[[], object]) -> argparse.ArgumentParser:
    """Return the parser that a program makes."""
    made: list[argparse.ArgumentParser] = []

    def parse_args(parser: argparse.ArgumentParser, *_: object) -> None:
        made.append(parser)
        raise _ReadError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_args)
        with pytest.raises(_ReadError):
            program()
    return made[0]


def helps() -> Iterator[tuple[str, str, bool]]:
    """Yield every option and argument: its name, its help, and whether its help has to name the default."""
    for command, one in commands():
        for parameter in one.params:
            if parameter.name in ("help", "install_completion", "show_completion"):
                continue  # the texts of these are typer's
            optional = parameter.default is None and not parameter.required
            yield f"{command} {parameter.opts[0]}", parameter.help or "", optional and not parameter.hidden
    for parser in map(parser_of, PROGRAMS):
        for action in parser._actions:
            if not isinstance(action, argparse._HelpAction):
                optional = bool(action.option_strings) and action.nargs != 0 and not action.required
                repeatable = isinstance(action.default, list) and not action.default
                yield f"{parser.prog} {action.dest}", action.help or "", optional and not repeatable


def fault(text: str, is_optional: bool) -> str:
    """Return what is wrong with a help."""
    if OPENINGS.match(text):
        return "does not begin with the noun"
    if not text or not text[0].isupper() or not text.endswith("."):
        return "is not written as a sentence"
    if is_optional and "(default" not in text:
        return "does not name the default"
    return "is a chain of clauses" if ";" in text and "repeatable)" not in text else ""


def test_every_help_is_a_noun_phrase_with_its_default():
    found = list(helps())
    assert len(found) > 150
    assert [(name, text, wrong) for name, text, optional in found if (wrong := fault(text, optional))] == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Of the intervals.", "does not begin with the noun"),
        ("The same for the text of --also.", "does not begin with the noun"),
        ("", "is not written as a sentence"),
        ("Confidence level of the intervals.", "does not name the default"),
        ("Confidence level of the intervals (default: 0.95).", ""),
    ],
)
def test_a_bad_help_is_seen(text, wrong):
    assert fault(text, True) == wrong


def test_every_value_of_an_option_has_a_placeholder_or_is_a_listed_choice():
    options = [one for _, command in commands() for one in command.params if one.param_type_name == "option"]
    values = [one for one in options if not one.is_flag]
    assert {one.metavar for one in values} >= {"N", "X", "TEXT", "PATH", "NAME", "KEY=VALUE"}
    choices = {"engine", "tokens", "by", "order", "labels", "corpus_labels"}
    assert {one.name for one in values if one.metavar is None} == choices


def test_the_help_of_a_command_begins_with_a_verb_and_is_whole_sentences():
    first = {name: (command.help or "").split("\n\n")[0] for name, command in commands()}
    assert [name for name, text in first.items() if not re.fullmatch(r"[A-Z][a-z-]+ .*\.", text, re.DOTALL)] == []


def test_a_former_name_of_an_option_works_with_a_warning(tmp_path):
    words = ["findings", str(tmp_path / "archive"), "--keep", str(tmp_path / "none")]
    done = CliRunner().invoke(app, words)
    assert done.stderr == "warning: --keep is now --archive; the old name will be removed in the next release\n"
    assert isinstance(done.exception, InputError) and done.exception.path == tmp_path / "none"
