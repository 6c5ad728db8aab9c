"""Convolutions and attention that run where the device's own libraries do not. Imports torch."""

import sys

try:
    from rocmend.fallbacks.attend import SafeAttention, attention, safe_attention
    from rocmend.fallbacks.choice import Choice, NoWorkingPathError
    from rocmend.fallbacks.conv import SafeConv, safe_conv
    from rocmend.fallbacks.explain import explain
    from rocmend.fallbacks.outcomes import Outcome
except ModuleNotFoundError as error:
    if error.name != "torch" or sys.argv[:1] != ["-m"]:
        raise
    # `python -m rocmend.fallbacks`: whoever runs a command gets no traceback
    from rocmend.core.optional import not_installed

    sys.stderr.write(f"{not_installed('python -m rocmend.fallbacks', 'torch')}\n")
    sys.exit(2)

__all__ = [
    "Choice",
    "NoWorkingPathError",
    "Outcome",
    "SafeAttention",
    "SafeConv",
    "attention",
    "explain",
    "safe_attention",
    "safe_conv",
]
