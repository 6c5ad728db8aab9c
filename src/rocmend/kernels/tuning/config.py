"""One set of tuning parameters."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from rocmend.core.errors import UnitError

# Options of Triton's compilers; waves_per_eu, matrix_instr_nonkdim and kpack exist only in AMD's compiler.
AMD_OPTIONS = frozenset(
    {"waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint", "llvm_fn_attrs", "wgp_cu_mode"}
)
NVIDIA_OPTIONS = frozenset({"launch_pdl", "maxnreg", "num_ctas"})
COMMON_OPTIONS = frozenset({"num_warps", "num_stages", "enable_fp_fusion"})

Value = int | str | bool


class Config:
    """Tuning parameters of a kernel, immutable and compared by identity.

    Names in capitals are constants that the kernel takes (``BLOCK_N``); the compiler's options are ``num_warps``,
    ``num_stages``, ``waves_per_eu`` …; the other names in small letters are the host code's (``split_k``).

    Args:
        values: Name to value.
        source: Where the record comes from: ``default``, or what was measured, where and when.
        record: File, kernel, class and target of the record, for errors.
    """

    __slots__ = ("_values", "amd", "constants", "nvidia", "record", "source")

    def __init__(self, values: Mapping[str, Value], source: str = "default", record: str = "") -> None:
        self._values = dict(values)
        self.source = source
        self.record = record
        self.constants = {name: value for name, value in values.items() if name.isupper()}
        # Explicit, because Triton's default changes in 3.10.
        common = {"enable_fp_fusion": True} | {name: value for name, value in values.items() if name in COMMON_OPTIONS}
        self.amd = common | {name: value for name, value in values.items() if name in AMD_OPTIONS}
        self.nvidia = common | {name: value for name, value in values.items() if name in NVIDIA_OPTIONS}

    def __getitem__(self, name: str) -> int:
        """Return a number of the record.

        Raises:
            UnitError: It has none of this name.
        """
        value = self._values.get(name)
        if value is None or isinstance(value, str):
            raise self.lacks(name, "the launch code")
        return value

    def lacks(self, name: str, needed_by: str) -> UnitError:
        """Return the error of a record without a number that something needs."""
        names = ", ".join(self._values) or "nothing"
        return UnitError(
            "tuning",
            f"{self.record or 'a tuning record'} has no {name}, which {needed_by} needs.",
            why=f"It has {names}.",
            next_step=f"Add {name} to the record, or correct the name that is meant to be it.",
        )

    def get(self, name: str, default: int) -> int:
        """Return a number of the record, or a default."""
        value = self._values.get(name, default)
        return default if isinstance(value, str) else value

    def items(self) -> dict[str, Value]:
        """Return a copy of all values."""
        return dict(self._values)

    def options(self, vendor: str) -> dict[str, Value]:
        """Return the compiler's options for a vendor's targets."""
        return self.amd if vendor == "amd" else self.nvidia

    def __repr__(self) -> str:
        """Show the values as a call."""
        return f"Config({', '.join(f'{name}={value}' for name, value in self._values.items())})"


@functools.lru_cache(maxsize=512)
def with_warps(config: Config, warps: int) -> Config:
    """Return a record with another number of wavefronts: the same object for the same two, as plans are kept by it."""
    return Config(config.items() | {"num_warps": warps}, config.source, config.record)
