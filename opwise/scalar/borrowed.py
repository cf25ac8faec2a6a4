"""Functions of scipy.special that C text calls: scipy exports them for Cython, as pointers.

C text calls a global variable, ``ow_<name>``, which is set when its library is loaded. The last
argument of these functions is an int that has no effect.
"""

from __future__ import annotations

from collections.abc import Iterable

#: name, as in a row's ``libm`` -> the number of operands, which are double as the result is
BORROWED = {
    "scipy_betainc": 3, "scipy_betaincinv": 3, "scipy_chdtrc": 2, "scipy_erfcx": 1,
    "scipy_gammainc": 2, "scipy_gammaincc": 2, "scipy_gammaincinv": 2, "scipy_gammainccinv": 2,
    "scipy_hyp2f1": 4, "scipy_iv": 2, "scipy_ive": 2, "scipy_jv": 2, "scipy_kve": 2,
    "scipy_ndtri_exp": 1, "scipy_owens_t": 2,
}  # fmt: skip

#: a variable of each text that borrows functions; linkers/native/library.pyx looks for it
MARK = "ow_borrows"


def variables(names: Iterable[str]) -> list[str]:
    """Return the lines of C that define the variables of borrowed functions."""
    lines = [f"{_variable(name)};\n" for name in names]
    return [f"char {MARK};\n", *lines] if lines else []


def generated() -> dict[str, str]:
    """Return {file name: text} of the variables of the extension, and of the table of them."""
    declared = "\n".join(f"extern {_variable(name)};" for name in BORROWED)
    defined = "\n".join(f"{_variable(name)};" for name in BORROWED)
    rows = "\n".join(f'    {{"ow_{name}", (void **)&ow_{name}}},' for name in BORROWED)
    return {
        "borrowed.h": f"""/* made by opwise/scalar/borrowed.py */
#ifndef OW_BORROWED_H
#define OW_BORROWED_H

{declared}

typedef struct ow_borrowed {{
    const char *name;
    void **pointer;
}} ow_borrowed;

#define OW_BORROWED {len(BORROWED)}
extern const ow_borrowed ow_borrowed_rows[OW_BORROWED];

#endif
""",
        "borrowed.c": f"""/* made by opwise/scalar/borrowed.py */
#include "borrowed.h"

{defined}

const ow_borrowed ow_borrowed_rows[OW_BORROWED] = {{
{rows}
}};
""",
    }


def _variable(name: str) -> str:
    """Return the declaration of the variable of a function."""
    return f"double (*ow_{name})({'double, ' * BORROWED[name]}int)"
