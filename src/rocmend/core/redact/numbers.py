"""Addresses, serial numbers and ids."""

from __future__ import annotations

import re

from rocmend.core.redact.places import LazyPattern, Places, Replace, Rule, is_placeholder

_Q = r"\\{0,3}[\"']"
_IS = rf"(?:{_Q})?[ \t]{{0,8}}[:=][ \t]{{0,8}}"
_H16 = "[0-9A-Fa-f]{1,4}"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]\d|\d)"
_QUAD = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_PRIVATE = re.compile(
    r"192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|10\."
)
_IP_BEFORE = re.compile(
    r"(?:\b(?:ip|ipv4|addr|address|host|hostname|server|inet|gateway|gw|dns|nameserver|nfs|nfsroot|proxy|peer|from|to|via|src|dst"
    r"|source|dest|destination|connect|connected|connection|client|remote|listen|listening|bind|route|ping|ssh|scp|rhost|rport)"
    r"[\"']?[ \t]{0,3}[:=(]?[ \t]{0,3}[\"']?|//|@)$",
    re.IGNORECASE,
)
_VERSION_BEFORE = re.compile(
    r"(?i)(?:(?<![a-z])(?:version|ver|v|vers|release|rel|driver|firmware|fw|bios|vbios|rocm|hip|hsa|rocr|cuda|cudnn|nccl|rccl|miopen|amd-?smi"
    r"|rocm-?smi|torch|triton|vulkan|mesa|opencl|kernel|linux|python|gcc|clang|llvm|glibc|libc|package|build|tag|smu|psp|sos|vcn"
    r"|sdma\d?|mes|rlc|me[c0-9]?|pfp|ce|imu|dmcub?|toolkit|library|lib|nvidia-[\w-]{2,30}|adrenalin|software|revision|rev|upgraded?|installed|requires?)"
    r"|[=<>~!^]=|[<>~^])[\\\"'_)\]]{0,5}[ \t]{0,4}[:=(\[]?[ \t]{0,4}[\\\"']{0,4}(?:(?:from|to)[ \t])?$"
)
_IP_AFTER = re.compile(r"^(?::\d{2,5}\b|/\d{1,2}\b)")
_REVISION_AFTER = re.compile(r"-\d{1,3}(?:\.[a-z]|(?![\d.]))|~")
"""A package's: ``1.3.239.0-1``, ``1.3.280.0-1.fc43``; two addresses with a hyphen are a range."""
_DIGEST_BEFORE = re.compile(
    r"(?i)(?:build[ -_]?id|md5|sha\d*|digest|hash|checksum|commit|etag|identity|revision|rev|fingerprint|kernel|cache|object)\W{0,6}$"
)


def _ipv4(places: Places, match: re.Match[str]) -> str:
    """Tell an address from a version: by what stands before and after it, else by its numbers."""
    text = match[0]
    before, after = match.string[max(0, match.start() - 40) : match.start()], match.string[match.end() :][:8]
    if re.match(r"[\w+]|-[A-Za-z]", after):
        return text  # 6.6.87.2-microsoft-standard-WSL2
    versioned = _VERSION_BEFORE.search(before)
    asked = not versioned and (_IP_BEFORE.search(before) or _IP_AFTER.match(after))
    likely = (
        not versioned
        and not _REVISION_AFTER.match(after)
        and (_PRIVATE.match(text) or max(int(part) for part in text.split(".")) >= _LIKELY)
    )
    sure = re.match(r"192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|169\.254\.", text)
    return address(places, text) if asked or likely or sure else text


def _range(places: Places, match: re.Match[str]) -> str:
    return f"{address(places, match[1])}-{address(places, match[2])}"


_LIKELY = 100
"""Parts of versions are seldom this large, those of addresses often."""


def address(places: Places, text: str) -> str:
    """Replace an IPv4 address; those that every machine has stay."""
    if text.startswith(("127.", "0.", "192.0.2.", "255.")):
        return text
    return f"192.0.2.{places.number('ip address', text) % 255}"


def _mapped(places: Places, match: re.Match[str]) -> str:
    return match[1] + address(places, match[2])


