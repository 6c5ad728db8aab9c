from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rocmend.kb.predicate import MAX_CHARS, PredicateError, compile_name, compile_predicate
from rocmend.machine.facts import Machine

Build = Callable[..., Machine]

FACTS: dict[str, Any] = {
    "kernel.release": "6.14.0-34-generic",
    "kernel.version": "6.14.0",
    "kernel.params": {"amdgpu.cwsr_enable": "0", "quiet": None},
    "packages": {"torch": "2.9.0+rocm7.0"},
    "torch.installed": True,
    "torch.hip_version": None,
    "torch.gfx_targets": ["gfx1100", "gfx1101"],
    "numa.balancing": 1,
    "model.fits": None,
    "gpu.0.gfx_target": "gfx1151",
    "gpu.0.firmware": {"mes": 0x83},
    "gpu.0.vram_total_bytes": 512 << 20,
    "gpu.0.bandwidth_gb_s": 256.0,
    "gpu.1.gfx_target": "gfx1100",
    "vulkan.icds": [{"driver": "radv"}],
    "env.HSA_OVERRIDE_GFX_VERSION": "11.0.0",
    "env.collected": True,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('kernel.version == "6.14.0"', True),
        ('version(kernel.release) >= "6.14"', True),
        ('"6.14" <= version(kernel.release) < version("6.15")', True),
        ("version(kernel.release) < 7", None),
        ('kernel.version < "7"', None),
        ('version(torch.hip_version) < "7"', False),
        ("torch.hip_version == None", True),
        ("torch.hip_version != None", False),
        ("torch.hip_version < 3", False),
        ("not torch.hip_version < 3", True),
        ("torch.installed", True),
        ("not torch.installed", False),
        ("model.fits", None),
        ("model.fits == False", False),
        ("numa.balancing", None),
        ("numa.balancing == 1", True),
        ("numa.balancing == True", False),
        ('numa.balancing == "1"', False),
        ("numa.balancing == 1.0", True),
        ('kernel.params["amdgpu.cwsr_enable"] == "0"', True),
        ('kernel.params["amdgpu.gttsize"] == None', True),
        ('kernel.params["quiet"] == None', True),
        ('"quiet" in kernel.params', True),
        ('"nosmt" not in kernel.params', True),
        ('packages["torch"] != None', True),
        ('packages["torch"]["x"] == None', None),
        ('starts(packages["torch"], "2.9")', True),
        ('version(packages["torch"]) == "2.9.0"', True),
        ('version(packages["jax"]) < "1"', False),
        ("gpu.firmware.mes == 131", True),
        ('gpu.firmware["mes"] >= 0x83', True),
        ("gpu.firmware.mec == None", True),
        ('gpu.gfx_target in ["gfx1150", "gfx1151"]', True),
        ("gpu.gfx_target in torch.gfx_targets", False),
        ("gpu.gfx_target not in torch.gfx_targets", True),
        ('any_in(["gfx1100"], torch.gfx_targets)', True),
        ('any_in(["gfx1200"], torch.gfx_targets)', False),
        ("any_in(torch.hip_version, [1])", False),
        ("len(torch.gfx_targets) == 2", True),
        ('len(kernel.params["quiet"]) > 0', False),
        ("gpu.vram_total_bytes * 2 == 1024 * 1024 * 1024", True),
        ("gpu.vram_total_bytes / 0 > 1", None),
        ("gpu.bandwidth_gb_s > -1", True),
        ("kernel.version + 1 > 2", None),
        (r'matches(kernel.release, "^6\.14.*generic$")', True),
        ('matches(torch.hip_version, "7")', False),
        ('lower("ABC") == "abc"', True),
        ("lower(torch.hip_version) == None", True),
        ('int("0x83") == 131', True),
        ('int("08") == 8', True),
        ('int(" 12 ") == 12', True),
        ("int(gpu.bandwidth_gb_s) == 256", True),
        ("int(kernel.version) == 6", None),
        ('"14" in kernel.version', True),
        ("1 in kernel.version", None),
        ("torch.hip_version in kernel.version", False),
        ("1 in numa.balancing", None),
        ("1 in torch.hip_version", False),
        ("1 not in torch.hip_version", True),
        ('vulkan.icds[0]["driver"] == "radv"', True),
        ("vulkan.icds[1] == None", True),
        ("env.HSA_ENABLE_SDMA == None", True),
        ('env.HSA_OVERRIDE_GFX_VERSION == "11.0.0"', True),
        ("rocm.version == None", None),
        ("known(rocm.version)", False),
        ("known(torch.hip_version)", True),
        ("rocm.version == None or torch.installed", True),
        ("rocm.version == None and not torch.installed", False),
        ("rocm.version == None and torch.installed", None),
        ("rocm.version in []", False),
        ('rocm.version in ["7.2"]', None),
        ('"a" in ["a", rocm.version]', True),
        ('"b" in ["a", rocm.version]', None),
        ("1 < numa.balancing < rocm.count", False),
        ("1 <= numa.balancing < rocm.count", None),
    ],
)
def test_outcomes(text: str, value: object, machine_of: Build) -> None:
    assert compile_predicate(text).evaluate(machine_of(FACTS), 0).value is value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the predicate is empty"),
        ("kernel.version ==", "not an expression"),
        ("kernel.version = 1", "not an expression"),
        ("\0", "not an expression"),
        ("(" * 300 + ")" * 300, "not an expression"),
        ("lambda: 1", "Lambda is not part"),
        ("[x for x in packages]", "ListComp is not part"),
        ("packages.items()", "no such function"),
        ("open('x')", "no such function"),
        ("version(kernel.release, 2)", "version takes 1 argument"),
        ("version(x=1)", "version takes 1 argument"),
        ("known(1)", "known takes a fact"),
        ("kernel.version is None", "'is' is not part"),
        ("true", "'true' is no fact"),
        ("version", "version is a function"),
        ("gpu == 1", "a property of the GPU is missing"),
        ("packages[kernel.version]", "must be a literal"),
        ("packages[0:1]", "must be a literal"),
        ("matches(kernel.release, kernel.version)", "must be a literal text"),
        ("matches(kernel.release, '(?=a)')", "invalid perl operator"),
        ('version("1").text', "only a fact"),
        ("2 ** 9999", "BinOp is not part"),
        ("~1 == 2", "Invert is not part"),
        ("b'x' == 1", "type bytes"),
        ("{'a': 1} == 1", "Dict is not part"),
        ("f'{x}' == 1", "JoinedStr is not part"),
        ("not " * 30 + "x.y", "nested more than"),
        ("a.b" + ".c" * 30, "nested more than"),
        (" or ".join(["a"] * 320), "more than 300 parts"),
        ("a" * (MAX_CHARS + 1), "at most"),
    ],
)
def test_malformed_predicates_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(PredicateError, match="predicate") as caught:
        compile_predicate(text)
    assert message in caught.value.message
    assert 0 <= caught.value.offset <= len(text)


