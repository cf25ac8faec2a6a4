"""Converts the text of a Python 2 module into a syntax tree of Python 3, in two steps.

``parse`` rewrites with fissix what Python 3 does not parse. ``semantics`` then replaces, in the
tree, what Python 3 would compute differently. Every node keeps its line of the original text.
"""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import tokenize
import warnings
from collections import Counter
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

from opwise.py2 import breakages

#: what installs the converter
INSTALL = "pip install 'opwise[py2]'"
#: a backslash that began no escape in Python 2: an even number of backslashes before it
_ESCAPE = re.compile(r"((?<!\\)(?:\\\\)*)(\\[uUN])")
#: an octal number of Python 2
_OCTAL = re.compile(r"0+[1-7][0-7]*")
#: what Python's tokenizer says of 200 open parentheses or more
_TOO_DEEP = "too many nested parentheses"
#: keywords that were names in Python 2
_KEYWORDS = {"async", "await"}


class Parsed(NamedTuple):
    """The syntax tree of a module, and which syntax of Python 2 was rewritten in it."""

    #: nodes have the lines of the original text, and no columns
    tree: ast.Module
    #: (key of ``breakages.SYNTAX``, line), by line
    rewritten: list[tuple[str, int]]
    #: whether the calls of ``print`` in it were statements
    prints: bool = False


def is_available() -> bool:
    """Return whether the converter, fissix, is installed."""
    return importlib.util.find_spec("fissix") is not None


def compiled(source: bytes | str, filename: str, mode: str = "exec", python: int = 2) -> CodeType:
    """Return the code object of a module, or with mode="eval" of an expression.

    python: for which Python it was written, 2 or (an earlier version of) 3.

    Raises SyntaxError if the source is neither Python 2 nor Python 3; with python=3, if it is not
    Python 3.
    """
    text = source.lstrip() if mode == "eval" else source
    parsed = parse(text, filename) if python == 2 else parse_python3(text, filename)
    tree: ast.Module | ast.Expression | ast.Interactive = semantics(
        parsed.tree, python, parsed.prints
    )
    if mode == "eval":
        if len(parsed.tree.body) != 1 or not isinstance(parsed.tree.body[0], ast.Expr):
            raise SyntaxError("not an expression", (filename, 1, None, None))
        tree = ast.Expression(parsed.tree.body[0].value)
    elif mode == "single":
        tree = ast.Interactive(parsed.tree.body)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the text of the program
        return compile(tree, filename, mode, dont_inherit=True)


# --- syntax ---------------------------------------------------------------------------------------


def parse(source: bytes | str, filename: str) -> Parsed:
    """Return the syntax tree of a Python 2 module; operations still mean what Python 3 means.

    Raises SyntaxError if the source is neither Python 2 nor Python 3.
    """
    text = _text_of(source)
    try:
        tree = _parsed(text, filename)
        refused = None
    except SyntaxError as error:
        if error.msg == _TOO_DEEP:  # for Python 2 too, and fissix would take long to find out
            raise
        tree, refused = None, error
    if tree is not None and not _may_print(tree) and not _named_exception(tree):
        return Parsed(_located(tree), [])
    try:
        new, lines, rewritten, prints = _refactored(text, filename)
    except SyntaxError:
        if tree is None:
            assert refused is not None
            raise refused from None
        return Parsed(_located(tree), [])
    try:
        tree = _located(_parsed(new, filename), lines)
        return Parsed(tree, rewritten, prints and not has_future(tree, "print_function"))
    except SyntaxError as error:
        line = lines[(error.lineno or 1) - 1]
        raise SyntaxError(
            f"not converted to Python 3: {error.msg}",
            (filename, line, None, text.splitlines()[line - 1]),
        ) from None


def parse_python3(source: bytes | str, filename: str) -> Parsed:
    """Return the syntax tree of a Python 3 module.

    Raises SyntaxError if the source is not Python 3.
    """
    tree = _parsed(source, filename)
    old = _named_exception(tree)
    if old is not None:  # as Python said before 3.14
        what = "multiple exception types must be parenthesized"
        raise SyntaxError(what, (filename, old.lineno, old.col_offset + 1, None))
    return Parsed(_located(tree), [])


