"""Cases of rules whose rewrite is a region of whole lines."""

from __future__ import annotations

from rocmend.port.rule import Case

__all__ = ["gated"]


def gated(old: str, new: str, before: str = "", after: str = "") -> Case:
    """Return the case in which the lines ``old`` get ``new`` beside them, between lines that stay as they are.

    Args:
        old: Whole lines, without the last line end.
        new: What they become for ROCm.
        before: The lines before them, with their line ends.
        after: The lines after them.
    """
    region = f"#ifdef USE_ROCM\n{new}\n#else\n{old}\n#endif\n"
    return Case(f"{before}{old}\n{after}", f"{before}{region}{after}")
