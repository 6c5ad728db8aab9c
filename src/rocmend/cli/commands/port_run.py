"""``rocmend port``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from rocmend.cli.base import OneOf, rocmend_command
from rocmend.cli.names import RULE
from rocmend.cli.output import OutputFile, finish, no_output_file, output_options, tell
from rocmend.cli.progress import Progress
from rocmend.cli.source import targets_option
from rocmend.cli.streams import write_bytes
from rocmend.core.errors import UsageError
from rocmend.core.suggest import unknown
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome

if TYPE_CHECKING:
    from rocmend.cli.porting import Ported
    from rocmend.port.records import Analysis


@rocmend_command(
    "run",
    examples=(
        ("rocmend port .", "the plan: what the project is, what needs a port, what is rewritten; writes nothing"),
        ("rocmend port . --diff > rocm.patch", "the port as a patch"),
        ("rocmend port . --apply --target gfx1151", "write it; `rocmend port undo .` takes it back"),
        ("rocmend port . --select CU --ignore CU27 --format sarif", "some rules only, for code scanning"),
        ("rocmend port --explain CU13", "explain a rule: what it finds, why it matters, what to use instead"),
    ),
)
@click.argument("path", type=click.Path(path_type=Path), default=".")
@targets_option
@click.option("--apply", "write", is_flag=True, help="Write the port into the project.")
@click.option("--diff", "show_diff", is_flag=True, help="Print the port as a patch, and write nothing.")
@click.option("--suggestions", is_flag=True, help="Make suggested rewrites too.")
@click.option(
    "--style",
    type=OneOf(("inplace", "tree")),
    default=None,
    help="CUDA sources: gates in the files, or hipified copies beside them [default: as the last port, or inplace].",
)
@click.option("--allow-dirty", is_flag=True, help="Write although git has changes that are not committed.")
@click.option("--no-compile", is_flag=True, help="Write without compiling what the project has for ROCm first.")
@click.option("--select", type=RULE, metavar="ID", multiple=True, help="Rules to use: ids or prefixes (CU,PY01).")
@click.option("--ignore", type=RULE, metavar="ID", multiple=True, help="Rules not to use.")
@click.option(
    "--baseline",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="A file of known findings: only new ones are reported.",
)
@click.option(
    "--write-baseline",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Write the findings to a baseline file.",
)
@click.option("--explain", "rule_id", type=RULE, metavar="ID", default=None, help="Explain one rule in detail.")
@click.option("--rules", "list_rules", is_flag=True, help="List the rules.")
@click.option("--jobs", type=click.IntRange(1, 256), default=None, help="Worker processes [default: one per CPU].")
@click.option("--no-cache", is_flag=True, help="Do not use the cache.")
@click.option("-v", "--verbose", is_flag=True, help="List every place, file by file.")
@output_options("jsonl", "sarif")
def command(
    path: Path,
    targets: tuple[str, ...],
    write: bool,
    show_diff: bool,
    suggestions: bool,
    style: str | None,
    allow_dirty: bool,
    no_compile: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    baseline: Path | None,
    write_baseline: Path | None,
    rule_id: str | None,
    list_rules: bool,
    jobs: int | None,
    no_cache: bool,
    verbose: bool,
    output_format: str,
) -> None:
    """Port a CUDA project to ROCm.

    Without --apply nothing is written: the plan and the findings are printed. With --apply, every changed file is
    first proven to be unchanged for NVIDIA; then all changes are written, or none. Where the project supports ROCm
    itself, its code is compiled first, and a port that compiles less is refused. Exit code 1 means that something
    is left to do: a rewrite that is not written, a suggestion that is not taken, or a place to port by hand.
    """
    if list_rules or rule_id is not None:
        _tell_rules(rule_id, output_format)
    if write and show_diff:
        raise UsageError("port", "--apply writes the port, --diff prints it.", next_step="Use one of them.")
    if show_diff and output_format != "human":
        raise UsageError("port", f"--diff prints a patch, not {output_format}.", next_step="Omit --diff or --format.")
    from rocmend.cli.porting import analysed, listed, ported, project_folder, require_sources, style_of

    if write:
        project_folder("port --apply", path)
    if write_baseline is not None:
        OutputFile(write_baseline, "baseline", project=path)  # what is wrong with it is said before the work
    with Progress("rocmend port", "reading the project", quick=True, ticks=False) as progress:
        analysis = analysed(
            path,
            targets=targets,
            select=listed(select),
            ignore=listed(ignore),
            jobs=jobs,
            cache=not no_cache,
            progress=lambda done, of: progress("reading the project", done, of, "candidate files"),
        )
    require_sources("port", path, analysis)
    if write_baseline is not None:
        _write_baseline(write_baseline, analysis)
    if baseline is not None:
        from rocmend.port.baseline import read_baseline, without_known

        analysis = without_known(analysis, read_baseline(baseline))
    style = style_of(path, style)
    if show_diff:
        _print_patch(analysis, style, suggestions=suggestions)
    with Progress("rocmend port", "planning", quick=True, ticks=False) as progress:
        done = ported(
            path,
            analysis,
            write=write,
            style=style,
            suggestions=suggestions,
            allow_dirty=allow_dirty,
            compile_first=not no_compile,
            progress=lambda name, done, of: progress(f"compiling {name} the port", done, of, "parts"),
        )
    _finish(done, output_format, verbose=verbose)


def _print_patch(analysis: Analysis, style: str, *, suggestions: bool) -> NoReturn:
    """Print the port as a patch, say on stderr what is not in it, and leave."""
    from rocmend.cli.porting import needs_more
    from rocmend.cli.views.port import not_in_the_patch
    from rocmend.port.patch import patch
    from rocmend.port.plan import plan

    no_output_file("a patch")
    planned = plan(analysis, style=style, suggestions=suggestions)
    data = patch(planned.changes)
    write_bytes(data)
    sys.stdout.flush()
    missing = not_in_the_patch(analysis, planned.left_alone, suggestions=suggestions)
    if missing:
        tell(f"rocmend: not in the patch: {missing}. `rocmend port` without --diff shows them.")
    raise click.exceptions.Exit(
        FINDINGS if data or needs_more(analysis, planned.left_alone, suggestions=suggestions) else CLEAN
    )


def _finish(done: Ported, output_format: str, *, verbose: bool) -> None:
    def sarif_text() -> str:
        from rocmend.cli.views.port_sarif import render

        return render(done.analysis)

    def lines() -> str:
        from rocmend.cli.output import json_lines

        return json_lines(done.analysis.issues)

    from rocmend.cli.views.port import port_document

    outcome = Outcome("port", done, FINDINGS if done.open else CLEAN)
    others = {"sarif": sarif_text, "jsonl": lines}
    finish(outcome, output_format, lambda: port_document(done, everything=verbose), details=verbose, others=others)


def _write_baseline(path: Path, analysis: Analysis) -> None:
    from rocmend.port.baseline import write_baseline

    count = write_baseline(path, analysis)
    tell(f"{path}: {count} known findings written.")


def _tell_rules(rule_id: str | None, output_format: str) -> None:
    from rocmend.cli.views.port_rules import rule_document, rules_document
    from rocmend.port.rule import rules

    known = rules()
    if rule_id is None:
        finish(Outcome("port", [_record(rule) for rule in known]), output_format, lambda: rules_document(known))
    wanted = rule_id.strip().upper() if rule_id else ""
    found = next((rule for rule in known if rule.id == wanted), None)
    if found is None:
        raise unknown("port", "rule", rule_id or "", [rule.id for rule in known], listed="rocmend port --rules")
    finish(Outcome("port", _record(found)), output_format, lambda: rule_document(found))


def _record(rule: object) -> dict[str, object]:
    from rocmend.port.rule import Rule

    assert isinstance(rule, Rule)  # noqa: S101  told to the type checker
    names = ("id", "title", "language", "severity", "outcome", "sources", "page")
    return {name: getattr(rule, name) for name in names}
