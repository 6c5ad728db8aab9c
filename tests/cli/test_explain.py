"""``rocmend explain`` as a person meets it: the installed program, with pasted text, logs and programs."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmend.kb.entry import Status
from rocmend.kb.load import load_entries

from .conftest import Done

Run = Callable[..., Done]

PROGRAM = str(Path(sys.executable).with_name("rocmend"))
FAULT = "Memory access fault by GPU node-1 (Agent handle: 0x55f8b54eec30) on address 0x7f2a53193000. Reason: Unknown."


def piped(*words: str, data: bytes = b"") -> Done:
    done = subprocess.run([PROGRAM, "explain", *words], input=data, capture_output=True, check=False, timeout=120)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def entries_of(done: Done) -> list[str]:
    return [one["seen"]["entry_id"] for one in json.loads(done.out)["data"]["meanings"]]


def test_a_pasted_error_is_explained_with_what_to_do(installed: Run) -> None:
    done = installed("explain", "RuntimeError: HIP error: invalid device function", "--machine", "strix-halo")
    assert done.code == 1
    assert done.err == ""
    for part in (
        "1 known error in 1 line",
        "install-torch-lacks-gpu-target",
        "certain:",
        "Install a PyTorch that has code",
    ):
        assert part in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_machine_confirms_contradicts_and_names_what_is_behind_it(installed: Run) -> None:
    lines = "amdgpu 0000:c5:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE\nHIP error: invalid device function"
    done = json.loads(installed("explain", lines, "--machine", "strix-halo", "--json").out)
    here = {one["seen"]["entry_id"]: one for one in done["data"]["meanings"]}
    assert here["driver-dmesg-mes-hang"]["here"] == "confirmed"
    assert here["driver-dmesg-mes-hang"]["evidence"][0]["key"] == "dmesg.mes_hang"
    lacking = here["install-torch-lacks-gpu-target"]
    assert lacking["here"] == "contradicted"
    assert "install-torch-runs-through-override" in [cause["entry_id"] for cause in lacking["causes"]]


MES = "amdgpu: MES failed to respond to msg=REMOVE_QUEUE"


@pytest.mark.parametrize(
    ("line", "whose", "told"),
    [
        (f"[ 5233.902884] amdgpu 0000:c5:00.0: {MES}", "this-machine", "confirmed: the line is in its kernel log"),
        (f"[ 5233.902884] amdgpu 0000:03:00.0: {MES}", "another-machine", "the line is of another machine;"),
        (f"[   77.000001] amdgpu 0000:c5:00.0: {MES}", "unknown", "the kernel log of strix-halo has such lines"),
        (f"amdgpu 0000:c5:00.0: {MES}", "unknown", "the kernel log of strix-halo has such lines"),
    ],
)
def test_whose_log_a_line_is_of_is_said_as_far_as_it_can_be_told(
    installed: Run, line: str, whose: str, told: str
) -> None:
    done = json.loads(installed("explain", line, "--machine", "strix-halo", "--json").out)
    (found,) = done["data"]["meanings"]
    assert (found["here"], found["whose"]) == ("confirmed", whose)
    shown = re.sub(r" +", " ", installed("explain", line, "--machine", "strix-halo").out)
    assert told in shown


def test_a_log_is_read_from_a_file_from_standard_input_and_from_powershell(tmp_path: Path) -> None:
    log = f"starting\n\x1b[31m{FAULT}\x1b[0m\r\nended\n"
    path = tmp_path / "run log.txt"
    path.write_bytes(log.encode("utf-16"))
    for done in (
        piped("--json", data=log.encode()),
        piped("-", "--json", data=log.encode()),
        piped(str(path), "--json"),
    ):
        assert entries_of(done) == ["driver-dmesg-page-fault"]
        assert json.loads(done.out)["data"]["meanings"][0]["seen"]["number"] == 2


RING_RESET = """\
amdgpu 0000:c5:00.0: amdgpu: Ring gfx_0.0.0 reset failed
amdgpu 0000:c5:00.0: amdgpu: GPU reset begin!
"""


@pytest.mark.parametrize(
    ("log", "wanted", "unwanted"),
    [
        # https://github.com/ROCm/legacy-rocm-build/issues/6273
        (
            f"{RING_RESET}amdgpu 0000:c5:00.0: amdgpu: MODE2 reset\namdgpu: GPU reset succeeded, trying to resume\n",
            "driver-dmesg-reset-mode2",
            {"driver-dmesg-reset-failed", "driver-dmesg-reset-unfinished"},
        ),
        # https://github.com/pop-os/cosmic-epoch/issues/3764
        (
            f"{RING_RESET}amdgpu 0000:0c:00.0: BACO reset\namdgpu: GPU reset succeeded, trying to resume\n",
            "driver-dmesg-reset-other",
            {"driver-dmesg-reset-failed", "driver-dmesg-reset-unfinished"},
        ),
        (
            f"{RING_RESET}amdgpu 0000:0c:00.0: BACO reset\n",
            "driver-dmesg-reset-unfinished",
            {"driver-dmesg-reset-failed", "driver-dmesg-reset-recovered"},
        ),
        (
            f"{RING_RESET}amdgpu: MODE2 reset\n[drm] PCIE GART of 1024M enabled.\n",
            "driver-dmesg-reset-mode2",
            {"driver-dmesg-reset-unfinished"},
        ),
        (
            f"{RING_RESET}Linux version 6.17.0\n[drm] PCIE GART of 1024M enabled.\n",
            "driver-dmesg-reset-unfinished",
            {"driver-dmesg-reset-failed"},
        ),
        (
            "amdgpu 0000:04:00.0: [drm] device wedged, but no recovery needed\n",
            "driver-dmesg-reset-recovered",
            {"driver-dmesg-gpu-hang"},
        ),
        # https://github.com/ROCm/legacy-rocm-build/issues/5999
        (
            "amdgpu 0000:04:00.0: [drm] device wedged, but recovered through reset\n",
            "driver-dmesg-reset-recovered",
            {"driver-dmesg-gpu-hang"},
        ),
        # https://github.com/ROCm/legacy-rocm-build/issues/2820
        (RING_RESET, "driver-dmesg-reset-unfinished", {"driver-dmesg-reset-failed"}),
        (
            "[drm:mes_v11_0_submit_pkt_and_poll_completion [amdgpu]] *ERROR* MES failed to response msg=14\n",
            "driver-dmesg-mes-hang",
            set(),
        ),
    ],
    ids=["mode2", "baco", "tried", "resumed", "boot", "no-recovery", "wedged", "unfinished", "response"],
)
def test_how_a_reset_ended_is_told(log: str, wanted: str, unwanted: set[str]) -> None:
    found = entries_of(piped("--json", data=log.encode()))
    assert wanted in found
    assert not unwanted & set(found)


def test_a_healthy_boot_log_holds_nothing_but_possible_errors() -> None:
    log = (Path(__file__).parents[1] / "machine" / "healthy_boot.log").read_bytes()
    more = b"amdgpu 0000:03:00.0: amdgpu: PCIE atomic ops is not supported\n"
    more += b"nvme 0000:0a:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT device=0a:00.0 domain=0x0014]\n"
    assert piped("--json", data=log).code == 0
    found = json.loads(piped("--json", data=log + more).out)["data"]["meanings"]
    assert {one["seen"]["certainty"] for one in found} == {"possible"}
    assert len(found) == 2


NO_ERRORS = """\
the friendship out of memory lane
a relationship out of memory
Exception in thread "main" java.lang.OutOfMemoryError: Java heap space
Test that hip out of memory is handled ... ok
except MemoryError:
    except (RuntimeError, MemoryError) as error:
