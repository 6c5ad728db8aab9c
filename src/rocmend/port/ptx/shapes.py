"""Instructions that have no counterpart, and what is said of them."""

from __future__ import annotations

import re

from rocmend.port.ptx.program import Instruction

__all__ = ["told"]

_SHAPE = re.compile(r"m\d+n\d+(?:k\d+)?")
_SAID = {
    "mma": "a matrix product on tensor cores",
    "wmma": "a matrix product on tensor cores",
    "wgmma": "a matrix product of a warp group on tensor cores",
    "tcgen05": "a matrix product on fifth-generation tensor cores",
    "ldmatrix": "a load of matrix fragments",
    "stmatrix": "a store of matrix fragments",
    "movmatrix": "a transposition of matrix fragments",
    "mbarrier": "a barrier in shared memory",
    "elect": "the choice of one lane",
    "setmaxnreg": "a change of a warp group's registers",
    "griddepcontrol": "a dependency between grids",
    "mapa": "an address in another block of the cluster",
    "getctarank": "a rank in a cluster",
}
_TAIL = {
    "mma": "rocWMMA or MFMA and WMMA builtins have other fragments: rewrite the tile",
    "wmma": "use rocWMMA, whose fragments have the same interface",
}


def told(one: Instruction) -> str:
    """Return what an instruction is, with its shape, where it is known to have no counterpart; else nothing."""
    what = _SAID.get(one.root)
    if one.root == "cp" and "bulk" in one.modifiers:
        what = "a bulk copy by the tensor memory accelerator"
    if what is None:
        return ""
    shapes = [word for word in one.modifiers if _SHAPE.fullmatch(word)]
    types = [word for word in one.modifiers if re.fullmatch(r"(?:b?f|s|u|tf|e\dm)\d+\w*", word)]
    shape = f" of shape {shapes[0]}" if shapes else ""
    of = f" ({', '.join(types)})" if types else ""
    return f"{one.root} is {what}{shape}{of}; {_TAIL.get(one.root, 'AMD GPUs have none like it')}"
