from __future__ import annotations

from typing import Any

import pytest
from tests.doctor.conftest import build_machine

from rocmend.core.examples import example_machines
from rocmend.core.records import Fact, Finding, Severity
from rocmend.doctor.areas import Area, AreaState, areas
from rocmend.doctor.diagnose import diagnose
from rocmend.doctor.records import Diagnosis, GpuSummary
from rocmend.kb.load import load_entries
from rocmend.machine.collect import open_machine, snapshot

GPU = {"gpu.0.gfx_target": "gfx1151", "gpu.0.mes_version": 0x83}


def _found(severity: Severity, *keys: str) -> Finding:
    return Finding(f"about-{keys[-1]}", "t", severity, evidence=tuple(Fact(key, 1, "s") for key in keys))


def _areas(facts: dict[str, Any], findings: tuple[Finding, ...] = (), **gpu: Any) -> dict[str, Area]:
    gpus = (GpuSummary(0, "Radeon 8060S", "gfx1151", **gpu),) if "gpu.0.gfx_target" in facts else ()
    diagnosis = Diagnosis("m", "", None, gpus, findings, (), 0)
    return {area.name: area for area in areas(build_machine(facts), diagnosis)}


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        (("gpu.0.gfx_target", "gpu.0.mes_version"), "Firmware"),
        (("gpu.0.cwsr_size_bytes", "gpu.0.gfx_target"), "Driver"),
        (("ask.workload", 'kernel.params["amdgpu.cwsr_enable"]'), "Driver"),
        (('kernel.params["amdgpu.gttsize"]',), "Memory"),
        (("gpus.targets", "gpu.3.sclk_mhz"), "GPU"),
        (("gpu.0.override_target",), "PyTorch"),
        (("vllm.backend",), "PyTorch"),
        (("rocm.count",), "ROCm"),
        (("gpu.0.gfx_target",), "GPU"),
    ],
)
def test_a_finding_is_about_what_it_was_seen_in(keys: tuple[str, ...], name: str) -> None:
    found = _areas(GPU, (_found(Severity.ERROR, *keys),))
    assert {area.name for area in found.values() if area.findings} == {name}
    assert found[name].state is AreaState.PROBLEM


def test_the_state_is_the_worst_of_what_was_found_and_notes_do_not_count() -> None:
    findings = (
        _found(Severity.WARNING, "rocm.version"),
        _found(Severity.ADVICE, "rocm.path"),
        _found(Severity.INFO, "rocm.kind"),
        _found(Severity.ADVICE, "gpu.0.mes_version"),
    )
    found = _areas(GPU | {"rocm.version": "7.2"}, findings)
    assert found["ROCm"] == Area("ROCm", AreaState.ATTENTION, "ROCm 7.2", ("about-rocm.version", "about-rocm.path"))
    assert found["Firmware"].state is AreaState.OK
    assert found["Firmware"].text == "MES 0x83"


@pytest.mark.parametrize(
    ("service", "state"),
    [
        ("native", AreaState.OK),
        ("override", AreaState.ATTENTION),
        ("none", AreaState.PROBLEM),
        (None, AreaState.UNKNOWN),
    ],
)
def test_pytorch_is_as_well_as_it_serves_the_gpu(service: str | None, state: AreaState) -> None:
    found = _areas(GPU | {"torch.installed": True, "torch.version": "2.9"}, torch_service=service)
    assert found["PyTorch"].state is state


def test_processor_graphics_beside_a_card_that_pytorch_serves_are_no_problem() -> None:
    gpus = (GpuSummary(0, "XTX", "gfx1100", torch_service="native"), GpuSummary(1, "", "gfx1036", torch_service="none"))
    facts = {"torch.installed": True, "torch.version": "2.9", "gpu.1.torch_cards": "0"}
    told = {area.name: area for area in areas(build_machine(facts), Diagnosis("m", "", None, gpus, (), (), 0))}
    assert (told["PyTorch"].state, told["PyTorch"].text) == (AreaState.OK, "PyTorch 2.9 has code for the card")
    alone = {key: value for key, value in facts.items() if key != "gpu.1.torch_cards"}
    told = {area.name: area for area in areas(build_machine(alone), Diagnosis("m", "", None, gpus, (), (), 0))}
    assert told["PyTorch"].state is AreaState.PROBLEM


def test_what_nothing_is_known_of_is_unknown_and_never_well() -> None:
    assert {area.state for area in _areas({}).values()} == {AreaState.UNKNOWN}


def test_a_gpu_without_driver_is_a_problem_of_both() -> None:
    found = _areas({"pci.amd_gpus": [{"name": "Radeon RX 9070 XT"}] * 2, "amdgpu.loaded": False})
    assert found["GPU"].state is found["Driver"].state is AreaState.PROBLEM
    assert found["GPU"].text == "2 x Radeon RX 9070 XT: the driver does not show it"


@pytest.mark.parametrize(
    ("packages", "text"),
    [
        ({}, "No installation was found"),
        ({"rocmend": "0.1.0", "torch": "2.9.1"}, "No installation was found"),
        (
            {"torch": "2.9.1", "torchvision": "0.24.1+rocm6.4", "pytorch-triton-rocm": "3.5.1"},
            "No system installation; ROCm wheels in the Python environment: torchvision and pytorch-triton-rocm",
        ),
    ],
)
def test_wheels_for_rocm_are_named_where_no_rocm_is_installed(packages: dict[str, str], text: str) -> None:
    assert _areas(GPU | {"rocm.count": 0, "packages": packages})["ROCm"].text == text


@pytest.mark.parametrize("name", ["strix-halo", "rx-5600-xt", "rx-7900-xtx", "cuda-torch-on-amd", "mi300x", "wsl2"])
def test_a_finding_has_one_severity_in_every_area(name: str) -> None:
    machine = snapshot(open_machine(example_machines()[name]), name=name)
    diagnosis = diagnose(machine, load_entries())
    severity = {finding.entry_id: finding.severity for finding in diagnosis.findings}
    for area in areas(machine, diagnosis):
        worst = min((severity[entry].rank for entry in area.findings), default=Severity.INFO.rank)
        assert worst != Severity.ERROR.rank or area.state is AreaState.PROBLEM, area
        assert worst != Severity.WARNING.rank or area.state in {AreaState.ATTENTION, AreaState.PROBLEM}, area
