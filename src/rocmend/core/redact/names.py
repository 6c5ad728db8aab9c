"""Names of people, accounts, hosts, networks and organisations."""

from __future__ import annotations

import re
from collections.abc import Collection

from rocmend.core.redact.places import LazyPattern, Places, Replace, Rule, is_placeholder, joined
from rocmend.core.redact.words import GENERIC_NAMES, KEPT_ACCOUNTS, PUBLIC_HOSTS, REDACTED

_STAMP = r"(?:\d{4}-\d\d-\d\dT[\d:.,+Z-]+|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\[[ \d.]+\])"
_DATE = r"(?:\d{4}-\d\d-\d\dT[\d:.,+Z-]+|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?)"
_NAME = r"[A-Za-z0-9][\w.-]{0,252}"
_ACCOUNT = r"[^\W\d][\w.-]{0,63}"
_Q = r"\\{0,3}[\"']"
_IS = rf"(?:{_Q})?[ \t]{{0,8}}[:=][ \t]{{0,8}}"

_UNIT_SUFFIXES = frozenset(
    {"service", "socket", "timer", "slice", "scope", "mount", "target", "device", "path", "conf", "invalid"}
)
_NO_HOST = re.compile(
    r"(?i)v?\d+(?:\.\d+)*(?:[-.+].*)?|[0-9a-f]{7,}|main|master|release|dev|head|latest|stable|nightly|sha256|md5|next"
    r"|localhost|none|null|unknown|default|true|false"
)
_NO_RCCL_HOST = re.compile(
    r"(?i)\d{4}-\d\d-\d\d|[\d.]+\Z|localhost\Z|.*\.(?:[ch](?:c|pp|xx|u|uh)?|cuh|hip|inl?|inc|pyx?|rs|go|js|ts|jl|log|txt)\Z"
)
"""What stands before two numbers and one in brackets, and is a time or a source file."""
_PRIVATE_SUFFIX = re.compile(
    r"(?i)\.(?:local|lan|internal|corp|intra|intranet|home|arpa|localdomain|private|priv|ts\.net)\Z"
)
_PUBLIC_ARCHIVE = re.compile(
    r"https?://(?:lore\.kernel\.org|[\w.]*mail-archive\.com|lists?\.[\w.-]+|patchwork\.[\w.-]+)/[^\s\"'<>]*$"
)
_NO_NAME = re.compile(
    r"(?i)(?:default|kube-[a-z-]+|none|null|nil|unknown|unset|not|true|false|yes|no|aten|prims|torch|std|c10|vllm|hip"
    r"|the|a|an|is|was|any|all|hidden|id|name|string|str|optional|required|localhost|on|off|and|or|in|of|to|for|space|mode"
    r"|\d+(?:\.\d+)*[%a-z]{0,3}|-+|\*+)[.,;:]?"
)


def _log_host(places: Places, match: re.Match[str]) -> str:
    places.learn(match[2])
    return match[1] + places.host(match[2])


def _rccl_host(places: Places, match: re.Match[str]) -> str:
    if _NO_RCCL_HOST.match(match[2]):
        return match[0]
    return _log_host(places, match)


def _home(places: Places, match: re.Match[str]) -> str:
    name = match[2]
    return (
        match[0]
        if name in {"Public", "Shared", "linuxbrew", "user", ".", "..", "Default", "*"}
        else match[1] + places.user(name)
    )


def _account(places: Places, match: re.Match[str]) -> str:
    name = match[2]
    if name.lower() in GENERIC_NAMES or name in KEPT_ACCOUNTS or _NO_NAME.fullmatch(name):
        return match[0]
    return match[1] + places.user(name)


def _host(places: Places, match: re.Match[str]) -> str:
    name = match[2]
    if name.lower() in GENERIC_NAMES or _NO_NAME.fullmatch(name) or name in PUBLIC_HOSTS:
        return match[0]
    return match[1] + places.host(name)


