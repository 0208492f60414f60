"""Faults in the rules: derivatives, gather form, reductions, and what is shared, batched or inlined."""

from __future__ import annotations

from .fault import Fault

RULES = "tests/test_rules.py::"
CORNERS = "tests/test_corners.py::"
EDGES = "tests/test_edges_of_rules.py::"
GATHER = "tests/test_gather_form.py::"

WINNERS = "tests/test_winners.py::"

FAULTS = (
    Fault(
        "opposite guards are found in one direction only", "value counted twice", "rules/reduce.py",
        "found = [s for s in rest if any(not disjoint(self.loops, s, other) for other in found)]",
        "found = rest if any(not disjoint(self.loops, s, other) for s in rest for other in found) else []",
        (EDGES + "test_tangents_of_guarded_statements_stand_once[three, two of which meet-*=]",),
        "the first statement would push its slope twice",
    ),
    Fault(
        "a value of a growing sum is read where a later one is held", "value reused", "rules/adjoint.py",
        "if not growing:", "if growing is not None:",
        (EDGES + "test_a_value_of_a_sum_that_grows_is_held_by_nothing_that_comes_later[held behind the block]",),
        "the interpreter, too, would give the slope at the end for every step",
    ),
    Fault(
        "a user's condition is asked before those that protect it", "missing guard", "rules/solve.py",
        "guard=conjunction([*own, statement.guard])", "guard=conjunction([statement.guard, *own])",
        (GATHER + "test_the_gathering_adjoint_is_the_transpose[guard_data_parity-0]",),
        "a valid gradient would be refused, for a division that no point makes",
    ),
    Fault(
        "a turn reaches beyond its end", "off by one", "rules/solve.py",
        'ir.Compare("<", ir.Index(name)', 'ir.Compare("<=", ir.Index(name)',
        (GATHER + "test_the_gathering_adjoint_is_the_transpose[turn-4]",),
        "the end of a longer axis has no part in it",
    ),
    Fault(
        "a turn takes a summed index along", "dropped factor", "rules/solve.py",
        "if solution.turn and _vanishes(statement, axis, solution.pivot):", "if False:",
        (GATHER + "test_the_gathering_adjoint_is_the_transpose[turn_by_a_lost_index-0]",),
        "what is added up over it would count once",
    ),
    Fault(
        "opposite guards keep any statements apart", "wrong rule", "rules/written_once.py",
        "ir.index_names(atom) <= own and _lasts", "_lasts",
        (WINNERS + "test_statements_with_opposite_guards_may_meet[places]",),
        "each of two statements would route to a winner of its own",
    ),
    Fault(
        "a winner's adjoint is carried into a reader with another part", "dropped factor", "rules/carried_guards.py",
        "or writes[item.target.tensor] > 1 or", "or",
        (WINNERS + "test_what_follows_a_winner_is_right[read twice]",),
        "what else was added to it would be lost",
    ),
    Fault(
        "a winner's guard is not carried", "missing guard", "rules/carried_guards.py",
        "guard=conjunction((*conjuncts(moved.guard), *conjuncts(reader.guard)))", "guard=reader.guard",
        (WINNERS + "test_what_follows_a_winner_is_right[distances]",),
        "all candidates would share what belongs to one",
    ),
    Fault(
        "asin with a plus under its root", "wrong rule", "language/functions.py",
        '("1 / sqrt(1 - x * x)",)', '("1 / sqrt(1 + x * x)",)',
        (RULES + "test_every_scalar_rule_in_first_and_second_order[asin]",),
        "a table of rules is right line by line or not at all",
    ),
    Fault(
        "atan2 without its minus", "wrong sign", "language/functions.py",
        '"-a / (a * a + b * b)"', '"a / (a * a + b * b)"',
        (RULES + "test_every_scalar_rule_in_first_and_second_order[atan2]",),
        "the second of two arguments is the one that is forgotten",
    ),
    Fault(
        "a tie of max goes to the last", "wrong rule", "language/functions.py",
        '"a if a >= b else b"', '"a if a > b else b"',
        (EDGES + "test_a_tie_of_two_values_goes_to_the_first",),
        "values tie only where inputs are chosen so: random ones never do",
    ),
    Fault(
        "the quotient rule adds", "wrong sign", "rules/differentiate.py",
        "rule=(node,), after=(Over(right),), negative=True)", "rule=(node,), after=(Over(right),))",
        (EDGES + "test_the_derivative_of_every_operation_is_its_slope[A[i] / B[i]]",),
        "the derivative by a divisor",
    ),
    Fault(
        "a product of three loses a factor", "dropped factor", "rules/differentiate.py",
        "after=chain[k + 1 :])", "after=chain[k + 2 :])",
        (CORNERS + "test_derivatives_are_right_to_second_order[product_of_many_factors]",),
        "products of two factors hide it in every second place",
    ),
    Fault(
        "the tangent of a quotient divides once", "dropped factor", "rules/differentiate.py",
        "product((*part.before, *part.rule, change, *part.after))", "product((*part.before, *part.rule, change))",
        (EDGES + "test_the_derivative_of_every_operation_is_its_slope[B[i] / A[i] / B[i]]",),
        "tangents are tested less than adjoints",
    ),
    Fault(
        "a block is not turned around", "wrong rule", "rules/adjoint.py",
        "ir.Block(item.index, inner, not item.down)", "ir.Block(item.index, inner, item.down)",
        (CORNERS + "test_derivatives_are_right_to_second_order[state_one_longer_than_its_steps]",),
        "the adjoint of a recurrence is the recurrence backwards",
    ),
    Fault(
        "the seed is not in the total", "dropped factor", "rules/adjoint.py",
        "*making.helpers.statements, *totals, *backward", "*making.helpers.statements, *backward",
        (RULES + "test_an_output_that_is_also_read_gathers_both_parts",),
        "an output that is read again has two sources of gradient",
    ),
    Fault(
        "the branch taken is forgotten", "missing guard", "rules/adjoint.py",
        "conjunction((statement.guard, *contribution.conditions, winner))", "conjunction((statement.guard, winner))",
        (RULES + "test_not_a_number_in_the_dead_branch_stays_there",),
        "a branch that is not taken has no part in the derivative",
    ),
    Fault(
        "an index that vanishes is not counted", "dropped factor", "rules/derived_inside.py",
        "product([ir.Size(i) for i in forward.indices if i not in named], derived.value)", "derived.value",
        (RULES + "test_an_index_that_vanishes_counts",),
        "a sum over an index that the derivative no longer has is a number of times",
    ),
    Fault(
        "the adjoint of a difference adds", "wrong sign", "rules/adjoint.py",
        'contribution.negative != (statement.operator == "-=")', "contribution.negative",
        (EDGES + "test_a_sum_that_subtracts_has_a_negative_derivative",),
        "`-=` is a sum like `+=`, save for its sign",
    ),
    Fault(
        "a stride without its divisibility", "missing guard", "rules/solve.py",
        "floor_divide(value, coefficient), (whole,))", "floor_divide(value, coefficient), ())",
        (GATHER + "test_the_gathering_adjoint_is_the_transpose[stride2-3]",
         EDGES + "test_what_no_point_reads_has_no_gradient[2*i-10101000]"),
        "every second element would get the gradient of its neighbour",
    ),
    Fault(
        "one step beyond the solved range", "off by one", "rules/solve.py",
        'ir.Compare("<", solution.value, ir.Size(solution.pivot))',
        'ir.Compare("<=", solution.value, ir.Size(solution.pivot))',
        (EDGES + "test_what_no_point_reads_has_no_gradient[i+1-01110000]",),
        "the pivot's range is all that keeps the gather from reading on",
    ),
    Fault(
        "the third statement counts from the second", "off by one", "rules/reduce.py",
        "position = add(position, product(", "position = add(ZERO, product(",
        (EDGES + "test_maximum_over_three_statements_routes_to_one",),
        "two statements hide it",
    ),
    Fault(
        "the product of the others holds the factor itself", "missing guard", "rules/reduce.py",
        "conditions.append(opposite(same))", "pass",
        (RULES + "test_product_is_right_with_zeros_in_first_and_second_order[row0]",),
        "the derivative of a product leaves out the factor that it is taken by",
    ),
    Fault(
        "equal statements around an update are one", "value reused", "rules/simplify.py",
        "if loops.updated & {name, *ir.tensors_read(statement)} or not _is_whole(statement.target):",
        "if loops.updated & {name} or not _is_whole(statement.target):",
        (CORNERS + "test_an_update_between_equal_statements_keeps_them_apart",),
        "the same text at another moment is another value",
    ),
    Fault(
        "a value held under a guard is read without it", "missing guard", "rules/simplify.py",
        "if found is not None and found.conditions <= holds:", "if found is not None:",
        (EDGES + "test_a_value_held_at_some_points_is_not_read_at_others",),
        "where the guard failed there is a zero, not the value",
    ),
    Fault(
        "statements under other guards share a value", "missing guard", "rules/share.py",
        "if isinstance(item, ir.Statement) and item.guard == guard:", "if isinstance(item, ir.Statement):",
        (EDGES + "test_a_value_shared_under_a_guard_is_not_read_at_other_points",),
        "as above, for values that the derivative itself shares",
    ),
    Fault(
        "the tangent of a difference adds", "wrong sign", "rules/tangent.py",
        'item.operator if item.operator in ("=", "-=") else "+="', 'item.operator if item.operator == "=" else "+="',
        (EDGES + "test_a_sum_that_subtracts_has_a_negative_derivative",),
        "`-=` is a sum like `+=`, save for its sign",
    ),
    Fault(
        "a batched axis is counted from the old place", "off by one", "rules/batch.py",
        "return replace(node, axis=node.axis + 1)", "return replace(node, axis=node.axis)",
        (EDGES + "test_batch_counts_axes_behind_the_new_one",),
        "size(X, 0) is another axis once there is one in front",
    ),
    Fault(
        "a definition's index is the caller's by accident", "swapped index", "rules/inline.py",
        "self.taken = set(caller.names) | _names_in_calls(caller)", "self.taken = _names_in_calls(caller)",
        (EDGES + "test_an_index_of_a_definition_is_not_the_callers",),
        "a name that is captured sums over what it should not",
    ),
    Fault(
        "steps of a block down are taken for steps up", "wrong rule", "rules/complete_reads.py",
        "latest = -low if block.down else high", "latest = high",
        (EDGES + "test_a_block_down_reads_what_stands_behind",),
        "what is complete when it is read depends on the direction",
    ),
    Fault(
        "targets that touch are taken for apart", "off by one", "rules/written_once.py",
        "if isinstance(gap, Number) and gap.value > 0:", "if isinstance(gap, Number) and gap.value >= 0:",
        (EDGES + "test_targets_that_share_one_element_are_not_apart",),
        "two statements that write one element must not run as if they did not",
    ),
    Fault(
        "opposite guards of what has changed", "skipped check", "rules/written_once.py",
        "ir.index_names(atom) <= own and _lasts(loops, atom, first, second)",
        "ir.index_names(atom) <= own",
        ("tests/test_once_wrong.py::test_compiled_as_interpreted[opposite guards of what changes in between]",),
        "both may hold, one after the other",
    ),
    Fault(
        "a place that later steps change is read again", "skipped check", "rules/adjoint.py",
        "parts = (*raw.target.indices, raw.value",
        "parts = (raw.value",
        ("tests/test_once_wrong.py::test_a_place_that_later_steps_change_has_no_derivative",),
        "the gradient would go to another element",
    ),
    Fault(
        "an index beyond an axis takes part in a gradient", "missing guard", "rules/derived_inside.py",
        "if shapes.covers(access.tensor, axis, place):",
        "if isinstance(place, ir.Index):",
        ("tests/test_once_wrong.py::test_an_index_beyond_an_axis_has_no_part_in_a_gradient",),
        "`inside` left those points out",
    ),
)  # fmt: skip
