import itertools
import re

import pytest

from rocmend.core import gfx
from rocmend.core.errors import UsageError


def test_products_belong_to_targets_and_every_built_target_but_the_unreleased_has_one() -> None:
    names = {target.name for target in gfx.targets()}
    assert {product.gfx for product in gfx.products()} == names - {"gfx1250"}
    assert gfx.products("gfx1250") == ()
    assert all(product.gfx == "gfx1151" for product in gfx.products("amdgcn-amd-amdhsa--gfx1151"))
    with pytest.raises(UsageError):
        gfx.products("gfx9999")


def test_names_are_unique_and_figures_plausible() -> None:
    names = [product.name for product in gfx.products()]
    assert len(names) == len(set(names))
    for product in gfx.products():
        assert 1 <= product.compute_units <= 512
        assert product.max_clock_mhz is None or 800 <= product.max_clock_mhz <= 4000
        assert product.bandwidth_gb_s is None or 50 <= product.bandwidth_gb_s <= 10_000
        assert product.is_apu or product.memory_gb, f"{product.name} is discrete and has no memory size"
        assert product.compute_units % product.devices == 0
        assert all(re.fullmatch(r"0x[0-9a-f]{4}(:[0-9a-f]{2})?", entry) for entry in product.pci), product.pci


def test_a_device_id_belongs_to_one_target() -> None:
    for one, other in itertools.combinations(gfx.products(), 2):
        if one.gfx != other.gfx:
            # amdgpu.ids gives the Radeon 610M name to Raphael and Mendocino alike
            assert not set(one.device_ids) & set(other.device_ids), (one.name, other.name)


def test_names_round_trip() -> None:
    for product in gfx.products():
        assert gfx.product_for(product.gfx, f"AMD {product.name}") == product
        for alias in product.aliases:
            assert gfx.product_for(product.gfx, alias) == product


@pytest.mark.parametrize(
    ("target", "name", "device_id", "units", "expected"),
    [
        ("gfx1151", "AMD Radeon 8060S Graphics", None, None, "Radeon 8060S"),
        ("gfx1151", "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", "0x1586", 40, "Radeon 8060S"),
        ("gfx1151", None, 0x1586, 32, "Radeon 8050S"),
        ("gfx1151", None, "1586:C1", None, "Radeon 8060S"),
        ("gfx1151", None, "0x1586", None, None),
        ("gfx1151", None, None, 40, "Radeon 8060S"),
        ("gfx1151", None, None, None, None),
        ("gfx1151", "Some Other Card", None, None, None),
        ("gfx1100", "AMD Radeon RX 7900 XTX", "0x744c", 96, "Radeon RX 7900 XTX"),
        ("gfx1100", "Radeon RX 7900 XT", None, None, "Radeon RX 7900 XT"),
        ("gfx1100", "Radeon PRO W7900 Dual Slot", None, None, "Radeon PRO W7900 Dual Slot"),
        ("gfx1100", None, None, 96, None),
        ("gfx90a", "AMD Instinct MI250X / MI250", "0x740c", 104, "Instinct MI250"),
        ("gfx90a", "AMD Instinct MI250X / MI250", "0x740c", 110, "Instinct MI250X"),
        ("gfx942", "AMD Instinct MI300X", "0x74a1", 38, "Instinct MI300X"),
        ("gfx942", None, "0x74a0", None, "Instinct MI300A"),
        ("gfx1010", None, "0x731f:ca", 36, "Radeon RX 5600 XT"),
        ("gfx1010", None, "0x731f", 36, None),
        ("gfx1250", "anything", "0x0001", 1, None),
    ],
)
def test_product_for(
    target: str, name: str | None, device_id: str | int | None, units: int | None, expected: str | None
) -> None:
    found = gfx.product_for(target, name, device_id, compute_units=units)
    assert (found.name if found else None) == expected


def test_strix_halo_bandwidth() -> None:
    product = gfx.product_for("gfx1151", "Radeon 8060S")
    assert product is not None
    assert product.bandwidth_gb_s == 256.0  # 256 bit of LPDDR5X-8000
