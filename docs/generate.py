"""Generate the reference pages from the program itself: commands, entries, gfx targets, facts, kernels, MLX.

A command or entry with no page fails the documentation build, because its page is made here from its own text.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import call_path  # type: ignore[import-not-found]  # stands beside this file
import click

from rocmend.cli.base import RocmendCommand
from rocmend.cli.main import command_modules
from rocmend.cli.views.compiled import checks_text, emulated_overview, kernels_page, overview
from rocmend.cli.views.entry import entry_document
from rocmend.cli.views.port_rules import rule_document, rules_document
from rocmend.cli.views.targets import target_document
from rocmend.core.files import write_atomic
from rocmend.core.gfx import products, targets
from rocmend.core.optional import INSTALL, NEEDS, Needs
from rocmend.doctor.explain import explain
from rocmend.kb.entry import Entry, Status
from rocmend.kb.general import headline
from rocmend.kb.load import Knowledge, load_entries
from rocmend.kernels import rungs
from rocmend.kernels.compiled.run import SAME_CODE
from rocmend.kernels.compiled.table import Row, read_table
from rocmend.machine.facts import declared_facts
from rocmend.mlx.programs.left_out import BEHAVES, DIFFERENT, GPU_TESTS, LEFT_OUT, TESTS
from rocmend.port import rule as porting
from rocmend.report import markdown


def _page(title: str, text: str, pages: Iterable[str] = (), *, hidden: bool = False) -> str:
    listed = "\n".join(pages)
    options = ":maxdepth: 1" + ("\n:hidden:" if hidden else "")
    tree = f"\n```{{toctree}}\n{options}\n\n{listed}\n```\n" if listed else ""
    return f"# {title}\n\n{text}\n{tree}"


def _write_leaf(path: Path, text: str, back: str) -> None:
    """Write a page that is reached through another one, ``back``, and not through the sidebar.

    Hundreds of pages in every page's sidebar would help nobody, and take minutes to write.
    """
    write_atomic(path, f"---\norphan: true\n---\n\n{text.rstrip()}\n\n{back}\n")


def _commands(folder: Path) -> None:
    rows = []
    for path, module in command_modules().items():
        command = importlib.import_module(module).command
        if not isinstance(command, RocmendCommand) or len(command.examples) < 2 or not command.help:
            raise SystemExit(f"rocmend {path} needs a help text and at least two examples")
        context = click.Context(command, info_name=f"rocmend {path}", terminal_width=100, max_content_width=100)
        name = path.replace(" ", "-")
        text = f"# rocmend {path}\n\n```text\n{command.get_help(context)}\n```\n"
        _write_leaf(folder / "commands" / f"{name}.md", text, "[All commands](../commands.md).")
        rows.append(f"| [rocmend {path}](commands/{name}.md) | {_cell(command.get_short_help_str(200))} |")
    table = "\n".join(["| command | what it does |", "|---|---|", *rows])
    write_atomic(
        folder / "commands.md", _page("Commands", f"Exit codes: 0 clean, 1 findings, 2 error.\n\n{table}\n\n{_needs()}")
    )


def _needs() -> str:
    rows = [
        f"| `rocmend {command}` | {', '.join(needs.packages)} | {needs.when or 'always'} | {_cell(_installs(needs))} |"
        for command, needs in NEEDS.items()
    ]
    head = "## What some need\n\nThese commands need more than the base installation; all others need nothing else.\n"
    return "\n".join([head, "| command | packages | when | how |", "|---|---|---|---|", *rows])


def _installs(needs: Needs) -> str:
    return " ".join(dict.fromkeys(INSTALL[package] for package in needs.packages))


def _knowledge(folder: Path) -> None:
    everything = load_entries()
    knowledge = everything.current()
    if knowledge.problems:
        raise SystemExit("entries that can't be loaded:\n" + "\n".join(str(item) for item in knowledge.problems))
    topics = defaultdict(list)
    for entry in knowledge.entries.values():
        text = markdown.render(entry_document(explain(entry.id, everything), everything))
        back = f"More on this topic: [{entry.topic}](topic-{entry.topic}.md)."
        _write_leaf(folder / "knowledge" / f"{entry.id}.md", text, back)
        topics[entry.topic].append(entry)
    listed = []
    for topic, entries in sorted(topics.items()):
        text = f"# {topic}\n\n{_entry_table(entries)}"
        _write_leaf(folder / "knowledge" / f"topic-{topic}.md", text, "[All topics](topics.md).")
        listed.append(f"| [{topic}](topic-{topic}.md) | {len(entries)} |")
    table = "\n".join(["| topic | entries |", "|---|--:|", *listed])
    write_atomic(folder / "knowledge" / "topics.md", _page("All entries by topic", table))
    problems = tomllib.loads(PROBLEMS.read_text(encoding="utf-8"))["problem"]
    shown = "\n".join(
        f"| [{problem['title']}](knowledge/problem-{problem['id']}.md) | {problem['signs']} |" for problem in problems
    )
    pages = [_problem_page(folder, problem, knowledge) for problem in problems]
    _check_reached(problems, knowledge)
    text = (
        f"{len(knowledge.entries)} entries, each with its sources. `rocmend kb search WORDS` finds them, "
        f"`rocmend kb show ID` prints one.\n\n| what you meet | how it shows |\n|---|---|\n{shown}\n\n"
        "Everything else: [all entries by topic](knowledge/topics.md), and the [indexes that packages are installed "
        "from](knowledge/indexes.md)."
    )
    _write_leaf(folder / "knowledge" / "indexes.md", _index_table(knowledge), "[All topics](topics.md).")
    write_atomic(
        folder / "knowledge.md", _page("Knowledge, by problem", text, [*pages, "knowledge/topics"], hidden=True)
    )


def _index_table(knowledge: Knowledge) -> str:
    """Return the table of the indexes that packages are installed from, those that are still fed first."""
    rows = []
    for row in sorted(knowledge.indexes.values(), key=lambda row: row.ended is not None):
        state = f"until {row.ended}; now {knowledge.indexes[row.successor].name}" if row.ended else row.channel
        serves = ", ".join(f"{name} {version}" for name, version in row.serves.items())
        read = ", ".join(f"[{number}]({source.url})" for number, source in enumerate(row.source, 1))
        cells = (f"`{row.url}`", state, serves, ", ".join(row.rocm), ", ".join(row.python), f"{row.read}: {read}")
        rows.append(f"| {' | '.join(_cell(cell) for cell in cells)} |")
    head = "| index | state | newest packages | ROCm | Python | read on, from |\n|---|---|---|---|---|---|"
    return "\n".join(["# Indexes to install from\n", head, *rows])


PROBLEMS = Path(__file__).parent / "problems.toml"
"""What people meet, and which entries speak about it."""


def _entry_table(entries: Iterable[Entry]) -> str:
    rows = [f"| [{_cell(headline(entry))}]({entry.id}.md) | {entry.kind} | {entry.status} |" for entry in entries]
    return "\n".join(["| entry | kind | status |", "|---|---|---|", *rows])


def _problem_page(folder: Path, problem: dict[str, Any], knowledge: Knowledge) -> str:
    """Write the page of a problem: what rocmend decides on a machine first, then the rest; return its name."""
    found = {
        entry.id: entry
        for pattern in problem["entries"]
        for entry in knowledge.entries.values()
        if fnmatchcase(entry.id, pattern)
    }
    stands = {Status.ACTIVE, Status.FIXED_IN}
    current = [entry for entry in found.values() if entry.status in stands]
    parts = (
        ("Checked on your machine by `rocmend doctor`", [entry for entry in current if entry.when]),
        ("Known besides", [entry for entry in current if not entry.when]),
        ("Disputed, refuted or superseded", [entry for entry in found.values() if entry.status not in stands]),
    )
    text = f"{problem['signs']}\n\nStart with {' or '.join(f'`{line}`' for line in problem['first'])}.\n"
    text += "".join(f"\n## {title}\n\n{_entry_table(entries)}\n" for title, entries in parts if entries)
    write_atomic(folder / "knowledge" / f"problem-{problem['id']}.md", f"# {problem['title']}\n\n{text}")
    return f"knowledge/problem-{problem['id']}"


def _check_reached(problems: Iterable[dict[str, Any]], knowledge: Knowledge) -> None:
    patterns = [pattern for problem in problems for pattern in problem["entries"]]
    idle = [one for one in patterns if not any(fnmatchcase(name, one) for name in knowledge.entries)]
    lost = [
        entry.id
        for entry in knowledge.entries.values()
        if entry.when and not any(fnmatchcase(entry.id, pattern) for pattern in patterns)
    ]
    if idle or lost:
        raise SystemExit(f"docs/problems.toml: patterns that match no entry: {idle}; entries not reached: {lost}")


def _targets(folder: Path) -> None:
    rows = []
    for target in targets():
        made = products(target.name)
        _write_leaf(
            folder / "targets" / f"{target.name}.md",
            markdown.render(target_document(target, made)),
            "[All gfx targets](../targets.md).",
        )
        named = ", ".join(product.name for product in made)
        rows.append(f"| [{target.name}](targets/{target.name}.md) | {_cell(named)} |")
    table = "\n".join(["| target | products |", "|---|---|", *rows])
    write_atomic(folder / "targets.md", _page("gfx targets", f"What each AMD GPU target is and can do.\n\n{table}"))


def _facts(folder: Path) -> None:
    rows = [f"| `{key}` | {_cell(text)} | {unit} |" for key, text, unit in sorted(declared_facts())]
    table = "\n".join(["| fact | meaning | from |", "|---|---|---|", *rows])
    write_atomic(folder / "facts.md", _page("Facts", f"What predicates can read.\n\n{table}"))


COMPILED = Path(__file__).parent / "reference" / "kernels-compiled.json"
"""The kept table of compiled kernels: `make kernels-table` makes it again."""


def _port_rules(folder: Path) -> None:
    known = porting.rules()
    registries = (porting.python, porting.cuda, porting.text)
    broken = [f"{one.module}: {one.reason}" for registry in registries for one in registry.problems]
    if broken:
        raise SystemExit("port rules that can't be loaded:\n" + "\n".join(broken))
    for rule in known:
        _write_leaf(
            folder / "port-rules" / f"{rule.id.lower()}.md",
            markdown.render(rule_document(rule)),
            "[All rules of a port](../port-rules.md).",
        )
    listed = markdown.render(rules_document(known)).partition("\n")[2].strip()
    for rule in known:
        listed = listed.replace(f"| {rule.id} |", f"| [{rule.id}](port-rules/{rule.id.lower()}.md) |", 1)
    write_atomic(folder / "port-rules.md", _page("Rules of a port", listed))


def _compiled_kernels(folder: Path) -> None:
    rows = read_table(COMPILED)
    by_op: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_op[row.op].append(row)
    for op, own in by_op.items():
        _write_leaf(
            folder / "compiled" / f"{op}.md",
            markdown.render(kernels_page(own)),
            "[All compiled kernels](../kernels-compiled.md).",
        )
    others = "; ".join(f"{', '.join(names)} as on {name}" for name, names in SAME_CODE.items())
    versions = ", ".join(sorted({row.triton for row in rows}))
    wrong = sum(bool(row.findings) for row in rows)
    text = (
        f"{len(rows)} launches that the representative cases of the ops make, one for each kernel, target, tuning "
        f"record and width of elements, compiled with Triton {versions} for GPUs that are not there by "
        f"`rocmend kernels compile`. {f'{wrong} have findings.' if wrong else 'None has a finding.'} Cases that "
        "were run as machine code stand [at the end](#executed-on-the-cpu).\n\n"
        + overview(rows)
        + f"\n\nThe machine code is the same on {others}."
        + "\n\nA finding is one of these:\n\n"
        + checks_text()
        + "\n\nOccupancy is counted in wavefronts a SIMD holds, the LDS of the workgroup taken into account. Spills are"
        " those of vector and scalar registers together, scratch is in bytes a lane, LDS in bytes a workgroup."
        "\n\n" + _executed()
    )
    pages = ", ".join(f"[{op}](compiled/{op}.md)" for op in sorted(by_op))
    write_atomic(folder / "kernels-compiled.md", _page("Compiled kernels", f"{text}\n\nBy op: {pages}."))


_EXECUTED = """Cases of the suites that passed as AMD machine code, by op and target. `rocmend.emulate` executes the
code object instruction by instruction; the results agree with the float64 reference, and with themselves bit by bit
when waves and workgroups run in reverse order. An access outside of a buffer, a race between waves, a missing wait or a
value that nothing wrote fails a case. The column *cases* counts the tiny and small ones that there are; those that were
run are the first of each function and implementation. This says nothing about speed, and is no run on a GPU."""


def _executed() -> str:
    runs = [run for run in rungs.shipped() if run.rung == "emulated"]
    dates = " and ".join(sorted({run.date for run in runs}))
    used = {", ".join(f"{name} {version}" for name, version in run.versions.items()) for run in runs}
    return (
        f"## Executed on the CPU\n\n{_EXECUTED}\n\n{emulated_overview(runs)}\n\n"
        f"{sum(run.count for run in runs):,} runs on {dates} with {'; '.join(sorted(used))}. `rocmend kernels check "
        "--emulate GPUS` runs all cases, with `--cases N` the first ones."
    )


_MLX = """`rocmend.mlx.core` has every public name of mlx.core 0.32.4, with its signature, but for what stands here.
Tests compare names and signatures with the stubs that the `mlx` package ships, and fail for a difference without a
reason; `python -m rocmend.mlx.programs.surface` prints them."""

_MLX_TESTS = """Tests of MLX's own suite (`python/tests` of 0.32.1) and of mlx-lm's (`tests/test_models.py`) that do not
pass here, on the CPU under Python 3.11 with recording in C. Of MLX's 847, 787 passed, 56 were skipped by conditions of
their own (MLX itself skips 55) and 4 did not pass; of mlx-lm's 79, 74 passed, one was skipped and 4 did not pass.
`benchmarks/mlx/suite.py CHECKOUT` runs them, and prints what does not pass and has no reason."""

_MLX_GPU_TESTS = """Those that do not pass on a GPU besides, as a run on an NVIDIA H200 showed
(`benchmarks/mlx/suite.py CHECKOUT --device gpu`)."""

_MLX_TABLES = (
    ("Left out", "name", "why", LEFT_OUT, "A call raises NotImplementedError and says why; an import never does."),
    ("Signatures that differ", "name", "how", DIFFERENT, ""),
    ("What behaves otherwise", "name", "how", BEHAVES, "These are called as in MLX."),
    ("MLX's and mlx-lm's own tests", "test", "why", TESTS, _MLX_TESTS),
    ("MLX's own tests on a GPU", "test", "why", GPU_TESTS, _MLX_GPU_TESTS),
)


def _call_path(folder: Path) -> None:
    write_atomic(folder / "quantized-matmul-path.md", call_path.page())


def _mlx_coverage(folder: Path) -> None:
    parts = [_MLX]
    for title, first, second, table, text in _MLX_TABLES:
        rows = [f"| `{name}` | {_cell(reason)} |" for name, reason in sorted(table.items())]
        said = "\n".join([f"| {first} | {second} |", "|---|---|", *rows]) if rows else "None."
        parts.append("\n\n".join(filter(None, (f"## {title}", text, said))))
    write_atomic(folder / "mlx-coverage.md", _page("MLX coverage", "\n\n".join(parts)))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")


def generate(folder: Path) -> None:
    """Write every generated page below ``folder``, after removing those of an earlier run."""
    for page in folder.rglob("*.md"):
        page.unlink()
    for part in (_commands, _knowledge, _targets, _facts, _port_rules, _compiled_kernels, _call_path, _mlx_coverage):
        part(folder)


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "reference" / "generated")
