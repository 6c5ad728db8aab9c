"""The suites, one file each."""
