"""How far ``rocmend port`` brings real projects: each is copied, ported and compiled by the installed command.

    python benchmarks/port_projects.py PATH … --log FILE [--nvcc NVCC] [--target GPU …] [--limit S] [--again …]
    python -m benchmarks.port_table FILE -o PAGE

For every path: ``rocmend port --apply`` on a copy, then ``rocmend port verify --level compile`` for each target. What
was found, what was written and what each translation unit came to is one line of the log. A run that was ended goes on
where it stood: what has a line is not measured again, unless ``--again`` asks for it. The projects themselves are not
changed, and nothing of them is executed. With ``--nvcc``, the originals of the same units are compiled to PTX first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from rocmend.codeobject.hip.toolchain import find_toolchain
from rocmend.core.beneath import Beneath
from rocmend.port.definitions.units import Builds

ROOT = Path(__file__).parents[1]
TARGETS = ("gfx942", "gfx1100", "gfx1201")
HEADERS = {".h", ".hpp", ".cuh", ".hh", ".inl", ".inc"}
_BESIDE = re.compile(r"\.\./([\w.-]+)")
_STANDARD = re.compile(r"-std=(?:c|gnu)\+\+\w+")
_INCLUDE = re.compile(r"(?<![\w-])-I\s*([\w./-]+)")
_ERROR = re.compile(r"\b(?:error|fatal)\b")
_SHOWN = 4


_ended = threading.Event()
_running: set[int] = set()
"""Process groups of commands that run."""


def ended(*_: object) -> None:
    """End with all commands that run: the log holds what is done."""
    _ended.set()
    stop(*_running)
    os._exit(1)


def stop(*groups: int) -> None:
    """Interrupt commands, which end what they started, and kill those that do not follow."""
    for number, pause in ((signal.SIGINT, 3.0), (signal.SIGKILL, 0.0)):
        for group in groups:
            with suppress(ProcessLookupError):
                os.killpg(group, number)
        time.sleep(pause)


class LimitError(Exception):
    """A project took longer than it may."""


def called(argv: Sequence[str], folder: Path, deadline: float) -> subprocess.CompletedProcess[str]:
    """Run a command in a process group of its own, which is ended at the deadline."""
    with subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        _running.add(process.pid)
        try:
            out, error = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
        except BaseException as caught:
            stop(process.pid)
            process.communicate()
            if isinstance(caught, subprocess.TimeoutExpired):
                raise LimitError(" ".join(argv[1:3])) from None
            raise
        finally:
            _running.discard(process.pid)
    return subprocess.CompletedProcess(argv, process.returncode, out, error)


def copied(source: Path, folder: Path) -> tuple[Path, str]:
    """Copy a project, with the headers of folders beside it that its Makefile names.

    Returns:
        The folder to port, and what paths in it begin with.
    """
    shutil.rmtree(folder, ignore_errors=True)
    makefiles = [path.read_text(errors="replace") for path in source.glob("[Mm]akefile*")]
    beside = {name for text in makefiles for name in _BESIDE.findall(text)} - {source.name, "data"}
    beside = {name for name in beside if (source.parent / name).is_dir()}
    work = folder / source.name if beside else folder
    shutil.copytree(source, work, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    for name in beside:
        for header in (source.parent / name).rglob("*"):
            if header.suffix in HEADERS and header.is_file():
                target = folder / name / header.relative_to(source.parent / name)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(header, target)
    return folder, f"{source.name}/" if beside else ""


def digest(folder: Path) -> str:
    """Return a digest of what a ported project is compiled from."""
    every = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and ".rocmend" not in path.parts:
            every.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return every.hexdigest()[:16]


def said(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the data of a command that prints JSON, or raise what it said instead."""
    try:
        told: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise ValueError(f"exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}") from None
    if not told.get("data"):
        raise ValueError("; ".join(str(one.get("message", one)) for one in told["errors"]))
    data: dict[str, Any] = told["data"]
    return data


def ported(rocmend: str, folder: Path, options: argparse.Namespace, deadline: float) -> dict[str, Any]:
    """Port a copy; return what was found and written."""
    targets = [part for one in options.target for part in ("--target", one)]
    data = said(called([rocmend, "port", str(folder), "--apply", *targets, "--json"], folder.parent, deadline))
    files = data["analysis"]["files"]
    return {
        "files": sum(data["analysis"]["looked_at"].values()),
        "lines": data["analysis"]["lines"],
        "changed": len(data["changed"]),
        "left_alone": data["left_alone"],
        "skipped": [f"{file['path']}: {file['skipped']}" for file in files if file.get("skipped")],
        "issues": [
            [one["rule"], one["outcome"], f"{one['path']}:{one['line']}", one["message"]]
            for file in files
            for one in file.get("issues", ())
        ],
    }


