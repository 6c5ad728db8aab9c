"""Finding the environment that the user works in."""

from __future__ import annotations

import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmend.machine.root import DeniedError
from rocmend.machine.software.python_env import active_environment, distributions, first_by_name

MakeRoot = Callable[..., Any]

VENV = {
    "/home/u/ml/pyvenv.cfg": "home = /usr/bin\nversion = 3.12.3\ninclude-system-site-packages = false\n",
    "/home/u/ml/lib/python3.12/site-packages/torch-2.9.1+rocm6.4.dist-info/METADATA": "Name: torch\n",
    "/usr/bin/python3.12": "",
    "/usr/lib/python3/dist-packages/numpy-1.26.4.egg-info/PKG-INFO": "",
}
LINKS = {
    "/home/u/ml/bin/python3": "/usr/bin/python3",
    "/usr/bin/python3": "python3.12",
    "/home/u/ml/lib64": "lib",
}


def test_virtual_env_comes_first(fake_root: MakeRoot) -> None:
    root = fake_root(VENV, links=LINKS, env={"VIRTUAL_ENV": "/home/u/ml", "PATH": "/usr/bin", "HOME": "/home/u"})
    found = active_environment(root)
    assert found is not None
    assert (found.prefix, found.kind, found.version, found.found_by) == ("/home/u/ml", "venv", "3.12.3", "VIRTUAL_ENV")
    assert found.executable == "/home/u/ml/bin/python3"
    assert found.site_packages == ("/home/u/ml/lib/python3.12/site-packages",)
    assert [(item.name, item.version) for item in distributions(root, found)] == [("torch", "2.9.1+rocm6.4")]


def test_a_venv_whose_folder_is_gone_is_passed_over(fake_root: MakeRoot) -> None:
    root = fake_root(VENV, links=LINKS, env={"VIRTUAL_ENV": "/gone", "PATH": "/usr/bin"})
    found = active_environment(root)
    assert found is not None
    assert (found.prefix, found.kind, found.version) == ("/usr", "system", "3.12")
    assert found.executable == "/usr/bin/python3.12"
    assert found.site_packages == ("/usr/lib/python3/dist-packages",)


def test_interpreter_of_a_venv_on_path(fake_root: MakeRoot) -> None:
    root = fake_root(VENV, links=LINKS, env={"PATH": "/sbin:/home/u/ml/bin:/usr/bin"})
    found = active_environment(root)
    assert found is not None
    assert (found.prefix, found.kind, found.found_by) == ("/home/u/ml", "venv", "python3 on PATH")


def test_system_site_packages_and_user_site(fake_root: MakeRoot) -> None:
    files = VENV | {
        "/home/u/ml/pyvenv.cfg": "home = /usr/bin\nversion = 3.12.3\ninclude-system-site-packages = true\n",
        "/home/u/.local/lib/python3.12/site-packages/torch-2.13.0.dist-info/METADATA": "",
        "/usr/local/lib/python3.12/dist-packages/triton-3.5.1.dist-info/METADATA": "",
    }
    env = {"VIRTUAL_ENV": "/home/u/ml", "HOME": "/home/u"}
    found = active_environment(fake_root(files, links=LINKS, env=env))
    assert found is not None
    assert found.site_packages == (
        "/home/u/ml/lib/python3.12/site-packages",
        "/home/u/.local/lib/python3.12/site-packages",
        "/usr/local/lib/python3.12/dist-packages",
        "/usr/lib/python3/dist-packages",
    )
    without = active_environment(fake_root(files, links=LINKS, env=env | {"PYTHONNOUSERSITE": "1"}))
    assert without is not None
    assert "/home/u/.local/lib/python3.12/site-packages" not in without.site_packages


