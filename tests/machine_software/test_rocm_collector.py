"""Finding ROCm wherever it was put."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rocmend.core.supervise import CommandResult, Ending
from rocmend.machine.facts import FactSink
from rocmend.machine.root import Root

MakeRoot = Callable[..., Any]
Collect = Callable[[str, Root], FactSink]


def hip(version: str) -> str:
    major, minor, patch = version.split(".")
    return f"HIP_VERSION_MAJOR={major}\nHIP_VERSION_MINOR={minor}\nHIP_VERSION_PATCH={patch}\n"


def dpkg(**packages: str) -> str:
    return "\n".join(
        f"Package: {name.replace('_', '-')}\nStatus: install ok installed\nVersion: {version}\n"
        for name, version in packages.items()
    )


OPT = {
    "/opt/rocm-7.2.0/.info/version": "7.2.0-43\n",
    "/opt/rocm-7.2.0/share/hip/version": hip("7.2.26015"),
    "/opt/rocm-7.2.0/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat": "",
    "/opt/rocm-7.2.0/lib/rocblas/library/TensileLibrary_lazy_gfx1151.dat": "",
    "/opt/rocm-7.2.0/lib/hipblaslt/library/gfx1151/x.co": "",
}


def test_packages_under_opt(fake_root: MakeRoot, collect: Collect) -> None:
    files = OPT | {"/var/lib/dpkg/status": dpkg(rocm_core="7.2.0.70200-43~24.04", vim="9")}
    sink = collect(
        "rocm",
        fake_root(files, links={"/opt/rocm": "/etc/alternatives/rocm", "/etc/alternatives/rocm": "/opt/rocm-7.2.0"}),
    )
    facts = {key: fact.value for key, fact in sink.facts.items()}
    assert facts["rocm.version"] == "7.2.0"
    assert facts["rocm.path"] == "/opt/rocm-7.2.0"
    assert facts["rocm.kind"] == "package"
    assert facts["rocm.hip_version"] == "7.2.26015"
    assert facts["rocm.gfx_targets"] == ["gfx1100", "gfx1151"]
    assert facts["rocm.installs"][0]["hipblaslt_targets"] == ["gfx1151"]
    assert facts["rocm.count"] == 1
    assert facts["rocm.packages"] == {"rocm-core": "7.2.0.70200-43~24.04"}
    assert sink.facts["rocm.packages"].source == "/var/lib/dpkg/status"
    assert "/opt/rocm-7.2.0" in sink.facts["rocm.version"].source


def test_the_same_folder_by_two_names_counts_once(fake_root: MakeRoot, collect: Collect) -> None:
    root = fake_root(OPT, links={"/opt/rocm": "rocm-7.2.0"}, env={"ROCM_PATH": "/opt/rocm/", "PATH": "/opt/rocm/bin"})
    facts = collect("rocm", root).facts
    assert facts["rocm.count"].value == 1
    assert facts["rocm.kind"].value == "opt"
    assert facts["rocm.installs"].value[0]["named_by"] == "ROCM_PATH"


def test_rocm_path_decides_between_two(fake_root: MakeRoot, collect: Collect) -> None:
    files = OPT | {
        "/home/u/therock/rocm-7.14/.info/version": "7.14.0",
        "/home/u/therock/rocm-7.14/share/therock/therock_manifest.json": "{}",
        "/home/u/therock/rocm-7.14/share/hip/version": hip("7.14.60850"),
        "/home/u/therock/notes.txt": "",
    }
    env = {"HOME": "/home/u", "ROCM_PATH": "/home/u/therock/rocm-7.14"}
    facts = collect("rocm", fake_root(files, links={"/opt/rocm": "rocm-7.2.0"}, env=env)).facts
    assert (facts["rocm.version"].value, facts["rocm.kind"].value) == ("7.14.0", "therock-tarball")
    assert facts["rocm.versions"].value == ["7.14.0", "7.2.0"]
    unset = collect("rocm", fake_root(files, links={"/opt/rocm": "rocm-7.2.0"}, env={"HOME": "/home/u"})).facts
    assert unset["rocm.version"].value == "7.2.0"
    assert [install["named_by"] for install in unset["rocm.installs"].value] == ["/opt/rocm", "home folder"]


def test_therock_packages_install_below_opt_rocm(fake_root: MakeRoot, collect: Collect) -> None:
    files = {
        "/opt/rocm/core-7.14/.info/version": "7.14.0",
        "/opt/rocm/core-7.14/share/therock/dist_info.json": "{}",
        "/var/lib/dpkg/status": dpkg(**{"amdrocm_core_sdk7.14_gfx1151": "7.14.0-1"}),
    }
    facts = collect("rocm", fake_root(files)).facts
    assert facts["rocm.path"].value == "/opt/rocm/core-7.14"
    assert (facts["rocm.version"].value, facts["rocm.kind"].value) == ("7.14.0", "package")


def test_the_distributions_own(fake_root: MakeRoot, collect: Collect) -> None:
    files = {
        "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5": "",
        "/usr/share/hip/version": hip("5.7.31921"),
        "/usr/lib/x86_64-linux-gnu/rocblas/4.0.0/library/Kernels.so-000-gfx1030.hsaco": "",
        "/var/lib/dpkg/status": dpkg(libamdhip64_5="5.7.1-5"),
    }
    facts = collect("rocm", fake_root(files)).facts
    assert (facts["rocm.version"].value, facts["rocm.kind"].value, facts["rocm.path"].value) == (
        "5.7",
        "distro",
        "/usr",
    )
    assert facts["rocm.gfx_targets"].value == ["gfx1030"]


def test_fedora_asks_rpm(fake_root: MakeRoot, collect: Collect) -> None:
    argv = ("rpm", "-qa", "--qf", r"%{NAME} %{VERSION}-%{RELEASE}\n")
    result = CommandResult(argv, Ending.EXITED, exit_code=0, stdout="rocm-hip 6.3.1-4.fc42\nbash 5.2-1.fc42\n")
    files = {"/usr/lib64/libamdhip64.so.6": "", "/usr/lib/sysimage/rpm/rpmdb.sqlite": ""}
    facts = collect("rocm", fake_root(files, commands={argv: result})).facts
    assert facts["rocm.packages"].value == {"rocm-hip": "6.3.1-4.fc42"}
    assert facts["rocm.version"].value == "6.3.1"


def test_wheels(fake_root: MakeRoot, collect: Collect) -> None:
    site = "/v/lib/python3.12/site-packages"
    files = {
        "/v/pyvenv.cfg": "home = /usr/bin\nversion = 3.12.1\n",
        f"{site}/rocm_sdk_core-7.11.0.dist-info/METADATA": "",
        f"{site}/_rocm_sdk_core/share/hip/version": hip("7.2.53150"),
        f"{site}/_rocm_sdk_libraries_gfx115X_all/lib/rocblas/library/Tensile_gfx1151.dat": "",
        f"{site}/_rocm_sdk_libraries/.kpack/blas_lib_gfx1150.kpack": "",
        f"{site}/_rocm_sdk_libraries/.kpack/fft_lib_gfx1152.kpack": "",
    }
    facts = collect("rocm", fake_root(files, env={"VIRTUAL_ENV": "/v"})).facts
    (install,) = facts["rocm.installs"].value
    assert (install["kind"], install["version"], install["hip_version"]) == ("wheel", "7.11.0", "7.2.53150")
    assert install["gfx_targets"] == ["gfx1150", "gfx1151"]
    assert facts["rocm.count"].value == 0
    assert facts["rocm.version"].value == "7.11.0"


def test_none(fake_root: MakeRoot, collect: Collect) -> None:
    facts = collect("rocm", fake_root({"/etc/hostname": "x"})).facts
    assert facts["rocm.installs"].value == []
    for key in ("rocm.version", "rocm.path", "rocm.kind", "rocm.hip_version", "rocm.gfx_targets"):
        assert facts[key].value is None
    assert facts["rocm.packages"].value == {}


def test_an_unrelated_folder_under_opt_is_not_rocm(fake_root: MakeRoot, collect: Collect) -> None:
    facts = collect("rocm", fake_root({"/opt/rocm-notes/readme": "", "/opt/rocm/lib/libfoo.so": ""})).facts
    assert facts["rocm.count"].value == 0


def test_a_capture_keeps_summaries_instead_of_files(fake_root: MakeRoot, collect: Collect) -> None:
    measurements = {
        ("packages", "/var/lib/dpkg/status"): {"rocm-core": "7.2.0", "broken": 3},
        ("gfx-names", "/opt/rocm-7.2.0/lib/rocblas/library"): ["gfx906", None],
    }
    root = fake_root(OPT | {"/var/lib/dpkg/status": ""}, links={"/opt/rocm": "rocm-7.2.0"}, measurements=measurements)
    facts = collect("rocm", root).facts
    assert facts["rocm.packages"].value == {"rocm-core": "7.2.0"}
    assert facts["rocm.gfx_targets"].value == ["gfx906"]


@pytest.mark.parametrize("content", ["", "\x00\xff", "not a version", "9" * 5000])
def test_a_damaged_version_file_is_not_a_crash(content: str, fake_root: MakeRoot, collect: Collect) -> None:
    facts = collect(
        "rocm", fake_root({"/opt/rocm/.info/version": content, "/opt/rocm/share/hip/version": content})
    ).facts
    assert facts["rocm.version"].value is None
