"""What a secret is called and what tokens look like: the one answer for variables, command lines and reports.

Nothing costly is compiled before it is asked for: every command looks at names of variables.
"""

from __future__ import annotations

import functools
import re

KEY = (
    r"(?:passw(?:or)?d|passphrase|passcode|(?<![A-Za-z])pwd|(?<=[_-])pass|(?<=--)pass|(?<=[_-])pw|(?<![A-Za-z])psk"
    r"|secret(?:[ _-]?(?:access)?[ _-]?key)?"
    r"|(?:api|access|secret|private|auth|account|encryption|signing|license|licence|product|pre-?shared|wep)[ _-]?key\d?"
    r"|token|credentials?|dockerconfigjson|(?<![A-Za-z])_?auth(?:orization)?|(?<![A-Za-z])jwt)"
)
"""What a secret is called; what stands before it in a longer name is looked at where it was found."""

NOT_A_TOKEN = re.compile(
    r"(?i)(?<![a-z])(?:eos|bos|pad|unk|sep|cls|mask|eot|eog|eom|lf|nl|img|image|audio|video|fim\w{0,4}|special|start|end|stop|first"
    r"|last|next|prev|previous|per|each|draft|num|max|min|new|n|added|decoder_start|boi|eoi|tool|think|prompt|input|output"
    r"|unexpected)[ _-]?$"
)
"""Before ``token``: a token of a language model or of a grammar."""

_VARIABLE = re.compile(
    r"[A-Z0-9_]*(?:SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|PRIVATE|LICEN[CS]E|(?:\A|_)(?:TOKEN|AUTH|PAT)(?=[_\d]|\Z)"
    r"|(?:\A|_|API)KEYS?(?=[_\d]|\Z))[A-Z0-9_]*"
)
"""Names of variables that hold a secret wherever it is named in them: ``AWS_ACCESS_KEY_ID``, ``CI_TOKEN_OF_ANNA``."""


def is_secret_name(name: str) -> bool:
    """Tell whether a value of this name is a secret: ``HF_TOKEN``, ``api-key``; not ``eos_token`` or ``PWD``."""
    name = name.strip()
    if name.lower() in {"pwd", "oldpwd"}:
        return False
    found = re.search(rf"(?i){KEY}\Z", name)
    if found is None:
        return _VARIABLE.fullmatch(name) is not None
    return not (found[0].lower() == "token" and NOT_A_TOKEN.search(name[: found.start()]))


def is_secret_variable(name: str) -> bool:
    """Tell whether a variable's or an option's value is a secret, however its name is written: ``--access-key-id``."""
    return is_secret_name(name.replace("-", "_").upper())


def is_secret_option(word: str) -> bool:
    """Tell whether the next word of a command line is a secret: ``--password``, not ``--max-token``."""
    return word.startswith("-") and "=" not in word and (is_secret_name(word.lstrip("-")) or word == "--key")


def holds_token(text: str) -> bool:
    """Tell whether a text holds a token of a known form, a private key, or a URL with a password."""
    return _token().search(text) is not None


def hide_tokens(text: str, hidden: str) -> str:
    """Return a text with ``hidden`` in the place of each token that it holds."""
    return _token().sub(lambda _: hidden, text)


_FORMS = (
    # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
    r"(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|APKA|AROA)[A-Z0-9]{12,}",
    # https://github.blog/2021-04-05-behind-githubs-new-authentication-token-formats/
    r"gh[pousr]_[A-Za-z0-9]{16,}",
    r"github_pat_[A-Za-z0-9_]{16,}",
    # https://docs.gitlab.com/security/tokens/#token-prefixes
    r"gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[\w.-]{16,}",
    # https://huggingface.co/docs/hub/security-tokens
    r"(?:hf|api_org)_[A-Za-z0-9_-]{16,}",
    # https://platform.openai.com/docs/api-reference/authentication, https://docs.anthropic.com/en/api/overview
    r"sk[_-][\w-]{16,}",
    # https://docs.stripe.com/keys, https://docs.stripe.com/webhooks
    r"[rsp]k_(?:live|test)_[A-Za-z0-9]{10,}",
    r"whsec_[A-Za-z0-9+/=]{16,}",
    # https://docs.slack.dev/authentication/tokens
    r"xox[abcdeoprs][_-][A-Za-z0-9-]{10,}",
    r"xapp-[A-Za-z0-9-]{10,}",
    # https://cloud.google.com/docs/authentication/api-keys, .../token-types
    r"AIza[\w-]{30,}",
    r"GOCSPX-[\w-]{16,}",
    r"ya29\.[\w.-]{16,}",
    # https://docs.npmjs.com/about-access-tokens, https://pypi.org/help/#apitoken
    r"npm_[A-Za-z0-9]{20,}",
    r"pypi-AgE[\w-]{16,}",
    # https://docs.docker.com/security/access-tokens/, https://docs.databricks.com/dev-tools/auth/pat.html
    r"dckr_(?:pat|oat)_[\w-]{16,}",
    r"dapi[0-9a-f]{32}",
    # https://docs.digitalocean.com/reference/api/create-personal-access-token/
    r"do[opr]_v1_[0-9a-f]{32,}",
    # https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys
    r"SG\.[\w-]{16,}\.[\w-]{16,}",
    # https://developer.hashicorp.com/vault/docs/concepts/tokens, https://tailscale.com/kb/1085/auth-keys
    r"hv[sbr]\.[\w-]{20,}",
    r"tskey-[\w-]{10,}",
    # https://docs.nvidia.com/ngc/, https://replicate.com/docs/topics/security/api-tokens, https://console.groq.com/docs
    r"nvapi-[\w-]{20,}",
    r"r8_[A-Za-z0-9]{20,}",
    r"gsk_[A-Za-z0-9]{20,}",
    r"xai-[A-Za-z0-9]{20,}",
    # https://core.telegram.org/bots/api#authorizing-your-bot
    r"\d{8,10}:AA[\w-]{30,}",
    # https://github.com/C2SP/C2SP/blob/main/age.md
    r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
    # RFC 7519: three parts in base64url, the first of which begins with {"
    r"eyJ[\w-]{16,}(?:\.[\w-]*){0,4}",
)

TOKEN = rf"(?<![A-Za-z0-9])(?:{'|'.join(_FORMS)})"
"""A pattern of all these forms."""


@functools.cache
def _token() -> re.Pattern[str]:
    # RFC 3986 3.2.1; RFC 7468
    return re.compile(rf"{TOKEN}|://[^/\s:@]*:[^/\s@]+@|-----BEGIN [A-Z0-9 ]{{0,40}}PRIVATE KEY(?: BLOCK)?-----")
