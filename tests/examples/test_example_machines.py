import filecmp
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.records import CollectorStatus
from rocmend.machine.collect import open_machine, snapshot
from rocmend.machine.facts import Machine

ROOT = Path(__file__).resolve().parents[2]
MACHINES = ROOT / "src" / "rocmend" / "examples" / "machines"
SPECS = ROOT / "examples" / "specs"
NAMES = sorted(path.stem for path in SPECS.glob("*.toml"))

EXPECTED: dict[str, dict[str, Any]] = {
    "strix-halo": {
        "gpus.targets": ["gfx1151"],
        "gpu.0.compute_units": 40,
        "gpu.0.is_apu": True,
        "gpu.0.name": "AMD Radeon 8060S Graphics",
        "gpu.0.product": "Radeon 8060S",
        "gpu.0.bandwidth_gb_s": 256.0,
        "gpu.0.peak_fp16_tflops": pytest.approx(59.4, rel=0.003),
        "gpu.0.cwsr_size_bytes": 13_942_784,
        "gpu.0.cwsr_required_bytes": 19_185_664,
        "gpu.0.cwsr_sufficient": False,
        "gpu.0.mes_version": 0x83,
        "gpu.0.fine_grained": True,
        "rocminfo.gfx_targets": ["gfx1100"],
        "rocminfo.module_version": None,
        "amd_smi.status": "ok",
        "dmesg.mes_hang": 2,
        "dmesg.reset_mode2": 1,
        "kernel.flavour": "oem",
        "kernel.unknown_params_text": "aamdgpu.cwsr_enable=0 (amdgpu.cwsr_enable=0?)",
        "numa.balancing": 1,
        "override.value": "11.0.0",
        "override.sane": True,
        "torch.version": "2.5.1+rocm6.2",
        "torch.source": "pytorch-index",
        "torch.rocm_match": "minor-differs",
        "rocm.version": "6.4.4",
        "vulkan.amd_drivers": ["amdvlk", "radv"],
        "vulkan.selected": "amdvlk",
        "amdgpu.origin": "in-tree",
        "dri.accessible": True,
        "kfd.writable": True,
    },
    "strix-halo-healthy": {
        "gpus.targets": ["gfx1151"],
        "gpu.0.cwsr_sufficient": True,
        "gpu.0.mes_version": 0x80,
        "gpu.0.gtt_total_bytes": 28_311_552 * 4096,
        "ttm.pages_limit": 28_311_552,
        "kernel.unknown_params": [],
        "numa.balancing": 0,
        "override.value": None,
        "torch.gfx_targets": ["gfx1151"],
        "torch.source": "therock",
        "rocm.kind": "wheel",
        "rocm.version": "7.14.0",
        "vulkan.selected": "radv",
        "vulkan.selected_by": "only one",
        "dmesg.classes": {},
    },
    "rx-5600-xt": {
        "gpus.targets": ["gfx1010"],
        "gpu.0.compute_units": 36,
        "gpu.0.is_apu": False,
        "gpu.0.product": "Radeon RX 5600 XT",
        "gpu.0.bandwidth_gb_s": 288.0,
        "gpu.0.mes_version": None,
        "gpu.0.cwsr_size_bytes": None,
        "override.target": "gfx1030",
        "override.sane": False,
        "rocm.version": "6.2.4",
        "torch.rocm_match": "match",
        "torch.version": "2.5.1+rocm6.2",
        "dmesg.readable": False,
        "numa.balancing": 0,
    },
    "rx-7900-xtx": {
        "gpus.targets": ["gfx1100"],
        "gpu.0.product": "Radeon RX 7900 XTX",
        "gpu.0.cwsr_sufficient": True,
        "gpu.0.atomics": True,
        "gpu.0.isa": ["gfx1100", "gfx11-generic"],
        "rocm_smi.status": "ok",
        "vulkaninfo.status": "ok",
        "gpu.0.vram_total_bytes": 25_753_026_560,
        "override.value": None,
        "rocm.version": "7.2.1",
        "torch.rocm_match": "match",
        "dmesg.classes": {},
    },
    "rx-7900-xtx-ryzen": {
        "gpus.targets": ["gfx1100", "gfx1036"],
        "gpu.1.compute_units": 2,
        "gpu.1.is_apu": True,
        "gpu.0.torch_service": "native",
        "gpu.0.torch_cards": None,
        "gpu.1.torch_service": "override",
        "gpu.1.torch_override": None,
        "gpu.1.torch_cards": "0",
        "override.value": None,
        "dmesg.classes": {},
    },
    "mi300x": {
        "gpus.count": 8,
        "gpus.targets": ["gfx942"],
        "gpu.0.wavefront_size": 64,
        "gpu.0.num_xcc": 8,
        "gpu.0.cwsr_sufficient": True,
        "gpu.0.peak_fp16_tflops": pytest.approx(1307.4, rel=0.003),
        "gpu.0.firmware": {
            "asd": 0x210000F6,
            "mec": 0xB7,
            "rlc": 0x1F,
            "sdma0": 0x18,
            "smc": 0x557D00,
            "sos": 0x36423F,
            "vcn": 0x911500D,
        },
        "gpu.7.isa": ["gfx942:sramecc+:xnack-", "gfx9-4-generic:sramecc+:xnack-"],
        "gpu.7.numa_node": 1,
        "gpu.7.xgmi_links": 7,
        "gpu.7.render_minor": 135,
        "numa.balancing": 1,
        "numa.nodes": 2,
        "amdgpu.origin": "dkms",
        "amdgpu.version": "6.14.14",
        "ttm.module": "amdttm",
        "env.TORCHINDUCTOR_MAX_AUTOTUNE": "1",
        "user.uid": 0,
    },
    "no-amd-gpu": {
        "gpus.count": 0,
        "gpus.amd_present": False,
        "kfd.present": False,
        "amdgpu.loaded": False,
        "torch.backend": "cuda",
        "torch.source": "pypi",
        "torch.overwritten": False,
        "vulkan.amd_drivers": [],
        "rocm.count": 0,
    },
    "cuda-torch-on-amd": {
        "gpus.targets": ["gfx1100"],
        "gpu.0.product": "Radeon RX 7900 XT",
        "torch.backend": "cuda",
        "torch.overwritten": True,
        "torch.gfx_targets": None,
        "rocm.count": 0,
    },
    "no-driver": {
        "gpus.count": 0,
        "gpus.amd_present": True,
        "gpus.undriven": ["0000:03:00.0"],
        "amdgpu.loaded": False,
        "amdgpu.blacklisted": True,
        "kfd.present": False,
        "dri.render_nodes": [],
        "torch.backend": "rocm",
    },
    "wsl2": {
        "host.kind": "wsl2",
        "dxg.present": True,
        "rocminfo.gfx_targets": ["gfx1100"],
        "gpus.targets": ["gfx1100"],
        "gpu.0.product": "Radeon RX 7900 XTX",
        "gpu.0.memory_ceiling_bytes": 25753026560,
        "gpu.0.torch_service": "native",
        "kfd.present": False,
        "amdgpu.loaded": False,
        "rocm.version": "6.4.2",
        "torch.source": "radeon-repo",
        "numa.balancing": None,
    },
}


