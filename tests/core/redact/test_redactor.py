"""What identifies goes, consistently; what a diagnosis needs stays."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.core.redact import GENERIC_NAMES, KNOWN_GROUPS, Redactor


@pytest.fixture
def redactor() -> Redactor:
    return Redactor(hosts=["thunderbird.corp.example", "thunderbird"], users=["alice", "bo", "ubuntu"])


KEPT = [
    "6.6.87.2-microsoft-standard-WSL2",
    "6.17.0-7-generic",
    "Linux version 6.8.0-50-generic (buildd@lcy02-amd64-001)",
    "1.2.3.4",
    "cudnn 10.0.1.6",
    "amd-smi 25.5.1.0",
    "7.2.53211-abc1234",
    "0000:c5:00.0",
    "amdgpu 0000:c5:00.0: amdgpu: MODE2 reset",
    "skipped device 1002:7300, PCI rejects atomics 730<0",
    "initializing kernel modesetting (IP DISCOVERY 0x1002:0x1586 0xF111:0x000A 0xC1)",
    "023.011.000.039.000001",
    "113-STRXLGEN-001",
    "2.5.1+rocm6.2",
    "gfx90a:sramecc+:xnack-",
    "d41586e201b2b3b5c1d43a5e3f0c2f6e53dd7a2b",
    "0x210000EE",
    "SMC feature version: 0, program: 0, firmware version: 0x004e7f00 (78.127.0)",
    "Sep 05 08:56:22.546687",
    "08:56:22 [0] step",
    "2026-01-02T08:56:22 [0] step",
    "kernel.cpp:12:30 [0] note",
    "2026-01-02T03:04:05+00:00",
    "at::native::dequantize c10::cuda::device",
    "VRAM: 512M 0x0000008000000000 - 0x000000801FFFFFFF (512M used)",
    "ubuntu 24.04 ubuntu-24.04",
    "user@1000.service getty@tty1.service",
    "127.0.0.1:11434 0.0.0.0:8000",
    "Serial Number: N/A",
    "unique_id 0",
    "simd_count 80\ngfx_target_version 110501\nlocation_id 50432",
    "GPU-XX CPU-XX",
    "/opt/rocm-7.1.0/lib/librocblas.so.5.1",
    "/usr/lib/modules/6.17.0-7-generic/updates/dkms/amdgpu.ko.zst",
    "serial8250: ttyS0 at I/O 0x3f8",
]


@pytest.mark.parametrize("text", KEPT)
def test_kept(redactor: Redactor, text: str) -> None:
    assert redactor.text(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/carol/venv/bin", "/home/user1/venv/bin"),
        ("/home/ubuntu/x", "/home/user1/x"),
        ("/var/home/carol", "/var/home/user1"),
        ("/mnt/c/Users/Carol/AppData", "/mnt/c/Users/user1/AppData"),
        ("C:\\Users\\Carol\\x", "C:\\Users\\user1\\x"),
        ("/scratch/alice/models", "/scratch/user1/models"),
        ('alice is not member of "render" group', 'user1 is not member of "render" group'),
        ("thunderbird.corp.example is up", "host1 is up"),
        ("Nov 05 08:56:22 gpu-box kernel: amdgpu: x", "Nov 05 08:56:22 host1 kernel: amdgpu: x"),
        ("[    0.000000] ubuntu kernel: amdgpu", "[    0.000000] host1 kernel: amdgpu"),
        ("2026-11-20T10:00:00+0100 box.lan kernel: x", "2026-11-20T10:00:00+0100 host1 kernel: x"),
        ("mac 3c:7c:3f:1a:2b:3c up", "mac 02:00:00:00:00:01 up"),
        ("3C-7C-3F-1A-2B-3C", "02-00-00-00-00-01"),
        ("a0:b1:c2:d3:e4:f5:a6:b7", "02:00:00:00:00:00:00:01"),
        ("192.168.1.20", "192.0.2.1"),
        ("http://10.1.2.3:8000/v1", "http://192.0.2.1:8000/v1"),
        ("server 10.1.2.3", "server 192.0.2.1"),
        ("10.20.30.0/24", "192.0.2.1/24"),
        ("fe80::1ff:fe23:4567:890a", "2001:db8::1"),
        ("inet6 2a02:810d::1/64", "inet6 2001:db8::1/64"),
        ("2a02:810d:1:2:3:4:5:6", "2001:db8::1"),
        ("Uuid:                    GPU-3d4595974090853c", "Uuid:                    GPU-0000000000000001"),
        ("unique_id 11420932837461522459", "unique_id 1"),
        ('"Unique ID": "0x3d4595974090853c"', '"Unique ID": "0x0000000000000001"'),
        ('"asic_serial": "0xABCDEF0123456789"', '"asic_serial": "0x0000000000000001"'),
        ('"product_serial": "PCB012345-0001"', '"product_serial": "serial-1"'),
        ('"Serial Number": "692139000119"', '"Serial Number": "1"'),
        ("SerialNumber: 4C530001", "SerialNumber: 1"),
        ("FRU_ID: 113-AMDG000-300000082", "FRU_ID: serial-1"),
        ("0123456789abcdef0123456789abcdef", "0" * 31 + "1"),
        ("UUID 1b4e28ba-2fa1-11d2-883f-0016d3cca427", "UUID 00000000-0000-0000-0000-000000000001"),
        ("mail carol@example.com now", "mail person1@example.invalid now"),
        ("https://carol:hunter2@index.example/simple", "https://redacted@index.example/simple"),
        ("token hf_abcdefghijklmnopqrstuvwx", "token redacted"),
        ("quiet root=UUID=1b4e-28ba splash", "quiet root=redacted splash"),
        ("rd.luks.uuid=luks-1 ip=10.0.0.5::10.0.0.1 quiet", "rd.luks.uuid=redacted ip=redacted quiet"),
        ("my_password=hunter2 amdgpu.cwsr_enable=0", "my_password=redacted amdgpu.cwsr_enable=0"),
    ],
)
def test_replaced(redactor: Redactor, text: str, expected: str) -> None:
    assert redactor.text(text) == expected
    assert redactor.text(redactor.text(text)) == expected


def test_the_same_thing_keeps_its_placeholder(redactor: Redactor) -> None:
    first = redactor.text("/home/alice and alice and bo and /home/bo; 192.168.0.9 192.168.0.10 192.168.0.9")
    assert first == "/home/user1 and user1 and bo and /home/user2; 192.0.2.1 192.0.2.2 192.0.2.1"
    assert redactor.text("alice 192.168.0.10") == "user1 192.0.2.2"
    assert redactor.replaced == {"ip address": 2, "user": 2}


def test_groups(redactor: Redactor) -> None:
    assert [redactor.group(name) for name in ("render", "alice", "deep-learning-team", "1007", "")] == [
        "render",
        "user1",
        "group1",
        "1007",
        "",
    ]


def test_environment(redactor: Redactor) -> None:
    assert redactor.field("OLLAMA_HOST", "10.1.2.3:11434") == "192.0.2.1:11434"
    assert redactor.field("HSA_OVERRIDE_GFX_VERSION", "11.0.0") == "11.0.0"
    assert redactor.field("HSA_OVERRIDE_GFX_VERSION", "10.3.0.1") == "10.3.0.1"
    assert redactor.field("ROCM_PATH", "/home/alice/rocm") == "/home/user1/rocm"


def test_json_walks_keys_and_values(redactor: Redactor) -> None:
    value = {"/home/alice": ["alice", 1, None, True, {"x": ("alice",)}], "n": 1.5}
    assert redactor.json(value) == {"/home/user1": ["user1", 1, None, True, {"x": ["user1"]}], "n": 1.5}


def test_bytes_that_are_not_utf8_stay(redactor: Redactor) -> None:
    assert redactor.data(b"\xff alice \xfe\x00") == b"\xff user1 \xfe\x00"


def test_generic_names_are_no_words_to_replace() -> None:
    redactor = Redactor(hosts=["ubuntu", "vm"], users=["user", "x"])
    text = "ubuntu 24.04 amdgpu.vm_update_mode vm user x"
    assert redactor.text(text) == text
    assert redactor.replaced == {}
    assert {name.lower() for name in GENERIC_NAMES} == set(GENERIC_NAMES)
    assert {"render", "video"} <= KNOWN_GROUPS


names = st.from_regex(r"[a-z][a-z0-9_]{3,11}", fullmatch=True).filter(
    lambda name: name not in GENERIC_NAMES and not re.match(r"(user|host|serial|redacted|person)\d*", name)
)
hexes = st.text("0123456789abcdef", min_size=2, max_size=2)
macs = (
    st.lists(hexes, min_size=6, max_size=6)
    .map(":".join)
    .filter(lambda mac: not mac.startswith("02:00:00:00") and len(set(mac)) > 2)
)
addresses = st.tuples(st.integers(0, 255), st.integers(1, 254)).map(lambda pair: f"192.168.{pair[0]}.{pair[1]}")
uuids = st.uuids().map(str)
filler = st.sampled_from(["amdgpu:", "0000:c5:00.0", "6.17.0-7-generic", "=", "(", ")", "gfx1151", "\n", '"', "7.2.0"])


@given(names, names, st.tuples(macs, addresses, uuids), st.lists(filler, min_size=7, max_size=7))
def test_nothing_that_identifies_survives(
    user: str, host: str, numbers: tuple[str, str, str], around: list[str]
) -> None:
    redactor = Redactor(hosts=[host], users=[user])
    pieces = [f"/home/{user}/x", user, host, *numbers]
    text = " ".join(item for pair in zip(around, pieces, strict=False) for item in pair)
    result = redactor.text(text)
    words = re.split(r"[^\w-]+", result)
    assert user not in words
    assert host not in words
    for secret in numbers:
        assert secret not in result
    for item in around[:6]:
        assert item in result
    assert redactor.text(result) == result
    assert redactor.text(text) == result


@given(st.text(max_size=400))
def test_any_text_is_survived_and_stable(text: str) -> None:
    redactor = Redactor(hosts=["thunderbird"], users=["alice"])
    once = redactor.text(text)
    assert redactor.text(text) == once
    assert redactor.text(once) == once


FRAGMENTS = [
    *(
        "/home/",
        "alice",
        "thunderbird",
        "192.168.1.2",
        "10.1.2.3",
        "host ",
        "//",
        "@",
        ":",
        "=",
        "-",
        ".",
        " ",
        "\n",
        '"',
    ),
    *("3c:7c:3f:1a:2b:3c", "fe80::1", "2a02:1:2:3:4:5:6:7", "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "a@b.org"),
    *("serial", "unique_id", "0x3d4595974090853c", "GPU-3d4595974090853c", "f" * 32, "root=", "ip=", "password="),
    *("Nov 05 08:56:22 ", " kernel:", "[ 1.0] ", "hf_" + "a" * 20, "6.6.87.2", "0000:c5:00.0", "/24", ":80", "0", "00"),
    *(
        "Authorization: Bearer ",
        "password is ",
        "SSID: ",
        "namespace: ",
        "C:\\Users\\",
        "token",
        " <",
        "eui.0025385b21404321",
    ),
    *("user1", "host1", "redacted", "02:00:00:00:00:01", "192.0.2.1", "2001:db8::1", "serial-1", "person1", "2"),
]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_fragments_in_any_order_are_stable(text: str) -> None:
    redactor = Redactor(hosts=["thunderbird"], users=["alice"])
    once = redactor.text(text)
    assert redactor.text(text) == once
    assert redactor.text(once) == once


def test_a_placeholder_is_no_part_of_an_address(redactor: Redactor) -> None:
    made = redactor.text("Bearer ssid=root=3c:7c:3f:1a:2b:3c")
    assert Redactor().text(made) == made


@given(st.binary(max_size=300))
def test_any_bytes_are_survived(data: bytes) -> None:
    Redactor(hosts=["thunderbird"], users=["alice"]).data(data)


@given(
    st.from_regex(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,3}(-[0-9]{1,4}-(generic|oem)|\+rocm[67]\.[0-4])?", fullmatch=True),
    st.from_regex(r"[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", fullmatch=True),
    st.from_regex(r"[0-9a-f]{4}:[0-9a-f]{4}", fullmatch=True),
)
def test_versions_and_pci_names_stay(version: str, slot: str, ids: str) -> None:
    text = f"{version} {slot} {ids} [{ids}] {slot}: {version}"
    assert Redactor(hosts=["thunderbird"], users=["alice"]).text(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a",
            "a:",
            "1.",
            "0",
            "ab-",
            "fff::",
            "@a.",
            "/home/",
            "serial ",
            "1:",
            "aa:",
            "-----BEGIN",
            "\\",
            '"',
            "-",
            "eyJ",
        ),
        *("-----BEGIN PRIVATE KEY-----", "password=", 'token: "', "--password ", "://a@", "?token=", "Authorization: "),
        *(
            "cookie: a",
            "machine x login ",
            "mysql ",
            "login ",
            "bluetooth ",
            "hostname=",
            "groups=1(a)",
            "00ffffffffffff00",
        ),
    ],
)
def test_time_grows_no_faster_than_the_text(redactor: Redactor, piece: str) -> None:
    def took(count: int) -> float:
        start = time.process_time()
        redactor.text(piece * (count // len(piece)))
        return time.process_time() - start

    small = min(took(10_000), took(10_000))
    assert took(80_000) < 8 * 4 * small + 0.1


def test_a_host_that_a_log_names_is_gone_from_all_lines_and_common_words_stay() -> None:
    redactor = Redactor()
    text = (
        "annas-laptop: starting\nNov 05 08:56:22 annas-laptop kernel: amdgpu: x\n"
        "annas-laptop:412:412 [0] HSA_STATUS_ERROR\nANNAS_LAPTOP\nNov 05 08:56:22 memory kernel: memory fault"
    )
    made = (
        "host1: starting\nNov 05 08:56:22 host1 kernel: amdgpu: x\nhost1:412:412 [0] HSA_STATUS_ERROR\nhost1\n"
        "Nov 05 08:56:22 host2 kernel: memory fault"
    )
    assert redactor.text(text) == made
    assert redactor.text(made) == made
    assert Redactor(kept={"finding"}).text("Nov 05 08:56:22 finding kernel: a finding").endswith("a finding")
