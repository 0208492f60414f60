"""Planted faults: small mistakes of the kind that people make, each of which some test must find."""
