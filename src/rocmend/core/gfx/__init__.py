"""The gfx-target table: what each AMD GPU target is and can do, and the products that carry it."""

from rocmend.core.gfx.compute import override_between, peak_tflops
from rocmend.core.gfx.model import GfxTarget, MatrixUnit, Override, Product, Xnack
from rocmend.core.gfx.names import TargetId, parse_target_id
from rocmend.core.gfx.resolve import NamedGpu, known_names, resolve
from rocmend.core.gfx.table import (
    find,
    from_kfd_version,
    generic_members,
    generic_targets,
    lookup,
    product_for,
    products,
    targets,
)

__all__ = [
    "GfxTarget",
    "MatrixUnit",
    "NamedGpu",
    "Override",
    "Product",
    "TargetId",
    "Xnack",
    "find",
    "from_kfd_version",
    "generic_members",
    "generic_targets",
    "known_names",
    "lookup",
    "override_between",
    "parse_target_id",
    "peak_tflops",
    "product_for",
    "products",
    "resolve",
    "targets",
]
