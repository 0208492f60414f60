"""Faults around kernels: arguments, later calls, the cache, certificates, training, eager values and einsum."""

from __future__ import annotations

from .fault import Fault

AGAIN = "tests/test_again.py::"
CACHE = "tests/test_cache.py::"
DIRECT = "tests/test_direct.py::"
FORKS = "tests/test_threads_and_forks.py::"
KEPT = "tests/test_kept.py::"
TRUST = "tests/test_trust.py::"
TRAINING = "tests/test_training.py::"
EAGER = "tests/test_eager.py::"
BRIDGE = "tests/test_bridge_jax.py::"
SILENT = "tests/test_never_silent.py::"

FAULTS = (
    Fault(
        "the short way of large products is not watched", "stale key", "run/products.py",
        "told.keys() == several and not watched.value", "told.keys() == several",
        ("tests/test_large_products.py::test_calls_that_are_looked_at_take_the_long_way",),
        "ts.debug would look at nothing",
    ),
    Fault(
        "the short way of large products leaves a mapping out", "missing guard", "run/products.py",
        "mapping if type(mapping) is dict and not arrays else {}", "mapping if mapping and not arrays else arrays",
        ("tests/test_large_products.py::test_what_is_wrong_is_refused",),
        "an argument that no input has would pass",
    ),
    Fault(
        "a run that stops before its last batch goes on from an earlier one", "off by one", "training/fit.py",
        "example=0 if done else at", "example=0 if done else begun.example",
        ("tests/test_training_checks.py::test_a_run_that_stopped_at_any_step_visits_each_example_once",),
        "examples would be trained on twice",
    ),
    Fault(
        "indices that a derivative adds have the sizes of others", "swapped index", "run/steps.py",
        "if name in work.loops.indices}", "if name in work.sizes.index}",
        ("tests/test_once_wrong.py::test_adjoints_of_long_products_that_are_read_off_their_places",),
        "two ranges would change places where products are taken in steps",
    ),
    Fault(
        "positions may be fractions", "skipped check", "run/arguments.py",
        "    _check_integers(loops, arrays)\n", "",
        ("tests/test_bad_arguments.py::test_index_is_no_integer[float32-gather]",),
        "2.7 is no place in an array",
    ),
    Fault(
        "later calls check the greatest index only", "skipped check", "run/call.py",
        "elif value.size and (value.min() < low or value.max() > high):", "elif value.size and value.max() > high:",
        ("tests/test_compiled.py::test_gathered_indices_are_checked_at_every_call",),
        "-1 would be read in the second call",
    ),
    Fault(
        "repeated calls check the greatest index only", "skipped check", "run/runner_code.py",
        'ir.joined("either", [low, high])', 'ir.joined("either", [high])',
        (AGAIN + "test_what_was_refused_before_is_refused_again[label below, arrays alone]",),
        "-1 would be read in the third call",
    ),
    Fault(
        "results of repeated calls begin with what lay there", "dropped factor", "run/direct.py",
        "self.known.make[np.empty if result.start is None else np.zeros]", "self.known.make[np.empty]",
        (AGAIN + "test_what_is_kept_between_short_calls_is_made_anew",),
        "sums would go on from what was there",
    ),
    Fault(
        "repeated calls do not look at strides", "skipped check", "run/runner_code.py",
        "every(axis, wanted(0), _fails(extent, stride))", "every(axis, wanted(0), _fails(extent))",
        (AGAIN + "test_another_call_is_as_right_as_the_first[strides, arrays alone]",),
        "another layout of the same shape",
    ),
    Fault(
        "direct calls take any static integer", "skipped check", "run/direct_code.py",
        "code.only_if(code.equal(whole(), cell))", "whole()",
        (DIRECT + "test_static_integers_are_part_of_what_is_known",),
        "kernels of one shift would serve another",
    ),
    Fault(
        "direct calls take numbers of any type", "skipped check", "run/direct_code.py",
        "            code.only_if(code.equal(code.type_of(found, state), code.load(row, Taken.TYPE)))\n", "",
        (DIRECT + "test_numbers_of_another_kind_go_the_other_way[2]",),
        "what is no float would be read as one",
    ),
    Fault(
        "direct calls run beside other kernels", "race", "run/direct_code.py",
        "code.builder.ret(code.builder.zext(code.equal(found, acquired), WORD))", "code.builder.ret(WORD(1))",
        (DIRECT + "test_while_other_kernels_run_a_shared_call_waits",),
        "two threads would use the memory of one call",
    ),
    Fault(
        "direct calls keep numbers that another thread has written", "race", "run/direct_code.py",
        "                    code.store(write(code, found, whole), place)",
        "                    with builder.if_then(code.equal(code.load(place), 0)):\n"
        "                        code.store(write(code, found, whole), place)",
        (DIRECT + "test_threads_have_their_own_numbers[updated]",),
        "a thread would use the number of another",
    ),
    Fault(
        "what threads share is freed before they end", "dropped factor", "run/team_words.py",
        "for_ever((ctypes.c_int64 * (Team.END + 16))())", "(ctypes.c_int64 * (Team.END + 16))()",
        (DIRECT + "test_calls_while_python_comes_to_its_end",),
        "a process would never end",
    ),
    Fault(
        "direct calls do not see what is watched", "skipped check", "run/direct_code.py",
        "    otherwise_unless(code.equal(code.load(code.load(state, State.WATCHED)), 0))\n", "",
        (DIRECT + "test_switches_are_seen",),
        "a NaN would pass though the user asked to be told",
    ),
    Fault(
        "direct calls run while kernels are being stopped", "skipped check", "run/direct_code.py",
        "    unless(going_on, results=results, number=made)\n", "",
        (DIRECT + "test_while_kernels_are_stopped_calls_are_not_direct[light]",),
        "results would be half done",
    ),
    Fault(
        "direct calls keep every result", "dropped factor", "run/direct_code.py",
        "    leave(False, results, made)\n", "    leave(False, None, None)\n",
        (DIRECT + "test_memory_does_not_grow",),
        "memory would grow with each call",
    ),
    Fault(
        "a lock that a parent held stays closed in its child", "race", "run/interrupt.py",
        "    LOCK._at_fork_reinit()", "    LOCK.locked()",
        (DIRECT + "test_a_child_has_its_own_lock_and_threads",),
        "the child would wait for ever",
    ),
    Fault(
        "kernels of one type serve another", "stale key", "run/call.py",
        "parts += (name, value.shape, value.strides, value.dtype)", "parts += (name, value.shape)",
        (AGAIN + "test_another_call_is_as_right_as_the_first[type of labels, with a number]",),
        "what a kernel was made for is part of its key",
    ),
    Fault(
        "the checksum is not compared", "skipped check", "run/cache.py",
        "return content if newline and head == _checksum(name, content) else None",
        "return content if newline else None",
        (CACHE + "test_every_bit_counts",),
        "a flipped bit ends in a signal",
    ),
    Fault(
        "objects that are gone are not missed", "skipped check", "run/cache.py",
        "if len(found) == len(objects) else None", "",
        (CACHE + "test_an_object_that_is_gone_is_compiled_again",),
        "the linker would end the process where it finds no symbol",
    ),
    Fault(
        "functions that kernels share are not told to those who find them on disk", "skipped check", "run/compile.py",
        "ObjectCode(found, objects, needed)", "ObjectCode(found, objects)",
        (CACHE + "test_programs_share_tiles_in_a_process_and_find_them_again_one_by_one",),
        "another process would not load them, and the linker would end it",
    ),
    Fault(
        "kernels of a plan are kept before it is certified", "skipped check", "run/ahead.py",
        "            yield begin\n            if",
        "            try:\n                yield begin\n            finally:\n"
        "                keep_all(batch)\n            if",
        (FORKS + "test_a_plan_that_is_refused_leaves_no_kernel",),
        "what was refused would be on disk",
    ),
    Fault(
        "kernels outlive the code that made them", "stale key", "run/cache.py",
        "return repr((versions, _helpers(), get_host_cpu_name()", "return repr((versions, get_host_cpu_name()",
        (CACHE + "test_what_kernels_call_is_part_of_their_key",),
        "after an upgrade the old kernels would be read, with the old faults",
    ),
    Fault(
        "the source is not part of the key", "stale key", "run/cache.py",
        'hashlib.sha256(f"{stamp()}\\n{source}".encode()).hexdigest()', "hashlib.sha256(stamp().encode()).hexdigest()",
        (CACHE + "test_what_kernels_call_is_part_of_their_key",),
        "every program would get the first one's kernel",
    ),
    Fault(
        "plans of one kind of number serve another", "stale key", "run/kept.py",
        "(bound.loops, bound.kinds, bound.sizes", "(bound.loops, bound.sizes",
        (KEPT + "test_keys_tell_plans_apart",),
        "what a plan was made for is part of its key",
    ),
    Fault(
        "plans outlive the code that made them", "stale key", "run/cache.py",
        "repr((sorted(_texts().items()), stamp(), registers()))", "repr(stamp())",
        (CACHE + "test_what_kernels_call_is_part_of_their_key",),
        "after an upgrade the old plans would run, with the old faults",
    ),
    Fault(
        "plans whose kernels are gone are used", "skipped check", "run/kept.py",
        "return found if kept([row.code for row in found.rows]) else None", "return found",
        (KEPT + "test_a_plan_of_another_making_is_not_read",),
        "there would be no kernel to call",
    ),
    Fault(
        "a plan that nobody has certified is taken for one that was", "stale key", "run/kept.py",
        "self.scalars, self.order, self.certified, ", "self.scalars, self.order, ",
        (KEPT + "test_without_certificates_plans_are_others",),
        "a wrong plan would run in all later processes",
    ),
    Fault(
        "calls keep the arrays that they were made for", "lost memory", "run/call.py",
        "{name: _like(array) for name, array in made.bound.arrays.items()}", "made.bound.arrays",
        (KEPT + "test_arrays_of_a_call_are_not_kept",),
        "a program would hold the first data that it saw for ever",
    ),
    Fault(
        "forks do not wait for imports", "race", "forks.py",
        "self.change.wait_for(lambda: self.forking is None and (me in self.depths or not self.depths))", "pass",
        (FORKS + "test_forks_wait_for_who_is_inside",),
        "the child would wait for a lock that nobody opens",
    ),
    Fault(
        "a fork that Ctrl-C ends goes on", "race", "forks.py",
        "while self.forking != me:", "if self.forking != me:",
        (FORKS + "test_a_fork_that_is_interrupted_waits_on",),
        "the child would have what another thread was at",
    ),
    Fault(
        "hooks of forks leave their work to another thread", "race", "run/interrupt.py",
        " or NO_FORK.forking == threading.get_ident():", ":",
        (FORKS + "test_hooks_of_forks_make_first_calls",),
        "which would wait for the end of the fork, and the fork for it",
    ),
    Fault(
        "forks wait when others have locked themselves", "race", "forks.py",
        "import logging  # noqa: F401  # it registers before this does, see below\n", "",
        (FORKS + "test_forks_wait_for_who_is_inside",),
        "the thread that imports would wait for the one that forks, and that for it",
    ),
    Fault(
        "forks do not wait for what runs", "race", "run/runnable.py",
        "with NO_FORK:\n            from .call import Caller", "if True:\n            from .call import Caller",
        (FORKS + "test_first_calls_import_and_compile_where_forks_wait",),
        "the child would wait for a lock that nobody opens",
    ),
    Fault(
        "results have the caller's own dtype", "stale key", "run/words.py",
        "return np.dtype(dtype.str)", "return dtype",
        (KEPT + "test_dtypes_of_results_are_the_usual_ones[q]",),
        "who finds a plan would have another type than who makes it",
    ),
    Fault(
        "names in plain accesses are not looked at", "skipped check", "language/parse.py",
        "return ir.Access(self._name(name), indices", "return ir.Access(str(name), indices",
        ("tests/test_grammar.py::test_plain_accesses_are_read_as_by_their_rules",),
        "a function would become a tensor",
    ),
    Fault(
        "buffers that follow each other share memory", "off by one", "run/memory.py",
        "if other.first <= buffer.last and buffer.first <= other.last",
        "if other.first < buffer.last and buffer.first < other.last",
        ("tests/test_edges_of_plans.py::test_buffers_that_live_together_lie_apart",),
        "a kernel would write over what it reads",
    ),
    Fault(
        "a wrong plan gets a certificate", "skipped check", "trust/certify.py",
        "        if different is None:\n            return True", "        if True:\n            return True",
        (TRUST + "test_a_plan_that_drops_a_factor_is_refused",),
        "a check that never fails is none",
    ),
    Fault(
        "a wrong derivative agrees with its partner", "skipped check", "trust/certify.py",
        "if found.agree and found.scale > 0:", "if found.scale > 0:",
        (TRUST + "test_a_wrong_derivative_is_refused",),
        "the dot-product test is what stands between a wrong rule and a user",
    ),
    Fault(
        "the state of the optimiser is not resumed", "skipped check", "training/fit.py",
        "for name, array in arrays.items():\n            array[...] = found",
        "for name, array in self.params.items():\n            array[...] = found",
        (TRAINING + "test_a_run_goes_on_where_it_stopped",),
        "a run that goes on is no longer the same run",
    ),
    Fault(
        "a resumed epoch repeats its examples", "off by one", "training/fit.py",
        "start = self.position.example if number == self.position.chunk else 0", "start = 0",
        (TRAINING + "test_a_run_goes_on_in_the_middle_of_an_epoch",),
        "examples would be seen twice",
    ),
    Fault(
        "the last batch of an epoch is left out", "off by one", "training/training_loop.py",
        "if whole < len(rows):", "if whole == 0:",
        (TRAINING + "test_fit_makes_the_steps_that_step_makes[adam-float64]",),
        "examples that do not fill a batch would never be learned from",
    ),
    Fault(
        "every epoch has the order of the first", "stale key", "training/shuffle.py",
        "SeedSequence([seed & (2**64 - 1), epoch])", "SeedSequence([seed & (2**64 - 1)])",
        (TRAINING + "test_every_position_is_met_once",),
        "a permutation for each epoch",
    ),
    Fault(
        "the eager quotient adds", "wrong sign", "eager/elementwise.py",
        '"1 / b", "-y / b")', '"1 / b", "y / b")',
        (EAGER + "test_operators[<lambda>2]",),
        "the rules of eager operators are their own",
    ),
    Fault(
        "eager maxima go to the last winner", "wrong rule", "eager/reductions.py",
        "winner = argument(flat, axis=-1)[..., None]",
        "winner = flat.shape[-1] - 1 - argument(flat[..., ::-1], axis=-1)[..., None]",
        (EAGER + "test_max_routes_to_the_first_winner",),
        "as in programs: the first",
    ),
    Fault(
        "einsum keeps the order of its letters", "swapped index", "einsum/subscripts.py",
        "sorted(c for c in set(letters) if letters.count(c) == 1)",
        "(c for c in dict.fromkeys(letters) if letters.count(c) == 1)",
        ("tests/test_einsum.py::test_forms_equal_numpy",),
        "without an arrow the output is in alphabetical order",
    ),
    Fault(
        "einsum does not broadcast under an ellipsis", "wrong rule", "einsum/subscripts.py",
        "for k in reversed(range(count if dots else 0))", "for k in range(count if dots else 0)",
        ("tests/test_einsum.py::test_forms_equal_numpy",),
        "axes line up at their end, not at their start",
    ),
    Fault(
        "plain numbers that compare equal share code", "stale key", "bridges/jax_arrays/primitive.py",
        "return Number(name, value, repr(value))", 'return Number(name, value, "")',
        (BRIDGE + "test_plain_numbers_never_widen_and_are_told_apart",),
        "code for 1.0 would run for 1, and that for 0.0 for -0.0",
    ),
    Fault(
        "a batch keeps the place that its axis had", "swapped index", "bridges/jax_arrays/primitive.py",
        "jnp.moveaxis(operand, axis, 0) if name in over else operand", "operand",
        (BRIDGE + "test_transformations_are_those_of_jax[vmap over another axis]",),
        "the index of a batch comes first",
    ),
    Fault(
        "compiled code is named without its shapes", "stale key", "bridges/jax_arrays/lowering.py",
        'told = f"{identity} {[(place.shape, place.dtype.str) for several in places for place in several]}"',
        "told = identity",
        (BRIDGE + "test_code_for_other_shapes_is_other_code",),
        "the second shape would be read in the frames of the first",
    ),
    Fault(
        "what the way back reads is the caller's array", "value reused", "eager/make.py",
        "return array.copy() if array.flags.writeable or array.base is not None else array", "return array",
        (SILENT + "test_an_array_may_change_before_the_gradient_is_taken[a product]",),
        "the gradient would be that of what the array holds by then",
    ),
    Fault(
        "a result that nobody uses is multiplied by 0", "wrong rule", "eager/custom.py",
        "return 0.0 if type(value) is float else np.zeros_like(value)", "return value * 0.0",
        (SILENT + "test_a_result_that_nobody_uses_adds_nothing",),
        "0 times an infinity is NaN",
    ),
    Fault(
        "a sum is as narrow as its operands whatever it goes to", "wrong type", "einsum/recipe.py",
        "    if out is not None and out[1] is not None:\n", "    if False:\n",
        (SILENT + "test_a_wide_array_for_the_result_widens_the_sum",),
        "numpy adds up in the type of out",
    ),
    Fault(
        "gradcheck compares what is no number", "skipped check", "gradcheck.py",
        "if not np.isfinite(result[y]).all():", "if False:",
        (SILENT + "test_gradcheck_does_not_pass_what_it_cannot_see",),
        "differences of NaN tell nothing",
    ),
    Fault(
        "a uniform number of 1", "off by one", "kernel/functions/whole.py",
        'ir.Choice(ir.compare("<", value, most), value, most)', "value",
        (SILENT + "test_a_uniform_number_is_below_1_in_single_precision",),
        "log(1 - u) would be infinite",
    ),
)  # fmt: skip