@cache
def machine(name: str) -> Machine:
    return snapshot(open_machine(MACHINES / name), name=name)


def test_every_machine_is_described_and_expected() -> None:
    shipped = sorted(path.name for path in MACHINES.iterdir() if path.is_dir())
    assert shipped == NAMES == sorted(EXPECTED)


@pytest.mark.parametrize("name", NAMES)
def test_no_collector_fails(name: str) -> None:
    failed = [run for run in machine(name).collectors if run.status is not CollectorStatus.OK]
    assert failed == []


@pytest.mark.parametrize(("name", "key"), [(name, key) for name in NAMES for key in EXPECTED[name]])
def test_key_facts_come_out(name: str, key: str) -> None:
    found = machine(name).fact(key)
    assert found is not None, machine(name).gap(key)
    assert found.value == EXPECTED[name][key]


@pytest.mark.parametrize(
    "name", ["rx-7900-xtx", "rx-7900-xtx-ryzen", "strix-halo-healthy", "mi300x", "cuda-torch-on-amd"]
)
def test_save_areas_are_those_that_the_kernel_would_reserve(name: str) -> None:
    for index in machine(name).indices("gpu"):
        own = f"gpu.{index}."
        assert machine(name).value(own + "cwsr_size_bytes") == machine(name).value(own + "cwsr_required_bytes")


@pytest.mark.parametrize("name", ["strix-halo", "rx-5600-xt", "rx-7900-xtx", "rx-7900-xtx-ryzen", "mi300x"])
def test_the_tools_agree_with_the_driver(name: str) -> None:
    cards = machine(name).value("smi.cards")
    assert [card["slot"] for card in cards] == [
        machine(name).value(f"gpu.{index}.pci_slot") for index in machine(name).indices("gpu")
    ]
    assert {card["gfx"] for card in cards} == set(machine(name).value("gpus.targets"))


@pytest.mark.parametrize("name", ["strix-halo", "rx-5600-xt"])
def test_torch_has_no_code_for_the_gpu_itself(name: str) -> None:
    target = machine(name).value("gpu.0.gfx_target")
    carried = machine(name).value("torch.gfx_targets")
    assert target not in carried
    assert machine(name).value("override.target") in carried


def differences(comparison: "filecmp.dircmp[str]") -> list[str]:
    found = [f"{comparison.left}/{name}" for name in (*comparison.left_only, *comparison.right_only)]
    found += [f"{comparison.left}/{name}" for name in (*comparison.diff_files, *comparison.funny_files)]
    for below in comparison.subdirs.values():
        found += differences(below)
    return found


def test_machines_are_what_their_descriptions_give(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "examples.make_machines", "--into", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=os.environ)
    filecmp.clear_cache()
    assert differences(filecmp.dircmp(tmp_path, MACHINES)) == [], "run `python -m examples.make_machines`"


def test_machines_hold_nothing_personal() -> None:
    allowed_homes = {"/home/user", "/root"}
    for path in MACHINES.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert not set(re.findall(r"/home/[a-z0-9_-]+", text)) - allowed_homes, path
        assert not re.search(r"[\w.]+@[\w.]+\.\w+", text), path
