"""Which of LLVM's instructions the emulator models, by name."""

from __future__ import annotations

from rocmend.emulate.assemble import assemble, mnemonics
from rocmend.emulate.decode import UnmodelledError, control, lanes, matrix, memory, scalar
from rocmend.emulate.decode.text import Parts
from rocmend.emulate.generation import TARGETS
from rocmend.emulate.isa.table import scalar_table, vector_table

__all__ = ["known", "modelled"]

_ABSENT = ("instruction not supported on this GPU", "invalid instruction")


def known(target: str) -> list[str]:
    """Return the mnemonics that LLVM's assembler has for a target: those that it does not refuse as such.

    Raises:
        UsageError: LLVM is not installed, or does not know the target.
    """
    names = [name for name in mnemonics() if not name.endswith(("_e32", "_e64"))]
    wrong = assemble(names, target, 64 if TARGETS[target] == 9 else 32).wrong
    return [name for at, name in enumerate(names) if not wrong.get(at, "").startswith(_ABSENT)]


def modelled(name: str) -> bool:
    """Return whether an instruction is modelled, in the forms that compilers write.

    Args:
        name: LLVM's mnemonic, without the encoding's suffix.
    """
    plain = name.replace("v_dual_", "v_", 1)
    if plain in vector_table() or plain in scalar_table() or lanes.reads(plain) or matrix.reads(plain):
        return True
    return scalar.writes_exec(plain) or control.reads(plain) or _memory(plain)


def _memory(name: str) -> bool:
    try:
        return memory.reads(Parts(name, [], [], name))
    except UnmodelledError:
        return False
