"""Cycles of the inner loops on CPUs that are not at hand: `python benchmarks/cpus.py` writes results/cpus.md.

Tiles and loops over elements are compiled for each CPU, and llvm-mca (Debian: llvm-19) simulates the innermost loop
with its model of that CPU. Nothing runs, so the figures are the same on any machine. The limit is what the ports of the
model allow: for tiles, fused multiply-adds alone; for other loops, their own instructions without any waiting.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding

import tensorswap as ts
from tensorswap import assembly as llvm
from tensorswap.kernel import llvm as printer
from tensorswap.kernel import tile
from tensorswap.kernel.effort import effort_of
from tensorswap.kernel.modules import Target
from tensorswap.kernel.registers import Registers, assuming
from tensorswap.run.launch import launch
from tensorswap.run.machine_code import pass_manager

RESULT = Path(__file__).parent / "results" / "cpus.md"
ITERATIONS = 200
APART = 1000  # numbers between two rows: kernels know how many
INTEL, ARM, APPLE = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "arm64-apple-macosx"
AVX2, AVX512, NEON = Registers(32, 16, False), Registers(64, 32, False), Registers(16, 32, True)
ELEMENTS = {
    "scale": "Y[i] = 2 * X[i]",
    "add": "Y[i] = X[i] + Z[i]",
    "divide": "Y[i] = X[i] / Z[i]",
    "exp": "Y[i] = exp(X[i])",
    "log": "Y[i] = log(X[i])",
    "tanh": "Y[i] = tanh(X[i])",
    "sigmoid": "Y[i] = sigmoid(X[i])",
    "gelu": "Y[i] = gelu(X[i])",
}


@dataclass(frozen=True)
class Cpu:
    name: str
    triple: str
    registers: Registers

    @cache  # noqa: B019  # there are seven
    def machine(self) -> Any:
        target = binding.Target.from_triple(self.triple)
        return target.create_target_machine(cpu=self.name, opt=3, reloc="pic", codemodel="small")

    @property
    def target(self) -> Target:
        return Target(self.triple, str(self.machine().target_data), "level 3")

    def assembly(self, modules: Iterable[str]) -> str:
        texts = []
        for text in modules:
            module = binding.parse_assembly(text)
            options = binding.create_pipeline_tuning_options(speed_level=3)
            options.slp_vectorization = False
            passes = binding.create_pass_builder(self.machine(), options)
            pass_manager(passes, effort_of(text)).run(module, passes)
            texts.append(str(self.machine().emit_assembly(module)))
        return "\n".join(texts)

    def simulated(self, code: str) -> tuple[float, float]:
        """Cycles that a turn of a loop takes, and those that its ports need at least."""
        words = [simulator(), f"-mcpu={self.name}", f"-mtriple={self.triple}", f"-iterations={ITERATIONS}"]
        out = subprocess.run(words, input=code, capture_output=True, text=True, check=True).stdout
        cycles, ports = (re.search(rf"{word}:\s+([\d.]+)", out) for word in ("Total Cycles", "Block RThroughput"))
        assert cycles is not None
        assert ports is not None
        return float(cycles[1]) / ITERATIONS, float(ports[1])

    def cycles_of_fma(self, size: int) -> float:
        """Of one of many fused multiply-adds that do not wait for each other."""
        if self.triple == INTEL:
            word = "ymm" if self.registers.bytes == 32 else "zmm"
            end = "s" if size == 4 else "d"
            lines = [f"vfmadd231p{end} %{word}14, %{word}15, %{word}{k}" for k in range(12)]
        else:
            end = "4s" if size == 4 else "2d"
            lines = [f"fmla v{k}.{end}, v30.{end}, v31.{end}" for k in range(24)]
        return self.simulated("\n".join(lines))[0] / len(lines)


CPUS = (
    Cpu("haswell", INTEL, AVX2),
    Cpu("skylake-avx512", INTEL, AVX512),
    Cpu("sapphirerapids", INTEL, AVX512),
    Cpu("znver4", INTEL, AVX512),
    Cpu("neoverse-n1", ARM, NEON),
    Cpu("neoverse-v2", ARM, NEON),
    Cpu("apple-m1", APPLE, NEON),
)


@cache
def simulator() -> str:
    found = next((name for name in ("llvm-mca-19", "llvm-mca-20", "llvm-mca-18", "llvm-mca") if shutil.which(name)), "")
    if not found:
        sys.exit("llvm-mca is not installed: apt install llvm-19")
    return found


# -- the loops


JUMP = re.compile(r"\s*(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\s(?:.*\s)?(\.?L\w+)")


def innermost(assembly: str) -> list[str]:
    """The loops without jumps inside. They may be entered at their end, where they ask whether to go on."""
    found: list[str] = []
    begins: dict[str, int] = {}
    lines = assembly.splitlines()
    for number, line in enumerate(lines):
        if label := re.match(r"(\.?L\w+):", line):
            begins[label[1]] = number
        jump = JUMP.match(line)
        if jump and jump[1] in begins:
            body = lines[begins[jump[1]] : number + 1]
            if not any(JUMP.match(inside) for inside in body[:-1]):
                found.append("\n".join(line for line in body if not re.match(r"\s*(\.[a-z]|//|#|;)", line)))
    return found


def tile_code(cpu: Cpu, form: str, size: int) -> tuple[str, tuple[int, int]]:
    """A tile over packed panels, or over rows that lie apart."""
    rows, across = cpu.registers.dot if form == "dot" else cpu.registers.outer
    lanes = cpu.registers.bytes // size
    module = llvm.Module("tile")
    module.triple, module.data_layout = cpu.target.triple, cpu.target.layout
    element = llvm.FloatType() if size == 4 else llvm.DoubleType()
    number, pointer = tile.NUMBER, element.as_pointer()
    kind = llvm.FunctionType(llvm.VoidType(), [pointer] * 3 + [number] * 2)
    function = llvm.Function(module, kind, "tile")
    builder = llvm.Builder(function.append_basic_block())
    a, b, y, steps, row = function.args
    zero, one = number(0), number(1)
    blocks, loop = {
        "lane": (
            (tile.Block(a, zero, one, zero), tile.Block(b, zero, zero, one)),
            (number(rows), number(across * lanes)),
        ),
        "outer": (
            (tile.Block(a, zero, number(APART), zero), tile.Block(b, zero, zero, one)),
            (one, number(across * lanes)),
        ),
        "dot": ((tile.Block(a, zero, number(APART), zero), tile.Block(b, zero, one, number(APART))), (one, one)),
    }[form]
    places = range(across) if form == "dot" else range(0, across * lanes, lanes)
    with assuming(cpu.registers):
        tile.FORMS[form](
            builder, size, rows, places, lanes, across * lanes, form == "lane" and cpu.registers.by_lane, *blocks,
            tile.Block(y, zero, row, one), [(steps, *loop)], llvm.Constant(element, 1.0),
            llvm.Constant(llvm.IntType(1), 0),
        )  # fmt: skip
    builder.ret_void()
    loops = innermost(cpu.assembly([str(module)]))
    return max(loops, key=lambda code: len(re.findall(FUSED, code))), (rows, across)


FUSED = r"\bvfmadd\w+|\bfmla\b"
STACK = r"\(%r[sb]p\)|\[sp"
STORE = {INTEL: r"\bvmov[a-z]+\d*\s+%[xyz]mm\d+, [^%\n]*\(", ARM: r"\bst[ru]r?\s+q|\bstp\s+q"}


def element_code(cpu: Cpu, text: str, dtype: type) -> str:
    with assuming(cpu.registers):
        program = ts.program(text)
        made = program.executable({name: np.ones(4096, dtype) for name in program.inputs})
        (kernel,) = made.kernels
        texts = printer.texts(*printer.entry(kernel.kernel), launch, cpu.target)
    return max(innermost(cpu.assembly(texts)), key=lambda code: (vectors(cpu, code), len(code)))


def vectors(cpu: Cpu, code: str) -> float:
    """Whole vectors of results that a turn of a loop stores."""
    lines = "\n".join(line for line in code.splitlines() if not re.search(STACK, line))
    stores = re.findall(STORE[INTEL if cpu.triple == INTEL else ARM], lines)
    bytes = {"x": 16, "y": 32, "z": 64}
    found = [bytes[word.split("%")[1][0]] if "%" in word else 32 if word.startswith("stp") else 16 for word in stores]
    return sum(found) / cpu.registers.bytes


NOTES = """\
Why some are above 1.1:

