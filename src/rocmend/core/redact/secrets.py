"""Passwords, keys and tokens: by the name they are given, and by the form that their providers document."""

from __future__ import annotations

import base64
import binascii
import re

from rocmend.core.redact.places import LazyPattern, Places, Rule, is_placeholder
from rocmend.core.secrets import KEY, NOT_A_TOKEN, TOKEN

_KEYS = ("pass", "pwd", "pw", "psk", "secret", "key", "token", "credential", "dockerconfigjson", "auth", "jwt")
"""One of them is in every such name."""

_NO_SECRET = re.compile(
    r"(?i)(?:none|null|nil|true|false|yes|no|on|off|set|unset|not|required|missing|invalid|incorrect|wrong|expired|empty"
    r"|needed|unknown|absent|present|optional|disabled|enabled|failed|ok|prompt|ask|basic|digest|bearer|file|env|str|int"
    r"|bytes|string|optional\[\w+\]|\*+|x+|\.+|-+|\$\{?\w+\}?\$?|%\w+%|\$\(.*)[.,;:!?]?"
)
"""Values that are no secret: words about one, stars, names of variables."""

_NUMBER = re.compile(r"(?i)[-+]?0?x?[\d.,]{1,12}(?:e[-+]?\d+)?(?: ?(?:ms|us|ns|s|t/s|tok/s|tokens?|%|[kmg]i?b?))?")
_QUOTE = r"\\{0,3}[\"']"
_GAP = r"(?:\s|\\{1,3}[nt]){1,8}"
"""White space, of which an escaped text has letters."""
_VALUE = (
    rf"(?:(?P<quote>{_QUOTE})(?P<quoted>(?:(?!(?P=quote))[^\r\n]){{1,2000}})(?:(?P=quote)|(?=[\r\n]|\Z))"
    r"|(?P<bare>[^\s\"'\\&<>]+?)(?=[\s\"'\\&<>]|[,;)\]}]{1,3}(?:\s|\Z|[\w-]{1,40}=)|\Z))"
)
_ASSIGNED = LazyPattern(rf"(?i)(?P<key>{KEY})(?P<is>{_QUOTE}?\]?[ \t]{{0,8}}(?::=|=>|[:=])[ \t]{{0,8}}){_VALUE}")
_OPTION = LazyPattern(
    rf"(?i)(?P<key>{KEY}|(?<=--)key)(?P<is>(?:{_QUOTE},?)?[ \t]{{1,8}})(?P<value>{_QUOTE}?(?P<word>[^\s\"'\\-][^\s\"'\\]*))"
)
_IS_OPTION = re.compile(r"(?:^|[\s\"'\[(=,])--?[\w-]{0,40}$")
_SAID = LazyPattern(
    rf"(?i)\b(?P<key>password|passwd|passphrase|passcode|token|secret|api key)(?P<is> (?:is|was) ){_VALUE}"
)
_SAID_OTHERWISE = re.compile(
    r"(?i)(?:not|a|an|the|too|in|on|at|by|for|to|of|from|stored|only|being|never|now|valid|used|given|deprecated|also|then"
    r"|what|that|this|still|always|about|as|and|or|longer|shorter|never|already|correct|read|sent|kept|printed|shown|taken"
    r"|generated|accepted|rejected|denied|added|removed|ignored|truncated|created|found|passed|visible|hidden|redacted)[.,;:!?]?"
)


def _assigned(places: Places, match: re.Match[str]) -> str:
    value = match["quoted"] or match["bare"] or ""
    key = match["key"].lower()
    if is_placeholder(value) or _NO_SECRET.fullmatch(value) or _harmless(key, value, match):
        return match[0]
    if key.startswith("dockerconfig") and value.lstrip().startswith("{"):
        return match[0]  # what is in it is looked at by itself
    return _at(match, places)


def _at(match: re.Match[str], places: Places) -> str:
    """Replace the value, and nothing around it."""
    group = "quoted" if match["quoted"] else "bare"
    at, end = match.start(group) - match.start(), match.end(group) - match.start()
    return match[0][:at] + places.secret(match[group]) + match[0][end:]


