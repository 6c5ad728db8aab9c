"""The group ``rocmend lab`` on the example that runs anywhere."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from rocmend.cli.main import main
from rocmend.lab.state import Bench

EXAMPLES = Path(__file__).parents[2] / "src" / "rocmend" / "examples" / "experiments"
DEMO = EXAMPLES / "local-demo.toml"


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def rocmend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run the program in this process with a store of its own."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("ROCMEND_HOME", str(tmp_path))
    for name in ("ROCMEND_KB", "FAKE_COPY_ENGINE", "FAKE_GRAPHS", "FAKE_TARGET"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str | Path) -> Done:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        sys.stdout.flush()
        assert isinstance(stop.value.code, int)
        return Done(stop.value.code, out.getvalue(), err.getvalue())

    return run


def test_a_plan_has_a_line_for_each_trial_in_a_terminal(rocmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = rocmend("lab", "plan", DEMO).out.splitlines()
    assert [line.split()[0] for line in lines if "no prediction" in line] == [
        "baseline", "copy-engine-off", "other-target", "plain-attention", "everything-off",
    ]  # fmt: skip


@pytest.mark.slow
def test_from_plan_to_report(rocmend: Run) -> None:
    plan = rocmend("lab", "plan", DEMO)
    assert plan.code == 0
    assert "5 trials, each run once" in plan.out
    empty = rocmend("lab", "report", DEMO)
    assert empty.code == 0
    assert "No trial has been run yet." in empty.out
    nothing = rocmend("lab", "resume", DEMO)
    assert (nothing.code, nothing.out) == (2, "")

    run = rocmend("lab", "run", DEMO, "--json")
    data = msgspec.json.decode(run.out)["data"]
    assert run.code == 1
    assert sum(data["run"]["ran"].values()) == 5
    assert "everything-off, run 1: pass after" in run.err
    resumed = rocmend("lab", "resume", DEMO)
    assert "1 of 5 trials passed: everything-off. 0 runs made; 5 had been made before." in resumed.out

    least = rocmend("lab", "minimize", DEMO, "baseline", "everything-off")
    assert least.code == 0
    assert "FAKE_COPY_ENGINE=0 and FAKE_GRAPHS=0 together turn the hang after upload of baseline" in least.out

    page = rocmend("lab", "report", DEMO, "--format", "html").out
    assert '<figure class="picture timeline">' in page
    report = rocmend("lab", "report", DEMO, "--format", "md").out
    assert "FAKE_COPY_ENGINE=0 shifts the hang from upload to reserve" in report
    assert "the target override and flash attention make no difference." in report
    assert "| baseline | upload |" in report
    envelope = msgspec.json.decode(rocmend("lab", "report", DEMO, "--json").out)
    assert envelope["status"] == "clean"
    assert envelope["data"]["conclusion"]["status"] == "works"
    assert rocmend("lab", "status", DEMO).code == 1


@pytest.mark.slow
def test_what_an_experiment_keeps_is_its_owners_alone(
    rocmend: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    seen: set[str] = set()
    emptied = Bench.empty_journal

    def look(bench: Bench) -> None:  # before the logs are taken away
        for path in bench.folder.rglob("*"):
            assert not path.stat().st_mode & 0o077, path
            seen.add(path.name if path.parent == bench.folder else path.suffix)
        emptied(bench)

    monkeypatch.setattr(Bench, "empty_journal", look)
    assert rocmend("lab", "run", DEMO).code == 1
    assert seen >= {"journal.jsonl", "journal.logs", ".log"}
    assert rocmend("lab", "minimize", DEMO, "baseline", "everything-off").code == 0
    assert not [path for path in tmp_path.rglob("*") if path.stat().st_mode & 0o077]


def test_a_full_disk_is_named(rocmend: Run, small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCMEND_HOME", str(small_disk))
    assert rocmend("store", "ls").code == 0
    (small_disk / "filler").write_bytes(b"x" * ((2 << 20) - 64 * 1024))
    done = rocmend("lab", "run", DEMO)
    assert done.code == 2
    assert str(small_disk) in done.err
    assert "no space" in done.err or "No space left" in done.err


def test_plan_of_a_kernel_parameter_shows_reboots_and_predictions(rocmend: Run) -> None:
    done = rocmend("lab", "plan", EXAMPLES / "strix-halo-load-hang.toml", "--format", "md")
    assert done.code == 0
    assert "rpm-ostree kargs --append=amdgpu.cwsr_enable=0" in done.out
    assert "reboot: cwsr-off, cwsr-and-sdma-off: amdgpu.cwsr_enable=0" in done.out
    assert "hang after async-uploads (llama-cpp-async-upload-hang)" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["lab", "plan", "/nonexistent.toml"],
        ["lab", "run", str(DEMO), "--only", "nothing"],
        ["lab", "minimize", str(DEMO), "baseline", "nothing"],
        ["lab", "report", str(DEMO), "--store", "/nonexistent/store.sqlite"],
    ],
    ids=" ".join,
)
def test_what_is_not_there_is_said(arguments: list[str], rocmend: Run) -> None:
    done = rocmend(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("rocmend: [")
    assert "Traceback" not in done.err


SECRET = "hf_notARealTokenButAsLongAsOne42"  # noqa: S105  made up


@pytest.mark.slow
def test_a_secret_is_handed_on_and_kept_nowhere(rocmend: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the store, journal and logs, nor in what the commands print; without it the run asks for it."""
    workload = 'import os; print("answer:", os.environ["HF_TOKEN"][:3], os.environ["HF_TOKEN"])'
    text = (
        f"[experiment]\nid = 'secret'\ntitle = 't'\nquestion = 'q'\ncommand = ['python3', '-c', '{workload}']\n"
        "env = {{ HF_TOKEN = '{}' }}\n[[factor]]\nname = 'a'\nkind = 'env'\nvariable = 'A'\nvalues = ['0', '1']\n"
        "baseline = '0'\n[oracle]\nkind = 'output-matches'\npattern = 'answer: hf_ [*]{{3}}$'\n"
    )
    file = tmp_path / "secret.toml"
    file.write_text(text.format("***"))
    asked = rocmend("lab", "run", file)
    assert asked.code == 1
    assert "expected a value for HF_TOKEN in the environment" in " ".join(asked.out.split())
    file.write_text(text.format(SECRET))
    stated = rocmend("lab", "run", file, "--json")
    assert msgspec.json.decode(stated.out)["data"]["status"]["outcomes"][0]["verdict"] == "pass", stated
    file.write_text(text.format("***"))
    monkeypatch.setenv("HF_TOKEN", SECRET)
    again = rocmend("lab", "resume", file, "--json")
    assert msgspec.json.decode(again.out)["data"]["run"]["kept"] == {"baseline": 1}, "it is the same trial"
    file.write_text(text.format(SECRET))
    said = [rocmend("lab", name, file, "--json").out for name in ("plan", "report", "status")]
    assert not any(SECRET in part for part in (*said, stated.out, stated.err, again.out, again.err))
    file.unlink()
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if SECRET.encode() in path.read_bytes()]


def test_a_plan_shows_what_its_runs_are_denied_and_given(rocmend: Run) -> None:
    plan = rocmend("lab", "plan", EXAMPLES / "strix-halo-load-hang.toml", "--json")
    rules = msgspec.json.decode(plan.out)["data"]["rules"]
    shown = {(rule["effect"], " ".join(rule["arguments"])) for rule in rules}
    assert {("denied", "--cap-drop all"), ("denied", "--network none"), ("given", "--device /dev/kfd")} <= shown
    assert all(rule["reason"] for rule in rules)
    assert "What a run may do" in rocmend("lab", "plan", EXAMPLES / "strix-halo-load-hang.toml").out
