"""How each command's data is laid out as a document."""
