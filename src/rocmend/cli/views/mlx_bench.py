"""How a timed model is laid out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocmend.core.units import count_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import Block, Cell, Code, Document, Pairs, Text, Tone, table

if TYPE_CHECKING:
    from rocmend.mlx.programs.bench import BenchRun, Executed


def bench_document(run: BenchRun, kept: str) -> Document:
    """Lay out a timed model.

    Args:
        run: What was measured.
        kept: Id that it is kept under; empty where it is not.
    """
    request = run.request
    name = request.shape or request.model
    passed = run.verdict is Verdict.PASS
    where = f" on {run.device_name} ({run.target})" if run.target else ""
    summary = f"{run.verdict.value}{where}: a prompt of {request.prompt} tokens, then {request.generate} generated."
    blocks: list[Block] = []
    if run.speeds:
        rows: list[list[str | Cell]] = [
            [
                f"{one.depth:,}",
                f"{one.prompt_tok_s:,.1f}",
                f"{one.generate_tok_s:,.1f}",
                "not known" if one.floor_tok_s is None else f"{one.floor_tok_s:,.1f}",
                "" if one.of_floor is None else f"{one.of_floor:.1%}",
                f"{one.peak_gb:,.2f}" if one.peak_gb else "not known",
            ]
            for one in run.speeds
        ]
        columns = ["depth", "prompt tok/s", "generate tok/s", "limit tok/s", "of limit", "peak GB"]
        blocks.append(table(columns, rows))
    if pairs := _pairs(run):
        blocks.append(Pairs(pairs))
    if not passed:
        blocks.append(Code(run.reason))
    if run.versions:
        versions = ", ".join(f"{package} {version}" for package, version in run.versions.items())
        limit = "The limit is how often a second weights and cache can be read at copy speed."
        blocks.append(Text(f"With {versions}. {limit}", Tone.MUTED))
    footer = f"Kept as {kept}: `rocmend store ls` lists it." if kept else ""
    return Document(f"Speed of {name}", summary, Tone.GOOD if passed else Tone.ERROR, tuple(blocks), footer)


def _pairs(run: BenchRun) -> tuple[tuple[str, str, str], ...]:
    rows = []
    if run.weight_bytes is not None:
        rows.append(("weights per token", f"{run.weight_bytes / 1e9:,.4g} GB", "only the chosen experts of a mixture"))
    if run.copy_gb_s:
        rows.append(("copy", f"{run.copy_gb_s:,.1f} GB/s", "measured, read and write counted"))
    if run.record_ms is not None and run.hand_over_ms is not None:
        rows.append(("recording a step", f"{run.record_ms:.2f} ms", "on the CPU"))
        note = "computed there" if run.target == "cpu" else "on the CPU, without waiting for the GPU"
        rows.append(("submitting a step", f"{run.hand_over_ms:.2f} ms", note))
    if run.executed is not None:
        rows += _executed(run.executed)
    return tuple(rows)


def _executed(found: Executed) -> list[tuple[str, str, str]]:
    return [
        (
            "executor",
            found.executor,
            f"{count_text(found.plans, 'plan')} made, {count_text(found.planned_runs, 'step')} run by a plan",
        ),
        ("recording in C", "yes" if found.accelerated else "no", found.why_not_accelerated),
        (
            "captures",
            f"{found.captures}, {found.replays} replays" if found.captures else "none",
            "; ".join(found.why_not_captured),
        ),
    ]
