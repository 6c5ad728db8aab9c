"""Steps in every rendering: each part is shown, in the terminal within its width, and nothing of it acts."""

from __future__ import annotations

import io

from rocmend.report import html, markdown, terminal
from rocmend.report.document import Card, Document, Option, Step, Steps

PARTS = (
    "boot old",
    "Update the firmware",
    "sudo apt upgrade",
    "0x84",
    "grep MES",
    "the older package",
    "mes-0x83",
    "boots old code",
)
STEPS = Steps(
    (
        Step(
            number=1,
            title="Update the firmware",
            text="It **hangs** under the old one.",
            commands=("sudo apt upgrade " + "x" * 90,),
            needs=("root", "reboot"),
            risk="medium: boots old code",
            check="grep MES version",
            expect="0x84 or higher",
            undo="Install `the older package` again.",
            settles=("mes-0x83", "mes-hang"),
            options=(
                Option(
                    "Until then", "Boot with cwsr_enable=0", "Slower.", ("reboot now",), ("root",), "low", "boot old"
                ),
                Option("Or", "Buy another", "It costs."),
            ),
        ),
        Step(0, "Read the log", expect="no line"),
    )
)


def _printed(width: int, *, details: bool = True) -> str:
    stream = io.StringIO()
    terminal.render(Document("t", blocks=(STEPS,)), stream, width=width, details=details)
    return stream.getvalue()


def test_every_rendering_shows_every_part() -> None:
    document = Document("t", blocks=(STEPS,))
    for text in (_printed(80), markdown.render(document), html.render(document)):
        for part in (
            *PARTS,
            "Until then",
            "cwsr_enable=0",
            "reboot now",
            "Needs root, reboot.",
            "Then check: no line",
            "boot old",
        ):
            assert part in text


def test_without_details_a_step_is_its_title_and_commands() -> None:
    lines = _printed(80, details=False).splitlines()
    assert lines[2] == "1. Update the firmware (root, reboot, medium risk)"
    assert lines[3].endswith("x" * 90)
    assert lines[4:] == [
        "   Until then: Boot with cwsr_enable=0 (root, low risk). Undo: boot old",
        "       reboot now",
        "   Or: Buy another",
        "     It costs.",
        "- Read the log",
    ]


def test_terminal_numbers_steps_and_wraps_all_but_commands() -> None:
    for width in (50, 80):
        lines = _printed(width).splitlines()
        assert "1. Update the firmware" in lines
        assert "- Read the log" in lines
        assert max(len(line) for line in lines if "apt" not in line) <= width
        assert any(line.endswith("x" * 90) for line in lines)


def test_findings_are_linked_from_the_page() -> None:
    page = html.render(Document("t", blocks=(STEPS, Card("The firmware is broken", ref="mes-0x83"))))
    assert 'Settles <a href="#mes-0x83">mes-0x83</a>, mes-hang</p>' in page
    assert 'id="step-1"' in page


def test_commands_in_what_is_expected_are_code() -> None:
    page = html.render(Document("t", blocks=(Steps((Step(1, "t", expect="`uname -r` shows *6.18*"),)),)))
    assert "Then check: <code>uname -r</code> shows *6.18*</p>" in page


def test_what_a_machine_says_does_not_act() -> None:
    bad = "<img src=x onerror=alert(1)>"
    option = Option(bad, bad, bad, (bad,), (bad,), bad)
    step = Step(1, bad, bad, (bad,), (bad,), bad, bad, bad, bad, bad, (bad,), (option,))
    page = html.render(Document("t", blocks=(Steps((step,)),)))
    assert "<img" not in page
    text = markdown.render(Document("t", blocks=(Steps((step,)),)))
    outside = [line for number, line in enumerate(text.split("```")) if number % 2 == 0]
    assert not any("<img" in part.replace("\\<img", "").replace(f"`{bad}`", "") for part in outside)
