"""The other ways to reuse a prefix that the benchmark measures beside ours: the only files here that import torch or a
peer."""
