"""What follows from settings and installed software."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.machine.derivations import in_order
from rocmend.machine.derive._module_parameters import MODULES
from rocmend.machine.derive.kernel_params import check
from rocmend.machine.derive.override import parse_override, target_name
from rocmend.machine.facts import DERIVATIONS, FactSink

Derive = Callable[..., FactSink]
NAME = "HSA_OVERRIDE_GFX_VERSION"


def values(sink: FactSink) -> dict[str, Any]:
    return {key: fact.value for key, fact in sink.facts.items()}


# -- the override ------------------------------------------------------------------------------------------------------


def override(derive: Derive, *targets: str, **env: str) -> dict[str, Any]:
    facts: dict[str, Any] = {"env.collected": True} | {f"env.{key}": value for key, value in env.items()}
    for index, target in enumerate(targets):
        facts |= {f"gpu.{index}.gfx_target": target, f"gpu.{index}.source_node": index + 1}
    return values(derive("override", facts))


def test_unset(derive: Derive) -> None:
    found = override(derive, "gfx1151")
    assert (found["override.value"], found["override.target"], found["override.sane"]) == (None, None, None)
    assert found["override.malformed"] is False
    assert found["gpu.0.effective_target"] == "gfx1151"


def test_inside_a_class(derive: Derive) -> None:
    found = override(derive, "gfx1151", HSA_OVERRIDE_GFX_VERSION="11.0.0")
    assert (found["override.target"], found["override.sane"]) == ("gfx1100", True)
    assert found["gpu.0.effective_target"] == "gfx1100"


def test_across_classes_is_never_sane(derive: Derive) -> None:
    found = override(derive, "gfx1010", HSA_OVERRIDE_GFX_VERSION="10.3.0")
    assert (found["override.target"], found["override.sane"]) == ("gfx1030", False)
    assert "gfx10-1-generic" in found["override.reason"]


def test_one_bad_gpu_spoils_the_whole(derive: Derive) -> None:
    found = override(derive, "gfx1100", "gfx1030", HSA_OVERRIDE_GFX_VERSION="11.0.0")
    assert found["override.sane"] is False
    assert (found["gpu.0.override_sane"], found["gpu.1.override_sane"]) == (True, False)


def test_the_variable_of_a_node_goes_first(derive: Derive) -> None:
    env = {NAME: "11.0.0", f"{NAME}_2": "10.3.0"}
    found = override(derive, "gfx1101", "gfx1031", **env)
    assert found["override.sane"] is True
    assert (found["gpu.0.override_target"], found["gpu.1.override_target"]) == ("gfx1100", "gfx1030")
    alone = override(derive, "gfx1101", "gfx1031", **{f"{NAME}_2": "10.3.0"})
    assert alone["gpu.0.override_sane"] is None
    assert alone["override.value"] == "10.3.0"


@pytest.mark.parametrize(
    "value", ["gfx1100", "11.0", "11.0.0.0", "11.0.0 x", "", "1100", "64.0.0", "11.256.0", "-1.0.0"]
)
def test_malformed(value: str, derive: Derive) -> None:
    found = override(derive, "gfx1151", HSA_OVERRIDE_GFX_VERSION=value)
    assert found["override.malformed"] is True
    assert found["override.sane"] is False
    assert found["override.target"] is None


def test_a_target_that_nobody_knows(derive: Derive) -> None:
    found = override(derive, "gfx1151", HSA_OVERRIDE_GFX_VERSION="11.9.9")
    assert (found["override.target"], found["override.sane"]) == ("gfx1199", False)


def test_the_environment_was_not_read(derive: Derive) -> None:
    sink = derive("override", {"gpu.0.gfx_target": "gfx1151"})
    assert "override.sane" in sink.gaps


def test_names_of_targets() -> None:
    assert target_name((9, 0, 10)) == "gfx90a"
    assert target_name((11, 5, 1)) == "gfx1151"
    assert parse_override("9.0.10") == (9, 0, 10)


@given(st.text(max_size=20))
def test_any_value_is_judged(text: str) -> None:
    found = parse_override(text)
    assert found is None or found[0] <= 63


# -- kernel parameters -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value", "suggestion"),
    [
        ("aamdgpu.cwsr_enable", "0", "amdgpu.cwsr_enable=0"),
        ("amdgpu.cwsr_enabled", "0", "amdgpu.cwsr_enable=0"),
        ("amdgpu.gtt_size", "1024", "amdgpu.gttsize=1024"),
        ("amdgpu.pages_limit", "1", "ttm.pages_limit=1"),
        ("ttm.page_limit", "1", "ttm.pages_limit=1"),
        ("tmm.pages_limit", "1", "ttm.pages_limit=1"),
        ("amdgpu_noretry", "0", "amdgpu.noretry=0"),
        ("cwsr_enable", "0", "amdgpu.cwsr_enable=0"),
        ("amdkfd.cwsr_enable", "0", "amdgpu.cwsr_enable=0"),
        ("amd_iommu", "pt", "iommu=pt"),
        ("amdiommu", "off", "amd_iommu=off"),
        ("iommu", "ptt", "iommu=pt"),
        ("amdgpu.no_such_thing_at_all", None, ""),
    ],
)
def test_misspelled(key: str, value: str | None, suggestion: str) -> None:
    problem = check(key, value, MODULES)
    assert problem is not None
    assert problem["suggestion"] == suggestion
    assert problem["given"] == (key if value is None else f"{key}={value}")
    assert problem["why"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("amdgpu.cwsr_enable", "0"),
        ("amdgpu.cwsr-enable", "0"),
        ("amdgpu.gttsize", "131072"),
        ("ttm.pages_limit", "27648000"),
        ("amdttm.pages_limit", "27648000"),
        ("amd_iommu", "off"),
        ("amd_iommu", "on"),  # no word of the kernel's, but it asks for the default
        ("amd_iommu", "fullflush,pgtbl_v2"),
        ("iommu", "pt"),
        ("iommu.passthrough", "1"),
        ("amd_pstate", "active"),
        ("amd_pmc.disable_workarounds", "1"),
        ("amdxdna.aie2_max_col", "4"),
        ("nvidia.NVreg_EnableGpuFirmware", "0"),
        ("i915.enable_psr", "0"),
        ("tpm.disable", "1"),
        ("quiet", None),
        ("dc", None),
        ("test", "1"),
        ("root", "UUID=0"),
        ("drm.debug", "0x1e"),
        ("usbcore.autosuspend", "-1"),
    ],
)
def test_right_or_none_of_ours(key: str, value: str | None) -> None:
    assert check(key, value, MODULES) is None


def test_the_whole_command_line(derive: Derive) -> None:
    facts = {
        "kernel.params": {"aamdgpu.cwsr_enable": "0", "quiet": None, "amd_iommu": "pt"},
        "modprobe.options": {"amdgpu.ppfeaturemaks": "0xffffffff"},
        "amdgpu.params": {"cwsr_enable": "1"},
    }
    found = values(derive("kernel_params", facts))
    assert [(item["given"], item["where"]) for item in found["kernel.unknown_params"]] == [
        ("aamdgpu.cwsr_enable=0", "kernel command line"),
        ("amd_iommu=pt", "kernel command line"),
        ("amdgpu.ppfeaturemaks=0xffffffff", "modprobe.d"),
    ]
    assert found["kernel.unknown_params_text"].startswith("aamdgpu.cwsr_enable=0 (amdgpu.cwsr_enable=0?), ")


def test_what_the_loaded_module_takes_is_known(derive: Derive) -> None:
    facts = {"kernel.params": {"amdgpu.brand_new": "1"}, "amdgpu.params": {"brand_new": "1"}}
    assert values(derive("kernel_params", facts))["kernel.unknown_params"] == []


def test_no_command_line_is_a_gap(derive: Derive) -> None:
    assert "kernel.unknown_params" in derive("kernel_params", {}, {"kernel.params": "permission denied"}).gaps


@given(st.text(max_size=60), st.none() | st.text(max_size=40))
def test_any_parameter_is_judged(key: str, value: str | None) -> None:
    problem = check(key, value, MODULES)
    assert problem is None or set(problem) == {"given", "suggestion", "why"}


# -- torch -------------------------------------------------------------------------------------------------------------


def service(derive: Derive, gfx: str, code: list[str], **more: Any) -> dict[str, Any]:
    facts = {"gpu.0.gfx_target": gfx, "torch.backend": "rocm", "torch.code_targets": code, "torch.components": {}}
    return values(derive("torch_service", facts | {f"torch.{key}": value for key, value in more.items()}))


def test_service_of_each_kind(derive: Derive) -> None:
    assert service(derive, "gfx1151", ["gfx1100", "gfx1151"])["gpu.0.torch_service"] == "native"
    assert service(derive, "gfx1151", ["gfx11-generic"])["gpu.0.torch_service"] == "generic"
    found = service(derive, "gfx1151", ["gfx906", "gfx1100"])
    assert (found["gpu.0.torch_service"], found["gpu.0.torch_override"]) == ("override", "11.0.0")


def test_an_override_across_classes_is_refused(derive: Derive) -> None:
    found = service(derive, "gfx1010", ["gfx906", "gfx1030", "gfx1100"])
    assert (found["gpu.0.torch_service"], found["gpu.0.torch_override"]) == ("none", None)
    assert any("refused" in caution for caution in found["gpu.0.torch_service_cautions"])


def test_torchs_own_kernels_decide(derive: Derive) -> None:
    components = {"PyTorch": {"targets": {"gfx1030": 9}}, "rocBLAS kernels": {"targets": {"gfx1010": 1, "gfx1030": 1}}}
    found = service(derive, "gfx1010", ["gfx1010", "gfx1030"], components=components)
    assert found["gpu.0.torch_service"] == "none"


def test_a_build_whose_device_packages_are_missing(derive: Derive) -> None:
    found = service(derive, "gfx1151", [])
    assert found["gpu.0.torch_service"] == "none"
    assert "amd-torch-device" in found["gpu.0.torch_service_reason"]


@pytest.mark.parametrize(
    ("second", "is_apu", "cards"),
    [("gfx1036", True, "0"), ("gfx1036", None, None), ("gfx1031", False, None), ("gfx1010", True, "0")],
)
def test_beside_a_gpu_that_is_served_no_override_is_offered(
    derive: Derive, second: str, is_apu: bool | None, cards: str | None
) -> None:
    """The variable applies to every GPU; processor graphics beside a card are hidden, not served."""
    facts = {"gpu.0.is_apu": False, "gpu.1.gfx_target": second, "gpu.1.is_apu": is_apu}
    more = {"torch.backend": "rocm", "torch.code_targets": ["gfx1030", "gfx1100"], "torch.components": {}}
    found = values(derive("torch_service", {"gpu.0.gfx_target": "gfx1100", **facts, **more}))
    assert found["gpu.1.torch_service"] in {"override", "none"}
    assert "VERSION=10.3.0" not in found["gpu.1.torch_service_reason"]
    assert (found["gpu.1.torch_override"], found["gpu.1.torch_cards"]) == (None, cards)
    assert (found["gpu.0.torch_service"], found["gpu.0.torch_cards"]) == ("native", None)


def test_other_builds_and_unknown_code(derive: Derive) -> None:
    assert service(derive, "gfx1151", [], backend="cuda")["gpu.0.torch_service"] is None
    assert service(derive, "gfx1151", [], backend=None)["gpu.0.torch_service"] is None
    sink = derive(
        "torch_service",
        {"gpu.0.gfx_target": "gfx1151", "torch.backend": "rocm"},
        {"torch.code_targets": "it took too long"},
    )
    assert "too long" in sink.gaps["gpu.0.torch_service"].reason
    unknown = derive(
        "torch_service",
        {"gpu.0.gfx_target": "gfx9999", "torch.backend": "rocm", "torch.code_targets": ["gfx1100"]},
    )
    assert "gpu.0.torch_service" in unknown.gaps


@pytest.mark.parametrize(
    ("bundled", "system", "kind", "state"),
    [
        ("6.2", "6.2.4", "package", "match"),
        ("6.2", "6.4.1", "package", "minor-differs"),
        ("6.2", "7.0.2", "opt", "major-differs"),
        ("7.11.0", "7.11.0", "wheel", "unknown"),
        ("6.2", None, None, "unknown"),
    ],
)
def test_rocm_match(bundled: str, system: str | None, kind: str | None, state: str, *, derive: Derive) -> None:
    facts = {"torch.backend": "rocm", "torch.rocm_version": bundled, "rocm.version": system, "rocm.kind": kind}
    found = values(derive("rocm_match", facts))
    assert found["torch.rocm_match"] == state
    assert found["torch.rocm_match_reason"]


def test_rocm_wheels_count_for_therocks_torch(derive: Derive) -> None:
    facts = {"torch.backend": "rocm", "torch.rocm_version": "7.14.0", "rocm.version": "7.11.0", "rocm.kind": "wheel"}
    assert values(derive("rocm_match", facts | {"torch.source": "therock"}))["torch.rocm_match"] == "minor-differs"
    assert values(derive("rocm_match", facts | {"torch.source": "pytorch-index"}))["torch.rocm_match"] == "unknown"


def test_no_rocm_torch_no_match(derive: Derive) -> None:
    facts = {"torch.backend": "cuda", "rocm.version": "7.2.0", "rocm.kind": "package"}
    assert values(derive("rocm_match", facts))["torch.rocm_match"] is None


# -- all of them -------------------------------------------------------------------------------------------------------


def test_every_derivation_loads_and_can_be_ordered() -> None:
    derivations = [unit for _, unit in DERIVATIONS]
    assert DERIVATIONS.problems == []
    assert len(in_order(derivations)) == len(derivations)
    for unit in derivations:
        assert all(text.endswith((".", "null.")) for text in unit.facts.values()), unit.name


JSON = (
    st.none()
    | st.booleans()
    | st.integers(-5, 1 << 40)
    | st.text(max_size=8)
    | st.lists(st.text(max_size=4), max_size=2)
)
KEYS = sorted({need.replace("*", "0") for _, unit in DERIVATIONS for need in unit.needs if need != "env.*"})


@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=12))
def test_a_damaged_machine_never_ends_the_derivations(facts: dict[str, Any]) -> None:
    from rocmend.core.records import Fact
    from rocmend.machine.derivations import derive_all
    from rocmend.machine.facts import Machine

    known = {key: Fact(key, value, "test") for key, value in facts.items()}
    machine = derive_all(Machine("test", "", known, {}))
    assert set(known) <= set(machine.facts)
