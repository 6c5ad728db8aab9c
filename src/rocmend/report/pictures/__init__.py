"""Pictures: blocks of a document drawn as SVG, as lines of a terminal, and as the table with the same figures."""
