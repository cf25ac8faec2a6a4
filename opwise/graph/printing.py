"""Graphs as text: debugprint, pprint and short descriptions; and the Op that prints values.

The layers that define operations register how pprint prints them. Drawing is in
``opwise.graph.drawing``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from opwise.graph.apply import Apply
from opwise.graph.drawing import default_colorCodes, pydotprint, pydotprint_variables
from opwise.graph.escaping import printable_lines
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Op
from opwise.graph.opmethods import shapes_of
from opwise.graph.variable import Scratchpad, Variable

__all__ = [
    "DefaultPrinter",
    "FunctionPrinter",
    "IgnorePrinter",
    "LeafPrinter",
    "MemberPrinter",
    "OperatorPrinter",
    "PPrinter",
    "PatternPrinter",
    "Print",
    "PrinterState",
    "debugprint",
    "default_colorCodes",
    "hex_digest",
    "min_informative_str",
    "position_independent_str",
    "pp",
    "pprint",
    "pydotprint",
    "pydotprint_variables",
    "var_descriptor",
]


# --- debugprint -----------------------------------------------------------------------------------


def debugprint(
    obj: Any,
    depth: int = -1,
    print_type: bool = False,
    file: Any = None,
    ids: str = "CHAR",
    stop_on_name: bool = False,
    done: dict[Apply, str] | None = None,
    print_storage: bool = False,
    print_clients: bool = False,
    used_ids: dict[Any, int] | None = None,
    print_destroy_map: bool = False,
    print_view_map: bool = False,
) -> Any:
    """Print a graph as an indented tree, one line for each use of a variable.

    obj: a variable, an Apply, a FunctionGraph, a compiled function, or a list of these.
    depth: number of levels to print (default: -1, all of them). Lines of levels above 200 show the
    number of their level instead of a deeper indentation.
    print_type: add the type of each variable.
    file: the file to write to (default: standard output); 'str' returns the text.
    ids: the form of ids: 'CHAR', 'int', 'id' (of the Python object) or '' for none.
    stop_on_name: omit what computes a named variable.
    done: Applys whose operands were printed already; used_ids: ids by variable or Apply. Pass the
    same dicts to several calls to share them.
    print_storage: add the values that a compiled function holds.
    print_clients: add the readers of a variable with several readers.
    print_destroy_map, print_view_map: add the destroy map and the view map of each Apply.
    """
    if not isinstance(depth, int):
        raise TypeError(f"depth parameter must be an int, got {depth!r}: -1 prints all levels")
    if ids not in _ID_FORMS:
        raise ValueError(f"ids must be one of {_ID_FORMS}, not {ids!r}")
    tree = _Tree(
        ids, print_type, stop_on_name, print_clients, print_destroy_map, print_view_map,
        {} if done is None else done, {} if used_ids is None else used_ids,
    )  # fmt: skip
    lines: list[str] = []
    target = sys.stdout if file is None else file
    # line by line, because the text of a long chain may be larger than the memory
    write = lines.append if file == "str" else target.write
    tree.write = lambda text: write(printable_lines(text))
    for root in _roots(obj, print_storage):
        tree.print_root(root, depth)
    tree.print_inner_graphs(depth)
    if file == "str":
        return "".join(lines)
    target.flush()
    return file


#: the deepest level that is indented by its number: with all levels indented, the length of the
#: text would grow with the square of the depth
MOST_INDENTED = 200
_ID_FORMS = ("CHAR", "int", "id", "")


class _Root:
    """A variable to print, or a plain text."""

    def __init__(
        self,
        var: Variable | None = None,
        text: str | None = None,
        order: dict[Apply, int] | None = None,
        storage_map: Mapping[Variable, Any] | None = None,
        profile: Any = None,
    ):
        self.var = var
        self.text = text
        #: positions of the Applys in the order of the function; empty without a function
        self.order = order or {}
        #: storages of the function; None: do not print values
        self.storage_map = storage_map
        self.profile = profile


def _roots(obj: Any, print_storage: bool) -> list[_Root]:
    """Return the variables and texts to print for ``obj``."""
    roots: list[_Root] = []
    for item in obj if isinstance(obj, list | tuple | set) else [obj]:
        fgraph, storage_map, profile = _graph_of(item)
        if fgraph is not None:
            order = {node: i for i, node in enumerate(fgraph.toposort())}
            if not print_storage:
                storage_map = None
            roots.extend(
                _Root(var, order=order, storage_map=storage_map, profile=profile)
                for var in fgraph.outputs
            )
        elif isinstance(item, Variable):
            roots.append(_Root(item))
        elif isinstance(item, Apply):
            roots.extend(_Root(var) for var in item.outputs)
        elif isinstance(getattr(item, "variable", None), Variable):
            roots.append(_Root(item.variable))  # an In or Out of a function
        elif isinstance(item, int | float | np.ndarray):
            roots.append(_Root(text=str(item)))
        else:
            raise TypeError(
                f"debugprint cannot print an object of this type: {item!r} of type {type(item)}. "
                "Pass a variable, an Apply, a FunctionGraph, a compiled function, or a list of "
                "these."
            )
    return roots


def _graph_of(item: Any) -> tuple[FunctionGraph | None, Any, Any]:
    """Return (FunctionGraph, storage map, profile) of a FunctionGraph or compiled function."""
    if isinstance(item, FunctionGraph):
        return item, None, item.profile
    fgraph = getattr(getattr(item, "maker", None), "fgraph", None)
    if fgraph is None:
        return None, None, None
    storage_map = getattr(getattr(item, "linked", None), "storage_map", None)
    return fgraph, storage_map, getattr(item, "profile", None)


_PROFILE_LEGEND = """
Timing Info
-----------
--> <time> <% time> - <total time> <% total time>'