def _harmless(key: str, value: str, match: re.Match[str]) -> bool:
    """Tell whether what stands for a secret's name is something else: a folder, a model's token, a count."""
    before = match.string[max(0, match.start("key") - 24) : match.start("key")]
    if key == "pwd":
        return value.startswith(("/", "~")) or re.match(r"[A-Za-z]:[\\/]", value) is not None
    if key in {"token", "auth", "_auth", "credential", "credentials"}:
        if _NUMBER.fullmatch(value) or (key == "token" and NOT_A_TOKEN.search(before)):
            return True
        return len(value) < (8 if key.endswith("auth") else 4) or value.startswith(("[", "{", "<", "("))
    return value.startswith(("{", "[")) and len(value) < 3


def _option(places: Places, match: re.Match[str]) -> str:
    before = match.string[max(0, match.start() - 48) : match.start()]
    word = match["word"]
    if not _IS_OPTION.search(before) or is_placeholder(word) or _NO_SECRET.fullmatch(word):
        return match[0]
    if match["key"].lower() in {"token", "key", "auth"} and (_NUMBER.fullmatch(word) or NOT_A_TOKEN.search(before)):
        return match[0]
    if word.startswith(("=", ":")):
        return match[0]
    return match[0][: -len(word)] + places.secret(word)


def _said(places: Places, match: re.Match[str]) -> str:
    value = match["quoted"] or match["bare"] or ""
    if is_placeholder(value) or _NO_SECRET.fullmatch(value) or _SAID_OTHERWISE.fullmatch(value):
        return match[0]
    if not match["key"].lower().startswith("pass") and not re.search(r"[\d_/+=-]", value):
        return match[0]
    return _at(match, places)


def secret_value(places: Places, value: str) -> str:
    """Replace a value that its name says is a secret, unless it is a word about one."""
    if not value.strip() or is_placeholder(value) or _NO_SECRET.fullmatch(value) or _NUMBER.fullmatch(value):
        return value
    return places.secret(value)


def _whole(places: Places, match: re.Match[str]) -> str:
    return places.secret(match[0])


def _second(places: Places, match: re.Match[str]) -> str:
    """Replace the second group, keep the first."""
    value = match[2]
    return match[0] if is_placeholder(value.strip()) or not value.strip() else match[1] + places.secret(value)


def _bearer(places: Places, match: re.Match[str]) -> str:
    plain = match[2].rstrip(".").lower()
    words = {"token", "tokens", "authentication", "authorization", "auth", "redacted", "format", "scheme", "header"}
    return match[0] if plain in words else match[1] + places.secret(match[2])


def _basic(places: Places, match: re.Match[str]) -> str:
    try:
        plain = base64.b64decode(match[2] + "=" * (-len(match[2].rstrip("=")) % 4), validate=False)
    except (binascii.Error, ValueError):
        return match[0]
    return match[1] + places.secret(match[2]) if b":" in plain else match[0]


def _login(places: Places, match: re.Match[str]) -> str:
    """A line of ~/.netrc."""
    login = places.user(match[2]) if match[2] else ""
    password = match[4] and (match[4] if is_placeholder(match[4]) else places.secret(match[4]))
    return match[1] + login + (f"{match[3]}{password}" if password else "")


def _parameter(places: Places, match: re.Match[str]) -> str:
    """A parameter of a URL: its value is a secret whatever it looks like."""
    return match[0] if is_placeholder(match[2]) or _NUMBER.fullmatch(match[2]) else match[1] + places.secret(match[2])


def _user_password(places: Places, match: re.Match[str]) -> str:
    """``curl -u user:password``; ``docker run -u 1000:1000`` stays."""
    user, _, password = match[2].partition(":")
    if (user.isdigit() and password.isdigit()) or (is_placeholder(user) and is_placeholder(password)):
        return match[0]
    return f"{match[1]}{places.user(user)}:{places.secret(password)}"


_PARAMETERS = (
    r"(?:[\w.-]{0,40}?(?:token|signature|secret|password|passwd|credential|apikey|api[_-]key|access[_-]?key(?:id)?)"
    r"|sig|key|pwd|pass|auth|code|jwt|ticket|hmac|sid|session(?:id)?|assertion|googleaccessid|key-pair-id|policy)"
)

