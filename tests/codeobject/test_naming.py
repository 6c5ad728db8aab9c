from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.codeobject.naming import Named, by_path, database_target, expand, library_component, target_in, variant


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (
            "torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat",
            Named("rocBLAS kernels", "tensile", "gfx1100"),
        ),
        (
            "torch/lib/rocblas/library/Kernels.so-000-gfx90a-xnack+.hsaco",
            Named("rocBLAS kernels", "tensile", "gfx90a:xnack+"),
        ),
        (
            "rocblas/library/TensileLibrary_Type_HH_HPA_Contraction_l_Ailk_Bljk_Cijk_Dijk_fallback_gfx1151.hsaco",
            Named("rocBLAS kernels", "tensile", "gfx1151"),
        ),
        (
            "lib/hipblaslt/library/TensileLibrary_SS_SS_HA_Bias_Contraction_l_Alik_Bljk_Cijk_Dijk_gfx942.co",
            Named("hipBLASLt kernels", "tensile", "gfx942"),
        ),
        ("lib/hipblaslt/library/hipblasltTransform.hsaco", Named("hipBLASLt kernels", "tensile", "")),
        ("hipsparselt/library/Kernels.so-000-gfx950.hsaco", Named("hipSPARSELt kernels", "tensile", "gfx950")),
        ("Kernels.so-000-gfx11-generic.hsaco", Named("Tensile kernels", "tensile", "gfx11-generic")),
        ("torch/share/miopen/db/gfx1100_60.HIP.fdb.txt", Named("MIOpen database", "miopen-db", "gfx1100")),
        ("torch/share/miopen/db/miopen.db", Named("MIOpen database", "miopen-db", "")),
        ("gfx1030_36.kdb", Named("MIOpen database", "miopen-db", "gfx1030")),
        (
            "torch/lib/aotriton.images/amd-gfx90a/flash/attn_fwd/image.aks2",
            Named("AOTriton", "aotriton-image", "gfx90a"),
        ),
        ("aotriton.images/amd-gfx11xx/flash/attn_fwd.zip", Named("AOTriton", "aotriton-image", "gfx11xx")),
        ("aiter_meta/hsa/gfx942/fmha/fwd.co", Named("AITER", "kernel-file", "gfx942")),
        ("kernels/rope_gfx1201.hsaco", Named("kernel files", "kernel-file", "gfx1201")),
        ("torch/lib/libtorch_hip.so", None),
        ("torch/lib/rocblas/library/README.txt", None),
        ("", None),
    ],
)
def test_paths(path: str, expected: Named | None) -> None:
    assert by_path(path) == expected


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("gfx90878.HIP.fdb.txt", "gfx908"),
        ("gfx90a68.HIP.fdb.txt", "gfx90a"),
        ("gfx90a6e.db.txt", "gfx90a"),
        ("gfx942130.HIP.fdb.txt", "gfx942"),
        ("gfx906_60.kdb", "gfx906"),
        ("gfx1100_48.HIP.fdb.txt", "gfx1100"),
        ("gfx1030_36.db.txt", "gfx1030"),
        ("gfx908.tn.model", "gfx908"),
        ("gfx908_metadata.tn.model", "gfx908"),
        ("gfxdeadbeefcafe.kdb", ""),
        ("miopen.udb.txt", ""),
    ],
)
def test_databases_run_on_into_a_count_of_compute_units(name: str, target: str) -> None:
    assert database_target(name) == target


def test_patterns_stand_for_every_target_they_match() -> None:
    assert expand("gfx120x") == ("gfx1200", "gfx1201")
    assert {"gfx1100", "gfx1151"} <= set(expand("gfx11xx"))
    assert "gfx1201" not in expand("gfx11xx")
    assert expand("gfx942") == ("gfx942",)


@pytest.mark.parametrize(
    ("path", "component"),
    [
        ("torch/lib/libtorch_hip.so", "PyTorch"),
        ("torch/lib/libc10_hip.so", "PyTorch"),
        ("lib/librocblas.so.5.1.70200", "rocBLAS"),
        ("lib/libhipblaslt.so.1", "hipBLASLt"),
        ("lib/libMIOpen.so.1.0", "MIOpen"),
        ("lib/librccl.so.1", "RCCL"),
        ("bin/rocblas.dll", "rocBLAS"),
        ("bitsandbytes/libbitsandbytes_rocm72.so", None),
        ("notes/torch.txt", None),
    ],
)
def test_libraries(path: str, component: str | None) -> None:
    assert library_component(path) == component


@pytest.mark.parametrize(
    ("path", "version"),
    [("b/libbitsandbytes_rocm64.so", "6.4"), ("b/libbitsandbytes_rocm714.so", "7.14"), ("b/lib_cuda128.so", "")],
)
def test_variants(path: str, version: str) -> None:
    assert variant(path) == version


@given(st.text(max_size=200))
def test_any_name_is_a_name(text: str) -> None:
    by_path(text)
    target_in(text)
    database_target(text)
    expand(text)
    variant(text)