- znver4: the model counts three steps for a load that spreads a number, one of them on a port that multiplies. Zen 4
  itself does it while it loads, and so does the model where a multiply-add reads the number. The fetches of what comes
  next count as loads there too.
- skylake-avx512: the model hands the two ports of 64 bytes out unevenly, more so to multiply-adds that read memory.
  Measured on a Sapphire Rapids, tiles in which half of them do are 2 % faster while another thread shares the core.
- apple-m1: the model has more room for multiply-adds by a lane than for those of whole vectors.
"""


# -- the tables


ELEMENT_NOTES = """\
Cycles for one whole vector of results; behind them, as a multiple of what its ports need. What is far above 1 waits for
results of its own: the model looks ahead less far than the CPU, which works on several turns at once.
"""


def main() -> int:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    lines = ["# Inner loops on seven CPUs", "", *(__doc__ or "").split("\n\n", 1)[1].strip().splitlines(), ""]
    lines += [
        "## Tiles",
        "",
        "Cycles for one vector fused multiply-add, as a multiple of the limit of the CPU's model.",
        "",
    ]
    names = [cpu.name for cpu in CPUS]
    lines += [f"| tile | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for form in ("lane", "outer", "dot"):
        for size in (4, 8):
            cells = []
            for cpu in CPUS:
                code, (rows, across) = tile_code(cpu, form, size)
                cycles, _ = cpu.simulated(code)
                count = len(re.findall(FUSED, code))
                ratio = cycles / count / cpu.cycles_of_fma(size)
                spilled = len(re.findall(STACK, code))
                cells.append(f"{ratio:.2f} ({rows} x {across}{', spills' if spilled else ''})")
            lines.append(f"| {form}, float{8 * size} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    lines += ["", NOTES, "## Elements", ""]
    lines += ELEMENT_NOTES.splitlines()
    lines += ["", f"| loop | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for name, text in ELEMENTS.items():
        for dtype in (np.float32, np.float64):
            cells = []
            for cpu in CPUS:
                code = element_code(cpu, text, dtype)
                count = vectors(cpu, code)
                if not count:
                    cells.append("?")
                    continue
                cycles, ports = cpu.simulated(code)
                cells.append(f"{cycles / count:.1f} ({cycles / ports:.2f})")
            lines.append(f"| {name}, {np.dtype(dtype).name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