def _text_of(source: bytes | str) -> str:
    """Return the text of a module, whose lines end by a line feed."""
    text = source if isinstance(source, str) else decoded(source)
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip() + "\n"


def decoded(source: bytes) -> str:
    """Return the text of a module: in its declared encoding, else UTF-8, else Latin-1."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        return source.decode(encoding)
    except (SyntaxError, UnicodeDecodeError):
        return source.decode("latin-1")


def _parsed(text: bytes | str, filename: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the text of the program
        try:
            return ast.parse(text, filename)
        except SyntaxError as error:
            raise error.with_traceback(None) from None
        except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nested too deep
            raise SyntaxError(str(error) or type(error).__name__) from None


def _named_exception(tree: ast.Module) -> ast.ExceptHandler | None:
    """Return the first ``except E, e`` of a module that Python 3 parses.

    Since Python 3.14 that means ``except (E, e)``; classes begin with a capital letter.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.ExceptHandler) or not isinstance(node.type, ast.Tuple):
            continue
        parts = node.type.elts
        # a tuple in parentheses begins before its first element
        if len(parts) != 2 or node.type.col_offset != parts[0].col_offset:
            continue
        if isinstance(parts[1], ast.Name) and not parts[1].id[0].isupper():
            return node
    return None


def _may_print(tree: ast.Module) -> bool:
    """Return whether a module that Python 3 parses may use ``print`` or ``exec`` as statements.

    ``print ("a %d") % 3`` and ``exec ("a") in b`` parse in both, with different meanings.
    """
    return not has_future(tree, "print_function") and any(
        isinstance(node, ast.Name) and node.id in ("print", "exec") for node in ast.walk(tree)
    )


def has_future(tree: ast.Module, feature: str) -> bool:
    """Return whether a module imports a feature from ``__future__``."""
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == feature for alias in node.names)
        for node in tree.body
    )


def _spaces(text: str) -> str:
    """Expand the tabs of indents to 8 columns, as Python 2 counted them; strings stay."""
    if "\t" not in text:
        return text
    lines = text.split("\n")
    for number in set(range(len(lines))) - _within_strings(text):
        line = lines[number]
        rest = line.lstrip(" \t\f")
        lines[number] = line[: len(line) - len(rest)].expandtabs(8) + rest
    return "\n".join(lines)


def _within_strings(text: str) -> set[int]:
    """Return the indices of the lines that begin inside a string."""
    from fissix.pgen2 import tokenize as tokenize2

    inside: set[int] = set()
    try:
        for token, _, (first, _), (last, _), _ in tokenize2.generate_tokens(
            io.StringIO(text).readline
        ):
            if token == tokenize2.STRING:
                inside.update(range(first, last))
    except (tokenize2.TokenError, IndentationError):  # the parser reports it
        pass
    return inside


@cache
def _tool(print_is_name: bool) -> Any:
    """Return the converter, whose list ``rewritten`` says what it did."""
    from fissix import refactor

    class Tool(refactor.RefactoringTool):
        rewritten: list[tuple[str, int]] = []

        def log_message(self, msg: str, *args: Any) -> None:
            """Write nothing: the log is the program's."""

        log_debug = log_message

        def get_fixers(self) -> Any:
            before, after = super().get_fixers()
            for fixer in [*before, *after]:
                fixer.transform = self._noting(fixer)
            return before, after

        def _noting(self, fixer: Any) -> Any:
            transform = fixer.transform
            name = type(fixer).__module__.rpartition(".fix_")[2]

            def noting(node: Any, results: Any) -> Any:
                line = node.get_lineno()
                new = transform(node, results)
                if line and (new is not None or node.was_changed):
                    self.rewritten.append((name, line))
                return new

            return noting

    fixers = [f"fissix.fixes.fix_{name}" for name in breakages.SYNTAX]
    return Tool(fixers, {"print_function": print_is_name})


