"""The pieces that need no compiler: assembly, checks, the table and what changed, which Triton serves a target."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.kernels.compiled.specs import dot, sample

from rocmend.cli.views.compiled import overview, short_config
from rocmend.core.errors import DataError, UsageError
from rocmend.kernels import registry
from rocmend.kernels import target as targets
from rocmend.kernels.compiled import run, toolchains
from rocmend.kernels.compiled.assembly import read_assembly
from rocmend.kernels.compiled.cache import Cache, Result
from rocmend.kernels.compiled.checks import Finding, judge, takes
from rocmend.kernels.compiled.measure import Measured, asked_dots
from rocmend.kernels.compiled.names import hidden_records, name_of
from rocmend.kernels.compiled.occupancy import occupancy, register_occupancy
from rocmend.kernels.compiled.run import Selection, _chosen, _compile, _reason, unused_records
from rocmend.kernels.compiled.spec import Spec, decode, encode
from rocmend.kernels.compiled.table import Row, differences, merged, read_table, write_table
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.compiled.toolchains import available, choose_toolchain
from rocmend.kernels.tuning import Asked, Config, lookup
from rocmend.kernels.tuning.record import Record

MEASURED = Measured(
    vgprs=64,
    agprs=0,
    sgprs=30,
    vgpr_spills=0,
    sgpr_spills=0,
    scratch_bytes=0,
    lds_bytes=8192,
    waves=4,
    occupancy=16,
    llvm_occupancy=16,
    matrix={"v_wmma_f32_16x16x16_f16": 8},
    dots={},
    asked={"f16": 1},
    load_bits=128,
    store_bits=32,
    code_bytes=2000,
)


def _changed(**changes: Any) -> Measured:
    return msgspec.structs.replace(MEASURED, **changes)


def _row(**changes: Any) -> Row:
    row = Row("op", "kernel", "abc", "case", "op/kernel/*@any", "num_warps=4", "gfx1100", "3.9.0", MEASURED)
    return msgspec.structs.replace(row, **changes)


def test_instructions_are_counted_and_widths_read() -> None:
    found = read_assembly(
        "\tglobal_load_b32 v1, v[0:1], off\n\tbuffer_load_dwordx4 v[0:3], v4\n\tglobal_load_d16_u8 v0, v1\n"
        "\tglobal_store_d16_hi_b16 v[0:1], v2, off\n\tv_dot2c_f32_f16_e32 v0, v1, v2\n"
        "\tv_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]\n"
        "\tv_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], 0\n\ts_load_b512 s[0:15], s[0:1]\n"
        "; codeLenInByte = 1900\n; ScratchSize: 12\n; Occupancy: 16\n"
    )
    assert found.matrix == {"v_mfma_f32_32x32x8_f16": 1, "v_wmma_f32_16x16x16_f16": 1}
    assert found.dots == {"v_dot2c_f32_f16": 1}
    assert (found.load_bits, found.store_bits) == (128, 16)
    assert (found.code_bytes, found.scratch_bytes, found.llvm_occupancy) == (1900, 12, 16)


def test_dots_are_read_with_their_types_and_precision() -> None:
    ttir = (
        "%a = tt.dot %x, %y, %z : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32> loc(#l)\n"
        "%b = tt.dot %x, %y, %z, inputPrecision = tf32 : tensor<4x32xf32> * tensor<32x64xf32> -> tensor<4x64xf32>\n"
        "%c = tt.dot %x, %y, %z : tensor<4x32xi8> * tensor<32x64xi8> -> tensor<4x64xi32>\n"
        "%d = tt.dot_scaled %x scale %s, %y, %z lhs = e2m1 rhs = e4m3 {fastMath = false} : tensor<1x2xi8>\n"
    )
    assert asked_dots(ttir) == {"f16": 1, "f32 tf32": 1, "i8": 1, "scaled e2m1*e4m3": 1}


@pytest.mark.parametrize(
    ("target", "kind", "taken"),
    [
        ("gfx1100", "f16", True),
        ("gfx1100", "f32", False),
        ("gfx942", "f32", True),
        ("gfx942", "f32 tf32", True),
        ("gfx1201", "f8E4M3FN", True),
        ("gfx90a", "f8E4M3FN", False),
        ("gfx1100", "scaled e2m1", True),
        ("gfx906", "f16", False),
        ("gfx1010", "scaled e2m1", False),
        ("sm90", "f32", False),
        ("sm90", "bf16", True),
    ],
)
def test_what_a_matrix_unit_takes(target: str, kind: str, taken: bool) -> None:
    assert takes(targets.by_name(target), kind) is taken


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"vgpr_spills": 3}, "spill"),
        ({"sgpr_spills": 1}, "spill"),
        ({"scratch_bytes": 4}, "scratch"),
        ({"lds_bytes": 65537}, "lds"),
        ({"matrix": {}}, "no-matrix"),
        ({"matrix": {"v_mfma_f32_32x32x4_xf32": 1}}, "xf32"),
        ({"asked": {"f32 tf32": 1}}, "xf32"),
        ({}, None),
        ({"matrix": {}, "asked": {"f32": 1}}, None),
    ],
    ids=str,
)
def test_each_check(changes: dict[str, Any], check: str | None) -> None:
    found = [finding.check for finding in judge(_changed(**changes), targets.by_name("gfx1100"))]
    assert found == ([check] if check else [])


@pytest.mark.parametrize(
    ("target", "wave_size", "vgprs", "sgprs", "expected"),
    [
        ("gfx942", 64, 60, 106, 6),
        ("gfx942", 64, 148, 91, 3),
        ("gfx906", 64, 11, 83, 7),
        ("gfx906", 64, 27, 30, 9),
        ("gfx1010", 32, 256, 22, 4),
        ("gfx1010", 32, 48, 48, 20),
        ("gfx1100", 32, 95, 24, 16),
        ("gfx1030", 32, 75, 24, 12),
        ("gfx1030", 32, 1, 24, 16),
    ],
)
def test_occupancy_by_registers_is_as_llvm_says(
    target: str, wave_size: int, vgprs: int, sgprs: int, expected: int
) -> None:
    assert register_occupancy(target, wave_size=wave_size, vgprs=vgprs, sgprs=sgprs) == expected


@pytest.mark.parametrize(
    ("target", "waves", "lds_bytes", "expected"),
    [
        ("gfx942", 4, 32768, 2),
        ("gfx1100", 4, 65536, 2),
        ("gfx1100", 1, 65536, 1),
        ("gfx950", 4, 65536, 2),
        ("gfx906", 2, 0, 8),  # 16 barriers a CU
        ("gfx1010", 2, 0, 16),  # 32 a work-group processor
        ("gfx1100", 4, 0, 16),
    ],
)
def test_whole_workgroups_fit_or_do_not(target: str, waves: int, lds_bytes: int, expected: int) -> None:
    most = {"gfx906": 10, "gfx1010": 20, "gfx1100": 16}.get(target, 8)
    assert occupancy(target, most, waves=waves, lds_bytes=lds_bytes) == expected


def test_constants_travel_as_json() -> None:
    for value in (1, 2.5, True, "ieee", None, (1, ("a", False)), math.inf):
        assert decode(msgspec.json.decode(msgspec.json.encode(encode(value)))) == value
    with pytest.raises(TypeError, match="cannot be handed to another process"):
        encode(object())


def test_what_decides_the_code_decides_the_key() -> None:
    spec = dot("gfx1100", "3.9.0")
    assert spec.key == dot("gfx1100", "3.9.0").key
    assert spec.key != msgspec.structs.replace(spec, source="other").key
    assert spec.identity == msgspec.structs.replace(spec, source="other", triton="3.8.0", case="other").identity
    assert spec.identity == msgspec.structs.replace(spec, kernel=f"moved:{spec.kernel_name}").identity
    others = [dot("gfx1151", "3.9.0"), dot("gfx1100", "3.8.0"), dot("gfx1100", "3.9.0", size=32)]
    assert len({spec.key, *(other.key for other in others)}) == 4


def test_a_result_is_found_again_and_damage_is_no_result(tmp_path: Path) -> None:
    cache, spec = Cache(tmp_path), dot("gfx1100", "3.9.0")
    assert cache.find(spec) is None
    cache.keep(spec, Result(MEASURED))
    assert cache.find(spec) == Result(MEASURED)
    for path in tmp_path.rglob("*.json"):
        path.write_text("{")
    assert cache.find(spec) is None


def test_the_table_comes_back_as_written(tmp_path: Path) -> None:
    rows = (_row(), _row(identity="def", measured=None, findings=(Finding("error", "why"),)))
    write_table(tmp_path / "table.json", rows)
    assert read_table(tmp_path / "table.json") == rows
    assert len((tmp_path / "table.json").read_text().splitlines()) == 4
    (tmp_path / "table.json").write_text("[]")
    with pytest.raises(DataError):
        read_table(tmp_path / "table.json")


def test_rows_of_some_ops_and_targets_are_replaced() -> None:
    kept = [_row(op=op, target=target) for op in ("a", "b") for target in ("gfx1100", "gfx942")]
    new = _row(op="b", target="gfx1100", identity="new")
    assert merged(kept, [new], ["b"], ["gfx1100"]) == [*kept[:2], new, kept[3]]
    assert merged(kept, [], ["a"], ["gfx1100", "gfx942"]) == kept[2:]


def test_differences() -> None:
    kept = [_row(), _row(identity="gone"), _row(target="gfx942", identity="other")]
    made = [_row(measured=_changed(vgprs=72), case="renamed"), _row(identity="new")]
    found = {(one.change, one.target) for one in differences(kept, made, whole=True)}
    assert found == {("vgprs 64 → 72", "gfx1100"), ("new", "gfx1100"), ("gone", "gfx1100")}
    assert [one.change for one in differences(kept, [_row(triton="3.8.0")], whole=False)] == ["triton 3.9.0 → 3.8.0"]
    assert [one.change for one in differences(kept, [_row(measured=None)], whole=False)] == ["no longer compiles"]
    assert differences(kept, [_row(case="renamed")], whole=False) == []
    # Two compilations of one source may differ by an instruction.
    assert differences(kept, [_row(measured=_changed(code_bytes=1980))], whole=False) == []
    longer = differences(kept, [_row(measured=_changed(code_bytes=2024))], whole=False)
    assert [one.change for one in longer] == ["code_bytes 2000 → 2024"]


def test_each_target_gets_a_triton_that_serves_it(tmp_path: Path) -> None:
    installed, older = Toolchain("3.9.0"), Toolchain("3.7.0", tmp_path)
    oldest = Toolchain("3.6.0", tmp_path)
    for target in ("gfx1100", "gfx906", "gfx942", "sm90"):
        assert choose_toolchain(target, [oldest, older, installed]) == installed
    assert choose_toolchain("gfx1010", [oldest, installed, older]) == older
    assert choose_toolchain("gfx1030", [installed]) is None
    assert choose_toolchain("gfx906", [older]) is None


def test_tritons_are_found_where_they_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (tmp_path / "a", tmp_path / "b"):
        (folder / "triton").mkdir(parents=True)
        (folder / "triton" / "__init__.py").touch()
    monkeypatch.setenv(toolchains.ALTERNATIVES_VARIABLE, f"3.8.0={tmp_path / 'b'}")
    found = {one.version: one.path for one in available([f"3.7.0={tmp_path / 'a'}"])}
    assert found["3.7.0"] == tmp_path / "a"
    assert found["3.8.0"] == tmp_path / "b"
    for wrong in ("3.7.0", "latest=/tmp", f"3.7.0={tmp_path}"):
        with pytest.raises(UsageError):
            available([wrong])


def test_records_that_are_hidden_or_that_nothing_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, narrow, other, older = (Config({"num_warps": warps}) for warps in (4, 2, 8, 1))
    own = (
        Record("dot", "*", "any", "", wide),
        Record("dot", "*", "gfx11", "", narrow),
        Record("dot", "small", "gfx942", "", other),
        Record("dot", "*", "any", "<3.8", older),
    )
    monkeypatch.setattr(lookup, "records", lambda _op: own)
    for module in ("rocmend.kernels.compiled.names", "rocmend.kernels.compiled.run"):
        monkeypatch.setattr(f"{module}.records", lambda _op: own)
    asked = Asked("op", "dot", "large", narrow)
    gfx1100 = targets.by_name("gfx1100")
    assert hidden_records(asked, gfx1100, "3.9.0") == [own[0]]
    assert hidden_records(asked, gfx1100, "3.7.0") == [own[0], own[3]]
    used = {name_of("op", own[1])}
    assert unused_records("op", used, ["gfx1100"]) == ["op/dot/*@any"]
    assert unused_records("op", used, ["gfx1100", "gfx942"]) == ["op/dot/*@any", "op/dot/small@gfx942"]


@pytest.mark.slow
@pytest.mark.cpu
def test_a_record_that_only_another_op_looks_up_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    both = [registry.get(name) for name in ("quantized_matmul", "quantized_projections")]
    monkeypatch.setattr(registry, "ops", lambda: iter(both))
    monkeypatch.setattr(run, "DEFAULT_TARGETS", ("gfx1151",))
    monkeypatch.setattr(run, "_ordered", lambda *_: [])  # recorded, and not compiled
    selection = Selection(("quantized_matmul",), ("gfx1151",), tuple(available(())), jobs=1)
    found = run.compile_ops(selection, cache=Cache(tmp_path)).problems
    assert [problem for problem in found if "gated" in problem.subject] == []


def test_what_only_the_interpreter_looks_up_is_used() -> None:
    pytest.importorskip("triton")
    from rocmend.kernels.compiled.record import record_op

    used = set(record_op("scan", ["gfx1151"]).used)
    everything = {name_of("scan", one) for one in lookup.records("scan")}
    assert {name for name in used if name.endswith("@cpu")} == {name for name in everything if name.endswith("@cpu")}


def test_a_reason_is_short_and_names_no_folder() -> None:
    text = "Error: at 1:2\n  code\n  ^\n more\nValueError: /home/me/src/kernel.py:3:1 is wrong"
    assert _reason(text) == "Error: at 1:2 more ValueError: kernel.py:3:1 is wrong"


def test_a_configuration_is_shown_in_few_signs() -> None:
    text = "BLOCK_M=64 BLOCK_N=128 BLOCK_K=32 num_warps=4 num_stages=2 waves_per_eu=0 least_blocks=4"
    assert short_config(text) == "64x128x32 w4 s2 e0 least_blocks=4"
    assert short_config("num_warps=1") == "w1"


@pytest.mark.parametrize(("subset", "kept"), [("all", "abc"), ("table", "acd"), ("fast", "a")])
def test_a_subset_takes_the_first_of_those_that_are_alike(subset: str, kept: str) -> None:
    kinds = {"a": ("*fp16", "one"), "b": ("*bf16", "one"), "c": ("*fp32", "one"), "d": ("*fp16", "two")}
    specs = [
        msgspec.structs.replace(sample("copy_kernel", "gfx1100", {"x": kind}, "3.9.0"), case=case, record=record)
        for case, (kind, record) in kinds.items()
    ]
    assert "".join(spec.case for spec in _chosen(specs, subset)) == kept


def test_progress_counts_what_two_ops_share_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Quick:
        def __init__(self, *_: Any) -> None: ...

        def __class_getitem__(cls, _: Any) -> type[Quick]:
            return cls

        def map(self, tasks: Any, done: Any) -> None:
            for spec, *_ in tasks:
                done(spec, {"error": "no"})

    monkeypatch.setattr("rocmend.kernels.compiled.run.Pool", Quick)
    one, other = (sample("copy_kernel", "gfx1100", {"x": kind}, "3.9.0") for kind in ("*fp16", "*fp32"))
    said: list[str] = []
    selection = Selection(("sample",), ("gfx1100",), (Toolchain("3.9.0"),))
    _compile(selection, [one, other, one, one], Cache(tmp_path), said.append)
    assert [text.partition(":")[0] for text in said] == ["compiled 1 of 2", "compiled 2 of 2"]


def _quantized(record: str, bits: int, group_size: int) -> Spec:
    signature = {"x": "*bf16"}
    spec = sample("tiles_kernel", "gfx1100", signature, "3.9.0", MODE="affine", BITS=bits, GROUP=group_size)
    case = f"{record}-b{bits}g{group_size}"
    return msgspec.structs.replace(spec, op="quantized_matmul", case=case, record=record)


def test_the_table_shows_each_group_size_with_each_record_and_each_format() -> None:
    specs = [_quantized(record, bits, size) for record in ("m1", "m8") for bits in (2, 4, 8) for size in (32, 64, 128)]
    kept = _chosen(specs, "table")
    shown = {(spec.record, spec.constant("GROUP")) for spec in kept}
    assert shown == {(spec.record, spec.constant("GROUP")) for spec in specs}
    assert {spec.constant("BITS") for spec in kept} == {2, 4, 8}
    assert len(kept) == len(shown)
    (fast,) = _chosen(specs, "fast")
    assert fast.constant("GROUP") == 128  # takes the most registers
    assert fast in kept  # what is compiled for a comparison is in the table


def test_the_overview_tells_how_many_are_right() -> None:
    text = overview(read_table(Path(__file__).parents[3] / "docs" / "reference" / "kernels-compiled.json"))
    head, _, first, *_ = text.splitlines()
    assert head.startswith("| op | kernel | gfx")
    assert first.count("|") == head.count("|")
