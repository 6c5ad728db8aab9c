from __future__ import annotations

from collections.abc import Callable

import pytest

from rocmend.core.errors import UsageError
from rocmend.core.records import CollectorRun, CollectorStatus, Remedy, Severity
from rocmend.doctor.diagnose import diagnose
from rocmend.kb.entry import Entry, Links, Scope, Status
from rocmend.kb.load import Knowledge, LoadProblem, load_entries
from rocmend.machine.facts import Machine

Build = Callable[..., Machine]
Make = Callable[..., Entry]
Gather = Callable[..., Knowledge]

OLD_KERNEL = 'version(kernel.version) < "6.14"'


def test_findings_carry_evidence_remedy_and_source(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    entry = finding_of(
        "old-kernel",
        OLD_KERNEL,
        title="Linux {kernel.version} is old",
        remedy=(Remedy("Leave {kernel.version}.", commands=("echo {kernel.version} ${HOME}",), needs=("reboot",)),),
        links=Links(contradicts=("x",), see=("y", "x")),
    )
    (finding,) = diagnose(machine_of({"kernel.version": "6.8"}), knowledge_of(entry)).findings
    assert finding.title == "Linux 6.8 is old"
    assert finding.explanation == "Because."
    assert [(fact.key, fact.value, fact.source) for fact in finding.evidence] == [
        ("kernel.version", "6.8", "/sys/kernel.version")
    ]
    assert finding.remedies[0].text == "Leave 6.8."
    assert finding.remedies[0].commands == ("echo 6.8 ${HOME}",)
    assert finding.remedies[0].needs == ("reboot",)
    assert finding.sources[0].url == "https://example.org/1"
    assert finding.see == ("x", "y")


def test_the_most_severe_comes_first(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    severities = [Severity.INFO, Severity.ERROR, Severity.ADVICE, Severity.WARNING]
    entries = [finding_of(f"e{number}", "True", severity=severity) for number, severity in enumerate(severities)]
    found = diagnose(machine_of({}), knowledge_of(*entries)).findings
    assert [finding.entry_id for finding in found] == ["e1", "e3", "e2", "e0"]


@pytest.mark.parametrize(
    ("status", "speaks"),
    [
        (Status.ACTIVE, True),
        (Status.DISPUTED, True),
        (Status.FIXED_IN, True),
        (Status.SUPERSEDED, False),
        (Status.REFUTED, False),
    ],
)
def test_only_claims_that_stand_are_findings(
    status: Status, speaks: bool, machine_of: Build, finding_of: Make, knowledge_of: Gather
) -> None:
    knowledge = knowledge_of(finding_of("a", "True", status=status))
    assert [finding.status for finding in diagnose(machine_of({}), knowledge).findings] == [status.value] * speaks


def test_reference_entries_are_no_findings(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(finding_of("a", ""), finding_of("b", "True", severity=None))
    diagnosis = diagnose(machine_of({}), knowledge)
    assert (diagnosis.findings, diagnosis.undecided, diagnosis.healthy) == ((), (), 0)


def test_equal_gpus_make_one_finding(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    facts: dict[str, object] = {f"gpu.{index}.gfx_target": "gfx942" for index in range(8)}
    facts["gpu.8.gfx_target"] = "gfx1100"
    facts |= {f"gpu.{index}.mes_version": 0x80 for index in range(9)}
    entry = finding_of(
        "mes", "gpu.mes_version == 128", subject="gpu", title="{gpu.gfx_target} has old firmware", remedy=()
    )
    instinct, radeon = sorted(diagnose(machine_of(facts), knowledge_of(entry)).findings, key=lambda one: one.subject)
    assert instinct.subject == "gpu.0, gpu.1, gpu.2, gpu.3, gpu.4, gpu.5, gpu.6, gpu.7"
    assert [fact.key for fact in instinct.evidence] == ["gpu.0.mes_version"]
    assert radeon.subject == "gpu.8"
    assert radeon.title == "gfx1100 has old firmware"


def test_merged_findings_keep_evidence_that_differs(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    facts = {"gpu.0.busy_percent": 90, "gpu.1.busy_percent": 95, "gpu.2.busy_percent": 90}
    (finding,) = diagnose(
        machine_of(facts), knowledge_of(finding_of("busy", "gpu.busy_percent > 50", subject="gpu"))
    ).findings
    assert [(fact.key, fact.value) for fact in finding.evidence] == [
        ("gpu.0.busy_percent", 90),
        ("gpu.1.busy_percent", 95),
    ]


def test_what_cannot_be_told_says_what_would(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(
        finding_of("late", 'gpu.gfx_target == "gfx942" and ask.model_bytes > 1', subject="gpu", severity=Severity.INFO),
        finding_of("old", OLD_KERNEL, severity=Severity.ERROR),
        finding_of("odd", 'kernel.flavour < "b"'),
    )
    machine = machine_of({"gpu.0.gfx_target": "gfx942", "kernel.flavour": "a"}, {"kernel.version": "no permission"})
    old, odd, late = diagnose(machine, knowledge).undecided
    assert (old.entry_id, old.missing[0].key, old.missing[0].reason) == ("old", "kernel.version", "no permission")
    assert "kernel" in old.missing[0].establishes
    assert (odd.entry_id, odd.missing) == ("odd", ())
    assert "version()" in odd.notes[0]
    assert (late.subject, late.missing[0].establishes) == (
        "gpu.0",
        "Give the size of the model: --model-size SIZE.",
    )


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("gpu.firmware.mes > 1", "firmware"),
        ("env.HSA_XNACK == None", "environment variable"),
        ("gpu.gfx_target == None", "kfd"),
        ("no.such.fact == 1", ""),
    ],
)
def test_what_would_establish_a_fact_is_what_declares_it(
    predicate: str, words: str, machine_of: Build, finding_of: Make, knowledge_of: Gather
) -> None:
    diagnosis = diagnose(machine_of({"gpu.0.is_apu": True}), knowledge_of(finding_of("a", predicate)))
    text = diagnosis.undecided[0].missing[0].establishes
    assert words in text
    assert bool(text) is bool(words)


def test_checks_that_do_not_apply_are_counted(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(
        finding_of("healthy", OLD_KERNEL),
        finding_of("gpu-healthy", "gpu.is_apu", subject="gpu"),
        finding_of("other-gpu", "True", subject="gpu", scope=Scope(gfx=("gfx942",))),
        finding_of("found", "True"),
        finding_of("unknown", "numa.balancing == 1"),
    )
    facts = {"kernel.version": "6.17", "gpu.0.is_apu": False, "gpu.0.gfx_target": "gfx1100"}
    diagnosis = diagnose(machine_of(facts), knowledge)
    assert diagnosis.healthy == 2
    assert len(diagnosis.findings) == 1
    assert len(diagnosis.undecided) == 1


def test_a_machine_without_a_gpu_has_no_findings_about_gpus(
    machine_of: Build, finding_of: Make, knowledge_of: Gather
) -> None:
    knowledge = knowledge_of(finding_of("a", "True", subject="gpu"), finding_of("none", "gpus.count == 0"))
    diagnosis = diagnose(machine_of({"gpus.count": 0}), knowledge)
    assert [finding.entry_id for finding in diagnosis.findings] == ["none"]
    assert (diagnosis.undecided, diagnosis.gpus) == ((), ())


def test_the_workload_narrows_the_findings(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    knowledge = knowledge_of(
        finding_of("llama", "True", scope=Scope(workload=("llama.cpp",))),
        finding_of("read", 'ask.workload == "pytorch"'),
    )
    machine = machine_of({"ask.workload": None})
    everything, named = diagnose(machine, knowledge), diagnose(machine, knowledge, workload="pytorch")
    assert [finding.entry_id for finding in everything.findings] == ["llama"]
    assert everything.workload is None
    assert [finding.entry_id for finding in named.findings] == ["read"]
    assert named.workload == "pytorch"
    assert machine.value("ask.workload") is None
    with pytest.raises(UsageError, match=r"llama\.cpp"):
        diagnose(machine, knowledge, workload="games")


def test_problems_are_reported_beside_the_findings(machine_of: Build, finding_of: Make, knowledge_of: Gather) -> None:
    runs = (CollectorRun("kfd", CollectorStatus.OK, 1.0), CollectorRun("smi", CollectorStatus.TIMEOUT, 5000.0, "slow"))
    knowledge = knowledge_of(
        finding_of("broken", "1 +"), finding_of("sound", "True"), problems=(LoadProblem("x.md", 3, "not TOML"),)
    )
    diagnosis = diagnose(machine_of({}, collectors=runs), knowledge)
    assert [run.name for run in diagnosis.collector_problems] == ["smi"]
    assert diagnosis.knowledge_problems[0] == "x.md:3: not TOML"
    assert "broken" in diagnosis.knowledge_problems[1]
    assert [finding.entry_id for finding in diagnosis.findings] == ["sound"]


def test_gpus_are_summed_up(machine_of: Build, knowledge_of: Gather) -> None:
    facts = {
        "gpu.0.name": "Radeon 8060S",
        "gpu.0.gfx_target": "gfx1151",
        "gpu.0.compute_units": 40,
        "gpu.0.wavefront_size": 32,
        "gpu.0.vram_total_bytes": 512 << 20,
        "gpu.0.peak_fp16_tflops": 59.4,
        "gpu.0.torch_service": "native",
        "gpu.10.gfx_target": "gfx942",
    }
    first, second = diagnose(machine_of(facts), knowledge_of()).gpus
    assert (first.index, first.name, first.compute_units, first.torch_service) == (0, "Radeon 8060S", 40, "native")
    assert first.bandwidth_gb_s is None
    assert (second.index, second.gfx_target) == (10, "gfx942")


def test_the_shipped_entries_recognise_a_save_area_that_is_too_small(machine_of: Build) -> None:
    facts = {
        "gpus.count": 1,
        "gpu.0.gfx_target": "gfx1151",
        "gpu.0.generic_class": "gfx11-generic",
        "gpu.0.cwsr_size_bytes": 13_942_784,
        "gpu.0.cwsr_required_bytes": 19_185_664,
        "gpu.0.cwsr_sufficient": False,
    }
    knowledge = load_entries()
    sick = diagnose(machine_of(facts), knowledge)
    assert "gfx1151-cwsr-save-area-too-small" in [finding.entry_id for finding in sick.findings]
    assert sick.knowledge_problems == ()
    well = {**facts, "gpu.0.cwsr_size_bytes": 19_185_664, "gpu.0.cwsr_sufficient": True}
    found = [finding.entry_id for finding in diagnose(machine_of(well), knowledge).findings]
    assert "gfx1151-cwsr-save-area-too-small" not in found
