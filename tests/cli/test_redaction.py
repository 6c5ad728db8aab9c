"""What every command makes to be passed on is redacted and says so; --no-redact leaves it as it is and says that."""

from __future__ import annotations

import html
import importlib
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from rocmend.cli.main import command_modules
from rocmend.core.redact import here

Run = Callable[..., Any]

SECRETS = ("anna", "zephyr7", "10.11.12.13", "1b4e28ba", "hunter2", "3c:7c:3f")
CMDLINE = (
    "quiet root=UUID=1b4e28ba-2fa1-11d2-883f-0016d3cca427 api_token=hunter2x host=zephyr7 server=10.11.12.13 "
    "x=/home/anna/y mac=3c:7c:3f:1a:2b:3c amdgpu.cwsr_enable=0"
)
PLANTED = Path(__file__).parents[1] / "core" / "redact" / "planted.toml"

WITHOUT = {"env", "kb lint", "kb matrix", "kb search", "kb show", "kb sources", "kernels list", "targets"}
"""Commands whose output holds nothing of a machine, or is there to be run."""


@pytest.fixture(autouse=True)
def annas_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "hosts", lambda: {"gpu-box.corp.example", "zephyr7"})
    monkeypatch.setattr(here, "users", lambda: {"anna", "jdoe", "First Last", "marek.nowak"})


def write(machine: Path, environ: dict[str, str]) -> Path:
    """Write a captured machine that nobody redacted."""
    (machine / "root/proc/sys/kernel").mkdir(parents=True)
    (machine / "machine.json").write_text('{"captured_at": "2026-01-02T03:04:05+00:00", "name": "zephyr7"}')
    (machine / "environ.json").write_text(json.dumps(environ))
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


def test_an_error_in_json(rocmend: Run) -> None:
    done = rocmend("doctor", "--machine", "/home/anna/none", "--json")
    assert "anna" not in done.out
    assert "/home/anna/none" in rocmend("doctor", "--machine", "/home/anna/none", "--json", "--no-redact").out


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


def test_thousands_of_accounts_cost_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    import pwd

    from rocmend.core.redact import here

    people = [
        pwd.struct_passwd((f"person{number}x", "x", 2000 + number, 2000, "", f"/home/person{number}x", "/bin/sh"))
        for number in range(20_000)
    ]
    monkeypatch.setattr(pwd, "getpwall", lambda: people)
    assert len(here.users()) < 100