def _refactored(text: str, filename: str) -> tuple[str, list[int], list[tuple[str, int]], bool]:
    """Return (the text in Python 3, the original line of each of its lines, what was rewritten).

    Last comes whether ``print`` was parsed as a statement.
    Raises SyntaxError if the text does not parse.
    """
    from fissix.pgen2 import parse as parse2
    from fissix.pgen2 import tokenize as tokenize2

    refused: SyntaxError | None = None
    for print_is_name in (False, True):
        tool = _tool(print_is_name)
        tool.rewritten = []
        try:
            tree = tool.refactor_string(_spaces(text), filename)
        except IndentationError as error:
            refused = refused or error
        except parse2.ParseError as error:
            line, column = error.context[1]
            what = f"invalid syntax in Python 2 and in Python 3, near {error.value!r}"
            refused = refused or SyntaxError(what, (filename, line, column + 1, None))
        except tokenize2.TokenError as error:
            refused = refused or SyntaxError(error.args[0], (filename, error.args[1][0], 1, None))
        except RecursionError:
            refused = refused or SyntaxError("nested too deep", (filename, 1, 1, None))
        else:
            _mend_tokens(tree)
            lines = _original_lines(tree)
            found = dict.fromkeys(sorted(tool.rewritten, key=lambda pair: pair[1]))
            return str(tree), lines, list(found), not print_is_name
    assert refused is not None
    raise refused


def _mend_tokens(tree: Any) -> None:
    """Rename what is a keyword now, and keep backslashes that only Python 3 takes for characters.

    The prefix of ur"text" goes.
    """
    from fissix.pgen2 import token

    for leaf in tree.leaves():
        if leaf.type == token.NAME and leaf.value in _KEYWORDS:
            leaf.value += "_"
        elif leaf.type == token.NUMBER and _OCTAL.fullmatch(leaf.value):  # of 0777L
            leaf.value = f"0o{leaf.value[1:]}"
        elif leaf.type == token.STRING and "\\" in leaf.value:
            prefix = leaf.value[: len(leaf.value) - len(leaf.value.lstrip("uUbBrR"))].lower()
            if prefix == "ur":
                leaf.value = leaf.value[1:]
            elif not prefix and "unicode_literals" not in tree.future_features:
                leaf.value = _ESCAPE.sub(r"\1\\\2", leaf.value)
        elif leaf.type == token.STRING and leaf.value[:2].lower() == "ur":
            leaf.value = leaf.value[1:]


def _original_lines(tree: Any) -> list[int]:
    """Return the original line of each line of a tree that fixers changed.

    A line that a fixer inserted counts as the one before it.
    """
    known: dict[int, int] = {}
    line = 1
    for leaf in tree.leaves():
        line += leaf.prefix.count("\n")
        breaks = leaf.value.count("\n")
        if leaf.lineno and leaf.value.strip():  # fixers make tokens without a line
            for k in range(breaks + 1):
                known.setdefault(line + k, leaf.lineno + k)
        line += breaks
    lines: list[int] = []
    for number in range(1, line + 1):
        lines.append(known.get(number, lines[-1] if lines else 1))
    return lines


def _located(tree: ast.Module, lines: list[int] | None = None) -> ast.Module:
    """Give all nodes their original lines, and no columns: those of a converted line differ."""
    node: Any
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            first, last = node.lineno, node.end_lineno
            if lines is not None:
                first, last = lines[first - 1], lines[last - 1]
            node.lineno, node.end_lineno = first, max(first, last)
            node.col_offset = node.end_col_offset = -1
    return tree


# --- semantics ------------------------------------------------------------------------------------


def semantics(tree: ast.Module, python: int = 2, prints: bool = False) -> ast.Module:
    """Replace what is computed differently today by calls of ``opwise.py2.builtin``, in place.

    python: see ``compiled``. prints: see ``Parsed``.
    """
    counters = _counters(tree)
    if python == 2:
        _Semantics(has_future(tree, "division"), counters, prints).visit(tree)
    else:
        _Libraries(counters).visit(tree)
    return tree


def _call(function: str, node: ast.AST, *args: ast.expr) -> ast.Call:
    """Return a call of one of the functions that ``opwise.py2.builtin`` adds to the builtins."""
    name = ast.Name(f"__py2_{function}__", ast.Load())
    call = ast.Call(name, list(args), [])
    ast.copy_location(name, node)
    return ast.copy_location(call, node)


def _text(text: str, node: ast.AST) -> ast.Constant:
    return ast.copy_location(ast.Constant(text), node)


def _is_float(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float | complex)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


#: functions that took an array of one element as a number
_NUMBERS = {"complex", "float", "int", "long"}


