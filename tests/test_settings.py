"""The settings of a training are said once, and are the same in Python and on the command line."""

import inspect
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

import pytest
import typer
from typer.main import get_command

import proxlearn as px
from proxlearn.cli import train
from proxlearn.cli.main import app
from proxlearn.training.settings import Training, setting

BESIDES = ["out", "resume", "device", "progress", "watch"]  # of learn, and no settings


def options(command: Any) -> dict[str, Any]:
    """The options of a command, by what is typed."""
    return {name: each for each in command.params for name in each.opts if name.startswith("--")}


def test_the_keywords_of_learn_are_the_settings():
    signature = inspect.signature(px.learn)
    keywords = list(signature.parameters.values())[1:]
    assert [each.name for each in keywords] == [each.name for each in fields(Training)] + BESIDES
    assert all(each.kind is each.KEYWORD_ONLY for each in keywords)
    types = get_type_hints(Training)
    for each in fields(Training):
        keyword = signature.parameters[each.name]
        assert keyword.default == each.default, each.name
        assert keyword.annotation == types[each.name], each.name


def test_learn_explains_every_keyword():
    said = " ".join((px.learn.__doc__ or "").split())
    for each in fields(Training):
        assert f" {each.name}: {each.metadata['help']} " in said
    assert all(f" {name}: " in said for name in BESIDES)


def test_an_unknown_keyword_of_learn_is_said_with_those_there_are(wells: px.Problem):
    with pytest.raises(px.UnknownNameError, match=r"'verbose'.* out, .*progress, .*steps, watch"):
        px.learn(wells, steps=1, verbose=False)  # pyright: ignore
    with pytest.raises(px.UnknownNameError, match=r"'progres'. Did you mean 'progress'"):
        px.learn(problem=wells, steps=1, progres=False)  # pyright: ignore


def test_the_options_of_train_are_the_settings():
    found = options(get_command(app).commands["train"])  # pyright: ignore
    for each in fields(Training):
        option = found[f"--{each.name.replace('_', '-')}"]
        assert option.help == each.metadata["help"]
        assert option.default == each.default
    assert found["--preset"] is found["--architecture"]


def test_a_new_setting_is_an_option():
    @dataclass(frozen=True)
    class More(Training):
        warm_up: int = setting(7, "steps before the rate is full")

    given = {}

    @train.options_from(More)
    def command(name: str, **settings: Any) -> None:
        given.update(settings)

    small = typer.Typer()
    small.command()(command)
    option = options(get_command(small))["--warm-up"]
    assert option.default == 7
    assert option.help == "steps before the rate is full"
    small(["x", "--warm-up", "3", "--lam", "0.1,10"], standalone_mode=False)
    assert given == vars(More(warm_up=3)) | {"lam": "0.1,10"}