def verified(rocmend: str, folder: Path, options: argparse.Namespace, deadline: float) -> dict[str, Any]:
    """Verify a ported copy up to level 3; return each level's result and what each unit came to."""
    targets = [part for one in options.target for part in ("--target", one)]
    argv = [rocmend, "port", "verify", str(folder), "--level", "compile", *targets, "--jobs", "1", "--json"]
    levels = {one["name"]: one for one in said(called(argv, folder.parent, deadline))["levels"]}
    found: dict[str, dict[str, Any]] = {}
    for one in levels["compile"].get("evidence", ()):
        if one["outcome"] == "note":
            continue
        for path in one.get("data", {}).get("units") or [one["subject"]]:
            unit = found.setdefault(path, {})
            if one["outcome"] == "holds":
                continue
            errors = one.get("data", {}).get("errors", ())[:_SHOWN]
            where = one.get("target", "") or "host"
            detail = str(one["detail"]).replace(f"{folder}/", "")
            unit.setdefault(where, []).append(
                [one["outcome"], detail, [each.replace(f"{folder}/", "") for each in errors]]
            )
    return {
        "levels": {name: [one["status"], one.get("summary") or one.get("why", "")] for name, one in levels.items()},
        "units": found,
    }


def built(
    nvcc: str, source: Path, units: Sequence[str], options: argparse.Namespace, deadline: float
) -> dict[str, str]:
    """Compile the originals of units to PTX with nvcc; return each one's first error, empty where there is none."""
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for unit in units:
            folder = next((up for up in (source / unit).parents if [*up.glob("[Mm]akefile*")]), source)
            text = "\n".join(path.read_text(errors="replace") for path in folder.glob("[Mm]akefile*"))
            asked = _STANDARD.search(text)
            old = asked is None or asked[0][-2:] in {"98", "03", "0x", "11", "14"}
            with Beneath(source) as tree:
                macros = Builds(tree).of_unit(unit)[0].defined
            folders = [one for one in _INCLUDE.findall(text) if not one.startswith("/")]
            argv = [
                nvcc, "--ptx", "-w", "--expt-relaxed-constexpr", "--extended-lambda", "-arch", options.arch,
                "-std=c++17" if old or asked is None else asked[0],
                *(f"-D{name}={value}" for name, value in macros.items() if name != "USE_ROCM"),
                *(f"-I{one}" for one in (".", "include", *folders)), *(f"-I{one}" for one in options.cuda_include),
                "-o", f"{scratch}/unit.ptx", str((source / unit).relative_to(folder)),
            ]  # fmt: skip
            done = called(argv, folder, deadline)
            errors = [line for line in (done.stderr + done.stdout).splitlines() if _ERROR.search(line)]
            found[unit] = "" if done.returncode == 0 else (errors or [f"exit code {done.returncode}"])[0][:300]
    return found


