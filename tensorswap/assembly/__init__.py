"""LLVM's language as text: types, values, blocks, functions and modules, and a builder that writes instructions.

llvmlite has the like, with an object for each instruction that knows its operands. Nobody asks for these here, and
where kernels are compiled most of the time that is not LLVM's went there. So an instruction is a line of text, and only
what is completed later (a phi, a jump that gets marks) is an object.
"""

from .builder import Builder
from .machine_types import (
    ArrayType,
    Constant,
    Converted,
    DoubleType,
    FloatType,
    FunctionType,
    IntType,
    PointerType,
    Type,
    Undefined,
    Value,
    VectorType,
    VoidType,
)
from .module_text import Block, Function, GlobalVariable, Mark, Module

__all__ = [
    "ArrayType",
    "Block",
    "Builder",
    "Constant",
    "Converted",
    "DoubleType",
    "FloatType",
    "Function",
    "FunctionType",
    "GlobalVariable",
    "IntType",
    "Mark",
    "Module",
    "PointerType",
    "Type",
    "Undefined",
    "Value",
    "VectorType",
    "VoidType",
]
