"""Whether the code that a package carries serves a GPU: natively, through a generic target, by an override, or not.

The rules are those of ROCm's loader: code for another target is refused ("invalid device function"), code for the
target's LLVM generic class is taken, and the settings xnack and sramecc must be what the code was compiled for. An
override makes the runtime believe in another target; it is offered only within one generic class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from rocmend.codeobject.isa import SPIRV, normalise
from rocmend.codeobject.matching import Match, Verdict, describe, shown_targets
from rocmend.codeobject.model import Component, Inspection, TargetUse, tally
from rocmend.codeobject.part_service import ComponentService, Gpu, gpu_of, serve_part
from rocmend.codeobject.roles import Role, role_of
from rocmend.codeobject.variants import loaded_parts
from rocmend.core.errors import UsageError
from rocmend.core.gfx import GfxTarget, override_between, targets
from rocmend.core.units import count_text

__all__ = ["ComponentService", "Service", "Verdict", "serve", "service_for_targets"]

OVERRIDE_VARIABLE = "HSA_OVERRIDE_GFX_VERSION"
_NAMED_FILES = 3


class Service(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a package serves a GPU.

    Attributes:
        target: The GPU's target.
        verdict: The package as a whole: what its kernels and the libraries they need come to.
        reason: Why.
        via: The target whose code would run.
        override: Value of HSA_OVERRIDE_GFX_VERSION, where the verdict is ``override``.
        environment: What must be set for the verdict to hold.
        components: Part by part.
        cautions: What speaks against relying on it, and overrides that were refused.
        only_with: HIP versions of PyTorch beside which it runs, where it does not run beside each and it is not known
            which there is. The verdict is then ``none``.
    """

    target: str
    verdict: Verdict
    reason: str
    via: str = ""
    override: str = ""
    environment: dict[str, str] = {}
    components: tuple[ComponentService, ...] = ()
    cautions: tuple[str, ...] = ()
    only_with: tuple[str, ...] = ()


class _Outcome(msgspec.Struct, frozen=True):
    """All parts together: how each is served, and what decides.

    Attributes:
        parts: How each is served.
        deciding: Matches of those that decide.
        unserved: Those whose absence is an error.
        undecided: Those that decide and cannot be judged.
    """

    parts: tuple[ComponentService, ...]
    deciding: tuple[Match, ...]
    unserved: tuple[str, ...]
    undecided: tuple[ComponentService, ...] = ()

    @property
    def runs(self) -> bool:
        return bool(self.deciding) and not self.unserved and not self.undecided


def _serve_parts(components: Sequence[Component], gpu: Gpu, override: str = "") -> _Outcome:
    served = [serve_part(component, gpu, override) for component in components]
    parts = tuple(part for part, _ in served)
    lacking = [part.name for part in parts if part.verdict is Verdict.NONE and part.role == Role.KERNELS.value]
    has_kernels = any(part.role == Role.KERNELS.value for part in parts)
    wanted = Role.KERNELS.value if has_kernels else Role.LIBRARY.value
    deciding = tuple(match for part, match in served if match is not None and part.role == wanted)
    undecided = tuple(part for part in parts if part.verdict is Verdict.UNKNOWN and part.role == wanted)
    return _Outcome(parts, deciding, tuple(dict.fromkeys(lacking)), undecided)


def _cautions(parts: Sequence[ComponentService]) -> list[str]:
    """Say which parts do not serve, or serve in part, where the package as a whole does."""
    found = []
    for part in parts:
        if part.verdict is Verdict.UNKNOWN:
            found.append(f"{_shown_part(part)}: {part.reason}")
        elif (part.verdict is Verdict.NONE and not part.variant) or 0 < part.objects < part.units:
            found.append(f"{part.name} {part.reason}")
    return found


