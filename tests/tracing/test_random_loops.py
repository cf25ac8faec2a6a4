"""Random programs that loop over elements and rows of arrays, against plain Python."""

import importlib.util
import random
import textwrap

import numpy as np
import pytest

import opwise


class Writer:
    """Writes a program: loops, branches, reads and writes of elements and of parts."""

    def __init__(self, seed):
        self.pick = random.Random(seed)

    def index(self, counters, length):
        i = self.pick.choice(counters)
        return self.pick.choice(
            [
                i,
                i,
                f"{i} - 1",
                f"(({i} * 3 + 1) % {length})",
                f"{length} - 1 - {i}",
                f"-1 - {i}",
                "0",
            ]
        )

    def number(self, counters, depth=0):
        row, column = self.index(counters, "n"), self.index(counters, "m")
        kind = self.pick.random()
        if depth > 2 or kind < 0.25:
            return self.pick.choice(["s", "1.5", "0.25"])
        if kind < 0.45:
            return f"a[{row}, {column}]"
        if kind < 0.6:
            return f"x[{row}]"
        if kind < 0.68:
            return f"k[{row}]"
        if kind < 0.75:
            return self.pick.choice([
                f"a[{row}, :].sum()", f"a[:, {column}].max()", f"(a[{row}] * a[{row}]).sum()",
                f"x[:{self.pick.choice(counters)}].sum()", f"np.dot(a[{row}], a[0])",
            ])  # fmt: skip
        one, other = (self.number(counters, depth + 1) for _ in range(2))
        if kind < 0.8:
            return f"np.sin({one})"
        return f"({one} {self.pick.choice('+-*')} {other})"

    def statements(self, counters):
        lines = []
        for _ in range(self.pick.randint(1, 3)):
            row, column = self.index(counters, "n"), self.index(counters, "m")
            value, kind = f"0.5 * {self.number(counters)}", self.pick.random()
            if kind < 0.3:
                lines.append(f"a[{row}, {column}] {self.pick.choice(['=', '+='])} {value}")
            elif kind < 0.45:
                lines.append(f"x[{row}] {self.pick.choice(['=', '+='])} {value}")
            elif kind < 0.55:
                lines.append(self.pick.choice([
                    f"k[{row}] = ({counters[-1]} * 7 + k[{row}]) % 11", f"a[:, {column}] = x",
                    f"a[{row}] = a[{row}] * 0.5 + {value}", f"a[{row}, :] -= 0.1 * a[{row}]",
                    f"x[:] = a[:, {column}] + 0.5", "x[1:] = x[:-1] * 0.5",
                    f"x[{counters[0]} + 1::{counters[-1]} + 1] = {value}",
                    f"x[::-2] *= {value}", f"a[{row}, ::2] = x[{counters[-1]}::-1].sum()",
                ]))  # fmt: skip
            elif kind < 0.6:
                lines += self.local_array(counters, row, value)
            elif kind < 0.67:
                lines.append(f"s = 0.5 * s + {value}")
            elif kind < 0.8:
                lines.append(f"if {self.number(counters, 1)} < {self.number(counters, 1)}:")
                lines += self.block(counters)
                if self.pick.random() < 0.5:
                    lines += ["else:", *self.block(counters)]
            elif len(counters) < 3:
                new = "ijq"[len(counters)]
                count = self.pick.choice(["n", "m", "3", counters[0], "1, n", "m - 1, -1, -1"])
                lines += [f"for {new} in range({count}):", *self.block([*counters, new])]
            else:
                lines.append("s = s + 1.0")
        return lines

    def local_array(self, counters, row, value):
        other = self.index(counters, "n")
        return [
            f"w = {self.pick.choice(['np.zeros(n)', 'x.copy()', f'np.ones(n) * {value}'])}",
            *(
                [f"w[{row}] = {value}", f"w[{other}] += w[{row}]"] if self.pick.random() < 0.5 else
                ["for p in range(n):", f"    w[p] = 0.5 * w[p - 1] + {value}"]
            ),
            self.pick.choice(["x[:] = w", f"x[{other}] = w[{row}] + w.max()", "s = 0.1 * w.sum()"]),
        ]  # fmt: skip

    def block(self, counters):
        return [f"    {line}" for line in self.statements(counters)]

    def program(self):
        lines = [
            "n, m = a.shape", "s = 0.1", f"for i in range({self.pick.choice(['n', '1, n', 'm'])}):",
            *self.block(["i"]), "return a, x, k, s",
        ]  # fmt: skip
        return "import numpy as np\n\n\ndef f(a, x, k):\n" + textwrap.indent(
            "\n".join(lines), "    "
        )


def arguments(seed):
    rng = np.random.default_rng(seed)
    a = rng.random((6, 6))
    x = rng.random(12)[::2] if seed % 2 else rng.random(6)
    return np.asfortranarray(a) if seed % 3 == 0 else a, x, rng.integers(0, 6, 6)


def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def is_refused(f, seed, path):
    """Check a program; return whether it is one that opwise refuses."""
    try:
        expected = f(*arguments(seed))
    except (IndexError, UnboundLocalError) as error:
        with pytest.raises((type(error), TypeError)):
            opwise.jit(f)(*arguments(seed))
        return False
    try:
        found = opwise.jit(f)(*arguments(seed))
    except TypeError as error:
        assert str(path) in str(error)  # with the line, and what to write
        return True
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    return False


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("first", range(0, 32, 8))
def test_random_loops_do_what_python_does(first, tmp_path):
    refused = 0
    for seed in range(first, first + 8):
        path = tmp_path / f"program{seed}.py"
        path.write_text(Writer(seed).program())
        refused += is_refused(load(path), seed, path)
    assert refused <= 3
