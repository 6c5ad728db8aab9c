"""Parsers of version files, metadata and package databases."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rocmend.machine.parse.assignments import parse_assignments
from rocmend.machine.parse.distributions import normalise, parse_direct_url, parse_folder, parse_metadata
from rocmend.machine.parse.environment import is_fact, is_kept
from rocmend.machine.parse.frameworks import choose, rocm_of_name
from rocmend.machine.parse.gfx_names import target_order, targets_in
from rocmend.machine.parse.packages import (
    parse_dpkg_status,
    parse_pacman_folders,
    parse_rpm_list,
    upstream_version,
    wanted,
)
from rocmend.machine.parse.pyvenv import parse_pyvenv
from rocmend.machine.parse.rocm import (
    cuda_of_tag,
    local_tag,
    parse_hip_version,
    parse_info_version,
    parse_therock_manifest,
    rocm_of_hip,
    rocm_of_tag,
)


def test_assignments_reads_constants_and_nothing_else() -> None:
    text = (
        "from typing import Optional\r\n"
        "__version__ = '2.9.1+rocm6.4'\r\n"
        "debug = False\n"
        "cuda: Optional[str] = None  # not this one\n"
        'hip: Optional[str] = "6.4.43484-123eb5128"\n'
        "count = -3\n"
        "evil = __import__('os').system('true')\n"
        "    indented = 'no'\n"
        "debug = True\n"
    )
    assert parse_assignments(text) == {
        "__version__": "2.9.1+rocm6.4",
        "debug": True,
        "cuda": None,
        "hip": "6.4.43484-123eb5128",
        "count": -3,
    }


def test_metadata_folders() -> None:
    assert parse_folder("rocm_sdk_core-7.11.0a20260106.dist-info") == ("rocm-sdk-core", "7.11.0a20260106")
    assert parse_folder("torch-2.9.1+rocm6.4.dist-info") == ("torch", "2.9.1+rocm6.4")
    assert parse_folder("Flash_Attn-2.8.3-py3.12.egg-info") == ("flash-attn", "2.8.3")
    assert parse_folder("cupy_rocm_7_0-14.0.1.dist-info") == ("cupy-rocm-7-0", "14.0.1")
    assert parse_folder("torch") is None
    assert parse_folder("__pycache__") is None
    assert normalise("jax_ROCM7.plugin") == "jax-rocm7-plugin"


def test_metadata_headers_end_at_the_description() -> None:
    text = (
        "Metadata-Version: 2.1\nName: Torch\nVersion: 2.9.1\nRequires-Dist: filelock\n"
        "Requires-Dist: pytorch-triton-rocm (==3.5.1) ; platform_system == 'Linux'\n\nName: not-this\n"
        "Requires-Dist: nor-this\n"
    )
    metadata = parse_metadata(text)
    assert (metadata.name, metadata.version) == ("torch", "2.9.1")
    assert metadata.requires == ("filelock", "pytorch-triton-rocm")


def test_direct_url_loses_credentials_and_query() -> None:
    text = '{"url": "https://me:hunter2@repo.example/w/torch.whl?sig=abc#sha256=0", "archive_info": {}}'
    assert parse_direct_url(text) == "https://repo.example/w/torch.whl"
    assert parse_direct_url("[]") is None
    assert parse_direct_url('{"url": 3}') is None
    assert parse_direct_url("{" * 5000) is None


def test_pyvenv() -> None:
    config = parse_pyvenv("home = /usr/bin\ninclude-system-site-packages = TRUE\nversion = 3.12.3\njunk\n")
    assert (config.home, config.system_site, config.version) == ("/usr/bin", True, "3.12.3")
    assert parse_pyvenv("home=/x\nversion_info = 3.13.1.final.0\n").version == "3.13.1"


def test_version_files() -> None:
    assert parse_info_version("6.2.4-125\n") == "6.2.4"
    assert parse_info_version("7.14.0a20260701") == "7.14.0a20260701"
    assert parse_info_version("soon") is None
    hip = "# made by cmake\nHIP_VERSION_MAJOR=6\nHIP_VERSION_MINOR=2\nHIP_VERSION_PATCH=41134-65d174c3e\n"
    assert parse_hip_version(hip) == "6.2.41134"
    assert parse_hip_version(hip + "HIP_VERSION_GITHASH=65d174c3e\n") == "6.2.41134-65d174c3e"
    assert parse_hip_version("HIP_VERSION_MAJOR=6\n") is None
    assert parse_hip_version(hip.replace("=2\n", "=²\n")) is None
    assert parse_therock_manifest('{"rocm_version": "7.14.0"}') == "7.14.0"
    assert parse_therock_manifest('{"rocm_version": 7}') is None
    assert rocm_of_hip("6.2.41133-dd7f95766") == "6.2"
    assert rocm_of_hip("unknown") is None


def test_local_tags() -> None:
    assert local_tag("2.5.1+rocm6.2") == "rocm6.2"
    assert rocm_of_tag("rocm6.2") == "6.2"
    assert rocm_of_tag("rocm7.11.0a20260106") == "7.11.0a20260106"
    assert rocm_of_tag("rocm6.4.1.git1ded221d") == "6.4.1"
    assert rocm_of_tag("rocm10.0.0") == "10.0.0"
    assert rocm_of_tag("rocmsdk20250609") is None
    assert rocm_of_tag("cpu") is None
    assert cuda_of_tag("cu126") == "12.6"
    assert cuda_of_tag("cu118") == "11.8"
    assert cuda_of_tag("rocm6.2") is None


def test_targets_in_names() -> None:
    names = [
        "TensileLibrary_Type_HH_Contraction_gfx1100.dat",
        "Kernels.so-000-gfx90a-xnack+.hsaco",
        "Kernels.so-000-gfx1010.hsaco",
        "TensileManifest_gfx000.txt",
        "blas_lib_gfx11-generic.kpack",
        "rocm-sdk-libraries-gfx110X-all",
        "lib_gfx9-4-generic.co",
        "gfx1151",
    ]
    found = targets_in(names)
    assert found == ["gfx9-4-generic", "gfx90a", "gfx1010", "gfx11-generic", "gfx1100", "gfx1151"]
    assert sorted(found, key=target_order) == found


def test_dpkg_status() -> None:
    status = (
        b"Package: rocm-core\nStatus: install ok installed\nArchitecture: amd64\nVersion: 7.2.0.70200-43~24.04\n\n"
        b"Package: rocblas\nStatus: deinstall ok config-files\nVersion: 4.2\n\n"
        b"Package: vim\nStatus: install ok installed\nVersion: 9\n\n"
        b"Package: mesa-vulkan-drivers\nStatus: install ok installed\nVersion: 1:25.0.7-0ubuntu0.24.04.2"
    )
    assert parse_dpkg_status(status) == {
        "rocm-core": "7.2.0.70200-43~24.04",
        "mesa-vulkan-drivers": "1:25.0.7-0ubuntu0.24.04.2",
    }
    assert upstream_version("1:25.0.7-0ubuntu0.24.04.2") == "25.0.7"
    assert upstream_version("20250917.git-0ubuntu1") == "20250917"


def test_pacman_and_rpm() -> None:
    assert parse_pacman_folders(["rocm-core-6.4.1-1", "zlib-1:1.3-2", "ALPM_DB_VERSION", "mesa-1:25.1.4-1"]) == {
        "rocm-core": "6.4.1-1",
        "mesa": "1:25.1.4-1",
    }
    assert parse_rpm_list("rocm-hip 6.3.1-4.fc42\nbash 5.2-1\nbroken\n") == {"rocm-hip": "6.3.1-4.fc42"}
    assert wanted("amdrocm-core7.14-gfx1151")
    assert not wanted("libreoffice")


def test_environment_names() -> None:
    assert is_fact("HSA_OVERRIDE_GFX_VERSION")
    assert is_fact("HSA_OVERRIDE_GFX_VERSION_1")
    assert is_fact("TORCHINDUCTOR_MAX_AUTOTUNE")
    assert not is_fact("PATH")
    assert not is_fact("TF_CLI_CONFIG_FILE")
    assert is_kept("PATH")
    for secret in ("VLLM_API_KEY", "HF_TOKEN", "TORCH_HUB_AUTH", "OLLAMA_PASSWORD", "LLAMA_CLIENT_SECRET"):
        assert not is_fact(secret)
        assert not is_kept(secret)
    assert not is_fact("BASH_FUNC_x%%")
    assert not is_kept("AWS_REGION")


def test_frameworks_by_distribution() -> None:
    assert rocm_of_name("cupy-rocm-7-0") == "7.0"
    assert rocm_of_name("jax-rocm60-plugin") == "6.0"
    assert rocm_of_name("jax-rocm10-pjrt") == "10"
    build = choose({"jax": "0.8.0", "jaxlib": "0.8.0", "jax-rocm7-plugin": "0.8.0"}, ["jax"], r"jax-rocm\d+-plugin")
    assert build is not None
    assert (build.backend, build.rocm_version, build.version) == ("rocm", "7", "0.8.0")
    plain = choose({"jax": "0.8.0"}, ["jax"], r"jax-rocm\d+-plugin")
    assert plain is not None
    assert plain.backend == "cpu"
    both = choose({"onnxruntime": "1.23.0", "onnxruntime-rocm": "1.22.2"}, [r"onnxruntime(-rocm)?"])
    assert both is not None
    assert (both.distribution, both.others) == ("onnxruntime-rocm", ("onnxruntime",))
    assert choose({"numpy": "2"}, ["jax"]) is None


@given(st.text(max_size=400))
def test_text_parsers_are_total(text: str) -> None:
    parse_assignments(text)
    parse_metadata(text)
    parse_direct_url(text)
    parse_pyvenv(text)
    parse_folder(text)
    parse_info_version(text)
    parse_hip_version(text)
    parse_therock_manifest(text)
    parse_rpm_list(text)
    targets_in([text])
    rocm_of_tag(text)
    cuda_of_tag(text)
    rocm_of_hip(text)
    rocm_of_name(text)
    is_kept(text)


@given(st.lists(st.from_regex(r"gfx[0-9a-fX-]{2,6}(generic)?", fullmatch=True), max_size=6))
def test_every_found_target_can_be_ordered(names: list[str]) -> None:
    assert sorted(targets_in(names), key=target_order) == targets_in(names)


@given(st.binary(max_size=600))
def test_dpkg_parser_is_total(data: bytes) -> None:
    for version in parse_dpkg_status(b"Package: rocm-core\nStatus: install ok installed\n" + data).values():
        assert isinstance(version, str)
