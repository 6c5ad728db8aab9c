from __future__ import annotations

import pytest

from rocmend.kb.load import Knowledge, load_entries, parse_entry
from rocmend.probe.knowledge import ids_for, names_target
from rocmend.probe.registry import registry

ENTRY = """+++
id = "{id}"
title = "Something about it"
kind = "issue"
status = "active"
claimed = "2026-01"
reviewed = 2026-11-21
review_by = 2027-05-21
severity = "warning"
subject = "gpu"
when = 'gpu.gfx_target == "gfx1010"'
tags = [{tags}]

[scope]
gfx = [{gfx}]

[[source]]
title = "A source"
url = "https://example.org/1"
date = "2026-01-01"
kind = "issue"
+++

Text.
"""


def knowledge(*rows: tuple[str, str, str]) -> Knowledge:
    entries = [parse_entry(ENTRY.format(id=name, tags=tags, gfx=gfx)) for name, tags, gfx in rows]
    return Knowledge({entry.id: entry for entry in entries})


def test_entries_that_share_a_tag_and_name_the_target_are_attached() -> None:
    known = knowledge(
        ("by-tag", '"miopen"', '"gfx1010"'),
        ("by-two-tags", '"MIOpen", "conv2d"', '"gfx1010"'),
        ("by-class", '"convolution"', '"gfx10-1-generic"'),
        ("other-target", '"miopen"', '"gfx1151"'),
        ("other-tag", '"vulkan"', '"gfx1010"'),
        ("no-target", '"miopen"', ""),
    )
    found = ids_for(registry.get("conv2d-forward"), "gfx1010", known)
    assert found == ("by-two-tags", "by-class", "by-tag")


@pytest.mark.parametrize("target", ["cpu", "sm_90", ""])
def test_nothing_is_known_of_other_devices(target: str) -> None:
    known = knowledge(("by-tag", '"miopen"', '"gfx1010"'))
    assert ids_for(registry.get("conv2d-forward"), target, known) == ()


def test_the_entries_that_come_with_rocmend_speak_of_convolutions_on_rdna1() -> None:
    known = load_entries()
    assert ids_for(registry.get("batchnorm-train"), "gfx1150", known)
    for entry_id in ids_for(registry.get("conv2d-forward"), "gfx1010", known):
        assert names_target(known.get(entry_id), "gfx1010")
