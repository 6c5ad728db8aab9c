"""Level 4: the ported kernels, as machine code run on the CPU, against what the original gave.

The code objects are compiled for wavefronts of 32 and of 64 lanes, the recorded launches' buffers become the memory of
``rocmend.emulate``, which runs the code and checks it. Where what it needs is not there, the level did not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from rocmend.codeobject.hip import HipFailure, HipObject
from rocmend.codeobject.hip.toolchain import find_toolchain
from rocmend.codeobject.kernarg import Kernarg, pack, read_kernargs
from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.core.units import count_text
from rocmend.emulate.needs import lacking
from rocmend.port.verify import cases
from rocmend.port.verify.compiles import compiled
from rocmend.port.verify.job import Job
from rocmend.port.verify.records import Evidence, Level, Outcome
from rocmend.port.verify.result import concluded, not_run
from rocmend.port.verify.units import units_of

if TYPE_CHECKING:
    from rocmend.emulate.device import Device

__all__ = ["TARGETS", "Prepared", "absent", "kernel_named", "prepared", "run"]

TARGETS = ("gfx1100", "gfx1201", "gfx942")
"""Wavefronts of 32 lanes on two generations, and of 64."""


class Prepared(NamedTuple):
    """A recorded launch, ready to run on a target.

    Args:
        name: The case's.
        folder: Where its buffers are.
        case: The case.
        target: The gfx target.
        code: The code object.
        kernarg: The segment's layout.
    """

    name: str
    tree: Beneath
    folder: str
    case: cases.Case
    target: str
    code: bytes
    kernarg: Kernarg

    def segment(self, addresses: Mapping[str, int]) -> bytes:
        """Return the kernarg segment, with the addresses of the buffers, by the file that each is in.

        Raises:
            UsageError: The case's arguments are not the kernel's.
        """
        values: list[int | bytes] = [
            addresses[one.before] + one.offset if isinstance(one, cases.Buffer) else one.data
            for one in self.case.parameters
        ]
        return pack(self.kernarg, values, self.case.launch)


def absent(job: Job) -> str:
    """Return why the level cannot run; empty where it can."""
    count = len(cases.read_all(job.tree))
    if not count:
        return f"no launches are recorded in {cases.FOLDER}"
    why = lacking()
    return f"{why} ({count_text(count, 'recorded launch', 'recorded launches')} to run)" if why else ""


def run(job: Job) -> Level:
    """Run every recorded case on every target, if anything here can."""
    if why := absent(job):
        return not_run(why)
    from rocmend.emulate.device import Device  # needs numpy, which the other levels do without

    evidence = []
    for number, one in enumerate(prepared(job)):
        evidence.append(one if isinstance(one, Evidence) else _ran(Device(), one))
        job.tell("emulated", number + 1, number + 1)
    return concluded(evidence, f"{len(evidence)} launches of recorded kernels, for {', '.join(TARGETS)}.")


def prepared(job: Job) -> Iterator[Prepared | Evidence]:
    """Yield each recorded case for each target, ready to run; or why it is not.

    Raises:
        DataError: A case cannot be read.
        NoToolchainError: Nothing here compiles HIP.
    """
    known = {unit.path: unit for unit in units_of(job)}
    recorded = cases.read_all(job.tree)
    wanted = [known[path] for path in dict.fromkeys(case.unit for _, _, case in recorded) if path in known]
    every = compiled(job, wanted, TARGETS, find_toolchain(), "emulated") if wanted else []
    # of several builds the first one counts, or else the one that does not compile
    every.sort(key=lambda made: not isinstance(made.result, HipFailure))
    objects = {(made.unit.path, made.target): made.result for made in reversed(every)}
    for name, folder, case in recorded:
        for target in TARGETS:
            made = objects.get((case.unit, target))
            if isinstance(made, HipFailure):
                yield Evidence(name, Outcome.BROKEN, f"{case.unit} does not compile: {made.message}", target=target)
            elif not isinstance(made, HipObject):
                yield Evidence(name, Outcome.BROKEN, f"{case.unit} is not a translation unit of the project")
            else:
                try:
                    layout = kernel_named(case.kernel, read_kernargs(made.code, case.unit))
                except DataError as error:
                    yield Evidence(name, Outcome.BROKEN, error.message, target=target)
                else:
                    yield Prepared(name, job.tree, folder, case, target, made.code, layout)


def kernel_named(name: str, kernels: tuple[Kernarg, ...]) -> Kernarg:
    """Return the kernel that a name means: a mangled one, or the source's where one kernel alone has it.

    Raises:
        DataError: No kernel has the name, or several.
    """
    spelt = name
    for cuda, hip in _TYPES.items():
        spelt = spelt.replace(cuda, hip)
    fits = [one for one in kernels if one.kernel in {name, spelt}]
    if not fits:  # the Itanium ABI writes a name behind its length
        plain = _plain(name)
        mangled = re.compile(rf"_Z(?:N\w*?)?L?{len(plain)}{re.escape(plain)}(?!\d)")
        fits = [one for one in kernels if mangled.match(one.kernel)]
        if len(fits) > 1 and name.startswith("_Z"):  # instances of a template: what follows the name tells them apart
            rest = spelt.rpartition(plain)[2]
            fits = [one for one in fits if one.kernel.endswith(rest)]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        raise DataError("case", f"the code object has no kernel {name!r}: {', '.join(one.kernel for one in kernels)}.")
    raise DataError(
        "case", f"{name!r} matches {len(fits)} kernels: give the mangled name, for example {fits[0].kernel}."
    )


_TYPES = {"14__nv_bfloat162": "15__hip_bfloat162", "13__nv_bfloat16": "14__hip_bfloat16"}
"""Types that HIP calls otherwise, as mangled names have them."""


def _plain(name: str) -> str:
    """Return a kernel's own name: the last one of a mangled name's parts, or of a qualified one's."""
    if not name.startswith("_Z"):
        return name.rpartition("::")[2].partition("<")[0]
    at = 3 if name.startswith("_ZN") else 2
    last = ""
    while found := re.compile(r"L?(\d+)").match(name, at):
        at = found.end() + int(found[1])
        last = name[found.end() : at]
        if not name.startswith("_ZN"):
            break
    return last or name


def _ran(device: Device, one: Prepared) -> Evidence:
    """Run a case and compare what it wrote."""
    buffers = {each.before: each for each in one.case.parameters if isinstance(each, cases.Buffer)}
    held = {name: cases.buffer(one.tree, one.folder, name) for name in buffers}
    addresses = {name: device.allocate(data) for name, data in held.items()}
    from rocmend.emulate.decode import UnmodelledError
    from rocmend.emulate.device import FaultError

    try:
        device.run(one.code, one.kernarg.kernel, one.segment(addresses), one.case.launch)
    except UnmodelledError as error:
        return Evidence(one.name, Outcome.UNKNOWN, error.message, target=one.target)
    except FaultError as error:
        return Evidence(one.name, Outcome.BROKEN, error.message, target=one.target)
    for name, each in buffers.items():
        expected = cases.buffer(one.tree, one.folder, each.after) if each.after else held[name]
        reason = cases.compare(expected, device.read(addresses[name], len(expected)), each.kind, each.tolerance)
        if reason is not None:
            return Evidence(one.name, Outcome.BROKEN, f"{each.before}: {reason}", target=one.target)
    return Evidence(one.name, Outcome.HOLDS, "every buffer matches the recording", target=one.target)
