"""The Python environment that the user works in, found by reading files; no interpreter is run.

Every command takes the one that ``active_environment`` chooses. rocmend itself may live elsewhere (pipx, uv tool), so
its own ``sys.prefix`` comes last.

Source: https://docs.python.org/3/library/site.html, https://docs.python.org/3/library/sys_path_init.html
"""

from __future__ import annotations

import os
import posixpath
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec

import msgspec

from rocmend.machine.parse.distributions import parse_folder
from rocmend.machine.parse.pyvenv import PyVenv, parse_pyvenv
from rocmend.machine.root import ChosenPython, Root, natural_key
from rocmend.machine.software.reading import final_path, is_dir, names, text

IN_FOLDER = ".venv of this folder"
"""Why an environment was chosen that may be a stranger's: nothing of it is run unasked."""

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LIB = re.compile(r"python(\d+\.\d+)t?\Z")


class Environment(msgspec.Struct, frozen=True):
    """A Python environment.

    Attributes:
        executable: Its interpreter; empty where the prefix has none.
        version: ``3.12.3``, or ``3.12`` where no file says more.
        prefix: ``sys.prefix``.
        kind: venv, conda or system.
        site_packages: Folders that hold packages, in import order.
        found_by: Why it is the one: ``--python``, VIRTUAL_ENV, CONDA_PREFIX, ``python3 on PATH``, ``.venv of this
            folder`` or ``rocmend's own``.
    """

    executable: str
    version: str
    prefix: str
    kind: str
    site_packages: tuple[str, ...]
    found_by: str


class Distribution(msgspec.Struct, frozen=True):
    """An installed Python distribution.

    Attributes:
        name: Canonical name.
        version: Version, local part included.
        site: The site-packages folder it is in.
        info: Its ``.dist-info`` or ``.egg-info`` folder or file.
    """

    name: str
    version: str
    site: str
    info: str


def active_environment(root: Root) -> Environment | None:
    """Return the Python environment that all of a report is about, or None where the machine has no Python.

    It is the one asked for; else the activated one (VIRTUAL_ENV, CONDA_PREFIX); else, of ``python3`` on PATH, ``.venv``
    in the working folder and rocmend's own, the first that has PyTorch, or the first there is.
    """
    if root.python is not None:
        return _chosen(root, root.python)
    variables = root.environ()
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = variables.get(variable, "").rstrip("/")
        if prefix.startswith("/") and is_dir(root, prefix):
            return _from_prefix(root, prefix, _interpreter(root, prefix), variable)
    first = None
    for found in _not_activated(root, variables):
        if not root.live or _has_torch(root, found):
            return found
        first = first or found
    return first


def _chosen(root: Root, python: ChosenPython) -> Environment:
    if python.prefix:
        executable = python.executable or _interpreter(root, python.prefix)
        return _from_prefix(root, python.prefix, executable, python.found_by)
    return msgspec.structs.replace(_from_executable(root, python.executable), found_by=python.found_by)


def _not_activated(root: Root, variables: Mapping[str, str]) -> Iterator[Environment]:
    """Yield the environments that nobody activated or named, the likeliest first."""
    executables = (
        f"{folder.rstrip('/')}/{name}"
        for folder in variables.get("PATH", DEFAULT_PATH).split(":")
        for name in ("python3", "python")
        if folder.startswith("/")
    )
    if (on_path := next(filter(root.exists, executables), None)) is not None:
        yield _from_executable(root, on_path)
    if not root.live:
        return
    folder = _working_folder()
    if folder and root.exists(f"{folder}/.venv/pyvenv.cfg"):
        yield _from_prefix(root, f"{folder}/.venv", _interpreter(root, f"{folder}/.venv"), IN_FOLDER)
    yield _from_prefix(root, sys.prefix, sys.executable, "rocmend's own")


def _has_torch(root: Root, environment: Environment) -> bool:
    if environment.prefix == sys.prefix:
        return find_spec("torch") is not None  # sees what .pth files add; a package at the top is found, not imported
    return any(root.exists(f"{site}/torch/version.py") for site in environment.site_packages)


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  it is a path of the machine, as text
    except OSError:  # it was removed
        return ""


def _interpreter(root: Root, prefix: str) -> str:
    for name in ("python3", "python"):
        if root.exists(f"{prefix}/bin/{name}"):
            return f"{prefix}/bin/{name}"
    return ""


def _from_executable(root: Root, executable: str) -> Environment:
    """Resolve an interpreter found on PATH: a venv's is a link, so pyvenv.cfg comes before following links."""
    found_by = f"{posixpath.basename(executable)} on PATH"
    prefix = posixpath.dirname(posixpath.dirname(executable))
    if root.exists(f"{prefix}/pyvenv.cfg"):
        return _from_prefix(root, prefix, executable, found_by)
    if posixpath.basename(posixpath.dirname(executable)) == "shims":
        executable = _behind_shim(root, prefix) or executable
    executable = final_path(root, executable)
    return _from_prefix(root, posixpath.dirname(posixpath.dirname(executable)) or "/", executable, found_by)


