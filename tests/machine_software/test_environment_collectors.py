"""The environment, the package list and the other frameworks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rocmend.machine.facts import FactSink
from rocmend.machine.root import Root

MakeRoot = Callable[..., Any]
Collect = Callable[[str, Root], FactSink]

SITE = "/v/lib/python3.12/site-packages"
BASE = {"/v/pyvenv.cfg": "home = /usr/bin\nversion = 3.12.1\n"}
ENV = {"VIRTUAL_ENV": "/v"}


def installed(*folders: str, **files: str) -> dict[str, str]:
    return BASE | {f"{SITE}/{name}.dist-info/METADATA": "" for name in folders} | files


def test_environment_keeps_what_matters_and_no_secret(fake_root: MakeRoot, collect: Collect) -> None:
    env = {"HSA_ENABLE_SDMA": "0", "HIP_VISIBLE_DEVICES": "", "VLLM_API_KEY": "sk-1", "PATH": "/bin", "EDITOR": "vi"}
    facts = collect("environment", fake_root({}, env=env)).facts
    assert facts["env.HSA_ENABLE_SDMA"].value == "0"
    assert facts["env.HIP_VISIBLE_DEVICES"].value == ""
    assert facts["env.collected"].value is True
    assert set(facts) == {"env.HSA_ENABLE_SDMA", "env.HIP_VISIBLE_DEVICES", "env.collected"}
    assert not any("sk-1" in str(fact) for fact in facts.values())


def test_packages_are_the_machine_learning_ones(fake_root: MakeRoot, collect: Collect) -> None:
    files = installed(
        "torch-2.9.1+rocm6.4", "requests-2.32.0", "flash_attn-2.8.3", "numpy-2.3.1", "vllm-0.11.0+rocm700"
    )
    facts = collect("python", fake_root(files, env=ENV)).facts
    assert facts["packages"].value == {
        "flash-attn": "2.8.3",
        "numpy": "2.3.1",
        "torch": "2.9.1+rocm6.4",
        "vllm": "0.11.0+rocm700",
    }
    assert facts["python.kind"].value == "venv"
    assert facts["python.version"].value == "3.12.1"
    assert facts["packages.duplicates"].value == {}


@pytest.mark.parametrize("lib", ["lib", "lib64"])
def test_a_python_that_belongs_to_the_distribution_is_told(fake_root: MakeRoot, collect: Collect, lib: str) -> None:
    files = {"/usr/bin/python3": "", "/usr/bin/python3.12": "", f"/usr/{lib}/python3.12/EXTERNALLY-MANAGED": "[x]"}
    links = {"/usr/bin/python3": "python3.12"}
    root = fake_root(files, env={"PATH": "/usr/bin"}, links=links)
    assert collect("python", root).facts["python.externally_managed"].value is True
    own = fake_root(BASE | files, env=ENV, links=links)
    assert collect("python", own).facts["python.externally_managed"].value is False


def test_a_distribution_installed_twice_is_listed(fake_root: MakeRoot, collect: Collect) -> None:
    facts = collect("python", fake_root(installed("torch-2.13.0", "torch-2.9.1+rocm6.4"), env=ENV)).facts
    assert facts["packages.duplicates"].value == {"torch": ["2.13.0", "2.9.1+rocm6.4"]}


def test_no_python_is_a_gap_and_no_packages(fake_root: MakeRoot, collect: Collect) -> None:
    sink = collect("python", fake_root({}, env={}))
    assert sink.facts["python.found"].value is False
    assert sink.facts["packages"].value == {}
    assert "python.*" in sink.gaps


def test_triton_of_each_kind(fake_root: MakeRoot, collect: Collect) -> None:
    both = {f"{SITE}/triton/backends/{name}/x": "" for name in ("amd", "nvidia", "__pycache__")}
    facts = collect("frameworks", fake_root(installed("triton-3.5.1") | both, env=ENV)).facts
    assert (facts["triton.backend"].value, facts["triton.backends"].value) == ("any", ["amd", "nvidia"])
    rocm = installed("pytorch_triton_rocm-3.5.1", "triton-3.5.1") | both
    facts = collect("frameworks", fake_root(rocm, env=ENV)).facts
    assert (facts["triton.backend"].value, facts["triton.distribution"].value) == ("rocm", "pytorch-triton-rocm")
    assert facts["triton.conflicts"].value == ["triton"]


def test_onnxruntime_says_which_build_lies_there(fake_root: MakeRoot, collect: Collect) -> None:
    info = "package_name = 'onnxruntime-rocm'\n__version__ = '1.22.2'\nrocm_version = '7.0.51831'\n"
    files = installed("onnxruntime_rocm-1.22.2.post1") | {f"{SITE}/onnxruntime/capi/build_and_package_info.py": info}
    facts = collect("frameworks", fake_root(files, env=ENV)).facts
    assert (facts["onnxruntime.backend"].value, facts["onnxruntime.rocm_version"].value) == ("rocm", "7.0")
    plain = installed("onnxruntime-1.23.0") | {
        f"{SITE}/onnxruntime/capi/build_and_package_info.py": "package_name = 'onnxruntime'\n__version__ = '1.23.0'\n"
    }
    assert collect("frameworks", fake_root(plain, env=ENV)).facts["onnxruntime.backend"].value == "cpu"


def test_bitsandbytes_by_its_libraries(fake_root: MakeRoot, collect: Collect) -> None:
    libraries = {
        f"{SITE}/bitsandbytes/libbitsandbytes_{name}.so": ""
        for name in ("cpu", "cuda118", "cuda126", "rocm63", "rocm71")
    }
    facts = collect("frameworks", fake_root(installed("bitsandbytes-0.49.0") | libraries, env=ENV)).facts
    assert facts["bitsandbytes.backend"].value == "any"
    assert facts["bitsandbytes.rocm_version"].value == "7.1"
    assert "rocm63" in facts["bitsandbytes.libraries"].value


@pytest.mark.parametrize(("name", "release"), [("rocm72", "7.2"), ("rocm714", "7.14"), ("rocm715", "10.0")])
def test_bitsandbytes_names_libraries_after_hip(name: str, release: str, fake_root: MakeRoot, collect: Collect) -> None:
    files = installed("bitsandbytes-0.50.2") | {
        f"{SITE}/bitsandbytes/libbitsandbytes_{library}.so": "" for library in ("cpu", "rocm64", name)
    }
    facts = collect("frameworks", fake_root(files, env=ENV)).facts
    assert (facts["bitsandbytes.backend"].value, facts["bitsandbytes.rocm_version"].value) == ("rocm", release)


def test_jax_cupy_vllm_and_mlx(fake_root: MakeRoot, collect: Collect) -> None:
    files = installed(
        *("jax-0.8.0", "jaxlib-0.8.0", "jax_rocm7_plugin-0.8.0", "jax_rocm7_pjrt-0.8.0"),
        *("cupy_rocm_7_0-14.0.1", "vllm-0.11.0+rocm700", "mlx-0.32.4", "mlx_cuda_12-0.32.4", "amd_aiter-0.1.5"),
    )
    facts = {key: fact.value for key, fact in collect("frameworks", fake_root(files, env=ENV)).facts.items()}
    assert (facts["jax.backend"], facts["jax.rocm_version"], facts["jax.version"]) == ("rocm", "7", "0.8.0")
    assert (facts["cupy.backend"], facts["cupy.rocm_version"]) == ("rocm", "7.0")
    assert facts["vllm.backend"] == "rocm"
    assert (facts["mlx.backend"], facts["mlx.distribution"]) == ("cuda", "mlx-cuda-12")
    assert facts["aiter.backend"] == "rocm"
    assert facts["tensorflow.installed"] is False
    assert facts["tensorflow.version"] is None
