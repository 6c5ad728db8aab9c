"""Instructions as the engine executes them, from LLVM's text of them."""

from rocmend.emulate.decode.lines import Decoded, decode
from rocmend.emulate.decode.operands import UnmodelledError

__all__ = ["Decoded", "UnmodelledError", "decode"]
