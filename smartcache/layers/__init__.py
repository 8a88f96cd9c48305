"""The three layers: answers, chunks, prefixes."""
