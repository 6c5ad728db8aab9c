"""Environment variables that configure the ROCm stack and what runs on it."""

from __future__ import annotations

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.parse.environment import is_fact
from rocmend.machine.root import Root

SOURCE = "environment"


@collector(
    "environment",
    facts={
        "env.*": "Value of an environment variable; an unset one is null wherever env.collected is there.",
        "env.collected": "The environment was read: a variable with no fact is unset (or never read, being a secret).",
    },
    time_limit_s=2.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """State every variable that matters here; names that say a secret are not looked at."""
    for name, value in sorted(root.environ().items()):
        if is_fact(name):
            facts.put(f"env.{name}", value, source=f"{SOURCE} {name}")
    facts.put("env.collected", True, source=SOURCE)
