"""Frameworks beside PyTorch in the active environment: versions, and the accelerator they were built for."""

from __future__ import annotations

import re

import msgspec

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.assignments import parse_assignments, text_of
from rocmend.machine.parse.frameworks import Build, choose
from rocmend.machine.parse.rocm import rocm_of_hip
from rocmend.machine.root import Root, natural_key
from rocmend.machine.software.python_env import active_environment, distributions, first_by_name
from rocmend.machine.software.reading import names, text


class Framework(msgspec.Struct, frozen=True):
    """How a framework is recognised.

    Attributes:
        key: First part of its facts' names.
        owners: Patterns of the distributions that hold its module, main one first.
        plugins: Pattern of distributions that add a backend to it.
    """

    key: str
    owners: tuple[str, ...]
    plugins: str = ""


FRAMEWORKS = (
    Framework("triton", ("triton", "pytorch-triton-rocm", "triton-rocm", "pytorch-triton")),
    Framework("jax", ("jax",), r"jax-(rocm|cuda)\d*-(plugin|pjrt)"),
    Framework("onnxruntime", (r"onnxruntime(-(rocm|migraphx|gpu|training|cpu|openvino|directml))?",)),
    Framework("cupy", (r"cupy(-(rocm-\d+-\d+|cuda\d+x))?",)),
    Framework("bitsandbytes", ("bitsandbytes",)),
    Framework("flash_attn", ("flash-attn",)),
    Framework("aiter", ("amd-aiter", "aiter")),
    Framework("vllm", ("vllm", "vllm-rocm")),
    Framework("mlx", ("mlx",), r"mlx-(cuda|rocm|cpu)(-\d+)?"),
    Framework("tensorflow", (r"tensorflow(-(rocm|cpu|gpu))?",)),
)

_FIELDS = {
    "installed": "Whether the active environment has {name}.",
    "version": "Version of {name}.",
    "backend": "What {name} was built for: rocm, cuda, cpu, any (several in one build) or unknown.",
    "rocm_version": "ROCm release that {name} was built for, as far as it says.",
    "distribution": "Distribution that {name} came from.",
}


@collector(
    "frameworks",
    facts={
        **{
            f"{framework.key}.{field}": text.format(name=framework.key)
            for framework in FRAMEWORKS
            for field, text in _FIELDS.items()
        },
        **{f"{item.key}.conflicts": f"Further distributions that own {item.key}'s module." for item in FRAMEWORKS},
        "triton.backends": "Backends in Triton's package: amd, nvidia.",
        "bitsandbytes.libraries": "Backends that bitsandbytes has libraries for: rocm71, cuda126, cpu …",
    },
)
def collect(root: Root, facts: FactSink) -> None:
    """State every framework, null fields for those that are not installed."""
    environment = active_environment(root)
    by_name = first_by_name(distributions(root, environment))
    versions = {name: item.version for name, item in by_name.items()}
    looked_at = ", ".join(environment.site_packages) if environment else "no Python environment"
    for framework in FRAMEWORKS:
        build = choose(versions, framework.owners, framework.plugins)
        site = by_name[build.distribution].site if build else ""
        if build is not None and framework.key in _REFINE:
            build = _REFINE[framework.key](root, facts, site, build)
        _state(facts, framework.key, build, by_name[build.distribution].info if build else looked_at)
    for key in ("triton.backends", "bitsandbytes.libraries"):
        if key not in facts.facts:
            facts.put(key, [], source=looked_at)


def _state(facts: FactSink, key: str, build: Build | None, source: str) -> None:
    facts.put(f"{key}.installed", build is not None, source=source)
    facts.put(f"{key}.version", build.version if build else None, source=source)
    facts.put(f"{key}.backend", build.backend if build else None, source=source)
    facts.put(f"{key}.rocm_version", build.rocm_version if build else None, source=source)
    facts.put(f"{key}.distribution", build.distribution if build else None, source=source)
    facts.put(f"{key}.conflicts", list(build.others) if build else [], source=source)


def _triton(root: Root, facts: FactSink, site: str, build: Build) -> Build:
    """Look at which backends the package carries: since 3.0 the one on PyPI holds both."""
    folder = f"{site}/triton/backends"
    backends = [name for name in names(root, folder) if name in {"amd", "nvidia"}]
    facts.put("triton.backends", backends, source=folder)
    if build.backend != "unknown" or not backends:
        return build
    backend = "any" if len(backends) > 1 else {"amd": "rocm", "nvidia": "cuda"}[backends[0]]
    return msgspec.structs.replace(build, backend=backend)


def _onnxruntime(root: Root, _facts: FactSink, site: str, build: Build) -> Build:
    """Read the generated module: it names the distribution whose files are really there, and its ROCm."""
    content = text(root, f"{site}/onnxruntime/capi/build_and_package_info.py")
    values = parse_assignments(content) if content else {}
    package = text_of(values, "package_name")
    rocm, cuda = text_of(values, "rocm_version"), text_of(values, "cuda_version")
    backend = "rocm" if rocm else "cuda" if cuda else build.backend
    if package and backend == "unknown":
        backend = "cpu" if package == "onnxruntime" else backend
    return msgspec.structs.replace(
        build, backend=backend, rocm_version=rocm_of_hip(rocm) if rocm else build.rocm_version
    )


def _bitsandbytes(root: Root, facts: FactSink, site: str, build: Build) -> Build:
    """Look at its libraries: one a backend and version, named after torch.version.hip: rocm72 is 7.2, rocm715 7.15."""
    from rocmend.codeobject.versions import HIP_BUILD_NUMBER_FROM

    folder = f"{site}/bitsandbytes"
    matches = (re.match(r"libbitsandbytes_([a-z]+\d*)[\w.]*\.so", name) for name in names(root, folder))
    found = sorted({match[1] for match in matches if match}, key=natural_key)
    facts.put("bitsandbytes.libraries", found, source=folder)
    kinds = {kind.rstrip("0123456789") for kind in found} - {"cpu"}
    versions = [(int(match[1]), int(match[2])) for name in found if (match := re.fullmatch(r"rocm(\d)(\d{1,3})", name))]
    newest = "{}.{}.{}".format(*max(versions), HIP_BUILD_NUMBER_FROM) if versions else ""
    backend = "any" if len(kinds) > 1 else next(iter(kinds), "cpu" if found else build.backend)
    return msgspec.structs.replace(build, backend=backend, rocm_version=rocm_of_hip(newest))


_REFINE = {"triton": _triton, "onnxruntime": _onnxruntime, "bitsandbytes": _bitsandbytes}