<time>         computation time for this node
<% time>       fraction of total computation time for this node
<total time>   time for this node + total times for this node's ancestors
<% total time> total time for this node over total computation time

N.B.:
* Times include the node time and the function overhead.
* <total time> and <% total time> may over-count computation times
  if inputs to a node share a common ancestor and should be viewed as a
  loose upper bound. Their intended use is to help rule out potential nodes
  to remove when optimizing a graph because their <total time> is very low.
"""


class _Tree:
    """The lines of a debugprint; all roots share it, so that an Apply is printed only once."""

    def __init__(
        self,
        ids: str,
        print_type: bool,
        stop_on_name: bool,
        print_clients: bool,
        destroy_map: bool,
        view_map: bool,
        done: dict[Apply, str],
        used_ids: dict[Any, int],
    ):
        self.ids = ids
        self.print_type = print_type
        self.stop_on_name = stop_on_name
        self.print_clients = print_clients
        self.destroy_map = destroy_map
        self.view_map = view_map
        self.done = done
        self.used_ids = used_ids
        #: called with each line
        self.write: Callable[[str], object]
        #: outputs of Ops with an inner graph, in the order of printing
        self.inner: list[_Root] = []
        #: id of a profile -> (times of Applys, their total times, time of calls), in seconds
        self.profiled: dict[int, tuple[dict[Apply, float], dict[Apply, float], float]] = {}
        #: input of an inner graph -> the variable outside that it stands for
        self.inner_to_outer: dict[Variable, Variable] = {}

    def put(self, *lines: str) -> None:
        for line in lines:
            self.write(f"{line}\n")

    def print_root(self, root: _Root, depth: int) -> None:
        if root.text is not None:
            self.put(root.text)
            return
        self._read_profile(root)
        if root.var is not None:
            self.print_variable(root.var, depth, root)

    def _read_profile(self, root: _Root) -> None:
        """Read the times of a profile once: each attribute is computed from the whole profile."""
        profile = root.profile
        if id(profile) in self.profiled:
            return
        times = getattr(profile, "apply_time", None)
        if not times:
            root.profile = None
            return
        self.profiled[id(profile)] = times, profile.compute_total_times(), profile.fct_call_time
        self.put(*_PROFILE_LEGEND.split("\n"))

    def print_variable(self, var: Variable, depth: int, root: _Root, lead: str = "") -> None:
        """Print a variable and the Applys that compute it; each line starts with ``lead``."""
        # (prefix of the line, prefix of the lines below it, variable, levels left, level)
        stack = [(lead, lead, var, depth, 0)]
        while stack:
            prefix, below, var, levels, level = stack.pop()
            if levels == 0:
                continue
            node = var.owner
            if node is None:
                self.put(prefix + self._leaf(var, root))
                continue
            self.put(prefix + self._line(var, root))
            if hasattr(node.op, "inner_graph") and all(each.var is not var for each in self.inner):
                self.inner.append(_Root(var, profile=root.profile))
            if node in self.done:
                continue
            self.done[node] = self._id(node)
            if self.stop_on_name and var.name is not None:
                continue
            last, level = len(node.inputs) - 1, level + 1
            for i in range(last, -1, -1):
                under = below + (" |" if i < last else "  ")
                here = below + " |"
                if level > MOST_INDENTED:
                    here = under = f"{lead} |... level {level} ... |"
                stack.append((here, under, node.inputs[i], levels - 1, level))

    def print_inner_graphs(self, depth: int) -> None:
        """Print the graphs inside Ops (those of loops), also those inside each other."""
        if self.inner:
            self.put("", "Inner graphs of the scan ops:")
        for root in self.inner:  # print_variable appends to it
            var = root.var
            assert var is not None, "it is an output of an Op"
            node = _owner(var, self)
            outputs, inner_to_outer = node.op.inner_graph(node)
            self.inner_to_outer.update(inner_to_outer)
            self.put("", self._line(var, root))
            for out in outputs:
                self.print_variable(out, depth, root, lead=" >")

    # parts of a line

    def _id(self, key: Variable | Apply | str) -> str:
        """Return the id of a variable or Apply; the reader 'output' uses one up, unprinted."""
        number = self.used_ids.get(key)
        if number is None:
            number = self.used_ids[key] = len(self.used_ids)
        if key == "output":
            return "output"
        if self.ids == "":
            return ""
        if self.ids == "id":
            return f"[id {id(key)}]"
        return f"[id {number if self.ids == 'int' else char_from_number(number)}]"

    def _type(self, var: Variable) -> str:
        return f" <{var.type}>" if self.print_type else ""

    def _storage(self, var: Variable, root: _Root) -> str:
        if root.storage_map is None or var not in root.storage_map:
            return ""
        return f" {root.storage_map[var]}"

    def _leaf(self, var: Variable, root: _Root) -> str:
        text = f"{var} {self._id(var)}{self._type(var)}{self._storage(var, root)}"
        outer = self.inner_to_outer.get(var)
        if outer is not None:
            text += f" -> {self._id(outer if outer.owner is None else outer.owner)}"
        return text

    def _line(self, var: Variable, root: _Root) -> str:
        node = _owner(var, self)
        out = f".{var.index}" if len(node.outputs) > 1 else ""
        destroy = self._map("d", node.op.destroy_map, self.destroy_map)
        view = self._map("v", node.op.view_map, self.view_map)
        return (
            f"{node.op}{out} {self._id(node)}{self._type(var)} '{var.name or ''}' "
            f"{destroy} {view} {root.order.get(node, '')}{self._times(node, root)}"
            f"{self._storage(var, root)}{self._clients(var, root)}"
        )

    @staticmethod
    def _map(letter: str, content: Any, wanted: bool) -> str:
        return f"{letter}={content}" if wanted and content else ""

    def _times(self, node: Apply, root: _Root) -> str:
        if root.profile is None:
            return ""
        times, totals, whole = self.profiled[id(root.profile)]
        if node not in times:
            return ""
        time, total = times[node], totals[node]
        shares = [100 * t / whole if whole else 0.0 for t in (time, total)]
        return f" --> {time:8.2e}s {shares[0]:4.1f}% {total:8.2e}s {shares[1]:4.1f}%"

    def _clients(self, var: Variable, root: _Root) -> str:
        if not self.print_clients or len(var.clients) < 2:
            return ""
        clients = [
            (self._id(node), "" if node == "output" else root.order.get(node, ""))
            for node, _ in var.clients
        ]
        return f" clients:{clients}"


def char_from_number(number: int) -> str:
    """Return a number in base 26, with the letters A to Z as digits."""
    text = ""
    while True:
        number, digit = divmod(number, 26)
        text = chr(ord("A") + digit) + text
        if not number:
            return text


# --- pprint ---------------------------------------------------------------------------------------


class PrinterState(Scratchpad):
    """The context of a printed text: ``pprinter``, ``precedence`` and what printers add."""

    def __init__(self, props: Scratchpad | None = None, **more_props: Any):
        if props is not None:
            self.__update__(props)
        self.__dict__.update(more_props)


class Printer(Protocol):
    """The interface of printers, which ``PPrinter.assign`` takes."""

    def process(self, output: Variable, pstate: PrinterState, /) -> str: ...


def _inner(pstate: PrinterState, precedence: float) -> PrinterState:
    """Return the state for an operand of an operator of ``precedence``."""
    return PrinterState(pstate, precedence=precedence)


def _owner(output: Variable, printer: object) -> Apply:
    if output.owner is None:
        raise TypeError(
            f"{type(printer).__name__} cannot represent a variable that is not the result of an "
            f"operation: {output}"
        )
    return output.owner


#: precedence of an operand that needs no parentheses
_ALONE = -1000


class OperatorPrinter:
    """Prints ``(a + b)``, or ``(-a)`` for one operand, always with parentheses.

    precedence, assoc: passed on to the printers of the operands; assoc is 'left', 'right' or
    'either'.
    """

    def __init__(self, operator: str, precedence: float, assoc: str = "left"):
        if assoc not in ("left", "right", "either"):
            raise ValueError(f"assoc must be 'left', 'right' or 'either', not {assoc!r}")
        self.operator = operator
        self.precedence = precedence
        self.assoc = assoc

    def process(self, output: Variable, pstate: PrinterState) -> str:
        node = _owner(output, self)
        state = PrinterState(pstate, precedence=self.precedence, assoc=self.assoc)
        operands = [pstate.pprinter.process(var, state) for var in node.inputs]
        if len(operands) == 1:
            return f"({self.operator}{operands[0]})"
        return f"({f' {self.operator} '.join(operands)})"


class PatternPrinter:
    """Fills a pattern like ``|%(0)s|``; takes one pattern per output of the operation.

    A pattern may be a tuple: the text, then the precedences with which to print the operands.
    """

    def __init__(self, *patterns: str | tuple[Any, ...]):
        self.patterns: list[tuple[str, tuple[float, ...]]] = [
            (p, ()) if isinstance(p, str) else (p[0], tuple(p[1:])) for p in patterns
        ]

    def process(self, output: Variable, pstate: PrinterState) -> str:
        node = _owner(output, self)
        pattern, precedences = self.patterns[output.index]
        missing = len(node.inputs) - len(precedences)
        operands = {
            str(i): pstate.pprinter.process(var, _inner(pstate, precedence))
            for i, (var, precedence) in enumerate(
                zip(node.inputs, (*precedences, *[_ALONE] * missing), strict=False)
            )
        }
        return pattern % operands


class FunctionPrinter:
    """Prints ``name(a, b)``; takes one name per output of the operation."""

    def __init__(self, *names: str):
        self.names = names

    def process(self, output: Variable, pstate: PrinterState) -> str:
        node = _owner(output, self)
        return _call(self.names[output.index], node, pstate)


def _call(name: str, node: Apply, pstate: PrinterState) -> str:
    state = _inner(pstate, _ALONE)
    return f"{name}({', '.join(pstate.pprinter.process(var, state) for var in node.inputs)})"


class MemberPrinter:
    """Prints ``a.name``; takes one name per output of the operation."""

    def __init__(self, *names: str):
        self.names = names

    def process(self, output: Variable, pstate: PrinterState) -> str:
        parent = _owner(output, self).inputs[0]
        text = pstate.pprinter.process(parent, _inner(pstate, 1000))
        return f"{text}.{self.names[output.index]}"


class IgnorePrinter:
    """Prints the operand of an operation with one, as if the operation were not there."""

    def process(self, output: Variable, pstate: PrinterState) -> str:
        node = _owner(output, self)
        if len(node.inputs) != 1:
            return _call(str(node.op), node, pstate)
        text: str = pstate.pprinter.process(node.inputs[0], pstate)
        return text


class DefaultPrinter:
    """Prints ``op(a, b)``."""

    def process(self, output: Variable, pstate: PrinterState) -> str:
        if output.owner is None:
            return leaf_printer.process(output, pstate)
        return _call(str(output.owner.op), output.owner, pstate)


_GREEK = frozenset(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron pi rho sigma "
    "tau upsilon phi chi psi omega".split()
)


class LeafPrinter:
    """Prints the name of a variable, a Greek letter as in TeX; or the value of a constant."""

    def process(self, output: Variable, pstate: PrinterState) -> str:
        return f"\\{output.name}" if output.name in _GREEK else str(output)


leaf_printer = LeafPrinter()
default_printer = DefaultPrinter()


#: (printer, variable, state) of a text that was printed already
_Key = tuple["PPrinter", Variable, tuple[Any, ...]]
#: maximum depth of nested calls of ``process``; operands below it are printed first
_MOST_NESTED = 30
#: letters of a text; a longer one names the results that it uses again
_LONGEST = 100_000


class _Nested(threading.local):
    """What nested calls of ``process`` share, by which printers print their operands.

    An operand that is too deep ends the call of the outermost printer with ``_TooDeep``. It is
    printed alone, its text is kept, and the outermost printer is called again. So a graph of any
    depth is printed without deep recursion. The texts of results that are used again are kept too:
    each is made once. A text that would be too long ends with ``_TooLong``.
    """

    #: the depth; None while no printer runs
    level: int | None = None

    def __init__(self) -> None:
        self.start({})

    def start(self, names: Mapping[Variable, str], shared: Collection[Variable] = ()) -> None:
        """Begin a text, or end it.

        names: of results that are written elsewhere. shared: results that are used again.
        """
        self.texts: dict[_Key, str] = {}
        self.names = names
        self.shared = shared


_nested = _Nested()


class _TooDeep(BaseException):
    """An operand must be printed first; a BaseException, so that printers do not catch it."""


class _TooLong(BaseException):
    """A text repeats too much."""


def _used_again(r: Variable) -> list[Variable]:
    """Return the results that are used more than once in what computes a variable, it first."""
    seen, again, waiting = {r}, [], [r]
    while waiting:
        var = waiting.pop()
        for operand in () if var.owner is None else reversed(var.owner.inputs):
            if operand not in seen:
                seen.add(operand)
                waiting.append(operand)
            elif operand.owner is not None:
                again.append(operand)
    return list(dict.fromkeys(again))


def _attribute_name(item: tuple[str, Any]) -> str:
    return item[0]


class PPrinter:
    """Prints the expression that computes a variable, by the printers assigned to operations."""

    def __init__(self) -> None:
        #: printers by Op or class of Ops; they take precedence over those with a condition
        self.printers_dict: dict[Op | type[Op], Printer] = {}
        #: (condition, printer), newest first
        self.printers: list[tuple[Callable[[PrinterState, Variable], Any], Printer]] = []

    def assign(self, condition: Any, printer: Printer) -> None:
        """Let ``printer`` print some operations.

        condition: an Op, a class of Ops, or a function of the printer's state and a variable.
        printer: an object with a method ``process(variable, state)``, which returns the text; the
        method calls ``state.pprinter.process(operand, state)`` for the texts of operands.
        """
        if isinstance(condition, Op) or (isinstance(condition, type) and issubclass(condition, Op)):
            self.printers_dict[condition] = printer
        elif callable(condition):
            self.printers.insert(0, (condition, printer))
        else:
            raise TypeError(
                f"a condition must be an Op, a class of Ops or a function, not {condition!r}"
            )

    def process(self, r: Variable, pstate: PrinterState | Mapping[str, Any] | None = None) -> str:
        """Return the text of a variable."""
        if pstate is None:
            pstate = PrinterState(pprinter=self)
        elif not isinstance(pstate, PrinterState):
            pstate = PrinterState(pprinter=self, **pstate)
        if not isinstance(r, Variable):
            raise TypeError(
                f"pprint prints variables, not {type(r).__name__}; for a compiled function f, pass "
                "f.maker.fgraph.outputs[0]"
            )
        if _nested.level is None:
            return printable_lines(self._whole(r, pstate))
        if r in _nested.names:
            return _nested.names[r]
        key = (self, r, tuple(sorted(pstate.__dict__.items(), key=_attribute_name)))
        try:
            text = _nested.texts.get(key)
        except TypeError:  # a printer added an attribute without a hash to the state
            return self._printer(r, pstate).process(r, pstate)
        if text is not None:
            return text
        if _nested.level >= _MOST_NESTED:
            raise _TooDeep(self, r, pstate, key)
        _nested.level += 1
        try:
            text = self._printer(r, pstate).process(r, pstate)
        finally:
            _nested.level -= 1
        if r in _nested.shared:
            if len(text) > _LONGEST:
                raise _TooLong
            _nested.texts[key] = text
        return text

    def _whole(self, r: Variable, pstate: PrinterState) -> str:
        """Return the text of a variable that is no operand."""
        again = _used_again(r)
        try:
            return self._process_all(r, pstate, {}, set(again))
        except _TooLong:
            pass
        names = {var: f"<{char_from_number(i)}>" for i, var in enumerate(again)}
        lines = [self._process_all(r, pstate, names), "where"]
        alone = PrinterState(pprinter=self)
        lines += [
            f"    {name} = {self._process_all(var, alone, names)}" for var, name in names.items()
        ]
        return "\n".join(lines)

    def _process_all(
        self,
        r: Variable,
        pstate: PrinterState,
        names: Mapping[Variable, str],
        shared: Collection[Variable] = (),
    ) -> str:
        """Return the text of a variable, without deep recursion; see ``_Nested``."""
        waiting: list[Any] = [(self, r, pstate, None)]
        _nested.start(names, shared)
        try:
            while True:
                printer, var, state, key = waiting[-1]
                _nested.level = 0
                try:
                    text: str = printer._printer(var, state).process(var, state)
                except _TooDeep as operand:
                    waiting.append(operand.args)
                    continue
                if shared and len(text) > _LONGEST:
                    raise _TooLong
                waiting.pop()
                if not waiting:
                    return text
                _nested.texts[key] = text
        finally:
            _nested.level = None
            _nested.start({})

    def _printer(self, r: Variable, pstate: PrinterState) -> Printer:
        if r.owner is not None:
            op = r.owner.op
            for key in (op, type(op)):
                if key in self.printers_dict:
                    return self.printers_dict[key]
        for condition, printer in self.printers:
            if condition(pstate, r):
                return printer
        return default_printer

    def clone(self) -> PPrinter:
        """Return a printer with a copy of the assignments."""
        cp = PPrinter()
        cp.printers_dict = dict(self.printers_dict)
        cp.printers = list(self.printers)
        return cp

    def clone_assign(self, condition: Any, printer: Printer) -> PPrinter:
        """Return a clone with one more assignment."""
        cp = self.clone()
        cp.assign(condition, printer)
        return cp

    __call__ = process


pprint = PPrinter()
pp = pprint


# --- short descriptions ---------------------------------------------------------------------------


class _TagGenerator:
    """Generates the tags A, B, C, ..."""

    def __init__(self) -> None:
        self.cur_tag_number = 0

    def get_tag(self) -> str:
        tag = char_from_number(self.cur_tag_number)
        self.cur_tag_number += 1
        return tag


def min_informative_str(
    obj: Any,
    indent_level: int = 0,
    _prev_obs: dict[int, str] | None = None,
    _tag_generator: _TagGenerator | None = None,
) -> str:
    """Return a graph as indented lines, each with a tag; a later use of a variable is its tag.

    The lines omit what computes a named variable.
    """
    tags = {} if _prev_obs is None else _prev_obs
    generator = _TagGenerator() if _tag_generator is None else _tag_generator
    lines = []
    stack = [(obj, indent_level)]
    while stack:
        item, level = stack.pop()
        indent = " " * level if level <= MOST_INDENTED else f"... level {level} ... "
        if id(item) in tags:
            lines.append(f"{indent}<{tags[id(item)]}>")
            continue
        tag = tags[id(item)] = generator.get_tag()
        node = getattr(item, "owner", None)
        if hasattr(item, "__array__"):
            text = "<ndarray>"
        elif node is not None and item.name is None:
            text = str(node.op)
            stack.extend((var, level + 1) for var in reversed(node.inputs))
        else:
            text = item.name if node is not None else str(item)
        lines.append(f"{indent}{tag}. {text}")
    return "\n".join(lines)


def var_descriptor(
    obj: Any,
    _prev_obs: dict[int, str] | None = None,
    _tag_generator: _TagGenerator | None = None,
) -> str:
    """Return a graph in one line, without names: equal texts mean equal computations.

    Arrays are described by their strides and a digest of their content.
    """
    tags = {} if _prev_obs is None else _prev_obs
    generator = _TagGenerator() if _tag_generator is None else _tag_generator
    parts = []
    # objects to describe and texts between them, the next one last
    stack: list[tuple[object, str | None]] = [(obj, None)]
    while stack:
        item, text = stack.pop()
        if text is not None:
            parts.append(text)
            continue
        if id(item) in tags:
            parts.append(f"<{tags[id(item)]}>")
            continue
        tag = tags[id(item)] = generator.get_tag()
        node = getattr(item, "owner", None)
        if hasattr(item, "__array__"):
            array = np.asarray(item)
            strides = ",".join(map(str, array.strides))
            parts.append(f"{tag}=<ndarray:strides=[{strides}],digest={_digest(array)}>")
        elif node is not None:
            parts.append(f"{tag}={node.op}(")
            stack.append((None, ")"))
            for i, var in enumerate(reversed(node.inputs)):
                if i:
                    stack.append((None, ","))
                stack.append((var, None))
        else:
            parts.append(f"{tag}={item}")
    return "".join(parts)


def position_independent_str(obj: Any) -> str:
    """Return a text that does not depend on the position of a variable in a graph: its type."""
    if not isinstance(obj, Variable):
        raise TypeError(f"expected a variable, got {obj!r}")
    return f"theano_var{{type={obj.type}}}"


def _digest(array: np.ndarray[Any, Any]) -> str:
    import hashlib  # slow to import

    return hashlib.sha256(array.tobytes()).hexdigest()


def hex_digest(x: np.ndarray[Any, Any]) -> str:
    """Return a digest of an array's content, followed by its strides and its shape."""
    if not isinstance(x, np.ndarray):
        raise TypeError(f"hex_digest takes an array, not {type(x)}")
    strides = ",".join(map(str, x.strides))
    shape = ",".join(map(str, x.shape))
    return f"{_digest(x)}|strides=[{strides}]|shape=[{shape}]"


