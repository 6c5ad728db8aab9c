"""The check of each action fails where the step is not done, and passes where it is: on fake tools and a fake /proc."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from tests.kb.conftest import build_machine

from rocmend.kb.action import action_name
from rocmend.kb.load import load_entries
from rocmend.kb.template import fill
from rocmend.machine.facts import Machine

Scene = dict[str, str]
"""Files by path: below bin/ tools, below py/ Python modules, below home/ the person's; ``$NAME`` is a variable."""

CMDLINE = "proc/cmdline"
LEVEL = "sys/bus/pci/devices/0000:0{}:00.0/power_dpm_force_performance_level"
VULKAN, DPKG = "bin/vulkaninfo", "bin/dpkg"
KFD = {"dev/kfd": "", "dev/dri/renderD128": ""}
RADV, AMDVLK = "echo 'driverID = DRIVER_ID_MESA_RADV # radv'", "echo 'driverID = DRIVER_ID_AMD_OPEN_SOURCE'"
LSPCI, SUDO = "bin/lspci", {"bin/sudo": 'exec "$@"'}
MES = "sys/kernel/debug/dri/{}/amdgpu_firmware_info"
OLD_MES, NEW_MES = (f"MES feature version: 1, firmware version: 0x000000{end}\n" for end in ("83", "86"))
JAX = "def default_backend(): return {!r}\ndef devices(): return []\n"
KFD_NODE = "sys/class/kfd/kfd/topology/nodes/1/properties"
GFX1151 = "cwsr_size {}\ngfx_target_version 110501\n"
CWSR = "sys/module/amdgpu/parameters/cwsr_enable"
GTT = f"ttm.pages_limit={3145728} ttm.page_pool_size={3145728}"


def pip(*installed: str) -> Scene:
    """Return a pip that knows these packages, ``name==version``."""
    return {
        "py/pip.py": f"import sys\nall = {list(installed)!r}\n"
        "if sys.argv[1] == 'freeze': print('\\n'.join(all))\n"
        "elif sys.argv[1] == 'show': sys.exit(not [x for x in all if x.split('==')[0] in sys.argv[2:]])\n",
        "bin/pip": 'exec python -m pip "$@"',
    }


NO_TRITON: Scene = {"py/triton.py": "raise ImportError"}
NO_PIP: Scene = {"py/pip.py": "raise SystemExit(127)", "bin/pip": "exit 127"}

