"""A program and its adjoint as one Python file that needs numpy and numba, and nothing of tensorswap."""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
from collections.abc import Mapping

from ..errors import LimitError
from ..language import ir
from ..language.functions import DEFINED, FUNCTIONS, Defined
from ..language.render import program as show
from ..language.sizes import infer
from ..rules.scalar import rule
from ..run.runnable import Runnable
from . import standalone
from .engine import engine, packed
from .write_atomically import write_atomically

FUNCTION = '''
def {name}(mapping: Mapping[str, Any] | None = None, /, **arrays: Any) -> Any:
    """Takes inputs by name, in a mapping or as keywords. One output: that array; several: a dict by name."""
    return CALLS["{name}"](mapping, **arrays)
'''


def python_file(path: str | os.PathLike[str], forward: Runnable, adjoint: Runnable | None, why: str = "") -> None:
    """Writes the file; `why` says why there is no adjoint."""
    write_atomically(path, python_source(forward, adjoint, why))


def python_source(forward: Runnable, adjoint: Runnable | None, why: str) -> str:
    """No text of the user's stands in it but in its description: programs are data."""
    calls = {"forward": forward} | ({} if adjoint is None else {"adjoint": adjoint})
    defined = _defined(calls)
    programs = {
        "calls": {name: (call.loops, call._derivation) for name, call in calls.items()},
        "rules": {text: rule(text) for row in FUNCTIONS.values() for text in row.texts},
        "defined": defined,
    }
    name = f"tensorswap_{hashlib.sha256(f'{engine()}{defined}'.encode()).hexdigest()[:16]}"
    loader = inspect.getsource(standalone).split("# -- everything below is copied\n", 1)[1].strip()
    parts = [
        f'"""{_quoted(_description(calls, why))}\n"""',
        f"from __future__ import annotations\n\n{loader}",
        f'# The part of tensorswap that runs programs, packed.\nENGINE = """\n{engine()}\n"""',
        f'PROGRAMS = """\n{_pickled(programs)}\n"""',
        f'CALLS = load("{name}", ENGINE, PROGRAMS)',
        *(FUNCTION.format(name=call).strip() for call in calls),
        f"__all__ = {sorted(calls)!r}",
    ]
    return "\n\n\n".join(parts) + "\n"


def _defined(calls: Mapping[str, Runnable]) -> dict[str, Defined]:
    """The user's functions that the programs call, and those that these call."""
    found: dict[str, Defined] = {}
    waiting = [n for call in calls.values() for s in call.loops.statements for n in s.nodes]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ir.Call) and node.function in DEFINED and node.function not in found:
            made = found[node.function] = DEFINED[node.function]
            waiting += [n for rule in (made.value, *made.derivatives) for n in ir.walk(rule)]
    return dict(sorted(found.items()))


def _pickled(programs: Mapping[str, object]) -> str:
    try:
        return packed(pickle.dumps(programs))
    except RecursionError as error:
        raise LimitError(
            "the program is too deep to be exported",
            hint="compute parts of long expressions in statements of their own",
        ) from error


def _description(calls: Mapping[str, Runnable], why: str) -> str:
    lines = ["Made by tensorswap from a program and its adjoint." if len(calls) == 2 else "Made by tensorswap."]
    for name, call in calls.items():
        lines += ["", f"{_call(name, call)}:", "", *(f"    {line}" for line in show(call.loops).split("\n"))]
    lines += ["", why] if why else []
    lines += ["", "It needs numpy and numba. Kernels are compiled at the first call with arrays of new types or sizes."]
    return "\n".join(lines)


def _call(name: str, call: Runnable) -> str:
    """How it is called, and what it gives."""
    needed = [i for i in infer(call.loops).missing if i not in call.loops.inputs]
    names = [*call.inputs, *call.loops.static_names, *needed]
    if all(name.isidentifier() for name in names):
        inner = ", ".join(f"{name}=..." for name in names)
    else:
        inner = "{" + ", ".join(f"{name!r}: ..." for name in names) + "}"
    results = ", ".join(call.outputs)
    return f"{name}({inner}) gives {results if len(call.outputs) == 1 else f'a dict of {results}'}"


def _quoted(text: str) -> str:
    """A text as it may stand in a text of three quotes."""
    plain = text.encode("ascii", "backslashreplace").decode()
    safe = "".join(c if c == "\n" or c.isprintable() else f"\\x{ord(c):02x}" for c in plain.replace("\\", "\\\\"))
    return safe.replace('"', '\\"')
