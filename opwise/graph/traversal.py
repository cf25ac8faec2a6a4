"""Walks over a graph: ancestors, orders, copies, equality. All iterative: depth is no limit."""

from __future__ import annotations

from collections import deque

from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Variable


def _as_list(variables):
    return [variables] if isinstance(variables, Variable) else list(variables)


def ancestors(variables, blockers=None):
    """Return every variable that ``variables`` depend on, themselves included, nearest first.

    blockers: variables whose own ancestors are left out.
    """
    blockers = frozenset(blockers or ())
    seen = {}
    queue = deque(_as_list(variables))
    while queue:
        var = queue.popleft()
        if var in seen:
            continue
        seen[var] = None
        if var.owner is not None and var not in blockers:
            queue.extend(var.owner.inputs)
    return list(seen)


def inputs(variables, blockers=None):
    """Return the variables without an owner that ``variables`` depend on, in depth-first order."""
    blockers = frozenset(blockers or ())
    found, seen = [], set()
    stack = list(reversed(_as_list(variables)))
    while stack:
        var = stack.pop()
        if var in seen:
            continue
        seen.add(var)
        if var.owner is None or var in blockers:
            found.append(var)
        else:
            stack.extend(reversed(var.owner.inputs))
    return found


def stack_search(start, expand, mode="bfs", build_inv=False):
    """Return the nodes that ``expand`` reaches from ``start``, breadth or depth first.

    build_inv: also return a dict from each node to those that led to it.
    """
    if mode not in ("bfs", "dfs"):
        raise ValueError(f"mode should be bfs or dfs, not {mode!r}")
    queue = deque(start)
    seen, inverse = {}, {}
    while queue:
        node = queue.popleft() if mode == "bfs" else queue.pop()
        if node in seen:
            continue
        seen[node] = None
        for child in expand(node) or ():
            if build_inv:
                inverse.setdefault(child, []).append(node)
            queue.append(child)
    return (list(seen), inverse) if build_inv else list(seen)


def io_toposort(graph_inputs, outputs, orderings=None):
    """Return the Applys between ``graph_inputs`` and ``outputs``, each after those it reads.

    orderings: dict from an Apply to Applys that must come before it. The order is a function of
    the graph alone: depth first from the outputs, the last operand of an Apply first. Raises
    ValueError if the graph has a cycle.
    """
    # copying the set of all variables for every edit of a graph would make the edits quadratic
    stop = graph_inputs if isinstance(graph_inputs, set | frozenset | dict) else set(graph_inputs)
    done = {}
    opened = {}  # where on the stack each Apply lies that waits for others: a cycle comes above it
    stack = [out.owner for out in reversed(outputs) if out.owner is not None and out not in stop]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            continue
        height = len(stack)
        opened_at = opened.get(node)
        if opened_at is None:
            opened[node] = height
            for var in node.inputs:
                owner = var.owner
                if owner is not None and owner not in done and var not in stop:
                    stack.append(owner)
            for before in orderings.get(node, ()) if orderings else ():
                if before not in done:
                    stack.append(before)
            if len(stack) > height:
                continue
        elif opened_at != height:
            raise ValueError(f"graph contains cycles: {node} depends on itself")
        stack.pop()
        done[node] = None
    return list(done)


def general_toposort(outputs, deps, compute_deps_cache=None, deps_cache=None, clients=None):
    """Return everything that ``deps`` reaches from ``outputs``, each after what it depends on."""
    done, stack, opened = {}, list(reversed(_as_list(outputs))), set()
    while stack:
        item = stack[-1]
        if item in done:
            stack.pop()
            continue
        pending = [d for d in deps(item) or () if d not in done]
        if not pending:
            stack.pop()
            done[item] = None
        elif item in opened:
            raise ValueError("graph contains cycles")
        else:
            opened.add(item)
            stack.extend(reversed(pending))
    return list(done)


def ops(graph_inputs, outputs):
    """Return the Applys between inputs and outputs."""
    return io_toposort(graph_inputs, outputs)


list_of_nodes = ops


def variables(graph_inputs, outputs):
    """Return every variable of the graph between inputs and outputs, those included."""
    return ancestors(_as_list(outputs), blockers=graph_inputs)


def orphans(graph_inputs, outputs):
    """Return the variables without an owner that the outputs need besides ``graph_inputs``."""
    given = set(graph_inputs)
    return [v for v in inputs(outputs, blockers=graph_inputs) if v not in given]


def variables_and_orphans(graph_inputs, outputs):
    """Return (variables, orphans) of a graph."""
    return variables(graph_inputs, outputs), orphans(graph_inputs, outputs)


def is_in_ancestors(node, candidate):
    """Return whether Apply ``candidate`` is ``node`` or computed before it."""
    seen, stack = set(), [node]
    while stack:
        current = stack.pop()
        if current is candidate:
            return True
        if current in seen:
            continue
        seen.add(current)
        stack.extend(v.owner for v in current.inputs if v.owner is not None)
    return False


def nodes_constructed():
    """Refused: opwise keeps no process-wide list of Applys."""
    raise NotImplementedError("opwise keeps no process-wide list of the Applys that are made")


# --- copies -------------------------------------------------------------------------------------


