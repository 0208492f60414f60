"""Tests of kernels as they are on x86-64 with AVX2, on a machine of another kind: qemu-user runs them.

Python, numpy and Numba of x86-64 come from Debian and from the package index into `.emulated/`; nothing is installed,
and nobody need be root. LLVM would take most of an hour under emulation, so a process beside it, which is not emulated,
compiles for the CPU that is (compiler.py); all else, plans and kernels among it, runs as it would there.
"""
