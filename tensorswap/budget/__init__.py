"""Derivatives within a limit of memory: a recurrence in stretches that are computed twice, or a program in shards."""
