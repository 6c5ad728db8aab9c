from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from rocmend.cli.main import command_modules
from rocmend.core.errors import UsageError
from rocmend.core.optional import INSTALL, NEEDS, need


def test_what_commands_need_can_be_installed_as_it_is_said() -> None:
    assert set(NEEDS) <= set(command_modules())
    assert {package for needs in NEEDS.values() for package in needs.packages} <= set(INSTALL)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = {extra for text in INSTALL.values() for extra in re.findall(r"rocmend\[(\w+)]", text)}
    assert extras
    assert extras <= set(project["optional-dependencies"])


@pytest.mark.parametrize("command", sorted(NEEDS))
def test_a_package_that_is_not_there_is_one_sentence_with_how_to_install_it(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    first = NEEDS[command].packages[0]
    with pytest.raises(UsageError, match=f"needs {first}, which is not installed") as raised:
        need(command)
    assert raised.value.next_step == INSTALL[first]