SCENES: dict[str, tuple[tuple[Scene, ...], Scene]] = {
    "allow-amdgpu": (({CMDLINE: "quiet nomodeset\n", **KFD}, {CMDLINE: "quiet\n"}), {CMDLINE: "quiet\n", **KFD}),
    "boot-newer-kernel": (
        ({}, {KFD_NODE: GFX1151.format(13942784)}, {KFD_NODE: "gfx_target_version 110501\n"}),
        {KFD_NODE: GFX1151.format(19185664), KFD_NODE.replace("1", "2"): "cwsr_size 1\ngfx_target_version 110000\n"},
    ),
    "build-cupy-from-source": (
        ({}, {"py/cupy.py": "def sort(a): raise RuntimeError\narray = list\n"}),
        {"py/cupy.py": "class A:\n def __str__(s): return '[1 2]'\ndef sort(a): return A()\narray = list\n"},
    ),
    "disable-numa-balancing": (({}, {"bin/sysctl": "echo 1"}), {"bin/sysctl": "echo 0"}),
    "free-gpu-from-vfio": (
        ({}, {LSPCI: "echo 'Kernel driver in use: amdgpu'; echo 'Kernel driver in use: vfio-pci'"}),
        {LSPCI: "echo 'Kernel driver in use: amdgpu'"},
    ),
    "install-amd-smi-lib": (({}, {"py/amdsmi.py": "raise OSError"}), {"py/amdsmi.py": ""}),
    "install-cupy-rocm": (
        ({}, {"py/cupy.py": "class cuda:\n class runtime: is_hip = False\n"}),
        {"py/cupy.py": "class cuda:\n class runtime: is_hip = True\n"},
    ),
    "install-jax-rocm": (({}, {"py/jax.py": JAX.format("cpu")}), {"py/jax.py": JAX.format("gpu")}),
    "replace-jax-cuda-plugin": (({}, {"py/jax.py": JAX.format("cpu")}), {"py/jax.py": JAX.format("gpu")}),
    "install-mesa-vulkan": (({}, {VULKAN: "echo DRIVER_ID_MESA_LLVMPIPE"}), {VULKAN: RADV}),
    "install-mlx-cpu": (
        (NO_PIP, pip("mlx==0.32.4", "mlx-cuda-13==0.32.4"), pip("mlx==0.32.4")),
        pip("mlx==0.32.4", "mlx-cpu==0.32.4"),
    ),
    "install-onnxruntime-migraphx": (
        ({}, {"py/onnxruntime.py": "def get_available_providers(): return ['CPUExecutionProvider']"}),
        {"py/onnxruntime.py": "def get_available_providers(): return ['MIGraphXExecutionProvider']"},
    ),
    "install-vllm-rocm": (({}, {"py/vllm.py": "__version__ = '0.11'"}), {"py/vllm.py": "__version__ = '0.11+rocm700'"}),
    "join-gpu-groups": (
        ({"bin/id": "echo render"}, {"dev/kfd": "", "bin/id": "echo render"}),
        {"bin/id": "echo user render video", **KFD},
    ),
    "load-amdgpu": (({}, {"sys/module/amdgpu/refcnt": "1"}), {"sys/module/amdgpu/refcnt": "1", **KFD}),
    "log-in-again": (({},), KFD),
    "protect-torch-from-pip": (
        ({}, {"rocm-constraints.txt": "numpy==2\n"}),
        {"rocm-constraints.txt": "torch==2.9.1+rocm7\n"},
    ),
    "remove-amdgpu-dkms": (({}, {"sys/module/amdgpu/version": "6.16"}), {"sys/module/amdgpu/refcnt": "1"}),
    "remove-amdvlk": (({"etc/vulkan/icd.d/amd_icd64.json": ""},), {"etc/vulkan/icd.d/radeon_icd.json": ""}),
    "remove-dkms-firmware": (({DPKG: "exit 0"}, {"bin/rpm": "exit 0"}), {DPKG: "exit 1", "bin/rpm": "exit 1"}),
    "correct-kernel-parameters:{kernel.unknown_params_given}": (
        (
            {CMDLINE: "quiet aamdgpu.cwsr_enable=0\n"},
            {CMDLINE: 'amdgpu.gfx="1" quiet\n'},
            {CMDLINE: "quiet\n", "etc/modprobe.d/a.conf": 'options amdgpu dpm=1 gfx="1"\n'},
        ),
        {CMDLINE: "quiet amdgpu.cwsr_enable=0\n"},
    ),
    "remove-kernel-parameter:{kernel.unknown_params_given}": (
        (
            {CMDLINE: "quiet aamdgpu.cwsr_enable=0\n"},
            {CMDLINE: "quiet\n", "etc/modprobe.d/a.conf": 'options amdgpu dpm=1 gfx="1"\n'},
        ),
        {CMDLINE: "quiet amdgpu.cwsr_enable=0\n", "etc/modprobe.d/a.conf": "# not aamdgpu.cwsr_enable=0\n"},
    ),
    "remove-kernel-parameter:amdgpu.cwsr_enable": (
        ({CMDLINE: "amdgpu.cwsr_enable=0\n", CWSR: "0\n"},),
        {CMDLINE: "quiet", CWSR: "1\n"},
    ),
    "remove-kernel-parameter:amdgpu.gttsize": (
        (
            {CMDLINE: "quiet amdgpu.gttsize=-1\n"},
            {CMDLINE: "quiet", "etc/modprobe.d/a.conf": "#\noptions amdgpu dpm=1 gttsize=65536\n"},
        ),
        {CMDLINE: "quiet amdgpu.gttsizes=1", "etc/modprobe.d/a.conf": "# options amdgpu gttsize=1\noptions ttm x=1\n"},
    ),
    "remove-cuda-leftovers": (
        (NO_PIP, pip("torch==2.9.1", "nvidia-cublas-cu12==12.8.4.1"), pip("nvidia-cuda-runtime==13.0")),
        pip("torch==2.12.0+rocm7.14.0", "triton==3.7.0", "nvidia-ml-py==13.0"),
    ),
    "remove-placeholder-packages": (
        (NO_PIP, pip("torch==2.9.1", "amd-torch-device-gfx1151==0.0.1.dev0")),
        pip("torch==2.9.1"),
    ),
    "set-kernel-parameter:ttm.pages_limit=3145728 ttm.page_pool_size=3145728": (
        (
            {CMDLINE: "quiet\n"},
            {CMDLINE: "quiet ttm.pages_limit=3145728\n"},
            {CMDLINE: f"{GTT} ttm.pages_limit=4\n"},
            {CMDLINE: f"{GTT}00\n"},
        ),
        {CMDLINE: "quiet ttm.page_pool_size=3145728 splash ttm.pages_limit=3145728\n"},
    ),
    "set-performance-level:{gpu.pci_slot}=high": (
        ({}, {LEVEL.format(3): "auto\n", LEVEL.format(4): "high\n"}),
        {LEVEL.format(3): "high\n", LEVEL.format(4): "auto\n"},  # of another card
    ),
    "set-rocm-environment": (({}, {"$ROCM_PATH": "/opt/rocm-6.0"}), {"$ROCM_PATH": "/opt/rocm/"}),
    "set-variable:HSA_ENABLE_SDMA=0": (({}, {"$HSA_ENABLE_SDMA": "1"}), {"$HSA_ENABLE_SDMA": "0"}),
    "set-variable:VK_LOADER_DRIVERS_SELECT=radeon_icd*": (
        ({}, {VULKAN: f"{RADV}; {AMDVLK}"}, {VULKAN: AMDVLK}),
        {VULKAN: RADV},
    ),
    "start-container-with-gpu": (({}, {"dev/kfd": ""}), KFD),
    "uninstall-aiter": ((NO_PIP, pip("aiter==0.1")), pip()),
    "update-aiter": (({"py/aiter.py": "raise RuntimeError('Unknown GPU architecture')"},), {"py/aiter.py": ""}),
    "uninstall-cuda-flash-attn": ((NO_PIP, pip("flash-attn==2.8")), pip()),
    "unset-variable:HSA_OVERRIDE_GFX_VERSION": (({"$HSA_OVERRIDE_GFX_VERSION": ""},), {}),
    "update-bitsandbytes": (
        ({}, {"py/bitsandbytes.py": "print('no GPU')"}),
        {"py/bitsandbytes.py": "print('SUCCESS!')"},
    ),
    "update-gpu-firmware": (
        (SUDO, {**SUDO, MES.format(0): NEW_MES, MES.format(1): OLD_MES}, {"bin/sudo": "exit 1"}),
        {**SUDO, MES.format(0): NEW_MES, MES.format(1): NEW_MES},
    ),
    "use-python-3.12": (({"bin/python": "echo Python 3.13.12"},), {"bin/python": "echo Python 3.12.3"}),
    "use-triton-3.7": (
        (NO_TRITON, {"py/triton.py": "__version__ = '3.6.0'"}, {"py/triton.py": "__version__ = '3.70.1'"}),
        {"py/triton.py": "__version__ = '3.7.1'"},
    ),
    "use-triton-3.8": (
        (NO_TRITON, {"py/triton.py": "__version__ = '3.7.1'"}),
        {"py/triton.py": "__version__ = '3.8.0'"},
    ),
}
"""By action: where it is not done, and where it is."""
ELSEWHERE = {"install-native-torch"}
"""Of which tests/cli/test_env_and_wheel.py runs the command."""