#: builtins that return no list
_NO_LISTS = {"abs", "float", "hash", "id", "int", "len", "long", "ord", "slice", "str", "tuple"}


def _may_be_list(index: ast.expr) -> bool:
    """Return whether an index may be a list of something else than numbers."""
    match index:
        case ast.List(elts=elements):
            return not all(isinstance(element, ast.Constant) for element in elements)
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _may_be_list_sum(left) or _may_be_list_sum(right)
        case ast.Call(func=ast.Name(id=name)):
            return name not in _NO_LISTS and not name.startswith("__py2_")
    return isinstance(index, ast.Name | ast.Attribute | ast.Call)


def _counters(tree: ast.Module) -> set[str]:
    """Return the names that a module binds to counters of loops, integers and texts alone."""
    bound: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                bound[name] += 1
            case ast.arg(arg=name) | ast.alias(name=name, asname=None) | ast.alias(asname=name):
                bound[str(name)] += 1
            case (
                ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name("range" | "xrange")))
                | ast.comprehension(
                    target=ast.Name(id=name), iter=ast.Call(func=ast.Name("range" | "xrange"))
                )
                | ast.For(
                    target=ast.Tuple(elts=[ast.Name(id=name), *_]),
                    iter=ast.Call(func=ast.Name("enumerate")),
                )
                | ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.Constant(value=int() | str() | None)
                )
                | ast.AugAssign(
                    target=ast.Name(id=name),
                    op=ast.Add() | ast.Sub() | ast.Mult(),
                    value=ast.Constant(value=int() | str()),
                )
            ):
                counts[name] += 1
    return {name for name, count in counts.items() if count == bound[name]}


def _may_be_list_sum(side: ast.expr) -> bool:
    """Return whether a side of ``+`` or ``*`` is written as a list."""
    match side:
        case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
            return _may_be_list_sum(left) or _may_be_list_sum(right)
        case ast.Call(func=ast.Name(id="list")):
            return True
    return isinstance(side, ast.List)


