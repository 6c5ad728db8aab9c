from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.codeobject.isa import MACH
from rocmend.codeobject.service import Verdict, serve, service_for_targets
from rocmend.core.errors import UsageError
from rocmend.core.gfx import lookup, targets


@pytest.mark.parametrize(
    ("held", "gpu", "verdict", "via"),
    [
        (["gfx1100", "gfx1151"], "gfx1151", "native", "gfx1151"),
        (["gfx11-generic", "gfx90a"], "gfx1151", "generic", "gfx11-generic"),
        (["gfx11-generic", "gfx1151"], "gfx1151", "native", "gfx1151"),
        (["amdgcnspirv"], "gfx1201", "generic", "amdgcnspirv"),
        (["gfx1030"], "gfx1151", "none", ""),
        (["gfx12-generic"], "gfx1151", "none", ""),
        (["gfx9-4-generic"], "gfx942", "generic", "gfx9-4-generic"),
        (["gfx9-generic"], "gfx90a", "none", ""),
        ([], "gfx1151", "not-applicable", ""),
        (["nonsense", "sm_90"], "gfx1151", "not-applicable", ""),
    ],
)
def test_verdicts(held: list[str], gpu: str, verdict: str, via: str) -> None:
    found = service_for_targets(held, gpu)
    assert (found.verdict, found.via) == (Verdict(verdict), via)
    assert found.reason
    assert not found.override


@pytest.mark.parametrize(
    ("held", "gpu", "value", "via"),
    [
        (["gfx1030", "gfx1100"], "gfx1032", "10.3.0", "gfx1030"),
        (["gfx1030", "gfx1031"], "gfx1036", "10.3.0", "gfx1030"),
        (["gfx1100", "gfx1101"], "gfx1151", "11.0.0", "gfx1100"),
        (["gfx1100", "gfx1102"], "gfx1103", "11.0.2", "gfx1102"),  # as many vector registers as gfx1103
        (["gfx1100", "gfx1150"], "gfx1152", "11.5.0", "gfx1150"),
        (["gfx1200"], "gfx1201", "12.0.0", "gfx1200"),
        (["gfx1010"], "gfx1012", "10.1.0", "gfx1010"),
        (["gfx900"], "gfx90c", "9.0.0", "gfx900"),
    ],
)
def test_overrides_within_a_class_have_the_exact_value(held: list[str], gpu: str, value: str, via: str) -> None:
    found = service_for_targets(held, gpu)
    assert (found.verdict, found.override, found.via) == (Verdict.OVERRIDE, value, via)
    assert found.environment == {"HSA_OVERRIDE_GFX_VERSION": value}
    assert any("necessary, not sufficient" in text for text in found.cautions)


def test_an_override_across_classes_is_refused_and_explained() -> None:
    found = service_for_targets(["gfx1030", "gfx1100"], "gfx1010")
    assert (found.verdict, found.override, found.environment) == (Verdict.NONE, "", {})
    assert "invalid device function" in found.reason
    assert found.cautions[0].startswith("HSA_OVERRIDE_GFX_VERSION=10.3.0 is refused")
    assert "gfx10-3-generic" in found.cautions[0]


def test_the_old_override_of_new_apus_is_refused() -> None:
    found = service_for_targets(["gfx1030"], "gfx1103")
    assert found.verdict is Verdict.NONE
    assert "10.3.0 is refused" in found.cautions[0]


@pytest.mark.parametrize(
    ("held", "gpu", "verdict", "environment"),
    [
        (["gfx90a:xnack-"], "gfx90a", "native", {}),
        (["gfx90a:xnack+"], "gfx90a", "native", {"HSA_XNACK": "1"}),
        (["gfx90a:xnack+", "gfx90a:xnack-"], "gfx90a", "native", {}),
        (["gfx90a:xnack+"], "gfx90a:xnack+", "native", {}),
        (["gfx90a:xnack+"], "gfx90a:xnack-", "none", {}),
        (["gfx90a:xnack-"], "gfx90a:xnack+", "none", {}),
        (["gfx90a"], "gfx90a:sramecc+:xnack-", "native", {}),
        (["gfx90a:sramecc+"], "gfx90a:sramecc-", "none", {}),
        (["gfx942:sramecc+:xnack-"], "gfx942:sramecc+:xnack-", "native", {}),
        (["gfx9-4-generic:xnack+"], "gfx942:xnack-", "none", {}),
    ],
)
def test_settings(held: list[str], gpu: str, verdict: str, environment: dict[str, str]) -> None:
    found = service_for_targets(held, gpu)
    assert (found.verdict, found.environment) == (Verdict(verdict), environment)


def test_code_for_memory_without_ecc_comes_with_a_condition() -> None:
    assert "without ECC" in service_for_targets(["gfx942:sramecc-"], "gfx942").reason


def test_components_differ() -> None:
    parts = {
        "PyTorch": ["gfx1100", "gfx1151"],
        "rocBLAS kernels": ["gfx1100", "gfx1151"],
        "AOTriton": ["gfx942"],
        "hipBLASLt kernels": ["gfx942", "gfx1100"],
        "MIOpen database": ["gfx1030"],
    }
    found = service_for_targets([], "gfx1151", components=parts)
    assert found.verdict is Verdict.NATIVE
    verdicts = {part.name: part.verdict for part in found.components}
    assert verdicts == {
        "PyTorch": Verdict.NATIVE,
        "rocBLAS kernels": Verdict.NATIVE,
        "AOTriton": Verdict.NONE,
        "hipBLASLt kernels": Verdict.NONE,
        "MIOpen database": Verdict.NONE,
    }
    assert any("attention" in text for text in found.cautions)
    assert any("rocBLAS instead" in text for text in found.cautions)


