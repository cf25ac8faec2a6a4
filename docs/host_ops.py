"""List the Ops that the host runs beside a device, by the reason; docs/gpu.md shows the list.

    python docs/host_ops.py

Nobody enters an Op here: the list is made of the classes of Ops and of the table of lowerings.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import textwrap

from opwise.gpu.host_only import HOST_ONLY
from opwise.gpu.lowering import table
from opwise.graph.op import Op
from opwise.scalar.op import ScalarOp

#: packages that define Ops
PACKAGES = ("opwise.tensor", "opwise.sparse", "opwise.compile", "opwise.loops")
NO_ENTRY = "no GPU implementation"


def ops() -> set[type[Op]]:
    """Return the public classes of Ops that compute something, but for scalar Ops."""
    return {
        cls
        for name in PACKAGES
        for module in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}.")
        for _, cls in inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        if issubclass(cls, Op) and not issubclass(cls, ScalarOp)
        and cls.__module__.startswith(PACKAGES) and not cls.__name__.startswith(("_", "Base"))
        and cls.perform is not Op.perform
    }  # fmt: skip


def by_reason() -> dict[str, list[str]]:
    """Return the names of the Ops that only the host runs, by the reason; most Ops first."""
    entries = table()
    found: dict[str, list[str]] = {}
    for cls in ops():
        entry = next((c for c in cls.__mro__ if c in entries), None)
        if entry is None or entry in HOST_ONLY:
            reason = NO_ENTRY if entry is None else HOST_ONLY[entry]
            package = cls.__module__.split(".")[1]
            found.setdefault(reason, []).append(
                cls.__name__ if package == "tensor" else f"{package}.{cls.__name__}"
            )
    return {
        reason: sorted(found[reason], key=lambda name: ("." in name, name.lower()))
        for reason in sorted(found, key=lambda reason: (-len(found[reason]), reason))
    }


def main() -> None:
    """Print the list."""
    for reason, names in by_reason().items():
        print(f"{reason}:")
        print(textwrap.fill(", ".join(names), 80, initial_indent="  ", subsequent_indent="  "))


if __name__ == "__main__":
    main()
