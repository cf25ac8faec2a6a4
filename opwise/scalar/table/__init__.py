"""The table of scalar operations, by family. Importing this fills ``opwise.scalar.spec.ROWS``."""

from opwise.scalar.table import (  # noqa: F401  (imported for the rows that they add)
    arithmetic,
    bitwise,
    compare,
    complex_,
    explog,
    special,
    trig,
)
