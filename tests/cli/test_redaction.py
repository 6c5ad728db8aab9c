"""What every command makes to be passed on is redacted and says so; --no-redact leaves it as it is and says that."""

from __future__ import annotations

import enum
import html
import importlib
import json
import os
import pkgutil
import pwd
import re
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec
import pytest

from rocmend.cli.main import command_modules
from rocmend.core.redact import here, redactor_here

Run = Callable[..., Any]

SECRETS = ("anna", "zephyr7", "10.11.12.13", "1b4e28ba", "hunter2", "3c:7c:3f")
CMDLINE = (
    "quiet root=UUID=1b4e28ba-2fa1-11d2-883f-0016d3cca427 api_token=hunter2x host=zephyr7 server=10.11.12.13 "
    "x=/home/anna/y mac=3c:7c:3f:1a:2b:3c amdgpu.cwsr_enable=0"
)
PLANTED = Path(__file__).parents[1] / "core" / "redact" / "planted.toml"

WITHOUT = {"env", "kb lint", "kb matrix", "kb sources", "kernels list", "targets"} | {"share make"}
"""Commands whose output holds nothing of a machine, is there to be run, or is always redacted."""


@pytest.fixture(autouse=True)
def annas_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "hosts", lambda: {"gpu-box.corp.example", "zephyr7"})
    monkeypatch.setattr(here, "users", lambda: {"anna", "jdoe", "First Last", "marek.nowak"})


def write(machine: Path, environ: dict[str, str]) -> Path:
    """Write a captured machine that nobody redacted."""
    (machine / "root/proc/sys/kernel").mkdir(parents=True)
    (machine / "machine.json").write_text('{"captured_at": "2026-01-02T03:04:05+00:00", "name": "zephyr7"}')
    (machine / "environ.json").write_text(json.dumps(environ))
    for name in ("tree.json", "measurements.json"):
        (machine / name).write_text("{}")
    (machine / "root/proc/cmdline").write_text(CMDLINE)
    (machine / "root/proc/sys/kernel/osrelease").write_text("6.17.0-7-generic\n")
    node = machine / "root/sys/class/kfd/kfd/topology/nodes/1"
    node.mkdir(parents=True)
    (node / "properties").write_text(
        "simd_count 80\nsimd_per_cu 2\ngfx_target_version 110501\nunique_id 114209328374\n"
    )
    return machine


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    return write(tmp_path / "zephyr7", {"HOME": "/home/anna", "HSA_OVERRIDE_GFX_VERSION": "11.0.0"})


def left(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in html.unescape(text)]


