"""The text of a function with its loops, branches and calls turned into calls of ``control``.

The converted text has the file and the lines of the function, so errors and profiles name these.
Every name that a loop or a branch assigns becomes a variable that its parts share (``nonlocal``);
break, continue and early returns become flags. What is left alone: generators, coroutines, classes
and functions without source.
"""

from __future__ import annotations

import ast
import copy
import inspect
import linecache
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from opwise.tracing.liveness import Liveness

#: the name by which converted text reaches ``control``
HOOKS = "ow"


class Unconvertible(Exception):
    """A function cannot be converted; the text says why."""


def source_tree(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda:
    """Return the syntax tree of a function, with the lines and columns of its file.

    Raises Unconvertible if there is no source.
    """
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines or code.co_firstlineno > len(lines):
        raise Unconvertible("its source is not known")
    if code.co_name == "<lambda>":
        return _lambda_tree(code, "".join(lines))
    try:
        block = inspect.getblock(lines[code.co_firstlineno - 1 :])
    except (SyntaxError, IndentationError) as error:
        raise Unconvertible("its source cannot be read") from error
    indent = len(block[0]) - len(block[0].lstrip())
    text = "".join(line[indent:] if line[:indent].isspace() else line for line in block)
    try:
        (tree,) = ast.parse(text).body
    except (SyntaxError, ValueError) as error:
        raise Unconvertible("its source cannot be read") from error
    if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:
        raise Unconvertible("its source is not that of a function")
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno += code.co_firstlineno - 1
            node.col_offset += indent
            node.end_lineno += code.co_firstlineno - 1
            node.end_col_offset += indent
    return tree


def _lambda_tree(code: types.CodeType, text: str) -> ast.Lambda:
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            given = node.args
            own = [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
            if tuple(own) == tuple(names):
                found.append(node)
    if len(found) > 1:
        places = [p for p in code.co_positions() if p[0] and p[2] is not None and p[3]]
        first = min((p[0], p[2]) for p in places)  # type: ignore[type-var]
        inside = [
            n for n in found
            if (n.body.lineno, n.body.col_offset) <= first  # type: ignore[operator]
            <= (n.body.end_lineno, n.body.end_col_offset)  # type: ignore[operator]
        ]  # fmt: skip
        found = inside[-1:] or found
    if len(found) != 1:
        raise Unconvertible("its source is not clear: several lambdas are on its line")
    return found[0]


# --- names ----------------------------------------------------------------------------------------


class _Stores(ast.NodeVisitor):
    """Collects the names that statements assign, not those of functions inside them."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.declared: dict[str, str] = {}

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store | ast.Del):
            self.names[node.id] = None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.names[node.name] = None

    visit_ClassDef = visit_FunctionDef  # type: ignore[assignment]

    def visit_Lambda(self, node: ast.Lambda) -> None:
        pass

    def _comprehension(self, node: ast.AST) -> None:
        for each in ast.walk(node):
            if isinstance(each, ast.NamedExpr):
                self.names[each.target.id] = None

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension  # type: ignore[assignment]

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.names[(alias.asname or alias.name).partition(".")[0]] = None

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.names[node.name] = None
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> None:
        self.declared.update(dict.fromkeys(node.names, "global"))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.declared.update(dict.fromkeys(node.names, "nonlocal"))


def stores(statements: Iterable[ast.AST]) -> _Stores:
    """Return the names that statements assign, and those that they declare."""
    found = _Stores()
    for statement in statements:
        found.visit(statement)
    return found


def stores_of_functions(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names of variables outside them that functions in statements assign."""
    return {
        name
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Nonlocal)
        for name in node.names
    }


def _loads(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names that nodes read, those in functions inside them too."""
    found: set[str] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        pending.extend(ast.iter_child_nodes(node))
    return found


def _has(
    node: ast.AST | Sequence[ast.AST], kinds: tuple[type, ...], stop: tuple[type, ...] = ()
) -> bool:
    """Return whether statements contain nodes of some kinds, outside functions and ``stop``."""
    pending = list(node) if isinstance(node, list | tuple) else [node]
    while pending:
        each = pending.pop()
        if isinstance(each, kinds):
            return True
        if isinstance(each, ast.FunctionDef | ast.Lambda | ast.ClassDef | ast.AsyncFunctionDef):
            continue
        if isinstance(each, stop):
            # the else part of a loop belongs to what is around it
            pending.extend(getattr(each, "orelse", ()))
            continue
        pending.extend(ast.iter_child_nodes(each))
    return False


_LOOPS = (ast.For, ast.While)


# --- match ----------------------------------------------------------------------------------------


class _Matches(ast.NodeTransformer):
    """Writes ``match`` as branches where its patterns are values, names, and ``_``."""

    def __init__(self) -> None:
        self._count = 0

    def visit_Match(self, node: ast.Match) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        self._count += 1
        name = f"ow_subject_{self._count}"
        branches: list[ast.stmt] = []
        for case in reversed(node.cases):
            test, first = self._test(case.pattern, name), list[ast.stmt]()
            if test is None:
                return node
            if isinstance(case.pattern, ast.MatchAs) and case.pattern.name:
                first = [_assign(case.pattern.name, _name(name), case.pattern)]
                for each in ast.walk(case.guard or ast.Pass()):
                    if isinstance(each, ast.Name) and each.id == case.pattern.name:
                        each.id = name  # the name has its value in the branch only
            tests = [each for each in (test, case.guard) if each and not _is_true(each)]
            if not tests:
                branches = [*first, *case.body]
                continue
            whole = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            branches = [_located(ast.If(whole, [*first, *case.body], branches), case.pattern)]
        return [_assign(name, node.subject, node), *branches]

    def _test(self, pattern: ast.pattern, name: str) -> ast.expr | None:
        """Return an expression for whether a pattern fits; None if no branch can ask that."""
        if isinstance(pattern, ast.MatchValue):
            return ast.Compare(_name(name), [ast.Eq()], [pattern.value])
        if isinstance(pattern, ast.MatchSingleton):
            return ast.Compare(_name(name), [ast.Is()], [ast.Constant(pattern.value)])
        if isinstance(pattern, ast.MatchOr):
            tests = [self._test(each, name) for each in pattern.patterns]
            if any(each is None or _is_true(each) for each in tests):
                return None
            return ast.BoolOp(ast.Or(), tests)  # type: ignore[arg-type]
        if isinstance(pattern, ast.MatchAs) and pattern.pattern is None:
            return ast.Constant(True)
        return None


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


# --- jumps ----------------------------------------------------------------------------------------


class _Jumps:
    """Replaces break, continue and return by flags and branches, in one function."""

    def __init__(self) -> None:
        self._count = 0
        #: names of flags, which are False at the start of the function
        self.flags: list[str] = []
        self.returns = False

    def function(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the statements of a function; its value is in ``ow_value`` if it has returns that
        are not at its end."""
        nested = any(_has(s, (ast.Return,)) and not isinstance(s, ast.Return) for s in body)
        if nested:
            self.returns = True
            if not _returns(body):
                body = [*body, _located(ast.Return(ast.Constant(None)), body[-1])]
            body = self._block(body, None, None)
        return self._loops(body)

    def _loops(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Replace break and continue of all loops in statements."""
        made: list[ast.stmt] = []
        for statement in body:
            for name in ("body", "orelse", "finalbody"):
                if getattr(statement, name, None) and not isinstance(
                    statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef
                ):
                    setattr(statement, name, self._loops(getattr(statement, name)))
            for handler in getattr(statement, "handlers", ()):
                handler.body = self._loops(handler.body)
            for case in getattr(statement, "cases", ()):
                case.body = self._loops(case.body)
            if isinstance(statement, _LOOPS):
                made += self._loop(statement)
            else:
                made.append(statement)
        return made

    def _flag(self, name: str) -> str:
        self._count += 1
        flag = f"ow_{name}_{self._count}"
        self.flags.append(flag)
        return flag

    def _loop(self, loop: Any) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        broken = _has(loop.body, (ast.Break,), _LOOPS)
        continued = _has(loop.body, (ast.Continue,), _LOOPS)
        stop = self._flag("stop") if broken else None
        skip = self._flag("skip") if continued else None
        loop.stop = stop
        if stop:
            made.append(_assign(stop, ast.Constant(False), loop))
        if stop or skip:
            loop.body = self._guarded(loop.body, stop, skip)
            if skip:
                loop.body.insert(0, _assign(skip, ast.Constant(False), loop))
        after = loop.orelse
        loop.orelse = []
        made.append(loop)
        if after:
            if stop:
                made.append(_located(ast.If(_not(stop), after, []), loop))
            else:
                made += after
        return made

    def _guarded(self, body: list[ast.stmt], stop: str | None, skip: str | None) -> list[ast.stmt]:
        """Replace break and continue in the body of a loop by flags."""
        made: list[ast.stmt] = []
        for k, statement in enumerate(body):
            if isinstance(statement, ast.Break):
                made.append(_assign(str(stop), ast.Constant(True), statement))
                return made
            if isinstance(statement, ast.Continue):
                made.append(_assign(str(skip), ast.Constant(True), statement))
                return made
            jumps = _has(statement, (ast.Break, ast.Continue), _LOOPS)
            if not jumps:
                made.append(statement)
                continue
            rest = body[k + 1 :]
            if isinstance(statement, ast.If):
                first, second = statement.body, statement.orelse
                # what follows a branch that jumps goes into the other one
                if rest and _ends(first) and not _has(second, (ast.Break, ast.Continue), _LOOPS):
                    second, rest = second + rest, []
                elif (
                    rest
                    and second
                    and _ends(second)
                    and not _has(first, (ast.Break, ast.Continue), _LOOPS)
                ):
                    first, rest = first + rest, []
                statement.body = self._guarded(first, stop, skip)
                statement.orelse = self._guarded(second, stop, skip)
            else:
                for name in ("body", "orelse", "finalbody"):
                    if getattr(statement, name, None):
                        setattr(
                            statement, name, self._guarded(getattr(statement, name), stop, skip)
                        )
                for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                    part.body = self._guarded(part.body, stop, skip)
            made.append(statement)
            if rest:
                inner = self._guarded(rest, stop, skip)
                flags = [flag for flag in (stop, skip) if flag and _assigns(statement, flag)]
                test = _neither(flags)
                made.append(_located(ast.If(test, inner, []), rest[0]))
                return made
            return made
        return made

    def _block(self, body: list[ast.stmt], done: str | None, loop: Any) -> list[ast.stmt]:
        """Replace returns by assignments to ``ow_value``; done: the flag that says so, in a loop or
        where both may happen."""
        made: list[ast.stmt] = []
        for k, statement in enumerate(body):
            if isinstance(statement, ast.Return):
                value = statement.value or ast.Constant(None)
                made.append(_assign("ow_value", value, statement))
                if done:
                    made.append(_assign(done, ast.Constant(True), statement))
                if loop is not None:
                    made.append(_located(ast.Break(), statement))
                return made
            if not _has(statement, (ast.Return,)) or isinstance(
                statement, ast.FunctionDef | ast.ClassDef
            ):
                made.append(statement)
                continue
            rest = body[k + 1 :]
            if isinstance(statement, ast.If):
                first, second = statement.body, statement.orelse
                if _returns(first) and not (second and _returns(second)):
                    second, rest = second + rest, []
                elif second and _returns(second) and not _returns(first):
                    first, rest = first + rest, []
                elif second and _returns(first) and _returns(second):
                    rest = []
                own = done
                if rest and not done:
                    own = self._flag("done")
                    made.append(_assign(own, ast.Constant(False), statement))
                statement.body = self._block(first, own, loop)
                statement.orelse = self._block(second, own, loop)
                made.append(statement)
                if rest:
                    inner = self._block(rest, done, loop)
                    made.append(_located(ast.If(_not(str(own)), inner, []), rest[0]))
                return made
            own = done
            if not own:
                own = self._flag("done")
                made.append(_assign(own, ast.Constant(False), statement))
            if isinstance(statement, _LOOPS):
                statement.body = self._block(statement.body, own, statement)
                after = statement.orelse
                if after:
                    statement.orelse = self._block(after, own, loop)
                made.append(statement)
            else:
                for name in ("body", "orelse", "finalbody"):
                    if getattr(statement, name, None):
                        setattr(statement, name, self._block(getattr(statement, name), own, loop))
                for handler in getattr(statement, "handlers", ()):
                    handler.body = self._block(handler.body, own, loop)
                for case in getattr(statement, "cases", ()):
                    case.body = self._block(case.body, own, loop)
                made.append(statement)
            if loop is not None and isinstance(statement, _LOOPS):
                made.append(
                    _located(ast.If(_name(own), [_located(ast.Break(), statement)], []), statement)
                )
            if rest:
                inner = self._block(rest, done, loop)
                made.append(_located(ast.If(_not(own), inner, []), rest[0]))
            return made
        return made


def _assigns(statement: ast.AST, name: str) -> bool:
    return name in stores([statement]).names


def _ends(body: list[ast.stmt]) -> bool:
    """Return whether statements always end with a break or continue."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Break | ast.Continue):
        return not _has(body[:-1], (ast.Break, ast.Continue), _LOOPS)
    return False


def _returns(body: list[ast.stmt]) -> bool:
    """Return whether statements always return, or raise."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Return | ast.Raise):
        return True
    if isinstance(last, ast.While):  # only a return ends it
        return _is_true(last.test) and not _has(last.body, (ast.Break,), _LOOPS)
    return isinstance(last, ast.If) and _returns(last.body) and _returns(last.orelse)


def _name(name: str, store: bool = False) -> ast.Name:
    return ast.Name(name, ast.Store() if store else ast.Load())


def _not(name: str) -> ast.expr:
    return ast.UnaryOp(ast.Not(), _name(name))


def _neither(flags: list[str]) -> ast.expr:
    tests = [_not(flag) for flag in flags]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _located(node: Any, place: ast.AST) -> Any:
    """Give a node, and all nodes in it that have none, the line of another."""
    for each in ast.walk(node):
        if "lineno" in each._attributes and not hasattr(each, "lineno"):
            ast.copy_location(each, place)
            each.end_lineno = each.lineno  # type: ignore[attr-defined]
            each.end_col_offset = each.col_offset + 1  # type: ignore[attr-defined]
    return node


def _assign(name: str, value: ast.expr, place: ast.AST) -> ast.stmt:
    made: ast.stmt = _located(ast.Assign([_name(name, True)], value), place)
    return made


# --- statements and expressions -------------------------------------------------------------------


class _Converter(ast.NodeTransformer):
    """Turns the loops, branches and calls of one function into calls of ``control``."""

    def __init__(
        self,
        function: ast.FunctionDef | ast.Lambda,
        enclosing: _Converter | None,
        modules: frozenset[str] = frozenset(),
    ) -> None:
        self._function = function
        #: global names of modules, whose attributes are no data
        self._modules = modules if enclosing is None else enclosing._modules
        self._declared: dict[str, str] = {}
        self._count = enclosing._count if enclosing is not None else [0]
        #: variables that functions inside assign: any call may change them
        self._by_calls: list[str] = []
        #: names that need a value before a part can share them
        self.shared: dict[str, None] = {}

    # --- functions

    def convert(self) -> Any:
        function = self._function
        if isinstance(function, ast.Lambda):
            function.body = self.visit(function.body)
            return function
        if _has(function.body, (ast.Yield, ast.YieldFrom, ast.Await)):
            raise Unconvertible("it is a generator or a coroutine")
        arguments = function.args
        own = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} | {
            a.arg for a in (arguments.vararg, arguments.kwarg) if a is not None
        }
        self._declared = stores(function.body).declared
        self._by_calls = [n for n in sorted(stores_of_functions(function.body))
                          if n in own or n in stores(function.body).names]  # fmt: skip
        function.body = _Matches().visit(ast.Module(function.body, [])).body
        jumps = _Jumps()
        body = jumps.function(function.body)
        Liveness(body, ("ow_value",) if jumps.returns else ())
        statements: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            statements += made if isinstance(made, list) else [made]
        first = body[0] if body else function
        before: list[ast.stmt] = []
        needed = [n for n in self.shared if n not in own and n not in self._declared]
        for flag in (*jumps.flags, *(("ow_value",) if jumps.returns else ())):
            if flag in needed:
                needed.remove(flag)
        for flag in jumps.flags:
            before.append(_assign(flag, ast.Constant(False), first))
        if jumps.returns:
            before.append(
                _assign("ow_value", _call("undefined", [ast.Constant("ow_value")]), first)
            )
            statements.append(
                _located(ast.Return(_call("returned", [_name("ow_value")])), body[-1])
            )
        for name in stores(function.body).names:
            if self._declared.get(name) == "global":
                refused = _call("assigns_global", [ast.Constant(name)])
                before.append(_located(ast.Expr(refused), first))
        for name in needed:
            before.append(_assign(name, _call("undefined", [ast.Constant(name)]), first))
        documented = (
            statements[:1]
            if statements and isinstance(statements[0], ast.Expr)
            and isinstance(statements[0].value, ast.Constant) else []
        )  # fmt: skip
        function.body = [*documented, *before, *statements[len(documented) :]]
        return function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.args = self.visit(node.args)
        try:
            return _Converter(node, self).convert()
        except Unconvertible:
            return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        names = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
        if not any(n.startswith("__") and not n.endswith("__") for n in names):
            node.body = [
                self.visit(each) if isinstance(each, ast.FunctionDef) else each
                for each in node.body
            ]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return _Converter(node, self).convert()

    # --- parts that share variables

    def _next(self) -> int:
        self._count[0] += 1
        return self._count[0]

    def _parts(
        self,
        node: ast.stmt,
        parts: dict[str, tuple[list[str], list[ast.stmt]]],
        assigned: list[str],
        known: set[str],
    ) -> tuple[list[ast.stmt], str, list[str]]:
        """Return (definitions of functions, the name of the last number, the shared names).

        Names that a part neither reads from outside nor hands on are its own.
        """
        number = self._next()
        outside = {*getattr(node, "live", assigned), *getattr(node, "entry", assigned)}
        outside.add(getattr(node, "stop", None))
        local = [n for n in assigned if n in outside and self._declared.get(n) != "global"]
        world = [n for n in assigned if self._declared.get(n) == "global"]
        own = {n for n in assigned if n not in outside and n not in world}
        for name in own - known:
            self.shared.pop(name, None)
        self.shared.update(dict.fromkeys(local))
        definitions: list[ast.stmt] = []

        def define(name: str, arguments: list[str], body: list[ast.stmt]) -> None:
            header: list[ast.stmt] = []
            if local:
                header.append(ast.Nonlocal(list(local)))
            if world:
                header.append(ast.Global(list(world)))
            # what functions inside it share is its own, and no variable of the whole function
            inside = stores_of_functions(body)
            for each in sorted(own & inside):
                header.append(_assign(each, _call("undefined", [ast.Constant(each)]), node))
            given = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
            definition = ast.FunctionDef(
                f"ow_{name}_{number}", given, [*header, *(body or [ast.Pass()])], [], None, None
            )
            if hasattr(definition, "type_params"):
                definition.type_params = []
            definitions.append(_located(definition, node))

        for name, (arguments, body) in parts.items():
            define(name, arguments, body)
        values = ast.Tuple([_name(n) for n in local], ast.Load())
        define("get", [], [ast.Return(values)])
        if local:
            target = ast.Tuple([_name(n, True) for n in local], ast.Store())
            define("set", ["ow_values"], [ast.Assign([target], _name("ow_values"))])
        else:
            define("set", ["ow_values"], [])
        return definitions, str(number), local

    def _visited(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            each = self.visit(statement)
            made += each if isinstance(each, list) else [each]
        return made

    def _assigned(self, statements: Iterable[ast.AST]) -> list[str]:
        """Return the names that statements assign, or that calls in them may assign."""
        nodes = list(statements)
        found = stores(nodes).names
        if self._by_calls and any(isinstance(n, ast.Call) for s in nodes for n in ast.walk(s)):
            found.update(dict.fromkeys(self._by_calls))
        return list(found)

    @staticmethod
    def _used(node: ast.stmt, assigned: list[str]) -> ast.expr:
        """Return an expression for the names that are read after a statement that assigns them."""
        live = getattr(node, "live", assigned)
        return _strings([name for name in assigned if name in live])

    def visit_If(self, node: ast.If) -> Any:
        assigned = self._assigned([*node.body, *node.orelse])
        known = set(self.shared)
        test = self.visit(_test(node.test))
        body, orelse = self._visited(node.body), self._visited(node.orelse)
        parts: dict[str, Any] = {"then": ([], body), "other": ([], orelse)}
        definitions, number, names = self._parts(node, parts, assigned, known)
        call = _call(
            "if_statement",
            [
                test, *(_name(f"ow_{p}_{number}") for p in ("then", "other", "get", "set")),
                _strings(names),
            ],
        )  # fmt: skip
        return [*definitions, _located(ast.Expr(call), node)]

    def visit_For(self, node: ast.For) -> Any:
        if _has(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            return self.generic_visit(node)
        assigned = self._assigned([node.target, *node.body])
        known = set(self.shared)
        iterated = self.visit(node.iter)
        if isinstance(node.iter, ast.Name | ast.Attribute):
            iterated = _located(_call("held", [iterated]), node)
        body = self._visited(node.body)
        target = copy.deepcopy(node.target)
        # a target may be a part of an array
        head = self._visited([_located(ast.Assign([target], _name("ow_item")), node)])
        parts: dict[str, Any] = {"step": (["ow_item"], [*head, *body])}
        definitions, number, names = self._parts(node, parts, assigned, known)
        call = _call(
            "for_statement",
            [
                iterated, *(_name(f"ow_{p}_{number}") for p in ("step", "get", "set")),
                _strings(names), self._used(node, names),
                ast.Constant(getattr(node, "stop", None)),
            ],
        )  # fmt: skip
        return [*definitions, _located(ast.Expr(call), node)]

    def visit_While(self, node: ast.While) -> Any:
        assigned = self._assigned([node.test, *node.body])
        known = set(self.shared)
        test = self.visit(_test(node.test))
        body = self._visited(node.body)
        parts: dict[str, Any] = {
            "test": ([], [_located(ast.Return(test), node)]),
            "step": ([], body),
        }
        definitions, number, names = self._parts(node, parts, assigned, known)
        call = _call(
            "while_statement",
            [
                *(_name(f"ow_{p}_{number}") for p in ("test", "step", "get", "set")),
                _strings(names), self._used(node, names),
                ast.Constant(getattr(node, "stop", None)),
            ],
        )  # fmt: skip
        return [*definitions, _located(ast.Expr(call), node)]

    # --- errors

    def visit_Assert(self, node: ast.Assert) -> Any:
        arguments = [] if node.msg is None else [node.msg]
        raised = ast.Raise(ast.Call(_hook("assertion"), arguments, []), None)
        test = ast.UnaryOp(ast.Not(), node.test)
        return self.visit_If(_located(ast.If(test, [raised], []), node))

    def visit_Raise(self, node: ast.Raise) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        if node.exc is not None:
            node.exc = _located(_call("error", [_thunk(node.exc)]), node)
        return node

    def visit_Try(self, node: ast.Try) -> Any:
        classes = [h.type or _hook("any_error") for h in node.handlers]
        node = self.generic_visit(node)  # type: ignore[assignment]
        for handler in node.handlers:
            name = handler.name or f"ow_error_{self._next()}"
            handler.type, handler.name = handler.type or _hook("any_error"), name
            noted = _located(ast.Expr(_call("caught", [_name(name)])), handler)
            handler.body.insert(0, noted)
        if classes:
            handled = _call("handled", [_thunk(copy.deepcopy(c)) for c in classes])
            node.body.insert(0, _located(ast.Expr(handled), node))
            # what says that something cannot be traced is no error of the program
            passing = ast.ExceptHandler(_hook("untraceable"), None, [ast.Raise(None, None)])
            node.handlers.insert(0, _located(passing, node))
        return node

    # --- expressions

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        first = node.value
        while isinstance(first, ast.Attribute):
            first = first.value
        if not isinstance(node.ctx, ast.Load) or (
            isinstance(first, ast.Name) and first.id in self._modules
        ):
            return node
        if node.attr in _ARRAY_ATTRIBUTES:
            return node
        return _located(_call("attribute", [node.value, ast.Constant(node.attr)]), node)

    def _is_loop(self, node: ast.ListComp | ast.GeneratorExp) -> bool:
        """Return whether a comprehension may become a loop: calls in it assign no variables."""
        return _is_plain(node) and not (self._by_calls and _has(node, (ast.Call,)))

    def _argument(self, node: ast.expr) -> ast.expr:
        """Return an argument of a call; a comprehension may become a loop there."""
        if not isinstance(node, ast.ListComp | ast.GeneratorExp) or not self._is_loop(node):
            return self.visit(node)  # type: ignore[no-any-return]
        python = copy.deepcopy(node)
        element = self._argument(node.elt) if isinstance(node.elt, ast.ListComp) else (
            self.visit(node.elt)
        )  # fmt: skip
        for clause in reversed(node.generators):
            condition: ast.expr = ast.Constant(None)
            if clause.ifs:
                tests = [self.visit(_test(each)) for each in clause.ifs]
                for test in reversed(tests[:-1]):
                    tests[-1] = _call("and_", [test, _thunk(tests[-1])])
                condition = _of_item(clause.target, tests[-1])
            parts = [_thunk(self.visit(clause.iter)), condition, _of_item(clause.target, element)]
            element = _call("comprehension", parts)
        assert isinstance(element, ast.Call)
        python.generators[0].iter = _name("ow_items")
        given = ast.arguments([], [ast.arg("ow_items")], None, [], [], None, [])
        element.args.append(ast.Lambda(given, self.generic_visit(python)))
        return _located(element, node)  # type: ignore[no-any-return]

    def visit_List(self, node: ast.List) -> Any:
        made: Any = self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return made
        return _located(_call("list_", [made]), node)

    def visit_ListComp(self, node: ast.ListComp) -> Any:
        if not self._is_loop(node):
            made: Any = self.generic_visit(node)
            return _located(_call("list_", [made]), node)
        return _located(_call("list_of", [self._argument(node)]), node)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            # the function itself is no data
            node.func.value = self.visit(node.func.value)
            node.args = [self._argument(a) for a in node.args]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)
            made = ast.Call(_hook("call"), [node.func, *node.args], node.keywords)
            return _located(ast.copy_location(made, node), node)
        if isinstance(node.func, ast.Name) and node.func.id in (
            "super",
            "locals",
            "globals",
            "vars",
        ):
            return self.generic_visit(node)
        node.args = [self._argument(a) for a in node.args]
        node.func = self.visit(node.func)
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        made = ast.Call(_hook("call"), [node.func, *node.args], node.keywords)
        return _located(ast.copy_location(made, node), node)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        if not isinstance(node.ctx, ast.Load):
            return node
        made = _call("getitem", [node.value, _key(node.slice)])
        return _located(ast.copy_location(made, node), node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        if not any(_has(t, (ast.Subscript, ast.Attribute)) for t in node.targets):
            return self.generic_visit(node)
        value = self.visit(node.value)
        number = self._next()
        made: list[ast.stmt] = []
        source: ast.expr = value
        if len(node.targets) > 1 or not isinstance(node.targets[0], ast.Subscript | ast.Attribute):
            made.append(_assign(f"ow_value_{number}", value, node))
            source = _name(f"ow_value_{number}")
        for target in node.targets:
            made += self._stored(target, source, node)
        return made

    def _stored(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> list[ast.stmt]:
        """Return statements that assign a value to a target."""
        if isinstance(target, ast.Subscript):
            call = _call(
                "setitem", [self.visit(target.value), _key(self.visit(target.slice)), value]
            )
            return [_located(ast.Expr(call), node)]
        if isinstance(target, ast.Attribute):
            call = _call(
                "set_attribute", [self.visit(target.value), ast.Constant(target.attr), value]
            )
            return [_located(ast.Expr(call), node)]
        if (
            isinstance(target, ast.Tuple | ast.List)
            and _has(target, (ast.Subscript, ast.Attribute))
            and not any(isinstance(t, ast.Starred) for t in target.elts)
        ):
            number = self._next()
            names = [f"ow_part_{number}_{k}" for k in range(len(target.elts))]
            unpacked = ast.Tuple([_name(n, True) for n in names], ast.Store())
            made: list[ast.stmt] = [_located(ast.Assign([unpacked], value), node)]
            for name, each in zip(names, target.elts, strict=True):
                made += self._stored(each, _name(name), node)
            return made
        return [_located(ast.Assign([target], value), node)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return _located(ast.Pass(), node)
        return self.visit_Assign(_located(ast.Assign([node.target], node.value), node))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        operator = ast.Constant(type(node.op).__name__)
        value = self.visit(node.value)
        if isinstance(node.target, ast.Subscript):
            item = node.target
            call = _call(
                "augmented_item",
                [self.visit(item.value), _key(self.visit(item.slice)), operator, value],
            )
            return _located(ast.Expr(call), node)
        if isinstance(node.target, ast.Name):
            call = _call("augmented", [_name(node.target.id), operator, value])
            return _located(ast.Assign([node.target], call), node)
        target = node.target
        call = _call(
            "augmented_attribute",
            [self.visit(target.value), ast.Constant(target.attr), operator, value],
        )
        return _located(ast.Expr(call), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if _has(node, (ast.NamedExpr,)):
            return self.generic_visit(node)
        is_test = hasattr(node, "is_test")
        plain = [isinstance(v, ast.BoolOp | ast.Compare | ast.Constant) for v in node.values]
        node = self.generic_visit(node)  # type: ignore[assignment]
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        values = [
            _located(_call("truth", [value]), node) if is_test and not each else value
            for value, each in zip(node.values, plain, strict=True)
        ]
        made = values[-1]
        for value in reversed(values[:-1]):
            made = _located(_call(name, [value, _thunk(made)]), node)
        return made

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            _test(node.operand)
        node = self.generic_visit(node)  # type: ignore[assignment]
        if not isinstance(node.op, ast.Not):
            return node
        return _located(_call("not_", [node.operand]), node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if _has(node, (ast.NamedExpr,)):
            return self.generic_visit(node)
        _test(node.test)
        node = self.generic_visit(node)  # type: ignore[assignment]
        made = _call("if_expression", [node.test, _thunk(node.body), _thunk(node.orelse)])
        return _located(made, node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        node = self.generic_visit(node)  # type: ignore[assignment]
        if len(node.ops) == 1:
            if not isinstance(node.ops[0], ast.In | ast.NotIn):
                sides = (node.left, node.comparators[0])
                if isinstance(node.ops[0], ast.Is | ast.IsNot) or not all(
                    isinstance(side, _MAY_BE_ROWS) for side in sides
                ):
                    return node
                kind = ast.Constant(type(node.ops[0]).__name__)
                return _located(_call("compared", [kind, *sides]), node)
            made = _call("contains", [node.left, *node.comparators])
            made = made if isinstance(node.ops[0], ast.In) else _call("not_", [made])
            return _located(made, node)
        if _has(node, (ast.NamedExpr,)):
            return node
        operators = ast.Tuple([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        made = _call("chained", [operators, node.left, *map(_thunk, node.comparators)])
        return _located(made, node)


def _test(node: ast.expr) -> ast.expr:
    """Mark an expression as one of which only the truth matters, and so its parts."""
    if isinstance(node, ast.BoolOp):
        node.is_test = True  # type: ignore[attr-defined]
        for value in node.values:
            _test(value)
    return node


#: expressions that may be tuples or lists, which are compared item by item
_MAY_BE_ROWS = ast.Name, ast.Tuple, ast.List, ast.Subscript, ast.Call

#: attributes of arrays, which need no hook
_ARRAY_ATTRIBUTES = frozenset("shape T ndim size dtype real imag mT flat itemsize nbytes".split())


def _hook(name: str) -> ast.expr:
    return ast.Attribute(_name(HOOKS), name, ast.Load())


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(_hook(name), arguments, [])


def _thunk(expression: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), expression)


def _is_plain(node: ast.ListComp | ast.GeneratorExp) -> bool:
    """Return whether a comprehension assigns names alone, each once, and waits for nothing."""
    if _has(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
        return False
    targets = [n for clause in node.generators for n in ast.walk(clause.target)]
    names = [n.id for n in targets if isinstance(n, ast.Name)]
    return (
        all(isinstance(n, ast.Name | ast.Tuple | ast.expr_context) for n in targets)
        and len(names) == len({*names})
        and not any(clause.is_async for clause in node.generators)
    )


def _of_item(target: ast.expr, expression: ast.expr) -> ast.Lambda:
    """Return a function of an item, which a target takes apart."""
    if isinstance(target, ast.Name):
        given, inner = [ast.arg(target.id)], expression
    else:
        assert isinstance(target, ast.Tuple)
        given, inner = [ast.arg("ow_item")], _taken_apart(target, _name("ow_item"), expression)
    return ast.Lambda(ast.arguments([], given, None, [], [], None, []), inner)


def _taken_apart(target: ast.Tuple, item: ast.expr, expression: ast.expr) -> ast.expr:
    names = []
    for k, each in enumerate(target.elts):
        names.append(each.id if isinstance(each, ast.Name) else f"ow_item_{k}")
        if isinstance(each, ast.Tuple):
            expression = _taken_apart(each, _name(names[-1]), expression)
    given = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
    return ast.Call(ast.Lambda(given, expression), [ast.Starred(item, ast.Load())], [])


def _strings(names: Iterable[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(n) for n in names], ast.Load())


def _key(key: ast.expr) -> ast.expr:
    """Return an expression for an index: slices are calls there."""
    if isinstance(key, ast.Slice):
        parts = [
            p if p is not None else ast.Constant(None) for p in (key.lower, key.upper, key.step)
        ]
        return ast.Call(_hook("slice"), parts, [])
    if isinstance(key, ast.Tuple):
        return ast.Tuple(
            [
                ast.Starred(_key(e.value), ast.Load()) if isinstance(e, ast.Starred) else _key(e)
                for e in key.elts
            ],
            ast.Load(),
        )
    return key


def convert(
    function: types.FunctionType, hooks: Any
) -> tuple[Callable[..., Any], str, list[types.CodeType]]:
    """Return (a function that makes the converted function, its text, the code objects in it).

    hooks: what the name ``ow`` stands for in it. Raises Unconvertible if it cannot be.
    """
    tree = source_tree(function)
    code = function.__code__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        raise Unconvertible("it is a generator or a coroutine")
    if "__class__" in code.co_freevars:
        raise Unconvertible("it calls super()")
    if any("__" in n[1:] and not n.endswith("__") and n.startswith("_") for n in code.co_names):
        raise Unconvertible("it uses private names of a class")
    if isinstance(tree, ast.FunctionDef):
        tree.decorator_list = []
        tree.returns = None
        for argument in ast.walk(tree.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        # defaults are those of the function, not computed again
        tree.args.defaults = [_located(ast.Constant(None), tree) for _ in tree.args.defaults]
        tree.args.kw_defaults = [
            d and _located(ast.Constant(None), tree) for d in tree.args.kw_defaults
        ]
    else:
        tree.args.defaults = [_located(ast.Constant(None), tree) for _ in tree.args.defaults]
    known = function.__globals__
    modules = frozenset(n for n in _loads([tree]) if isinstance(known.get(n), types.ModuleType))
    # data of the program that the function reads from outside
    outside = [
        n for n in sorted(_loads([tree]))
        if n in known and n not in modules and n not in code.co_freevars
        and n not in _globals_of(tree) and not isinstance(known[n], type)
    ]  # fmt: skip
    converted = _Converter(tree, None, modules).convert()
    if isinstance(converted, ast.Lambda):
        body: list[ast.stmt] = [_located(ast.Return(converted), tree)]
    else:
        body = [converted, _located(ast.Return(_name(converted.name)), tree)]
    outer = ast.FunctionDef(
        "outer",
        ast.arguments(
            [], [ast.arg(n) for n in (HOOKS, *code.co_freevars, *outside)], None, [], [], None, []
        ),
        body, [], None, None,
    )  # fmt: skip
    if hasattr(outer, "type_params"):
        outer.type_params = []
    module = ast.Module([_located(outer, tree)], [])
    ast.fix_missing_locations(module)
    text = ast.unparse(converted)
    space: dict[str, Any] = {}
    exec(compile(module, code.co_filename, "exec", dont_inherit=True), space)
    inner = _inner_code(space["outer"].__code__, code.co_name)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    own = types.CellType(hooks)
    written = {n for n, kind in stores([converted]).declared.items() if kind == "nonlocal"}

    def make(read: Callable[[Any, str], Any]) -> types.FunctionType:
        """Return the function; read: gives what a cell or the globals hold under a name."""
        found = {HOOKS: own}
        for name in inner.co_freevars:
            if name == HOOKS:
                continue
            cell = cells.get(name)
            if cell is None:
                found[name] = types.CellType(read(known, name))
            elif name in written or not _is_filled(cell):
                found[name] = cell
            else:
                value = read(cell, name)
                found[name] = cell if value is cell.cell_contents else types.CellType(value)
        made = types.FunctionType(
            inner,
            known,
            function.__name__,
            function.__defaults__,
            tuple(found[name] for name in inner.co_freevars),
        )
        made.__kwdefaults__ = function.__kwdefaults__
        return made

    return make, text, _codes(inner)


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _globals_of(tree: ast.AST) -> set[str]:
    return {n for node in ast.walk(tree) if isinstance(node, ast.Global) for n in node.names}


def _inner_code(outer: types.CodeType, name: str) -> types.CodeType:
    for constant in outer.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == name:
            return constant
    raise Unconvertible("its source is not that of a function")


def _codes(code: types.CodeType) -> list[types.CodeType]:
    found = [code]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found += _codes(constant)
    return found