def test_the_first_of_two_torches_is_the_one_imported(fake_root: MakeRoot) -> None:
    files = VENV | {"/extra/torch-2.13.0.dist-info/METADATA": ""}
    root = fake_root(files, links=LINKS, env={"VIRTUAL_ENV": "/home/u/ml", "PYTHONPATH": "relative:/extra"})
    found = distributions(root, active_environment(root))
    assert [item.version for item in found if item.name == "torch"] == ["2.13.0", "2.9.1+rocm6.4"]
    assert first_by_name(found)["torch"].version == "2.13.0"


def test_conda(fake_root: MakeRoot) -> None:
    files = {
        "/opt/conda/envs/ml/conda-meta/python-3.11.9-h955ad1f_0.json": "{}",
        "/opt/conda/envs/ml/bin/python3.11": "",
        "/opt/conda/envs/ml/lib/python3.11/site-packages/torch-2.5.1.dist-info/METADATA": "",
    }
    links = {"/opt/conda/envs/ml/bin/python3": "python3.11"}
    found = active_environment(fake_root(files, links=links, env={"CONDA_PREFIX": "/opt/conda/envs/ml"}))
    assert found is not None
    assert (found.kind, found.version) == ("conda", "3.11.9")
    assert found.site_packages == ("/opt/conda/envs/ml/lib/python3.11/site-packages",)


def test_a_pyenv_shim_leads_to_its_version(fake_root: MakeRoot) -> None:
    files = {
        "/r/.pyenv/shims/python3": "#!/bin/sh",
        "/r/.pyenv/version": "3.11.7\n",
        "/r/.pyenv/versions/3.11.7/bin/python3": "",
        "/r/.pyenv/versions/3.11.7/lib/python3.11/site-packages/jax-0.8.0.dist-info/METADATA": "",
    }
    found = active_environment(fake_root(files, env={"PATH": "/r/.pyenv/shims"}))
    assert found is not None
    assert found.prefix == "/r/.pyenv/versions/3.11.7"
    assert found.site_packages == ("/r/.pyenv/versions/3.11.7/lib/python3.11/site-packages",)


def test_no_python_at_all(fake_root: MakeRoot) -> None:
    root = fake_root({"/etc/os-release": ""}, env={"PATH": "/usr/bin"})
    assert active_environment(root) is None
    assert distributions(root, None) == []


def test_a_link_loop_ends(fake_root: MakeRoot) -> None:
    root = fake_root({"/a/x": ""}, links={"/b/python3": "/b/python"}, env={"PATH": "/b"})
    root.links["/b/python"] = "/b/python3"
    root.exists = lambda path: path == "/b/python3"
    root.stat = lambda path: None  # noqa: ARG005  a path in a loop resolves to nothing
    root.list_dir = lambda path: []  # noqa: ARG005
    root.read_bytes = lambda path, **_: (_ for _ in ()).throw(DeniedError(path, "loop"))
    found = active_environment(root)
    assert found is not None
    assert found.site_packages == ()


def test_packages_that_cannot_be_listed_are_an_error(fake_root: MakeRoot) -> None:
    folder = "/home/u/ml/lib/python3.12/site-packages"
    root = fake_root(VENV, links=LINKS, env={"VIRTUAL_ENV": "/home/u/ml"}, denied=[folder])
    with pytest.raises(DeniedError, match="may not be listed"):
        distributions(root, active_environment(root))


def test_on_this_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    live = pytest.importorskip("rocmend.machine.live").LiveRoot()
    prefix = tmp_path / "venv"
    venv.create(prefix)
    (packages,) = prefix.glob("lib/python3*/site-packages")
    (packages / "msgspec-0.19.0.dist-info").mkdir()
    (packages / "msgspec-0.19.0.dist-info" / "METADATA").write_text("Name: msgspec\nVersion: 0.19.0\n")
    monkeypatch.setenv("VIRTUAL_ENV", str(prefix))
    found = active_environment(live)
    assert found is not None
    assert found.kind == "venv"
    assert "msgspec" in first_by_name(distributions(live, found))
