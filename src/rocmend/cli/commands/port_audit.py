"""``rocmend port audit``."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from rocmend.cli.base import rocmend_command
from rocmend.cli.output import OutputFile, finish, output_options
from rocmend.cli.streams import write_text
from rocmend.core.records import Severity
from rocmend.report.envelope import CLEAN, FINDINGS, Outcome


@rocmend_command(
    "audit",
    examples=(
        ("rocmend port audit .", "the project's requirements against the active Python environment"),
        ("rocmend port audit . --python ~/rocm/bin/python", "against another environment"),
        ("rocmend port audit . --script install-rocm.sh", "and write the install plan as a script"),
    ),
)
@click.argument("path", type=click.Path(path_type=Path), default=".")
@click.option("--python", metavar="PATH", default=sys.executable, help="The interpreter [default: the one that runs].")
@click.option(
    "--script",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Write the install plan as a shell script; - prints it.",
)
@output_options("sarif")
def command(path: Path, python: str, script: Path | None, output_format: str) -> None:
    """Say what installing a project would change.

    This is about the ROCm environment, before anything is installed. The plan never replaces a PyTorch for ROCm: what a
    project pins for CUDA is left out, with the reason. Nothing is installed, and nothing of the project is imported.
    What could not be read, and what lies outside of the project, is named: what it asks for is not in the plan. Exit
    code 1 means that there is an error or a warning, such a file too.
    """
    from rocmend.cli.porting import project_folder
    from rocmend.cli.views.port_audit import audit_document, audit_sarif
    from rocmend.port.build.audit import audit
    from rocmend.port.build.install import install_plan

    project_folder("port audit", path)
    file = OutputFile(script, "script", project=path) if script is not None and str(script) != "-" else None
    found = audit(path, python)
    plan = install_plan(found)
    serious = any(one.severity in {Severity.ERROR, Severity.WARNING} for one in found.findings)
    code = FINDINGS if serious else CLEAN
    unwritten = file.tried(plan.script()) if file is not None else None
    if file is None and script is not None:
        write_text(plan.script())
        raise click.exceptions.Exit(code)
    data = {"audit": msgspec.to_builtins(found), "plan": msgspec.to_builtins(plan), "script": str(script or "")}
    outcome = Outcome("port audit", data, code)
    others = {"sarif": lambda: audit_sarif(found)}
    written = script if unwritten is None else None
    finish(outcome, output_format, lambda: audit_document(found, plan, written), others=others, unwritten=unwritten)
