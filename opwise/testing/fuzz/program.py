"""RandomProgram: a random graph as Python statements, which a person can read and run."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from opwise.modes.debugging.perturbation import Perturbed
from opwise.testing.fuzz.layouts import Array, array_text, laid_out

_NAME = re.compile(r"\bv\d+\b")
#: steps of loops that a statement may take: its values are computed in Python
MOST_STEPS = 50_000


@dataclass
class Leaf:
    """An input or shared variable."""

    name: str
    #: Python text that makes the variable
    declaration: str
    value: Array
    #: the memory layout of the value, a name in ``LAYOUTS``
    layout: str
    #: 'input'; 'mutable', an input that the function may overwrite; or 'shared'
    kind: str

    def argument(self) -> Array:
        """Return a new array with the value, in the layout."""
        return laid_out(self.value, self.layout)


@dataclass
class RandomProgram:
    """A random graph, as Python statements."""

    #: inputs and shared variables, by name
    leaves: dict[str, Leaf] = field(default_factory=dict)
    #: {name: text} for the statements ``name = text``, in order
    statements: dict[str, str] = field(default_factory=dict)
    #: names of the outputs
    outputs: list[str] = field(default_factory=list)
    #: {name of a shared variable: name of its new value}
    updates: dict[str, str] = field(default_factory=dict)
    #: the opwise variables, by name
    variables: dict[str, Any] = field(default_factory=dict)
    #: the values of the variables
    perturbed: Perturbed = field(default_factory=lambda: Perturbed({}, most_steps=MOST_STEPS))
    seed: int = 0

    def value(self, name: str) -> Any:
        """Return the value of a name in the plain run."""
        return self.perturbed.values[self.variables[name]]

    def needed(self, names: Iterable[str]) -> set[str]:
        """Return the names that others need, including these."""
        wanted: set[str] = set()
        stack = list(names)
        while stack:
            name = stack.pop()
            if name not in wanted:
                wanted.add(name)
                stack.extend(_NAME.findall(self.statements.get(name, "")))
        return wanted

    def without(self, outputs: Iterable[str]) -> RandomProgram:
        """Return a copy with only these outputs and what they need; updates stay."""
        kept = self.needed([*outputs, *self.updates.values(), *self.updates])
        return RandomProgram(
            {n: leaf for n, leaf in self.leaves.items() if n in kept},
            {n: text for n, text in self.statements.items() if n in kept},
            list(outputs), dict(self.updates), self.variables, self.perturbed, self.seed,
        )  # fmt: skip

    def arguments(self) -> list[Leaf]:
        """Return the leaves that are arguments of a call, in order."""
        return [leaf for leaf in self.leaves.values() if leaf.kind != "shared"]

    def source(self, configuration: str, trouble: str) -> str:
        """Return a whole Python program, with Theano's names, that shows the fault."""
        from opwise.testing.configurations import CONFIGURATIONS, THOROUGH

        cls, linker, query = {**CONFIGURATIONS, **THOROUGH}[configuration]
        used = list(self.leaves.values())
        lines = [f'"""{_as_comment(trouble)}\n"""', "import numpy as np", "import theano",
                 "import theano.tensor as T", "from numpy import inf, nan  # noqa: F401",
                 "from theano.compile.debugmode import DebugMode  # noqa: F401",
                 "from theano.compile.mode import Mode",
                 "from theano.gradient import jacobian  # noqa: F401",
                 "from opwise.testing.fuzz import userops  # noqa: F401",
                 "from theano.ifelse import ifelse  # noqa: F401",
                 "from theano.sandbox.rng_mrg import MRG_RandomStreams  # noqa: F401",
                 "from theano.tensor.shared_randomstreams import RandomStreams  # noqa: F401",
             "from theano.tensor.extra_ops import (",
             "    bincount, compress, diff, searchsorted, to_one_hot)",
             "from theano.tensor.nnet import abstract_conv  # noqa: F401",
             "from theano.tensor.signal import pool  # noqa: F401",
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
        if configuration in THOROUGH:
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
            '                        on_unused_input="ignore", no_default_updates=True)',
            f"    found = f({values}) + [s.get_value() for s in shared]",
            "    for s, value in kept:",
            "        s.set_value(value)",
            "    return found",
            "",
            "",
            "def test_modes_agree():",
            '    expected = run(Mode("py", None))',
            f"    # the configuration that failed: {configuration}"
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


def _as_comment(text: str) -> str:
    return text.replace("\\", "/").replace('"""', "'''")
