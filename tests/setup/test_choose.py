from __future__ import annotations

import datetime as dt
from pathlib import Path

import msgspec
import pytest

from rocmend.core.errors import UsageError
from rocmend.core.records import Source
from rocmend.kb.entry import Caution, Entry, Install, Kind, Status
from rocmend.kb.indexes import Index
from rocmend.setup.choose import choose, gpu_targets
from rocmend.setup.tarball import with_rocm_path

from .conftest import make_entry, make_knowledge, make_machine

STRIX = {"gpu__0__gfx_target": "gfx1151", "gpus__count": 1}


def _entry(entry_id: str, *installs: Install, status: Status = Status.ACTIVE) -> Entry:
    return make_entry(entry_id, kind=Kind.INSTALL_SOURCE, status=status, install=installs)


def test_ways_are_ranked_and_those_that_do_not_serve_come_last_with_the_reason() -> None:
    knowledge = make_knowledge(
        _entry("stable", Install("torch", "pip install torch[device-{gfx}]", gfx=("gfx11-generic",), rank=10, why="w")),
        _entry("nightly", Install("torch", "pip install {family}", gfx=("gfx1151",), rank=20, channel="nightly")),
        _entry("vega", Install("torch", "pip install vega", gfx=("gfx906",), rank=1)),
        _entry("gone", Install("torch", "pip install gone", gfx=("gfx1151",), rank=1), status=Status.SUPERSEDED),
        _entry("jax", Install("jax", "pip install jax")),
    )
    result = choose(make_machine(**STRIX), knowledge, "torch", "gfx1151")
    assert [(item.command, item.serves) for item in result.choices] == [
        ("pip install torch[device-gfx1151]", True),
        ("pip install gfx115X-all", True),
        ("pip install vega", False),
    ]
    assert result.choices[-1].reason == "it carries no code for gfx1151 (it is for gfx906)"
    assert result.known_packages == ("jax", "torch")


def test_a_condition_on_the_machine_is_tried() -> None:
    install = Install("torch", "pip install x", when='python.version == "3.12"')
    knowledge = make_knowledge(_entry("x", install))
    outcomes = [
        choose(make_machine(**STRIX, **facts), knowledge, "torch", "gfx1151").choices[0].serves
        for facts in ({"python__version": "3.12"}, {"python__version": "3.8"}, {})
    ]
    assert outcomes == [True, False, None]


def test_cautions_concern_this_gpu_and_this_machine() -> None:
    cautions = (
        Caution("for all"),
        Caution("other GPU", gfx=("gfx1010",)),
        Caution("its class", gfx=("gfx11-generic",)),
        Caution("old kernel", when='version(kernel.version) < version("6.18")'),
    )
    knowledge = make_knowledge(_entry("x", Install("torch", "pip install x", gfx=("gfx1151",), caution=cautions)))
    said = [
        choose(make_machine(**STRIX, **facts), knowledge, "torch", "gfx1151").choices[0].caution
        for facts in ({"kernel__version": "6.19"}, {"kernel__version": "6.8"}, {})
    ]
    # what cannot be decided is said
    assert said == ["for all its class", "for all its class old kernel", "for all its class old kernel"]


def test_a_card_is_meant_before_the_processors_graphics() -> None:
    machine = make_machine(
        gpu__0__gfx_target="gfx1036",
        gpu__0__is_apu=True,
        gpu__1__gfx_target="gfx1100",
        gpu__1__is_apu=False,
        gpu__2__gfx_target="gfx1100",
        gpu__2__is_apu=False,
    )
    assert gpu_targets(machine) == ["gfx1100", "gfx1036"]
    assert gpu_targets(make_machine(gpus__count=0)) == []


def test_a_tarball_folder_must_look_like_one(tmp_path: Path) -> None:
    machine = make_machine(**STRIX)
    with pytest.raises(UsageError, match="has no lib folder"):
        with_rocm_path(machine, tmp_path, check=True)
    (tmp_path / "lib").mkdir()
    made = with_rocm_path(machine, tmp_path, check=True)
    assert made.value("rocm.path") == str(tmp_path)
    assert made.value("rocm.kind") == "therock-tarball"


def test_an_installed_package_is_replaced_as_pip_would_keep_it() -> None:
    knowledge = make_knowledge(_entry("x", Install("torch", "pip install torch[device-{gfx}]", gfx=("gfx1151",))))
    packages = {"packages": {"torch": "2.5.1+rocm6.2"}}
    there = choose(make_machine(**STRIX, **packages), knowledge, "torch", "gfx1151").choices[0]
    assert there.command == "pip install --force-reinstall torch[device-gfx1151]"
    assert there.replaces == "2.5.1+rocm6.2"
    for facts, target in ((STRIX, "gfx1151"), ({**packages, **STRIX, "gpu__0__gfx_target": "gfx906"}, "gfx1151")):
        other = choose(make_machine(**facts), knowledge, "torch", target).choices[0]
        assert (other.command, other.replaces) == ("pip install torch[device-gfx1151]", "")


def test_the_index_says_which_python_and_system_it_is_for_and_how_old_that_is() -> None:
    read = dt.date(2026, 11, 29)
    row = Index(
        "it",
        "https://i.example/",
        "stable",
        {},
        ("10.1",),
        read,
        (Source("S"),),
        python=("3.11", "3.14"),
        os=("linux",),
    )
    entry = _entry("x", Install("torch", "pip install x", index="i", gfx=("gfx1151",)))
    knowledge = msgspec.structs.replace(make_knowledge(entry), indexes={"i": row})

    def chosen(days: int = 0, **facts: object) -> tuple[bool | None, str, int]:
        machine = make_machine(**STRIX, **facts)
        (choice,) = choose(machine, knowledge, "torch", "gfx1151", today=read + dt.timedelta(days)).choices
        assert choice.read == read
        return choice.serves, choice.caution, choice.stale_days

    assert chosen(45, python__version="3.14.1", host__os_family="linux") == (True, "", 0)
    assert chosen(46) == (True, "", 46)
    assert "this environment has Python 3.9" in chosen(python__version="3.9.2")[1]
    assert chosen(host__os_family="windows")[0] is False


def test_an_index_that_has_ended_says_so_with_its_successor_and_what_it_is_kept_for() -> None:
    read = dt.date(2026, 11, 29)
    new = Index("the new one", "https://new.example/", "stable", {}, ("10.1",), read, (Source("S"),))
    old = Index(
        "the old one", "https://old.example/", "stable", {}, ("7.14",), read, (Source("S"),),
        ended=dt.date(2026, 8, 24), successor="new", note="ROCm 7.14 is installed from here.",
    )  # fmt: skip
    entries = [_entry(name, Install("torch", f"pip install {name}", index=name)) for name in ("old", "new")]
    knowledge = msgspec.structs.replace(make_knowledge(*entries), indexes={"old": old, "new": new})
    said = {one.index: one.caution for one in choose(make_machine(**STRIX), knowledge, "torch", "gfx1151").choices}
    assert said == {
        "old": "This index has had no new builds since 2026-08-24; its successor is the new one, https://new.example/. "
        "ROCm 7.14 is installed from here.",
        "new": "",
    }