def _id_names(places: Places, match: re.Match[str]) -> str:
    """Names in what ``id`` prints: ``uid=1000(anna) gid=1000(anna) groups=1000(anna),44(video)``."""
    name = match[2]
    if match[1].startswith(("u", "e")):
        return match[0] if name in GENERIC_NAMES else f"{match[1]}({places.user(name)})"
    return f"{match[1]}({places.group(name)})"


def _email(places: Places, match: re.Match[str]) -> str:
    user, host, suffix = match[1], match[2].lower(), match[3].lower()
    if _PUBLIC_ARCHIVE.search(match.string[max(0, match.start() - 120) : match.start()]):
        return match[0]  # the id of a message
    if suffix in _UNIT_SUFFIXES or f"{host}{suffix}" in PUBLIC_HOSTS or user == REDACTED:
        return match[0]
    return places.place("email", match[0].lower(), "person{number}@example.invalid")


def _before_email(places: Places, match: re.Match[str]) -> str:
    """A person's name: ``Carol Danvers <carol@example.com>``."""
    return match[0] if is_placeholder(match[1]) else f"{places.user(match[1])} <"


def _user_at_host(places: Places, match: re.Match[str]) -> str:
    user, host = match[1], match[2].rstrip(".-")
    rest = match[2][len(host) :]
    suffix = host.rpartition(".")[2].lower()
    if _NO_HOST.fullmatch(host) or suffix in _UNIT_SUFFIXES or host.lower() in PUBLIC_HOSTS or is_placeholder(match[0]):
        return match[0]
    if user in KEPT_ACCOUNTS - {"root", "git"} or host.lower() in GENERIC_NAMES or len(user) < 2 or len(host) < 3:
        return match[0]
    if host == "example.invalid":
        return match[0]
    kept = user.lower() in GENERIC_NAMES or user in KEPT_ACCOUNTS
    return f"{user if kept else places.user(user)}@{places.host(host)}{rest}"


def _url_host(places: Places, match: re.Match[str]) -> str:
    """A host in a URL that is not on the internet: one word, or ending as private networks' names do."""
    name = match[2]
    if name.lower() in GENERIC_NAMES or re.fullmatch(r"[\d.]+", name) or is_placeholder(name):
        return match[0]
    if "." in name and not _PRIVATE_SUFFIX.search(name):
        return match[0]
    return match[1] + places.host(name)


def _private_host(places: Places, match: re.Match[str]) -> str:
    return places.host(match[0])


def _share(places: Places, match: re.Match[str]) -> str:
    if match[2].lower() in {"wsl$", "wsl.localhost", "wsl", "device", "registry"} or is_placeholder(match[2]):
        return match[0]
    share = match[4] if is_placeholder(match[4]) or match[4].endswith("$") else places.named("name", match[4])
    return f"{match[1]}{places.host(match[2])}{match[3]}{share}"


def _labelled(kind: str) -> Replace:
    """Return what replaces the second group by a name of this kind."""

    def replace(places: Places, match: re.Match[str]) -> str:
        value = match[2]
        if not value.strip() or is_placeholder(value.strip()) or _NO_NAME.fullmatch(value.strip()):
            return match[0]
        return match[1] + places.named(kind, value)

    return replace


def _known_host_line(places: Places, match: re.Match[str]) -> str:
    names = match[1]
    if not is_placeholder(names):
        names = places.host(names)
    return f"{names}{match[2]}"


_network, _name, _label = _labelled("network"), _labelled("name"), _labelled("label")

