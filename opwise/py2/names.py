"""What the syntax tree of a module says of its names, without running it."""

from __future__ import annotations

import ast


class DottedNames(ast.NodeVisitor):
    """Collects the dotted names that a module uses of the modules that it imports."""

    def __init__(self) -> None:
        #: (dotted name, line), in the order of the text
        self.used: list[tuple[str, int]] = []
        #: a name of the module -> the dotted name of what was imported under it
        self.known: dict[str, str] = {}
        #: the dotted names that the module gives others itself, as by ``time.clock = f``
        self.given: set[str] = set()

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self.used.append((alias.name, node.lineno))
            first = alias.name.partition(".")[0]
            self.known[alias.asname or first] = alias.name if alias.asname else first

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or node.module is None:
            return
        for alias in node.names:
            name = node.module if alias.name == "*" else f"{node.module}.{alias.name}"
            self.used.append((name, node.lineno))
            if alias.name != "*":
                self.known[alias.asname or alias.name] = name

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self.dotted(node)
        if name is None:
            self.generic_visit(node)
        else:
            self.used.append((name, node.lineno))
            if isinstance(node.ctx, ast.Store):
                self.given.add(name)

    def dotted(self, node: ast.AST) -> str | None:
        """Return the dotted name that an expression reads; None if it is not one."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.known:
            return None
        return ".".join([self.known[node.id], *reversed(parts)])


#: functions that return an integer for any argument
_INTEGERS = {"len", "int", "ord", "long"}


class Facts:
    """The names of a module, and of which of its values the text shows the type."""

    #: whether the module was written for Python 2
    is_python2 = False

    def __init__(self, tree: ast.Module):
        self.true_division = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "__future__"
            and any(alias.name == "division" for alias in node.names)
            for node in tree.body
        )
        names = DottedNames()
        names.visit(tree)
        self._names = names
        bound = {node.id for node in ast.walk(tree) if _binds(node)}  # type: ignore[attr-defined]
        bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
        bound |= {node.name for node in ast.walk(tree) if _defines(node)}  # type: ignore[attr-defined]
        #: names that the module itself gives a meaning
        self.bound = bound | set(names.known)
        #: (dotted name, line) of what is imported
        self.used = names.used
        #: (name, line) of what neither the module nor its imports define
        self.free = [
            (node.id, node.lineno)
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and node.id not in self.bound
        ]
        self._values = _assigned(tree)
        self._elements = _put_into(tree)
        guarded = _guarded(tree)
        #: what the module uses only where it exists, or has another way, or gives itself
        self.guarded = {
            *names.given, *(name for name, line in [*self.used, *self.free] if line in guarded),
        }  # fmt: skip

    def dotted(self, node: ast.AST) -> str | None:
        """Return the dotted name of what is imported, or the name of a builtin; else None."""
        if isinstance(node, ast.Name) and node.id not in self.bound:
            return node.id
        return self._names.dotted(node)

    def parts(self, index: ast.expr) -> list[ast.expr]:
        """Return the integers that an index or a shape consists of."""
        found: list[ast.expr] = []
        for part in index.elts if isinstance(index, ast.Tuple | ast.List) else [index]:
            if isinstance(part, ast.Slice):
                found += [end for end in (part.lower, part.upper, part.step) if end is not None]
            elif isinstance(part, ast.ListComp):
                found.append(part.elt)
            else:
                found.append(part)
        return found

    def quotient(self, node: ast.expr) -> bool:
        """Return whether an expression is a quotient, or a sum or product with one."""
        if not isinstance(node, ast.BinOp):
            return False
        if isinstance(node.op, ast.Div):
            return not _is_float(node.left) and not _is_float(node.right)
        return isinstance(node.op, ast.Add | ast.Sub | ast.Mult) and (
            self.quotient(node.left) or self.quotient(node.right)
        )

    def is_int(self, node: ast.expr, depth: int = 8) -> bool:
        """Return whether the text shows that an expression is an integer."""
        if depth == 0:
            return False
        match node:
            case ast.Constant(value=int()):
                return True
            case ast.Call(func=function):
                return self.dotted(function) in _INTEGERS
            case ast.Subscript(value=ast.Attribute(attr="shape"), slice=ast.Constant()):
                return True
            case ast.Attribute(attr="size" | "ndim"):
                return True
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.is_int(operand, depth - 1)
            case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.Pow):
                return self.is_int(left, depth - 1) and self.is_int(right, depth - 1)
            case ast.Name(id=name):
                values = self._values.get(name, [])
                return bool(values) and all(
                    value is not None and self.is_int(value, depth - 1) for value in values
                )
        return False

    def is_list_of_slices(self, node: ast.expr, depth: int = 3) -> bool:
        """Return whether an expression is a list that numpy took as a tuple of indices."""
        if depth == 0:
            return False
        match node:
            case ast.List(elts=elements):
                return any(self._is_index(element) for element in elements)
            case ast.ListComp(elt=element):
                return self._is_slice(element)
            case ast.Call(func=ast.Name("list"), args=[argument]):
                return isinstance(argument, ast.Tuple) and any(map(self._is_slice, argument.elts))
            case ast.BinOp(left=left, op=ast.Add() | ast.Mult(), right=right):
                return any(self.is_list_of_slices(side, depth - 1) for side in (left, right))
            case ast.Name(id=name):
                if any(map(self._is_slice, self._elements.get(name, []))):
                    return True
                values = self._values.get(name, [])
                return any(
                    value is not None and self.is_list_of_slices(value, depth - 1)
                    for value in values
                )
        return False

    def _is_slice(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self.dotted(node.func) == "slice"

    def _is_index(self, node: ast.expr) -> bool:
        """Return whether an element of a list made it a tuple of indices."""
        if self._is_slice(node) or isinstance(node, ast.List):
            return True
        return isinstance(node, ast.Constant) and (node.value is None or node.value is Ellipsis)

    def is_array(self, node: ast.expr) -> bool:
        """Return whether the text shows that an expression is an array."""
        if isinstance(node, ast.Name):
            values = self._values.get(node.id, [])
            return bool(values) and all(
                isinstance(value, ast.Call) and self.is_array(value) for value in values
            )
        return isinstance(node, ast.Call) and self.dotted(node.func) in _ARRAYS


#: functions that return an array
_ARRAYS = {
    f"numpy.{name}"
    for name in "arange array asarray concatenate empty flatnonzero hstack intersect1d linspace "
    "loadtxt ones setdiff1d unique vstack zeros".split()
}


#: errors of a name that is missing
_MISSING = {"ImportError", "ModuleNotFoundError", "NameError", "AttributeError", "Exception"}


def _guarded(tree: ast.Module) -> set[int]:
    """Return the lines of what is tried, with another way if it fails, or asks for the version."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Try | ast.If) and _is_guard(node):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _is_guard(node: ast.Try | ast.If) -> bool:
    """Return whether a statement catches errors of missing names, or asks for the version."""
    if isinstance(node, ast.If):
        asked = {
            getattr(part, "attr", getattr(part, "id", None)) for part in ast.walk(node.test)
        }  # fmt: skip
        return not asked.isdisjoint({"version_info", "PY2", "PY3"})
    caught = {
        getattr(part, "id", None)
        for handler in node.handlers
        for part in ast.walk(handler.type or ast.Name("Exception"))
    }
    return not caught.isdisjoint(_MISSING)


def _is_float(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float)


def _binds(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _defines(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef)


def _assigned(tree: ast.Module) -> dict[str, list[ast.expr | None]]:
    """Return {name: the expressions that are assigned to it}; None stands for any other value."""
    found: dict[str, list[ast.expr | None]] = {}
    simple: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    simple.add(target)
                    found.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            simple.add(node.target)
            found.setdefault(node.target.id, []).append(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in simple:
            found.setdefault(node.id, []).append(None)
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, []).append(None)
    return found


def _put_into(tree: ast.Module) -> dict[str, list[ast.expr]]:
    """Return {name: what becomes an element of it}, by ``append`` or by an index."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]):
                found.setdefault(name, []).append(value)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value):
                found.setdefault(name, []).append(value)
    return found
