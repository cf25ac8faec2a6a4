"""Passes, which edit a whole graph; how failures are handled, and the records of passes.

Passes that apply rules are in ``navigators``; the pipeline of passes is in ``stages``.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, TextIO

from opwise.config import config
from opwise.graph import provenance
from opwise.graph.apply import Apply
from opwise.graph.features import NoOutputFromInplace
from opwise.graph.fgraph import FunctionGraph
from opwise.optimizers.rule import check_destroyers, print_summary
from opwise.profiling import progress


def log(level: str, message: str, *args: object) -> None:
    """Write a message to the log of this package; it counts as a warning.

    level: 'warning' or 'error'. args: what the message formats by %.
    """
    import logging  # only when it is needed

    provenance.note_warning()
    getattr(logging.getLogger("opwise.optimizers"), level)(message, *args)


# --- records --------------------------------------------------------------------------------------


@dataclass
class RuleRecord:
    """What one rule did in one pass."""

    name: str
    #: how many replacements it made
    applied: int = 0
    #: how many Applys these replacements imported
    created: int = 0
    #: on how many Applys it was tried, each time counted
    tried: int = 0
    #: its time, measured only under config.profile_optimizer
    seconds: float = 0.0


@dataclass
class PassRecord:
    """What one pass did."""

    name: str = ""
    #: the name of its class
    kind: str = ""
    #: its position in the sequence, from 0
    index: int = 0
    seconds: float = 0.0
    #: seconds of these that validation of the graph took
    validate: float = 0.0
    #: the number of Applys
    nodes_before: int = 0
    nodes_after: int = 0
    rules: list[RuleRecord] = field(default_factory=list)
    #: the records of nested passes
    passes: list[PassRecord] = field(default_factory=list)
    #: numbers that only its kind of pass has, by name
    counts: dict[str, float] = field(default_factory=dict)
    #: whether it raised an exception, so that the graph was restored
    failed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the record as plain dicts and lists."""
        return asdict(self)


@dataclass
class OptimizationProfile(PassRecord):
    """The record of one optimization of one graph; ``passes`` are the stages that ran."""

    def applied(self) -> dict[Any, Any]:
        """Return {name of a rule: how many replacements it made}."""
        counts: dict[str, int] = {}
        stack = list(reversed(self.passes))
        while stack:
            record = stack.pop()
            for one in record.rules:
                if one.applied:
                    counts[one.name] = counts.get(one.name, 0) + one.applied
            stack.extend(reversed(record.passes))
        return counts


# --- failures -------------------------------------------------------------------------------------


def failed(what: str, error: Exception, node: Apply | None = None) -> None:
    """Handle an exception in a rule or pass as config.on_opt_error says.

    The caller has restored the graph. what: the name of the rule or pass. node: the Apply that it
    was tried on. 'raise' raises the exception again, with a note about what failed and where.
    """
    provenance.note_warning()  # whatever the flag says: another value may raise
    action = config.on_opt_error
    where = "" if node is None else f" on {node}"
    line = None if node is None else provenance.user_line(node)
    if line is not None:
        where += f", made in {line[0]}, line {line[1]}"
    message = f"The rewrite {what} failed{where}."
    if action == "raise":
        if not any(note.startswith(f"The rewrite {what} failed") for note in _notes(error)):
            error.add_note(f"{message} To go on without it: mode.excluding({what!r}).")
        raise error
    if action == "pdb":
        progress.interrupt()
        print(message, file=sys.stderr)
        import pdb  # slow to import

        pdb.post_mortem(error.__traceback__)
    elif action == "warn":
        log(
            "error",
            "%s The graph stays as it was before; exclude %s to silence this message.\n%s",
            message,
            what,
            "".join(traceback.format_exception(error)),
        )


def _notes(error: Exception) -> tuple[Any, ...]:
    return getattr(error, "__notes__", ())


# --- whole-graph passes ---------------------------------------------------------------------------


