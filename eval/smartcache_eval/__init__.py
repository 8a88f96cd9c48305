"""Measures SmartCache on this machine: real work, real clocks, and the conditions beside every number."""

from smartcache_eval.pairwise import evaluate
from smartcache_eval.protocol import Settings
from smartcache_eval.steps import Step

__all__ = ["Settings", "Step", "evaluate"]
