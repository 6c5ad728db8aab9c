"""What ``rocmend env`` says for the GPUs and workloads that people ask about most."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.kb.load import Knowledge
from rocmend.machine.facts import Machine
from rocmend.setup.environment import environment
from rocmend.setup.shells import Action, Line
from rocmend.setup.tarball import with_rocm_path

WORKLOADS = ("pytorch", "llama.cpp", "mlx", "training", "vision", "vllm", "inference")
MACHINES = (
    "cuda-torch-on-amd",
    "mi300x",
    "no-amd-gpu",
    "no-driver",
    "rx-5600-xt",
    "rx-7900-xtx",
    "strix-halo",
    "strix-halo-healthy",
    "wsl2",
)
FAMILIES = {
    "ROCBLAS_USE_HIPBLASLT": ("gfx1151",),
    "PYTORCH_ALLOC_CONF": ("gfx1151", "gfx90a", "gfx942", "gfx950"),
    "HSA_ENABLE_SDMA": ("gfx1151",),
    "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL": ("gfx1100", "gfx1101", "gfx1150", "gfx1151"),
    "HIP_FORCE_DEV_KERNARG": ("gfx942", "gfx950"),
    "HSA_NO_SCRATCH_RECLAIM": ("gfx942", "gfx950"),
    "GPU_MAX_HW_QUEUES": ("gfx942", "gfx950"),
    "NCCL_MIN_NCHANNELS": ("gfx942",),
    "HSA_XNACK": ("gfx90a", "gfx942", "gfx950"),
    "MIOPEN_FORCE_RDNA1": ("gfx1010", "gfx1011", "gfx1012"),
}
"""Variables that are some GPUs' own; on any other GPU they would be noise or harm."""

Settings = Callable[[str, str], dict[str, Line]]


@pytest.fixture
def settings(
    example: Callable[[str], Machine],
    for_workload: Callable[[Machine, str | None], Machine],
    knowledge: Knowledge,
) -> Settings:
    """Return the lines for a machine or gfx target and a workload, by variable."""

    def get(name: str, workload: str) -> dict[str, Line]:
        result = environment(for_workload(example(name), workload), knowledge, workload)
        return {line.name: line for line in result.lines}

    return get


def firm(lines: dict[str, Line]) -> dict[str, str]:
    return {name: line.value for name, line in lines.items() if not line.optional and line.action is Action.SET}


def optional(lines: dict[str, Line]) -> dict[str, str]:
    return {name: line.value for name, line in lines.items() if line.optional}