class Optimizer:
    """Base of passes. A subclass defines ``apply(fgraph)``, which edits the graph in place.

    ``apply`` may return a PassRecord in which it has filled ``rules``, ``passes`` and ``counts``.
    """

    name: str | None = None

    def apply(self, fgraph: FunctionGraph) -> Any:
        """Edit the graph."""
        raise NotImplementedError(f"{type(self).__name__} defines no apply")

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the features that the pass needs."""

    def optimize(self, fgraph: FunctionGraph, *args: Any, **kwargs: Any) -> PassRecord | None:
        """Attach the required features and apply the pass."""
        self.add_requirements(fgraph)
        record: PassRecord | None = self.apply(fgraph, *args, **kwargs)
        return record

    def __call__(self, fgraph: FunctionGraph) -> PassRecord | None:
        return self.optimize(fgraph)

    def parts(self) -> tuple[Any, ...]:
        """Return the passes and rules that this one consists of."""
        return ()

    def print_summary(self, stream: TextIO | None = None, level: int = 0, depth: int = -1) -> None:
        """Print the pass and its parts, each on a line; see ``print_summary`` of ``rule``."""
        print_summary(self, self.name or "", self.parts(), stream, level, depth)

    def __str__(self) -> str:
        return self.name or type(self).__name__


class FromFunctionOptimizer(Optimizer):
    """A pass made of a function of the graph."""

    def __init__(
        self, fn: Callable[..., Any], requirements: tuple[Callable[..., Any], ...] = ()
    ) -> None:
        self.apply = fn  # type: ignore[method-assign]  # the function is the method
        self.requirements = tuple(requirements)
        self.name = self.__name__ = getattr(fn, "__name__", None)
        self.__doc__ = fn.__doc__

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for requirement in self.requirements:
            requirement(fgraph)


def optimizer(function: Callable[[FunctionGraph], Any]) -> FromFunctionOptimizer:
    """Make a pass of a function of the graph."""
    return FromFunctionOptimizer(function)


def inplace_optimizer(function: Callable[[FunctionGraph], Any]) -> FromFunctionOptimizer:
    """Make a pass of a function that makes Ops which overwrite their inputs."""
    return FromFunctionOptimizer(function, (check_destroyers,))


class AddDestroyHandler(Optimizer):
    """Attaches the DestroyHandler, which refuses graphs that read overwritten values."""

    def apply(self, fgraph: FunctionGraph) -> Any:
        check_destroyers(fgraph)


class AddFeatureOptimizer(Optimizer):
    """Attaches a feature, which then follows the passes after it."""

    def __init__(self, feature: NoOutputFromInplace) -> None:
        self.feature = feature

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        fgraph.attach_feature(self.feature)

    def apply(self, fgraph: FunctionGraph) -> Any:
        """Leave the graph as it is."""


def run_pass(
    fgraph: FunctionGraph,
    one: Any,
    index: int = 0,
    name: str | None = None,
    on_failure: Callable[[Exception, Any], None] | None = None,
) -> PassRecord:
    """Apply one pass and return its PassRecord; a pass that raises leaves the graph as it was.

    on_failure: function of the exception, the sequence and the pass, instead of ``failed``.
    """
    nodes, validated = len(fgraph.apply_nodes), fgraph.validate_seconds
    started = perf_counter()
    mark = fgraph.checkpoint()
    record, broke = None, False
    fgraph.passes.append(name or str(one))
    try:
        record = one.optimize(fgraph) if isinstance(one, Optimizer) else one(fgraph)
        fgraph.toposort()  # finds a cycle; the next pass needs the order anyway
    except Exception as error:  # the passes of users and their Types may raise anything
        broke = True
        fgraph.revert(mark)
        if on_failure is not None:
            on_failure(error, one)
        else:
            failed(name or str(one), error)
    except BaseException:
        fgraph.revert(mark)
        raise
    else:
        fgraph.release(mark)
    finally:
        fgraph.passes.pop()
    if not isinstance(record, PassRecord):
        record = PassRecord()
    record.failed = broke
    record.name = name or str(one)
    record.kind = type(one).__name__
    record.index = index
    record.seconds = perf_counter() - started
    record.validate = fgraph.validate_seconds - validated
    record.nodes_before = nodes
    record.nodes_after = len(fgraph.apply_nodes)
    return record


class SeqOptimizer(Optimizer, list[Any]):
    """Passes one after the other.

    failure_callback: function of an exception, this sequence and the pass that raised it (default:
    ``failed``). labels: names for the records (default: those of the passes).
    """

    def __init__(
        self,
        *opts: Any,
        failure_callback: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        if len(opts) == 1 and isinstance(opts[0], list | tuple):
            opts = tuple(opts[0])
        list.__init__(self, opts)
        self.failure_callback = failure_callback
        self.name = name
        self.labels: list[str | None] | None = None

    def parts(self) -> tuple[Any, ...]:
        return tuple(self)

    def apply(self, fgraph: FunctionGraph) -> Any:
        on_failure = None
        callback = self.failure_callback
        if callback is not None:

            def on_failure(error: Exception, one: Optimizer) -> None:
                callback(error, self, one)

        labels = (
            self.labels if self.labels and len(self.labels) == len(self) else [None] * len(self)
        )
        passes = []
        for index, (one, label) in enumerate(zip(self, labels, strict=True)):
            progress.say(f"rewriting, {label or one} ({index + 1} of {len(self)})")
            passes.append(run_pass(fgraph, one, index, label, on_failure))
        return PassRecord(passes=passes)

    @staticmethod
    def warn(exc: Exception, self: SeqOptimizer, optimizer: Optimizer) -> None:
        """A failure_callback: do as config.on_opt_error says."""
        failed(str(optimizer), exc)

    __eq__ = object.__eq__
    __hash__ = object.__hash__  # type: ignore[assignment]  # unlike lists, passes are compared by identity
    __repr__ = list.__repr__
