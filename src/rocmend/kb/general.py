"""An entry for readers: with a machine's values in it, or in general words where there is no machine."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from rocmend.core.records import Remedy
from rocmend.kb.entry import Entry
from rocmend.kb.template import PLACEHOLDER, stand_in

_Write = Callable[[str], str]
_SPAN = re.compile(r"`[^`\n]+`")
_ASIDE = re.compile(r"\s*\([^()]*\)")
_SENTENCE = re.compile(r"(?<=[\w)`\"][.!?])\s+(?=[A-Z`\"0-9(])")
_LABELS = {"gpu.gfx_target": "the GPU", "gpu.name": "the GPU"}
"""What a placeholder is called where its value is not known; those that are not here are left out."""


def plain(text: str) -> str:
    """Return prose without a machine: values are left out, with the brackets or the equals sign that they stand by."""
    if not PLACEHOLDER.search(text):
        return text
    begins = text.startswith("{")
    text = _ASIDE.sub(lambda found: "" if PLACEHOLDER.search(found[0]) else found[0], text)
    text = PLACEHOLDER.sub(lambda found: _LABELS.get(found[1], "\0"), text)
    text = re.sub(r"(?::? |=)?\0(?: bytes| %)?", "", text).lstrip()
    return text[:1].upper() + text[1:] if begins else text


def plain_code(text: str) -> str:
    """Return a command without a machine: words in capitals for a person to replace."""
    text = PLACEHOLDER.sub(lambda found: stand_in(found[1]), text)
    return text.replace("{gfx}", "GFX_TARGET").replace("{family}", "GFX_FAMILY")


def in_spans(text: str, code: _Write) -> str:
    """Return Markdown with its code spans rewritten."""
    return _SPAN.sub(lambda found: code(found[0]), text) if "`" in text else text


def headline(entry: Entry) -> str:
    """Return an entry's title in general words."""
    return entry.headline or plain(entry.title)


def advice(entry: Entry) -> str:
    """Return what to do about an entry, in a sentence: its first remedy, else how its text begins."""
    entry = generic(entry)
    main = (one for one in entry.remedy if one.text and not (one.instead_of or one.until))
    remedy = next(main, None)
    text = remedy.text if remedy is not None else entry.body.strip().partition("\n\n")[0]
    return _SENTENCE.split(" ".join(text.split()))[0]


def generic(entry: Entry) -> Entry:
    """Return an entry in general words: no placeholders in its texts, words in capitals in its commands."""
    return rewritten(entry, headline(entry), lambda text: plain(in_spans(text, plain_code)), plain_code)


def rewritten(entry: Entry, title: str, prose: _Write, code: _Write) -> Entry:
    """Return an entry with its texts rewritten.

    Args:
        entry: The entry.
        title: Its new title.
        prose: Rewrites sentences.
        code: Rewrites what is copied into a shell.
    """

    def remedy(one: Remedy) -> Remedy:
        return msgspec.structs.replace(
            one,
            text=prose(one.text),
            title=prose(one.title),
            commands=tuple(map(code, one.commands)),
            risk_note=prose(one.risk_note),
            action=code(one.action),
            check=code(one.check),
            expect=prose(one.expect),
            undo=prose(one.undo),
        )

    return msgspec.structs.replace(
        entry,
        title=title,
        body=prose(entry.body),
        remedy=tuple(map(remedy, entry.remedy)),
        setting=tuple(msgspec.structs.replace(one, value=code(one.value)) for one in entry.setting),
        install=tuple(msgspec.structs.replace(one, command=code(one.command)) for one in entry.install),
    )
