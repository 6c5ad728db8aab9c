"""How compiled kernels are laid out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rocmend.core.units import count_text
from rocmend.kernels.compiled.checks import CHECKS
from rocmend.kernels.compiled.run import Report
from rocmend.kernels.compiled.table import Difference, Row
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.rungs import Run, latest
from rocmend.kernels.target import by_name
from rocmend.report.document import Block, Cell, Document, Section, Text, Tone, table

SHOWN = 40
"""Findings, differences and skipped cases that are listed; the JSON output has all."""


def compiled_document(report: Report, changes: Sequence[Difference], *, rows: bool) -> Document:
    """Lay out what compiling came to: what is wrong first, then a table."""
    blocks: list[Block] = []
    wrong = _wrong(report)
    if wrong:
        blocks.append(Section("What is wrong", (table(["kernel", "target", "check", "what"], wrong[:SHOWN]),)))
        blocks += _more(len(wrong))
    if changes:
        lines = [[one.op, f"{one.kernel} · {one.case}", one.target, one.change] for one in changes[:SHOWN]]
        blocks.append(Section("Differences from the stored table", (table(["op", "kernel", "target", "how"], lines),)))
        blocks += _more(len(changes))
    for name in dict.fromkeys(row.op for row in report.rows):
        own = [row for row in report.rows if row.op == name]
        blocks.append(Section(name, tuple(_by_target(own)) if rows else (_summary(own),)))
    if report.skipped:
        blocks.append(Section("Not supported on the target", (Text(_skipped(report)),)))
    if report.unserved:
        lines = [[one.target, one.versions, one.why] for one in report.unserved]
        lacking = table(["left out", "needs triton", "because"], lines)
        hint = Text("`rocmend kernels compile --fetch-triton VERSION` installs another one alongside.")
        blocks.append(Section("Targets without an installed Triton", (lacking, hint)))
    failed = report.failed + len(changes)
    summary = f"{count_text(len(report.rows), 'compiled kernel')}, {report.remembered} of them from the cache."
    verdict = f"{count_text(failed, 'finding')}." if failed else "No spill, no scratch, no other finding."
    versions = ", ".join(report.tritons)
    return Document(
        "Kernels compiled for other GPUs",
        f"{summary} {verdict}",
        Tone.ERROR if failed else Tone.GOOD,
        tuple(blocks),
        f"Triton {versions}. Compiled only, not run. occ: wavefronts a SIMD holds.",
    )


def fetched_document(toolchain: Toolchain) -> Document:
    """Say where a fetched Triton stands."""
    return Document(
        f"Triton {toolchain.version}",
        f"It is in {toolchain.path}, where `rocmend kernels compile` finds it.",
        Tone.GOOD,
    )


def _more(count: int) -> list[Block]:
    return [Text(f"{count - SHOWN} more are not shown; --json has all.")] if count > SHOWN else []


def _wrong(report: Report) -> list[list[str | Cell]]:
    found: list[list[str | Cell]] = [
        [problem.op, "", Cell(problem.check, Tone.ERROR), f"{problem.subject}: {problem.detail}"]
        for problem in report.problems
    ]
    for row in report.rows:
        for finding in row.findings:
            what = f"{finding.detail} · {row.case} · {row.config}"
            found.append([f"{row.op} {row.kernel}", row.target, Cell(finding.check, Tone.ERROR), what])
    return found


def _skipped(report: Report) -> str:
    lines = Counter((one.op, one.target, one.reason.rpartition(": ")[2]) for one in report.skipped)
    texts = [f"* {op} on {target}, {count_text(count, 'case')}: {why}" for (op, target, why), count in lines.items()]
    return "\n".join(texts[:SHOWN])


def _summary(rows: Sequence[Row]) -> Block:
    """Lay out the extremes of each kernel on each target."""
    lines: list[list[str | Cell]] = []
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.kernel, row.target), []).append(row)
    for (kernel, target), own in groups.items():
        name = kernel.removesuffix("_kernel")
        made = [row.measured for row in own if row.measured is not None]
        if not made:
            lines.append([name, target, str(len(own)), *[""] * 5, _verdict(own)])
            continue
        matrix = [sum(one.matrix.values()) for one in made if one.asked]
        lines.append(
            [
                name,
                target,
                str(len(own)),
                _span(one.vgprs for one in made),
                _span(one.lds_bytes for one in made),
                _span(one.occupancy for one in made),
                _span(matrix) if matrix and by_name(target).matrix_dtypes else "none" if matrix else "",
                _span(one.load_bits for one in made),
                _verdict(own),
            ]
        )
    return table(["kernel", "target", "n", "VGPR", "LDS", "occ", "matrix", "load", ""], lines)


def _span(values: Iterable[int]) -> str:
    found = sorted(values)
    return str(found[0]) if found[0] == found[-1] else f"{found[0]}-{found[-1]}"


def _verdict(rows: Sequence[Row]) -> Cell:
    checks = dict.fromkeys(finding.check for row in rows for finding in row.findings)
    return Cell(", ".join(checks), Tone.ERROR) if checks else Cell("ok", Tone.GOOD)


def _by_target(rows: Sequence[Row]) -> Iterable[Block]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.target, row.kernel), []).append(row)
    for (target, kernel), own in groups.items():
        lines: list[list[str | Cell]] = []
        for row in own:
            one = row.measured
            figures = ["", "", "", "", ""]
            if one is not None:
                registers, lds = str(one.vgprs), str(one.lds_bytes)
                figures = [registers, lds, str(one.occupancy), matrix_text(row), str(one.load_bits)]
            lines.append([f"{row.case}, {short_config(row.config)}", *figures, _verdict([row])])
        columns = ["case, record", "VGPR", "LDS", "occ", "matrix", "load", ""]
        yield table(columns, lines, f"{kernel} on {target}")


def short_config(config: str) -> str:
    """Return a record's parameters in few signs: ``64x64x32 w4 s2``.

    Args:
        config: As ``BLOCK_M=64 BLOCK_N=64 BLOCK_K=32 num_warps=4 num_stages=2``.

    Returns:
        The kernel's own numbers in their order, then what has a sign, then the rest by name.
    """
    tile, signs, rest = [], [], []
    for part in config.split():
        name, _, value = part.partition("=")
        if sign := _SIGNS.get(name):
            signs.append(f"{sign}{value}")
        elif name.isupper() and value.isdigit():
            tile.append(value)
        else:
            rest.append(part)
    return " ".join(["x".join(tile), *signs, *rest]).strip()


_SIGNS = {"num_warps": "w", "num_stages": "s", "STAGES": "s", "waves_per_eu": "e", "matrix_instr_nonkdim": "m"}


def matrix_text(row: Row) -> str:
    """Say how many matrix instructions a kernel has; ``no unit`` where the target has none, nothing without a dot."""
    if row.measured is None or not row.measured.asked:
        return ""
    if not by_name(row.target).matrix_dtypes:
        return "no unit"
    return str(sum(row.measured.matrix.values()))


def overview(rows: Sequence[Row]) -> str:
    """Lay out the kept table as Markdown: a line a kernel, a column a target; what is wrong, or how many are right."""
    names = list(dict.fromkeys(row.target for row in rows))
    groups: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in rows:
        groups.setdefault((row.op, row.kernel), {}).setdefault(row.target, []).append(row)
    lines = [f"| op | kernel | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
    last = ""
    for (op, kernel), by_target in groups.items():
        cells = [_state(by_target.get(name, [])) for name in names]
        lines.append(f"| {f'[{op}](compiled/{op}.md)' if op != last else ''} | {kernel} | {' | '.join(cells)} |")
        last = op
    return "\n".join(lines)


def _state(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    wrong = [row for row in rows if row.findings]
    if not wrong:
        return f"ok {len(rows)}"
    checks = dict.fromkeys(finding.check for row in wrong for finding in row.findings)
    return f"**{', '.join(checks)}** {len(wrong)} of {len(rows)}"


def emulated_overview(runs: Iterable[Run]) -> str:
    """Lay out the runs of suites as machine code as Markdown: a line an op, a column a target, cases that passed."""
    found = {op: own for op, own in latest(run for run in runs if run.rung == "emulated").items() if own}
    names = sorted({target for own in found.values() for _, target in own}, key=lambda name: (len(name), name))
    lines = [f"| op | cases | {' | '.join(names)} |", "|---" * (2 + len(names)) + "|"]
    for op, own in sorted(found.items()):
        known = max(run.known or run.count for run in own.values())
        cells = [_ran(own.get(("emulated", name))) for name in names]
        lines.append(f"| {op} | {known} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ran(run: Run | None) -> str:
    if run is None:
        return ""
    return f"{run.passed}" if run.passed == run.count else f"**{run.passed} of {run.count}**"


def kernels_page(rows: Sequence[Row]) -> Document:
    """Lay out the kept table of one op: a section a kernel, a row a specialisation and target, with all figures."""
    blocks: list[Block] = []
    for kernel in dict.fromkeys(row.kernel for row in rows):
        own = [row for row in rows if row.kernel == kernel]
        blocks.append(Section(kernel, (table(_COLUMNS, [_full(row) for row in own]),)))
    return Document(rows[0].op, count_text(len(rows), "compiled kernel") + ".", blocks=tuple(blocks))


_COLUMNS = (
    *("target", "case", "tuning record", "VGPR", "AGPR", "SGPR", "spills", "scratch", "LDS", "waves", "occ"),
    *("matrix instructions", "dot instructions", "load/store bits", "code bytes", "Triton", "findings"),
)


def _full(row: Row) -> list[str | Cell]:
    one = row.measured
    record = f"{row.record.partition('/')[2]}: {short_config(row.config)}"
    found = "; ".join(f"{finding.check}: {finding.detail}" for finding in row.findings)
    if one is None:
        return [row.target, row.case, record, *[""] * 12, row.triton, found]
    return [
        row.target,
        row.case,
        record,
        str(one.vgprs),
        str(one.agprs),
        str(one.sgprs),
        str(one.vgpr_spills + one.sgpr_spills),
        str(one.scratch_bytes),
        str(one.lds_bytes),
        str(one.waves),
        str(one.occupancy),
        _named(one.matrix) or matrix_text(row),
        _named(one.dots),
        f"{one.load_bits}/{one.store_bits}",
        str(one.code_bytes),
        row.triton,
        found,
    ]


def _named(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def checks_text() -> str:
    """List the checks in Markdown."""
    return "\n".join(f"* `{name}`: {text}" for name, text in CHECKS.items())