def measured(source: Path, options: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    """Port and compile one project; a project that cannot be measured is a result too."""
    started = time.monotonic()
    deadline = started + options.limit
    record: dict[str, Any] = {"project": source.name, "rocmend": options.commit, "targets": options.target}
    at = "port"
    try:
        folder, prefix = copied(source, options.work / source.name)
        record |= ported(options.rocmend, folder, options, deadline)
        record["digest"] = digest(folder)
        same = known.get("digest") == record["digest"] and set(known["targets"]) >= set(options.target)
        if options.again in {"changed", "nvcc"} and same and compiles(known):
            record |= {name: known[name] for name in ("levels", "units")}
            record["compiled_by"] = known.get("compiled_by", known["rocmend"])
        else:
            at = "verify"
            made = verified(options.rocmend, folder, options, deadline)
            units = {path.removeprefix(prefix): one for path, one in made["units"].items() if path.startswith(prefix)}
            record |= {"levels": made["levels"], "units": units}
        originals = [path for path in record["units"] if (source / path).is_file()]
        if "before" in known and known["before"].keys() == set(originals):
            record["before"] = known["before"]  # the original is the same
        elif options.nvcc and not (options.nvcc_failing and compiles(record)):
            at = "nvcc"
            record["before"] = built(options.nvcc, source, originals, options, deadline)
    except LimitError:
        record["failed"] = f"{at}: not done after {options.limit:g} s"
    except (ValueError, KeyError) as error:
        record["failed"] = f"{at}: {type(error).__name__}: {error}"
    finally:
        if not options.keep:
            shutil.rmtree(options.work / source.name, ignore_errors=True)
    record["time_s"] = round(time.monotonic() - started, 1)
    return record


def compiles(record: dict[str, Any]) -> bool:
    """Tell whether every unit of a project compiles for every target."""
    return "failed" not in record and record.get("levels", {}).get("compile", ("",))[0] == "passed"


def records(log: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log; one that was cut off by the end of a run is left out."""
    with suppress(FileNotFoundError):
        for line in log.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError):
                yield json.loads(line)


def wanted(known: dict[str, Any] | None, again: str, targets: Sequence[str]) -> bool:
    """Tell whether a project is measured, given the record that it has."""
    if known is None or again in {"all", "changed"} or not set(targets) <= set(known["targets"]):
        return True
    return (again == "failing" and not compiles(known)) or (again == "nvcc" and "before" not in known)


def stated(argv: Sequence[str], folder: Path) -> str:
    """Return what a command prints, on one line; nothing where it does not run."""
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return " ".join(done.stdout.split())


def main() -> int:
    """Measure what has no record yet; exit 1 where a project could not be measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else "")
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--log", type=Path, required=True, help="one JSON record a line; read first, then added to")
    parser.add_argument("--target", action="append", default=[], help=f"default: {', '.join(TARGETS)}")
    parser.add_argument("--nvcc", default="", help="compile the originals to PTX with this nvcc")
    parser.add_argument("--arch", default="compute_90", help="what nvcc compiles for")
    parser.add_argument("--cuda-include", action="append", default=[], help="a further folder of headers for nvcc")
    parser.add_argument("--nvcc-failing", action="store_true", help="only originals of what does not compile ported")
    parser.add_argument("--limit", type=float, default=900, help="seconds a project may take")
    parser.add_argument("--jobs", type=int, default=1, help="projects at once")
    parser.add_argument("--seed", type=int, default=0, help="of the order: what is done when a run ends is a sample")
    parser.add_argument("--most", type=int, help="measure this many, the first in the order")
    parser.add_argument(
        "--again", choices=["failing", "changed", "nvcc", "all"], default="", help="measure these again, too"
    )
    parser.add_argument("--work", type=Path, help="where the copies go")
    parser.add_argument("--keep", action="store_true", help="keep the copies")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ended)
    options.target = options.target or list(TARGETS)
    options.rocmend = str(Path(sys.executable).parent / "rocmend")
    options.commit = stated(["git", "describe", "--always", "--dirty"], ROOT)
    options.work = (options.work or Path(tempfile.mkdtemp(prefix="port-"))).resolve()
    known = {one["project"]: one for one in records(options.log) if "project" in one}
    paths = [path.resolve() for path in options.paths]
    random.Random(options.seed).shuffle(paths)  # noqa: S311  the order of a sample, no secret
    todo = [path for path in paths if wanted(known.get(path.name), options.again, options.target)]
    todo = todo[: options.most]
    conditions = {
        "projects": len(paths),
        "seed": options.seed,
        "targets": options.target,
        "source": stated(["git", "rev-parse", "HEAD"], paths[0]),
        "toolchain": find_toolchain().name,
        "headers": os.environ.get("ROCMEND_HIP_HEADERS", ""),
        "nvcc": (stated([options.nvcc, "--version"], ROOT).rpartition("release ")[2] if options.nvcc else ""),
        "arch": options.arch,
        "rocmend": options.commit,
        "python": platform.python_version(),
        "limit_s": options.limit,
    }
    with options.log.open("a", encoding="utf-8") as log:
        log.write(json.dumps({"conditions": conditions}) + "\n")
        lock = threading.Lock()
        done = 0

        def one(path: Path) -> bool:
            nonlocal done
            record = measured(path, options, known.get(path.name, {}))
            if _ended.is_set():  # what was stopped is no result
                return False
            told = record.get("failed") or record["levels"]["compile"][1][:70]
            with lock:
                done += 1
                log.write(json.dumps(record) + "\n")
                log.flush()
                print(f"{done}/{len(todo)} {path.name} {record['time_s']} s: {told}", file=sys.stderr, flush=True)
            return "failed" in record

        with ThreadPoolExecutor(options.jobs) as pool:
            failed = sum(pool.map(one, todo))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
