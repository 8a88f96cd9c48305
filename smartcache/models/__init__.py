"""Local models: the only files that import torch, transformers and sentence_transformers."""
