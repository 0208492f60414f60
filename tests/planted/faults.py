"""The table of planted faults."""

from __future__ import annotations

from . import kernels, language, plan, rules, running

FAULTS = (*rules.FAULTS, *plan.FAULTS, *kernels.FAULTS, *language.FAULTS, *running.FAULTS)
