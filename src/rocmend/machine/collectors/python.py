"""The active Python environment and the machine-learning packages in it."""

from __future__ import annotations

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.root import Root
from rocmend.machine.software.python_env import active_environment, distributions, is_externally_managed

ML_PREFIXES = (
    *(
        "torch",
        "pytorch-",
        "triton",
        "amd-torch",
        "jax",
        "rocm",
        "amdsmi",
        "hip-python",
        "onnx",
        "cupy",
        "bitsandbytes",
    ),
    *("flash-attn", "aiter", "amd-aiter", "vllm", "mlx", "tensorflow", "keras", "tensorrt", "sglang", "xformers"),
    *("transformers", "accelerate", "diffusers", "safetensors", "tokenizers", "peft", "trl", "unsloth", "optimum"),
    *("deepspeed", "ctranslate2", "faster-whisper", "sentence-transformers", "ultralytics", "lightning", "timm"),
    *("llama-cpp", "gguf", "auto-gptq", "gptqmodel", "autoawq", "exllamav2", "quark", "amd-quark", "sageattention"),
    *("nvidia-c", "nvidia-n", "spandrel", "comfyui", "open-clip", "fairscale", "apex", "megatron", "liger-kernel"),
)
_OWN = "rocm-bootstrap"
"""A table of targets that rocmend itself needs: no sign of a ROCm."""
ML_NAMES = frozenset({"numpy", "scipy", "numba", "ray"})


def is_ml(name: str) -> bool:
    """Whether a distribution belongs in the list of packages."""
    return (name.startswith(ML_PREFIXES) or name in ML_NAMES) and name != _OWN


@collector(
    "python",
    facts={
        "python.found": "Whether there is a Python environment at all.",
        "python.executable": "The interpreter of the Python environment that the facts are about.",
        "python.version": "Its version.",
        "python.prefix": "Its prefix.",
        "python.kind": "venv, conda or system.",
        "python.externally_managed": "It belongs to the distribution, and pip refuses to install into it (PEP 668).",
        "python.found_by": "Why it is the one: --python, VIRTUAL_ENV, python3 on PATH, .venv of this folder …",
        "python.site_packages": "Folders that packages are imported from, in order.",
        "packages": "Machine-learning distributions in it: canonical name to version.",
        "packages.duplicates": "Names installed more than once, with every version in import order.",
    },
)
def collect(root: Root, facts: FactSink) -> None:
    """Find the environment and list its packages by the names of their metadata folders."""
    environment = active_environment(root)
    facts.put("python.found", environment is not None, source="PATH, VIRTUAL_ENV, CONDA_PREFIX")
    if environment is None:
        facts.gap("python.*", "no Python interpreter was found", source="PATH")
        facts.put("packages", {}, source="PATH")
        facts.put("packages.duplicates", {}, source="PATH")
        return
    source = f"{environment.prefix} ({environment.found_by})"
    facts.put("python.executable", environment.executable, source=source)
    facts.put("python.version", environment.version, source=source)
    facts.put("python.prefix", environment.prefix, source=source)
    facts.put("python.kind", environment.kind, source=source)
    managed = environment.kind == "system" and is_externally_managed(root, environment)
    facts.put("python.externally_managed", managed, source=source)
    facts.put("python.found_by", environment.found_by, source=source)
    facts.put("python.site_packages", list(environment.site_packages), source=source)
    versions: dict[str, list[str]] = {}
    for item in distributions(root, environment):
        if is_ml(item.name):
            versions.setdefault(item.name, []).append(item.version)
    source = ", ".join(environment.site_packages) or source
    facts.put("packages", {name: found[0] for name, found in sorted(versions.items())}, source=source)
    several = {name: found for name, found in sorted(versions.items()) if len(found) > 1}
    facts.put("packages.duplicates", several, source=source)
