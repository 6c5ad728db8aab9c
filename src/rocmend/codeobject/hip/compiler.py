"""Compiling HIP C++ to a linked code object, without a GPU and without ROCm's runtime."""

from __future__ import annotations

import math
import re
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rocmend.codeobject.hip import confine, dependencies
from rocmend.codeobject.hip.cache import Cache, Entry, constants_file, key_of
from rocmend.codeobject.hip.constants import constants
from rocmend.codeobject.hip.diagnostics import missing_headers, read_diagnostics
from rocmend.codeobject.hip.headers import STAND_IN_SAYS, STAND_INS, how_to_get
from rocmend.codeobject.hip.options import Device, device
from rocmend.codeobject.hip.records import Diagnostic, Failure, HipFailure, HipObject, Level, Syntax
from rocmend.codeobject.hip.toolchain import KIND_VARIABLE, Toolchain, find_toolchain
from rocmend.codeobject.notes import read_kernels
from rocmend.codeobject.reader import BytesReader
from rocmend.core.errors import DataError
from rocmend.core.files import write_atomic
from rocmend.core.host_memory import total_bytes
from rocmend.core.private import is_own_file
from rocmend.core.scratch import ScratchFolder
from rocmend.core.stall import StallClock
from rocmend.core.supervise import CommandResult, Ending, run_command
from rocmend.core.units import size_text

__all__ = ["STALL_LIMIT_S", "TIME_LIMIT_S", "check_syntax", "compile_hip"]

TIME_LIMIT_S = 3600.0
"""A translation unit of templates can take minutes, on a loaded machine an hour; an optimizer in a loop never ends."""

STALL_LIMIT_S = 120.0
"""A compiler that uses no CPU time for so long waits for what will not come."""

_SHARE = 0.75
"""Of the machine's memory, that a tool may use where nothing else is said."""

SOURCE_NAME = "<source>"
_SAYS_NOTHING_ELSE = ("-fno-caret-diagnostics", "-fno-color-diagnostics", "-ferror-limit=50")
_LOG_BYTES = 4000


class _Job(NamedTuple):
    """A translation unit and what it is compiled for and with."""

    toolchain: Toolchain
    device: Device
    source: Path
    folder: Path
    names: dict[str, str]
    options: tuple[str, ...]
    clock: StallClock
    deadline: float
    started: float
    memory_bytes: int

    def left_s(self) -> float:
        return max(0.1, self.deadline - self.clock.now(math.inf))

    def time_ms(self) -> float:
        return round((time.monotonic() - self.started) * 1000, 1)


def compile_hip(  # noqa: PLR0913  a compilation has as many settings as it has
    source: Path | bytes,
    target: str,
    *,
    wave_size: int | None = None,
    defines: Mapping[str, str] | None = None,
    include_dirs: Sequence[Path] = (),
    options: Sequence[str] = (),
    within: Sequence[Path] = (),
    relocatable: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
    memory_bytes: int = 0,
    cache: bool = True,
    toolchain: Toolchain | None = None,
) -> HipObject | HipFailure:
    """Compile the device's side of a HIP source to a linked code object.

    The tools run in child processes, in a process group that is ended with its time. Nothing is run of the result.

    Args:
        source: A file, whose neighbours it may include, or the text itself. It must include ``hip/hip_runtime.h`` by
            itself, as with hipcc. The file's ending does not matter.
        target: ``gfx1151``, ``gfx90a:xnack-`` …
        wave_size: Lanes of a wavefront, 32 or 64; None for what HIP takes on the target.
        defines: Macros and their values; an empty value is ``-DNAME``.
        include_dirs: Folders of headers, searched in order.
        options: Further options of clang, after all others: ``-std=c++20``, ``-O1`` (``-O3`` is hipcc's
            default and ours).
        within: Folders that the source and its headers lie in, where they are a stranger's: a source that reads a
            file outside of them, the folders of headers and those of installed software is refused.
        relocatable: What is not defined here is device code of other units: the code object is not complete.
        time_limit_s: Of everything together.
        memory_bytes: That a tool may use; 0: three quarters of the machine's.
        cache: Take what was compiled before from the same bytes (headers outside the toolchain included), and keep
            what is compiled now.
        toolchain: Instead of the one that ``find_toolchain`` gives.

    Returns:
        The code object; or why there is none. Never raises for what the source or the tools do.

    Raises:
        UsageError: No such target, or it has no such wave size.
        NoToolchainError: Nothing here compiles HIP.

    Cost:
        From 0.4 s for a small kernel; 5 ms from the cache. With ``printf`` or ``assert`` in it 1 s, for those bring
        much of the device library.
    """
    tools = toolchain or find_toolchain()
    made_for = device(target, wave_size)
    own = _options(tools, made_for, defines, include_dirs)
    stage = ("--cuda-device-only", *tools.device_flags)
    with ScratchFolder("hip") as folder:
        job = _job(tools, made_for, source, folder, (*own, *stage, *options), (time_limit_s, memory_bytes))
        try:
            data = job.source.read_bytes()
        except OSError as error:
            return _failure(job, Failure.UNREADABLE, f"{source!r} cannot be read: {error.strerror}.", "")
        store = Cache() if cache else None
        # what was compiled before may have read files outside of these folders
        confined = tuple(f"within {Path(one).absolute()}" for one in within)
        name = str(source) if isinstance(source, Path) else ""
        linked = ("relocatable",) if relocatable else ()
        key = key_of(tools.fingerprint, name, data, (*job.options, *confined, *linked))
        known = store.find(key) if store else None
        if known is not None:
            return _confined(job, known, (), ()) if within else known
        made, used = _compile(job, relocatable=relocatable)
        if within:
            made = _confined(job, made, used, (*within, *include_dirs))
        if store and isinstance(made, HipObject):
            store.keep(key, Entry(made, dependencies.hashed(used, own=job.source)))
        return made