def _ipv6(places: Places, match: re.Match[str]) -> str:
    text = match[0]
    if text.lower().startswith("2001:db8:") or re.fullmatch(r"02(?::00){5}(?::[0-9a-f]{2}){2}", text):
        return text  # a placeholder, of an address or of an eight-byte MAC
    return places.place("ip address", text.lower(), "2001:db8::{number}")


def _mac_bytes(places: Places, text: str, count: int) -> list[str]:
    number = places.number("mac address", re.sub(r"[^0-9a-f]", "", text.lower()))
    return ["02", *["00"] * (count - 3), f"{number // 256 % 256:02x}", f"{number % 256:02x}"]


def _mac(places: Places, match: re.Match[str]) -> str:
    joint, text = match[1], match[0]
    if text.startswith(joint.join(["02", "00", "00", "00"])) or not text.replace(joint, "").strip("0"):
        return text
    if not text.replace(joint, "").lower().strip("f"):
        return text  # everyone
    return joint.join(_mac_bytes(places, text, text.count(joint) + 1))


def _bare_mac(places: Places, match: re.Match[str]) -> str:
    if match[2].startswith("02000000"):
        return match[0]
    return match[1] + "".join(_mac_bytes(places, match[2], 6))


def _dotted_mac(places: Places, match: re.Match[str]) -> str:
    text = match[0]
    if text.startswith("0200.0000") or not re.search(r"[A-Fa-f]", text):
        return text
    made = "".join(_mac_bytes(places, text, 6))
    return f"{made[:4]}.{made[4:8]}.{made[8:]}"


def _serial(places: Places, match: re.Match[str]) -> str:
    return match[1] + serial(places, match[2])


def serial(places: Places, value: str) -> str:
    """Replace a serial number: digits by digits, so that what parses still parses."""
    if re.fullmatch(
        r"(?i)n/?a|none|null|x+|serial-\d+|redacted|not|unknown|default|to|0x0+|absent|present|string", value
    ):
        return value
    number = re.fullmatch(r"(0[xX])?0*([0-9A-Fa-f]*)", value)
    if number is None:
        return places.place("serial number", value, "serial-{number}")
    if re.fullmatch(r"\d{0,4}", number[2]):  # zero, or a placeholder
        return value
    placeholder = str(places.number("serial number", value))
    prefix = number[1] or ""
    return prefix + (placeholder.rjust(len(value) - 2, "0") if prefix else placeholder)


def _spaced_serial(places: Places, match: re.Match[str]) -> str:
    value = match[2]
    if not re.search(r"\d", value) or re.fullmatch(r"(?i)8250|16[4-9]50a?|0x[0-9a-f]{1,4}|\d{1,4}|serial-\d+", value):
        return match[0]
    return match[1] + serial(places, value)


def _hex32(places: Places, match: re.Match[str]) -> str:
    if _DIGEST_BEFORE.search(match.string[max(0, match.start() - 24) : match.start()]):
        return match[0]
    return places.digits("machine id", match[0], "{:032d}")


def _numbered(kind: str, form: str) -> Replace:
    """Return what replaces the second group by digits in a form."""
    return lambda places, match: match[1] + places.digits(kind, match[2], form)


def _id(places: Places, match: re.Match[str]) -> str:
    """Replace the second group by ``id-N``, keep the first."""
    return match[0] if is_placeholder(match[2]) else match[1] + places.named("id", match[2])


def _disk(places: Places, match: re.Match[str]) -> str:
    """An id of a disk: its kind stays, its digits are numbered."""
    digits = re.sub(r"[^0-9A-Fa-f]", "", match[2])
    return (
        match[0]
        if re.fullmatch(r"0+\d{0,4}", digits)
        else match[1] + f"{places.number('serial number', match[2]):016d}"
    )


def _edid(places: Places, match: re.Match[str]) -> str:
    return match[1] + places.zeros(match[2])