def test_one_override_has_to_serve_every_part_that_decides() -> None:
    parts = {"PyTorch": ["gfx1102", "gfx1100"], "rocBLAS kernels": ["gfx1100"]}
    found = service_for_targets([], "gfx1103", components=parts)
    assert (found.verdict, found.override) == (Verdict.OVERRIDE, "11.0.0")
    assert {part.via for part in found.components} == {"gfx1100"}


def test_native_kernels_without_a_matrix_library_need_the_override_too() -> None:
    parts = {"PyTorch": ["gfx1100", "gfx1103"], "rocBLAS kernels": ["gfx1100"]}
    assert service_for_targets([], "gfx1103", components=parts).verdict is Verdict.OVERRIDE
    parts["rocBLAS kernels"] = ["gfx942"]
    found = service_for_targets([], "gfx1103", components=parts)
    assert found.verdict is Verdict.NONE
    assert "rocBLAS kernels" in found.reason


def test_a_target_in_some_fat_binaries_only() -> None:
    def part(count: int) -> dict[str, object]:
        return {"PyTorch": {"targets": {"gfx942": 40, "gfx1151": count}, "units": 40, "files": 1}}

    most = service_for_targets([], "gfx1151", components=part(38))
    assert most.verdict is Verdict.NATIVE
    assert any("38 of its 40 fat binaries" in text for text in most.cautions)
    few = service_for_targets([], "gfx1151", components=part(3))
    assert few.verdict is Verdict.NONE
    assert "3 of its 40" in few.components[0].reason


def test_specific_and_generic_code_add_up() -> None:
    parts = {"PyTorch": {"targets": {"gfx1151": 3, "gfx11-generic": 37}, "units": 40, "files": 1}}
    found = service_for_targets([], "gfx1151", components=parts)
    assert (found.verdict, found.cautions) == (Verdict.GENERIC, ())


ALTERNATIVES = {
    "bitsandbytes 7.1": {"targets": {"gfx1100": 2, "gfx1030": 2}, "units": 2, "files": 1, "variant": "7.1"},
    "bitsandbytes 7.2": {"targets": {"gfx1100": 2, "gfx1030": 2}, "units": 2, "files": 1, "variant": "7.2"},
    "bitsandbytes 7.14": {
        "targets": {"gfx1100": 2, "gfx1030": 2, "gfx1031": 2, "gfx1012": 2},
        "units": 2,
        "files": 1,
        "variant": "7.14",
    },
}


def test_of_alternatives_the_worst_counts_where_it_is_not_known_which_is_loaded() -> None:
    found = service_for_targets([], "gfx1012", components=ALTERNATIVES)
    assert (found.verdict, found.only_with) == (Verdict.NONE, ("7.14",))
    assert "HIP 7.1, 7.2 hold no code for gfx1012, those for HIP 7.14 do" in found.reason
    assert [part.verdict.value for part in found.components] == ["none", "none", "native"]
    everywhere = service_for_targets([], "gfx1100", components=ALTERNATIVES)
    assert (everywhere.verdict, everywhere.only_with, everywhere.cautions) == (Verdict.NATIVE, (), ())
    nowhere = service_for_targets([], "gfx942", components=ALTERNATIVES)
    assert (nowhere.verdict, nowhere.only_with) == (Verdict.NONE, ())


def test_an_override_has_to_serve_every_alternative() -> None:
    found = service_for_targets([], "gfx1031", components=ALTERNATIVES)
    assert (found.verdict, found.override) == (Verdict.OVERRIDE, "10.3.0")
    assert "in its libraries for HIP 7.1, 7.2" in found.reason
    assert any("HIP 7.14 hold code for gfx1031 and need none" in caution for caution in found.cautions)


def test_tuning_alone_is_no_code() -> None:
    assert (
        service_for_targets([], "gfx1030", components={"MIOpen database": ["gfx1030"]}).verdict
        is Verdict.NOT_APPLICABLE
    )


def test_unknown_gpu() -> None:
    with pytest.raises(UsageError):
        service_for_targets(["gfx1100"], "gfx9999")
    with pytest.raises(UsageError, match="has no targets"):
        service_for_targets([], "gfx1100", components={"x": {"files": 1}})


def test_serve_takes_a_list_too() -> None:
    assert serve(["gfx1100"], "gfx1100").verdict is Verdict.NATIVE


@given(st.lists(st.sampled_from(sorted(MACH.values())), max_size=5), st.sampled_from([item.name for item in targets()]))
def test_an_override_never_leaves_the_generic_class(held: list[str], gpu: str) -> None:
    found = service_for_targets(held, gpu)
    if found.verdict is Verdict.OVERRIDE:
        via = lookup(found.via)
        assert via.generic_class == lookup(gpu).generic_class is not None
        assert found.override == via.override_value
        assert found.via in held
    elif found.verdict is Verdict.NATIVE:
        assert gpu in held
    elif found.verdict is Verdict.GENERIC:
        assert lookup(gpu).generic_class in held
        assert gpu not in held
    elif found.verdict is Verdict.NONE:
        assert gpu not in held
        assert lookup(gpu).generic_class not in held