def check_syntax(  # noqa: PLR0913  as above
    source: Path | bytes,
    target: str,
    *,
    wave_size: int | None = None,
    defines: Mapping[str, str] | None = None,
    include_dirs: Sequence[Path] = (),
    options: Sequence[str] = (),
    within: Sequence[Path] = (),
    host_only: bool = False,
    time_limit_s: float = TIME_LIMIT_S,
    memory_bytes: int = 0,
    toolchain: Toolchain | None = None,
) -> Syntax | HipFailure:
    """Read a translation unit twice, as the host's side and as the device's, and generate nothing.

    For sources whose kernels are templates that this unit does not instantiate, and for host code: launches, calls of
    the runtime.

    Args:
        source: As for ``compile_hip``.
        target: The gfx target of the device's side.
        wave_size: As for ``compile_hip``.
        defines: As for ``compile_hip``.
        include_dirs: As for ``compile_hip``.
        options: As for ``compile_hip``.
        within: As for ``compile_hip``.
        host_only: Read the host's side alone: for a unit whose device's side is compiled anyway.
        time_limit_s: Of both together.
        memory_bytes: As for ``compile_hip``.
        toolchain: Instead of the one that ``find_toolchain`` gives.

    Returns:
        What was said of it; or why it was not understood.

    Raises:
        UsageError: No such target, or it has no such wave size.
        NoToolchainError: Nothing here compiles HIP.
    """
    tools = toolchain or find_toolchain()
    made_for = device(target, wave_size)
    own = _options(tools, made_for, defines, include_dirs)
    nothing = (*(("-nogpulib",) if tools.wants_constants else ()), *(("--cuda-host-only",) if host_only else ()))
    with ScratchFolder("hip") as folder:
        job = _job(tools, made_for, source, folder, (*own, *nothing, *options), (time_limit_s, memory_bytes))
        if not job.source.is_file():
            return _failure(job, Failure.UNREADABLE, f"{source!r} is no file that can be read.", "")
        said = _run(job, [*job.toolchain.clang, "-x", "hip", *job.options, "-fsyntax-only", str(job.source)])
        if not said.ok:
            failed = _refused(job, "clang", said)
            return _without_alien(job, failed, (*within, *include_dirs)) if within else failed
        diagnostics, stand_ins = _told(job, said.stderr)
        return Syntax(
            made_for.name, made_for.wave_size, diagnostics, stand_ins, toolchain=tools.name, time_ms=job.time_ms()
        )


# -- the steps ---------------------------------------------------------------------------------------------------------


def _options(
    tools: Toolchain, made_for: Device, defines: Mapping[str, str] | None, include_dirs: Sequence[Path]
) -> tuple[str, ...]:
    macros = (f"-D{name}={value}" if value else f"-D{name}" for name, value in (defines or {}).items())
    folders = (f"-I{Path(one).absolute()}" for one in include_dirs)
    last = (part for one in (*tools.header_folders, str(STAND_INS)) for part in ("-idirafter", one))
    wave = made_for.wave_macros if tools.wants_constants else ()
    return (*made_for.offload, *tools.flags, *wave, "-O3", *_SAYS_NOTHING_ELSE, *macros, *folders, *last)


def _job(  # noqa: PLR0917, PLR0913  the parts of a record
    tools: Toolchain,
    made_for: Device,
    source: Path | bytes,
    folder: Path,
    options: tuple[str, ...],
    limits: tuple[float, int],
) -> _Job:
    clock, started = StallClock(), time.monotonic()
    if isinstance(source, Path):
        file, names = source.absolute(), {str(source.absolute()): str(source)}
    else:
        file = folder / "source.hip"
        file.write_bytes(source)
        names = {str(file): SOURCE_NAME}
    time_limit_s, memory_bytes = limits
    given = (one for one in resource.getrlimit(resource.RLIMIT_AS) if one != resource.RLIM_INFINITY)
    memory_bytes = min((memory_bytes or int(_SHARE * total_bytes()), *given))
    return _Job(tools, made_for, file, folder, names, options, clock, clock.now() + time_limit_s, started, memory_bytes)


