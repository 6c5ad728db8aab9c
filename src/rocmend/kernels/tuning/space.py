"""Which configurations of a kernel are tried."""

from __future__ import annotations

import functools
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, NamedTuple

from packaging.specifiers import SpecifierSet

from rocmend.core import gfx
from rocmend.core.errors import UnitError
from rocmend.kernels.ops import folders
from rocmend.kernels.target import Target
from rocmend.kernels.tuning.config import AMD_OPTIONS, NVIDIA_OPTIONS, Value
from rocmend.kernels.tuning.expression import ExpressionError, evaluate

MOST_THREADS = 1024
"""Of a workgroup, on AMD and NVIDIA alike."""

# Versions of Triton whose AMD compiler takes an option and uses it.
_SINCE = {"wgp_cu_mode": ">=3.9", "llvm_fn_attrs": ">=3.9", "schedule_hint": "<3.8"}
_COUNTS = frozenset({"STAGES"})
"""Constants in capitals that are no sizes of tiles, which are powers of two."""


class Space(NamedTuple):
    """The values that the parameters of a kernel may take.

    Args:
        kernel: The kernel's name within its op.
        shape_class: Class of shapes, or ``*``.
        target: A name of ``Target.lookup``.
        params: Name to values: the kernel's constants, the host code's numbers, ``num_warps`` and ``num_stages``.
        options: Name of the set of the compiler's settings (``options.toml``) that are tried with the best of these.
        need: Condition to why it must hold. Besides a candidate's parameters it may name ``wave``, the lanes of a
            wavefront, and ``lanes``, those of the workgroup.
        lds: Bytes of LDS that a candidate needs, an expression likewise; empty where only compiling tells.
        trips: Trips of the kernel's loops from the outermost, by names of its arguments and constants, where they do
            not follow from the code.
    """

    kernel: str
    shape_class: str
    target: str
    params: dict[str, tuple[Value, ...]]
    options: str = ""
    need: tuple[tuple[str, str], ...] = ()
    lds: str = ""
    trips: tuple[str, ...] = ()


class Candidates(NamedTuple):
    """Configurations to try, and what is left out.

    Args:
        configs: The configuration in use first.
        dropped: What is left out before anything is compiled, as ``name=value …``, to the reason.
    """

    configs: tuple[dict[str, Value], ...]
    dropped: dict[str, str]


@functools.cache
def spaces(op: str) -> tuple[Space, ...]:
    """Return the spaces of an op, from ``[[space]]`` in its ``tuning.toml``; empty where it declares none.

    Raises:
        UnitError: One of them is wrong.
    """
    folder = folders().get(op)
    if folder is None or not (path := folder / "tuning.toml").is_file():
        return ()
    rows = tomllib.loads(path.read_text(encoding="utf-8")).get("space", [])
    return tuple(space for row in rows for space in _spaces(op, row))


def _spaces(op: str, row: Mapping[str, Any]) -> list[Space]:
    kernels: Any = row.get("kernel")
    params: dict[str, Any] = row.get("params", {})
    if not kernels or not all(isinstance(values, list) and values for values in params.values()):
        raise UnitError("tuning", f"{op}/tuning.toml: a space needs a kernel, and lists of values as its params.")
    if not params and not row.get("options"):
        raise UnitError("tuning", f"{op}/tuning.toml: the space of {kernels} has neither params nor options.")
    if row.get("options", "") not in {"", *_option_sets()}:
        raise UnitError(
            "tuning",
            f"{op}/tuning.toml: the space of {kernels} names options {row['options']!r}.",
            next_step=f"There are {', '.join(_option_sets())}, in tuning/options.toml.",
        )
    shared = (
        row.get("class", "*"),
        row.get("target", "any"),
        {name: tuple(values) for name, values in params.items()},
        row.get("options", ""),
        tuple(row.get("need", {}).items()),
        row.get("lds", ""),
        tuple(row.get("trips", ())),
    )
    return [Space(name, *shared) for name in ([kernels] if isinstance(kernels, str) else kernels)]


