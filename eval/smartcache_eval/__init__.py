"""Measures SmartCache on this machine: real work, real clocks, and the conditions beside every number."""
