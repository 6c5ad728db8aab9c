"""How gfx targets are laid out."""

from __future__ import annotations

from collections.abc import Sequence

from rocmend.core.gfx import GfxTarget, Product, generic_members, known_names, peak_tflops
from rocmend.core.units import count_text, size_text
from rocmend.report.document import Block, Document, Link, Links, Pairs, Section, Text, table


def targets_document(targets: Sequence[GfxTarget]) -> Document:
    """Lay out the whole table, a row a target."""
    rows = [
        [
            target.name,
            target.architecture,
            f"{target.wavefront_default}",
            target.matrix_unit.value,
            _rate(target, "fp16"),
            (target.generic_class or "none").removesuffix("-generic"),
            target.chip,
        ]
        for target in targets
    ]
    columns = ["target", "arch", "wave", "matrix", "FP16/clk/CU", "generic", "chip"]
    return Document(
        count_text(len(targets), "gfx target"),
        blocks=(table(columns, rows),),
        footer="`rocmend targets strix-halo` explains one, with products, peaks and sources.",
    )


def target_document(target: GfxTarget, products: Sequence[Product]) -> Document:
    """Lay out everything about one target."""
    blocks: list[Block] = [Section("The GPU", (Pairs(_facts(target)),))]
    if target.notes:
        blocks.append(Section("Notes", tuple(Text(note) for note in target.notes)))
    blocks.append(Section("Peak rates", (_rates(target),)))
    others = _other_names(target, products)
    if others:
        blocks.append(Section("Also called", (Text(", ".join(others)),)))
    if products:
        blocks.append(Section("Products", (_products(target, products),)))
    seen = {source.url: Link(source.title, source.url) for source in target.sources.values()}
    seen |= {source.url: Link(source.title, source.url) for product in products for source in product.sources}
    blocks.append(Links("Sources", tuple(seen.values())))
    return Document(
        f"{target.name}: {target.chip}", f"{target.architecture}, {target.generation}", blocks=tuple(blocks)
    )


def _other_names(target: GfxTarget, products: Sequence[Product]) -> list[str]:
    """Return the names that lead to the target and stand nowhere else on its page."""
    shown = {target.name, target.architecture, target.chip, *(product.name for product in products)}
    return [name for _, gfx, name in known_names() if gfx == target.name and name not in shown]


def _facts(target: GfxTarget) -> tuple[tuple[str, str, str], ...]:
    fine = {True: "yes", False: "no", None: "depends"}[target.fine_grained]
    members = generic_members(target.generic_class) if target.generic_class else ()
    sizes = ", ".join(str(size) for size in target.wavefront_sizes)
    return (
        ("gfx_target_version", str(target.kfd_version), f"HSA_OVERRIDE_GFX_VERSION={target.override_value} names it"),
        ("wavefront", f"{target.wavefront_default} lanes", f"the hardware runs {sizes}"),
        ("LLVM generic target", target.generic_class or "none", ", ".join(members)),
        ("matrix unit", target.matrix_unit.value, ", ".join(target.matrix_dtypes)),
        ("dot instructions", ", ".join(target.dot_instructions) or "none", ""),
        (
            "LDS",
            f"{size_text(target.lds_per_workgroup_bytes)} a workgroup",
            f"{size_text(target.lds_per_cu_bytes)} a CU",
        ),
        ("vector registers", f"{target.vgprs_per_simd} a SIMD", f"{target.simd_per_cu} SIMDs a CU"),
        ("memory", "shared with the processor (APU)" if target.is_apu else "its own", ""),
        ("fine-grained memory", fine, target.fine_grained_note),
        ("XNACK", target.xnack.value.replace("_", " "), ""),
        ("TheRock families", ", ".join(target.families) or "none", target.therock_name),
        ("left out by TheRock", ", ".join(target.excluded_libraries) or "nothing", ""),
    )


def _rate(target: GfxTarget, dtype: str) -> str:
    rate = target.flop_per_clock_per_cu.get(dtype)
    return "?" if rate is None else str(rate)


def _rates(target: GfxTarget) -> Block:
    rows = [
        [dtype, str(rate), target.not_accelerated.get(dtype, "")]
        for dtype, rate in target.flop_per_clock_per_cu.items()
    ]
    return table(["type", "operations per clock per CU", "computed as"], rows)


def _products(target: GfxTarget, products: Sequence[Product]) -> Block:
    rows = []
    for product in products:
        clock = product.max_clock_mhz
        peak = peak_tflops(target, "fp16", product.compute_units, clock) if clock else None
        rows.append(
            [
                product.name,
                str(product.compute_units),
                f"{clock} MHz" if clock else "",
                f"{product.memory_gb:g} GB" if product.memory_gb else "",
                f"{product.bandwidth_gb_s:g} GB/s" if product.bandwidth_gb_s else "",
                f"{peak:.4g}" if peak else "",
            ]
        )
    return table(["product", "CU", "clock", "memory", "bandwidth", "FP16 TFLOPS"], rows)