def _compile(job: _Job, *, relocatable: bool) -> tuple[HipObject | HipFailure, tuple[Path, ...]]:
    """Compile, assemble, link and read the result; return it with the files that the source included."""
    assembly, object_file, code = (job.folder / name for name in ("source.s", "source.o", "source.hsaco"))
    listed = job.folder / "source.d"
    constant = _constants(job) if job.toolchain.wants_constants else ()
    # -MD is the host's alone: it is clang's inner option that lists what the device's side reads
    inner = ("-dependency-file", str(listed), "-MT", "source", "-sys-header-deps")
    listing = [part for one in inner for part in ("-Xclang", one)]
    compile_only = [*job.toolchain.clang, "-x", "hip", *job.options, *constant, *listing, "-S"]
    compiled = _run(job, [*compile_only, "-o", str(assembly), str(job.source)])
    if not compiled.ok or not assembly.is_file():
        return _refused(job, "clang", compiled), ()
    machine = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={job.device.name}", *job.device.wave_option)
    assembled = _run(
        job, [*job.toolchain.clang, "-c", "-x", "assembler", *machine, str(assembly), "-o", str(object_file)]
    )
    if not assembled.ok or not object_file.is_file():
        # an instruction in the source that the target does not have: only clang itself knows the line it stands in
        again = _run(job, [*compile_only, "-Xclang", "-emit-obj", "-o", str(object_file), str(job.source)])
        return _refused(job, "the assembler", assembled if again.ok else again), ()
    undefined = "--noinhibit-exec" if relocatable else "--no-undefined"  # they are hidden: no other option is enough
    linked = _run(job, [*job.toolchain.linker, "-shared", undefined, str(object_file), "-o", str(code)])
    if not linked.ok or not code.is_file():
        return _refused(job, "the linker", linked), ()
    data = code.read_bytes()
    try:
        kernels = read_kernels(BytesReader(data, job.names[str(job.source)]))
    except DataError as error:
        return _failure(job, Failure.UNREADABLE, f"the linker's result is no code object: {error.message}", ""), ()
    said, stand_ins = _told(job, compiled.stderr + linked.stderr)
    made = HipObject(
        target=job.device.name,
        wave_size=job.device.wave_size,
        code=data,
        assembly=assembly.read_text(encoding="utf-8", errors="replace"),
        kernels=kernels,
        diagnostics=said,
        stand_ins=stand_ins,
        toolchain=job.toolchain.name,
        time_ms=job.time_ms(),
    )
    return made, dependencies.read(listed)


def _confined(
    job: _Job, made: HipObject | HipFailure, used: Sequence[Path], folders: Sequence[Path]
) -> HipObject | HipFailure:
    """Return the result, or a failure that says nothing where it holds something of a file outside of the folders."""
    if isinstance(made, HipFailure):
        return _without_alien(job, made, folders)
    alien = next((file for file in used if job.folder not in file.parents and confine.is_alien(file, folders)), None)
    reads = confine.reading_directive(made.assembly)
    if alien is None and not reads:
        return made
    what = str(alien) if alien is not None else f"a file ({reads} in inline assembly)"
    return _failure(job, Failure.UNREADABLE, f"It reads {what}, outside of the project: nothing of it is kept.", "")


def _without_alien(job: _Job, made: HipFailure, folders: Sequence[Path]) -> HipFailure:
    """Return a failure; one that says nothing where it quotes a file outside of the folders."""
    files = {Path(one.file) for one in made.diagnostics if one.file.startswith("/")}
    alien = next((file for file in sorted(files) if confine.is_alien(file, (*folders, job.folder))), None)
    if alien is None:
        return made
    return _failure(job, Failure.UNREADABLE, f"It reads {alien}, outside of the project: nothing of it is shown.", "")


def _constants(job: _Job) -> tuple[str, ...]:
    """Return the options that link the device libraries' constants, which are compiled once for each target."""
    text = constants(job.device.target, job.device.wave_size)
    kept = constants_file(job.toolchain.fingerprint, text)
    if not is_own_file(kept):
        source, made = job.folder / "constants.ll", job.folder / "constants.bc"
        source.write_text(text, encoding="utf-8")
        said = _run(
            job,
            [
                *job.toolchain.clang, "-c", "-emit-llvm", "-nogpulib", "-x", "ir", "-target", "amdgcn-amd-amdhsa",
                str(source), "-o", str(made),
            ],
        )  # fmt: skip
        if not said.ok or not made.is_file():
            return ()  # the linker will name what is not defined
        try:
            write_atomic(kept, made.read_bytes(), private=True)
        except OSError:
            kept = made
    return ("-Xclang", "-mlink-builtin-bitcode", "-Xclang", str(kept))


