"""What the rules about operations across lanes report."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rocmend.port.cuda.file import CudaFile
from rocmend.port.records import Edit, Outcome
from rocmend.port.rule import Found
from rocmend.port.wave.sites import Site, literal_mask, wave

__all__ = ["NEEDS", "mask_of", "narrowed"]

NEEDS = ("warp32",)


def mask_of(file: CudaFile, site: Site) -> str:
    """Return what a site's mask is: ``full``, ``wide``, ``part``, ``named``, or ``none`` where it has none."""
    if not site.intrinsic.masked:
        return "none"
    if site.call is None:
        return "named"
    if not site.call.args:
        return "full"  # __syncwarp()
    return literal_mask(file.data[site.call.args[0].start : site.call.args[0].end])


def narrowed(file: CudaFile, chosen: Callable[[Site], bool], message: str) -> Iterator[Found]:
    """Yield the chosen operations across lanes, each with its helper in its place.

    Nothing is rewritten in a file whose code for ROCm counts its warps otherwise (CU07), nor where the project defines
    or asks for the name itself (CU35): those rules say so.

    Args:
        file: The source.
        chosen: Which of its operations are meant.
        message: What is said of one; ``{name}`` and ``{helper}`` stand for the names.
    """
    found = wave(file)
    if found.other_width is not None:
        return
    asked = {site.intrinsic.name for site in found.sites if site.tested}
    for site in found.sites:
        name, helper = site.intrinsic.name, site.intrinsic.helper
        if name in found.defined or name in asked or not chosen(site):
            continue
        token = file.tokens[site.at]
        yield Found(
            token.start,
            site.call.end if site.call is not None else token.end,
            message.format(name=name.decode(), helper=helper.decode()),
            (Edit(token.start, token.end, helper),),
            Outcome.AUTO,
            needs=NEEDS,
        )
