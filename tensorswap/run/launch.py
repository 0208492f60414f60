"""Launch: the parts of one kernel, taken by whoever is free: the thread that asks, and those that wait for such work.

A part is claimed by changing the ticket, one word: the first part that nobody has claimed yet, the one behind the last
of them, and above them the number of the job, so that nobody who is late can claim a part of another one. Whoever has
launched a kernel takes parts from the end, and all others from the beginning, so that of kernels which follow each
other a core finds in its cache what it wrote. Then the launcher waits for those that others have claimed, not for
threads that never came: a core that is busy, asleep or taken away costs its share and no more. Which thread runs a part
changes no bit of what it makes.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

from .. import assembly as llvm
from ..kernel.ir import Serve, Statement
from ..kernel.names import TEAM_WORDS
from .team_words import Team

BYTE, WORD, NUMBER = llvm.IntType(8).as_pointer(), llvm.IntType(64), llvm.IntType(32)
NOTHING = llvm.VoidType()
KERNEL = llvm.FunctionType(NOTHING, [BYTE.as_pointer(), WORD.as_pointer(), WORD.as_pointer(), BYTE])
END = 14  # bits of a ticket for the part behind the last, and as many for the first: eight for each of 2,000 threads
PARTS = (1 << END) - 1
JOB = 1 << 2 * END
PATIENCE = 1000  # looks at a word before a thread lets others run after each
LOOKS = 20000  # looks at the ticket before a thread goes to sleep: some milliseconds, as long as a host lets others run
# on a virtual core. One that sleeps lets its core go, and hosts like to give it that of the thread it works with


def launch(builder: Any, node: Statement, args: Sequence[Any]) -> None:
    """Writes a launch: kernel(start, size, thread, context) runs over all parts, on several threads if there are. Or
    what a thread does for ever that helps: it looks for parts to take, and sleeps when there are none."""
    if isinstance(node, Serve):
        _Writer(builder).serve()
        return
    kernel, count, data, threads = args
    several = builder.icmp_signed(">", threads, llvm.Constant(WORD, 1))
    with builder.if_else(several) as (parallel, serial):
        with parallel:
            share = _function(builder.module, "team_share", [WORD] * 4, _share)
            builder.call(share, [kernel, count, data, threads])
        with serial:
            _run(builder, kernel, WORD(0), count, data, WORD(0))


def _function(module: Any, name: str, parameters: list[Any], write: Any, result: Any = NOTHING) -> Any:
    if name in module.globals:
        return module.globals[name]
    function = llvm.Function(module, llvm.FunctionType(result, parameters), name)
    function.linkage = "internal"
    builder = llvm.Builder(function.append_basic_block("entry"))
    made = write(_Writer(builder), *function.args)
    if made is None:
        builder.ret_void()
    else:
        builder.ret(made)
    return function


def _run(builder: Any, kernel: Any, first: Any, count: Any, data: Any, own: Any) -> None:
    """Runs some parts of a kernel, in the thread of a number."""
    with builder.goto_entry_block():
        start, size, thread = (builder.alloca(t) for t in (BYTE, WORD, WORD))
    builder.store(builder.inttoptr(first, BYTE), start)
    builder.store(count, size)
    builder.store(own, thread)
    builder.call(builder.inttoptr(kernel, KERNEL.as_pointer()), [start, size, thread, builder.inttoptr(data, BYTE)])


def _share(writer: _Writer, kernel: Any, count: Any, data: Any, threads: Any) -> None:
    """Hands a kernel out, takes part, and waits for what others have claimed. Nothing is written but in the line of the
    ticket, which has one part less than there are: the last one is this thread's own."""
    builder = writer.builder
    before = writer.read(Team.TICKET)
    done = writer.read(Team.DONE)  # by others, of all kernels
    for word, value in ((Team.ADDRESS, kernel), (Team.CONTEXT, data), (Team.THREADS, threads)):
        writer.write(word, value, "monotonic")  # the ticket tells that they are there
    job = builder.add(builder.and_(before, WORD(-JOB)), WORD(JOB))
    others = builder.sub(count, WORD(1))
    writer.write(Team.TICKET, builder.or_(job, others))
    with builder.if_then(builder.icmp_signed(">", writer.read(Team.ASLEEP), WORD(0)), likely=False):
        writer.system("pthread_mutex_lock", Team.MUTEX)
        writer.system("pthread_cond_broadcast", Team.CONDITION)
        writer.system("pthread_mutex_unlock", Team.MUTEX)
    _run(builder, kernel, others, WORD(1), data, WORD(0))
    awaited = builder.sub(builder.add(done, others), writer.take(WORD(0)))
    with writer.repeated() as (looks, leave):
        builder.cbranch(
            builder.icmp_signed("<", writer.read(Team.DONE), awaited), waiting := writer.block("waiting"), leave
        )
        builder.position_at_end(waiting)
        writer.wait(looks)


def _take(writer: _Writer, own: Any) -> Any:
    """Runs parts until all are claimed, or those of another kernel follow, which is not for the thread of this number;
    gives how many."""
    builder = writer.builder
    with builder.goto_entry_block():
        ran = builder.alloca(WORD)
        builder.store(WORD(0), ran)
    with writer.repeated() as (_, leave):
        ticket = writer.read(Team.TICKET)
        builder.cbranch(writer.is_work(own, ticket), some := writer.block("some"), leave)
        builder.position_at_end(some)
        kernel, data = writer.read(Team.ADDRESS), writer.read(Team.CONTEXT)
        helps = builder.icmp_signed(">", own, WORD(0))
        first, past = writer.unclaimed(ticket)
        part = builder.select(helps, first, builder.sub(past, WORD(1)))
        fewer = builder.add(ticket, builder.select(helps, WORD(1 << END), WORD(-1)))
        swapped = builder.cmpxchg(writer.at(Team.TICKET), ticket, fewer, "seq_cst", "seq_cst")
        with builder.if_then(builder.extract_value(swapped, 1)):
            _run(builder, kernel, part, WORD(1), data, own)
            builder.store(builder.add(builder.load(ran), WORD(1)), ran)
            with builder.if_then(helps):  # who hands out counts its own, and the others' words stay where they are
                builder.atomic_rmw("add", writer.at(Team.DONE), WORD(1), "seq_cst")
    return builder.load(ran)


