"""Defects that people met, each looked for through the installed command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

Run = Callable[..., Any]


def flat(text: str) -> str:
    return " ".join(text.split())


def data(done: Any) -> Any:
    return msgspec.json.decode(done.out)["data"]


SWITCH = "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL"


def test_an_experimental_switch_is_no_step_of_a_healthy_machine(installed: Run) -> None:
    """Only optional steps: every form says that nothing needs to be done."""
    for form in ("human", "html", "md"):
        page = installed("doctor", "--machine", "rx-7900-xtx", "--format", form).out
        assert "Do this, in order" not in page
        assert page.index("Nothing needs to be done") < page.rindex("Optional") < page.rindex(f"{SWITCH}=1"), form
    done = installed("doctor", "--machine", "rx-7900-xtx", "--json")
    assert done.code == 0
    plan = data(done)["plan"]
    assert "steps" not in plan
    assert [step["action"] for step in plan["optional"]] == [f"set-variable:{SWITCH}=1"]
    script = installed("doctor", "--machine", "rx-7900-xtx", "--plan", "sh").out
    assert "Nothing needs to be done." in script
    assert f"#     export {SWITCH}=1" in script.partition("# Optional:")[2]


@pytest.mark.parametrize("form", [("--format", "human"), ("--plan", "sh")])
def test_what_is_optional_stands_at_the_end_of_the_plan(installed: Run, form: tuple[str, str]) -> None:
    page = installed("doctor", "--machine", "strix-halo", *form).out
    places = [page.index(part) for part in ("sudo reboot", "If it still fails, investigate", "Optional")]
    assert places == sorted(places)