NAMES: tuple[Rule, ...] = (
    Rule(
        LazyPattern(rf"(?:^|(?<=\\n)|(?<=[ \t\"']))((?:<\d+>)?{_STAMP}[ \t]+)({_NAME})(?=[ \t]+kernel:)", re.MULTILINE),
        _log_host,
        ("kernel:",),
    ),
    Rule(
        LazyPattern(
            rf"(?:^|(?<=\\n)|(?<=[ \t\"']))((?:<\d+>)?{_DATE}[ \t]+)({_NAME})(?=[ \t]+[A-Za-z][\w./@-]{{0,64}}\[\d{{1,10}}\]:)",
            re.MULTILINE,
        ),
        _log_host,
        ("]:",),
    ),
    # RCCL and NCCL: HOST:PID:TID [device]
    Rule(
        LazyPattern(
            rf"(?:^|(?<=\\n)|(?<=[\s\"'|\]]))()({_NAME})(?=:\d{{1,10}}:\d{{1,10}} \[\d{{1,3}}\] )", re.MULTILINE
        ),
        _rccl_host,
        ("] ",),
    ),
    # homes on Windows, whose names may have spaces, as they are and in a JSON or Python text
    Rule(
        LazyPattern(r"(?i)((?:\\{1,4}|/)Users(?:\\{1,4}|/))([^\\/:*?\"'<>|\r\n,;=()\[\]{}]{1,64})(?=[\\/])"),
        _home,
        ("users",),
    ),
    Rule(
        LazyPattern(
            r"((?:/var|/export)?/home/|%2[Ff]home%2[Ff]|/mnt/[a-z]/Users/|/Users/|\\{1,4}Users\\{1,4}"
            r"|/(?:run/)?media/(?!cdrom\b|usb\b|root\b)|/var/(?:spool/)?mail/|/crontabs/)"
            r"([^/\\\s:\"'<>|,;()\[\]{}=&?#%`]{1,255})"
        ),
        _home,
        ("home", "users", "media", "mail", "crontabs"),
    ),
    Rule(LazyPattern(r"((?:/run)?/media/[\w.-]{1,64}/)([^/\s:\"'<>|,;()\\]{1,64})"), _label, ("/media/",)),
    Rule(
        LazyPattern(r"(?<![\w.'-])([^\W\d_][\w.'-]{0,40}(?: [^\W\d_][\w.'-]{0,40}){0,3}) <(?=[\w.+-]{1,64}@)"),
        _before_email,
        ("@",),
    ),
    Rule(
        LazyPattern(r"(?<![\w.+%-])([\w.+-]{1,64})@((?:[A-Za-z0-9-]{1,63}\.){1,8})([A-Za-z]{2,24})(?![\w-])"),
        _email,
        ("@",),
    ),
    Rule(LazyPattern(rf"(?<![\w.+/@%-])({_ACCOUNT})@([A-Za-z0-9][\w.-]{{0,252}})"), _user_at_host, ("@",)),
    Rule(LazyPattern(r"\b((?:e?uid|gid|egid|groups)=\d{1,10})\(([\w.@-]{1,64})\)"), _id_names, ("id=", "groups=")),
    Rule(LazyPattern(r"((?<=[\d)]),\d{1,10})\(([\w.@-]{1,64})\)"), _id_names, ("groups=",)),
    Rule(
        LazyPattern(
            rf"(?i)((?<![A-Za-z])(?:sudo_user|logname|user_?name|login|account|remote_user|run_as_user){_IS}(?:{_Q})?)({_ACCOUNT})"
        ),
        _account,
        ("user", "logname", "login", "account"),
    ),
    Rule(
        LazyPattern(rf"((?<![\w.])USER=(?:{_Q})?|{_Q}user{_Q}[ \t]{{0,4}}:[ \t]{{0,4}}{_Q})({_ACCOUNT})"),
        _account,
        ("user",),
    ),
    Rule(
        LazyPattern(
            rf"(\bfor (?:invalid )?user |\b(?:Accepted|Failed) [\w/-]{{1,40}} for (?:invalid user )?)({_ACCOUNT})(?=\(| by | from |$)"
        ),
        _account,
        (" for ",),
    ),
    Rule(
        LazyPattern(
            rf"(?i)((?<![A-Za-z])(?:host[ _-]?names?|node[ _-]?name|computer[ _-]?name|machine[ _-]?name|fqdn|static hostname"
            rf"|kubernetes\.io/hostname|domain[ _-]?name|nis[ _-]?domain|server[ _-]?name){_IS}(?:{_Q})?)({_NAME})"
        ),
        _host,
        ("name", "fqdn", "domain"),
    ),
    Rule(LazyPattern(rf"(\bDISPLAY{_IS}(?:{_Q})?)({_NAME})(?=:\d)"), _host, ("display",)),
    Rule(
        LazyPattern(
            r"(?i)((?<![A-Za-z])(?:https?|wss?|ftps?|ssh|sftp|smb|cifs|nfs|rediss?|postgres(?:ql)?|mysql|mongodb(?:\+srv)?|amqps?"
            r"|ldaps?|socks[45]h?|grpc|tcp|udp|rtsp|git(?:\+ssh|\+https)?|svn|rsync|vnc|rdp)://(?:[^\s/@\"'<>]{1,200}@)?)"
            r"([A-Za-z0-9](?:[\w.-]{0,252}\w)?)"
        ),
        _url_host,
        ("://",),
    ),
    Rule(
        LazyPattern(
            r"(?i)(?<![\w.@/-])(?:[a-z0-9](?:[\w-]{0,61}\w)?\.){1,6}(?:lan|corp|intranet|home\.arpa|localdomain|ts\.net|compute\.internal)(?![\w-]|\.\w)"
        ),
        _private_host,
        (".lan", ".corp", ".intranet", ".arpa", ".localdomain", ".ts.net", ".internal"),
    ),
    Rule(LazyPattern(r"(?<![\w.-])ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[\w-]{1,63}){0,4}"), _private_host, ("ip-",)),
    # [MS-DTYP] 2.2.57, and escaped
    Rule(LazyPattern(r"(?<![\w\\:])(\\\\)([\w.-]{2,64}\$?)(\\)(?!\\)([\w$.-]{1,64})"), _share, ("\\\\",)),
    Rule(
        LazyPattern(r"(?<![\w\\:])(\\{4}|\\{8})([\w.-]{2,64}\$?)(\\{2}|\\{4})(?!\\)([\w$.-]{1,64})"), _share, ("\\\\",)
    ),
    # sshd(8), SSH_KNOWN_HOSTS FILE FORMAT
    Rule(
        LazyPattern(
            r"(?:^(?=[^\s#])|(?<![^\s\"'])(?=[^\s\"']{1,253}[,\]])|(?<=\\n))([^\s#\"'{}\\]{1,400})([ \t]+(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp\d+|sk-[\w@.-]{1,60}) )",
            re.MULTILINE,
        ),
        _known_host_line,
        ("ssh-", "ecdsa-"),
    ),
    # as wpa_supplicant, iw, iwconfig and nmcli write them
    Rule(
        LazyPattern(rf"(?i)((?<![A-Za-z])e?ssid(?:{_Q})?[ \t]{{0,8}}[:=]?[ \t]{{0,8}}{_Q})([^\"'\r\n\\]{{1,64}})"),
        _network,
        ("ssid",),
    ),
    Rule(
        LazyPattern(r"(?i)((?<![A-Za-z])e?ssid[ \t]{0,8}:[ \t]{0,8})([^\s\"'\\,][^\"'\r\n\\,]{0,63})"),
        _network,
        ("ssid",),
    ),
    Rule(LazyPattern(r"(?i)((?<![A-Za-z])e?ssid[ \t]{0,8}=[ \t]{0,8})([^\s\"'\\,]{1,64})"), _network, ("ssid",)),
    Rule(
        LazyPattern(
            r"(\b(?:authenticate|associate|associated|authenticated) with [0-9A-Fa-f:]{17} \()([^()\r\n]{1,64})(?=\))"
        ),
        _network,
        ("with ",),
    ),
    # bluetoothctl(1); drivers/hid and drivers/input name a paired device so
    Rule(
        LazyPattern(r"(\bDevice (?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2} )(?!\((?:public|random)\))([^\r\n\"\\]{1,64})"),
        _name,
        ("device ",),
    ),
    Rule(LazyPattern(r"(\binput: )([^\r\n\"]{1,128}?)(?= as /devices/virtual/)"), _name, ("/devices/virtual/",)),
    Rule(LazyPattern(r"((?:\s|\\t)Alias:[ \t]{1,8})([^\r\n\"'\\]{1,64})"), _name, ("alias:",)),
    Rule(
        LazyPattern(r"((?:\s|\\t)Name: )([^\r\n\"\\]{1,64})(?=(?:\n|\\{1,3}n)(?:[ \t]|\\{1,3}t){1,8}Alias:)"),
        _name,
        ("alias:",),
        lines=True,
    ),
    Rule(
        LazyPattern(r"(?i)(\bbluetooth[^\r\n]{0,40}?\bname[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?)([^\r\n\"'\\]{1,64})"),
        _name,
        ("bluetooth",),
    ),
    # Kubernetes: namespaces; clouds: projects, resource groups and buckets
    Rule(
        LazyPattern(
            rf"(?i)((?<![A-Za-z])(?:--namespace[ =]|(?:pod_?)?namespace{_IS}(?:{_Q})?))([a-z0-9][a-z0-9-]{{0,62}})(?![\w:.<-])"
        ),
        _name,
        ("namespace",),
    ),
    Rule(
        LazyPattern(
            r"(?i)(/(?:resourceGroups|namespaces)/|(?<![\w.])projects/(?=[\w.-]{1,90}/(?:zones|locations|regions)/))([\w.-]{1,90})(?=/)"
        ),
        _name,
        ("/resourcegroups/", "/namespaces/", "projects/"),
    ),
    Rule(LazyPattern(r"((?<![A-Za-z])(?:s3|gs|abfss?)://)([\w.-]{1,63})"), _name, ("s3://", "gs://", "abfs")),
    # blkid(8), fstab(5), udev's links
    Rule(
        LazyPattern(rf"((?<![A-Za-z])(?:PART)?(?:LABEL|ID_FS_LABEL(?:_ENC)?)=(?:{_Q})?)([^\s\"'\\,;]{{1,64}})"),
        _label,
        ("label",),
    ),
    Rule(
        LazyPattern(
            r"(/dev/(?:disk/by-(?:partlabel|label|id|partuuid|uuid|diskseq)|mapper(?!/control\b))/)([^\s\"'\\,;:)]{1,200})"
        ),
        _label,
        ("/by-", "/mapper/"),
    ),
)


