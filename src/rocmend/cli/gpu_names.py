"""The type of options and arguments that name a GPU: ``gfx1151``, ``RX 7900 XTX``, ``strix-halo``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from rocmend.cli.output import tell

__all__ = ["OTHER_MAKERS", "GpuName", "GpuNames", "product_named"]

OTHER_MAKERS = r"sm_?\d{2,3}|cpu"
"""Names of targets that are no AMD GPU's, for ``others``."""


if TYPE_CHECKING:
    _Base = click.ParamType[str]
else:  # older versions of click have no such parameter
    _Base = click.ParamType

_TARGETS = re.compile(r"(?:(?:gfx|sm)\w+\s*)+")
_SPACES = re.compile(r"[\s_]+")
_PRODUCTS = "rocmend.products"
"""Where a command's context keeps the products that its options named, by their targets."""


class GpuName(_Base):
    """A GPU by any name that people use; becomes its gfx target, and says on stderr which that is.

    Args:
        settings: Keep settings that the name has, as in ``gfx90a:xnack-``.
        others: Names of devices of other makers, or of targets that are not in the table, that are taken as they are.
    """

    name = "gpu"

    def __init__(self, *, settings: bool = False, others: str = "") -> None:
        self._settings = settings
        self._others = re.compile(others) if others else None

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the gfx target that a name stands for.

        Raises:
            UsageError: No such GPU, or several.
        """
        del param
        if self._others is not None and self._others.fullmatch(value.strip().lower()):
            return value.strip().lower()
        from rocmend.core.gfx import parse_target_id, resolve

        found = resolve(value)
        if found.said and not (ctx is not None and ctx.resilient_parsing):
            tell(found.said)
        if found.product and ctx is not None:
            ctx.meta.setdefault(_PRODUCTS, {})[parse_target_id(found.gfx).processor] = found.product
        return found.gfx if self._settings else parse_target_id(found.gfx).processor

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Return the targets and names that go on from what was typed, each with the GPU it is."""
        del ctx, param
        from rocmend.core.gfx import known_names

        typed = _SPACES.sub("-", incomplete.lower())
        return [
            CompletionItem(word, help=shown if word == gfx else f"{shown}, {gfx}")
            for word, gfx, shown in known_names()
            if word.startswith(typed)
        ]


def product_named(target: str | None) -> str:
    """Return the product whose name was given for a target; "" where the name was not of one product."""
    context = click.get_current_context(silent=True)
    return str(context.meta.get(_PRODUCTS, {}).get(target, "")) if context is not None else ""


class GpuNames(GpuName):
    """Several GPUs in one value, with commas between; becomes their targets, with commas between."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the gfx targets that the names stand for.

        Raises:
            UsageError: No such GPU, or several.
        """
        convert = super().convert
        return ",".join(convert(name, param, ctx) for name in self._split(value))

    @staticmethod
    def _split(value: str) -> list[str]:
        """Split at commas; at spaces, too, where they stand between targets and not within a name."""
        parts = [part.strip() for part in value.split(",") if part.strip()]
        return [word for part in parts for word in (part.split() if _TARGETS.fullmatch(part.lower()) else [part])]
