"""Types of the compiled extension; what its functions do is said in opwise_c.pyx."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, final

import numpy as np

MAXDIM: Final[int]
MAXARG: Final[int]
MAXREG: Final[int]
VECTORS: Final[str]
PROCESSOR_VECTORS: Final[str]
LOOPS: Final[Mapping[str, int]]
REDUCERS: Final[Mapping[str, int]]
ADDERS: Final[Mapping[str, int]]
ARGMAXERS: Final[Mapping[str, int]]
INTERPRET: Final[int]
BUSY: Final[str]
PROBE_SLACK: Final[int]

def kinds() -> list[str]: ...
def conv_algorithm(
    kind: str, ints: Sequence[int], image: Sequence[int], kernel: Sequence[int], f64: bool
) -> str | None: ...
def product_parts(rows: int, columns: int, terms: int, f64: bool) -> tuple[int, int]: ...
def set_blas(name: str, capsule: object, expected: Sequence[str]) -> None: ...
def use_vectors(name: str) -> None: ...
def needs_blas() -> bool: ...
def has_blas() -> bool: ...
def has_lapack() -> bool: ...
def keep_at_most(bytes: int) -> None: ...
def kept_blocks() -> int: ...
def fill_new_blocks(yes: bool) -> None: ...
def set_threads(n: int) -> None: ...
def threads() -> int: ...

class Ending:
    @staticmethod
    def watch(call: Callable[[], None]) -> None: ...
    @staticmethod
    def before_fork() -> None: ...
    @staticmethod
    def after_fork() -> None: ...
    @staticmethod
    def after_fork_in_child() -> None: ...
    @staticmethod
    def leave() -> None: ...

def probe_stream(memory: Any, bytes: int, shared: bool, seconds: float) -> float: ...
def hold_the_same(owners: list[Any], kept: list[Any]) -> bool: ...
def probe_rate(f64: bool, fused: bool, shared: bool, seconds: float) -> float: ...

@final
class Code:
    def __init__(
        self,
        nin: int,
        itemsizes: list[int],
        results: list[int],
        instructions: list[tuple[int, int, tuple[int, ...]]],
        reducers: tuple[int, ...] = (),
    ) -> None: ...
    @property
    def address(self) -> int: ...

@final
class OnDemand:
    def __init__(self, compile: Callable[[], tuple[int, Any] | None]) -> None: ...
    @property
    def address(self) -> int: ...
    def load(self) -> None: ...

class Runner: ...

@final
class Loop(Runner):
    def __init__(
        self,
        vm: VM,
        layout: Any,
        perform: Callable[..., Any],
        small: tuple[Any, Any] | None = None,
    ) -> None: ...

@final
class Chooser(Runner):
    def __init__(
        self, first: list[int], second: list[int], shown: list[bool], taken: tuple[bool, ...]
    ) -> None: ...

@final
class Lock: ...

@final
class Claim:
    def __init__(
        self, writes: Sequence[Lock] = (), reads: Sequence[Lock] = (), everything: bool = False
    ) -> None: ...
    def __enter__(self) -> Claim: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class StepThunk:
    node: Any
    inputs: list[list[Any]]
    outputs: list[list[Any]]
    lazy: bool
    def __call__(self) -> None: ...

class NotComputed(np.ndarray[Any, Any]):
    @classmethod
    def of(cls, value: Any) -> Any: ...

@final
class VM:
    calls: int
    total_ns: int
    first_ns: int
    loop_steps: int
    built_in_calls: int
    timed: bool
    inside: bool
    allow_gc: bool
    nodes: list[Any]
    @property
    def call_counts(self) -> list[int]: ...
    @property
    def call_times(self) -> list[float]: ...
    @property
    def thunks(self) -> list[StepThunk]: ...
    def __init__(
        self,
        slots: list[tuple[int, int, int, int]],
        steps: list[tuple[Any, ...]],
        inputs: list[tuple[int, list[Any]]],
        outputs: list[tuple[int, list[Any]]],
        constants: dict[int, Any],
        parents: list[int],
        dies: list[tuple[int, ...]],
        ends: list[int],
        commit: int,
        destroyed: list[int],
        on_error: Callable[[int, BaseException, Sequence[Any]], None],
        allow_gc: bool = True,
        choices: tuple[tuple[int, int, int, int, int], ...] = (),
        guards: tuple[int, ...] = (),
        advancing: tuple[int, ...] = (),
    ) -> None: ...
    def __call__(self) -> None: ...
    def expect_kernels(self, pending: Any) -> None: ...
    def wait_for_kernels(self) -> None: ...
    def free(self) -> None: ...
    def kept_bytes(self) -> int: ...
    def layouts(self) -> list[tuple[tuple[int, ...], tuple[int, ...]] | None]: ...
    def scratch_bytes(self) -> list[int]: ...
    def algorithms(self) -> list[tuple[str, str]]: ...
    def start_marking(self, push: Any, pop: Any, label: bytes, labels: list[bytes]) -> None: ...
    def start_timing(self, ignore_first_call: bool = False, loops: Iterable[Any] = ()) -> None: ...
    def start_timing_inside(self) -> None: ...
    def count_run(self, ns: int, steps: int) -> None: ...
    def repeats_inside(self, k: int) -> bool: ...
    def take_now(self) -> list[int]: ...
    @property
    def counters(self) -> Any: ...
    def keep_times_in(self, memory: memoryview | None) -> None: ...
    def stop_timing(self) -> None: ...
    def reset_timing(self) -> None: ...
    @property
    def timer_ns(self) -> int: ...
    def timing(self) -> list[tuple[int, int, int, int, tuple[tuple[int, int], ...]]]: ...
    def detail(self) -> list[tuple[int, int, list[int]]]: ...

@final
class Draw:
    def __init__(
        self,
        name: str | None,
        in_place: Callable[..., Any],
        copied: Callable[[Any], Any],
        overwrites: bool,
        alone: bool,
    ) -> None: ...

def saved(value: Any) -> Any: ...

class PythonVM:
    running: bool
    overwritten: list[tuple[list[Any], Any, Any]]
    restored: list[tuple[list[Any], Any]]
    intermediate: list[list[Any]]
    temporary: list[list[Any]]
    def call(self) -> None: ...
    def __call__(self) -> None: ...
    def undo(self) -> None: ...
    def forget(self) -> None: ...

@final
class Argument:
    def __init__(
        self,
        storage: list[Any],
        typenum: int,
        ndim: int,
        ones: int,
        exact: bool,
        scalar: type | None,
        filter: Callable[[Any], Any],
    ) -> None: ...

class LengthPair:
    def __init__(
        self,
        a: list[Any],
        axis_a: int,
        b: list[Any] | None,
        axis_b: int,
        number: int,
        text: Callable[[int, int], str],
    ) -> None: ...

class CallPath:
    trust_input: bool
    calls: int
    failed: int
    total_ns: int
    fn_ns: int
    first_ns: int
    def set_path(
        self,
        fn: Callable[[], None],
        arguments: list[Argument],
        positions: dict[str, int],
        outputs: list[list[Any]],
        updates: list[tuple[list[Any], list[Any]]],
        single: bool,
        none: bool,
        slow: bool,
        claim: Claim,
    ) -> None: ...
    @property
    def fn(self) -> Any: ...
    def compare_lengths(self, pairs: list[LengthPair]) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def start_timing(self, ignore_first_call: bool = False) -> None: ...
    def stop_timing(self) -> None: ...
    def reset_calls(self) -> None: ...
    def run(self) -> Any: ...
    def run_with(
        self,
        given: list[tuple[list[Any], Any]],
        kept: list[tuple[list[Any], Any]],
        defaults: list[tuple[list[Any], Any]],
    ) -> Any: ...

@final
class Library:
    name: str
    def __init__(self, path: str, name: str | None = None) -> None: ...
    def symbol(self, name: str) -> int: ...

@final
class ObjectCode:
    def __init__(self, library: Library, nin: int, nout: int, params: Any) -> None: ...
    def __call__(self, inputs: list[list[Any]], outputs: list[list[Any]]) -> None: ...