def _is_path(node: ast.expr) -> bool:
    """Return whether an expression is a name, or attributes of one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _may_be_text(node: ast.expr) -> bool:
    return not isinstance(node, ast.Constant) or isinstance(node.value, str)


def _truth(test: ast.expr) -> ast.expr:
    """Return an expression that is true if ``test`` was: an empty array is false."""
    match test:
        case ast.BoolOp(values=values):
            test.values = [_truth(value) for value in values]
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(None)]):
            return _call("equals_none", test, left)
        case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[ast.Constant(None)]):
            negated = ast.UnaryOp(ast.Not(), _call("equals_none", test, left))
            return ast.copy_location(negated, test)
        case ast.Call(func=ast.Name(name)) if name in _TRUTHS:
            pass
        case ast.Name() | ast.Attribute() | ast.Subscript() | ast.Call():
            return _call("truth", test, test)
    return test


#: functions whose value is no array
_TRUTHS = {"all", "any", "bool", "callable", "hasattr", "isinstance", "issubclass", "len"}
_TRUTHS |= {"__py2_truth__", "__py2_equals_none__"}


class _Libraries(ast.NodeTransformer):
    """Replaces what numpy computes differently, and names that may be gone.

    What numpy changed are functions that take arrays of one element as numbers (conversions,
    formatted text, assigned elements), indices that are lists, and the truth and comparisons of
    arrays.
    """

    def __init__(self, counters: set[str]):
        #: names of numbers, which are no lists
        self.counters = counters

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and _may_be_text(node.left):
            return _call("remainder", node, node.left, node.right)
        return node

    # --- truth and comparisons of arrays ---

    def visit_If(self, node: Any) -> Any:
        """Let empty arrays be false."""
        self.generic_visit(node)
        node.test = _truth(node.test)
        return node

    visit_While = visit_Assert = visit_IfExp = visit_If

    def visit_comprehension(self, node: ast.comprehension) -> ast.comprehension:
        self.generic_visit(node)
        node.ifs = [_truth(test) for test in node.ifs]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not):
            node.operand = _truth(node.operand)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Let ``x or y`` be y for an empty array x."""
        self.generic_visit(node)
        if isinstance(node.op, ast.Or):
            node.values[:-1] = [_truth(value) for value in node.values[:-1]]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Let arrays that cannot be compared with something be unequal to it."""
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            return node
        sides = [node.left, *node.comparators]
        if any(isinstance(side, ast.Constant) and type(side.value) is not str for side in sides):
            return node
        return _call("equal" if isinstance(node.ops[0], ast.Eq) else "unequal", node, *sides)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name("bool"), args=[argument], keywords=[]):
                node.args = [_truth(argument)]
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if (
                name in _NUMBERS and not isinstance(argument, ast.Constant | ast.Starred)
            ):
                return _call("number", node, node.func, argument)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        self.generic_visit(node)
        match node.targets:
            case [ast.Subscript(value=owner, slice=index)] if not isinstance(
                node.value, ast.Constant
            ) and not isinstance(index, ast.Slice):
                call = _call("set_item", node, node.value, owner, _index(index))
                return ast.copy_location(ast.Expr(call), node)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        return self._updated_item(node)

    def _updated_item(self, node: ast.AugAssign) -> ast.stmt:
        """Let an element of an array be updated by an array of one element.

        The element is read before the right side is computed, as Python does.
        """
        match node:
            case ast.AugAssign(target=ast.Subscript(value=owner, slice=index)) if not isinstance(
                node.value, ast.Constant
            ) and not isinstance(index, ast.Slice):
                read = _call("read_item", node, owner, _index(index))
                name = _text(type(node.op).__name__, node)
                call = _call("update_item", node, name, read, node.value)
                return ast.copy_location(ast.Expr(call), node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Let lists of slices and of sequences index arrays as tuples do."""
        self.generic_visit(node)
        owner, index = node.value, node.slice
        if not _may_be_list(index) or (isinstance(index, ast.Name) and index.id in self.counters):
            return node
        if _is_path(owner):  # it can be read twice
            node.slice = _call("index", index, owner, index)
            if isinstance(index, ast.Name):  # most are numbers, which cost no call
                is_list = ast.Compare(
                    _call("type", index, index),
                    [ast.Is()],
                    [ast.copy_location(ast.Name("__py2_list__", ast.Load()), index)],
                )
                node.slice = ast.copy_location(
                    ast.IfExp(ast.copy_location(is_list, index), node.slice, index), index
                )
        elif isinstance(node.ctx, ast.Load):
            return _call("item", node, owner, index)
        return node

    def visit_Slice(self, node: ast.Slice) -> ast.Slice:
        """Let floats be bounds of slices."""
        self.generic_visit(node)
        node.lower, node.upper = self._bound(node.lower), self._bound(node.upper)
        return node

    def _bound(self, part: ast.expr | None) -> ast.expr | None:
        if part is None or self._is_whole(part):
            return part
        called = _call("bound", part, part)
        if not isinstance(part, ast.Name):
            return called
        is_int = ast.Compare(
            _call("type", part, part),
            [ast.Is()],
            [ast.copy_location(ast.Name("__py2_int__", ast.Load()), part)],
        )
        return ast.copy_location(ast.IfExp(ast.copy_location(is_int, part), part, called), part)

    def _is_whole(self, part: ast.expr) -> bool:
        """Return whether an expression is written as an integer."""
        match part:
            case ast.Constant(value=value):
                return not isinstance(value, float)
            case ast.Name(id=name):
                return name in self.counters
            case ast.Call(func=ast.Name(id=name)):
                return name in ("len", "int")
            case ast.UnaryOp(operand=operand):
                return self._is_whole(operand)
            case ast.BinOp(left=left, op=op, right=right):
                inside = isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod)
                return inside and self._is_whole(left) and self._is_whole(right)
        return False

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        self.generic_visit(node)
        if node.attr not in breakages.ATTRIBUTES or not isinstance(node.ctx, ast.Load):
            return node
        return _call("attribute", node, node.value, _text(node.attr, node))

    def visit_Import(self, node: ast.Import) -> ast.stmt | list[ast.stmt]:
        """Write ``import a.b as c`` as ``from a import b as c``: the table may have ``a.b``."""
        if not any(alias.asname and alias.name in breakages.NAMES for alias in node.names):
            return node
        statements: list[ast.stmt] = []
        for alias in node.names:
            parent, _, child = alias.name.rpartition(".")
            if alias.asname and parent:
                new = ast.copy_location(ast.alias(child, alias.asname), alias)
                statements.append(ast.ImportFrom(parent, [new], 0))
            else:
                statements.append(ast.Import([alias]))
        return [ast.copy_location(statement, node) for statement in statements]


