"""Several changes of the kernel command line as one step."""

from __future__ import annotations

import pytest

from rocmend.core.records import Phase
from rocmend.doctor.command_line import joined, joined_commands
from rocmend.doctor.records import Step

GRUB = "sudoedit /etc/default/grub   # GRUB_CMDLINE_LINUX_DEFAULT: {}"
KARGS = "sudo rpm-ostree kargs"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (  # what one of them runs before the edit stands before it, and the menu is written once
            [(GRUB.format("take a out"), "update-grub"), ("modinfo", GRUB.format("add b=1"), "update-grub")],
            ("modinfo", GRUB.format("take a out; add b=1"), "update-grub"),
        ),
        (  # grubby takes the last of two equal options
            [
                ("sudo grubby --update-kernel=ALL --remove-args=a",),
                ('sudo grubby --update-kernel=ALL --args="c=1 d=1"',),
                ("sudo grubby --update-kernel=ALL --remove-args='b e'",),
            ],
            ('sudo grubby --update-kernel=ALL --remove-args="a b e" --args="c=1 d=1"',),
        ),
        (  # each call of rpm-ostree makes a deployment
            [(f"{KARGS} --delete-if-present=a",), (f"{KARGS} --append-if-missing=b",)],
            (f"{KARGS} --delete-if-present=a --append-if-missing=b",),
        ),
        (
            [(f"{KARGS} --editor   # take a out",), (f"{KARGS} --editor   # take b out",), (f"{KARGS} --append=c",)],
            (f"{KARGS} --editor   # take a out; take b out", f"{KARGS} --append=c"),
        ),
        ([(), (GRUB.format("add b=1"),)], (GRUB.format("add b=1"),)),
    ],
)
def test_each_program_runs_once(parts: list[tuple[str, ...]], expected: tuple[str, ...]) -> None:
    assert joined_commands(parts) == expected


def _edit(action: str, **fields: str | tuple[str, ...]) -> Step:
    return Step(0, action, f"Do {action}", Phase.BOOT, commands=("edit",), settles=(action,), **fields)  # type: ignore[arg-type]


def test_a_check_passes_only_where_every_change_is_made() -> None:
    step = joined([_edit("a", check="! grep a x", expect="nothing"), _edit("b", check="grep b x", expect="b")])
    assert (step.check, step.expect) == ("{ ! grep a x; } && { grep b x; }", "nothing and b")
    assert (step.settles, step.joins) == (("a", "b"), ("a", "b"))
    partly = joined([_edit("a", check="! grep a x", expect="nothing"), _edit("b", expect="b is there")])
    assert (partly.check, partly.expect) == ("", "`! grep a x` prints nothing; b is there")


def test_checks_that_look_for_words_in_the_same_way_are_one_loop() -> None:
    looks = "! for p in {}; do grep $p x; done | grep ."
    step = joined(
        [_edit("a", check=looks.format("a=1")), _edit("b", check="test b"), _edit("c", check=looks.format("c d"))]
    )
    assert step.check == "{ ! for p in a=1 c d; do grep $p x; done | grep .; } && { test b; }"


def test_the_undo_is_one_sentence_unless_a_command_does_it() -> None:
    assert joined([_edit("a", undo="Put it back."), _edit("b", undo="Take it out.")]).undo.startswith("Put the old")
    assert (
        joined([_edit("a", undo="Put it back."), _edit("b", undo="`undo b`")]).undo == "(1) Put it back. (2) `undo b`"
    )
