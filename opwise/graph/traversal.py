"""Walks over a graph: ancestors, orders, copies, equality. None recurses: any depth is possible."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from opwise.graph.apply import Apply
from opwise.graph.variable import Constant, Variable


def _as_list(variables: Variable | Iterable[Variable]) -> list[Variable]:
    return [variables] if isinstance(variables, Variable) else list(variables)


def ancestors(
    variables: Variable | Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> list[Variable]:
    """Return ``variables`` and every variable that they depend on, depth first.

    The last of ``variables`` comes first, and the first operand of an Apply before its others: the
    order of Theano, in which programs number their parameters.

    blockers: variables whose ancestors are left out.
    """
    blockers = frozenset(blockers or ())

    def operands(var: Variable) -> Iterable[Variable]:
        return () if var.owner is None or var in blockers else reversed(var.owner.inputs)

    return _search(_as_list(variables), operands, breadth_first=False)


def inputs(
    variables: Variable | Iterable[Variable], blockers: Iterable[Variable] | None = None
) -> list[Variable]:
    """Return the variables without an owner that ``variables`` depend on, in ``ancestors``' order.

    blockers: variables whose ancestors are left out.
    """
    return [var for var in ancestors(variables, blockers) if var.owner is None]


def stack_search(
    start: Iterable[Any],
    expand: Callable[[Any], Iterable[Any] | None],
    mode: str = "bfs",
    build_inv: bool = False,
) -> Any:
    """Return the nodes that ``expand`` reaches from ``start``.

    mode: 'bfs', breadth first (default), or 'dfs', depth first, from the last node of ``start``.
    build_inv: also return a dict from each node to those that led to it.
    """
    if mode not in ("bfs", "dfs"):
        raise ValueError(f"mode should be bfs or dfs, not {mode!r}")
    led_to: dict[Any, list[Any]] | None = {} if build_inv else None
    found = _search(start, expand, mode == "bfs", led_to)
    return (found, led_to) if build_inv else found


def _search(
    start: Iterable[Any],
    expand: Callable[[Any], Iterable[Any] | None],
    breadth_first: bool,
    led_to: dict[Any, list[Any]] | None = None,
) -> list[Any]:
    """Return the nodes that ``expand`` reaches, in the order in which they are taken.

    led_to: gets {node: the nodes that led to it}.
    """
    queue = deque(start)
    take = queue.popleft if breadth_first else queue.pop
    seen: dict[Any, None] = {}
    while queue:
        node = take()
        if node in seen:
            continue
        seen[node] = None
        nodes = expand(node)
        if not nodes:
            continue
        if led_to is not None:
            nodes = list(nodes)
            for child in nodes:
                led_to.setdefault(child, []).append(node)
        queue.extend(nodes)
    return list(seen)


def io_toposort(
    graph_inputs: Iterable[Variable],
    outputs: Sequence[Variable],
    orderings: Mapping[Apply, Iterable[Apply]] | None = None,
) -> list[Apply]:
    """Return the Applys between ``graph_inputs`` and ``outputs``, each after those it reads.

    orderings: dict from an Apply to Applys that must come before it. The order depends only on the
    graph: depth first from the outputs, the last operand of an Apply first. Raises ValueError if
    the graph has a cycle.
    """
    # without a copy of a set: one per edit of a graph would make the edits quadratic
    stop: Collection[Variable]
    stop = graph_inputs if isinstance(graph_inputs, set | frozenset | dict) else set(graph_inputs)
    done: dict[Apply, None] = {}
    # Apply that waits for others -> its height on the stack; in a cycle it comes up again above it
    opened: dict[Apply, int] = {}
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


def general_toposort(
    outputs: Sequence[Any],
    deps: Callable[[Any], Sequence[Any] | None] | None,
    debug_print: bool = False,
    compute_deps_cache: Callable[[Any], Sequence[Any] | None] | None = None,
    deps_cache: dict[Any, Sequence[Any] | None] | None = None,
    clients: dict[Any, list[Any]] | None = None,
) -> list[Any]:
    """Return all items that ``deps`` reaches from ``outputs``, each after those it depends on.

    deps: returns the items on which an item depends, in an order that never changes. clients: gets
    {item: the items that depend on it}. compute_deps_cache, deps_cache: Theano's way to give
    ``deps`` that keeps its results in a dict; used if ``deps`` is None. debug_print: has no effect.
    Raises ValueError for a cycle.
    """
    find = deps or compute_deps_cache
    if find is None:
        raise TypeError("general_toposort() needs deps or compute_deps_cache")
    waits: dict[Any, list[Any]] = {}

    def expand(item: Any) -> list[Any]:
        found = find(item) or ()
        if isinstance(found, set | frozenset):
            raise TypeError(
                f"deps returned a {type(found).__name__} for {item}, whose order may change; "
                "return a list"
            )
        return waits.setdefault(item, list(found))

    led_to: dict[Any, list[Any]] = {}
    reached = _search(outputs, expand, breadth_first=False, led_to=led_to)
    if clients is not None:
        clients.update(led_to)
    ready = deque(item for item in reached if not waits[item])
    done: dict[Any, None] = {}
    while ready:
        item = ready.popleft()
        if item in done:
            continue
        done[item] = None
        for client in led_to.get(item, ()):
            waits[client] = [other for other in waits[client] if other is not item]
            if not waits[client]:
                ready.append(client)
    if len(done) != len(reached):
        raise ValueError("graph contains cycles")
    return list(done)


def ops(graph_inputs: Iterable[Variable], outputs: Sequence[Variable]) -> list[Apply]:
    """Return the Applys between inputs and outputs."""
    return io_toposort(graph_inputs, outputs)


list_of_nodes = ops


def variables(graph_inputs: Iterable[Variable], outputs: Iterable[Variable]) -> list[Variable]:
    """Return every variable of the graph between inputs and outputs, including these.

    All results of an Apply are included, in the order of ``ancestors``.
    """
    given = frozenset(graph_inputs)

    def around(var: Variable) -> Iterable[Variable]:
        if var.owner is None or var in given:
            return ()
        return reversed([*var.owner.inputs, *var.owner.outputs])

    return _search(outputs, around, breadth_first=False)


def orphans(graph_inputs: Iterable[Variable], outputs: Iterable[Variable]) -> list[Variable]:
    """Return the variables without an owner, other than ``graph_inputs``, that outputs need."""
    return variables_and_orphans(graph_inputs, outputs)[1]


def variables_and_orphans(
    graph_inputs: Iterable[Variable], outputs: Iterable[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """Return (variables, orphans) of a graph."""
    given = frozenset(graph_inputs)
    found = variables(given, outputs)
    return found, [var for var in found if var.owner is None and var not in given]


def is_in_ancestors(node: Apply, candidate: Apply) -> bool:
    """Return whether Apply ``candidate`` is ``node`` or an ancestor of it."""
    seen: set[Apply] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if current is candidate:
            return True
        if current in seen:
            continue
        seen.add(current)
        stack.extend(v.owner for v in current.inputs if v.owner is not None)
    return False


def nodes_constructed() -> NoReturn:
    """Raise NotImplementedError: opwise keeps no process-wide list of Applys."""
    raise NotImplementedError("opwise keeps no process-wide list of the Applys that are made")


def io_connection_pattern(
    graph_inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> list[list[bool]]:
    """Return for each input whether each output is connected to it.

    An output is connected to an input if gradients can reach it: every Apply between them is
    connected, by the ``connection_pattern`` of its Op if it defines one.
    """
    # the inputs that each variable is connected to, as bits of a number
    connected = dict.fromkeys(graph_inputs, 0)
    for i, var in enumerate(graph_inputs):
        connected[var] |= 1 << i
    for node in io_toposort(graph_inputs, outputs):
        reached = [connected.get(var, 0) for var in node.inputs]
        pattern = None
        if any(reached) and hasattr(node.op, "connection_pattern"):
            pattern = node.op.connection_pattern(node)
        for k, out in enumerate(node.outputs):
            bits = 0
            for i, of_input in enumerate(reached):
                if pattern is None or pattern[i][k]:
                    bits |= of_input
            connected.setdefault(out, bits)
    return [[bool(connected.get(out, 0) >> i & 1) for out in outputs]
            for i in range(len(graph_inputs))]  # fmt: skip


# --- copies -------------------------------------------------------------------------------------


def clone_get_equiv(
    graph_inputs: Iterable[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool = True,
    memo: dict[Any, Any] | None = None,
) -> dict[Any, Any]:
    """Return a dict from every variable and Apply of a graph to its copy.

    copy_inputs, copy_orphans: whether to copy the inputs, and the other variables without an owner;
    otherwise the copy shares them with the original. memo: copies that exist already; the dict is
    filled and returned.
    """
    memo = {} if memo is None else memo
    for var in graph_inputs:
        memo.setdefault(var, var.clone() if copy_inputs else var)
    for node in io_toposort(graph_inputs, outputs):
        if node in memo:
            continue
        for var in node.inputs:
            if var not in memo:
                memo[var] = var.clone() if copy_orphans else var
        new = node.clone_with_new_inputs([memo[v] for v in node.inputs])
        memo[node] = new
        for old_out, new_out in zip(node.outputs, new.outputs, strict=True):
            memo.setdefault(old_out, new_out)
    for out in outputs:
        if out not in memo:
            memo[out] = out.clone() if copy_orphans or out.owner is not None else out
    return memo


def clone(
    graph_inputs: Sequence[Variable],
    outputs: Sequence[Variable],
    copy_inputs: bool = True,
    copy_orphans: bool | None = None,
) -> tuple[list[Variable], list[Variable]]:
    """Return (copies of the inputs, copies of the outputs) of a graph.

    copy_inputs, copy_orphans: as for ``clone_get_equiv``; copy_orphans is copy_inputs by default.
    """
    if copy_orphans is None:
        copy_orphans = copy_inputs
    equiv = clone_get_equiv(graph_inputs, outputs, copy_inputs, copy_orphans)
    return [equiv[v] for v in graph_inputs], [equiv[v] for v in outputs]


def own_copy(
    inputs: Sequence[Variable], outputs: Sequence[Variable]
) -> tuple[list[Variable], list[Variable]]:
    """Return a copy of a graph whose inputs are all different variables without an owner."""
    # not var.clone(): the copy of a shared variable would be shared too
    fresh = [var.type.make_variable(var.name) for var in inputs]
    memo: dict[Any, Any] = {}
    for var, own in zip(inputs, fresh, strict=True):
        memo.setdefault(var, own)
        own._trace = var.made_at
    clone_get_equiv(list(memo), outputs, copy_inputs=False, copy_orphans=False, memo=memo)
    return fresh, [memo[out] for out in outputs]


def clone_replace(
    outputs: Sequence[Variable],
    replace: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
    strict: bool = True,
    share_inputs: bool = True,
    keep: Iterable[Variable] = (),
) -> list[Any]:
    """Return copies of ``outputs`` in which variables are replaced.

    Copies only the Applys that depend on a replaced variable.

    replace: dict from a variable to its replacement. strict: convert each replacement to the type
    of the variable, or raise TypeError; otherwise the Ops make new Applys if a type differs.
    share_inputs: whether the copies read the same inputs (the default) or copies of them. keep: has
    no effect.
    """
    memo: dict[Any, Any] = dict(replace)
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


def equal_computations(
    xs: Sequence[Variable],
    ys: Sequence[Variable],
    in_xs: Sequence[Variable] = (),
    in_ys: Sequence[Variable] = (),
) -> bool:
    """Return whether the lists ``xs`` and ``ys`` of variables compute the same.

    in_xs, in_ys: variables that count as equal pairwise. Other variables without an owner are equal
    if they are the same variable or equal constants.
    """
    if len(xs) != len(ys) or len(in_xs) != len(in_ys):
        return False
    same = dict(zip(in_xs, in_ys, strict=True))
    stack = list(zip(xs, ys, strict=True))
    if any(x.type != y.type for x, y in [*stack, *same.items()]):
        return False
    checked: set[tuple[Variable, Variable]] = set()
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


def hash_of_computations(outputs: Sequence[Variable], inputs: Sequence[Variable]) -> int:
    """Return a hash that is equal if ``equal_computations(outputs, ..., inputs, ...)``."""
    known: dict[Variable, Any] = {var: place for place, var in enumerate(inputs)}

    def of(var: Variable) -> Any:
        if var not in known:
            try:
                known[var] = hash(var.cached_signature() if isinstance(var, Constant) else var)
            except TypeError:  # a constant of a type of the program may have any value
                known[var] = hash(var.type)
        return known[var]

    for node in io_toposort(inputs, outputs):
        number = hash((node.op, *map(of, node.inputs)))
        for var in node.outputs:
            known.setdefault(var, hash((number, var.index)))
    return hash(tuple(map(of, outputs)))


def is_same_graph(
    var1: Variable,
    var2: Variable,
    givens: Mapping[Any, Any] | Iterable[tuple[Any, Any]] | None = None,
    debug: bool = False,
) -> bool:
    """Return whether two variables compute the same, after the replacements ``givens``.

    debug: has no effect.
    """
    givens = givens or {}
    if givens:
        var1, var2 = clone_replace([var1, var2], dict(givens))
    return equal_computations([var1], [var2])


def as_string(
    graph_inputs: Iterable[Variable],
    outputs: Sequence[Variable],
    leaf_formatter: Callable[[Variable], str] = str,
    node_formatter: Callable[[Apply, list[str]], str] | None = None,
) -> list[str]:
    """Return the text of each output: ``op(inputs)``; ``*n`` refers to an Apply used twice.

    ``*n::k`` refers to output k of an Apply with several outputs.

    leaf_formatter: returns the text of an input, constant or shared variable (default: ``str``).
    node_formatter: returns the text of an Apply from the Apply and the texts of its inputs.
    """
    leaf_inputs = set(graph_inputs)
    uses = _count_uses(leaf_inputs, outputs)
    numbered: dict[Apply, int] = {}

    def finish(node: Apply, args: list[str]) -> str:
        text = node_formatter(node, args) if node_formatter else f"{node.op}({', '.join(args)})"
        return f"*{numbered[node]} -> {text}" if node in numbered else text

    texts: list[str] = []
    # (Apply, its inputs that have no text yet, texts of the others); below all, the outputs
    stack: list[tuple[Apply | None, Iterator[Variable], list[str]]] = [(None, iter(outputs), texts)]
    while stack:
        current, remaining, done = stack[-1]
        operand = next(remaining, None)
        if operand is None:
            stack.pop()
            if current is not None:
                stack[-1][2].append(finish(current, done))
            continue
        owner = operand.owner
        if owner is None or operand in leaf_inputs:
            done.append(leaf_formatter(operand))
        elif owner in numbered:
            which = f"::{operand.index}" if len(owner.outputs) > 1 else ""
            done.append(f"*{numbered[owner]}{which}")
        else:
            if uses[owner] > 1:
                numbered[owner] = len(numbered) + 1
            stack.append((owner, iter(owner.inputs), []))
    return texts


def _count_uses(graph_inputs: set[Variable], outputs: Sequence[Variable]) -> Counter[Apply]:
    """Return how many inputs of Applys and how many ``outputs`` each Apply computes."""
    read = (var for node in io_toposort(graph_inputs, outputs) for var in node.inputs)
    uses = Counter(v.owner for v in read if v.owner is not None and v not in graph_inputs)
    uses.update(v.owner for v in outputs if v.owner is not None)
    return uses