def _by_variant(parts: Sequence[ComponentService]) -> dict[str, tuple[list[str], list[str]]]:
    """Return, for each part that some of its variants serve and some do not, those that do not and those that do."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    for part in parts:
        if part.variant and part.verdict is not Verdict.UNKNOWN:
            found.setdefault(part.name, ([], []))[part.verdict is not Verdict.NONE].append(part.variant)
    return {name: both for name, both in found.items() if all(both)}


# -- the package -------------------------------------------------------------------------------------------------------


def _held(components: Sequence[Component]) -> tuple[TargetUse, ...]:
    parts = (component for component in components if role_of(component.name).kind is not Role.TUNING)
    return tally(use for component in parts for use in component.targets if use.objects)


def _held_processors(components: Sequence[Component]) -> set[str]:
    return {use.target.partition(":")[0] for use in _held(components)}


def _candidates(components: Sequence[Component], gpu: GfxTarget) -> list[GfxTarget]:
    """Return the targets that the GPU may pass as and that there is code for, the most alike first."""
    held = _held_processors(components)
    same = [item for item in targets() if item.name in held - {gpu.name} and override_between(gpu, item).sane]
    return sorted(
        same,
        key=lambda item: (
            abs(item.isa_version[1] - gpu.isa_version[1]),
            item.vgprs_per_simd != gpu.vgprs_per_simd,
            item.kfd_version,
        ),
    )


def _refused(components: Sequence[Component], gpu: GfxTarget) -> tuple[str, ...]:
    """Explain why the nearest other target that there is code for is not offered as an override."""
    held = _held_processors(components)
    others = [item for item in targets() if item.name in held - {gpu.name} and not override_between(gpu, item).sane]
    if not others:
        return ()
    nearest = min(
        others,
        key=lambda item: (item.generation != gpu.generation, abs(item.kfd_version - gpu.kfd_version), item.kfd_version),
    )
    refused = override_between(gpu, nearest)
    return (f"{OVERRIDE_VARIABLE}={refused.value} is refused: {refused.reason}",)


def _by_override(components: Sequence[Component], gpu: Gpu) -> Service | None:
    for other in _candidates(components, gpu.target):
        judged = override_between(gpu.target, other)
        passing = Gpu(other, gpu.settings)
        outcome = _serve_parts(components, passing, judged.value)
        if not outcome.runs:
            continue
        cautions = (
            f"An override is necessary, not sufficient: {judged.reason}",
            "It holds for every library of the process and for every AMD GPU in the machine.",
            *_cautions(outcome.parts),
        )
        mixed = _by_variant(_serve_parts(components, gpu).parts)
        where = "".join(f" in its libraries for HIP {', '.join(without)}" for without, _ in mixed.values())
        cautions += tuple(
            f"Its libraries for HIP {', '.join(able)} hold code for {gpu.shown} and need none."
            for _, able in mixed.values()
        )
        reason = (
            f"there is no code for {gpu.shown}{where}, but with {OVERRIDE_VARIABLE}={judged.value} the runtime takes "
            f"the code for {other.name}, which belongs to the same class ({gpu.target.generic_class})."
        )
        environment = {OVERRIDE_VARIABLE: judged.value} | outcome.deciding[0].environment
        return Service(
            gpu.shown, Verdict.OVERRIDE, reason, other.name, judged.value, environment, outcome.parts, cautions
        )
    return None


def _serve(components: Sequence[Component], gpu: Gpu) -> Service:
    outcome = _serve_parts(components, gpu)
    if outcome.runs:
        worst = max(outcome.deciding, key=lambda match: match.rank)
        return Service(
            gpu.shown,
            worst.verdict,
            f"it {describe(worst, gpu.target)}.",
            worst.use.target,
            environment=worst.environment,
            components=outcome.parts,
            cautions=tuple(_cautions(outcome.parts)),
        )
    if outcome.undecided and not outcome.unserved:
        return _undecided(outcome, gpu)
    found = _by_override(components, gpu)
    if found is not None:
        return found
    mixed = _by_variant(outcome.parts)
    if outcome.unserved and all(name in mixed for name in outcome.unserved):
        return _not_beside_each(outcome, mixed, gpu)
    held = shown_targets(_held(components))
    generic = f", none for {gpu.target.generic_class}" if gpu.target.generic_class else ""
    where = f" in {', '.join(outcome.unserved)}" if outcome.unserved else ""
    reason = (
        f"there is no code for {gpu.shown}{where}{generic}, and none that an override could reach; there is code for "
        f'{held}. Kernels fail with "invalid device function".'
    )
    cautions = (
        *_refused(components, gpu.target),
        *(f"{_shown_part(part)}: {part.reason}" for part in outcome.undecided),
    )
    return Service(gpu.shown, Verdict.NONE, reason, components=outcome.parts, cautions=cautions)


def _not_beside_each(outcome: _Outcome, mixed: dict[str, tuple[list[str], list[str]]], gpu: Gpu) -> Service:
    """Judge a package whose libraries serve the GPU for some HIP versions only: the worst of them counts."""
    texts = [
        f"its libraries for HIP {', '.join(without)} hold no code for {gpu.shown}, those for HIP {', '.join(able)} do"
        for without, able in mixed.values()
    ]
    reason = f"{'; '.join(texts)}. Which one is loaded depends on the HIP version of the PyTorch beside it."
    able = [set(able) for _, able in mixed.values()]
    only = tuple(version for version in next(iter(mixed.values()))[1] if all(version in each for each in able))
    cautions = tuple(_cautions(outcome.parts))
    return Service(gpu.shown, Verdict.NONE, reason, only_with=only, components=outcome.parts, cautions=cautions)


def _undecided(outcome: _Outcome, gpu: Gpu) -> Service:
    parts = "; ".join(f"{_shown_part(part)}: {part.reason}" for part in outcome.undecided[:_NAMED_FILES])
    reason = f"code that it would load is damaged or could not be read. {parts}"
    cautions = [text for text in _cautions(outcome.parts) if text not in parts]
    return Service(gpu.shown, Verdict.UNKNOWN, reason, components=outcome.parts, cautions=tuple(cautions))


def _shown_part(part: ComponentService) -> str:
    return f"{part.name} ({part.variant})" if part.variant else part.name


def serve(inspection_or_targets: Inspection | Sequence[str], target: str, *, hip: str = "") -> Service:
    """Judge whether a package, or code for a list of targets, serves a GPU.

    Args:
        inspection_or_targets: An inspection, or the targets that there is code for.
        target: The GPU's target, with settings where they are known: ``gfx1151``, ``gfx90a:xnack-``.
        hip: HIP version of the PyTorch beside it: of libraries for several, the one for it counts; where it is not
            known, the worst.

    Raises:
        UsageError: No such target.
    """
    if not isinstance(inspection_or_targets, Inspection):
        return service_for_targets(inspection_or_targets, target)
    gpu = gpu_of(target)
    components = [part for part in inspection_or_targets.components if part.targets or part.damaged]
    if not _held(components) and not _any_damaged(components):
        return _without_code(inspection_or_targets, gpu)
    loaded = loaded_parts(components, hip)
    service = _serve(loaded.parts, gpu)
    if loaded.hip:
        others = [part for part in components if part not in loaded.parts]
        service = msgspec.structs.replace(
            service,
            reason=f"{service.reason} That is its library for HIP {loaded.hip}, as the PyTorch beside it has.",
            components=(*service.components, *_serve_parts(others, gpu).parts),
        )
    elif loaded.missing:
        reason = f"{loaded.missing} Whether the package then takes another one is not known. Of those: {service.reason}"
        verdict = Verdict.NONE if service.verdict is Verdict.NONE else Verdict.UNKNOWN
        service = msgspec.structs.replace(service, verdict=verdict, reason=reason, only_with=())
    unread = _unread(inspection_or_targets)
    if unread and service.verdict is not Verdict.UNKNOWN:
        return msgspec.structs.replace(service, cautions=(*service.cautions, f"{unread}: this covers the rest only."))
    return service


def _any_damaged(components: Sequence[Component]) -> bool:
    return any(part.damaged or any(use.damaged for use in part.targets) for part in components)


def _unread(inspection: Inspection) -> str:
    """Name the files that could hold device code and could not be read; "" for none."""
    paths = [problem.path for problem in inspection.problems if not problem.path.endswith((".py", ".pyc"))]
    if not paths:
        return ""
    more = f" and {len(paths) - _NAMED_FILES} more" if len(paths) > _NAMED_FILES else ""
    return f"{count_text(len(paths), 'file')} could not be read ({', '.join(paths[:_NAMED_FILES])}{more})"


def _without_code(inspection: Inspection, gpu: Gpu) -> Service:
    packs = sorted({pack for file in inspection.files for pack in file.packs})
    if packs:
        reason = (
            f"its libraries look for their device code in kernel packs ({', '.join(packs[:3])}), and there are none "
            f"here. They come in distributions of their own, one a target: install the extra device-{gpu.target.name}."
        )
        return Service(gpu.shown, Verdict.NONE, reason)
    unread = _unread(inspection)
    if unread and not {"cuda", "xpu"} & set(inspection.backends):
        reason = f"no device code was found, but {unread}. Get the file again, or make it readable."
        return Service(gpu.shown, Verdict.UNKNOWN, reason)
    if "rocm" in inspection.backends:
        reason = "it carries no device code: it calls ROCm's libraries, or its kernels are compiled at run time."
        return Service(gpu.shown, Verdict.NOT_APPLICABLE, reason, cautions=inspection.notes)
    if "cuda" in inspection.backends:
        version = f" (CUDA {inspection.cuda_version})" if inspection.cuda_version else ""
        reason = f"it is built for NVIDIA GPUs{version}: no code for any AMD GPU is in it. A ROCm build is needed."
        return Service(gpu.shown, Verdict.NONE, reason)
    if "xpu" in inspection.backends:
        return Service(gpu.shown, Verdict.NONE, "it is built for Intel GPUs: no code for any AMD GPU is in it.")
    reason = "it carries no device code and is linked against no GPU runtime: a CPU build or pure Python."
    return Service(gpu.shown, Verdict.NOT_APPLICABLE, " ".join(inspection.notes) or reason)


# -- from lists --------------------------------------------------------------------------------------------------------


def service_for_targets(targets: Sequence[str], gfx: str, *, components: Mapping[str, Any] | None = None) -> Service:
    """Judge whether code for these targets serves a GPU.

    Args:
        targets: Targets that there is code for, specific or generic; names that we do not know are left out.
        gfx: The GPU's target, with settings where they are known.
        components: By part, as ``scan_targets`` gives them, or part to list of targets; then ``targets`` is what the
            parts hold together.

    Raises:
        UsageError: No such target, or a component without targets.
    """
    gpu = gpu_of(gfx)
    parts = [part for part in _parts(components or {}) if part.targets or part.damaged]
    if not _held(parts) and not _any_damaged(parts):
        parts = [Component("kernels", 1, _uses(targets))]
    if not _held(parts):
        return Service(gpu.shown, Verdict.NOT_APPLICABLE, "there is no AMD device code.")
    return _serve(parts, gpu)


def _uses(found: Sequence[str] | Mapping[str, int]) -> tuple[TargetUse, ...]:
    counts = found if isinstance(found, Mapping) else dict.fromkeys(found, 1)
    uses = ((name if name == SPIRV else normalise(name), count) for name, count in counts.items())
    return tuple(TargetUse(name, int(count)) for name, count in uses if name)


def _damaged_uses(found: Mapping[str, Mapping[str, Any]]) -> Iterator[TargetUse]:
    for name, item in found.items():
        target = name if name == SPIRV else normalise(name)
        if target:
            yield TargetUse(target, 0, damaged=int(item.get("objects", 1)), damage=str(item.get("damage", "")))


def _parts(components: Mapping[str, Any]) -> list[Component]:
    parts = []
    for name, value in components.items():
        if not isinstance(value, Mapping):
            parts.append(Component(name, 1, _uses(value)))
            continue
        if "targets" not in value:
            raise UsageError("service", f"component {name!r} has no targets.")
        variant = str(value.get("variant", ""))
        plain = name.removesuffix(f" {variant}") if variant else name
        parts.append(
            Component(
                plain,
                int(value.get("files", 1)),
                tally([*_uses(value["targets"]), *_damaged_uses(value.get("damaged_targets", {}))]),
                int(value.get("units", 0)),
                variant,
                damaged=int(value.get("damaged", 0)),
                damage=str(value.get("damage", "")),
            )
        )
    return parts
