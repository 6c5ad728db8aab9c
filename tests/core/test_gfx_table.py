import tomllib
from pathlib import Path

import msgspec
import pytest

from rocmend.core import gfx
from rocmend.core.errors import UsageError

WAVE64_ONLY = {"gfx900", "gfx90c", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950"}
APUS = {"gfx90c", "gfx1033", "gfx1035", "gfx1036", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153"}


def test_holds_the_28_targets_in_isa_order() -> None:
    names = [target.name for target in gfx.targets()]
    assert len(names) == len(set(names)) == 28
    generations = [target.generation for target in gfx.targets()]
    assert generations == sorted(generations, key=lambda name: int(name[3:]))


@pytest.mark.parametrize(("name", "meant"), [("gfx1150x", "Did you mean gfx1150, "), ("gfx7zz", "")])
def test_an_unknown_target_is_told_of_near_ones_and_of_the_list(name: str, meant: str) -> None:
    with pytest.raises(UsageError) as raised:
        gfx.lookup(name)
    assert raised.value.next_step.startswith(f"{meant}" or "`")
    assert raised.value.next_step.endswith("`rocmend targets` lists all of them.")
    assert "Known" not in raised.value.next_step


def test_name_says_the_isa_version() -> None:
    for target in gfx.targets():
        major, minor, stepping = target.isa_version
        assert target.name == f"gfx{major}{minor}{stepping:x}"
        assert target.generation == f"gfx{major}"


@pytest.mark.parametrize(
    ("name", "version", "value"),
    [
        ("gfx1151", 110501, "11.5.1"),
        ("gfx90a", 90010, "9.0.10"),
        ("gfx90c", 90012, "9.0.12"),
        ("gfx1030", 100300, "10.3.0"),
    ],
)
def test_kfd_version_and_override_value(name: str, version: int, value: str) -> None:
    target = gfx.lookup(name)
    assert target.kfd_version == version
    assert target.override_value == value
    assert gfx.from_kfd_version(version) == target


@pytest.mark.parametrize("version", [0, -1, 110504, 10**12])
def test_unknown_kfd_versions_give_none(version: int) -> None:
    assert gfx.from_kfd_version(version) is None


def test_wavefronts() -> None:
    for target in gfx.targets():
        assert target.wavefront_default in target.wavefront_sizes
        assert (target.wavefront_sizes == (64,)) == (target.name in WAVE64_ONLY)
        assert target.wavefront_default == (64 if target.name in WAVE64_ONLY else 32)
    assert gfx.lookup("gfx1250").wavefront_sizes == (32,)


def test_apus() -> None:
    assert {target.name for target in gfx.targets() if target.is_apu} == APUS
    for product in gfx.products():
        if product.gfx != "gfx942":  # MI300A and MI300X share a target
            assert product.is_apu == (product.gfx in APUS), product.name


def test_vector_registers_match_the_register_file_sizes_of_rocm_documentation() -> None:
    kib_per_wgp = {"gfx1201": 768, "gfx1100": 768, "gfx1101": 768, "gfx1102": 512, "gfx1103": 512, "gfx1150": 512}
    kib_per_wgp |= {"gfx1151": 768, "gfx1152": 512, "gfx1030": 512, "gfx1012": 512}
    for name, kib in kib_per_wgp.items():
        target = gfx.lookup(name)
        size_bytes = target.vgprs_per_simd * target.wavefront_default * 4 * target.simd_per_cu * 2
        assert size_bytes == kib << 10, name
    kib_per_cu = {"gfx950": 512, "gfx942": 512, "gfx90a": 512, "gfx908": 512, "gfx906": 256, "gfx900": 256}
    for name, kib in kib_per_cu.items():
        target = gfx.lookup(name)
        assert target.vgprs_per_simd * 64 * 4 * 4 == kib << 10, name


def test_lds() -> None:
    large = {"gfx950": 160 << 10, "gfx1250": 320 << 10}
    for target in gfx.targets():
        assert target.lds_per_workgroup_bytes == large.get(target.name, 64 << 10)


def test_every_field_has_a_source() -> None:
    for target in gfx.targets():
        for field in target.__struct_fields__:
            source = target.source_of(field)
            assert source is not None
            assert source.url.startswith("https://"), (target.name, field)
    for product in gfx.products():
        assert product.sources, product.name


def test_types_without_arithmetic_of_their_own_run_no_faster_than_what_they_are_computed_in() -> None:
    for target in gfx.targets():
        rates = target.flop_per_clock_per_cu
        for dtype in target.not_accelerated:
            assert rates[dtype] == rates["fp32"], (target.name, dtype)
        if rates:
            assert {"fp32", "fp16", "bf16", "int8"} <= rates.keys()
        if target.name != "gfx1250":
            assert set(target.matrix_dtypes) <= rates.keys()
            assert target.has_matrix_unit == bool(target.matrix_dtypes)


def test_dot_instructions() -> None:
    without = {target.name for target in gfx.targets() if not target.dot_instructions}
    assert without == {"gfx900", "gfx90c", "gfx1010"}


def test_excluded_libraries_and_families() -> None:
    assert gfx.lookup("gfx942").excluded_libraries == ()
    assert "hipBLASLt" in gfx.lookup("gfx1030").excluded_libraries
    assert "hipBLASLt" not in gfx.lookup("gfx1151").excluded_libraries
    assert "rccl" in gfx.lookup("gfx1150").excluded_libraries
    assert "gfx115X-all" in gfx.lookup("gfx1151").families
    for target in gfx.targets():
        kind = "dcgpu-all" if "dcgpu-all" in target.families else "dgpu-all"
        assert ("igpu-all" if target.is_apu else kind) in target.families


def test_agrees_with_rocm_bootstrap() -> None:
    from rocm_bootstrap.targets import lookup_target

    for target in gfx.targets():
        theirs = lookup_target(target.name)
        assert theirs.gfx_target_version == target.kfd_version
        assert theirs.xnack.value == target.xnack.value, target.name
        own, sub_family, family = target.packaging_chain()
        assert own.key == target.name
        assert family.key == target.generation
        assert target.name in {member.name for member in sub_family.members}
        generic = sub_family.llvm_generic or family.llvm_generic
        if generic and target.name not in {"gfx908", "gfx90a"}:  # in gfx9's family, outside gfx9-generic
            assert generic == target.generic_class


def test_generic_members() -> None:
    assert gfx.generic_members("gfx9-4-generic") == ("gfx942", "gfx950")
    assert gfx.generic_members("GFX11-generic")[:2] == ("gfx1100", "gfx1101")
    assert len(gfx.generic_members("amdgcn-amd-amdhsa--gfx11-generic")) == 8
    for name in gfx.generic_targets():
        for member in gfx.generic_members(name):
            assert gfx.lookup(member).generic_class == name
    with pytest.raises(UsageError, match="no generic target"):
        gfx.generic_members("gfx1151")
    with pytest.raises(UsageError, match="is a generic target"):
        gfx.lookup("gfx11-generic")


def test_targets_are_json_and_come_back() -> None:
    for target in gfx.targets():
        assert msgspec.json.decode(msgspec.json.encode(target), type=gfx.GfxTarget) == target
    for product in gfx.products():
        assert msgspec.json.decode(msgspec.json.encode(product), type=gfx.Product) == product


def test_every_source_defined_is_cited() -> None:
    folder = Path(gfx.__file__).parent / "data"
    for name in ("targets.toml", "products.toml"):
        text = (folder / name).read_text(encoding="utf-8")
        for key in tomllib.loads(text)["source"]:
            assert f'"{key}"' in text, f"{name} defines the source {key} and never cites it"
