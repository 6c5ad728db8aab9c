"""Redaction: consistent, stable, and what was planted is gone whatever stands around it."""

from __future__ import annotations

from collections.abc import Iterator

from fuzz.target import BrokenPromiseError, Target
from rocmend.core.redact import Redactor

PLANTED = ("hf_" + "a1B2c3D4" * 4, "alice@example.com", "3c:7c:3f:1a:2b:3c", "https://bob:hunter2@example.com/x")
GONE = ("hf_a1B2", "alice@", "3c:7c:3f", "hunter2")


def redact(data: bytes) -> None:
    """Redact the input by itself, and with secrets between its halves."""
    text = data.decode(errors="replace")
    redactor = Redactor(hosts=["thunderbird.lan"], users=["alice"])
    once = redactor.text(text)
    if redactor.text(text) != once:
        raise BrokenPromiseError(f"redaction is not consistent: {once!r}")
    if redactor.text(once) != once:
        raise BrokenPromiseError(f"redaction is not stable: {once!r} to {redactor.text(once)!r}")
    half = len(text) // 2
    for secret, rest in zip(PLANTED, GONE, strict=True):
        shown = redactor.text(f"{text[:half]}\n{secret}\n{text[half:]}")
        if rest not in text and rest in shown:
            raise BrokenPromiseError(f"{secret} is left in {shown!r}")


def seeds() -> Iterator[bytes]:
    """Yield text that is replaced, and text that must stay."""
    for text in (
        "/home/alice 3c:7c:3f:1a:2b:3c 192.168.1.20 fe80::1 alice@example.com 1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "curl -H 'Authorization: Bearer abc.def' --password hunter2 https://x.example/?token=abc&sig=def",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
        'SSID: home_net\nESSID:"x" serial 12345 S/N: AB12 eui.0025385b11b0c8a9 wwn-0x5002538e40b0c8a9',
        "rocm 7.2.0.1 gfx1151 0000:c4:00.0 amdgpu 6.12.0.70100 kernel 6.17.0-14-generic",
        "thunderbird login: alice, THUNDERBIRD:0.0 C:\\Users\\Alice Smith ::ffff:10.0.0.1",
        "[ 5.0] amdgpu 0000:03:00.0: GPU reset begin! unique_id 0x1f2e3d4c5b6a7988",
    ):
        yield text.encode()


TARGET = Target(redact, seeds, max_bytes=1024)