catch (const std::bad_alloc& error) {
fallback when Cannot allocate memory: using mmap instead
warning: failed to mlock 65536-byte buffer (after previously locking 0 bytes): Cannot allocate memory
Out of memory handling was rewritten
it says so where it failed to allocate buffer space
test_pip (x.T.test_pip) error: externally-managed-environment ... ok
-- Looking for librocblas.so - not found (optional)
checking for libhipfft.so... not found
-- libhiprtc.so could not be found (optional)
ERROR: Could not find a version that satisfies the requirement leftpad (from versions: none)
/usr/bin/ld: cannot find -lfoo: No such file or directory
"""


def test_lines_that_speak_of_errors_are_none() -> None:
    done = piped("--json", data=NO_ERRORS.encode())
    assert json.loads(done.out)["data"]["meanings"] == []
    assert done.code == 0


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array",
            "memory-host-out-of-memory",
        ),
        ("E   MemoryError", "memory-host-out-of-memory"),
        ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8 bytes", "memory-gpu-out-of-memory"),
        ("\tlibMIOpen.so.1 => not found", "packages-library-not-found"),
        ("/usr/bin/ld: cannot find -lamdhip64", "packages-library-not-found"),
        (
            "OutOfResources: out of resource: shared memory, Required: 81920, Hardware limit: 65536",
            "triton-out-of-shared-memory",
        ),
        ("clang++: error: invalid target ID 'gfx1151'; format is a processor name", "porting-compiler-lacks-target"),
        ("amdgpu: Failed to remove hardware queue from MES, doorbell=0x1802", "driver-dmesg-mes-hang"),
        ("[drm:amdgpu_dm_commit_planes [amdgpu]] *ERROR* Waiting for fences timed out!", "driver-dmesg-ring-timeout"),
        ("error: externally-managed-environment", "install-externally-managed"),
        (
            "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)",
            "install-pip-finds-no-torch",
        ),
    ],
)
def test_frequent_messages_are_known(line: str, wanted: str) -> None:
    assert entries_of(piped("--json", "--machine", "strix-halo", data=line.encode())) == [wanted]


def test_a_text_that_means_nothing_says_so_in_a_sentence(installed: Run) -> None:
    done = installed("explain", "hello", "world")
    assert done.code == 0
    assert "No error that rocmend knows is in this text." in done.out
    assert "rocmend kb search" in done.out


def test_what_is_suggested_is_no_archived_entry(installed: Run) -> None:
    title = "torch.compile takes 2 to 5 minutes on its first call"
    assert load_entries().entries["compile-time-torch-compile-default"].status is Status.ARCHIVED
    near = json.loads(installed("explain", title, "--json").out)["data"]["near"]
    assert near
    assert not set(near) - set(load_entries().current().entries)


def test_a_python_without_full_text_search_suggests_nothing(rocmend: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Without(sqlite3.Connection):
        def execute(self, sql: str, *more: Any) -> sqlite3.Cursor:
            if "fts5" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(sql, *more)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name, **more: connect(name, factory=Without, **more))
    done = rocmend("explain", "torch.compile", "is", "slow")
    assert (done.code, done.err) == (0, "")
    assert "No error that rocmend knows is in this text." in done.out
    assert "has no full-text search" in rocmend("kb", "search", "hang").err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "the text is empty"),
        (("no/such/file.log",), "There is no such file"),
        (("red.txt", "m1.log"), "[red.txt, m1.log] There is no such file"),
        (("/dev/zero",), "is neither a file nor a pipe"),
        (("/dev",), "is a folder"),
        (("",), "the text is empty"),
        (("gfx1151-cwsr-save-area-too-small",), "rocmend kb show gfx1151-cwsr-save-area-too-small"),
        (("--run",), "no program was named"),
        (("--run", "no-such-program-at-all"), "no-such-program-at-all"),
        (("--time-limit", "5s", "text"), "--run was not given"),
    ],
)
def test_mistakes_are_told(words: tuple[str, ...], told: str) -> None:
    done = piped(*words)
    assert done.code == 2
    assert told in done.err
    assert "Traceback" not in done.err


def test_a_program_is_run_shown_and_explained() -> None:
    script = f"print('working', flush=True); print({FAULT!r}); raise SystemExit(3)"
    done = piped("--json", "--run", sys.executable, "-c", script)
    data = json.loads(done.out)["data"]
    assert done.code == 1
    assert "working" in done.err
    assert FAULT in done.err
    assert data["run"]["exit_code"] == 3
    assert entries_of(done)[0] == "driver-dmesg-page-fault"
    assert piped("--run", sys.executable, "-c", "print('fine')").code == 0


@pytest.mark.parametrize(
    ("printed", "code", "told"),
    [(f"x\n{FAULT}\n", 1, "driver-dmesg-page-fault"), ("fine", 0, "No error that rocmend knows"), ("", 2, "is empty")],
)
def test_a_command_is_read_through_the_pipe_that_the_shell_names(printed: str, code: int, told: str) -> None:
    words = ["bash", "-c", f"exec {shlex.quote(PROGRAM)} explain <(printf %s {shlex.quote(printed)})"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code
    assert told in done.stdout + done.stderr


def test_files_are_read_one_at_a_time(tmp_path: Path) -> None:
    log = tmp_path / "red.txt"
    log.write_text(FAULT)
    assert "is a file among other words" in piped(str(log), "GPU", "hang").err
    assert entries_of(piped(str(log), "--json")) == ["driver-dmesg-page-fault"]


@pytest.mark.parametrize("output_format", ["human", "md", "json"])
def test_a_report_that_is_explained_quotes_its_errors_and_has_none(output_format: str) -> None:
    """What a person was told and pastes again is no surer than a text that names the error."""
    log = f"HIP error: invalid device function\nRuntimeError: No HIP GPUs are available\n{FAULT}\n"
    report = piped("--target", "gfx1201", "--format", output_format, data=log.encode()).out
    again = json.loads(piped("--json", "--target", "gfx1201", data=report.encode()).out)["data"]["meanings"]
    assert [one["seen"]["entry_id"] for one in again] == [
        one["seen"]["entry_id"]
        for one in json.loads(piped("--json", "--target", "gfx1201", data=log.encode()).out)["data"]["meanings"]
    ]
    assert {one["seen"]["certainty"] for one in again} == {"possible"}
    assert all(one["seen"]["mention"] for one in again)
    shown = " ".join(one["seen"]["line"] for one in again)
    for line in log.splitlines():
        assert line in shown
    after = json.loads(piped("--json", "--target", "gfx1201", data=f"{report}\n{FAULT}\n".encode()).out)
    (fault,) = [one for one in after["data"]["meanings"] if one["seen"]["entry_id"] == "driver-dmesg-page-fault"]
    assert fault["seen"]["certainty"] == "certain"


@pytest.mark.parametrize(
    "line",
    [
        "Out of GPU memory: HIP out of memory, cudaMalloc failed, failed to allocate a buffer",
        '# clang: "cannot find ROCm device library"',
        "| memory-gpu-out-of-memory | Out of GPU memory: HIP out of memory, cudaMalloc failed | see |",
        'faults from the compute pipe, "MES failed to respond to msg=REMOVE_QUEUE"',
        "# Set TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1. Compare the loss or the output with and without it",
    ],
)
def test_a_sentence_of_rocmends_is_no_evidence(line: str) -> None:
    assert entries_of(piped("--json", data=f"first\n{line}\n".encode())) == []


def test_an_error_that_a_folder_is_called_like_is_a_text(installed: Run, tmp_path: Path) -> None:
    (tmp_path / "ErrorDeviceLost").mkdir()
    done = installed("explain", "ErrorDeviceLost", "--json", cwd=tmp_path)
    assert (done.code, done.err) == (1, "")
    assert entries_of(done)


@pytest.mark.parametrize(("printed", "found"), [("fine", []), (FAULT, ["driver-dmesg-page-fault"])])
def test_a_program_that_is_interrupted_is_explained_and_said_to_be(printed: str, found: list[str]) -> None:
    script = f"import time; print({printed!r}, flush=True); time.sleep(60)"
    command = [PROGRAM, "explain", "--json", "--machine", "strix-halo", "--run", sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert printed in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    told = json.loads(out)
    assert (process.returncode, told["exit_code"], told["status"]) == (130, 130, "interrupted")
    assert told["data"]["run"] == {"interrupted": True}
    assert [one["seen"]["entry_id"] for one in told["data"]["meanings"]] == found


def test_a_program_is_ended_at_its_time_limit_with_all_that_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = f"""
import subprocess, time
child = subprocess.Popen(["sleep", "60"])
open({str(mark)!r}, "w").write(str(child.pid))
time.sleep(60)
"""
    begin = time.monotonic()
    done = piped("--time-limit", "1s", "--run", sys.executable, "-c", script)
    assert time.monotonic() - begin < 30
    assert "ended at its time limit" in done.out
    assert done.code == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("ErrorDeviceLost", "vulkan-device-lost"),
        ("invalid device function", "install-torch-lacks-gpu-target"),
        ("MES failed to respond", "driver-dmesg-mes-hang"),
        ("ring timeout", "driver-dmesg-ring-timeout"),
        ("TensileLibrary.dat", "libraries-rocblas-no-tensile-library"),
        ("rocBLAS error", "libraries-rocblas-no-tensile-library"),
        ("amdgpu-dkms failed to build", "driver-dkms-build-fails"),
    ],
)
def test_a_part_of_an_error_is_explained_and_said_to_be_a_part(text: str, wanted: str) -> None:
    one, *more = json.loads(piped(text, "--machine", "strix-halo", "--json").out)["data"]["meanings"]
    assert len(more) <= 1
    assert one["seen"]["entry_id"] == wanted
    assert one["seen"]["part"]
    assert one["seen"]["certainty"] in {"likely", "possible"}


def test_every_example_of_the_help_does_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "kernel-log.txt").write_text(f"{FAULT}\n")
    (tmp_path / "train.py").write_text(f"print({FAULT!r}); raise SystemExit(1)")
    (tmp_path / "python").symlink_to(sys.executable)
    lines = piped("--help").out.partition("Examples:")[2].splitlines()
    examples = [line.strip() for line in lines if line.strip().startswith("rocmend explain")]
    assert len(examples) == 4
    for line in examples:
        words = [PROGRAM, *shlex.split(line)[1:]]
        environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=False, timeout=120)
        assert done.returncode == 1, line
        assert b"known error" in done.stdout, line


def test_the_title_says_what_the_line_says_unless_the_machine_confirms_more(installed: Run) -> None:
    title = "no safe override can supply it"
    done = installed("explain", "HIP error: invalid device function", "--machine", "strix-halo")
    head = done.out.splitlines()[3]
    assert head == "The program holds no machine code for this GPU."
    assert title not in head
    assert "not confirmed" in done.out
    for entry in load_entries().entries.values():
        if entry.when.strip():
            assert all(one.meaning for one in entry.signature), entry.id


def test_a_program_that_ends_well_is_not_said_to_have_an_error() -> None:
    done = piped("--run", sys.executable, "-c", "print('fine')")
    assert "exit status 0" in done.out
    assert "Paste the first error" not in done.out


def test_a_byte_order_mark_is_no_part_of_the_line(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-8-sig"):
        path = tmp_path / encoding
        path.write_bytes(FAULT.encode(encoding))
        (one,) = json.loads(piped(str(path), "--json").out)["data"]["meanings"]
        assert one["seen"]["line"].startswith("Memory access fault")


def test_values_that_are_known_stand_in_the_commands(installed: Run) -> None:
    done = installed("explain", "Found no NVIDIA driver on your system", "--target", "gfx1201")
    assert "rocmend wheel choose torch --target gfx1201" in done.out
    assert "--native --python python3 --target gfx1201" in done.out
    assert "GFX_TARGET" not in done.out
    assert "unknown" not in done.out
    assert "on gfx1201" in done.out
    done = installed("explain", "Torch not compiled with CUDA enabled", "--machine", "rx-7900-xtx")
    assert "rocmend wheel choose torch --machine rx-7900-xtx" in done.out
    assert "--target gfx1100" in done.out


def test_the_steps_of_doctors_plan_stand_in_place_of_what_it_contradicts(installed: Run) -> None:
    plan = json.loads(installed("doctor", "--machine", "strix-halo", "--json").out)["data"]["plan"]["steps"]
    number = {step["action"]: step["number"] for step in plan}
    for text, actions, unwanted in (
        ("HIP error: invalid device function", ("install-native-torch",), "wheel choose"),
        ("vk::Queue::submit: ErrorDeviceLost", ("set-variable:VK_LOADER_DRIVERS_SELECT=radeon_icd*",), "remove amdvlk"),
        ("amdgpu: MES failed to respond to msg=REMOVE_QUEUE", ("save-kernel-log", "update-gpu-firmware"), "dmesg >"),
    ):
        done = installed("explain", text, "--machine", "strix-halo")
        assert "of rocmend doctor --machine strix-halo:" in done.out
        assert unwanted not in done.out
        for action in actions:
            assert f"- step {number[action]}: " in done.out, action


def test_a_gpu_without_a_driver_has_doctors_steps_too(installed: Run) -> None:
    out = installed("explain", "ROCk module is NOT loaded, possibly no GPU devices", "--machine", "no-driver").out
    assert "Do → step" in out
    assert "sudo modprobe amdgpu" not in out


def test_too_little_gpu_memory_is_led_by_the_limit_that_doctor_raises(installed: Run) -> None:
    out = installed("explain", "HIP out of memory", "--machine", "strix-halo").out
    assert "memory-half-of-ram-visible" in out
    assert 0 < out.index("ttm.pages_limit=") < out.index("Use a smaller model")


def test_a_line_is_no_surer_than_it_is(installed: Run) -> None:
    done = json.loads(piped("rocBLAS error: Could not initialize Tensile host: No devices found", "--json").out)
    assert [one["seen"]["entry_id"] for one in done["data"]["meanings"]] == ["pytorch-no-hip-gpus"]
    out = installed("explain", "out of memory").out
    assert "possible: " in out
    assert "the host's or the GPU's" in out
    lines = "Found no NVIDIA driver on your system"
    (one,) = json.loads(installed("explain", lines, "--machine", "cuda-torch-on-amd", "--json").out)["data"]["meanings"]
    assert (one["seen"]["entry_id"], one["here"]) == ("porting-torch-overwritten-by-pip", "confirmed")


def test_the_first_line_is_named_and_what_a_later_one_says_more_surely() -> None:
    error = "HIP error: invalid device function"
    log = f"a\ncomfyui | !!! {error}\n{FAULT}\nRuntimeError: {error}\n{FAULT}\n"
    found = json.loads(piped("--json", "--machine", "strix-halo", data=log.encode()).out)["data"]["meanings"]
    seen = {one["seen"]["entry_id"]: one["seen"] for one in found}
    assert seen["driver-dmesg-page-fault"]["number"] == 3
    lacking = seen["install-torch-lacks-gpu-target"]
    assert (lacking["number"], lacking["surest"], lacking["certainty"]) == (2, 4, "certain")
    assert lacking["line"].startswith("comfyui")
    out = piped("--machine", "strix-halo", data=log.encode()).out
    assert "certain: line 4 says so" in out


@pytest.mark.parametrize(
    "line",
    [
        "dmesg | grep -q 'MES failed to respond to msg=' && exit 1",
        'echo "MES failed to respond to msg=REMOVE_QUEUE"',
        '"MES failed to respond to msg=REMOVE_QUEUE" means that the firmware did not answer',
    ],
)
def test_a_line_that_names_an_error_is_none_for_sure(line: str) -> None:
    (one,) = json.loads(piped("--json", data=f"#!/bin/sh\n{line}\n".encode()).out)["data"]["meanings"]
    assert one["seen"]["certainty"] == "possible"
    assert one["seen"]["mention"]


def test_what_is_to_be_done_for_several_errors_is_said_once() -> None:
    log = "amdgpu: MES failed to respond to msg=REMOVE_QUEUE\namdgpu: MODE1 reset\n"
    for machine in ("--target", "gfx1201"), ("--machine", "rx-7900-xtx"), ("--machine", "strix-halo"):
        out = piped(*machine, data=log.encode()).out
        assert "2 known errors" in out
        assert out.count("Save the kernel log") == 1
        assert len(re.findall(r"(?:Do:|step \d+:) Reboot", out)) == 1


def test_junk_long_lines_and_floods_are_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "log"
    junk = bytes(range(256)) * 2000
    with path.open("wb") as file:
        for _ in range(4):
            file.write(junk + b"x" * 3_000_000 + FAULT.encode() + b"\n")
        file.write(f"{FAULT}\n".encode() * 50_000)
    code = f"""
import sys
sys.argv = ["rocmend", "explain", {str(path)!r}, "--json", "--machine", "strix-halo"]
from rocmend.cli.main import main
try:
    main()
finally:
    # Of this program alone: getrusage also counts the one that started it.
    (peak,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    sys.stderr.write(str(int(peak.split()[1]) >> 10))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    (found,) = json.loads(done.stdout)["data"]["meanings"]
    assert found["seen"]["entry_id"] == "driver-dmesg-page-fault"
    assert found["seen"]["at_least"]
    assert len(found["seen"]["line"]) <= 400
    assert int(done.stderr.splitlines()[-1]) < 150


def test_what_is_written_is_redacted(tmp_path: Path) -> None:
    line = "rocBLAS error: Cannot read /home/anna/venv/lib/rocblas/library/TensileLibrary.dat: Illegal seek"
    done = piped(line, "--json")
    assert "anna" not in done.out
    assert entries_of(done) == ["libraries-rocblas-no-tensile-library"]
    assert "anna" in piped(line, "--json", "--no-redact").out
    del tmp_path


@pytest.mark.parametrize("output_format", ["json", "md"])
def test_a_host_is_gone_from_all_lines_whatever_it_stands_in(output_format: str) -> None:
    rccl = "towerly7:412:412 [0] HSA_STATUS_ERROR_OUT_OF_RESOURCES"
    text = f"{FAULT} towerly7\n{rccl}\nNov 05 08:56:22 towerly7 kernel: amdgpu: GPU reset begin!\n"
    done = piped("--machine", "strix-halo", "--format", output_format, data=text.encode())
    assert "host1" in done.out
    assert "towerly7" not in done.out
    assert "towerly7" in piped("--machine", "strix-halo", "--json", "--no-redact", data=text.encode()).out


def test_what_helps_other_gpus_is_not_advised(installed: Run) -> None:
    entry = load_entries().entries["attention-aotriton-experimental-switch"]
    line = entry.signature[0].lines[0].text
    assert "gfx942" not in entry.scope.gfx
    for target, count in (("gfx942", 0), ("gfx1100", 1)):
        (found,) = [
            one
            for one in json.loads(installed("explain", line, "--target", target, "--json").out)["data"]["meanings"]
            if one["seen"]["entry_id"] == entry.id
        ]
        assert min(1, len(found.get("remedies", []))) == count
    shown = " ".join(installed("explain", line, "--target", "gfx942").out.split())
    assert "What helps against it is for other GPUs" in shown


def test_every_line_of_every_signature_is_explained_by_its_entry() -> None:
    known: list[tuple[str, str]] = [
        (entry.id, line.text)
        for entry in load_entries().entries.values()
        for one in entry.signature
        for line in one.lines
        if entry.id != "porting-torch-overwritten-by-pip"  # its line is another's, too: the machine tells which
    ]
    known.sort(key=lambda one: one[0] == "driver-dmesg-reset-unfinished")  # a reset that ended is none of its lines
    text = "\n".join(line for _, line in known).encode()
    found: Any = entries_of(piped("--json", "--machine", "strix-halo", data=text))
    assert set(found) == {entry_id for entry_id, _ in known}
