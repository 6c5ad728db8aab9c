"""Reading a project: in processes that may fail, with a cache that may be damaged."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.private import private_folder
from rocmend.port import cache as cache_module
from rocmend.port import pool
from rocmend.port.analyse import analyse, read
from rocmend.port.records import Analysis, Outcome

PYTHON = 'import torch\nf = torch.compile(g, mode="max-autotune")\n'


def skipped(analysis: Analysis) -> dict[str, str]:
    return {file.path: file.skipped for file in analysis.files if file.skipped}


def found(analysis: Analysis) -> list[tuple[str, str]]:
    return sorted({(issue.path, issue.rule) for issue in analysis.issues})


def test_a_project_is_read_by_all_its_languages(project: Path) -> None:
    analysis = analyse(project, targets=("gfx1100",))
    assert ("pkg/train.py", "PY02") in found(analysis)
    assert ("csrc/total.cu", "CU01") in found(analysis)
    assert analysis.looked_at == {"cuda": 1, "python": 5}
    assert analysis.lines == sum(
        len((project / path).read_bytes().splitlines())
        for path in ("pkg/train.py", "pkg/deep/model.py", "script.py", "csrc/total.cu")
    )
    assert analysis.targets == ("gfx1100",)
    assert not skipped(analysis)


def test_processes_find_what_one_finds(project: Path) -> None:
    alone = analyse(project, cache=False)
    several = analyse(project, cache=False, jobs=2)
    assert several.files == alone.files
    assert several.lines == alone.lines


def test_one_file_is_a_project_of_one(project: Path) -> None:
    analysis = analyse(project / "pkg" / "train.py")
    assert analysis.root == str(project / "pkg")
    assert found(analysis) == [("train.py", "PY02")]


@pytest.mark.slow
def test_rules_are_chosen_by_id_and_by_beginning(project: Path) -> None:
    every = {rule for _, rule in found(analyse(project))}
    of_cuda = {rule for rule in every if rule.startswith("CU")}
    assert {"CU01", "PY02"} <= every
    assert {rule for _, rule in found(analyse(project, select=("CU",)))} == of_cuda
    assert {rule for _, rule in found(analyse(project, ignore=("cu", "PY02")))} == every - of_cuda - {"PY02"}
    with pytest.raises(UsageError, match="ZZ99"):
        analyse(project, select=("ZZ99",))


def test_settings_of_the_project_hold(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.rocmend.port]\nexclude = ["pkg/*"]\nignore = ["CU"]\nmax-file-bytes = 100\n', encoding="utf-8"
    )
    analysis = analyse(project)
    assert found(analysis) == [("script.py", "PY02")]
    assert "100" in skipped(analysis)["csrc/total.cu"]


@pytest.mark.parametrize(
    "text", ["[tool.rocmend.port]\nexlude = []\n", "[tool.rocmend.port]\nselect = 3\n", "= no TOML"]
)
def test_wrong_settings_are_told(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"pyproject\.toml"):
        analyse(project)


@pytest.mark.parametrize("jobs", [None, 2])
def test_hostile_files_are_skipped_with_a_reason(tmp_path: Path, jobs: int | None) -> None:
    files = {
        "syntax.py": b'mode="max-autotune"\ndef f(:\n',
        "coding.py": b'# coding: no-such\ntorch.compile(mode="max-autotune")\n',
        "binary.py": b"\0\1\2" * 100,
        "deep.py": b'mode="max-autotune"\n' + b"(" * 5000 + b")" * 5000,
        "wide.cu": b"\xff\xfe_\0_\0g\0l\0o\0b\0a\0l\0_\0_\0",
        "good.py": PYTHON.encode(),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    analysis = analyse(tmp_path, jobs=jobs)
    assert set(skipped(analysis)) == set(files) - {"good.py"}
    assert ("good.py", "PY02") in found(analysis)
    assert "binary" in skipped(analysis)["binary.py"]


@pytest.mark.parametrize("jobs", [None, 2])
def test_a_large_file_is_skipped_without_being_read(tmp_path: Path, jobs: int | None) -> None:
    with (tmp_path / "generated.py").open("wb") as file:
        file.truncate(50 << 20)
    (tmp_path / "good.py").write_text(PYTHON, encoding="utf-8")
    analysis = analyse(tmp_path, jobs=jobs)
    assert "limit" in skipped(analysis)["generated.py"]
    assert found(analysis) == [("good.py", "PY02")]


@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbf" + PYTHON.encode(),
        PYTHON.replace("\n", "\r\n").encode(),
        b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + PYTHON.encode(),
    ],
)
def test_places_are_bytes_of_the_file_in_any_encoding(source: bytes) -> None:
    issue = next(issue for issue in read("a.py", source).issues if issue.rule == "PY02")
    assert b"max-autotune" in source[issue.start : issue.end]
    assert issue.line == source[: issue.start].count(b"\n") + 1


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("  # rocmend: ignore[PY02] measured, it is faster here", 0),
        ("  # rocmend: ignore[cu01, py02]", 0),
        ("  # rocmend: ignore[PY01]", 1),
        ("  # rocmend ignore[PY02]", 1),
    ],
)
def test_a_comment_suppresses_its_own_line(comment: str, left: int) -> None:
    source = PYTHON.replace('")\n', f'"){comment}\n')
    assert sum(issue.rule == "PY02" for issue in read("a.py", source.encode()).issues) == left


def test_a_comment_of_its_own_suppresses_the_next_line_only() -> None:
    mark, call = "# rocmend: ignore[PY02] reason\n", 'torch.compile(g, mode="max-autotune")\n'
    lines = [issue.line for issue in read("a.py", f"import torch\n{mark}{call}{call}".encode()).issues]
    assert set(lines) == {4}


def test_places_of_which_the_same_is_said_are_one_issue() -> None:
    source = b"import cutlass\nimport cutlass.cute as cute\nimport cuda.bindings.driver\nfrom cutlass import Int32\n"
    issues = [(issue.line, issue.message) for issue in read("a.py", source).issues if issue.rule == "PY36"]
    assert issues == [
        (1, "cutlass supports NVIDIA GPUs only. (2 more in this file.)"),
        (3, "cuda.bindings supports NVIDIA GPUs only"),
    ]
    marked = source.replace(b"cutlass\n", b"cutlass  # rocmend: ignore[PY36] its types\n", 1)
    again = [(issue.line, issue.message) for issue in read("a.py", marked).issues if issue.rule == "PY36"]
    assert again[0] == (2, "cutlass supports NVIDIA GPUs only. (1 more in this file.)")


def test_dynamic_lds_of_unknown_size_is_one_note_a_file_and_one_too_large_is_open_at_each_place() -> None:
    call = "  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, {});\n"
    source = "void f(int n) {\n" + call.format("n") * 3 + call.format("98304") * 2 + "}\n"
    issues = [one for one in read("a.cu", source.encode()).issues if one.rule == "CU20"]
    assert [(one.line, one.outcome) for one in issues] == [
        (2, Outcome.NOTE),
        (5, Outcome.MANUAL),
        (6, Outcome.MANUAL),
    ]
    assert issues[0].message.endswith("(2 more in this file.)")


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        (
            "(__CUDACC_VER_MAJOR__ >= 12) && defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900)",
            "(__CUDACC_VER_MAJOR__ >= 12) && defined(__CUDA_ARCH__) && (__CUDA_ARCH__ >= 900)",
        ),
        (
            "__CUDA_ARCH__ >= 800 && " + " && ".join(f"defined(FEATURE_{n})" for n in range(20)),
            "defined(FEATURE_5) ...",
        ),
    ],
)
def test_a_condition_is_cut_before_an_operand(condition: str, shown: str) -> None:
    source = f"__global__ void k(int *p) {{\n#if {condition}\n  *p = 1;\n#else\n  *p = 2;\n#endif\n}}\n"
    (issue,) = [one for one in read("a.cu", source.encode()).issues if one.rule == "CU15"]
    assert issue.message.endswith(shown)


def test_places_that_are_rewritten_stay_issues_of_their_own() -> None:
    source = b"import torch\n\na = x.to(torch.float8_e4m3fn)\nb = y.to(torch.float8_e4m3fn)\n"
    assert [issue.line for issue in read("a.py", source).issues if issue.rule == "PY13"] == [3, 4]


def test_the_projects_own_packages_are_no_libraries_for_cuda(tmp_path: Path) -> None:
    use = "import bitsandbytes\nfrom flash_attn import flash_attn_func\n"
    for name in ("bitsandbytes/__init__.py", "bitsandbytes/optim.py", "tests/test_all.py", "models/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(use, encoding="utf-8")
    (tmp_path / "models" / "flash_attn").mkdir()
    (tmp_path / "models" / "flash_attn" / "__init__.py").touch()  # a part of another package: no flash_attn
    assert {rule for _, rule in found(analyse(tmp_path, jobs=1))} == {"PY12"}


def test_switches_that_a_test_looks_at_are_left_alone() -> None:
    source = b"""import torch


