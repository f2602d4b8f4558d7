"""One module per job kind: how to read its gang, build, suspend and resume it, and know that it ended."""
