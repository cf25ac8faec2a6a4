"""The modules of a program that lie beside a file of it, as its imports name them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

#: at most how many modules are looked at for one file
_MOST = 300


def imported(
    script: Path, tree: ast.Module, parsed: Callable[[Path], ast.Module | None]
) -> dict[Path, ast.Module | None]:
    """Return {path: syntax tree} of the modules that a file imports from its own folders.

    Modules that those import are among them. Absolute imports are looked up in the folder of the
    file, and above the package that it is in. parsed: returns the tree of a file, or None if it
    has none.
    """
    found: dict[Path, ast.Module | None] = {script.resolve(): None}
    todo = [(script.resolve(), tree)]
    while todo:
        path, module = todo.pop()
        for other in _files(path, module):
            if other not in found and len(found) <= _MOST:
                found[other] = inside = parsed(other)
                if inside is not None:
                    todo.append((other, inside))
    del found[script.resolve()]
    return found


def _files(path: Path, tree: ast.Module) -> Iterator[Path]:
    """Yield the files that a module may import, as far as they are in its folders."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _found(_roots(path), alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            roots = [path.parents[node.level - 1]] if node.level else _roots(path)
            parts = node.module.split(".") if node.module else []
            for alias in node.names:  # each may be a module or a name in one
                yield from _found(roots, [*parts, alias.name])


def _roots(path: Path) -> list[Path]:
    """Return the folders in which absolute imports of a file are looked up."""
    top = path.parent
    while (top / "__init__.py").exists() and top != top.parent:
        top = top.parent
    return [path.parent] if top == path.parent else [path.parent, top]


def _found(roots: list[Path], parts: list[str]) -> Iterator[Path]:
    """Yield the files of a dotted name and of the packages that it is in, from the first root."""
    for root in roots:
        some = False
        for k in range(1, len(parts) + 1):
            whole = root.joinpath(*parts[:k])
            for file in (whole.with_name(f"{whole.name}.py"), whole / "__init__.py"):
                if file.is_file():
                    some = True
                    yield file.resolve()
        if some:
            return
