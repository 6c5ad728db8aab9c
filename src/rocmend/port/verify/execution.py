"""Executing a project's code: only where it was asked for, with a clean environment, within limits.

A project is a stranger's. Its modules, tests and programs run as the user, or in a container where one is named; in a
session of their own under the runner's warden, which ends all that they leave behind. A container keeps them from the
user's files and the network; without one, the limits protect the machine, and not what the user can read.
"""

from __future__ import annotations

import os
import re
import shlex
import site
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from rocmend.core.errors import UsageError
from rocmend.core.host_memory import total_bytes
from rocmend.core.secrets import holds_token, is_secret_variable
from rocmend.core.supervise import CommandResult, Ending
from rocmend.core.units import size_text
from rocmend.core.verdict import Verdict
from rocmend.runner.events import Event, EventKind
from rocmend.runner.remote.engine import Engine
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Container, Limits, Local, Mount, Where

__all__ = ["Execution", "Step", "clean_environment", "describe", "execute_code", "request_text"]

OUTPUT_BYTES = 4 << 20
FILE_BYTES = 16 << 30
PROCESSES = 4096
MEMORY_SHARE = 0.75
"""Of the machine's memory, that the processes of one command may hold."""
GRACE_S = 2.0

_SIGNALLED = 128
"""A container's exit status is above this by a signal's number."""

_DEVICES = ("/dev/kfd", "/dev/dri")
_KEPT = frozenset({
    "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CC", "CXX",
    "PYTHONPATH", "PYTHONUSERBASE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
})  # fmt: skip
_BEGINNINGS = (
    "LC_", "ROCM_", "HIP_", "HSA_", "ROCR_", "AMD_", "AMDGPU_", "GPU_", "MIOPEN_", "ROCBLAS_", "HIPBLASLT_", "TENSILE_",
    "RCCL_", "CUDA_", "CUDNN_", "NCCL_", "NVIDIA_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "TRITON_", "INDUCTOR_",
    "OMP_", "MKL_",
)  # fmt: skip
_WRITTEN = re.compile(r"CACHE_(?:DIR|PATH)\b|USER_DB_PATH|CUSTOM_CACHE|^T(?:ORCH|RITON)_HOME$")
"""Names of folders of the user's that are written to: what lies there is executed by other programs."""

_NAME = re.compile(r"[A-Za-z_]\w*")