class _Writer:
    """Writes steps on the words that threads share."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def at(self, word: Team) -> Any:
        module = self.builder.module
        if TEAM_WORDS not in module.globals:
            llvm.GlobalVariable(module, WORD, TEAM_WORDS)
        return self.builder.gep(module.globals[TEAM_WORDS], [WORD(int(word))])

    def read(self, word: Team) -> Any:
        return self.builder.load_atomic(self.at(word), "seq_cst", 8)

    def write(self, word: Team, value: Any, ordering: str = "seq_cst") -> None:
        self.builder.store_atomic(value, self.at(word), ordering, 8)

    def block(self, name: str) -> Any:
        return self.builder.function.append_basic_block(name)

    def repeated(self) -> Any:
        return _Loop(self)

    def pause(self) -> None:
        """Tells the core that this thread waits."""
        arm = platform.machine().lower() in ("aarch64", "arm64")
        name, arguments = ("llvm.aarch64.isb", [NUMBER(15)]) if arm else ("llvm.x86.sse2.pause", [])
        self.builder.call(self.declared(name, NOTHING, [a.type for a in arguments]), arguments)

    def wait(self, looks: Any) -> None:
        """Between two looks: a thread that has looked often lets others run."""
        with self.builder.if_else(self.builder.icmp_signed("<", looks, WORD(PATIENCE))) as (soon, late):
            with soon:
                self.pause()
            with late:
                self.system("sched_yield")

    def declared(self, name: str, result: Any, parameters: list[Any]) -> Any:
        found = self.builder.module.globals.get(name)
        return found or llvm.Function(self.builder.module, llvm.FunctionType(result, parameters), name)

    def system(self, name: str, *words: Team) -> None:
        """Calls a function of the system's library with the addresses of words."""
        self.builder.call(self.declared(name, NUMBER, [WORD.as_pointer()] * len(words)), [self.at(w) for w in words])

    def take(self, own: Any) -> Any:
        return self.builder.call(_function(self.builder.module, "team_take", [WORD], _take, WORD), [own])

    def unclaimed(self, ticket: Any) -> tuple[Any, Any]:
        """The first part that nobody has claimed, and the one behind the last."""
        builder = self.builder
        first = builder.and_(builder.lshr(ticket, WORD(END)), WORD(PARTS))
        return first, builder.and_(ticket, WORD(PARTS))

    def is_work(self, own: Any, ticket: Any = None) -> Any:
        """Whether there are parts that the thread of a number may take: those with a kernel have memory for so many."""
        builder = self.builder
        first, past = self.unclaimed(self.read(Team.TICKET) if ticket is None else ticket)
        some = builder.icmp_signed("<", first, past)
        return builder.and_(some, builder.icmp_signed("<", own, self.read(Team.THREADS)))

    def serve(self) -> None:
        builder = self.builder
        own = builder.add(builder.atomic_rmw("add", self.at(Team.MEMBERS), WORD(1), "seq_cst"), WORD(1))
        with self.repeated():
            with self.repeated() as (looks, leave):
                work = self.is_work(own)
                tired = builder.icmp_signed(">=", looks, WORD(LOOKS))
                builder.cbranch(builder.or_(work, tired), leave, more := self.block("more"))
                builder.position_at_end(more)
                self.wait(looks)
            with builder.if_else(self.is_work(own)) as (some, none):
                with some:
                    self.take(own)
                with none:
                    self.sleep(own)

    def sleep(self, own: Any) -> None:
        """Until there is a part to take. Who hands some out looks for sleepers after that, and a sleeper for parts
        after it is known to be one: one of them sees the other."""
        builder = self.builder
        self.system("pthread_mutex_lock", Team.MUTEX)
        builder.atomic_rmw("add", self.at(Team.ASLEEP), WORD(1), "seq_cst")
        with self.repeated() as (_, leave):
            builder.cbranch(self.is_work(own), leave, asleep := self.block("asleep"))
            builder.position_at_end(asleep)
            self.system("pthread_cond_wait", Team.CONDITION, Team.MUTEX)
        builder.atomic_rmw("sub", self.at(Team.ASLEEP), WORD(1), "seq_cst")
        self.system("pthread_mutex_unlock", Team.MUTEX)


class _Loop:
    """A loop that goes round until a branch leaves it; it counts its rounds."""

    def __init__(self, writer: _Writer) -> None:
        self.builder = writer.builder
        self.head, self.after = writer.block("head"), writer.block("after")

    def __enter__(self) -> tuple[Any, Any]:
        builder = self.builder
        before = builder.block
        builder.branch(self.head)
        builder.position_at_end(self.head)
        self.rounds = builder.phi(WORD)
        self.rounds.add_incoming(WORD(0), before)
        return self.rounds, self.after

    def __exit__(self, *_: object) -> None:
        builder = self.builder
        self.rounds.add_incoming(builder.add(self.rounds, WORD(1)), builder.block)
        builder.branch(self.head)
        builder.position_at_end(self.after)