def _behind_shim(root: Root, pyenv: str) -> str | None:
    """Return the interpreter that a pyenv shim starts: PYENV_VERSION, or the global version file."""
    chosen = root.environ().get("PYENV_VERSION") or text(root, f"{pyenv}/version") or ""
    for version in chosen.replace(":", " ").split():
        executable = f"{pyenv}/versions/{version}/bin/python3"
        if "/" not in version and root.exists(executable):
            return executable
    return None


def _from_prefix(root: Root, prefix: str, executable: str, found_by: str) -> Environment:
    config_text = text(root, f"{prefix}/pyvenv.cfg")
    config = parse_pyvenv(config_text) if config_text is not None else None
    short = _short_version(root, prefix, executable, config)
    kind, version = "system", (config.version if config else "") or short
    if config is not None:
        kind = "venv"
    elif is_dir(root, f"{prefix}/conda-meta"):
        kind = "conda"
        version = _conda_version(root, prefix) or short
    sites = tuple(dict.fromkeys(_sites(root, prefix, short, config)))
    return Environment(executable, version, prefix, kind, sites, found_by)


def _short_version(root: Root, prefix: str, executable: str, config: PyVenv | None) -> str:
    """Return ``3.12``: what pyvenv.cfg or the interpreter's name says, else the newest lib/pythonX.Y folder."""
    if config is not None and (match := re.match(r"\d+\.\d+", config.version)):
        return match[0]
    if match := re.search(r"python(\d+\.\d+)t?\Z", final_path(root, executable)):
        return match[1]
    found = {
        match[1] for lib in ("lib", "lib64") for name in names(root, f"{prefix}/{lib}") if (match := _LIB.match(name))
    }
    return max(found, key=natural_key, default="")


def _conda_version(root: Root, prefix: str) -> str:
    for name in names(root, f"{prefix}/conda-meta"):
        if match := re.match(r"python-(\d+\.\d+\.\d+)-[^-]*\.json\Z", name):
            return match[1]
    return ""


def _sites(root: Root, prefix: str, short: str, config: PyVenv | None) -> Iterator[str]:
    """Yield the folders of packages that exist, in import order."""
    variables = root.environ()
    for entry in variables.get("PYTHONPATH", "").split(":"):
        if entry.startswith("/") and is_dir(root, entry):
            yield entry.rstrip("/")
    if config is not None:
        yield from _existing(root, _package_folders(prefix, short))
        if not config.system_site or not config.home:
            return
        prefix = posixpath.dirname(config.home.rstrip("/"))
    if base := _user_base(variables):
        yield from _existing(root, (f"{base}/lib/python{short}/site-packages",))
    if prefix == "/usr":
        yield from _existing(root, _package_folders("/usr/local", short))
    yield from _existing(root, _package_folders(prefix, short))
    if prefix == "/usr":
        yield from _existing(root, ("/usr/lib/python3/dist-packages",))


def _package_folders(prefix: str, short: str) -> Iterator[str]:
    for folder in ("site-packages", "dist-packages"):
        for lib in ("lib64", "lib"):
            yield f"{prefix}/{lib}/python{short}/{folder}"


def _existing(root: Root, folders: Iterator[str] | tuple[str, ...]) -> Iterator[str]:
    for folder in folders:
        lib64 = folder.rsplit("/python", 1)[0]
        if lib64.endswith("/lib64") and root.link(lib64) is not None:
            continue  # a venv's lib64 is a link to lib: the same packages again
        if is_dir(root, folder):
            yield folder


def _user_base(variables: Mapping[str, str]) -> str:
    """Return the folder that user packages are under, or an empty string where Python leaves it out."""
    if variables.get("PYTHONNOUSERSITE"):
        return ""
    home = variables.get("HOME", "")
    return variables.get("PYTHONUSERBASE") or (f"{home.rstrip('/')}/.local" if home.startswith("/") else "")


def is_externally_managed(root: Root, environment: Environment) -> bool:
    """Whether the distribution has marked an environment as its own (PEP 668)."""
    short = ".".join(environment.version.split(".")[:2])
    folders = (f"{environment.prefix.rstrip('/')}/{lib}/python{short}" for lib in ("lib", "lib64"))
    return any(root.exists(f"{folder}/EXTERNALLY-MANAGED") for folder in folders)


def distributions(root: Root, environment: Environment | None) -> list[Distribution]:
    """Return every distribution of an environment, in import order; a name can appear more than once.

    Raises:
        ReadError: A folder of packages is there and cannot be listed.
    """
    found: list[Distribution] = []
    for site in environment.site_packages if environment else ():
        found.extend(
            Distribution(parsed[0], parsed[1], site, f"{site}/{entry}")
            for entry in root.list_dir(site)
            if entry.endswith("-info") and (parsed := parse_folder(entry))
        )
    return found


def first_by_name(found: list[Distribution]) -> dict[str, Distribution]:
    """Return name to distribution; of several with one name the one that Python would import from."""
    by_name: dict[str, Distribution] = {}
    for distribution in found:
        by_name.setdefault(distribution.name, distribution)
    return by_name