def test_strix_halo_put_right_for_pytorch(settings: Settings) -> None:
    lines = settings("strix-halo-healthy", "pytorch")
    assert firm(lines) == {"TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL": "1"}
    assert optional(lines)["ROCBLAS_USE_HIPBLASLT"] == "0"
    assert optional(lines)["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert "disputed" in lines["PYTORCH_ALLOC_CONF"].why
    assert "HSA_ENABLE_SDMA" not in lines, "ROCm 7.2 and later do not need it"
    assert "32.7" in lines["ROCBLAS_USE_HIPBLASLT"].why
    assert "27.2" in lines["ROCBLAS_USE_HIPBLASLT"].why


def test_strix_halo_with_an_old_rocm_for_pytorch(settings: Settings) -> None:
    lines = settings("strix-halo", "pytorch")
    assert firm(lines) == {"HSA_ENABLE_SDMA": "0"}
    assert "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL" not in lines, "this wheel has no attention kernels for gfx1151"


def test_strix_halo_for_llama_cpp_is_told_to_measure_hipblaslt(settings: Settings) -> None:
    lines = settings("strix-halo", "llama.cpp")
    assert firm(lines) == {"VK_LOADER_DRIVERS_SELECT": "radeon_icd*"}
    assert optional(lines) == {"HSA_ENABLE_SDMA": "0", "ROCBLAS_USE_HIPBLASLT": "1", "HSA_OVERRIDE_GFX_VERSION": ""}
    assert firm(settings("strix-halo-healthy", "llama.cpp")) == {}


def test_the_target_alone_gives_the_settings_worth_measuring(settings: Settings) -> None:
    lines = settings("gfx1151", "pytorch")
    assert firm(lines) == {}
    assert {"ROCBLAS_USE_HIPBLASLT", "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"} <= set(optional(lines))


def test_eight_mi300x_for_training(settings: Settings) -> None:
    lines = settings("mi300x", "training")
    assert lines["TORCHINDUCTOR_MAX_AUTOTUNE"].action is Action.UNSET
    assert firm(lines) == {"HIP_FORCE_DEV_KERNARG": "1"}
    worth_measuring = {
        "GPU_MAX_HW_QUEUES": "2",
        "HSA_NO_SCRATCH_RECLAIM": "1",
        "NCCL_MIN_NCHANNELS": "112",
        "TORCH_NCCL_HIGH_PRIORITY": "1",
    }
    assert worth_measuring.items() <= optional(lines).items()
    assert "PYTORCH_ALLOC_CONF" not in lines, "its PyTorch is older than 2.11"
    assert "AMD_LOG_LEVEL" not in lines, "it is no container whose image could have set it"
    assert optional(settings("gfx942", "training"))["PYTORCH_ALLOC_CONF"] == "expandable_segments:True"
    assert all("max_split_size_mb" not in line.value for line in lines.values())


def test_an_override_across_classes_is_unset(settings: Settings) -> None:
    for workload in WORKLOADS:
        assert settings("rx-5600-xt", workload)["HSA_OVERRIDE_GFX_VERSION"].action is Action.UNSET
    assert firm(settings("rx-5600-xt", "vision")) == {"MIOPEN_FIND_MODE": "2"}


@pytest.mark.parametrize("name", [*MACHINES, "gfx906", "gfx90a", "gfx1010", "gfx1030", "gfx1103", "gfx1201"])
def test_no_variable_of_another_gpu(settings: Settings, example: Callable[[str], Machine], name: str) -> None:
    machine = example(name)
    targets = {machine.value(f"gpu.{index}.gfx_target") for index in machine.indices("gpu")}
    for workload in WORKLOADS:
        lines = settings(name, workload)
        wrong = [variable for variable in lines if variable in FAMILIES and not targets & set(FAMILIES[variable])]
        assert wrong == [], workload
        override = lines.get("HSA_OVERRIDE_GFX_VERSION")
        assert override is None or override.action is Action.UNSET, "no entry may tell a person to set an override"


@pytest.mark.parametrize("name", ["no-amd-gpu", "no-driver"])
@pytest.mark.parametrize("workload", WORKLOADS)
def test_nothing_to_set_where_no_gpu_is_seen(settings: Settings, name: str, workload: str) -> None:
    assert settings(name, workload) == {}


def test_every_line_says_why_and_who_says_so(settings: Settings) -> None:
    for name in MACHINES:
        for workload in WORKLOADS:
            for line in settings(name, workload).values():
                assert line.why, line.name
                assert "http" in line.source, line.name


def test_a_tarball_gets_its_whole_environment(example: Callable[[str], Machine], knowledge: Knowledge) -> None:
    machine = with_rocm_path(example("strix-halo-healthy"), Path("/opt/therock"), check=False)
    lines = {line.name: line for line in environment(machine, knowledge, "llama.cpp").lines}
    assert {name: value for name, value in firm(lines).items() if "/opt/therock" in value} == {
        "ROCM_PATH": "/opt/therock",
        "HIP_PATH": "/opt/therock",
        "HIP_CLANG_PATH": "/opt/therock/llvm/bin",
        "HIP_INCLUDE_PATH": "/opt/therock/include",
        "HIP_LIB_PATH": "/opt/therock/lib",
        "HIP_DEVICE_LIB_PATH": "/opt/therock/lib/llvm/amdgcn/bitcode",
    }
    assert lines["HIP_PLATFORM"].value == "amd"
    prepended = {name: line.value for name, line in lines.items() if line.action is Action.PREPEND}
    assert prepended == {
        "PATH": "/opt/therock/bin:/opt/therock/llvm/bin",
        "LD_LIBRARY_PATH": "/opt/therock/lib:/opt/therock/lib64:/opt/therock/llvm/lib",
        "LIBRARY_PATH": "/opt/therock/lib:/opt/therock/lib64",
        "CPATH": "/opt/therock/include",
        "PKG_CONFIG_PATH": "/opt/therock/lib/pkgconfig",
    }
    assert not [name for name in settings_of_no_tarball(example, knowledge) if name in prepended]


def settings_of_no_tarball(example: Callable[[str], Machine], knowledge: Knowledge) -> set[str]:
    return {line.name for line in environment(example("strix-halo-healthy"), knowledge, "llama.cpp").lines}
