"""What ``rocmend wheel choose`` puts first for each GPU, and that nothing is offered which does not serve it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from rocmend.core.gfx import targets
from rocmend.kb.load import Knowledge
from rocmend.machine.facts import Machine
from rocmend.setup.choose import Choice, choose

STABLE_INDEX = "https://stable.repo.amd.com/rocm/whl-next/"
PYTORCH_INDEX = "https://download.pytorch.org/whl/rocm"
PYTORCH_TARGETS = {
    *("gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030"),
    *("gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1200", "gfx1201"),
}
"""What PyTorch's build script compiles its ROCm 7.2 wheels for; nothing else may be told to use them."""
NO_KNOWN_WHEEL = {"gfx90c", "gfx1250"}

Ways = Callable[[str, str], list[Choice]]


@pytest.fixture
def ways(example: Callable[[str], Machine], knowledge: Knowledge) -> Ways:
    """Return the ways that are not known to fail, best first."""

    def get(package: str, target: str) -> list[Choice]:
        choices = choose(example(target), knowledge, package, target).choices
        return [choice for choice in choices if choice.serves is not False]

    return get


@pytest.mark.parametrize(
    "target",
    [
        *("gfx900", "gfx906", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1012", "gfx1030", "gfx1032"),
        *("gfx1036", "gfx1100", "gfx1103", "gfx1150", "gfx1152", "gfx1200", "gfx1201"),
    ],
)
def test_the_first_choice_for_torch_has_code_for_the_target(ways: Ways, target: str) -> None:
    first = ways("torch", target)[0]
    assert first.serves is True
    assert first.channel == "stable"
    assert STABLE_INDEX in first.command
    assert f"torch[device-{target}]" in first.command
    assert first.reason


def test_the_first_choice_for_gfx1151_is_not_the_rocm_whose_convolutions_were_reported_to_fail(ways: Ways) -> None:
    first, *others = ways("torch", "gfx1151")
    assert "torch[device-gfx1151]==2.12.0+rocm7.14.0" in first.command
    assert "rocmend probe --select conv2d-forward" in first.caution
    (newer,) = [choice for choice in others if STABLE_INDEX in choice.command]
    assert "7.14" in newer.caution
    assert "cudnn.enabled = False" in newer.caution
    assert "device-gfx1151]==7.14.0" in ways("rocm", "gfx1151")[0].command  # one environment, one ROCm


def test_gfx1012_is_warned_that_its_first_launch_fails(ways: Ways) -> None:
    assert "first launch fails" in ways("torch", "gfx1012")[0].caution
    assert "first launch" not in ways("torch", "gfx1010")[0].caution


@pytest.mark.parametrize("target", [target.name for target in targets()])
def test_no_caution_speaks_of_another_gpu(ways: Ways, knowledge: Knowledge, target: str) -> None:
    packages = {install.package for entry in knowledge.entries.values() for install in entry.install}
    for package in packages:
        for choice in ways(package, target):
            assert set(re.findall(r"gfx\d\w{2,3}", choice.caution)) <= {target}, choice.entry_id
            assert "RDNA1" not in choice.caution


@pytest.mark.parametrize("target", sorted(NO_KNOWN_WHEEL))
def test_no_wheel_is_made_up_for_a_target_that_has_none(ways: Ways, target: str) -> None:
    assert ways("torch", target) == []
    assert ways("rocm", target) == []


@pytest.mark.parametrize("target", [target.name for target in targets()])
def test_no_choice_for_a_target_it_does_not_serve(ways: Ways, target: str) -> None:
    choices = ways("torch", target)
    assert all("{" not in choice.command for choice in choices)
    from_pytorch = [choice for choice in choices if PYTORCH_INDEX in choice.command]
    assert bool(from_pytorch) == (target in PYTORCH_TARGETS)
    assert all("v2/gfx" not in choice.command for choice in choices), "indexes that get no new builds"
    for choice in choices:
        others = {name.name for name in targets()} - {target}
        named = {word.strip('"[]') for word in choice.command.replace("device-", " ").replace("]", " ").split()}
        assert not named & others


def test_strix_halo_knows_what_was_used_before_but_ranks_it_last(
    example: Callable[[str], Machine], knowledge: Knowledge
) -> None:
    choices = choose(example("strix-halo-healthy"), knowledge, "torch", "gfx1151").choices
    assert [choice.entry_id for choice in choices if choice.serves][:3] == [
        "install-therock-7-14-gfx1151",
        "install-therock-multi-arch",
        "install-pytorch-org-rocm",
    ]
    old = next(choice for choice in choices if choice.entry_id == "install-repo-radeon")
    assert old.rank > 50
    assert "Conv" in old.caution or "convolution" in old.caution


@pytest.mark.parametrize(
    ("package", "target", "entry_id"),
    [
        ("llama.cpp", "gfx1151", "install-kyuz0-llama-toolboxes"),
        ("llama.cpp", "gfx1010", "install-llama-cpp-releases"),
        ("vllm", "gfx942", "porting-vllm-on-rocm"),
        ("rocm", "gfx1151", "install-therock-7-14-gfx1151"),
        ("bitsandbytes", "gfx1100", "porting-bitsandbytes-targets"),
    ],
)
def test_first_choice_for_other_packages(ways: Ways, package: str, target: str, entry_id: str) -> None:
    assert ways(package, target)[0].entry_id == entry_id


@pytest.mark.parametrize(("package", "target"), [("aiter", "gfx1151"), ("cupy", "gfx1151"), ("vllm", "gfx1010")])
def test_packages_without_code_for_a_target_are_not_offered(ways: Ways, package: str, target: str) -> None:
    assert ways(package, target) == []
