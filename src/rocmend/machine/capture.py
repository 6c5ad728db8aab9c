"""Capturing a machine: the record of what collectors read, redacted, in a folder that reads like the machine."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from stat import S_ISREG

import msgspec

from rocmend.core.errors import UsageError
from rocmend.core.files import naming, umask
from rocmend.core.redact import Redactor
from rocmend.core.redact.here import FIRST_PERSON_ID, hosts, users
from rocmend.core.scratch import ScratchFolder
from rocmend.core.supervise import CommandResult
from rocmend.machine import layout
from rocmend.machine.collect import snapshot
from rocmend.machine.facts import Machine
from rocmend.machine.layout import Manifest, Tree
from rocmend.machine.live import LiveRoot
from rocmend.machine.recording import Recording
from rocmend.machine.root import ChosenPython, Stat, User
from rocmend.machine.trim import trim

Progress = Callable[[str], None]


class Capture(msgspec.Struct, frozen=True):
    """A capture that was written.

    Attributes:
        directory: Where.
        machine: The facts as they were collected, not redacted.
        redactor: What replaced names and numbers.
        files: Number of files of the machine kept.
        commands: Number of tools' outputs kept.
    """

    directory: Path
    machine: Machine
    redactor: Redactor
    files: int
    commands: int


def capture(
    directory: Path, *, progress: Progress | None = None, root: LiveRoot | None = None, force: bool = False
) -> Capture:
    """Run all collectors on this machine and write what they read, redacted, to a folder.

    The folder appears at once, complete. One that is there has to be empty.

    Args:
        directory: The folder to make.
        progress: Called with what is being done, a line each.
        root: The machine; by default the running one. It must be recording.
        force: Replace an earlier capture, if the folder holds nothing else.

    Raises:
        UsageError: The folder is there and is not to be replaced, or cannot be written.
    """
    say = progress or (lambda _line: None)
    directory = directory.absolute()
    _check(directory, force=force)
    root = root or LiveRoot(recording=True)
    if root.record is None:
        raise UsageError("capture", "the machine is not being recorded.")
    say("collecting")
    machine = snapshot(root, name=directory.name)
    redactor = Redactor(hosts=hosts(), users=users())
    say("redacting and writing")
    kept = trim(root.record)
    with naming(directory):
        directory.parent.mkdir(parents=True, exist_ok=True)
        with ScratchFolder("capture", directory.parent) as building:
            files = write(building, kept, redactor, machine)
            building.chmod(0o777 & ~umask())  # a capture is for sharing
            _check(directory, force=force)  # again: reading a machine takes a while
            _replace(directory, building, force=force)
    return Capture(directory, machine, redactor, files, len(kept.commands))


def _check(directory: Path, *, force: bool) -> None:
    """Refuse to replace what is not an empty folder or, where it was asked for, a capture and nothing else."""
    if not directory.exists() and not directory.is_symlink():
        return
    why, next_step = "", "Name a folder that does not exist yet."
    if directory.is_symlink() or not directory.is_dir():
        what = "is there and is no folder, so it is not overwritten."
    elif not any(directory.iterdir()):
        return
    elif other := _other_than_a_capture(directory):
        what, why = (
            "is there and is not overwritten.",
            f"It is no capture: it contains {other}, which a capture never does.",
        )
    elif not force:
        what = "holds a capture, which is not overwritten."
        next_step = "Name a folder that does not exist yet, or replace this capture with --force."
    else:
        return
    raise UsageError(str(directory), what, why=why, next_step=next_step)


def _other_than_a_capture(directory: Path) -> str:
    """Return the first thing in a folder that a capture does not write; empty where it is a capture."""
    documents = {layout.MANIFEST, layout.TREE, layout.ENVIRON, layout.USER, layout.MEASUREMENTS}
    for above, folders, files in os.walk(directory, onerror=_fail):
        at = Path(above).relative_to(directory)
        part = at.parts[0] if at.parts else ""
        for name in sorted(folders):
            known = part == layout.ROOT or (not part and name in {layout.ROOT, layout.COMMANDS})
            if not known or (Path(above) / name).is_symlink():
                return str(at / name)
        for name in sorted(files):
            known = {"": name in documents, layout.ROOT: True}.get(part, name.endswith(".json"))
            if not known or not S_ISREG((Path(above) / name).lstat().st_mode):
                return str(at / name)
    return "" if layout.load_json(directory, layout.MANIFEST, Manifest) else f"no {layout.MANIFEST}"


def _fail(error: OSError) -> None:
    raise error


def _replace(directory: Path, building: Path, *, force: bool) -> None:
    """Move a finished folder into place; an old capture goes only once the new one stands."""
    if not force or not directory.exists():
        building.rename(directory)  # over an empty folder; one that has got something in it meanwhile is an error
        return
    old = Path(tempfile.mkdtemp(dir=directory.parent, prefix=f".{directory.name}.old."))
    directory.rename(old / "capture")
    building.rename(directory)
    shutil.rmtree(old, ignore_errors=True)


def write(directory: Path, record: Recording, redactor: Redactor, machine: Machine) -> int:
    """Write a recording as a capture into an existing folder; return the number of the machine's files kept.

    Args:
        directory: Where; it should be empty.
        record: What was read.
        redactor: Replaces what identifies.
        machine: The facts that were collected: its name, when it was read, and which Python environment was.
    """
    from rocmend import __version__

    errors = dict(record.errors)
    kept = 0
    for path, data in sorted(record.files.items()):
        if _write_file(directory / layout.ROOT, redactor.path(path), redactor.file(path, data)):
            kept += 1
        else:
            errors[path] = "could not be kept in the capture."
    tree = Tree(
        stats={redactor.path(path): _stat(stat, redactor) for path, stat in record.stats.items()},
        links={redactor.path(path): redactor.path(target) for path, target in record.links.items()},
        lists={redactor.path(path): redactor.json(names) for path, names in record.lists.items()},
        denied={redactor.path(path): reason for path, reason in record.denied.items()},
        errors={redactor.path(path): reason for path, reason in errors.items()},
    )
    _write_json(directory / layout.TREE, tree)
    for result in record.commands.values():
        kept_result = _command(result, redactor)
        _write_json(directory / layout.COMMANDS / f"{layout.command_slug(kept_result.argv)}.json", kept_result)
    environ = {key: redactor.field(key, value) for key, value in record.environ.items()}
    _write_json(directory / layout.ENVIRON, environ)
    if record.user is not None:
        _write_json(directory / layout.USER, _user(record.user, redactor))
    measurements = {redactor.path(key): redactor.json(value) for key, value in record.measurements.items()}
    _write_json(directory / layout.MEASUREMENTS, measurements)
    manifest = Manifest(
        machine.captured_at,
        machine.name,
        rocmend_version=__version__,
        redacted=True,
        python=_python(machine, redactor),
    )
    _write_json(directory / layout.MANIFEST, manifest)
    return kept


def _python(machine: Machine, redactor: Redactor) -> ChosenPython | None:
    """Return the environment that was read: where the person stood when it was chosen is not captured."""
    if not machine.value("python.found"):
        return None
    executable, prefix = (str(machine.value(f"python.{name}", "")) for name in ("executable", "prefix"))
    found_by = str(machine.value("python.found_by", ""))
    return ChosenPython(redactor.path(executable), redactor.path(prefix), found_by)


def _write_file(root: Path, path: str, data: bytes) -> bool:
    """Write one file of the machine; False where its path cannot be made here (a name too long, a file in the way)."""
    target = root / path.lstrip("/")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(data)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
            raise  # all that follows would be left out too
        return False
    return True


def _write_json(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value, order="sorted"), indent=2) + b"\n")


def _id(number: int) -> int:
    return min(number, FIRST_PERSON_ID)


def _stat(stat: Stat, redactor: Redactor) -> Stat:
    return msgspec.structs.replace(
        stat,
        uid=_id(stat.uid),
        gid=_id(stat.gid),
        owner=stat.owner if stat.uid < FIRST_PERSON_ID else redactor.user(stat.owner),
        group=redactor.group(stat.group),
    )


def _user(user: User, redactor: Redactor) -> User:
    return User(_id(user.uid), _id(user.gid), tuple(redactor.group(group) for group in user.groups))


def _command(result: CommandResult, redactor: Redactor) -> CommandResult:
    return msgspec.structs.replace(
        result,
        argv=tuple(redactor.json(result.argv)),
        stdout=redactor.text(result.stdout),
        stderr=redactor.text(result.stderr),
    )