def test_the_place_of_an_error_counts_characters() -> None:
    text = '  "äöü" == None or\n kernel.version is None'
    with pytest.raises(PredicateError) as caught:
        compile_predicate(text)
    assert text[caught.value.offset :].startswith("kernel.version is")


def test_a_predicate_may_span_lines(machine_of: Build) -> None:
    assert compile_predicate("\n  torch.installed\n  and True\n").evaluate(machine_of(FACTS)).value is True


def test_evidence_is_what_was_read_and_no_more(machine_of: Build) -> None:
    outcome = compile_predicate(
        'torch.installed and packages["torch"] != None and env.NCCL_DEBUG == None or kernel.version == "1"'
    ).evaluate(machine_of(FACTS))
    assert {fact.key: fact.value for fact in outcome.read} == {
        "torch.installed": True,
        'packages["torch"]': "2.9.0+rocm7.0",
        "env.NCCL_DEBUG": None,
    }


def test_the_gpu_is_the_one_that_is_bound(machine_of: Build) -> None:
    predicate = compile_predicate('gpu.gfx_target == "gfx1100"')
    machine = machine_of(FACTS)
    assert [predicate.evaluate(machine, gpu).value for gpu in (0, 1, 2, None)] == [False, True, None, None]
    assert [fact.key for fact in predicate.evaluate(machine, 1).read] == ["gpu.1.gfx_target"]


@pytest.mark.parametrize(
    ("gaps", "key", "reason"),
    [
        ({}, "gpu.0.vbios", "not collected"),
        ({"gpu.0.vbios": "denied"}, "gpu.0.vbios", "denied"),
        ({"gpu.*": "timed out"}, "gpu.0.vbios", "timed out"),
        ({"gpu.*.vbios": "crashed"}, "gpu.0.vbios", "crashed"),
    ],
)
def test_what_is_missing_says_why(gaps: dict[str, str], key: str, reason: str, machine_of: Build) -> None:
    outcome = compile_predicate('gpu.vbios == "x"').evaluate(machine_of({"gpu.0.gfx_target": "gfx1151"}, gaps), 0)
    assert outcome.value is None
    assert [(gap.key, gap.reason) for gap in outcome.missing] == [(key, reason)]


@pytest.mark.parametrize("collected", [None, False])
def test_the_environment_is_closed_only_where_it_was_collected(collected: object, machine_of: Build) -> None:
    machine = machine_of({"env.collected": collected}, {"env.*": "cannot be read"})
    outcome = compile_predicate("env.HSA_XNACK == None").evaluate(machine)
    assert outcome.value is None
    assert outcome.missing[0].reason == "cannot be read"


def test_the_longest_key_is_taken_first(machine_of: Build) -> None:
    machine = machine_of({"rocm.packages": {"hip": "short"}, "rocm.packages.hip": "long"})
    assert compile_predicate('rocm.packages.hip == "long"').evaluate(machine).value is True
    assert compile_predicate('rocm.packages["hip"] == "short"').evaluate(machine).value is True


def test_a_senseless_operation_leaves_a_note(machine_of: Build) -> None:
    outcome = compile_predicate('kernel.version < "7"').evaluate(machine_of(FACTS))
    assert outcome.notes == ("a text < a text cannot be compared; use version()",)
    outcome = compile_predicate("numa.balancing").evaluate(machine_of(FACTS))
    assert "neither true nor false" in outcome.notes[0]


def test_a_predicate_knows_the_facts_it_names() -> None:
    predicate = compile_predicate('gpu.gfx_target == "x" and known(packages) and kernel.params["a"] in [os.id]')
    assert predicate.keys == ("gpu.*.gfx_target", "packages", "kernel.params", "os.id")
    assert predicate.reads_gpu
    assert not compile_predicate("gpus.count == 0").reads_gpu


def test_one_name_is_no_expression() -> None:
    assert compile_name('kernel.params["x"]').parts == ("kernel", "params")
    with pytest.raises(PredicateError, match="name was expected"):
        compile_name("1 == 1")