# --- printing values ------------------------------------------------------------------------------


def _print_fn(op: Print, xin: Any) -> None:
    for attr in op.attrs:
        value = getattr(xin, attr)
        print(op.message, attr, "=", value() if callable(value) else value)


class Print(Op):
    """Returns its input unchanged, and prints its value in every call of the function.

    message: the start of each line. attrs: names of attributes or methods of the value, each
    printed as ``message attr = value``. global_fn: a function of the Op and the value, which is
    called instead of printing.
    """

    view_map = {0: [0]}
    __props__ = ("message", "attrs", "global_fn")

    def __init__(
        self,
        message: str = "",
        attrs: Iterable[str] = ("__str__",),
        global_fn: Callable[[Print, Any], Any] = _print_fn,
    ):
        self.message = message
        self.attrs = tuple(attrs)
        self.global_fn = global_fn

    def make_node(self, xin: Any) -> Apply:
        if not isinstance(xin, Variable):
            raise TypeError(
                f"Print takes a variable, not {xin!r} of type {type(xin)}: convert the value "
                "with T.as_tensor_variable"
            )
        return Apply(self, [xin], [xin.type.make_variable()])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        (xin,) = inputs
        output_storage[0][0] = xin
        self.global_fn(self, xin)

    def do_constant_folding(self, node: Apply) -> bool:
        return False  # it must print in every call

    infer_shape = shapes_of(0)

    def grad(self, inputs: Any, output_gradients: Any) -> Any:
        return output_gradients

    def R_op(self, inputs: Any, eval_points: Any) -> Any:
        return list(eval_points)

    def __str__(self) -> str:
        # no address: the text is part of the keys by which profiles of two runs are matched
        function = getattr(self.global_fn, "__qualname__", type(self.global_fn).__qualname__)
        return (
            f"{type(self).__name__}{{message={self.message!r}, attrs={self.attrs!r}, "
            f"global_fn=<function {function}>}}"
        )