@functools.cache
def _option_sets() -> dict[str, dict[str, dict[str, list[Value]]]]:
    text = resources.files("rocmend.kernels.tuning").joinpath("options.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def space_for(op: str, kernel: str, shape_class: str, target: Target) -> Space | None:
    """Return the space of a kernel: the most specific target first, then the class, then any class."""
    known = {(space.kernel, space.shape_class, space.target): space for space in spaces(op)}
    for name in target.lookup:
        for wanted in (shape_class, "*"):
            if (kernel, wanted, name) in known:
                return known[kernel, wanted, name]
    return None


def candidates(space: Space, current: Mapping[str, Value], target: Target, triton: str) -> Candidates:
    """Return the configurations of a space's parameters, that in use first.

    Args:
        space: The space.
        current: The configuration in use.
        target: What it is for.
        triton: Version of Triton that would compile them.
    """
    return _product(space, current, space.params, target, triton)


def option_candidates(space: Space, best: Mapping[str, Value], target: Target, triton: str) -> Candidates:
    """Return a configuration with every combination of the compiler's settings that its space asks for."""
    groups = _option_sets().get(space.options, {})
    settings = next((groups[name] for name in target.lookup if name in groups), {})
    return _product(space, best, settings, target, triton)


def _product(
    space: Space, current: Mapping[str, Value], params: Mapping[str, Sequence[Value]], target: Target, triton: str
) -> Candidates:
    dropped: dict[str, str] = {}
    allowed: dict[str, list[Value]] = {}
    for name, values in params.items():
        for value in values:
            if reason := _refused(name, value, target, triton):
                dropped[f"{name}={value}"] = reason
            else:
                allowed.setdefault(name, []).append(value)
    found = [dict(current)]
    for chosen in itertools.product(*allowed.values()):
        config = {**current, **dict(zip(allowed, chosen, strict=True))}
        if config in found or _same(config, current):
            continue
        if reason := unfit(space, config, target):
            dropped[look(config)] = reason
        else:
            found.append(config)
    return Candidates(tuple(found), dropped)


def _same(config: Mapping[str, Value], other: Mapping[str, Value]) -> bool:
    """Whether two configurations differ only in settings that the second leaves at the compiler's default."""
    differ = {name: value for name, value in config.items() if other.get(name) != value}
    return all(name not in other and value == DEFAULTS.get(name) for name, value in differ.items())


DEFAULTS: dict[str, Value] = {
    "waves_per_eu": 0,
    "matrix_instr_nonkdim": 0,
    "kpack": 1,
    "wgp_cu_mode": "wgp",
    "schedule_hint": "none",
    "llvm_fn_attrs": "",
    "num_warps": 4,
    "num_stages": 2,
}
"""The compiler's settings where a record has none."""


def look(config: Mapping[str, Value]) -> str:
    """Return a configuration as ``name=value name=value``."""
    return " ".join(f"{name}={value}" for name, value in config.items())


def _refused(name: str, value: Value, target: Target, triton: str) -> str:
    """Return why a setting is of no use on a target, whatever the others; empty where it is."""
    foreign = NVIDIA_OPTIONS if target.vendor == "amd" else AMD_OPTIONS
    versions = _SINCE.get(name, "")
    most = _most_waves(target)
    rules = (
        (name in foreign, f"no setting of the compiler for {target.name}"),
        (
            not SpecifierSet(versions).contains(triton, prereleases=True),
            f"Triton {triton} has no use for it (needs {versions})",
        ),
        (
            name in {"matrix_instr_nonkdim", "kpack"} and not _has_mfma(target),
            f"{target.name} has no MFMA instructions",
        ),
        (
            name == "kpack" and value != 1 and target.name.startswith("gfx95"),
            "Triton replaces it by 1 from gfx950 on",
        ),
        (
            name == "wgp_cu_mode" and target.generation not in {10, 11, 12},
            f"{target.name} has no work-group processors",
        ),
        (
            name == "waves_per_eu" and isinstance(value, int) and value > most,
            f"a SIMD of {target.name} holds at most {most} wavefronts",
        ),
    )
    return next((reason for refused, reason in rules if refused), "")


def _has_mfma(target: Target) -> bool:
    found = gfx.find(target.name)
    return found is not None and found.matrix_unit.value == "MFMA"


def _most_waves(target: Target) -> int:
    from rocmend.kernels.compiled.occupancy import most_waves

    found = gfx.find(target.name)
    return most_waves(found) if found else 64


def unfit(space: Space, config: Mapping[str, Value], target: Target) -> str:
    """Return why a kernel cannot be compiled with a configuration, without compiling it; empty where it may be.

    Raises:
        UnitError: A condition of the space names something that the configuration has not.
    """
    warps = config.get("num_warps", DEFAULTS["num_warps"])
    lanes = int(warps) * target.wave_size
    if lanes > MOST_THREADS:
        return f"{warps} wavefronts of {target.wave_size} lanes are more than a workgroup's {MOST_THREADS} threads"
    for name, value in config.items():
        if type(value) is int and name.isupper() and name not in _COUNTS and value & (value - 1):
            return f"{name} must be a power of two"
    values = {**DEFAULTS, **config, "wave": target.wave_size, "lanes": lanes}
    try:
        for condition, why in space.need:
            if not evaluate(condition, values):
                return f"{condition} must hold: {why}"
        needed = evaluate(space.lds, values) if space.lds else 0
    except ExpressionError as error:
        raise UnitError("tuning", f"the space of {space.kernel}: {error}.") from None
    if needed > target.lds_bytes:
        return f"needs about {needed:.0f} bytes of LDS, {target.name} has {target.lds_bytes} for a workgroup"
    return ""
