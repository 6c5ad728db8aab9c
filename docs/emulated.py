"""Write the page of the instructions that the emulator models, and those that the tests compare.

Usage, from the root: python docs/emulated.py; it runs the tests of instructions (minutes) and writes
docs/reference/emulated-instructions.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from rocmend.emulate.known import known, modelled

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "emulated-instructions.md"
TARGETS = ("gfx906", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
FILES = [f"tests/emulate/test_{name}.py" for name in ("vector", "scalar", "matrix", "lanes", "memory", "sequences")]
RECORD = "ROCMEND_TESTED_INSTRUCTIONS"
CLASSES = {
    "Matrix": ("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_"),
    "Vector": ("v_",),
    "LDS": ("ds_",),
    "Scalar loads and stores": (
        "s_load_",
        "s_store_",
        "s_buffer_",
        "s_scratch_",
        "s_atomic_",
        "s_prefetch_",
        "s_dcache_",
        "s_atc_",
    ),
    "Scalar arithmetic and control": ("s_",),
    "Global, flat and scratch memory": ("global_", "flat_", "scratch_"),
    "Buffers": ("buffer_", "tbuffer_"),
    "Images": ("image_",),
}
HEAD = """# Emulated instructions

Written by `python docs/emulated.py`. For each target:

* *known*: mnemonics that LLVM's assembler (of `rocm-llvm-python`) has for the target. They are taken from the table
  of mnemonics in its library, each tried on each target; other spellings of an
  instruction count, too. They include what only graphics uses.
* *modelled*: those that the emulator executes. Any other, or a form of one that is not modelled, stops a launch by
  name and address when a wave comes to it.
* *tested*: those of which `tests/emulate` compares results on that target, alone and over many lanes, with a
  statement in exact arithmetic that shares nothing with the emulator's tables. An
  instruction that is modelled and not listed as tested is executed by the kernels' suites at most, and memory
  instructions are listed under the spelling that the tests use.

Approximations (`v_exp`, `v_log`, `v_rcp`, `v_rsq`, `v_sqrt`) are right within a unit of the last place in single and
half precision, within 2^29 units in double; sines and cosines within 2^-20, arguments up to 256.
Any NaN counts as right where NaN is. Matrix instructions are compared with numbers whose sums are exact: the order in
which hardware adds is not documented.

"""


def _class(name: str) -> str:
    return next((one for one, prefixes in CLASSES.items() if name.startswith(prefixes)), "Other")


def _tested() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    with tempfile.NamedTemporaryFile(prefix="rocmend-", suffix=".txt") as file:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--tier", "all", *FILES]
        subprocess.run(command, cwd=ROOT, check=True, env=os.environ | {RECORD: file.name})  # noqa: S603
        for line in Path(file.name).read_text(encoding="utf-8").splitlines():
            target, name = line.split()
            found[target].add(name)
    return found


def _names(by_name: dict[str, list[str]], everywhere: dict[str, int]) -> str:
    """Return names, each with its targets where it is not of all that know it."""
    parts = []
    for name, targets in sorted(by_name.items()):
        parts.append(f"`{name}`" if len(targets) == everywhere[name] else f"`{name}` ({', '.join(targets)})")
    return ", ".join(parts) or "none"


def page(tested: dict[str, set[str]]) -> str:
    """Return the page."""
    lists = {target: known(target) for target in TARGETS}
    everywhere = Counter(name for names in lists.values() for name in names)
    rows = ["| target | known | modelled | tested |", "|---|---|---|---|"]
    classes: dict[str, dict[str, dict[str, list[str]]]] = {
        one: defaultdict(lambda: defaultdict(list)) for one in CLASSES
    }
    counts = {one: [0, 0, 0] for one in CLASSES}
    seen: dict[str, set[str]] = defaultdict(set)
    for target, names in lists.items():
        there = [name for name in names if modelled(name)]
        proven = [name for name in there if name.replace("v_dual_", "v_", 1) in tested[target]]
        rows.append(f"| {target} | {len(names)} | {len(there)} | {len(proven)} |")
        for name in names:
            state = "tested" if name in proven else "modelled" if modelled(name) else "known"
            classes[_class(name)][state][name].append(target)
            seen[name].add(state)
    for name, states in seen.items():
        count = counts[_class(name)]
        count[0] += 1
        count[1] += bool(states & {"modelled", "tested"})
        count[2] += "tested" in states
    text = [*rows, "", "| class | known to some target | modelled | tested on some |", "|---|---|---|---|"]
    text += [f"| {one} | {' | '.join(map(str, count))} |" for one, count in counts.items()]
    for one, lists_of in classes.items():
        text += [
            "", f"## {one}", "", f"Modelled and tested: {_names(lists_of['tested'], everywhere)}", "",
            f"Modelled, not tested alone: {_names(lists_of['modelled'], everywhere)}", "",
            f"Not modelled: {_names(lists_of['known'], everywhere)}",
        ]  # fmt: skip
    return HEAD + "\n".join(text) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(_tested()), encoding="utf-8")