_PARAMETER = r"root|resume|rd\.(?!driver\.)[\w.]+|cryptdevice|luks[\w.]*|nfsroot|ip|systemd\.machine_id|nfsaddrs|cifsroot|iscsi_\w+|BOOTIF"
_CMDLINE = LazyPattern(rf"(?<![^\s\"'])((?:{_PARAMETER})=)(\"[^\"]*\"|[^\s\"'\\]+)", re.IGNORECASE)
# as ``kernel.params`` has them, written out; what ``root`` and ``ip`` are called elsewhere too, by the form of the value
_CMDLINE_JSON = LazyPattern(
    rf"({_Q}(?:(?!root{_Q}|ip{_Q})(?:{_PARAMETER})){_Q}[ \t]{{0,4}}:[ \t]{{0,4}}{_Q})([^\s\"'\\]+)", re.IGNORECASE
)
_PARAMETER_JSON = LazyPattern(
    rf"({_Q}root{_Q}[ \t]{{0,4}}:[ \t]{{0,4}}{_Q})((?:/dev/|\w{{1,12}}=)[^\s\"'\\]+)", re.IGNORECASE
)
_PLAIN_PARAMETER = re.compile(r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|md)\w{1,12}|dhcp|on|off|none|auto\d*|[01]")
_NFS_PATH = r"[\w%./-]{1,200}"


def _cmdline(places: Places, match: re.Match[str]) -> str:
    """A parameter of the kernel that names a disk, a host or an address; ``root=/dev/sda1`` names none."""
    value = match[2]
    if is_placeholder(value) or _PLAIN_PARAMETER.fullmatch(value):
        return match[0]
    places.named("label", value)
    return f"{match[1]}redacted"


def _ip_parameter(places: Places, match: re.Match[str]) -> str:
    """The value of ``ip=``, which names a host among its addresses."""
    places.named("label", match[0])
    return "redacted"


