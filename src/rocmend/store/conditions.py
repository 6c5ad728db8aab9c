"""What a search asks for, as SQL."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from rocmend.store.ids import lowest_id, utc_time


class Conditions:
    """Conditions that all have to hold.

    Attributes:
        texts: Each in SQL.
        values: What stands for the question marks, in order.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.values: list[str] = []

    def equal(self, **columns: str | None) -> None:
        """Ask for these values; None asks for nothing."""
        for column, value in columns.items():
            if value is not None:
                self.texts.append(f"{column} = ?")
                self.values.append(value)

    def among(self, column: str, values: Collection[str]) -> None:
        """Ask for any of these values."""
        self.texts.append(f"{column} IN ({', '.join('?' * len(values))})")
        self.values += [str(value) for value in values]

    def between(self, since: dt.datetime | str | None, until: dt.datetime | str | None) -> None:
        """Ask for runs started in this time, its end left out; ids begin with the start.

        Raises:
            DataError: A time is not ISO.
        """
        for name, sign, time in (("since", ">=", since), ("until", "<", until)):
            if time is not None:
                text = time if isinstance(time, str) else time.isoformat()
                self.texts.append(f"id {sign} ?")
                self.values.append(lowest_id(utc_time(text, name)))