@pytest.mark.slow
@pytest.mark.parametrize("output_format", ["md", "sarif", "json"])
def test_a_check(output_format: str, rocmend: Run, machine: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    done = rocmend("check", "--machine", machine, "-o", report, "--no-store", "--format", output_format)
    page = report.read_text()
    assert left(page) == []
    assert left(done.out) == []
    assert re.search(r"Redacted: \d+ names?, \d+ address", page)
    assert '"redacted": true' in done.out if output_format == "json" else "Redacted: " in done.out
    for needed in ("6.17.0-7-generic", "gfx1151", "amdgpu.cwsr_enable=0"):
        assert needed in page
    rocmend("check", "--machine", machine, "-o", report, "--no-store", "--no-redact")
    assert left(report.read_text()) == list(SECRETS)
    assert "Not redacted: " in report.read_text()


def test_the_terminal_shows_what_is_there(rocmend: Run, machine: Path, machines: Path) -> None:
    shown = rocmend("machine", "show", "kernel", "--machine", machine).out
    assert "anna" in shown
    assert shown.rstrip().endswith("Not redacted: for sharing use --format md, or rocmend check -o report.html.")
    assert "edacted" not in rocmend("machine", "show", "memory", "--machine", machines / "strix-halo").out


def test_what_holds_nothing_to_redact_says_that_it_was_looked_for(rocmend: Run, machines: Path) -> None:
    shown = rocmend("machine", "show", "memory", "--machine", machines / "strix-halo", "--format", "md").out
    assert shown.rstrip().endswith("Looked for names, addresses and secrets: none found.")


@pytest.mark.parametrize("arguments", [["--format", "md"], ["--json"]], ids=["md", "json"])
def test_all_that_is_planted_in_the_environment(arguments: list[str], rocmend: Run, tmp_path: Path) -> None:
    rows = [marked for kind in tomllib.loads(PLANTED.read_text(encoding="utf-8"))["kind"] for marked in kind["planted"]]
    environ = {f"ROCM_NOTE_{number}": re.sub("[⟦⟧]", "", marked) for number, marked in enumerate(rows)}
    machine = write(tmp_path / "m", environ)
    done = rocmend("machine", "show", "env", "--machine", machine, *arguments)
    assert done.out.count("ROCM_NOTE_") >= len(rows)
    text = re.sub(r"\\(?=[_*<\[`])", "", html.unescape(done.out)).casefold()
    found = [
        secret for marked in rows for secret in re.findall("⟦(.*?)⟧", marked, re.DOTALL) if secret.casefold() in text
    ]
    assert found == []


def test_a_plans_script_holds_no_secret(rocmend: Run, tmp_path: Path) -> None:
    """It keeps paths, as it is there to be run; the variable that it tells to unset holds a password here."""
    environ = {"HSA_OVERRIDE_GFX_VERSION": "http://anna:hunter2@proxy:3128"}
    script = tmp_path / "plan.sh"
    done = rocmend("doctor", "--machine", write(tmp_path / "m", environ), "--plan", "sh", "-o", script)
    assert done.code == 0
    assert "unset HSA_OVERRIDE_GFX_VERSION" in script.read_text()
    assert "hunter2" not in script.read_text()


def test_an_error_in_json(rocmend: Run) -> None:
    done = rocmend("doctor", "--machine", "/home/anna/none", "--json")
    assert "anna" not in done.out
    assert "/home/anna/none" in rocmend("doctor", "--machine", "/home/anna/none", "--json", "--no-redact").out


@pytest.mark.parametrize("output_format", ["json", "html", "md"])
def test_a_line_that_is_searched_for(output_format: str, rocmend: Run) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    line = f"/home/anna/x.py: RuntimeError: HIP error: invalid device function {token}"
    done = rocmend("kb", "search", line, "--format", output_format)
    assert done.code == 0
    assert "install-torch-lacks-gpu-target" in done.out
    assert [secret for secret in (token, "anna") if secret in done.out] == []
    kept = html.unescape(rocmend("kb", "search", line, "--format", output_format, "--no-redact").out)
    assert token in kept.replace("\\_", "_")


def test_a_record_and_its_log(rocmend: Run, tmp_path: Path, machine: Path) -> None:
    store, report = tmp_path / "s.sqlite", tmp_path / "r.html"
    rocmend("check", "--machine", machine, "-o", report, "--store", store, "--no-redact")
    listed = rocmend("store", "ls", "--store", store, "--format", "jsonl").out
    assert left(listed) == []
    (record,) = (json.loads(line)["id"] for line in listed.splitlines())
    for arguments in (["--format", "md"], ["--json"], ["--facts", "--format", "md"], ["--facts", "--json"]):
        assert left(rocmend("store", "show", record, "--store", store, *arguments).out) == [], arguments
    assert "zephyr7" in rocmend("store", "show", record, "--store", store, "--json", "--no-redact").out


def test_a_capture_in_json(rocmend: Run, tmp_path: Path) -> None:
    done = rocmend("machine", "capture", tmp_path / "here", "--json")
    assert done.code == 0
    data = json.loads(done.out)["data"]
    assert data["files"] > 0
    assert set(data) == {"directory", "files", "commands", "replaced"}


@pytest.mark.parametrize(("path", "module"), sorted(command_modules().items()))
def test_every_command_with_formats_redacts(path: str, module: str) -> None:
    command: click.Command = importlib.import_module(module).command
    options = {option for parameter in command.params for option in parameter.opts}
    if "--format" in options or "--json" in options:
        assert ("--no-redact" in options) == (path not in WITHOUT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["severity", "lab", "status", "pass", "bench", "high", "kernel", "Verdict", "conv2d"])
def test_a_name_that_is_a_word_of_ours_changes_none(
    name: str, rocmend: Callable[..., Any], machines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", name)
    monkeypatch.setenv("HOSTNAME", name)
    arguments = ("doctor", "--machine", machines / "rx-5600-xt", "--json")
    shown, whole = (json.loads(rocmend(*arguments, *more).out) for more in ((), ("--no-redact",)))
    assert shape(shown) == shape(whole)
    assert [one["entry_id"] for one in shown["data"]["findings"]] == [
        one["entry_id"] for one in whole["data"]["findings"]
    ]
    assert [one["severity"] for one in shown["data"]["findings"]] == [
        one["severity"] for one in whole["data"]["findings"]
    ]


def shape(value: object) -> object:
    """Return a JSON value without its texts and numbers."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else type(value).__name__


def words_of_ours(*, cut: bool = True) -> set[str]:
    """Return the names of all fields and the values of all enumerations, and each of them with a letter cut off."""
    for room in ("core", "doctor", "kb", "lab", "machine", "report", "runner", "store"):
        package = importlib.import_module(f"rocmend.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    found: set[str] = set()
    kinds: list[type] = [msgspec.Struct, enum.Enum]
    while kinds:
        kind = kinds.pop()
        kinds += type.__subclasses__(kind)
        if kind.__module__.startswith("rocmend."):
            found |= set(getattr(kind, "__struct_fields__", ()))
            found |= {one.value for one in kind if isinstance(one.value, str)} if issubclass(kind, enum.Enum) else set()
    return (
        found
        if not cut
        else found | {part for word in found for part in (word[1:], word[:-1]) if part.isalpha() and len(part) > 5}
    )


def pairs(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield what a JSON value holds, with its keys."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name, None
            yield from pairs(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from pairs(item, key)
    else:
        yield key, value


ENUMERATED = {
    "severity",
    "entry_id",
    "key",
    "kind",
    "status",
    "level",
    "ruleId",
    "claim",
    "command",
    "code",
    "confidence",
}


@pytest.mark.slow
@pytest.mark.parametrize("machine", ["rx-5600-xt", "strix-halo"])
def test_people_called_like_each_field_and_value_of_ours(
    machine: str, rocmend: Run, machines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = words_of_ours()
    assert {"severity", "findings", "finding", "warning", "entry_id"} <= people
    monkeypatch.setattr(here, "users", lambda: people)
    for output_format in ("json", "sarif"):
        arguments = ("doctor", "--machine", machines / machine, "--format", output_format)
        shown, whole = (list(pairs(json.loads(rocmend(*arguments, *more).out))) for more in ((), ("--no-redact",)))
        assert [key for key, _ in shown] == [key for key, _ in whole]
        assert [one for one in shown if one[0] in ENUMERATED] == [one for one in whole if one[0] in ENUMERATED]
    monkeypatch.setattr(here, "users", lambda: words_of_ours(cut=False))
    shown_text, whole_text = (
        rocmend("doctor", "--machine", machines / machine, "--format", "md", *more).out.splitlines()[:-1]
        for more in ((), ("--no-redact",))
    )
    assert shown_text == whole_text


@pytest.mark.slow
def test_a_machine_called_like_a_key_that_no_class_has(
    rocmend: Run, machines: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def keys(*arguments: str | Path) -> list[str]:
        return [key for key, _ in pairs(json.loads(rocmend(*arguments).out))]

    sarif = ("doctor", "--machine", machines / "rx-5600-xt", "--format", "sarif")
    whole = keys(*sarif, "--no-redact")
    monkeypatch.setattr(here, "hosts", lambda: {"location", "usage", "artifact", "driver", "directory"})
    assert keys(*sarif) == whole
    assert {"directory", "files", "commands", "replaced"} <= set(keys("machine", "capture", tmp_path / "m", "--json"))
    assert json.loads(rocmend("doctor", "--nope", "--json").out)["errors"][0]["code"] == "usage"


def test_thousands_of_accounts_cost_no_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def asked() -> NoReturn:
        pytest.fail("a directory service is not asked for all its accounts")

    monkeypatch.undo()
    monkeypatch.setattr(pwd, "getpwall", asked)
    accounts = tmp_path / "passwd"
    rows = (f"person{number}x:x:{2000 + number}:2000:Full Name{number}:/home/x:/bin/sh" for number in range(20_000))
    accounts.write_text(
        "\n".join(("anna:x:1000:1000:Anna Nym,,,:/srv/anna:/bin/sh", "svc:x:990:990::/:/bin/false", *rows))
    )
    monkeypatch.setattr(here, "_ACCOUNTS", str(accounts), raising=False)
    for number in range(200):
        (tmp_path / "home" / f"n{number}").mkdir(parents=True)
    monkeypatch.setattr(here, "_HOMES", str(tmp_path / "home"), raising=False)
    names = here.users()
    assert {"anna", "Anna Nym"} <= names
    assert "svc" not in names
    assert len(names) < 250
    redactor = redactor_here()
    begun = time.process_time()
    for number in range(300):
        redactor.text(f"[ {number}.0] amdgpu 0000:c5:00.0: amdgpu: MODE2 reset, said anna-{number}, /home/anna/x")
    assert time.process_time() - begun < 3


def test_the_owner_of_a_home_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = tmp_path / "home" / "zoe"
    home.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(home, 4321, 4321)
    uid = home.stat().st_uid
    entry = pwd.struct_passwd(("zoe", "x", uid, uid, "Zoe Example,,,", "/home/zoe", "/bin/sh"))
    monkeypatch.undo()
    monkeypatch.setattr(here, "_HOMES", str(tmp_path / "home"), raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 99_999)
    monkeypatch.setattr(pwd, "getpwuid", {uid: entry}.__getitem__)
    monkeypatch.setattr(pwd, "getpwall", list)
    assert {"zoe", "Zoe Example"} <= here.users()
