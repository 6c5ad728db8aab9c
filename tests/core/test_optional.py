from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rocmend.cli.main import command_modules
from rocmend.core.errors import UsageError
from rocmend.core.optional import INSTALL, NEEDS, _source, how_to_install, need, pip_install


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
    assert raised.value.next_step == how_to_install(first)


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "my checkout"
    folder.mkdir()
    _source.cache_clear()
    yield folder
    _source.cache_clear()


@pytest.mark.parametrize(
    ("direct_url", "expected"),
    [
        ({"url": "{file}", "dir_info": {}}, "pip install '{path}[compile]'"),
        ({"url": "{file}", "dir_info": {"editable": True}}, "pip install -e '{path}[compile]'"),
        ({"url": "{file}/gone", "dir_info": {}}, "pip install '.[compile]'"),
        (
            {"url": "https://example.org/r.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'rocmend[compile] @ git+https://example.org/r.git@abc'",
        ),
        (None, "pip install 'rocmend[compile]'"),
    ],
)
def test_an_extra_is_installed_from_where_rocmend_is_from(
    direct_url: dict[str, Any] | None, expected: str, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index has no rocmend for who installed it from a checkout."""
    info = tmp_path / "site" / "rocmend-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rocmend\nVersion: 0.1.0\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url).replace("{file}", checkout.as_uri()))
    monkeypatch.syspath_prepend(info.parent)
    expected = expected.replace("{path}", str(checkout))
    assert pip_install("compile") == expected
    assert how_to_install("clang") == expected
    monkeypatch.chdir(checkout)
    assert pip_install("compile") == expected.replace(str(checkout), ".")
