"""The installed PyTorch, read from its files: nothing is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.distributions import parse_direct_url, parse_metadata
from rocmend.machine.parse.gfx_names import target_order, targets_in
from rocmend.machine.parse.torch import Origin, TorchVersion, backend_of_tag, guess_source, parse_version_py
from rocmend.machine.root import ReadError, Root
from rocmend.machine.software.python_env import Distribution, active_environment, distributions
from rocmend.machine.software.reading import names, text
from rocmend.machine.software.rocm_installs import library_targets

SCAN_LIMIT_S = 8.0
"""Time for reading the code objects of torch's libraries (several gigabytes on a cold disk)."""

OWN_COMPONENT = "PyTorch"
"""The part that is torch's own kernels, as the scan of code objects calls it."""

COMPANIONS = ("rocm-sdk-", "pytorch-triton-rocm", "triton-rocm", "amd-torch-device-")
"""Distributions that only a ROCm build of torch brings along."""

ABSENT = (
    *("torch.version", "torch.backend", "torch.hip_version", "torch.rocm_version", "torch.cuda_version"),
    *("torch.gfx_targets", "torch.code_targets", "torch.path", "torch.source", "torch.triton"),
)


@collector(
    "torch",
    facts={
        "torch.installed": "Whether the active environment has PyTorch.",
        "torch.version": "Version with its local tag, e.g. 2.9.1+rocm6.4.",
        "torch.backend": "rocm, cuda, cpu, xpu or unknown.",
        "torch.hip_version": "HIP version that it was built with; null for other builds.",
        "torch.rocm_version": "ROCm release that it was built with.",
        "torch.cuda_version": "CUDA version that it was built with.",
        "torch.gfx_targets": "Targets that its own kernels were compiled for, generic ones too; null for other builds.",
        "torch.code_targets": "Targets that any of its libraries has code for, with settings: gfx90a:xnack-.",
        "torch.components": "Parts of torch (PyTorch, rocBLAS kernels, AOTriton …) with the targets of each.",
        "torch.path": "The torch folder.",
        "torch.source": "pypi, pytorch-index, therock, radeon-repo, conda, distro, source-build or unknown.",
        "torch.overwritten": "ROCm companions are installed, and torch itself is a CUDA or CPU build.",
        "torch.triton": "The Triton distribution that its metadata asks for, e.g. pytorch-triton-rocm.",
    },
    time_limit_s=12.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """State what torch/version.py, its metadata and its libraries say."""
    environment = active_environment(root)
    sites = environment.site_packages if environment else ()
    installed = distributions(root, environment)
    found = next(((site, content) for site in sites if (content := text(root, f"{site}/torch/version.py"))), None)
    if found is None:
        source = ", ".join(sites) or "no Python environment"
        facts.put("torch.installed", False, source=source)
        facts.put("torch.overwritten", False, source=source)
        facts.put("torch.components", {}, source=source)
        for key in ABSENT:
            facts.put(key, None, source=source)
        return
    site, content = found
    path, source = f"{site}/torch", f"{site}/torch/version.py"
    version = parse_version_py(content)
    own = [item for item in installed if item.name == "torch" and item.site == site]
    facts.put("torch.installed", True, source=source)
    facts.put("torch.path", path, source=source)
    facts.put("torch.version", version.version, source=source, raw=content.strip())
    facts.put("torch.backend", version.backend, source=source)
    facts.put("torch.hip_version", version.hip, source=source)
    facts.put("torch.rocm_version", version.rocm, source=source)
    facts.put("torch.cuda_version", version.cuda, source=source)
    _state_origin(root, facts, version, path, own)
    _state_overwritten(facts, version, own, installed, source)
    _state_targets(root, facts, version, path, installed)


def _state_origin(root: Root, facts: FactSink, version: TorchVersion, path: str, own: list[Distribution]) -> None:
    """State the install source and the Triton that the metadata asks for."""
    info = own[-1].info if own else ""
    metadata = parse_metadata(text(root, f"{info}/METADATA") or "") if info else None
    url = parse_direct_url(text(root, f"{info}/direct_url.json") or "") if info else None
    requires = metadata.requires if metadata else ()
    source = guess_source(
        Origin(
            version=version.version or "",
            path=path,
            url=url or "",
            installer=(text(root, f"{info}/INSTALLER") or "") if info else "",
            requires=requires,
        )
    )
    facts.put("torch.source", source, source=f"{info}/METADATA" if info else path, raw=url or "")
    triton = next((name for name in requires if "triton" in name), None)
    facts.put("torch.triton", triton, source=f"{info}/METADATA" if info else path)


def _state_overwritten(
    facts: FactSink, version: TorchVersion, own: list[Distribution], installed: list[Distribution], source: str
) -> None:
    """State whether another package's dependencies replaced a ROCm torch: its companions are left behind."""
    left = [
        f"{item.name} {item.version}"
        for item in installed
        if item.name.startswith(COMPANIONS)
        or (item.name in {"torchvision", "torchaudio", "rocm"} and backend_of_tag(item.version) == "rocm")
    ]
    left += [f"torch {item.version}" for item in own if backend_of_tag(item.version) == "rocm"]
    overwritten = version.backend in {"cuda", "cpu"} and bool(left)
    facts.put("torch.overwritten", overwritten, source=source, raw=", ".join(left))


def _state_targets(
    root: Root, facts: FactSink, version: TorchVersion, path: str, installed: list[Distribution]
) -> None:
    """State the targets: of the code objects where they can be read, else of file and package names."""
    if version.backend != "rocm":
        facts.put("torch.gfx_targets", None, source=path)
        facts.put("torch.code_targets", None, source=path)
        facts.put("torch.components", {}, source=path)
        return
    named = set(targets_in(item.name for item in installed if item.name.startswith("amd-torch-device-")))
    for folder in (f"{path}/.kpack", f"{path}/lib/.kpack", f"{path}/share/.kpack"):
        named.update(targets_in(names(root, folder)))
    scan, reason = _scan(root, path)
    if scan is not None:
        _state_scanned(facts, scan, named, path)
        return
    facts.gap("torch.components", reason, source=path)
    for library in ("rocblas", "hipblaslt"):
        named.update(library_targets(root, path, library) or ())
    for key in ("torch.code_targets", "torch.gfx_targets"):
        if named:
            facts.put(key, sorted(named, key=_order), source=f"names of kernel files in {path}/lib")
        else:
            facts.gap(key, reason, source=path)


def _state_scanned(facts: FactSink, scan: dict[str, Any], named: set[str], path: str) -> None:
    """State what the code objects say; torch's own kernels decide, since its libraries often serve more targets."""
    source = f"code objects in {path}"
    components = _components(scan, named)
    facts.put("torch.components", components, source=source)
    everything = {str(name) for field in ("targets", "generic") for name in scan.get(field) or ()} | named
    problems = scan.get("problems") or ()
    if problems and not everything:
        reason = f"no code object was found, and not all could be read: {next(iter(problems))}"
        facts.gap("torch.code_targets", reason, source=source)
        facts.gap("torch.gfx_targets", reason, source=source)
        return
    own = set(components.get(OWN_COMPONENT, {}).get("targets", {})) or everything
    facts.put("torch.code_targets", sorted(everything, key=_order), source=source)
    facts.put("torch.gfx_targets", _processors(own), source=source)


def _components(scan: dict[str, Any], named: set[str]) -> dict[str, dict[str, Any]]:
    """Return the scanned parts, each with a table of targets; what packages name counts as torch's own code."""
    parts: dict[str, dict[str, Any]] = {}
    found = scan.get("components")
    for name, value in found.items() if isinstance(found, dict) else ():
        part = dict(value) if isinstance(value, dict) else {"targets": value}
        targets = part.get("targets")
        counts = targets if isinstance(targets, dict) else dict.fromkeys(targets or (), 1)
        parts[str(name)] = {**part, "targets": dict(counts)}
    if named:
        own = parts.setdefault(OWN_COMPONENT, {"targets": {}})
        own["targets"] = dict.fromkeys(sorted(named, key=_order), 1) | own["targets"]
    return parts


def _processors(code: set[str]) -> list[str]:
    """Return targets without their settings: gfx90a of gfx90a:xnack-."""
    return sorted({name.split(":", 1)[0] for name in code}, key=_order)


def _order(target: str) -> tuple[tuple[int, int, str], str]:
    """Sort by ISA version, then settings; what is no target (a capture made by hand) goes last."""
    found = targets_in([target])
    return (target_order(found[0]) if found else (99, 0, ""), target)


def _scan(root: Root, path: str) -> tuple[dict[str, Any] | None, str]:
    """Return the summary of torch's code objects, or None and why there is none."""
    try:
        value = root.measure("code-objects", path, _scan_within_limit)
    except ReadError as error:
        return None, str(error)
    if not isinstance(value, dict):
        return None, "the captured summary of its code objects is not a table"
    if value.get("error"):
        return None, str(value["error"])
    return value, ""


def _scan_within_limit(path: Path) -> dict[str, Any]:
    """Read the code objects in a child with its own time limit, so that a slow disk costs only this fact."""
    import msgspec

    from rocmend.codeobject.scan import scan_targets
    from rocmend.core.supervise import run_children

    def scan() -> bytes:
        return msgspec.json.encode(scan_targets(path))

    result = run_children({"scan": (scan, SCAN_LIMIT_S)})["scan"]
    if not result.payload:
        return {"error": f"reading its code objects ended with {result.error or result.ending}"}
    value: dict[str, Any] = msgspec.json.decode(result.payload)
    return value