def _run(job: _Job, argv: list[str]) -> CommandResult:
    done = run_command(argv, time_limit_s=job.left_s(), stall_limit_s=STALL_LIMIT_S, memory_bytes=job.memory_bytes)
    job.clock.leave_out(done.stalled_s)
    return done


def _told(job: _Job, text: str) -> tuple[tuple[Diagnostic, ...], tuple[str, ...]]:
    """Return what the tools said, and which of rocmend's own headers were read: each says so itself."""
    said = read_diagnostics(text, job.names)
    names = {one.message.removeprefix(STAND_IN_SAYS) for one in said if one.message.startswith(STAND_IN_SAYS)}
    return tuple(one for one in said if not one.message.startswith(STAND_IN_SAYS)), tuple(sorted(names))


_CRASH = re.compile(r"frontend command failed|unable to execute command")
"""What clang's driver says where the compiler that it started did not end by itself."""

# -- failures ----------------------------------------------------------------------------------------------------------


def _refused(job: _Job, tool: str, said: CommandResult) -> HipFailure:
    """Say why a tool gave nothing."""
    text = said.stderr + said.stdout
    diagnostics, _ = _told(job, text)
    errors = [one for one in diagnostics if one.level is Level.ERROR]
    if said.ending is Ending.TIMEOUT:
        still = job.clock.now(math.inf) < job.deadline
        why, next_step = (
            (f"used no CPU time for {STALL_LIMIT_S:.0f} s", "Look for what it waits for: a file system or a pipe.")
            if still
            else ("did not come to an end in time", "Give it more time, or a smaller translation unit.")
        )
        message = f"{tool} {why} and was ended after {job.time_ms() / 1000:.0f} s."
        return _failure(job, Failure.TIMED_OUT, message, text, next_step=next_step)
    if said.ending in {Ending.NOT_FOUND, Ending.NOT_EXECUTABLE, Ending.NOT_STARTED}:
        return _failure(job, Failure.CRASHED, f"{said.argv[0]} does not start: {said.stderr or said.ending}.", text)
    if said.ending is Ending.FLOODED:
        return _failure(job, Failure.CRASHED, f"{tool} printed without an end and was ended.", text[-_LOG_BYTES:])
    if said.signal is not None or all(_CRASH.search(one.message) or not one.file for one in errors):
        failed = _failed_itself(job, tool, said, errors)
        if failed is not None:
            return failed
    absent = missing_headers(diagnostics)
    if absent:
        return _failure(job, Failure.MISSING_HEADER, " ".join(how_to_get(one) for one in absent), text)
    more = f" ({len(errors)} errors)" if len(errors) > 1 else ""
    return _failure(job, Failure.REFUSED, f"{errors[0]}{more}", text)


_NO_MEMORY = re.compile(r"out of memory|bad_alloc|cannot allocate memory|OutOfMemory", re.IGNORECASE)


def _failed_itself(job: _Job, tool: str, said: CommandResult, errors: Sequence[Diagnostic]) -> HipFailure | None:
    """Say that a tool crashed or lacked memory; None where it did neither."""
    text = said.stderr + said.stdout
    told = [one.message for one in errors] or [said.stderr]
    if said.signal == signal.SIGKILL or any(_NO_MEMORY.search(one) for one in told):
        message = (
            f"{tool} needed more memory than the {size_text(job.memory_bytes)} that it may use, which is no error of "
            "the source. Compile fewer units at once (--jobs 1), or on a machine with more memory."
        )
        return _failure(job, Failure.OUT_OF_MEMORY, message, text)
    if said.signal is None and not all(_CRASH.search(one.message) for one in errors):
        return None
    how = f"signal {said.signal}" if said.signal is not None else f"exit status {said.exit_code}"
    about = f": {errors[0].message}" if errors else " and said nothing that can be read"
    itself = f"It failed in itself, which is no error of the source: name another one in {KIND_VARIABLE}."
    message = f"{tool} ended with {how}{about}."
    return _failure(job, Failure.CRASHED, message, text, next_step="" if "in backend" in text else itself)


def _failure(job: _Job, reason: Failure, message: str, text: str, *, next_step: str = "") -> HipFailure:
    diagnostics, stand_ins = _told(job, text)
    return HipFailure(
        target=job.device.name,
        wave_size=job.device.wave_size,
        reason=reason,
        message=" ".join(filter(None, (message, next_step))),
        diagnostics=diagnostics,
        missing_headers=missing_headers(diagnostics),
        stand_ins=stand_ins,
        log="" if diagnostics else text[-_LOG_BYTES:],
        time_ms=job.time_ms(),
    )
