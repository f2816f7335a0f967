"""The tree of errors: what catches what, what each is besides, and what its messages say."""

from __future__ import annotations

import pytest

import vicinal
from vicinal import errors

BESIDES = {
    "DivergedError": ArithmeticError,
    "FileError": ValueError,
    "InputError": ValueError,
    "MissingDataError": FileNotFoundError,
    "MissingExtraError": ImportError,
    "ShapeError": errors.InputError,
    "WriteError": OSError,
}


def test_the_table_holds_every_error():
    found = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert found == {*BESIDES, "VicinalError"}
    assert set(errors.__all__) == found | {"require"}


@pytest.mark.parametrize("name", BESIDES)
def test_each_error_is_vicinals_and_of_a_built_in_kind(name):
    with pytest.raises(vicinal.VicinalError, match=r"^said$") as caught:
        raise getattr(errors, name)("said")
    assert isinstance(caught.value, BESIDES[name])
    assert name in errors.__doc__


def test_the_docstring_draws_the_tree_as_it_is():
    for line in errors.__doc__.splitlines():
        if "── " in line:
            name = line.split("── ")[1].split()[0]
            under_input = line.startswith("    │")
            assert getattr(errors, name).__bases__[0] is (errors.InputError if under_input else errors.VicinalError)


def test_a_missing_extra_names_the_command_that_installs_it():
    said = r"^a plot needs no_such_module; install it with: pip install 'vicinal\[plots\]'$"
    with pytest.raises(errors.MissingExtraError, match=said) as caught:
        errors.require("no_such_module.deep", "plots", "a plot")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_what_is_installed_is_imported():
    import json.decoder

    assert errors.require("json.decoder", "plots", "a plot") is json.decoder


def test_a_broken_extra_is_not_taken_for_a_missing_argument(tmp_path, monkeypatch):
    (tmp_path / "broken_extra.py").write_text("raise RuntimeError('its own fault')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(RuntimeError, match="its own fault"):
        errors.require("broken_extra", "plots", "a plot")
