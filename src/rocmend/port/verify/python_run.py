"""Level 6: the Python side of the port runs, on the CPU, with the flag forced both ways. Only where it is asked for.

Three folders hold the project: as it was, the port on CUDA, the port on ROCm. In each, the modules that the port
reached are imported and the project's own tests are run, in child processes with time limits. What the original does
is the measure: what it cannot import here, or does not pass, says nothing about the port.

Functions that the project names for golden vectors are called in each folder too, compared between the folders and
with the vectors that were kept on other machines (``.rocmend/golden``), and repeated a hundred times.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from rocmend.core.errors import DataError
from rocmend.core.supervise import CommandResult
from rocmend.core.units import count_text
from rocmend.core.watch import Ending
from rocmend.port.settings import settings
from rocmend.port.verify import golden
from rocmend.port.verify.job import Job
from rocmend.port.verify.python_steps import (
    PYTEST,
    golden_steps,
    imported_here,
    interpreter,
    module_of,
    reached_files,
    roots_of,
    steps,
    test_files,
)
from rocmend.port.verify.python_tree import SIDES, TreeSide, grow
from rocmend.port.verify.records import Evidence, Level, Outcome
from rocmend.port.verify.result import concluded, not_run

__all__ = ["GOLDEN", "capture", "golden_steps", "run", "steps"]

GOLDEN = ".rocmend/golden"
IMPORT_LIMIT_S = 300.0
TEST_LIMIT_S = 900.0
GOLDEN_LIMIT_S = 900.0
_NOTHING = "none of the changed files can be imported on its own, and there are no tests"
_CHILD = Path(__file__).with_name("python_child.py")
_RESTARTS = 5
_MAX_RESULTS = 512 << 20
_SCRIPTS = 25


class _Folder(NamedTuple):
    side: TreeSide
    root: Path
    paths: tuple[str, ...]
    hides_gpu: bool = True

    @property
    def env(self) -> dict[str, str]:
        """Return what the environment has besides: the folder's own modules before those installed, and no GPU."""
        before = [str(self.root / path) for path in self.paths]
        after = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path.startswith("/")]
        return {
            "PYTHONPATH": os.pathsep.join([*before, *after]),
            **(dict.fromkeys(("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), "") if self.hides_gpu else {}),
        }


def absent(job: Job) -> str:
    """Return why the level cannot run; empty where it can."""
    if not reached_files(job) and not settings(job.root).golden:
        return "the port changed no Python file"
    return "" if steps(job) else _NOTHING


def run(job: Job) -> Level:
    """Run the Python side both ways; a port without one has nothing to run."""
    paths = reached_files(job)
    entries = settings(job.root).golden
    if why := absent(job):
        return not_run(why)
    if job.execution is None:
        return job.not_asked("python", steps(job))
    python = interpreter(job)
    roots = roots_of(job.root, paths)
    folders = [_Folder(side, grow(job, side), roots) for side in SIDES]
    evidence = [*_imports(job, python, folders, paths), *_tests(job, python, folders)]
    if entries:
        evidence += _golden(job, python, folders, entries)
    if all(one.outcome is Outcome.NOTE for one in evidence):
        return not_run(_NOTHING)
    return concluded(evidence, _summary(evidence, python))


def _summary(evidence: Sequence[Evidence], python: str) -> str:
    broken = sum(one.outcome is Outcome.BROKEN for one in evidence)
    held = sum(one.outcome is Outcome.HOLDS for one in evidence)
    if not broken and not held:
        return f"nothing was compared: the original does not run here with {python}"
    said = "everything that works in the original works with and without ROCm"
    if broken:
        said = f"{count_text(broken, 'check')} that the original passes failed"
    return f"{said} ({held} compared, on the CPU, with {python})"


def _imports(job: Job, python: str, folders: Sequence[_Folder], paths: Sequence[str]) -> list[Evidence]:
    wanted = imported_here(job, paths)
    results = {}
    for number, folder in enumerate(folders):
        job.tell("python", number, 2 * len(folders))
        results[folder.side] = _imported(job, python, folder, wanted)
    found = []
    known = {error for error in results[TreeSide.ORIGINAL].values() if error}
    for path in wanted:
        original, cuda, rocm = (results[side].get(path, "it was not tried") for side in SIDES)
        is_new = next((part.before is None for part in job.parts if part.path == path), False)
        reason = (cuda or rocm) if is_new else original
        if reason and (not is_new or reason in known):
            found.append(Evidence(path, Outcome.UNKNOWN, f"the original cannot be imported here: {reason}"))
        elif cuda or rocm:
            side = "without ROCm" if cuda else "with the flag set"
            found.append(Evidence(path, Outcome.BROKEN, f"it cannot be imported {side}: {cuda or rocm}"))
        else:
            found.append(Evidence(path, Outcome.HOLDS, "it can be imported with and without ROCm"))
    return found


def _imported(job: Job, python: str, folder: _Folder, paths: Sequence[str]) -> dict[str, str]:
    """Return why each file's module cannot be imported; empty where it can.

    Modules of packages share a process; a file of no package has one of its own, as what lies beside it may be called
    as what lies beside another.
    """
    alone = [path for path in paths if not module_of(job.root, path)[1]]
    groups = [[path for path in paths if path not in alone], *([path] for path in alone[:_SCRIPTS])]
    errors = dict.fromkeys(alone[_SCRIPTS:], f"only {_SCRIPTS} files outside packages are tried")
    for group in groups:
        errors |= _imported_together(job, python, folder, group)
    return errors


def _imported_together(job: Job, python: str, folder: _Folder, paths: Sequence[str]) -> dict[str, str]:
    """Import modules in one process after the other: a crash costs the one that crashed."""
    left = list(paths)
    errors: dict[str, str] = {}
    for _ in range(_RESTARTS):
        if not left:
            break
        modules = [(path, module_of(job.root, path)[1]) for path in left]
        told, ended = _child(job, python, folder, {"what": ["import"], "modules": modules}, IMPORT_LIMIT_S)
        begun = ""
        for record in told:
            begun = record["path"] if record.get("began") else ""
            if "error" in record:
                errors[record["path"]] = (record["error"] or "").replace(f"{folder.root}/", "")
        if begun:
            errors[begun] = _ending(ended)
        elif not told:
            return errors | dict.fromkeys(left, _ending(ended))
        left = [path for path in left if path not in errors]
    return errors


def _ending(result: CommandResult) -> str:
    last = next((line for line in reversed(result.stderr.splitlines()) if line.strip()), "")
    if result.ending is Ending.EXITED:
        return f"the process exited with {result.exit_code}" + (f": {last[:200]}" if last else "")
    if result.ending in {Ending.FLOODED, Ending.NOT_STARTED}:
        return f"the process ended: {last or result.ending.value}"
    return f"the process ended: {result.ending.value}" + (f", signal {result.signal}" if result.signal else "")


def _child(
    job: Job, python: str, folder: _Folder, order: dict[str, Any], limit_s: float
) -> tuple[list[dict[str, Any]], CommandResult]:
    scratch = job.scratch()
    results = scratch / "results.jsonl"
    given, child = scratch / "job.json", scratch / "child.py"
    given.write_text(json.dumps({**order, "results": str(results)}), encoding="utf-8")
    shutil.copyfile(_CHILD, child)  # a container sees nothing of ours
    script = f"import runpy, sys; sys.argv[1:] = [{str(given)!r}]; "
    command = [python, "-c", f"{script}runpy.run_path({str(child)!r}, run_name='__main__')"]
    gpu = not folder.hides_gpu
    ended = job.execute(command, folder=folder.root, time_limit_s=limit_s, env=folder.env, gpu=gpu)
    return [record for record in map(_record, _written(results).splitlines()) if record is not None], ended


def _written(path: Path) -> str:
    """Return a file that was written where a project's code could write too; nothing for what is no file of ours."""
    try:
        info = path.lstat()
        if not stat.S_ISREG(info.st_mode) or info.st_size > _MAX_RESULTS:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _record(line: str) -> dict[str, Any] | None:
    """Return what a line of the child's says; None for one that was cut, or that the project's code wrote."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and ("path" in record or "entry" in record) else None


def _tests(job: Job, python: str, folders: Sequence[_Folder]) -> list[Evidence]:
    """Run the project's own tests in each folder, and compare test by test."""
    if next(test_files(job.root), None) is None:
        return [Evidence("tests", Outcome.NOTE, "the project has no tests that pytest finds by name")]
    results: dict[TreeSide, dict[str, str]] = {}
    for number, folder in enumerate(folders):
        job.tell("python", len(folders) + number, 2 * len(folders))
        outcomes, why = _tested(job, python, folder)
        if folder.side is TreeSide.ORIGINAL and "passed" not in outcomes.values():
            return [Evidence("tests", Outcome.UNKNOWN, f"none of the original's tests pass here: {why}")]
        results[folder.side] = outcomes
    passing = [name for name, outcome in results[TreeSide.ORIGINAL].items() if outcome == "passed"]
    found = []
    for name in passing:
        for side, said in ((TreeSide.CUDA, "without ROCm"), (TreeSide.ROCM, "with the flag set")):
            outcome = results[side].get(name, "did not run")
            if outcome != "passed":
                found.append(Evidence(name, Outcome.BROKEN, f"{said} it {outcome}; it passes in the original"))
    kept = len(passing) - len({one.subject for one in found})
    others = len(results[TreeSide.ORIGINAL]) - len(passing)
    detail = f"{kept} pass with and without ROCm" + (f"; {others} do not pass in the original here" if others else "")
    return [*found, *([Evidence("tests", Outcome.HOLDS, detail)] if kept else [])]


def _tested(job: Job, python: str, folder: _Folder) -> tuple[dict[str, str], str]:
    """Return each test's outcome, and why there are none."""
    report = job.scratch() / "tests.xml"
    options = [f"--rootdir={folder.root}", f"--junitxml={report}"]
    ended = job.execute([python, *PYTEST, *options], folder=folder.root, time_limit_s=TEST_LIMIT_S, env=folder.env)
    if ended.ending is not Ending.EXITED or not (text := _written(report)):
        return {}, _ending(ended)
    try:
        tree = ET.fromstring(text)  # noqa: S314  expat itself refuses entities that grow without bounds
    except ET.ParseError as error:
        return {}, f"pytest's report cannot be read: {error}"
    outcomes: dict[str, str] = {}
    for case in tree.iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        kinds = {child.tag for child in case}
        said = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        outcomes[name] = said if outcomes.get(name, "passed") == "passed" else outcomes[name]
    return outcomes, f"pytest exited with {ended.exit_code}; {_last(ended.stdout)}"


def _last(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it printed nothing")


def _golden(job: Job, python: str, folders: Sequence[_Folder], entries: Sequence[str]) -> list[Evidence]:
    made: dict[TreeSide, list[golden.Vector]] = {}
    repeated: list[dict[str, Any]] = []
    for folder in folders:
        last = folder.side is TreeSide.ROCM
        made[folder.side], repeated = _vectors(job, python, folder, entries, "cpu", repeat=last)
    evidence: list[Evidence] = []
    for side, said in ((TreeSide.CUDA, "without ROCm"), (TreeSide.ROCM, "with the flag set")):
        against = golden.compared(made[side], made[TreeSide.ORIGINAL], "the original")
        evidence += [msgspec.structs.replace(one, subject=f"{one.subject} {said}") for one in against]
    for path in (PurePosixPath(one) for one in job.tree.files(GOLDEN) if one.endswith(".json")):
        try:
            wanted, machine = golden.read(job.tree, str(path))
        except DataError as error:
            evidence.append(Evidence(str(path), Outcome.UNKNOWN, error.message))
            continue
        known = {vector.name for vector in wanted}
        given = [vector for vector in made[TreeSide.ROCM] if vector.name in known]
        evidence += golden.compared(given, wanted, f"{path.stem} ({machine})")
    evidence += [golden.steady(record) for record in repeated]
    missing = sorted(set(entries) - {record["entry"] for record in repeated})
    evidence += [Evidence(entry, Outcome.UNKNOWN, "it was not repeated: the process ended first") for entry in missing]
    return evidence


def _order(entries: Sequence[str], device: str) -> dict[str, Any]:
    dtypes = [dtype for dtype in golden.DTYPES if device != "cpu" or dtype != "float16"]
    return {
        "entries": list(entries),
        "device": device,
        "dtypes": dtypes,
        "shapes": [list(one) for one in golden.SHAPES],
    }


def _vectors(  # noqa: PLR0913  a run is told what, where, with what
    job: Job, python: str, folder: _Folder, entries: Sequence[str], device: str, *, repeat: bool = False
) -> tuple[list[golden.Vector], list[dict[str, Any]]]:
    """Return the vectors that a folder gives, and the records of the repeated runs where they are asked for."""
    what = ["golden", "stability"] if repeat else ["golden"]
    order = {"what": what, **_order(entries, device), "iterations": golden.ITERATIONS}
    told, ended = _child(job, python, folder, order, GOLDEN_LIMIT_S)
    vectors = [record for record in told if "repeated" not in record]
    if not vectors:
        raise DataError("golden vectors", f"none could be made from {', '.join(entries)}: {_ending(ended)}.")
    try:
        made = msgspec.convert(vectors, list[golden.Vector])
    except msgspec.ValidationError as error:
        raise DataError("golden vectors", f"the results cannot be read: {error}.") from error
    return made, [record for record in told if "repeated" in record]


def capture(job: Job, name: str, machine: str, *, device: str = "auto") -> str:
    """Make the golden vectors of the project as it is, on this machine, and keep them in the project.

    Args:
        job: The run.
        name: What the file is called.
        machine: What the vectors are from, for the reader: a device and its software.
        device: ``cpu``, ``cuda``, or ``auto`` for a GPU where there is one.

    Returns:
        Their file, relative to the project.

    Raises:
        DataError: The project names no functions, or none of them can be called.
        UsageError: The job was not asked to execute code of the project.
    """
    entries = settings(job.root).golden
    if not entries:
        raise DataError(
            "golden vectors",
            "the project's pyproject.toml names no functions.",
            next_step='Name them: [tool.rocmend.port] golden = ["package.module:function"].',
        )
    paths = roots_of(job.root, [part.path for part in job.parts])
    path = f"{GOLDEN}/{name}.json"
    folder = _Folder(TreeSide.PRESENT, grow(job, TreeSide.PRESENT), paths, hides_gpu=device == "cpu")
    vectors, _ = _vectors(job, interpreter(job), folder, entries, device)
    golden.write(job.tree, path, vectors, machine)
    return path
