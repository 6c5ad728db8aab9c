"""The page that follows one call from MLX to the launch: its picture is drawn from the code that it names.

Each step is a function of a file, with the names of what it calls next. A step that is no longer in the code fails the
build.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path
from typing import NamedTuple

import rocmend
from rocmend.kernels import registry
from rocmend.kernels.select import Considered, consider
from rocmend.kernels.target import by_name

SOURCE = Path(rocmend.__file__).parent
OP = "kernels/ops/matmul/quantized_matmul"
TARGET = "gfx1151"
SELECTING = "kernels/select.py"


class Step(NamedTuple):
    """A function on the way.

    Args:
        path: Its file, below the package.
        name: Function, class or constant.
        calls: Names in its source that lead on.
    """

    path: str
    name: str
    calls: tuple[str, ...] = ()


STEPS = (
    Step("mlx/ops/quantized_products.py", "quantized_matmul", ("record(QUANTIZED_MATMUL",)),
    Step("mlx/ops/quantized_products.py", "_run", ("kernels.quantized_matmul(",)),
    Step(f"{OP}/function.py", "quantized_matmul", ("_product(",)),
    Step("kernels/plan_cache.py", "cached", ("self.calls.get(key)", "self.plan(")),
    Step(f"{OP}/function.py", "_plan", ("Problem(", "plan_of(implementation(OP")),
    Step(SELECTING, "implementation", ("_select(",)),
    Step(SELECTING, "consider", ("backends.implementations(", "_rejection(")),
    Step(f"{OP}/__init__.py", "OP", ("implementations=",)),
    Step(f"{OP}/rules.py", "rejects_gemv", ("rejects_row(",)),
    Step("kernels/backends/__init__.py", "implementations", ("IMPLEMENTATIONS",)),
    Step(f"{OP}/host.py", "kernel", ("launches = plan(ops", "launches(*tensors, out)")),
    Step(f"{OP}/gemv.py", "plan", ("config_for(", "LaunchPlan(gemv_kernel")),
    Step("kernels/tuning/lookup.py", "config_for", ("find(",)),
    Step("kernels/launch.py", "LaunchPlan", ("bind(", "self._bound(")),
    Step("kernels/launch.py", "BoundKernel", ("compiled.run(",)),
    Step(f"{OP}/kernels/gemv.py", "gemv_kernel"),
)
INTRODUCTION = f"""What decides which kernel computes a product of an MLX program with quantized weights, and launches
it, stands in twelve files. Each step below is a function, with the first line of its docstring. The picture and the
table are drawn from the code when these pages are built. Between the first two steps the product is recorded, and
computed when its value is asked for ([plans](../../explanation/mlx.md)).

The first call of a kind runs all steps. Later ones find a plan in the cache (`plan_cache.py`) and go to the launch, and
calls that recur are [captured and replayed](../../explanation/kernels.md#launches). What is selected is that of one row
of x with 4-bit weights, 4096 by 4096, on {TARGET}: `rocmend kernels explain quantized_matmul` with
these fields prints the same with the reasons."""


class Described(NamedTuple):
    """A step, and what its docstring says."""

    step: Step
    line: int
    text: str


def described(step: Step) -> Described:
    """Find a step in the code.

    Raises:
        SystemExit: It is not there, or does not lead on as it says.
    """
    text = (SOURCE / step.path).read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        found = getattr(node, "name", None) or next((one.id for one in _targets(node) if isinstance(one, ast.Name)), "")
        if found == step.name and isinstance(node, ast.stmt):
            body = ast.get_source_segment(text, node) or ""
            if missing := [call for call in step.calls if call not in body]:
                raise SystemExit(f"docs/call_path.py: {step.path}:{step.name} has no {missing[0]!r} any more")
            doc = ast.get_docstring(node) if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
            doc = registry.get("quantized_matmul").summary if step.name == "OP" else doc
            return Described(step, node.lineno, (doc or "").partition("\n")[0].replace("``", "`"))
    raise SystemExit(f"docs/call_path.py: {step.path} has no {step.name}")


def _targets(node: ast.AST) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else []


def selected() -> list[Considered]:
    """Return the implementations as they are considered for one row of x."""
    op = registry.get("quantized_matmul")
    problem = op.problem("bfloat16", "affine", 4, 64, True, 1, 1, 4096, 4096)
    return consider(op, problem, by_name(TARGET), here=False)


def picture(steps: list[Described], found: list[Considered]) -> str:
    """Draw the steps, one below the other, and the implementations beside the selection."""
    high, wide, gap = 40, 400, 14
    parts, at, row = [], {}, high + gap
    for index, (step, _, _) in enumerate(steps):
        y = index * row
        at[step] = y
        parts.append(
            f'<rect x="1" y="{y + 1}" width="{wide}" height="{high}" rx="6" class="box"/>'
            f'<text x="12" y="{y + 18}" class="name">{escape(step.name)}</text>'
            f'<text x="12" y="{y + 33}" class="file">{escape(step.path)}</text>'
        )
        if index:
            parts.append(f'<path d="M 24 {y - gap + 2} V {y - 1}" class="edge" marker-end="url(#to)"/>')
    top = at[next(step for step, _, _ in steps if step.name == "consider")]
    for index, (one, taken, _, _) in enumerate(found):
        y = top + index * 26 - 40
        kind = "taken" if taken else "other"
        begin, end = top + high // 2, y + 11
        parts.append(
            f'<path d="M {wide + 1} {begin} C {wide + 40} {begin}, {wide + 30} {end}, {wide + 62} {end}" '
            f'class="edge {kind}"/><rect x="{wide + 64}" y="{y}" width="216" height="22" rx="6" class="box {kind}"/>'
            f'<text x="{wide + 74}" y="{y + 15}" class="name {kind}">{escape(one.name)} '
            f'<tspan class="file">{one.tier}</tspan></text>'
        )
    style = (
        ".box{fill:none;stroke:currentColor;stroke-opacity:.45}.box.taken{stroke:#2a9d5c;stroke-opacity:1;stroke-width:2}"
        ".name{font:600 13px sans-serif;fill:currentColor}.file{font:400 11px monospace;fill:currentColor;opacity:.75}"
        ".edge{fill:none;stroke:currentColor;stroke-opacity:.45}.edge.taken{stroke:#2a9d5c;stroke-opacity:1;stroke-width:2}"
        ".name.other{font-weight:400}"
    )
    chosen = next((one.implementation.name for one in found if one.taken), "none")
    title = f"From mx.quantized_matmul to the launch: {len(steps)} steps; {chosen} is selected on {TARGET}"
    return (
        f'<svg viewBox="0 0 {wide + 284} {len(steps) * row}" width="100%" style="max-width:{wide + 284}px" role="img" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title><style>{style}</style><defs>'
        '<marker id="to" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>{"".join(parts)}</svg>'
    )


def page() -> str:
    """Return the page in Markdown."""
    steps = [described(step) for step in STEPS]
    rows = [
        f"| {number} | `{step.name}` | `{step.path}:{line}` | {_cell(text)} |"
        for number, (step, line, text) in enumerate(steps, 1)
    ]
    table = "\n".join(["| | function | file | what it does |", "|---|---|---|---|", *rows])
    files = len({step.path for step in STEPS})
    if files > 12:
        raise SystemExit(f"docs/call_path.py: the call goes through {files} files, more than 12")
    return (
        f"# From mx.quantized_matmul to the launch\n\n{INTRODUCTION}\n\n"
        f"```{{raw}} html\n{picture(steps, selected())}\n```\n\n{table}\n"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
