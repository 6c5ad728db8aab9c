"""Compile a specialisation to a code object. Needs triton, and neither torch nor a GPU."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.codeobject.kernarg import Argument, Kernarg, read_kernarg
from rocmend.kernels import target as targets
from rocmend.kernels.compiled.source import source_hash
from rocmend.kernels.compiled.spec import Spec, decode, find_function, named_functions

if TYPE_CHECKING:
    from rocmend.kernels.executor import Launch
    from rocmend.kernels.target import Target


class SourceChangedError(Exception):
    """A kernel's source is no longer what was recorded."""


class Compiled(msgspec.Struct, frozen=True):
    """A compiled kernel.

    Attributes:
        spec: What was compiled.
        name: The kernel's symbol.
        code: The code object (hsaco or cubin).
        assembly: Its assembly (amdgcn or PTX).
        ttir: Triton's first intermediate form, in which the dots and their types stand.
        lds_bytes: LDS of a workgroup, allocated at launch.
        waves: Wavefronts of a workgroup.
        kernarg_bytes: Length of the kernarg segment; 0 where it is not known (NVIDIA).
        arguments: What lies in it, in order: the run-time parameters in the order of the signature, those that became
            constants left out, then Triton's own pointers to global and profile scratch.
        log: What the assembler said (NVIDIA).
    """

    spec: Spec
    name: str
    code: bytes
    assembly: str
    ttir: str
    lds_bytes: int
    waves: int
    kernarg_bytes: int = 0
    arguments: tuple[Argument, ...] = ()
    log: str = ""


def compile_launch(launch: Launch, target: Target) -> Compiled:
    """Compile a recorded launch for a target with the Triton at hand.

    Args:
        launch: As a ``Recorder`` kept it.
        target: The target it was recorded for.
    """
    from rocmend.kernels.compiled.record import specialise

    return compile_spec(specialise(launch, target))


def compile_spec(spec: Spec) -> Compiled:
    """Compile a specialisation with the Triton at hand; what the compiler raises passes through.

    Raises:
        SourceChangedError: The kernel was edited since it was recorded.
    """
    import triton
    from triton.compiler import ASTSource

    from rocmend.kernels.compiled.record import gpu_target

    target = targets.by_name(spec.target)
    kernel = find_function(spec.kernel)
    if spec.source and source_hash(kernel, *named_functions(value for _, value in spec.constants)) != spec.source:
        raise SourceChangedError(f"{spec.kernel} was edited since its launches were recorded: compile again")
    source = _source_of(kernel, ASTSource)(
        kernel,
        {name: _kind(kind) for name, kind in spec.signature.items()},
        {tuple(path): decode(value) for path, value in spec.constants},
        {tuple(path): value for path, value in spec.attributes},
    )
    log = io.StringIO()
    triton.knobs.nvidia.dump_ptxas_log = True  # the only place that tells of an NVIDIA kernel's registers without a GPU
    with contextlib.redirect_stdout(log):
        made = triton.compile(source, target=gpu_target(target), options=dict(spec.options))
    amd = target.vendor == "amd"
    code = bytes(made.asm["hsaco" if amd else "cubin"])
    kernarg = read_kernarg(code, made.metadata.name) if amd else Kernarg()
    return Compiled(
        spec=spec,
        name=made.metadata.name,
        code=code,
        assembly=made.asm["amdgcn" if amd else "ptx"],
        ttir=made.asm["ttir" if "ttir" in made.asm else "ttgir"],
        lds_bytes=made.metadata.shared,
        waves=made.metadata.num_warps,
        kernarg_bytes=kernarg.size,
        arguments=kernarg.arguments,
        log=log.getvalue(),
    )


def _source_of(kernel: Any, otherwise: Any) -> Any:
    """Return the compiler's source class of a kernel: Gluon has one of its own."""
    if not (hasattr(kernel, "is_gluon") and kernel.is_gluon()):
        return otherwise
    from triton.experimental.gluon._runtime import GluonASTSource

    return GluonASTSource


def _kind(kind: Any) -> Any:
    return tuple(_kind(one) for one in kind) if isinstance(kind, list) else kind