SECRETS: tuple[Rule, ...] = (
    # RFC 7468, PROTOCOL.key of OpenSSH, RFC 9580
    Rule(
        LazyPattern(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:(?:[^-]|-(?!----)){0,20000}-----END [^\n-]{0,60}-----|(?:[A-Za-z0-9+/=\s]|\\{1,3}[nr])*)"
        ),
        _whole,
        ("private key",),
        lines=True,
    ),
    Rule(
        LazyPattern(r"(?i)((?:^|\n)Private-(?:Lines|MAC):)([^\n]*(?:\n[A-Za-z0-9+/=]{20,})*)"),
        _second,
        ("private-",),
        lines=True,
    ),
    Rule(LazyPattern(TOKEN), _whole),
    # https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, Discord's and Teams' webhooks
    Rule(
        LazyPattern(r"(?i)(hooks\.slack\.com/(?:services|workflows)/|discord(?:app)?\.com/api/webhooks/)([\w/-]+)"),
        _second,
        ("hooks.slack", "webhooks"),
    ),
    # RFC 3986 3.2.1
    Rule(
        LazyPattern(r"((?<=://))([^\s/\"'<>@]{1,300}(?:@[^\s/\"'<>@]{1,200}){0,2})(?=@)"),
        lambda places, match: match[0] if match[2] in {"redacted", "git"} else places.secret(match[2]),
        ("://",),
    ),
    # RFC 6749; https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html;
    # https://learn.microsoft.com/rest/api/storageservices/create-service-sas
    Rule(LazyPattern(rf"(?i)([?&#;]{_PARAMETERS}=)([^&\s\"'<>#\\]+)"), _parameter, ("=",)),
    # RFC 9110 11.6.2, RFC 6265
    Rule(
        LazyPattern(
            r"(?i)(\b(?:proxy-)?authorization[\"']{0,1}[ \t]{0,4}[:=][ \t]{0,4}(?:\\{0,3}[\"'])?)((?:[^\r\n\"'\\]|(?<==)\\{0,3}\"[^\"\r\n\\]*\\{0,3}\")+)"
        ),
        _second,
        ("authorization",),
    ),
    Rule(
        LazyPattern(
            r"(?i)(\b(?:set-)?cookie2?[\"']{0,1}[ \t]{0,4}[:=][ \t]{0,4}[\"']{0,1})([^\r\n\"'\\=]{1,256}=[^\r\n\"'\\]*)"
        ),
        _second,
        ("cookie",),
    ),
    Rule(LazyPattern(r"(MIT-MAGIC-COOKIE-1\s+)([0-9a-f]{16,})"), _second, ("magic-cookie",)),
    Rule(LazyPattern(r"(?i)(\bbearer[ \t]+)([\w.~+/-]{4,}=*)"), _bearer, ("bearer",)),
    Rule(LazyPattern(r"(?i)(\bbasic[ \t]+)([A-Za-z0-9+/]{8,}={0,2})"), _basic, ("basic",)),
    # https://www.gnu.org/software/inetutils/manual/html_node/The-_002enetrc-file.html
    Rule(
        LazyPattern(
            rf"((?:\bmachine{_GAP}\S{{1,253}}?|\bdefault){_GAP}login{_GAP})([^\s\"'\\]+)(?:({_GAP}password{_GAP})([^\s\"'\\]+))?"
        ),
        _login,
        ("login",),
        lines=True,
    ),
    Rule(LazyPattern(r"(\bsshpass[ \t]+-p[ \t]?[\"']?)([^\s\"'\\]+)"), _second, ("sshpass",)),
    Rule(LazyPattern(r"(\bmysql(?:dump|admin)?\b[^\n]{0,80}?[ ]-p)([^\s\"'\\]+)"), _second, ("mysql",)),
    Rule(LazyPattern(r"(\blogin\b[^\n|;&]{0,120}?[ ]-p[ =]?[\"']?)([^\s\"'\\-][^\s\"'\\]*)"), _second, ("login",)),
    Rule(
        LazyPattern(r"((?<=\s)(?:-u|--user|--proxy-user)[ =][\"']?)([\w.@-]{1,64}:[^\s\"'\\/][^\s\"'\\]*)"),
        _user_password,
        (":",),
    ),
    Rule(_SAID, _said, (" is ", " was ")),
    Rule(_ASSIGNED, _assigned, _KEYS),
    Rule(_OPTION, _option, _KEYS),
)
