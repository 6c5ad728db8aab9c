"""The tables, as the steps that led to them."""

from __future__ import annotations

APPLICATION_ID = 0x524D4E44
"""Marks an SQLite file as ours ("RMND"). Source: https://www.sqlite.org/pragma.html#pragma_application_id"""

_FIRST = (
    """
    CREATE TABLE machine (
        hash TEXT PRIMARY KEY NOT NULL,
        snapshot BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE evidence (
        id TEXT PRIMARY KEY NOT NULL,
        kind TEXT NOT NULL,
        subject TEXT NOT NULL,
        identity TEXT NOT NULL,
        verdict TEXT NOT NULL,
        gfx_target TEXT NOT NULL,
        machine TEXT REFERENCES machine (hash),
        run TEXT NOT NULL,
        record TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE artifact (
        evidence TEXT NOT NULL REFERENCES evidence (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        size_bytes INTEGER NOT NULL,
        PRIMARY KEY (evidence, name)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX evidence_kind ON evidence (kind, id)",
    "CREATE INDEX evidence_subject ON evidence (subject, id)",
    "CREATE INDEX evidence_identity ON evidence (identity, id)",
    "CREATE INDEX evidence_verdict ON evidence (verdict, id)",
    "CREATE INDEX evidence_gfx_target ON evidence (gfx_target, id)",
    "CREATE INDEX evidence_run ON evidence (run, id)",
    "CREATE INDEX evidence_machine ON evidence (machine)",
    "CREATE INDEX artifact_sha256 ON artifact (sha256)",
)

_GROUPS_BY_INDEX = (
    # Groups are counted from the index alone: at a million records that is a second instead of twelve.
    "DROP INDEX evidence_run",
    "CREATE INDEX evidence_run ON evidence (run, verdict, id)",
)

STEPS: tuple[tuple[str, ...], ...] = (_FIRST, _GROUPS_BY_INDEX)
"""Statements that lead from each version to the next; `PRAGMA user_version` counts the steps done.

A step that was released is never changed: a change of the tables is a new step. `evidence.record` holds the record as
JSON (its other columns are for searching), `machine.snapshot` a machine as JSON compressed with zstd.
"""
