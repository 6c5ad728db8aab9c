"""Convolutions and attention that run where the device's own libraries do not. Imports torch."""

import sys

try:
    from rocmend.torch.attend import SafeAttention, attention, safe_attention
    from rocmend.torch.choice import Choice, NoWorkingPathError
    from rocmend.torch.conv import SafeConv, safe_conv
    from rocmend.torch.explain import explain
    from rocmend.torch.outcomes import Outcome
except ModuleNotFoundError as error:
    if error.name != "torch" or sys.argv[:1] != ["-m"]:
        raise
    # `python -m rocmend.torch`: whoever runs a command gets no traceback
    from rocmend.core.optional import not_installed

    sys.stderr.write(f"{not_installed('python -m rocmend.torch', 'torch')}\n")
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
