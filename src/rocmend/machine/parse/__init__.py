"""Pure parsers from text to values: on any input they return or raise `DataError`."""