@cache
def checks() -> dict[str, set[str]]:
    """Return the checks of each action as entries have them, the more so where it has an argument."""
    found: dict[str, set[str]] = {}
    for entry in load_entries().entries.values():
        for remedy in entry.remedy:
            if remedy.check:
                found.setdefault(remedy.action, set()).add(remedy.check)
    return found


FACTS = {
    "rocm.path": "/opt/rocm",
    "python.executable": "python",
    "ttm.suggested_pages_limit": 3145728,
    "gpu.0.cwsr_required_bytes": 19185664,
    "gpu.0.pci_slot": "0000:03:00.0",
    "kernel.unknown_params_given": "aamdgpu.cwsr_enable=0 amdgpu.gfx=_1_",  # in place of quotes
}
PLACES = re.compile(r"(?<![\w~.$])/(?=(?:proc|sys|dev/(?!null)|etc|usr/share|usr/lib)\b)")


def passes(check: str, scene: Scene, place: Path, machine: Machine) -> bool:
    """Run a check as the plan's script does."""
    environment = {
        "PATH": f"{place}/bin:/usr/bin:/bin", "HOME": str(place / "home"), "PYTHONPATH": str(place / "py"),
        "XDG_STATE_HOME": str(place / "state"),
    }  # fmt: skip
    tools = {"bin/python": f'exec {sys.executable} "$@"', VULKAN: "exit 127", LSPCI: "exit 127", DPKG: "exit 127"}
    for name, text in {**tools, **scene}.items():
        if name.startswith("$"):
            environment[name[1:]] = text
            continue
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n" if name.startswith("bin/") else text)
        path.chmod(0o755)
    line = PLACES.sub(f"{place}/", fill(check, machine, 0, for_shell=True))
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=place, env=environment, check=False)
    assert "yntax error" not in done.stderr, done.stderr
    return done.returncode == 0


def checks_of(action: str) -> set[str]:
    told = checks()
    return told.get(action) or told[action.replace("3145728", "{ttm.suggested_pages_limit}")]


def test_every_check_has_a_scene() -> None:
    assert {action_name(action) for action in checks()} == {action_name(action) for action in SCENES} | ELSEWHERE


@pytest.mark.parametrize("action", SCENES)
def test_a_check_tells_whether_the_step_is_done(action: str, tmp_path: Path) -> None:
    machine = build_machine(FACTS)
    open_scenes, done = SCENES[action]
    for check in checks_of(action):
        for number, scene in enumerate(open_scenes):
            assert not passes(check, scene, tmp_path / f"open{number}", machine), (check, scene)
        assert passes(check, done, tmp_path / "done", machine), check
