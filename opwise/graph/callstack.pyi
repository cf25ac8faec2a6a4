from collections.abc import Callable
from types import CodeType

def capture(is_internal: Callable[[CodeType], bool]) -> tuple[tuple[CodeType, int], ...]: ...
