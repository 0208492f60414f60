"""Loads the engine of an exported file, into which everything below the line is copied."""

from __future__ import annotations

# -- everything below is copied
import base64
import importlib
import io
import json
import lzma
import pickle
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType
from typing import Any


def unpacked(text: str) -> bytes:
    return lzma.decompress(base64.b85decode("".join(text.split())))


class Engine(MetaPathFinder, InspectLoader):
    """Imports the modules of the engine under a name of their own: files with the same engine share it."""

    def __init__(self, name: str, packed: str) -> None:
        self.name = name  # tells apart what differs
        self.modules: dict[str, str] = json.loads(unpacked(packed))
        self.sources: dict[str, str] = {name: "", **{f"{name}.{module}": text for module, text in self.modules.items()}}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(fullname, self) if fullname in self.sources else None

    def is_package(self, fullname: str) -> bool:
        return any(module.startswith(f"{fullname}.") for module in self.sources)

    def get_source(self, fullname: str) -> str:
        return self.sources[fullname]

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.sources[fullname], f"<{fullname}>")  # the name that a traceback shows

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{self.name}.{name}")


class Programs(pickle.Unpickler):
    """Reads programs, whose classes are the engine's."""

    def __init__(self, engine: Engine, packed: str) -> None:
        super().__init__(io.BytesIO(unpacked(packed)))
        self.engine = engine

    def find_class(self, module: str, name: str) -> Any:
        room, _, rest = module.partition(".")
        return getattr(self.engine.module(rest), name) if room == "tensorswap" else super().find_class(module, name)


def load(name: str, packed_engine: str, packed_programs: str) -> Mapping[str, Any]:
    """Forward and adjoint, if there is one, as the program that was exported and its adjoint are called."""
    if name not in sys.modules:
        sys.meta_path.append(Engine(name, packed_engine))
    loader: Any = importlib.import_module(name).__loader__
    found = Programs(loader, packed_programs).load()
    loader.module("language.parse").RULES.update(found["rules"])
    loader.module("language.functions").DEFINED.update(found["defined"])
    runnable = loader.module("run.runnable").Runnable
    calls: dict[str, Any] = {}
    for call, (loops, derivation) in found["calls"].items():
        calls[call] = runnable(loops, calls.get("forward"), derivation)
    return calls
