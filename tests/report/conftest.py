from __future__ import annotations

import pytest

from rocmend.report.document import Card, Cell, Code, Document, Link, Links, Pairs, Section, Text, Tone, table


@pytest.fixture
def document() -> Document:
    card = Card(
        "The save area is too small",
        Tone.ERROR,
        "error",
        "cwsr-too-small",
        blocks=(
            Pairs((("gpu.0.cwsr_size_bytes", "13942784", "/sys/class/kfd"),)),
            Text("Boot a **newer** kernel, see `uname -r`."),
            Code("sudo reboot", "bash"),
        ),
        details=(Text("First.\n\n- one\n- two"), Links("Source", (Link("Issue 5724", "https://example.org/5724"),))),
    )
    rows: list[list[str | Cell]] = [
        ["gfx1151", Cell("full", Tone.GOOD)],
        ["gfx1010", Cell("none | at all", Tone.ERROR)],
    ]
    return Document(
        "Strix Halo",
        "One thing stops you.",
        Tone.ERROR,
        (Section("Findings", (card,)), Section("Support", (table(["target", "state"], rows, "Support"),))),
        "Ask more with `rocmend doctor --explain ID`.",
    )
