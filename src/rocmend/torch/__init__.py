"""Convolutions and attention that run where the device's own libraries do not. Imports torch."""

from rocmend.torch.attend import SafeAttention, attention, safe_attention
from rocmend.torch.choice import Choice, NoWorkingPathError
from rocmend.torch.conv import SafeConv, safe_conv
from rocmend.torch.explain import explain
from rocmend.torch.outcomes import Outcome

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