#: operators -> the functions that do them
_ORDERS: dict[type[ast.cmpop], str] = {
    ast.Lt: "less",
    ast.LtE: "less_equal",
    ast.Gt: "greater",
    ast.GtE: "greater_equal",
}


def _is_nothing(node: ast.expr) -> bool:
    """Return whether an expression is a constant that is no number."""
    return isinstance(node, ast.Constant) and not isinstance(node.value, int)


def _is_repeatable(node: ast.expr) -> bool:
    """Return whether an expression may be computed twice."""
    return _is_path(node) or isinstance(node, ast.Constant)


class _Semantics(_Libraries):
    """Replaces what Python 3 computes differently, too.

    These are divisions, names of exceptions, and metaclasses.
    """

    def __init__(self, true_division: bool, counters: set[str], prints: bool):
        super().__init__(counters)
        self.true_division = true_division
        #: whether ``print`` was a statement
        self.prints = prints

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Print, and make text of numbers, as Python 2 did."""
        match node:
            case ast.Call(func=ast.Name("print")) if self.prints:
                node.func = ast.copy_location(ast.Name("__py2_print__", ast.Load()), node.func)
            case ast.Call(func=ast.Name("str" | "unicode"), args=[argument], keywords=[]) if (
                not isinstance(argument, ast.Starred) and not _is_text(argument)
            ):
                self.generic_visit(node)
                return _call("text", node, node.func, argument)
        return super().visit_Call(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        if not isinstance(node.op, ast.Div) or self.true_division:
            return super().visit_BinOp(node)
        self.generic_visit(node)
        if _is_float(node.left) or _is_float(node.right):
            return node
        return _call("divide", node, node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div) or self.true_division or _is_float(node.value):
            return self._updated_item(node)
        target = node.target
        if isinstance(target, ast.Name):
            old = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            value = _call("divide_in_place", node, old, node.value)
            return ast.copy_location(ast.Assign([target], value), node)
        if isinstance(target, ast.Attribute):
            name = _text(target.attr, node)
            call = _call("divide_attribute", node, target.value, name, node.value)
        else:
            call = _call("divide_item", node, target.value, _index(target.slice), node.value)
        return ast.copy_location(ast.Expr(call), node)

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Order values of different types, as None and numbers; also ``a < b < c``."""
        names = [_ORDERS.get(type(op)) for op in node.ops]
        if None in names or not all(map(_is_repeatable, node.comparators[:-1])):
            return super().visit_Compare(node)
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        if all(self._is_whole(side) and not _is_nothing(side) for side in sides):
            return node
        calls: list[ast.expr] = [
            _call(str(name), node, left, right)
            for name, left, right in zip(names, sides, sides[1:], strict=False)
        ]
        if len(calls) == 1:
            return calls[0]
        return ast.copy_location(ast.BoolOp(ast.And(), calls), node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        """Keep the name of a caught exception after its block, as in Python 2."""
        self.generic_visit(node)
        if node.name is not None:
            caught = ast.copy_location(ast.Name("__py2_caught__", ast.Load()), node)
            name = ast.copy_location(ast.Name(node.name, ast.Store()), node)
            node.body.insert(0, ast.copy_location(ast.Assign([name], caught), node))
            node.name = "__py2_caught__"
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.generic_visit(node)
        for statement in node.body:
            if isinstance(statement, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == "__metaclass__"
                for target in statement.targets
            ):
                keyword = ast.keyword("metaclass", statement.value)
                node.keywords.append(ast.copy_location(keyword, statement))
        return node


def _index(node: ast.expr) -> ast.expr:
    """Return an index as an expression: ``a[1:2]`` holds a slice only inside the brackets."""
    if isinstance(node, ast.Tuple):
        elements = [_index(element) for element in node.elts]
        return ast.copy_location(ast.Tuple(elements, ast.Load()), node)
    if isinstance(node, ast.Slice):
        nothing = ast.copy_location(ast.Constant(None), node)
        parts = (part or nothing for part in (node.lower, node.upper, node.step))
        return _call("slice", node, *parts)
    return node