class Execution(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a project's code is executed.

    Attributes:
        pass_env: Names of variables that are handed on besides the known ones.
        container: Image of the container that it runs in; empty for this machine, as the user.
    """

    pass_env: tuple[str, ...] = ()
    container: str = ""

    def __post_init__(self) -> None:
        """Refuse names that are none, and variables that are not there.

        Raises:
            UsageError: Such a name.
        """
        for name in self.pass_env:
            if not _NAME.fullmatch(name):
                raise UsageError("--pass-env", f"expected a variable name, got {name!r}.")
            if name not in os.environ:
                raise UsageError(
                    "--pass-env", f"{name} is not set.", next_step=f"Set it, or remove {name} from --pass-env."
                )


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something of a project that a level executes.

    Attributes:
        level: The level's name; ``golden`` for the command of that name.
        kind: ``import``, ``tests``, ``golden`` or ``program``.
        names: The modules' files, test files, functions or sources.
        command: What is executed; where several commands are alike, one of them.
        source: Which setting or file of the project says so.
    """

    level: str
    kind: str
    names: tuple[str, ...]
    command: str
    source: str


def describe(execution: Execution) -> str:
    """Return in a sentence where code runs and what holds it."""
    if execution.container:
        place = f"in a container of {execution.container}, without a network"
    else:
        place = "as this user, with this user's rights; --container IMAGE isolates it from your files and the network"
    more = f" and {', '.join(execution.pass_env)}" if execution.pass_env else ""
    return (
        f"It runs {place}. It gets a copy of the project, its own home folder, PATH, the locale and the variables of "
        f"ROCm, CUDA, torch and Triton{more}. Limits: time, {size_text(memory_limit())} of memory, {PROCESSES} "
        f"processes, {size_text(FILE_BYTES)} per file, {size_text(OUTPUT_BYTES)} of output."
    )


def request_text(root: Path, level: str, targets: Sequence[str] = (), *, run: bool = True) -> str:
    """Return the command that runs a level."""
    chosen = [part for name in targets for part in ("--target", name)]
    return shlex.join(["rocmend", "port", "verify", str(root), "--level", level, *chosen, *(("--run",) if run else ())])


def memory_limit() -> int:
    """Return the bytes of memory that one command may hold."""
    return int(total_bytes() * MEMORY_SHARE)


def clean_environment(given: Mapping[str, str], home: Path, pass_env: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables that a project's code may see.

    Args:
        given: Those of the caller.
        home: The folder that is its home.
        pass_env: Names that are handed on besides.
    """
    kept = {
        name: value
        for name, value in given.items()
        if (name in _KEPT or name.startswith(_BEGINNINGS))
        and not (is_secret_variable(name) or holds_token(value) or _WRITTEN.search(name))
    }
    for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH"):  # an empty part means the working folder: the project
        if name in kept:
            kept[name] = os.pathsep.join(part for part in kept[name].split(os.pathsep) if part.startswith("/"))
    user = given.get("PYTHONUSERBASE") or site.getuserbase()
    own = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **({"PYTHONUSERBASE": user} if Path(user).is_dir() else {}),  # packages of `pip install --user` stay
    }
    return kept | own | {name: given[name] for name in pass_env if name in given}


def execute_code(  # noqa: PLR0913  a command has as many settings as it has
    execution: Execution,
    argv: Sequence[str],
    *,
    base: Path,
    folder: Path,
    env: Mapping[str, str],
    time_limit_s: float,
    gpu: bool = False,
) -> CommandResult:
    """Execute something of a project to its end or its limit.

    Args:
        execution: Where.
        argv: Program and arguments.
        base: The folder with everything that it needs and may write; a container sees nothing else of the machine.
        folder: Where it starts, within ``base``.
        env: Variables beyond the clean ones.
        time_limit_s: Wall seconds.
        gpu: Whether a container gets the AMD GPU's devices.
    """
    home = base / "home"
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    clean = clean_environment(os.environ, home, execution.pass_env) | dict(env)
    limits = Limits(
        total_s=time_limit_s,
        silence_s=time_limit_s,
        grace_s=GRACE_S,
        max_output_bytes=1 << 16,
        file_bytes=FILE_BYTES,
        processes=PROCESSES,
    )
    where: Where = Local()
    changes: dict[str, str | None] = {**dict.fromkeys(os.environ.keys() - clean.keys()), **clean}
    if execution.container:
        where = _container(execution.container, base, gpu=gpu)
        known = {"PATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHONUSERBASE", "CC", "CXX"}
        changes = {name: value for name, value in clean.items() if name not in known - set(execution.pass_env)}
        limits = msgspec.structs.replace(limits, memory_bytes=memory_limit())
    command = Command(tuple(argv), cwd=str(folder))
    spec = AttemptSpec("port-verify", command, where, changes, limits=limits, allow_slow_first_run=False)
    watch = _Watch()
    result = run_attempt(spec, on_event=watch.take, stop=lambda: bool(watch.over))
    return _told(tuple(argv), result, watch, time_limit_s)


def _container(image: str, base: Path, *, gpu: bool) -> Container:
    """Return the container that sees one folder of the machine, no network, and no GPU unless it is to."""
    devices = tuple(path for path in _DEVICES if gpu and Path(path).exists())
    mount = Mount(str(base), str(base), relabel=True)  # the run's own folder, which goes with it
    where = Container(image, devices=devices, mounts=(mount,), network="none")
    # podman without root maps its root to us; docker's is the machine's, and would leave files that we cannot remove
    user = "0:0" if Engine(where).is_podman else f"{os.getuid()}:{os.getgid()}"
    return msgspec.structs.replace(where, user=user)


class _Watch:
    """Gathers what a command prints, and notices when it takes more than it may.

    Memory is that which is resident: an address space says nothing of a program that uses a GPU.
    """

    def __init__(self) -> None:
        self.text: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self.size = 0
        self.over = ""
        self.memory_bytes = memory_limit()

    def take(self, event: Event) -> None:
        """Take in an event."""
        sample = event.sample
        if event.kind is EventKind.OUTPUT:
            self.size += len(event.text) + 1
            if self.size <= OUTPUT_BYTES:
                self.text[event.stream].append(event.text)
            else:
                self.over = self.over or f"it printed more than {size_text(OUTPUT_BYTES)}"
        elif sample is not None and (sample.rss_bytes or 0) > self.memory_bytes:
            self.over = self.over or f"it used more than {size_text(self.memory_bytes)} of memory"
        elif sample is not None and (sample.processes or 0) > PROCESSES:
            self.over = self.over or f"it started more than {PROCESSES} processes"

    def printed(self, stream: str) -> str:
        """Return what came by a stream."""
        return "".join(f"{line}\n" for line in self.text[stream])


def _told(argv: tuple[str, ...], result: AttemptResult, watch: _Watch, limit_s: float) -> CommandResult:
    """Return an attempt's end as that of a command."""
    stdout, stderr = watch.printed("stdout"), watch.printed("stderr")
    signalled, code = result.signal, result.exit_code
    if "image_id" in result.place and code is not None and code > _SIGNALLED:
        signalled = code - _SIGNALLED
    if watch.over:
        ending, stderr = Ending.FLOODED, f"{stderr}ended by rocmend: {watch.over}\n"
    elif result.verdict is Verdict.INFRA:
        ending, stderr = Ending.NOT_STARTED, result.reason
    elif result.time_ms >= limit_s * 1000:
        ending = Ending.TIMEOUT
    else:
        ending = Ending.SIGNALLED if signalled else Ending.EXITED
    return CommandResult(
        argv,
        ending,
        code if ending is Ending.EXITED else None,
        signalled if ending is Ending.SIGNALLED else None,
        stdout,
        stderr,
        time_ms=result.time_ms,
    )
