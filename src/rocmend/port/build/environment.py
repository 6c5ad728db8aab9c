"""What is installed in a Python environment, read by its own interpreter in a child process."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from rocmend.core.documents import MALFORMED
from rocmend.core.errors import UsageError
from rocmend.core.secrets import hide_tokens, is_secret_variable
from rocmend.core.supervise import Ending, run_command

__all__ = ["Environment", "Installed", "Torch", "environment"]

VARIABLES = (
    "TORCH",
    "PYTORCH",
    "INDUCTOR",
    "TRITON",
    "HIP",
    "ROCM",
    "HSA",
    "AMD",
    "CUDA",
    "NCCL",
    "GPU_",
    "PIP_",
    "UV_",
)
"""Beginnings of the names of variables that are told."""

_LOGIN = re.compile(r"//[^/@\s]+@")
"""What an index's address can hold before its host, and no report should."""

# Runs in the environment's interpreter, which may be older than ours and must not import torch: that takes seconds, and
# a broken build ends the process.
_LOOK = r"""
import sys
sys.path[:] = [place for place in sys.path if place]  # -c puts the working folder first, which may be a project
import json, os, re
found = {"python": "%d.%d.%d" % sys.version_info[:3], "executable": sys.executable, "prefix": sys.prefix}
found["virtual"] = sys.prefix != getattr(sys, "base_prefix", sys.prefix)
found["packages"] = []
found["problems"] = []
try:
    import sysconfig
    found["managed"] = os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
except Exception as error:  # whatever is broken in a stranger's Python is told, here and below, and the rest is read
    found["problems"].append("stdlib: %s" % error)
try:
    from importlib import metadata
    for one in metadata.distributions():
        try:
            name = one.metadata["Name"]
            if name:
                place = str(getattr(one, "_path", ""))
                asked = [line for line in (one.requires or []) if re.match(r"(?i)(torch|triton|torchvision)\b", line)]
                found["packages"].append({"name": name, "version": one.version or "", "place": place, "asks": asked})
        except Exception as error:
            found["problems"].append("%s: %s" % (getattr(one, "_path", "?"), error))
except Exception as error:
    found["problems"].append("importlib.metadata: %s" % error)
torch = {"folder": "", "version": "", "hip": "", "cuda": ""}
for place in sys.path:
    path = os.path.join(place, "torch", "version.py")
    if os.path.isfile(path):
        torch["folder"] = os.path.dirname(os.path.abspath(path))
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            pattern = r"^(__version__|hip|cuda)\b[^=\n]*=\s*[\"']([^\"']*)[\"']"
            for name, value in re.findall(pattern, text, re.M):
                torch["version" if name == "__version__" else name] = value
        except Exception as error:
            found["problems"].append("%s: %s" % (path, error))
        break
found["torch"] = torch
print("\x1e" + json.dumps(found))
"""


class Installed(msgspec.Struct, frozen=True):
    """A distribution.

    Attributes:
        name: As it says itself.
        version: Its version.
        place: Where its metadata lies.
        asks: Its requirements of PyTorch's packages.
    """

    name: str
    version: str
    place: str = ""
    asks: tuple[str, ...] = ()


class Torch(msgspec.Struct, frozen=True):
    """The torch that would be imported, by its own ``version.py``; empty where there is none.

    Attributes:
        folder: Of the package.
        version: With the local part: ``2.9.1+rocm6.4``.
        hip: The release of HIP that it was built for; empty for a build that is not for ROCm.
        cuda: Likewise of CUDA.
    """

    folder: str = ""
    version: str = ""
    hip: str = ""
    cuda: str = ""


class Environment(msgspec.Struct, frozen=True):
    """A Python environment.

    Attributes:
        python: The interpreter's version.
        executable: The interpreter.
        prefix: Where the environment lies.
        virtual: Whether it is a virtual environment.
        managed: Whether its distribution forbids pip to install in it (PEP 668).
        packages: What is installed, in the order it is found; what comes first is imported.
        torch: The torch that would be imported.
        problems: What could not be read.
        variables: Of the environment that the program is started in.
    """

    python: str
    executable: str
    prefix: str
    virtual: bool
    packages: tuple[Installed, ...]
    torch: Torch = Torch()
    managed: bool = False
    problems: tuple[str, ...] = ()
    variables: dict[str, str] = {}


def environment(
    python: str | Path, *, time_limit_s: float = 30.0, variables: Mapping[str, str] | None = None
) -> Environment:
    """Return what is installed for an interpreter.

    Args:
        python: The interpreter; in a virtual environment the one in its ``bin``.
        time_limit_s: Wall seconds after which the child is ended.
        variables: The variables of the child; ours where None.

    Raises:
        UsageError: It cannot be run, it takes longer, or it is no Python.
    """
    given = dict(os.environ if variables is None else variables)
    result = run_command([str(python), "-c", _LOOK], time_limit_s=time_limit_s, env=given)
    if result.ending is Ending.TIMEOUT:
        raise UsageError(
            str(python), f"did not answer within {time_limit_s:g} s.", next_step="Try again, or set a longer limit."
        )
    _, mark, answer = result.stdout.rpartition("\x1e")
    if not result.ok or not mark:
        said = (result.stderr.strip().splitlines() or ["it printed nothing"])[-1]
        raise UsageError(
            str(python), f"cannot be queried as a Python interpreter: {said}", next_step="Name an interpreter."
        )
    try:
        found = msgspec.json.decode(answer, type=Environment)
    except MALFORMED as error:
        raise UsageError(str(python), f"gave an unreadable answer: {error}") from error
    told = {name: _shown(name, value) for name, value in sorted(given.items()) if name.startswith(VARIABLES)}
    return msgspec.structs.replace(found, variables=told)


def _shown(name: str, value: str) -> str:
    """Return a variable's value as it is told: UV_PUBLISH_TOKEN's and PIP_INDEX_URL's hold what no report should."""
    return "***" if is_secret_variable(name) else hide_tokens(_LOGIN.sub("//***@", value), "***")