def words(kinds: dict[str, str], kept: Collection[str] = ()) -> Rule | None:
    """Return the rule for names that are known: in any case, with whatever joins their parts, beside digits and marks.

    A name of six letters or more is found inside longer words too. One of the letters a to f only is not looked for in
    numbers: ``ada`` is in many of them.

    Args:
        kinds: ``joined`` name to its kind.
        kept: Words in which no name is looked for, in lower case.
    """
    if not kinds:
        return None
    parts = []
    for name in sorted(kinds, key=len, reverse=True):
        letters = sum(char.isalpha() for char in name)
        joint = r"[\s._-]{0,3}" if letters >= _INSIDE_WORDS else r"[._-]{1,3}"
        spelt = joint.join(re.escape(part) for part in name.split("-") if part)
        if re.fullmatch(r"[0-9a-f-]+", name):
            spelt = rf"(?<![A-Za-z0-9])(?i:{spelt})(?![A-Za-z0-9])"
        elif letters >= _INSIDE_WORDS:
            spelt = f"(?i:{spelt})"
        else:
            end = r"(?=(?:'?s)?(?:[\W\d_]|\Z))|(?<=[a-z])(?=[A-Z])"
            spelt = rf"(?:(?<![^\W\d_])|(?<=[a-z])(?=[A-Z]))(?i:{spelt})(?:{end})"
        parts.append(spelt)

    def replace(places: Places, match: re.Match[str]) -> str:
        if kept and _around(match).lower() in kept:
            return match[0]
        name = joined(match[0])
        kind = kinds.get(name) or next(
            (kinds[known] for known in kinds if known.replace("-", "") == name.replace("-", "")), "user"
        )
        return places.host(match[0]) if kind == "host" else places.user(match[0])

    return Rule(LazyPattern("|".join(parts)), replace)


def _around(match: re.Match[str]) -> str:
    """Return a match with the letters and digits on both sides: ``findings`` for ``finding``."""
    text, start, end = match.string, *match.span()
    while start and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return text[start:end]


_INSIDE_WORDS = 6
"""Letters from which a name is looked for inside words."""
