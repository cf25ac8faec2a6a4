"""Program: a random graph as statements of Python, which a person can read and run."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from opwise.modes.debugging.perturbation import Perturbed
from opwise.testing.fuzz.layouts import array_text, laid_out

_NAME = re.compile(r"\bv\d+\b")


@dataclass
class Leaf:
    """An input or shared variable: its declaration as text, its value, how that lies in memory.

    kind: 'input'; 'mutable', an input that the function may overwrite; or 'shared'.
    """

    name: str
    declaration: str
    value: np.ndarray
    layout: str
    kind: str

    def argument(self):
        """Return a new array with the value, in the layout."""
        return laid_out(self.value, self.layout)


@dataclass
class Program:
    """A graph: leaves, statements ``name = text`` in order, outputs, updates {shared: name}.

    variables: the opwise variables by name. perturbed: their values.
    """

    leaves: dict[str, Leaf] = field(default_factory=dict)
    statements: dict[str, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    updates: dict[str, str] = field(default_factory=dict)
    variables: dict = field(default_factory=dict)
    perturbed: Perturbed = field(default_factory=lambda: Perturbed({}))
    seed: int = 0

    def value(self, name):
        """Return the value of a name as the plain run has it."""
        return self.perturbed.values[self.variables[name]]

    def needed(self, names):
        """Return which names are needed for some others, these included."""
        wanted, stack = set(), list(names)
        while stack:
            name = stack.pop()
            if name not in wanted:
                wanted.add(name)
                stack.extend(_NAME.findall(self.statements.get(name, "")))
        return wanted

    def without(self, outputs):
        """Return a copy with some outputs alone, and what they need (updates stay)."""
        kept = self.needed([*outputs, *self.updates.values(), *self.updates])
        return Program(
            {n: leaf for n, leaf in self.leaves.items() if n in kept},
            {n: text for n, text in self.statements.items() if n in kept},
            list(outputs), dict(self.updates), self.variables, self.perturbed, self.seed,
        )  # fmt: skip

    def arguments(self):
        """Return the leaves that a call gets values for, in order."""
        return [leaf for leaf in self.leaves.values() if leaf.kind != "shared"]

    def source(self, way, trouble):
        """Return a whole Python program, with Theano's names, that shows what went wrong."""
        from opwise.testing.ways import THOROUGH, WAYS

        cls, linker, query = {**WAYS, **THOROUGH}[way]
        used = list(self.leaves.values())
        lines = [f'"""{_as_comment(trouble)}\n"""', "import numpy as np", "import theano",
                 "import theano.tensor as T", "from numpy import inf, nan  # noqa: F401",
                 "from theano.compile.debugmode import DebugMode  # noqa: F401",
                 "from theano.compile.mode import Mode",
             "from theano.tensor.extra_ops import (",
             "    bincount, compress, diff, searchsorted, to_one_hot)",
             ""]  # fmt: skip
        for leaf in used:
            lines.append(f"value_{leaf.name} = {array_text(leaf.value, leaf.layout)}")
            made = leaf.declaration
            if leaf.kind == "shared":
                made = made.format(value=array_text(leaf.value, leaf.layout))
            lines.append(f"{leaf.name} = {made}")
        lines += [f"{name} = {text}" for name, text in self.statements.items()]
        ins = ", ".join(
            f"theano.In({leaf.name}, mutable=True, borrow=True)" if leaf.kind == "mutable"
            else leaf.name
            for leaf in self.arguments()
        )  # fmt: skip
        values = ", ".join(f"value_{leaf.name}.copy(order='K')" if leaf.kind == "mutable" else
                           f"value_{leaf.name}" for leaf in self.arguments())  # fmt: skip
        optimizer = {True: "None", False: '"fast_run"'}[not query.include]
        if "fast_compile" in query.include:
            optimizer = '"fast_compile"'
        made = f"Mode({linker!r}, {optimizer})"
        if way in THOROUGH:
            made = f"DebugMode({optimizer}, check_isfinite=False)"
        built_in = cls.__name__ not in ("Mode", "Debugged")
        excluded = ", ".join(map(repr, query.exclude))
        lines += [
            f"inputs = [{ins}]",
            f"outputs = [{', '.join(self.outputs)}]",
            f"updates = [{', '.join(f'({s}, {v})' for s, v in self.updates.items())}]",
            f"shared = [{', '.join(self.updates)}]",
            "",
            "",
            "def run(mode):",
            "    kept = [(s, s.get_value()) for s in shared]",
            "    f = theano.function(inputs, outputs, updates=updates, mode=mode,",
            '                        on_unused_input="ignore")',
            f"    found = f({values}) + [s.get_value() for s in shared]",
            "    for s, value in kept:",
            "        s.set_value(value)",
            "    return found",
            "",
            "",
            "def test_modes_agree():",
            '    expected = run(Mode("py", None))',
            f"    # the way that failed: {way}"
            + (", with built-in kernels (flag cxx=)" if built_in else ""),
            f"    mode = {made}" + (f".excluding({excluded})" if excluded else ""),
            "    for found, wanted in zip(run(mode), expected):",
            "        assert found.dtype == wanted.dtype",
            "        np.testing.assert_allclose(found, wanted, 1e-5, 1e-7)",
            "",
            "",
            'if __name__ == "__main__":',
            "    test_modes_agree()",
            "",
        ]
        return "\n".join(lines)


def _as_comment(text):
    return text.replace("\\", "/").replace('"""', "'''")
