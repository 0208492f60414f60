"""Modules, and what they hold: functions of blocks of instructions, variables, and marks that tell LLVM more."""

from __future__ import annotations

from collections.abc import Sequence

from .machine_types import Constant, FunctionType, Type, Value


class Mark:
    """A list of words, values and other marks: LLVM's metadata."""

    def __init__(self, name: str, operands: Sequence[str | Value | Mark]) -> None:
        self.name = name
        self.operands = operands

    def __str__(self) -> str:
        return f"{self.name} = !{{ {', '.join(map(_marked, self.operands))} }}"


def _marked(word: str | Value | Mark) -> str:
    if isinstance(word, Mark):
        return word.name
    return f'!"{word}"' if isinstance(word, str) else word.typed


class Module:
    def __init__(self, name: str = "") -> None:
        self.name = name
        self.triple = ""
        self.data_layout = ""
        self.globals: dict[str, Function | GlobalVariable] = {}
        self.marks: list[Mark] = []
        self.namedmetadata: dict[str, Mark] = {}

    @property
    def functions(self) -> list[Function]:
        return [found for found in self.globals.values() if isinstance(found, Function)]

    def add(self, made: Function | GlobalVariable) -> None:
        assert made.symbol not in self.globals, f"{made.symbol} stands in the module already"
        self.globals[made.symbol] = made

    def add_metadata(self, operands: Sequence[str | Value | Mark]) -> Mark:
        mark = Mark(f"!{len(self.marks)}", operands)
        self.marks.append(mark)
        return mark

    def add_named_metadata(self, name: str, *marks: Mark) -> None:
        self.namedmetadata[name] = Mark(f"!{name}", marks)

    def declare_intrinsic(self, name: str, types: Sequence[Type], of: FunctionType) -> Function:
        """One of LLVM's own functions, for some types."""
        symbol = ".".join((name, *(each.suffix for each in types)))
        found = self.globals.get(symbol)
        assert not isinstance(found, GlobalVariable), "functions of LLVM's have names of their own"
        return found or Function(self, of, symbol)

    def __str__(self) -> str:
        lines = [f'; ModuleID = "{self.name}"', f'target triple = "{self.triple}"']
        lines.append(f'target datalayout = "{self.data_layout}"')
        lines += map(str, (*self.globals.values(), *self.namedmetadata.values(), *self.marks, ""))
        return "\n".join(lines)


class GlobalVariable(Value):
    """A variable that lives as long as the program; of another module, if it begins with nothing."""

    def __init__(self, module: Module, type: Type, symbol: str) -> None:
        super().__init__(type.as_pointer(), f'@"{symbol}"')
        self.symbol = symbol
        self.of = type
        self.linkage = ""
        self.global_constant = False
        self.initializer: Constant | None = None
        module.add(self)

    def __str__(self) -> str:
        kind = "constant" if self.global_constant else "global"
        begin = "" if self.initializer is None else f" {self.initializer.name}"
        linkage = self.linkage or ("external" if self.initializer is None else "")
        return f"{self.name} = {linkage} {kind} {self.of.text}{begin}"


class Parameter(Value):
    def __init__(self, type: Type, name: str) -> None:
        super().__init__(type, name)
        self.attributes: list[str] = []

    def add_attribute(self, attribute: str) -> None:
        self.attributes.append(attribute)

    def __str__(self) -> str:
        return " ".join((self.type.text, *self.attributes, self.name))


class Function(Value):
    """One of the module's, or of another one, if it has no blocks."""

    def __init__(self, module: Module, type: FunctionType, symbol: str) -> None:
        super().__init__(type.as_pointer(), f'@"{symbol}"')
        self.symbol = symbol
        self.module = module
        self.of = type
        self.args = tuple(Parameter(each, f"%a{number}") for number, each in enumerate(type.parameters))
        self.attributes: set[str] = set()
        self.linkage = ""
        self.blocks: list[Block] = []
        self.variables: list[str | Phi | Jump] = []  # instructions that stand before all others
        self.count = 0
        module.add(self)

    def next(self) -> str:
        """A name that nothing else in the function has."""
        self.count += 1
        return f"%v{self.count}"

    def append_basic_block(self, name: str = "block") -> Block:
        block = Block(self, f"{name}.{len(self.blocks)}")
        self.blocks.append(block)
        return block

    def __str__(self) -> str:
        if not self.blocks:
            return f"declare {self.of.result.text} {self.name}({', '.join(each.text for each in self.of.parameters)})"
        head = " ".join(filter(None, ("define", self.linkage, self.of.result.text, self.name)))
        first, *others = self.blocks
        entry = "\n  ".join((f"{first.name}:", *map(str, (*self.variables, *first.instructions))))
        given = ", ".join(map(str, self.args))
        attributes = " ".join(sorted(self.attributes))
        return f"{head}({given}) {attributes}\n{{\n" + "\n".join((entry, *(block.text for block in others))) + "\n}"


class Phi(Value):
    """A value that depends on the block whence control comes."""

    __slots__ = ("incoming",)

    def __init__(self, type: Type, name: str) -> None:
        super().__init__(type, name)
        self.incoming: list[tuple[Value, Block]] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        assert value.type is self.type, f"{value.typed} comes into a phi of {self.type}"
        self.incoming.append((value, block))

    def __str__(self) -> str:
        pairs = ", ".join(f"[{value.name}, %{block.name}]" for value, block in self.incoming)
        return f"{self.name} = phi {self.type.text} {pairs}"


class Jump:
    """The last instruction of a block."""

    __slots__ = ("function", "marks", "text")

    def __init__(self, function: Function, text: str) -> None:
        self.function = function
        self.text = text
        self.marks: list[tuple[str, Mark]] = []

    def set_metadata(self, name: str, mark: Mark) -> None:
        self.marks.append((name, mark))

    def __str__(self) -> str:
        return ", ".join([self.text, *(f"!{name} {mark.name}" for name, mark in self.marks)])


class Block:
    """Instructions that run one after the other."""

    __slots__ = ("ended", "function", "instructions", "name")

    def __init__(self, function: Function, name: str) -> None:
        self.function = function
        self.name = name
        self.instructions: list[str | Phi | Jump] = []
        self.ended = False

    @property
    def text(self) -> str:
        return "\n  ".join((f"{self.name}:", *map(str, self.instructions)))