def clone_get_equiv(graph_inputs, outputs, copy_inputs=True, copy_orphans=True, memo=None):
    """Return a dict from every variable and Apply of a graph to its copy.

    copy_inputs, copy_orphans: whether inputs, and other variables without an owner, are copied or
    shared with the original.
    """
    memo = {} if memo is None else memo
    for var in graph_inputs:
        memo.setdefault(var, var.clone() if copy_inputs else var)
    for var in orphans(graph_inputs, outputs):
        memo.setdefault(var, var.clone() if copy_orphans else var)
    for node in io_toposort(graph_inputs, outputs):
        if node in memo:
            continue
        new = node.clone_with_new_inputs([memo.setdefault(v, v) for v in node.inputs])
        memo[node] = new
        for old_out, new_out in zip(node.outputs, new.outputs, strict=True):
            memo.setdefault(old_out, new_out)
    for out in outputs:
        if out not in memo:
            memo[out] = out.clone()
    return memo


def clone(graph_inputs, outputs, copy_inputs=True, copy_orphans=None):
    """Return (copies of the inputs, copies of the outputs) of a graph."""
    if copy_orphans is None:
        copy_orphans = copy_inputs
    equiv = clone_get_equiv(graph_inputs, outputs, copy_inputs, copy_orphans)
    return [equiv[v] for v in graph_inputs], [equiv[v] for v in outputs]


def clone_replace(outputs, replace, strict=True, share_inputs=True, keep=()):
    """Return copies of ``outputs`` in which variables are replaced.

    replace: dict from a variable to the one to read instead. Only what depends on a replaced
    variable is copied. strict: replacements must have the type of what they replace; otherwise the
    Applys above are made anew. keep: variables that are never copied.
    """
    memo = dict(replace)
    given = list(memo)
    if not share_inputs:
        for var in inputs(outputs, blockers=given):
            if var not in memo and not isinstance(var, Constant) and not hasattr(var, "get_value"):
                memo[var] = var.clone()
    for node in io_toposort(given, outputs):
        new_inputs = [memo.get(v, v) for v in node.inputs]
        if all(a is b for a, b in zip(new_inputs, node.inputs, strict=True)):
            continue
        new = node.clone_with_new_inputs(new_inputs, strict=strict)
        new._origins = node.origins
        for old_out, new_out in zip(node.outputs, new.outputs, strict=True):
            memo.setdefault(old_out, new_out)
    return [memo.get(out, out) for out in outputs]


# --- equality -----------------------------------------------------------------------------------


def equal_computations(xs, ys, in_xs=(), in_ys=()):
    """Return whether the lists ``xs`` and ``ys`` of variables compute the same.

    in_xs, in_ys: variables that count as equal pairwise. Others without an owner must be the same
    variable, or equal constants.
    """
    if len(xs) != len(ys) or len(in_xs) != len(in_ys):
        return False
    same = dict(zip(in_xs, in_ys, strict=True))
    stack = list(zip(xs, ys, strict=True))
    if any(x.type != y.type for x, y in [*stack, *same.items()]):
        return False
    checked = set()
    while stack:
        x, y = stack.pop()
        if (x, y) in checked or same.get(x) is y or (x is y and x not in same):
            continue
        checked.add((x, y))
        if x in same:
            return False
        if x.owner is None or y.owner is None:
            equal_constants = isinstance(x, Constant) and isinstance(y, Constant) and x.equals(y)
            if x.owner is not y.owner or not equal_constants:
                return False
            continue
        a, b = x.owner, y.owner
        if x.index != y.index or a.op != b.op or len(a.inputs) != len(b.inputs):
            return False
        for u, v in zip(a.inputs, b.inputs, strict=True):
            if u.type != v.type:
                return False
            stack.append((u, v))
    return True


def is_same_graph(var1, var2, givens=None):
    """Return whether two variables compute the same, after the replacements ``givens``."""
    givens = givens or {}
    if givens:
        var1, var2 = clone_replace([var1, var2], dict(givens))
    return equal_computations([var1], [var2])


def as_string(graph_inputs, outputs, leaf_formatter=str, node_formatter=None):
    """Return the text of each output: ``op(inputs)``, with ``*n`` where a value is used twice."""
    leaf_inputs = set(graph_inputs)
    uses: dict[Apply, int] = {}
    for node in io_toposort(graph_inputs, outputs):
        for var in node.inputs:
            if var.owner is not None and var not in leaf_inputs:
                uses[var.owner] = uses.get(var.owner, 0) + 1
    for var in outputs:
        if var.owner is not None:
            uses[var.owner] = uses.get(var.owner, 0) + 1
    numbered: dict[Apply, int] = {}

    def finish(node, args):
        text = node_formatter(node, args) if node_formatter else f"{node.op}({', '.join(args)})"
        return f"*{numbered[node]} -> {text}" if node in numbered else text

    texts: list[str] = []
    # an Apply, what is still to describe of its inputs, the texts done; the outputs at the bottom
    stack: list[tuple] = [(None, iter(outputs), texts)]
    while stack:
        node, remaining, done = stack[-1]
        var = next(remaining, None)
        if var is None:
            stack.pop()
            if node is not None:
                stack[-1][2].append(finish(node, done))
            continue
        if var.owner is None or var in leaf_inputs:
            done.append(leaf_formatter(var))
        elif var.owner in numbered:
            done.append(f"*{numbered[var.owner]}")
        else:
            if uses[var.owner] > 1:
                numbered[var.owner] = len(numbered) + 1
            stack.append((var.owner, iter(var.owner.inputs), []))
    return texts