NUMBERS: tuple[Rule, ...] = (
    Rule(_CMDLINE, _cmdline, ("=",)),
    Rule(_CMDLINE_JSON, _cmdline, (":",)),
    Rule(_PARAMETER_JSON, _cmdline, ("root",)),
    # what parameters hold, wherever it stands. Source: Documentation/admin-guide/nfs/nfsroot.rst in the kernel
    Rule(
        LazyPattern(
            rf"(?<![\w.:])(?=:{{0,3}}\d{{1,3}}\.)(?:{_OCTET}(?:\.{_OCTET}){{3}})?:(?:{_OCTET}(?:\.{_OCTET}){{3}})?:(?:{_OCTET}(?:\.{_OCTET}){{3}})?"
            rf":(?:{_OCTET}(?:\.{_OCTET}){{3}}|\d{{1,2}})?:[\w.-]{{0,253}}:[\w.-]{{0,16}}(?::[\w.:-]{{1,80}})?(?![\w.:])"
        ),
        _ip_parameter,
        (":",),
    ),
    Rule(
        LazyPattern(r"(?<![\w:])(?!0{8}:0{8}:0{8}:)[0-9a-f]{8}(?::[0-9a-f]{8}){3}(?![\w:])"),  # mdadm(8)
        lambda places, match: f"00000000:00000000:00000000:{places.number('uuid', match[0]):08d}",
        (":",),
    ),
    Rule(LazyPattern(rf"(?<![\w.:/-])({_OCTET}(?:\.{_OCTET}){{3}}:)(/{_NFS_PATH}(?:,[\w=,.]{{1,80}})?)"), _id, (":/",)),
    # NVM Express Base Specification 4.5 (NQN); RFC 3720 (iqn)
    Rule(LazyPattern(r"(?i)((?<![\w.])(?:nqn|iqn)\.\d{4}-\d\d\.)([\w.:-]{1,223})"), _id, ("nqn.", "iqn.")),
    Rule(LazyPattern(r"(?i)((?<![\w.])(?:eui|naa)\.)([0-9a-f]{16,32})(?![\w])"), _disk, ("eui.", "naa.")),
    Rule(
        LazyPattern(
            r"(?i)((?<![\w])(?:wwn-|(?:id_)?wwn(?:_with_extension)?[\"' :=-]{1,4}|wwid[\"' :=-]{1,4})(?:0x|naa\.)?)([0-9a-f]{16,32})(?!\w)"
        ),
        _disk,
        ("wwn", "wwid"),
    ),
    Rule(
        LazyPattern(r"(?i)((?<![\w.])nvme\.)([0-9a-f]{4}-[0-9a-f]{2,128}-[0-9a-f]{2,128}-[0-9a-f]{8})"), _id, ("nvme.",)
    ),
    # Windows: [MS-DTYP] 2.4.2; domain and machine accounts begin with S-1-5-21
    Rule(
        LazyPattern(r"(\bS-1-5-21-)(\d{1,10}(?:-\d{1,10}){1,4})"),
        lambda places, match: (
            match[1] + f"{places.number('id', match[2])}" if not re.fullmatch(r"\d{1,4}", match[2]) else match[0]
        ),
        ("s-1-5-21",),
    ),
    # clouds
    Rule(
        LazyPattern(
            r"((?<![\w-])(?:i|vol|eni|subnet|vpc|sg|snap|eipalloc|vpce|lt|rtb|igw|nat)-)([0-9a-f]{17}|[0-9a-f]{8})(?![\w-])"
        ),
        lambda places, match: match[1] + places.digits("id", match[2], "{:08d}"),
        ("-",),
    ),
    Rule(
        LazyPattern(r"(\barn:aws[\w-]*:[\w-]*:[\w-]*:)(\d{12})(?=:)"),
        lambda places, match: match[1] + places.digits("id", match[2], "{:012d}"),
        ("arn:aws",),
    ),
    Rule(LazyPattern(r"(\bocid1\.[a-z]+\.[\w-]*\.[\w-]*\.)([a-z0-9]{20,})"), _id, ("ocid1.",)),
    Rule(
        LazyPattern(
            rf"(?i)((?<![A-Za-z])(?:instance|account|project|subscription|tenant|droplet|vm)[ _-]?id{_IS}(?:{_Q})?)([A-Za-z0-9][\w-]{{5,80}})"
        ),
        _id,
        ("id",),
    ),
    Rule(
        LazyPattern(
            r"(?:(?<=luks-)|(?<![0-9A-Fa-f-]))[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Fa-f-])"
        ),
        lambda places, match: places.digits("uuid", match[0], "00000000-0000-0000-0000-{:012d}"),
        ("-",),
    ),
    Rule(
        LazyPattern(
            rf"((?<![A-Za-z])(?:(?:PART)?UUID(?:_SUB)?|ID_(?:FS|PART_ENTRY)_UUID\w{{0,4}})=(?:{_Q})?)([0-9A-Fa-f]{{4}}-[0-9A-Fa-f]{{4}}|[0-9a-f]{{8}}-\d\d|[0-9A-F]{{16}})(?![\w-])"
        ),
        lambda places, match: match[1] + places.digits("uuid", match[2], "{:08d}"),
        ("uuid",),
    ),
    Rule(
        LazyPattern(
            rf"((?:(?:\b|_)(?:serial(?:[ _-]?(?:number|no\.?|num|short))?|fru_?id|s/n|sn|service[ _-]?tag|asset[ _-]?tag|id_serial(?:_short)?"
            rf"|chassis[ _-]?id|system[ _-]?id|imei|ccid)(?:{_Q})?[ \t]{{0,8}}[:=#]|\bunique[ _]?id(?:{_Q})?[ \t]{{0,8}}[:= \t])"
            rf"[ \t]{{0,20}}(?:{_Q})?)((?:0x)?[A-Za-z0-9][A-Za-z0-9._-]{{2,80}})",
            re.IGNORECASE,
        ),
        _serial,
        ("serial", "fru", "unique", "s/n", "sn", "tag", "id", "imei"),
    ),
    Rule(
        LazyPattern(
            r"(?i)(\b(?:serial(?: number| no\.?| num)?|s/n|service tag)[ \t]{1,4}#?[\"']?)([A-Z0-9][A-Z0-9-]{4,40})(?![\w./:])"
        ),
        _spaced_serial,
        ("serial ", "s/n ", "service tag "),
    ),
    Rule(LazyPattern(r"(?<![0-9A-Za-z])(?:[0-9a-f]{32}|[0-9A-F]{32})(?![0-9A-Za-z])"), _hex32),
    Rule(
        LazyPattern(r"(\b(?:GPU|CPU|AIE|NPU)-)([0-9A-Fa-f]{8,32})\b(?!-)"),
        _numbered("device id", "{:016d}"),
        ("gpu-", "cpu-", "aie-", "npu-"),
    ),
    # IEEE 802; interfaces' names that hold one: systemd.net-naming-scheme(7)
    Rule(
        LazyPattern(
            r"(?<![0-9A-Fa-f:.-])(?<![0-9A-Za-z]_)(?<!redact)[0-9A-Fa-f]{2}(?:([:_-])[0-9A-Fa-f]{2})(?:\1[0-9A-Fa-f]{2}){4,18}(?![0-9A-Fa-f:.-])"
        ),
        _mac,
    ),
    Rule(
        LazyPattern(r"(\bdev_)((?:[0-9A-Fa-f]{2}_){5}[0-9A-Fa-f]{2})(?!\w)"),
        lambda places, match: (
            match[1] + "_".join(_mac_bytes(places, match[2], 6)) if not match[2].startswith("02_00_00_00") else match[0]
        ),
        ("dev_",),
    ),
    Rule(LazyPattern(r"(\b(?:en|wl|ww|ib)x)([0-9a-f]{12})(?![0-9A-Za-z])"), _bare_mac, ("nx", "lx", "wx", "bx")),
    Rule(
        LazyPattern(
            r"(?i)((?<![A-Za-z])(?:mac(?:[ _-]?addr(?:ess)?)?|hwaddr|hardware address|ether|lladdr|bssid|bd_?addr|BOOTIF)[\"']?[ \t]{0,4}[:=]?[ \t]{0,4}[\"']?)([0-9a-f]{12})(?![0-9A-Za-z])"
        ),
        _bare_mac,
        ("mac", "addr", "ether", "bssid", "bootif"),
    ),
    Rule(LazyPattern(r"(?<![\w.])[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}(?![\w.])"), _dotted_mac, (".",)),
    # RFC 4291
    Rule(
        LazyPattern(rf"(?i)((?<![\w:.])(?:0:){{0,5}}:{{1,2}}(?:ffff:|ffff:0:)?)({_OCTET}(?:\.{_OCTET}){{3}})(?![\d.])"),
        _mapped,
        (":",),
    ),
    Rule(
        LazyPattern(
            rf"(?<![\w:.])(?:(?:{_H16}:){{7}}{_H16}"
            rf"|(?:[23][0-9A-Fa-f]{{3}}|fe80|f[cd][0-9A-Fa-f]{{2}})(?::{_H16}){{0,6}}::(?:{_H16}(?::{_H16}){{0,6}})?)(?![\w:])",
            re.IGNORECASE,
        ),
        _ipv6,
        (":",),
    ),
    Rule(LazyPattern(rf"(?<![\w.+-])({_QUAD})-({_QUAD})(?!\.?\d)"), _range, (".", "-")),
    Rule(LazyPattern(rf"(?<![\w.+-]){_QUAD}(?!\.?\d)"), _ipv4, (".",)),
    # VESA E-EDID: the header, then 120 bytes more at least
    Rule(
        LazyPattern(r"(?i)(00ffffffffffff00)((?:\s{0,40}[0-9a-f]{2}){16,2000})"),
        _edid,
        ("00ffffffffffff00",),
        lines=True,
    ),
    Rule(
        LazyPattern(r"(?i)(00(?: ff){6} 00)((?:\s{1,40}(?:[0-9a-f]{2}|0?x?[0-9a-f]{2,8}:?)(?![0-9a-z])){8,2000})"),
        _edid,
        ("00 ff ff ff ff ff ff 00",),
        lines=True,
    ),
    # public keys and their fingerprints: ssh-keygen(1)
    Rule(
        LazyPattern(
            r"((?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp\d+) )(AAAA[A-Za-z0-9+/=]{20,}(?:[ \t]+(?!ssh-|ecdsa-)[^\s\"'\\]{1,100})?)"
        ),
        _id,
        ("aaaa",),
    ),
    Rule(LazyPattern(r"(\bSHA256:)([A-Za-z0-9+/]{43}=?)(?![\w+/])"), _id, ("sha256:",)),
)
