"""The house is in order: a newcomer who reads a name finds one thing under it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import tensorswap

PACKAGE = Path(tensorswap.__file__).parent
REBUILT = {"lower", "kernel", "export", "run"}  # their names change with what is in them
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in REBUILT]


def test_no_two_files_have_one_name() -> None:
    names = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert {name for name, count in names.items() if count > 1} == {"scalar.py"}  # derivatives; eager numbers


def test_no_class_name_stands_twice_in_a_package() -> None:
    classes = Counter(
        (path.parent, node.name)
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert not [name for name, count in classes.items() if count > 1]


# -- which room may import which: only what stands above it here

LAYERS = {
    "arrays": "",
    "errors": "",
    "forks": "",
    "lazy": "forks",
    "datasets": "arrays",
    "room": "errors",
    "language": "arrays errors lazy",
    "debug": "errors language",
    "library": "errors language",
    "rules": "errors language lazy",
    "patterns": "language rules",
    "explain": "errors language patterns rules",
    "pictures": "errors language rules",
    "interpret": "arrays errors language room",
    "plan": "language lazy rules",
    "assembly": "",
    "kernel": "assembly lazy",
    "lower": "kernel language lazy plan",
    "run": "arrays assembly errors forks interpret kernel language lazy lower plan room rules",
    "trust": "arrays errors interpret language plan room rules run",
    "export": "errors language rules run",
    "program": "arrays debug errors explain export forks interpret language lazy library plan rules run trust",
    "einsum": "errors program run",
    "gradcheck": "arrays errors language program rules run",
    "eager": "einsum errors language library program rules run",
    "training": "arrays debug errors interpret language lazy library program room rules run",
    "models": "arrays errors language lazy library program training",
    "bridges": "arrays errors language program rules run training",
    "cluster": "arrays errors interpret language lazy program room run training",
    "budget": "arrays cluster errors interpret language lazy plan program room rules run",
    "teaching": "arrays errors language lazy program rules run",
    "backslash": "teaching",
    "compare": "teaching",
    "jacobian": "teaching",
    "notebook": "errors explain pictures plan program training",
    "tensorswap": "backslash bridges debug eager errors gradcheck lazy library notebook program training",
    "playground": (
        "arrays errors explain gradcheck kernel language lower pictures plan program rules run tensorswap trust"
    ),
    "command": (
        "arrays cluster datasets debug errors explain kernel language library models plan playground program rules "
        "run tensorswap training trust"
    ),
    "__main__": "command",
}
LATE = {  # imports within functions: what plans and compiles, when nothing is found on disk or somebody looks
    "run.call -> plan.table", "run.call -> run.direct", "run.call -> run.execute", "run.call -> run.source",
    "run.direct -> run.direct_code", "run.direct -> run.machine_code", "run.kept -> run.execute",
    "run.kept -> run.words", "run.ahead -> run.compile", "run.known_code -> run.compile",
    "run.runner -> run.runner_code", "run.team -> kernel.ir",
    "command.cache -> run.cache",
    "command.play -> playground.serve",
    "trust.verdicts -> run.cache",
} | {  # plans and kernels when a program is first called: to parse, derive and explain is quicker without them
    "program -> explain.plainly", "program -> export.c_file", "program -> export.python_file",
    "program -> interpret.watch", "program -> run.call", "program -> trust.certify", "program -> trust.validate",
    "program -> trust.verdicts", "run.runnable -> interpret.reference", "run.runnable -> run.call",
    "run.runnable -> run.steps",
} | {  # PyTorch and JAX when one of them is asked for
    "bridges -> bridges.pytorch.torch_bridge", "bridges -> bridges.jax_arrays.jax_program",
} | {  # of the command, where a word does without
    "command.completion -> command.main", "command.doctor -> kernel.registers", "command.doctor -> run.cache",
    "command.show -> command.given_sizes", "command.show -> command.with_gradient", "command.show -> run.machine_text",
    "run.call -> run.kernel_times",
} | {  # Dask and MPI when one of them is asked for
    "cluster.sharded -> cluster.on_dask", "cluster.sharded -> cluster.on_mpi",
}  # fmt: skip
FOR_TYPES = {  # for the same reasons
    "run.call -> plan.table", "run.call -> run.execute", "run.kept -> run.execute",
    "run.known_code -> kernel.ir", "run.known_code -> run.compile",
    "run.runnable -> run.call",
    "program -> plan.table",
    "program -> run.execute", "program -> run.kernel_times", "run.call -> run.kernel_times",
    "command.show -> plan.table", "command.show -> trust.inputs",
} | {  # the public names, each imported when it is first used
    "tensorswap -> backslash", "tensorswap -> bridges", "tensorswap -> debug", "tensorswap -> eager.apply",
    "tensorswap -> eager.custom",
    "tensorswap -> eager.define", "tensorswap -> eager.make", "tensorswap -> eager.products",
    "tensorswap -> eager.tensor",
    "tensorswap -> errors", "tensorswap -> gradcheck", "tensorswap -> library", "tensorswap -> notebook.loop_magic",
    "tensorswap -> program",
    "tensorswap -> training.fit", "tensorswap -> training.step",
}  # fmt: skip


@dataclass(frozen=True)
class Import:
    importer: str
    imported: str
    kind: str  # now, late or for types

    def __str__(self) -> str:
        return f"{self.importer} -> {self.imported}"


def module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__") or PACKAGE.name


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_in(node: ast.AST, module: str, kind: str = "now") -> Iterator[Import]:
    """Every import below a node, lazy ones and those for type checkers too."""
    for child in ast.iter_child_nodes(node):
        within = kind
        if isinstance(child, ast.FunctionDef):
            within = "late"
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            within = "for types"
        names = [alias.name for alias in child.names] if isinstance(child, ast.Import | ast.ImportFrom) else []
        if isinstance(child, ast.ImportFrom):
            package = ".".join((PACKAGE.name, *MODULES[module].relative_to(PACKAGE).parts[:-1]))
            base = resolve_name("." * child.level + (child.module or ""), package)
            names = [f"{base}.{name}" for name in names]
        for name in names:
            known = [n.removeprefix(f"{PACKAGE.name}.") for n in (name, name.rpartition(".")[0])]
            found = next((n for n in known if n in MODULES), None)
            if found is not None and name.startswith(PACKAGE.name):
                yield Import(module, found, kind)
        yield from imports_in(child, module, within)


@cache
def all_imports() -> list[Import]:
    return [i for module, path in MODULES.items() for i in imports_in(ast.parse(path.read_text("utf-8")), module)]


def room_of(module: str) -> str:
    return module.partition(".")[0]


def test_the_table_of_layers_goes_down_only() -> None:
    assert {room_of(module) for module in MODULES} == set(LAYERS)
    rooms = list(LAYERS)
    for room, below in LAYERS.items():
        assert all(rooms.index(other) < rooms.index(room) for other in below.split()), room


def test_every_import_is_in_the_table() -> None:
    rooms = [(room_of(i.importer), room_of(i.imported), str(i)) for i in all_imports()]
    assert not [shown for room, other, shown in rooms if other != room and other not in LAYERS[room].split()]
    assert len(all_imports()) > 900  # they are seen at all


def test_lazy_imports_and_those_for_types_are_few_and_known() -> None:
    assert {str(i) for i in all_imports() if i.kind == "late"} == LATE
    assert {str(i) for i in all_imports() if i.kind == "for types"} == FOR_TYPES


def test_no_module_imports_itself_by_way_of_others() -> None:
    below: dict[str, set[str]] = {}
    for found in all_imports():
        below.setdefault(found.importer, set()).add(found.imported)
    order = list(TopologicalSorter(below).static_order())  # raises where there is a circle
    assert order.index("language.ir") < order.index("program") < order.index(PACKAGE.name)
