"""The kernels of calls as a C file and its header: a function for each call, which takes the addresses of arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..kernel import c
from ..kernel.ir import Role, Word, number, type_in_memory
from ..lower.layout import CopiesOf
from .execute import Executable
from .safe import COUNTED
from .source import STEP, Host, Memory

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
THREADS = """#ifdef _OPENMP
#include <omp.h>
#define THREADS omp_get_max_threads()
#else
#define THREADS 1
#endif
"""
STATUS = "Gives 0; 1 if memory is short; 2 if an index, a divisor or a place to write is wrong."
KEYWORDS = frozenset({
    "alignas", "alignof", "asm", "auto", "bool", "break", "case", "char", "const", "constexpr", "continue", "default",
    "do", "double", "else", "enum", "extern", "false", "float", "for", "goto", "if", "inline", "int", "linux", "long",
    "nullptr", "register", "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "true",
    "typedef", "typeof", "union", "unix", "unsigned", "void", "volatile", "while",
})  # fmt: skip
STANDARD = re.compile(r"u?int\w*_t|U?INT\w*_(C|M\w+)|(SIZE|PTRDIFF)_M\w+|M_\w+|HUGE_VAL\w?|NULL|NAN|INFINITY|EOF|I")


def c_source(calls: Mapping[str, Executable], header: str) -> tuple[str, str]:
    """The file and its header, for calls by the name of their function."""
    hosts: list[_Host] = []
    for name, made in calls.items():
        hosts.append(_Host(made, name, sum(len(host.made.kernels) for host in hosts)))
    kernels = [kernel.kernel for host in hosts for kernel in host.made.kernels]
    parts = [f'#include "{header}"\n', c.HEAD, THREADS, *c.DEFINITIONS.of(kernels)]
    parts += [c.kernel(kernel, position) for position, kernel in enumerate(kernels)]
    parts += ["\n".join(host.lines()) + "\n" for host in hosts]
    told = "\n\n".join(host.told() for host in hosts)
    return "\n".join(parts), f"#pragma once\n#include <stdint.h>\n\n{told}\n"


class _Host(Host):
    """The function that allocates memory and calls the kernels. It gives 0, 1 if there is not enough memory, or 2 if an
    index is out of bounds, a divisor is zero or an element would be written twice."""

    def __init__(self, made: Executable, function: str, first: int) -> None:
        super().__init__(made)
        self.function = function
        self.first = first  # the number of its first kernel in the file

    def told(self) -> str:
        """The declaration, and what each argument is."""
        made = self.made
        sizes = [(name, made.sizes.shapes[name], dtype) for name, dtype in made.inputs]
        sizes += [(name, made.sizes.shapes[name], made.stored(name)) for name in made.results]
        names = [name.removeprefix("const ").partition("*")[2] for name in self.parameters()]
        lines = [f"   {p}: {dtype} of shape {shape}" for p, (_, shape, dtype) in zip(names, sizes, strict=True)]
        count = len(made.inputs)
        given, results = "\n".join(lines[:count]) or "   nothing", "\n".join(lines[count:])
        about = f"/* Takes\n{given}\n   and writes\n{results}\n   Arrays are contiguous. {STATUS} */"
        return f"{about}\n{self.declaration(self.parameters())};"

    def declaration(self, parameters: list[str]) -> str:
        return f"int {self.function}({', '.join(parameters) or 'void'})"

    def parameters(self) -> list[str]:
        """Inputs, then outputs, under their own names as far as C has such names."""
        made, found = self.made, []
        taken: set[str] = set(KEYWORDS)
        named = [(name, dtype, "const ") for name, dtype in made.inputs]
        named += [(name, made.stored(name), "") for name in made.results]
        for position, (name, dtype, const) in enumerate(named):
            own = name.replace(".", "_")
            own = f"new_{own}" if not const and name in made.loops.inputs else own
            if not NAME.fullmatch(own) or own in taken or STANDARD.fullmatch(own):
                own = f"array_{position}"
                while own in taken:
                    own += "_"
            taken.add(own)
            found.append(f"{const}{self.type(dtype)} *{own}")
        return found

    def lines(self) -> Iterator[str]:
        made, results = self.made, set(self.made.results)
        work = list(self.work())  # which settles what has a name
        names = [f"array_{k}" for k in range(len(self.parameters()))]  # those of the header may be anything's below
        types = [parameter.partition("*")[0] for parameter in self.parameters()]
        yield f"{self.declaration([f'{kind}*{name}' for kind, name in zip(types, names, strict=True)])} {{"
        yield "    const int64_t threads = THREADS;"
        for name, (tensor, dtype) in zip(names, made.inputs, strict=False):
            if tensor not in results and tensor in self.names:
                yield f"    {self.type(dtype)} *{self.name(tensor)} = ({self.type(dtype)} *){name};"
        for name, tensor in zip(names[len(made.inputs) :], made.results, strict=True):
            yield f"    {self.type(made.stored(tensor))} *{self.name(tensor)} = {name};"
            if tensor in made.loops.inputs:
                size = Memory(made.sizes.shapes[tensor], made.stored(tensor)).bytes
                old = names[[name for name, _ in made.inputs].index(tensor)]
                yield f"    memcpy({self.name(tensor)}, {old}, {size});"
        own = {**{t: m for t, m in self.arrays().items() if t not in results}, **self.local()}
        for tensor, memory in own.items():
            yield f"    {self.type(memory.dtype)} *{self.name(tensor)} = malloc({self.bytes(tensor, memory)});"
        enough = " && ".join(["threads > 0", *(f"{self.name(tensor)} != NULL" for tensor in own)])
        yield f"    int status = {enough} ? 0 : 1;"
        yield from (f"    if (!status) {line}" for line in self.too_large())
        yield "    if (!status) {"
        yield from (f"        {line}" for line in work)
        yield from (f"        if ({self.name(tensor)}[0] > 0) status = 2;" for tensor in made.scalars)
        yield "    }"
        yield from (f"    free({self.name(tensor)});" for tensor in own)
        yield "    return status;"
        yield "}"

    def too_large(self) -> Iterator[str]:
        """Looks for whole numbers with which a kernel cannot count."""
        for tensor, dtype in self.made.inputs:
            wide = dtype.itemsize == 8 and dtype.kind in "iu"
            if tensor in self.made.deciding and tensor in self.names and wide:
                name = self.name(tensor)
                count = math.prod(self.made.sizes.shapes[tensor])
                low = "" if dtype.kind == "u" else f"{name}[k] < {-COUNTED} || "
                yield f"for (int64_t k = 0; k < {count}; k++) if ({low}{name}[k] > {COUNTED}) status = 2;"

    def type(self, dtype: np.dtype[Any]) -> str:
        return c.TYPES[type_in_memory(dtype)]

    def parts(self, position: int) -> str:
        return "threads" if self.made.parts[position] > 1 else "1"

    def bytes(self, tensor: Any, memory: Memory) -> str:
        """Of memory: what parts have to themselves, and their copies, there are as many as there are threads."""
        several = isinstance(tensor, tuple) and self.parts(tensor[1]) != "1"
        one = memory.bytes // (memory.shape[0] or 1) if isinstance(tensor, tuple) else memory.bytes
        return f"threads * {max(one, 1)}" if several else str(max(one, 1))

    def local(self) -> dict[Any, Memory]:
        """What the parts of kernels have to themselves."""
        return {
            (word.item, position): Memory((1, kernel.layout.elements(word.item)), kernel.layout.stored(word.item))
            for position, kernel in enumerate(self.made.kernels)
            for word in kernel.kernel.words
            if word.role is Role.LOCAL
        }

    def work(self) -> Iterator[str]:
        made = self.made
        for tensor, memory in self.arrays().items():
            if memory.start is not None:
                value = c.text_of(number(memory.start, type_in_memory(memory.dtype)))
                yield f"for (int64_t k = 0; k < {memory.elements}; k++) {self.name(tensor)}[k] = {value};"
        for position, kernel in enumerate(made.kernels):
            parts = self.parts(position)
            words = ", ".join(["part", parts, *(self.argument(position, word) for word in c.arguments(kernel.kernel))])
            rounds = made.rounds_of(position)
            if rounds is not None and position == rounds.first:
                yield f"for (int64_t {STEP} = {rounds.begin}; {STEP} != {rounds.past}; {STEP} += {rounds.way}) {{"
            if parts != "1":
                yield "#pragma omp parallel for schedule(static, 1)"
            yield f"for (int64_t part = 0; part < {parts}; part++) kernel{self.first + position}({words});"
            if rounds is not None and position == rounds.last:
                yield "}"

    def argument(self, position: int, word: Word) -> str:
        elements = self.made.kernels[position].layout.elements
        match word.role:
            case Role.LOCAL:
                return f"{self.name((word.item, position))} + part * {elements(word.item)}"
            case Role.COPY:
                copies = self.name((CopiesOf(word.item), position))
                return f"part > 0 ? {copies} + (part - 1) * {elements(word.item)} : {self.name(word.item)}"
            case Role.SIZE:
                return str(word.item)
            case Role.STEP:
                return STEP
            case Role.COPIES:
                return f"{self.parts(self.made.producer[position])} - 1"
        if isinstance(word.item, CopiesOf):
            return self.name((word.item, self.made.producer[position]))
        return self.name(word.item)