def test_restored():
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    restore()
    assert not torch.backends.cudnn.benchmark
"""
    assert not read("tests/test_restore.py", source).issues
    assert {issue.rule for issue in read("package/restore.py", source).issues} == {"PY09", "PY10"}


def test_suppressed_issues_are_counted(project: Path) -> None:
    path = project / "csrc" / "total.cu"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("offset);\n", "offset);  // rocmend: ignore[CU01] wave32 only\n"), encoding="utf-8")
    analysis = analyse(project)
    assert not any(rule == "CU01" for _, rule in found(analysis))
    assert analysis.suppressed == 1


def old(root: Path) -> None:
    """Make files old enough for their times to be believed."""
    for path in root.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(10**18, 10**18))


@pytest.fixture
def steady_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files' change times cannot be set; here a file of a second ago is old enough."""
    monkeypatch.setattr(cache_module, "_RACY_NS", 0)


@pytest.mark.usefixtures("steady_times")
def test_a_second_run_knows_everything(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = analyse(project)
    monkeypatch.setattr(pool, "_COMMAND", ["/does/not/exist"])  # nothing may be read
    second = analyse(project)
    assert second.files == first.files
    assert (second.lines, second.looked_at) == (first.lines, first.looked_at)
    assert second.from_cache == 6 + 1  # what no rule reads is known too


@pytest.mark.usefixtures("steady_times")
def test_a_changed_file_is_read_again(project: Path) -> None:
    analyse(project)
    path = project / "pkg" / "train.py"
    path.write_text(path.read_text(encoding="utf-8").replace("max-autotune", "default-autot"), encoding="utf-8")
    assert ("pkg/train.py", "PY02") not in found(analyse(project))


def test_a_file_written_as_it_was_read_is_looked_at_again(project: Path) -> None:
    """Same size, and times that cannot tell: its content decides."""
    analyse(project)
    path = project / "pkg" / "train.py"
    times = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("max-autotune", "default-autot"), encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert ("pkg/train.py", "PY02") not in found(analyse(project))


@pytest.mark.usefixtures("steady_times")
@pytest.mark.slow
def test_a_touched_file_is_known_by_its_content(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = analyse(project)
    old(project)
    dishonest = "from rocmend.port import look, worker; look.findings = None; worker.main()"  # nothing may be parsed
    monkeypatch.setattr(pool, "_COMMAND", [sys.executable, "-c", dishonest])
    second = analyse(project)
    assert second.files == first.files
    assert second.from_cache == 7


@pytest.mark.slow
@pytest.mark.parametrize("harm", [lambda _: b"", lambda data: data[:-1], lambda data: data[:60] + b"\xff" + data[61:]])
def test_a_damaged_cache_is_built_anew(project: Path, harm: object) -> None:
    assert callable(harm)
    first = analyse(project)
    (path,) = private_folder("port").glob("*.bin")
    path.write_bytes(harm(path.read_bytes()))
    second = analyse(project)
    assert second.files == first.files
    assert any("damaged" in note for note in second.notes)
    assert not analyse(project).notes


@pytest.mark.slow
def test_other_rules_make_a_cache_void(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analyse(project)
    monkeypatch.setattr(cache_module, "rules_fingerprint", lambda: "other")
    assert analyse(project).from_cache == 0


def test_a_cache_that_cannot_be_written_is_told(project: Path, own_cache: Path) -> None:
    (own_cache / "rocmend").write_text("in the way", encoding="utf-8")
    analysis = analyse(project)
    assert any("cannot be" in note for note in analysis.notes)
    assert ("pkg/train.py", "PY02") in found(analysis)


def test_progress_ends_at_the_total(project: Path) -> None:
    told: list[tuple[int, int]] = []
    analyse(project, jobs=2, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (7, 7)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


WORKER = """
    import os, signal, sys, time
    from rocmend.port import look, worker
    honest = look.look
    def dishonest(root, task, most):
        if "crash" in task.path:
            os.kill(os.getpid(), signal.SIGSEGV)
        if "leave" in task.path:
            os._exit(7)
        if "hang" in task.path:
            time.sleep(600)
        if "memory" in task.path:
            look.findings = lambda *_: bytearray(1 << 40)
        return honest(root, task, most)
    worker.look = dishonest
    sys.exit(worker.main())
"""


@pytest.fixture
def failing_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_COMMAND", [sys.executable, "-c", textwrap.dedent(WORKER)])


@pytest.mark.slow
@pytest.mark.usefixtures("failing_workers")
def test_a_file_that_ends_its_process_costs_itself(tmp_path: Path) -> None:
    for name in ("crash1", "crash2", "leave", "memory", *"abcdef"):
        (tmp_path / f"{name}.py").write_text(PYTHON, encoding="utf-8")
    analysis = analyse(tmp_path, jobs=2)
    assert found(analysis) == [(f"{name}.py", "PY02") for name in "abcdef"]
    reasons = skipped(analysis)
    assert set(reasons) == {"crash1.py", "crash2.py", "leave.py", "memory.py"}
    assert "SIGSEGV" in reasons["crash1.py"]
    assert "exit status 7" in reasons["leave.py"]
    assert "memory" in reasons["memory.py"]


@pytest.mark.usefixtures("failing_workers")
@pytest.mark.slow
def test_a_file_that_takes_too_long_is_skipped_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "_RACY_NS", 0)
    (tmp_path / "pyproject.toml").write_text("[tool.rocmend.port]\ntime-limit-s = 3.0\n", encoding="utf-8")
    for name in ("hang", "a", "b"):
        (tmp_path / f"{name}.py").write_text(PYTHON, encoding="utf-8")
    first = analyse(tmp_path, jobs=2)
    assert set(skipped(first)) == {"hang.py"}
    assert "longer than 3 s" in skipped(first)["hang.py"]
    monkeypatch.setattr(pool, "_COMMAND", ["/does/not/exist"])
    assert skipped(analyse(tmp_path, jobs=2)) == skipped(first)


@pytest.mark.slow
@pytest.mark.usefixtures("failing_workers")
def test_files_that_the_projects_time_is_used_up_before_are_left_out(tmp_path: Path) -> None:
    limits = "time-limit-s = 600\nproject-time-limit-s = 2.0\n"
    (tmp_path / "pyproject.toml").write_text(f"[tool.rocmend.port]\n{limits}", encoding="utf-8")
    for name in ("hang1.py", "hang2.py", "hang3.sh"):
        (tmp_path / name).write_text(PYTHON * 2, encoding="utf-8")  # larger, and so the first
    (tmp_path / "a.py").write_text(PYTHON, encoding="utf-8")
    first = analyse(tmp_path, jobs=2)
    assert set(skipped(first).values()) == {"not read: the project's time limit was reached"}
    assert {"hang1.py", "hang2.py", "a.py"} <= set(skipped(first))
    assert any("2 s" in note and "project-time-limit-s" in note for note in first.notes)
    for path in tmp_path.glob("hang*"):
        path.unlink()
    assert found(analyse(tmp_path, jobs=2)) == [("a.py", "PY02")], "what was left out is read the next time"


def test_processes_that_do_not_start_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_COMMAND", [sys.executable, "-c", "import sys; sys.exit(3)"])
    (tmp_path / "a.py").write_text(PYTHON, encoding="utf-8")
    with pytest.raises(RocmendError, match="did not start"):
        analyse(tmp_path, jobs=1)


def test_a_project_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        analyse(tmp_path / "nowhere")


def test_issues_of_a_kernel_are_rewritten_or_for_a_person(project: Path) -> None:
    outcomes = {issue.outcome for issue in analyse(project).issues}
    assert outcomes & {Outcome.AUTO, Outcome.SUGGEST, Outcome.MANUAL}


def test_answers_that_come_together_are_all_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer is empty; the second may be there before it was read."""
    together = """
        import io, os, sys
        from rocmend.port import worker
        honest, held = worker.write_frame, []
        def later(stream, payload):
            frame = io.BytesIO()
            honest(frame, payload)
            held.append(frame.getvalue())
            if len(held) > 1:
                os.write(stream.fileno(), b"".join(held))
                held.clear()
        worker.write_frame = later
        sys.exit(worker.main())
    """
    monkeypatch.setattr(pool, "_COMMAND", [sys.executable, "-c", textwrap.dedent(together)])
    (tmp_path / "a.py").write_text(PYTHON, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(
        "[tool.rocmend.port]\ntime-limit-s = 20.0\nignore = ['DP']\n", encoding="utf-8"
    )
    assert found(analyse(tmp_path / "a.py", jobs=1)) == [("a.py", "PY02")]


def test_an_interrupted_port_is_told(project: Path) -> None:
    (project / ".rocmend" / "port" / "transaction").mkdir(parents=True)
    assert any("interrupted" in note for note in analyse(project).notes)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux ends children with their parent")
def test_no_worker_outlives_a_killed_run(tmp_path: Path) -> None:
    worker = textwrap.dedent("""\
        import os, time
        from rocmend.port import worker
        def stuck(*_):
            print("pid", os.getpid(), file=open(os.environ["SEEN"], "w"), flush=True)
            time.sleep(60)
        worker.look = stuck
        worker.main()
    """)
    parent = textwrap.dedent("""\
        import sys
        from pathlib import Path
        from rocmend.port import pool
        pool._COMMAND = (sys.executable, "-c", sys.argv[2])
        from rocmend.port.analyse import analyse
        analyse(Path(sys.argv[1]), targets=("gfx1100",))
    """)
    (tmp_path / "a.py").write_text(PYTHON)
    seen = tmp_path / "seen"
    env = os.environ | {"SEEN": str(seen), "ROCMEND_CACHE_HOME": str(tmp_path / "cache")}
    ran = subprocess.Popen([sys.executable, "-c", parent, tmp_path, worker], env=env, start_new_session=True)
    try:
        wait_for(lambda: seen.exists() and seen.read_text().endswith("\n"))
        pid = int(seen.read_text().split()[1])
        ran.kill()
        ran.wait()
        wait_for(lambda: not Path(f"/proc/{pid}").exists())
    finally:
        ran.kill()
        ran.wait()


def wait_for(condition: Callable[[], bool], time_limit_s: float = 30.0) -> None:
    end = time.monotonic() + time_limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
