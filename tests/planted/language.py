"""Faults in sizes, proofs and types, and in the interpreter, which is the oracle of all else."""

from __future__ import annotations

from .fault import Fault

SIZES = "tests/test_sizes.py::"
READS = "tests/test_interpreter.py::"

FAULTS = (
    Fault(
        "the proof of bounds allows one more", "off by one", "language/bounds.py",
        "_holds(subtract(Number(extent - 1), place)", "_holds(subtract(Number(extent), place)",
        (SIZES + "test_interval_proof",),
        "kernels run without checks where the proof says so",
    ),
    Fault(
        "less is taken for less or equal", "off by one", "language/bounds.py",
        'case "<":\n            return [subtract(subtract(right, left), Number(1))]',
        'case "<":\n            return [subtract(right, left)]',
        ("tests/test_edges_of_plans.py::test_programs_at_their_edges[a strict guard]",
         SIZES + "test_interval_proof"),
        "the same function bounds loops: a point too many would run",
    ),
    Fault(
        "the interval of a difference keeps its ends", "wrong rule", "language/interval.py",
        "return subtract(a[0], b[1]), subtract(a[1], b[0])", "return subtract(a[0], b[0]), subtract(a[1], b[1])",
        (SIZES + "test_a_difference_of_two_gathered_positions_is_as_wide_as_both",),
        "the least difference has the greatest subtrahend",
    ),
    Fault(
        "the largest range is one larger", "off by one", "language/sizes.py",
        "room = add(subtract(subtract(extent, Number(1)), rest[1]), coefficient_up)",
        "room = add(subtract(extent, rest[1]), coefficient_up)",
        (SIZES + "test_inference",),
        "a size that nobody gave is the largest that keeps all in bounds",
    ),
    Fault(
        "sizes that disagree are not compared", "skipped check", "language/sizes.py",
        "faults = [*_disagreements(loops, sizes, given), *_declaration_faults(loops, sizes, given)]",
        "faults = [*_declaration_faults(loops, sizes, given)]",
        (SIZES + "test_disagreement_names_index_tensors_axes_and_sizes",),
        "a kernel would read beyond the shorter array",
    ),
    Fault(
        "numbers vanish that do not cancel each other", "dropped factor", "language/build.py",
        'right=rest) if value * number == 1:', 'right=rest) if value * number >= 1:',
        ("tests/test_rules.py::test_numbers_that_cancel_each_other_vanish"
         "[r[i] = 0.5 * x[i] ** 3-x.grad[i] += 0.5 * r.grad[i] * 3 * x[i] ** 2]",),
        "a gradient would lack a factor",
    ),
    Fault(
        "numbers cancel where whole ones are left", "value reused", "language/build.py",
        "return found if found is not None and _is_real(found) else None", "return found",
        ("tests/test_rules.py::test_whole_numbers_stay_real_where_a_number_made_them_so"
         "[2 * n[i] * 0.5 * m[i] * x[i]]",),
        "their product wraps where the value did not",
    ),
    Fault(
        "a number cancels one term of a sum alone", "dropped factor", "language/build.py",
        "return None if one is None or other is None else Binary(operator, one, other)",
        "return None if one is None else Binary(operator, one, other or right)",
        ("tests/test_rules.py::test_they_do_so_in_each_term_of_a_sum",),
        "the other term would be twice what it is",
    ),
    Fault(
        "the opposite of more is less", "wrong rule", "language/build.py",
        '">": "<="', '">": "<"',
        ("tests/test_edges_of_rules.py::test_both_branches_meet_at_their_border",),
        "one point of each branch would be in neither",
    ),
    Fault(
        "products of positions are thought small", "wrong rule", "language/word.py",
        "corners = [a * b for a in parts[0] for b in parts[1]]",
        "corners = [parts[0][0] * parts[1][0], parts[0][0] * parts[1][0]]",
        ("tests/test_whole_numbers.py::test_index_arithmetic_never_wraps_around",),
        "positions that wrap around are read somewhere",
    ),
    Fault(
        "a difference is a sum of alternating signs", "wrong sign", "interpret/grid.py",
        'joined = np.add if statement.operator == "-=" else ufunc', "joined = ufunc",
        ("tests/test_edges_of_rules.py::test_a_sum_that_subtracts_has_a_negative_derivative",),
        "numpy's reduce of subtract takes all but the first term away from it",
    ),
    Fault(
        "the branch not taken is evaluated", "missing guard", "interpret/grid.py",
        "self.evaluate(otherwise, mask & ~holds)", "self.evaluate(otherwise, mask)",
        (SIZES + "test_what_intervals_cannot_prove_is_enumerated",),
        "0 if i == 0 else X[i-1] must not ask for X[-1]",
    ),
    Fault(
        "an element may be written twice", "skipped check", "interpret/grid.py",
        "if written[at].any():", "if False:",
        (READS + "test_assignment_to_disjoint_parts_and_overlap",),
        "the later of two values would win in silence",
    ),
    Fault(
        "counts forget the steps of a block", "off by one", "language/word.py",
        "for i in {*statement.indices, *blocks})",
        "for i in statement.indices)",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[a count of steps as a place to read]",),
        "a kernel would read beyond its tensor",
    ),
)  # fmt: skip
