"""A knowledge entry: one claim about a version, library, variable, parameter, firmware, driver, source or issue.

An entry is a Markdown file, ``kb/entries/<topic>/<id>.md``: TOML front matter between ``+++`` lines, then the text.
"""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import Any

import msgspec

from rocmend.core.records import Remedy, Severity, Source
from rocmend.core.signatures import Signature
from rocmend.core.verdict import Verdict


class Kind(StrEnum):
    """What the entry is about."""

    ISSUE = "issue"
    SETTING = "setting"
    RELEASE = "release"
    SUPPORT = "support"
    INSTALL_SOURCE = "install-source"
    MEASUREMENT = "measurement"
    FIRMWARE = "firmware"
    DRIVER = "driver"
    HARDWARE = "hardware"
    PRACTICE = "practice"
    TOOL = "tool"


class Status(StrEnum):
    """Whether the claim stands; an archived entry is kept, found by its id, and shown nowhere else."""

    ACTIVE = "active"
    FIXED_IN = "fixed-in"
    SUPERSEDED = "superseded"
    REFUTED = "refuted"
    DISPUTED = "disputed"
    ARCHIVED = "archived"


class Basis(StrEnum):
    """What a figure rests on."""

    MEASURED = "measured"
    REPORTED = "reported"
    DERIVED = "derived"


