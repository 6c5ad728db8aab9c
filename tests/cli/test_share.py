"""``rocmend share``, through the installed command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import msgspec
import pytest

from rocmend.core.evidence import Evidence
from rocmend.core.examples import MACHINES
from rocmend.core.records import Fact
from rocmend.core.verdict import Verdict
from rocmend.machine.collect import open_machine, snapshot
from rocmend.store.store import Store


def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rocmend", *map(str, words)]
    env = {**os.environ, "ROCMEND_HOME": str(cwd / "home"), "HSA_NOTE": "mail anna.planted@example.org"}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=env)


def keep_probes(path: Path, count: int) -> None:
    with Store.open(path) as store:
        for number in range(count):
            verdict = Verdict.CRASH if number else Verdict.PASS
            why = f"SIGSEGV in /home/anna-planted/model.py, asked by anna.planted@example.org {'x' * 900}"
            subject, identity, started = f"op-{number}:float16", f"{number:064x}", "2026-01-31T12:00:00+00:00"
            record = Evidence("probe", subject, identity, verdict, why, started, 1.0, "gfx1151", group="probe-1")
            store.add(record)


def test_a_text_for_an_issue(tmp_path: Path) -> None:
    done = run("share", "--machine", "strix-halo", cwd=tmp_path)
    assert done.returncode == 0
    for part in ("gfx1151-cwsr-save-area-too-small", "6.14.0-1013-oem", "2.5.1+rocm6.2", "HSA_OVERRIDE_GFX_VERSION"):
        assert part in done.stdout
    assert "- **Memory**: 124 GiB\n" in done.stdout
    assert "132854857728" not in done.stdout
    assert "nothing was sent anywhere" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("count", [3, 400])
def test_failing_probes_are_in_it_redacted_and_it_fits(count: int, tmp_path: Path) -> None:
    keep_probes(tmp_path / "kept.sqlite", count)
    done = run("share", "--store", tmp_path / "kept.sqlite", "-o", "issue.md", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    text = (tmp_path / "issue.md").read_text()
    assert f"{count - 1} of {count} operations failed" in text
    assert "crash" in text
    assert "rocmend probe --select op-" in text
    assert "planted" not in text
    assert "replaced: " in done.stderr
    assert 1000 < len(text) <= 60_000


def test_an_archive_holds_all_of_it_and_diagnoses_the_same_elsewhere(tmp_path: Path) -> None:
    done = run("share", "--archive", "kept.zip", "--json", cwd=tmp_path)
    data = msgspec.json.decode(done.stdout)["data"]
    assert data["archive"] == "kept.zip"
    with zipfile.ZipFile(tmp_path / "kept.zip") as archive:
        assert all(name.startswith("rocmend-share/") for name in archive.namelist())
        archive.extractall(tmp_path)
    folder = tmp_path / "rocmend-share"
    assert not [path for path in folder.rglob("*") if path.is_file() and b"planted" in path.read_bytes()]
    assert "HSA_NOTE" in (folder / "capture" / "environ.json").read_text()
    assert (folder / "share.md").read_text() == data["text"]
    assert "<html" in (folder / "report.html").read_text()
    kept = msgspec.json.decode((folder / "diagnosis.json").read_bytes())["data"]
    again = msgspec.json.decode(run("doctor", "--machine", folder / "capture", "--json", cwd=tmp_path).stdout)["data"]
    ids = [[item["entry_id"] for item in one["findings"]] for one in (kept, again)]
    assert ids[0] == ids[1] != []


def test_what_is_not_redacted_is_not_packed(tmp_path: Path) -> None:
    shutil.copytree(MACHINES / "rx-7900-xtx", tmp_path / "raw")
    manifest = tmp_path / "raw" / "machine.json"
    manifest.write_text(manifest.read_text().replace('"redacted": true', '"redacted": false'))
    done = run("share", "--machine", "raw", "--archive", "raw.zip", cwd=tmp_path)
    assert done.returncode == 2
    assert "not redacted" in done.stderr
    assert not (tmp_path / "raw.zip").exists()


def test_links_in_a_capture_are_not_followed(tmp_path: Path) -> None:
    shutil.copytree(MACHINES / "rx-7900-xtx", tmp_path / "mine")
    (tmp_path / "secret").write_text("planted")
    (tmp_path / "mine" / "root" / "etc" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "mine" / "notes.txt").write_text("planted")
    assert run("share", "--machine", "mine", "--archive", "a.zip", cwd=tmp_path).returncode == 0
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert not [name for name in archive.namelist() if b"planted" in archive.read(name)]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """A captured machine of another person, which nobody redacted."""
    directory = tmp_path / "raw"
    shutil.copytree(MACHINES / "rx-7900-xtx", directory)
    manifest = msgspec.json.decode((directory / "machine.json").read_bytes())
    python = {"executable": "/usr/bin/python3", "prefix": "/srv/hahnlabs/lise/venv", "found_by": "--python"}
    (directory / "machine.json").write_bytes(msgspec.json.encode(manifest | {"redacted": False, "python": python}))
    (directory / "root" / "etc").mkdir(exist_ok=True)
    (directory / "root" / "etc" / "hostname").write_text("meitner-tower\n")
    accounts = "root:x:0:0::/root:/bin/sh\nlise:x:1000:1000:Lise Meitner:/srv/hahnlabs/lise:/bin/sh\n"
    (directory / "root" / "etc" / "passwd").write_text(accounts)
    environ = {
        "HOME": "/srv/hahnlabs/lise",
        "HSA_NOTE": "meitner-tower /srv/hahnlabs/lise/cache by Lise Meitner of fission-team",
    }
    (directory / "environ.json").write_bytes(msgspec.json.encode(environ))
    user = {"uid": 1000, "gid": 1000, "groups": ["lise", "fission-team"]}
    (directory / "user.json").write_bytes(msgspec.json.encode(user))
    return directory


@pytest.mark.parametrize(
    "words",
    [
        ["share"],
        ["doctor", "--json"],
        ["doctor", "-o", "r.html"],
        ["machine", "show", "--json"],
        ["machine", "diff", "this", "--all", "--format", "md"],
    ],
    ids=" ".join,
)
@pytest.mark.slow
def test_names_of_a_capture_that_nobody_redacted_are_replaced(words: list[str], raw: Path, tmp_path: Path) -> None:
    done = run(*words, *([] if "diff" in words else ["--machine"]), raw, cwd=tmp_path)
    assert done.returncode in {0, 1}, done.stderr
    text = done.stdout + "".join(path.read_text() for path in tmp_path.glob("r.html"))
    assert "/srv/user" in text or "HSA_NOTE" in text
    for name in ("meitner", "hahnlabs", "lise", "fission"):
        assert name not in text.lower()


def test_evidence_is_sent_shown_kept_and_counted(tmp_path: Path) -> None:
    keep_probes(tmp_path / "theirs.sqlite", 3)
    made = run("share", "--store", "theirs.sqlite", "--archive", "sent.zip", "--json", cwd=tmp_path)
    assert msgspec.json.decode(made.stdout)["data"]["evidence"] == 3
    shown = run("share", "show", "sent.zip", cwd=tmp_path)
    assert (shown.returncode, "3 records: 2 crash, 1 pass" in shown.stdout) == (0, True)
    assert "planted" not in shown.stdout
    mine = ("--store", "mine.sqlite")
    first, again = (
        msgspec.json.decode(run("share", "import", "sent.zip", *mine, "--json", cwd=tmp_path).stdout) for _ in range(2)
    )
    assert [(data["data"][0]["added"], data["data"][0]["known"]) for data in (first, again)] == [(3, 0), (0, 3)]
    matrix = msgspec.json.decode(run("share", "matrix", *mine, "sent.zip", "--json", cwd=tmp_path).stdout)["data"]
    assert matrix["subjects"]["probe op-0"]["gfx1151"]["verdicts"] == {"pass": 1}
    assert matrix["subjects"]["probe op-1"]["gfx1151"]["verdicts"] == {"crash": 1}
    assert matrix["records"] == 3


def test_a_run_is_named_by_a_beginning_of_its_id(tmp_path: Path) -> None:
    keep_probes(tmp_path / "kept.sqlite", 3)
    store = ("--store", "kept.sqlite")
    made = run("share", "--archive", "sent.zip", "--run", "prob", *store, "--json", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert msgspec.json.decode(made.stdout)["data"]["evidence"] == 3
    compared = run("probe", "diff", "prob", "last", *store, "--json", cwd=tmp_path)
    assert msgspec.json.decode(compared.stdout)["data"]["same"] == 3


def test_what_this_store_made_itself_counts_once(tmp_path: Path) -> None:
    keep_probes(tmp_path / "mine.sqlite", 3)
    mine = ("--store", "mine.sqlite")
    run("share", *mine, "--archive", "sent.zip", cwd=tmp_path)
    before = run("share", "matrix", *mine, "--json", cwd=tmp_path).stdout
    assert run("share", "matrix", *mine, "sent.zip", "--json", cwd=tmp_path).stdout == before
    (row,) = msgspec.json.decode(run("share", "import", "sent.zip", *mine, "--json", cwd=tmp_path).stdout)["data"]
    assert (row["added"], row["known"], row["own"], row["groups"]) == (0, 0, 3, [])
    assert "3 records of this store itself: not added" in run("share", "import", "sent.zip", *mine, cwd=tmp_path).stdout
    assert run("share", "matrix", *mine, "--json", cwd=tmp_path).stdout == before


def test_the_text_names_the_device_of_each_run(tmp_path: Path) -> None:
    with Store.open(tmp_path / "kept.sqlite") as store:
        for kind, group in (("probe", "probe-20260101-000000-aaaa"), ("bench", "bench-gemm-20260101-000000-aaaa")):
            made = Evidence(
                kind=kind, subject="op:float32", identity="1", verdict=Verdict.PASS, reason="", time_ms=1.0,
                started_at="2026-01-01T00:00:00Z", gfx_target="cpu", detail={"device_name": "AMD EPYC"}, group=group,
            )  # fmt: skip
            store.add(made)
    text = run("share", "--store", "kept.sqlite", cwd=tmp_path).stdout
    assert "0 of 1 operation failed in the run `probe-20260101-000000-aaaa`, on the CPU (AMD EPYC)." in text
    assert "| bench-gemm-20260101-000000-aaaa | the CPU (AMD EPYC) | 1 | 0 |" in text


def test_the_text_is_about_the_environment_that_the_operations_were_tried_in(tmp_path: Path) -> None:
    env = tmp_path / "tried"
    venv.create(env, with_pip=False)
    site = next(env.glob("lib/python*/site-packages")) / "torch-9.9.9.dist-info"
    site.mkdir()
    (site / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 9.9.9\n")
    here = snapshot(open_machine(MACHINES / "no-amd-gpu"), name="here")
    used = Fact("python.executable", str(env / "bin" / "python"), "the test")
    here = msgspec.structs.replace(here, facts={**here.facts, used.key: used})
    with Store.open(tmp_path / "kept.sqlite") as store:
        started = "2026-01-01T00:00:00Z"
        store.add(
            Evidence("probe", "op", "1", Verdict.PASS, "", started, 1.0, "cpu", group="probe-20260101-000000-aaaa"),
            machine=here,
        )
    text = run("share", "--store", "kept.sqlite", cwd=tmp_path).stdout
    assert "| torch | 9.9.9 |" in text
    assert "not set" not in text
    assert "rocm.path" not in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--run", "probe-1"), "--archive FILE.zip"),
        (("--run", "probe-2", "--archive", "a.zip", "--store", "kept.sqlite"), "probe-1"),
        (("show", "kept.sqlite"), "is no archive of rocmend share"),
        (("show", "none.zip"), "[none.zip] there is no such file"),
        (("matrix", "--kind", "probes"), "probe"),
    ],
)
def test_what_cannot_be_shared_is_said(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    keep_probes(tmp_path / "kept.sqlite", 1)
    done = run("share", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
