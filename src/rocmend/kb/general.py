"""An entry for readers: with a machine's values in it, or in general words where there is no machine."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from rocmend.core.records import Remedy
from rocmend.kb.entry import Entry
from rocmend.kb.template import plain, plain_code

_Write = Callable[[str], str]
_SPAN = re.compile(r"`[^`\n]+`")


def in_spans(text: str, code: _Write) -> str:
    """Return Markdown with its code spans rewritten."""
    return _SPAN.sub(lambda found: code(found[0]), text) if "`" in text else text


def headline(entry: Entry) -> str:
    """Return an entry's title in general words."""
    return entry.headline or plain(entry.title)


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