class Scope(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the claim holds; an empty field means everywhere.

    Attributes:
        gfx: gfx targets, e.g. ``gfx1151``, or an LLVM generic class, e.g. ``gfx11-generic``.
        rocm: Version range, e.g. ``>=7.0,<7.2``.
        kernel: Linux version range.
        package: Package name to version range, e.g. ``{torch = ">=2.5"}``.
        workload: pytorch, llama.cpp, mlx, training, vision, vllm, inference.
        os: linux, windows, wsl, ubuntu-24.04 …
        note: Anything a range can't say.
    """

    gfx: tuple[str, ...] = ()
    rocm: str = ""
    kernel: str = ""
    package: dict[str, str] = {}
    workload: tuple[str, ...] = ()
    os: tuple[str, ...] = ()
    note: str = ""


class Effect(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A figure or an observable outcome.

    Attributes:
        what: What changes or was seen, e.g. ``FP16 GEMM throughput``.
        basis: measured (by us), reported (by a source), derived (computed from sourced figures).
        value: A number, or None where the effect is not a number.
        unit: TFLOPS, tok/s, img/s, %, x, bytes, s …
        condition: Under what setting, model, shape.
    """

    what: str
    basis: Basis
    value: float | int | None = None
    unit: str = ""
    condition: str = ""


class Links(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ids of other entries.

    Attributes:
        contradicts: Says the opposite within an overlapping scope; both stay, each with its source.
        resolved_by: The entry that says which of two contradicting claims holds when.
        superseded_by: The newer claim (needed where the status is superseded).
        refuted_by: The entry that shows the claim false (needed where the status is refuted).
        see: Worth reading beside it.
    """

    contradicts: tuple[str, ...] = ()
    resolved_by: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    refuted_by: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A machine on which the predicate's outcome is known; the entry's own tests.

    Attributes:
        applies: True, False, or ``"unknown"`` where the facts do not suffice to tell.
        facts: Fact key to value; ``gpu.x`` keys are those of the one GPU (stored as ``gpu.0.x``).
        unset: Keys of facts that are known to be null (TOML cannot write null).
        note: What the case stands for.
    """

    applies: bool | str
    facts: dict[str, Any] = {}
    unset: tuple[str, ...] = ()
    note: str = ""


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An environment variable that ``rocmend env`` prints.

    Attributes:
        name: The variable.
        value: Its value; ``{fact.key}`` is filled in from the machine. Empty with ``unset`` true.
        workload: Workloads that want it; empty for all.
        when: Predicate; empty means wherever the entry applies.
        unset: The variable is to be unset.
        prepend: The value is put before the variable's old value, separated by a colon.
        optional: Printed commented out: worth measuring, not known to help.
        why: One line, printed as the comment.
        step: Where settings are not to be set at once but one after the other: which step it belongs to, as
            ``Step 1 of 2: …``. A variable may stand in several steps.
    """

    name: str
    value: str = ""
    workload: tuple[str, ...] = ()
    when: str = ""
    unset: bool = False
    prepend: bool = False
    optional: bool = False
    why: str = ""
    step: str = ""


class Caution(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What speaks against a way to install something, and for whom.

    Attributes:
        text: A sentence.
        gfx: Targets or generic classes that it concerns; empty for all that the way serves.
        when: Predicate over the machine; empty for everywhere.
    """

    text: str
    gfx: tuple[str, ...] = ()
    when: str = ""


class Install(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A way to install something, ranked by ``rocmend wheel choose``.

    Attributes:
        package: What is installed: torch, rocm, jax, onnxruntime, cupy, bitsandbytes, llama.cpp, vllm.
        name: What way it is, in a few words; empty where its index or the begin of its command says it.
        command: The command line; ``{index}`` (the index's address), ``{gfx}`` and ``{family}`` (gfx1151,
            gfx115X-all) are filled in.
        index: Where it comes from: a row of ``kb/indexes.toml``.
        gfx: Targets it serves natively; empty for those of the index, or where that is decided by ``when``.
        rank: Lower is better, within a package.
        channel: stable, preview, nightly, community.
        why: Why one would choose it, in one line.
        caution: What speaks against it, each with whom it concerns.
        when: Predicate over the machine; empty for everywhere.
        needs: The same in words, after "it needs": ``ROCm 7 on this machine``.
        workload: Workloads it is meant for; empty for all.
    """

    package: str
    command: str
    index: str = ""
    gfx: tuple[str, ...] = ()
    rank: int = 50
    channel: str = "stable"
    why: str = ""
    caution: tuple[Caution, ...] = ()
    when: str = ""
    needs: str = ""
    workload: tuple[str, ...] = ()
    name: str = ""


class Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One cell of a compatibility table that ``rocmend kb matrix`` renders.

    Attributes:
        table: release, library or pytorch-source.
        row: The release, library or source.
        target: A gfx target or generic class.
        state: full, preview, partial, experimental, override, none, unknown.
        note: A few words.
    """

    table: str
    row: str
    target: str
    state: str
    note: str = ""


class Expectation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What comes out of a trial with some settings, within the entry's scope; ``rocmend lab`` compares.

    Attributes:
        settings: Variables and kernel parameters with their values; ``unset`` for one that is not set.
        verdict: What comes out.
        phase: The phase in which the run ends, as the runner's phase sets call it; empty for any.
    """

    settings: dict[str, str]
    verdict: Verdict
    phase: str = ""


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A knowledge entry; see the attributes' own types.

    Attributes:
        id: Stable, kebab-case, equal to the file's name; never reused.
        title: What is the matter or what is so, in one line; ``{fact.key}`` is filled in for a finding.
        headline: The title where there is no machine to fill it in from; empty where it reads well without values.
        kind: What it is about.
        status: Whether it stands.
        reviewed: The day somebody last checked it against its sources.
        review_by: The day by which it must be checked again.
        source: At least one.
        claimed: The day the first source said it (YYYY-MM-DD, YYYY-MM or YYYY).
        fixed_in: Versions that fix it (needed where the status is fixed-in), e.g. ``ROCm 7.2``.
        severity: How much it matters when it applies; None for entries that never become findings.
        subject: ``gpu`` where it is matched against each GPU in turn, else torch, kernel, rocm, vulkan, env …
        when: The predicate over machine facts; empty for entries that are reference only.
        scope: Where the claim holds.
        effect: Figures and outcomes.
        remedy: What can be done, best first.
        links: Other entries.
        signature: Errors as they are printed, by which the entry is found.
        case: Machines with known outcome; at least one true and one false where there is a predicate.
        setting: Environment variables.
        install: Ways to install.
        cell: Cells of compatibility tables.
        expect: What comes out of trials.
        tags: Words to find it by.
    """

    id: str
    title: str
    kind: Kind
    status: Status
    reviewed: dt.date
    review_by: dt.date
    source: tuple[Source, ...]
    headline: str = ""
    claimed: str = ""
    fixed_in: tuple[str, ...] = ()
    severity: Severity | None = None
    subject: str = ""
    when: str = ""
    scope: Scope = Scope()
    effect: tuple[Effect, ...] = ()
    remedy: tuple[Remedy, ...] = ()
    links: Links = Links()
    signature: tuple[Signature, ...] = ()
    case: tuple[Case, ...] = ()
    setting: tuple[Setting, ...] = ()
    install: tuple[Install, ...] = ()
    cell: tuple[Cell, ...] = ()
    expect: tuple[Expectation, ...] = ()
    tags: tuple[str, ...] = ()
    topic: str = ""
    body: str = ""
