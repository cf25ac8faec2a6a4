"""Rules: local rewrites, which declare the Applys that they are tried on and their stages.

``navigators`` apply rules to a graph; rules written as patterns are in ``pattern``.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TextIO, TypeAlias

from opwise.graph.apply import Apply
from opwise.graph.features import DestroyHandler
from opwise.graph.fgraph import FunctionGraph
from opwise.graph.op import Op
from opwise.graph.variable import Variable
from opwise.scalar.op import ScalarOp
from opwise.tensor.elemwise import Elemwise


class LocalOptimizer:
    """Base of rules, which may replace the outputs of one Apply. Legacy programs subclass it.

    A subclass defines ``transform(node)``, and ``tracks()`` unless it is tried on every Apply.
    """

    name: str | None = None

    def tracks(self) -> Sequence[Tracked] | None:
        """Return what the rule is tried on, see ``rule``; None for every Apply."""
        return None

    def transform(self, node: Apply) -> Replacements:
        """Return the replacements for an Apply, see ``rule``; False or None without any."""
        raise NotImplementedError(f"{type(self).__name__} defines no transform")

    def print_summary(self, stream: TextIO | None = None, level: int = 0, depth: int = -1) -> None:
        """Print the rule and its parts; see the function of this name."""
        print_summary(self, self.name or "", getattr(self, "opts", ()), stream, level, depth)

    def __call__(self, fgraph: FunctionGraph | None, node: Apply) -> Replacements:
        return self.transform(node)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        """Attach the features that the rule needs."""

    def __str__(self) -> str:
        return self.name or type(self).__name__

    def __repr__(self) -> str:
        return f"<rule {self}>"


def print_summary(
    one: Any,
    name: str,
    parts: Sequence[Any],
    stream: TextIO | None = None,
    level: int = 0,
    depth: int = -1,
) -> None:
    """Print a line for a rule or pass, and indented below it those for its parts.

    stream: (default: stdout). level: the indent. depth: how many levels of parts are printed
    (default: all).
    """
    stream = sys.stdout if stream is None else stream
    print(f"{' ' * level}{type(one).__name__} {name} id={id(one)}", file=stream)
    if depth != 0:
        for part in parts:
            part.print_summary(stream, level + 2, depth - 1)


class Rule(LocalOptimizer):
    """A rule made of a function ``(fgraph, node) -> replacements | None``; see ``rule``."""

    def __init__(
        self,
        function: Callable[..., Replacements],
        tracked: Sequence[Tracked] | None = None,
        name: str | None = None,
        requirements: Sequence[Requirement] = (),
    ) -> None:
        self.function = function
        self.tracked = tracked
        self.name = self.__name__ = name or function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.requirements = tuple(requirements)
        #: the function of a legacy program, which takes the Apply alone
        self.fn: Callable[..., Any] | None = None

    def tracks(self) -> Sequence[Tracked] | None:
        return self.tracked

    def transform(self, node: Apply) -> Replacements:
        return self.function(node.fgraph, node)

    def __call__(self, fgraph: FunctionGraph | None, node: Apply) -> Replacements:
        return self.function(fgraph, node)

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for requirement in self.requirements:
            requirement(fgraph)


FromFunctionLocalOptimizer = Rule

#: what a rule is tried on, see ``rule``
Tracked: TypeAlias = Op | type[Op] | str
#: the stages that a rule takes part in: one, several, or with the tags for each
Stages: TypeAlias = str | Sequence[str] | Mapping[str, Sequence[str]] | None
#: attaches features that a rule needs
Requirement: TypeAlias = Callable[[FunctionGraph], None]
#: what a rule returns: a replacement (or None) for each output, or {old variable: new variable}
Replacements: TypeAlias = Sequence[Variable | None] | Mapping[Any, Any] | Literal[False] | None
RuleFunction: TypeAlias = Callable[[FunctionGraph, Apply], Replacements]


# --- declaring rules ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declaration:
    """A rule or pass that takes part in a stage."""

    #: the name of the stage
    stage: str
    #: its name in the stage
    name: str
    #: the rule or pass
    what: Any
    #: the tags that select it
    tags: tuple[str, ...]
    #: options of the stage's database
    options: Mapping[str, Any]
    #: the module that declares it
    module: str


class Declarations:
    """The declarations of rules: they wait for the pipeline, which then takes each as it is made.

    Several threads may declare rules, while one of them builds the pipeline.
    """

    def __init__(self) -> None:
        #: what was declared before the pipeline was built, in order of definition
        self.waiting: list[Declaration] = []
        self._join: Callable[[Declaration], None] | None = None
        self._lock = threading.Lock()

    def add(self, declaration: Declaration) -> None:
        """Hand a declaration to the pipeline if there is one, else let it wait."""
        with self._lock:
            join = self._join
            if join is None:
                self.waiting.append(declaration)
        if join is not None:
            join(declaration)

    def take(self, join: Callable[[Declaration], None]) -> None:
        """Call ``join`` with each waiting declaration, and with all later ones.

        If ``join`` raises, all declarations go on waiting.
        """
        with self._lock:
            for declaration in self.waiting:
                join(declaration)
            self.waiting.clear()
            self._join = join


declarations = Declarations()


def declare(
    stage: str,
    what: Any,
    *tags: str,
    name: str | None = None,
    module: str | None = None,
    **options: Any,
) -> Any:
    """Let a rule (or a pass) take part in a stage; return it.

    stage: name of a stage of the pipeline that holds rules. name: its name in the stage, which is a
    tag as well (default: that of the rule). tags: that select it. options: for an equilibrium stage
    ``final_opt`` and ``cleanup``. module: the module that declares it (default: that of the rule).
    """
    made_in = module or getattr(what, "__module__", None) or ""
    declarations.add(Declaration(stage, name or what.name, what, tags, options, made_in))
    return what


def rule(
    *tracked: Tracked,
    stage: Stages = None,
    tags: Sequence[str] = ("fast_run",),
    name: str | None = None,
    requirements: Sequence[Requirement] = (),
) -> Callable[[RuleFunction], Rule]:
    """Make a rule of a function ``(fgraph, node)``.

    tracked: the Applys that it is tried on (default: all). Each is an Op (compared by ==, which for
    Elemwise includes the inplace pattern), an Op class, ``'row:log'`` (every Elemwise of that
    scalar row), a scalar Op class or a scalar Op (every Elemwise of it).

    stage: the stage that it takes part in, several of them, or a dict from stages to tags; None
    for a rule that a pass uses directly. tags: that select it, as its name does.

    The function returns None to change nothing; a list with a replacement, or None, for each
    output; or a dict from variables of the graph to their replacements. The key ``'remove'`` of the
    dict may list Applys that must not be in the graph afterwards, otherwise nothing is replaced. A
    replacement has the type of the variable that it replaces. The function itself edits nothing. An
    equilibrium tries it again if the Apply's inputs, their owners up to ``navigators.REACH`` levels
    below, or the readers of its outputs change.
    """

    def decorate(function: Callable[..., Replacements]) -> Rule:
        made = Rule(function, tracked or None, name, requirements)
        for one, its_tags in _stages(stage, tags):
            declare(one, made, *its_tags, module=function.__module__)
        return made

    return decorate


def _stages(stage: Stages, tags: Sequence[str]) -> Iterable[tuple[str, Sequence[str]]]:
    if stage is None:
        return ()
    if isinstance(stage, Mapping):
        return stage.items()
    return [(one, tags) for one in ((stage,) if isinstance(stage, str) else stage)]


def local_optimizer(
    tracks: Sequence[Tracked] | None,
    inplace: bool = False,
    requirements: Sequence[Requirement] = (),
) -> Callable[[Callable[[Apply], Replacements]], Rule]:
    """Make a rule of a function of the Apply alone (the legacy form of ``rule``, without a stage).

    tracks: a list of Ops and Op classes, or None for every Apply. inplace: whether the rule makes
    Ops that overwrite inputs; the DestroyHandler is attached then.
    """
    if tracks is not None:
        tracks = tuple(tracks)
        for tracked in tracks:
            if not isinstance(tracked, Op | str) and not (
                isinstance(tracked, type) and issubclass(tracked, Op)
            ):
                raise ValueError(f"Tracks are op classes or instances, not {tracked!r}")
    if inplace:
        requirements = (*requirements, check_destroyers)

    def decorate(function: Callable[..., Replacements]) -> Rule:
        if tracks is not None and not tracks:
            raise ValueError(
                "Use None instead of an empty list to apply to all nodes.",
                function.__module__,
                function.__name__,
            )

        def of_node(fgraph: FunctionGraph | None, node: Apply) -> Replacements:
            return function(node)

        of_node.__name__ = function.__name__
        of_node.__doc__ = function.__doc__
        of_node.__module__ = function.__module__
        made = Rule(of_node, tracks, requirements=requirements)
        made.fn = function
        return made

    return decorate


def check_destroyers(fgraph: FunctionGraph) -> None:
    """Attach a DestroyHandler to the graph, unless it has one."""
    fgraph.attach_feature(DestroyHandler())


def copy_stack_trace(from_var: Any, to_var: Any) -> Any:
    """Return ``to_var``; the graph itself keeps the origins of what rewrites make (legacy)."""
    return to_var


def is_empty(result: Any) -> bool:
    """Return whether the result of a rule has no replacements."""
    return result is None or result is False or (isinstance(result, _EMPTY) and not result)


_EMPTY = (list, tuple, dict)


# --- groups ---------------------------------------------------------------------------------------


class LocalOptGroup(LocalOptimizer):
    """Several rules as one: the first replacement is taken."""

    def __init__(self, *rules: Any, name: str | None = None) -> None:
        if len(rules) == 1 and isinstance(rules[0], list | tuple):
            rules = tuple(rules[0])
        self.opts = list(rules)
        self.name = name or ",".join(map(str, self.opts))
        self._index = RuleIndex(self.opts)

    def tracks(self) -> Sequence[Tracked] | None:
        tracked: list[Any] = []
        for member in self.opts:
            its = member.tracks()
            if its is None:
                return None
            tracked.extend(its)
        return tracked

    def transform(self, node: Apply) -> Replacements:
        return self(node.fgraph, node)

    def __call__(self, fgraph: FunctionGraph | None, node: Apply) -> Replacements:
        for _, call in self._index.of(node.op).calls:
            result: Replacements = call(fgraph, node)
            if not is_empty(result):
                return result
        return None

    def add_requirements(self, fgraph: FunctionGraph) -> None:
        for member in self.opts:
            member.add_requirements(fgraph)


# --- which rules look at an Op --------------------------------------------------------------------


def _names(op: Op) -> Iterator[Tracked]:
    """Yield what a rule may track to be tried on an Op."""
    yield from type(op).__mro__
    yield op
    if isinstance(op, Elemwise):
        scalar_op = op.scalar_op
        yield from (c for c in type(scalar_op).__mro__ if issubclass(c, ScalarOp))
        yield scalar_op
        if scalar_op.plain_row is not None:
            yield f"row:{scalar_op.plain_row.name}"


class RulesOfOp:
    """The rules that are tried on one Op, as (rule, function), and on how many Applys they were."""

    __slots__ = ("calls", "visits")

    def __init__(self, calls: tuple[tuple[Callable[..., Any] | Rule, ...], ...]) -> None:
        self.calls = calls
        self.visits = 0


class RuleIndex(dict[Any, Any]):
    """A dict from an Op to its rules, in the given order, which is filled on demand.

    An Op with a graph inside is known by its id, and only as long as it lives: a compiled function
    may hang on it. tracked: what every rule is tried on, see ``rule`` (default: what it tracks
    itself).
    """

    #: the most Ops that are remembered, for programs that keep making new ones
    LIMIT = 1024

    def __init__(self, rules: Any, tracked: Sequence[Tracked] | None = None) -> None:
        super().__init__()
        self._rules = [(rule, getattr(rule, "function", rule)) for rule in rules]
        #: the places in ``_rules`` of those that are tried on all Ops, and by what they track
        self._on_all: list[int] = []
        self._tracking: dict[Tracked, list[int]] = {}
        for place, (one, _) in enumerate(self._rules):
            names = one.tracks() if tracked is None else tracked
            if names is None:
                self._on_all.append(place)
            for name in names or ():
                self._tracking.setdefault(name, []).append(place)
        #: rules by the ids of Ops that are alive
        self.by_id: dict[Any, Any] = {}
        self._alive: dict[Any, Any] = {}

    def __missing__(self, op: Op) -> RulesOfOp:
        if len(self) >= self.LIMIT:
            del self[next(iter(self))]  # the oldest one
        found = self[op] = self._rules_of(op)
        return found

    def _rules_of(self, op: Op) -> RulesOfOp:
        places = {*self._on_all, *(p for name in _names(op) for p in self._tracking.get(name, ()))}
        return RulesOfOp(tuple(self._rules[place] for place in sorted(places)))

    def of(self, op: Op) -> RulesOfOp:
        """Return ``self[op]``, without computing the hash of the Op each time."""
        key = id(op)
        found = self.by_id.get(key)
        if found is None:
            if hasattr(op, "compile_inside"):
                found = self[key] = self._rules_of(op)
            else:
                found = self[op]
            self.by_id[key] = found
            self._alive[key] = weakref.ref(op, lambda _: self._forget(key))
        return found

    def _forget(self, key: int) -> None:
        """Forget an Op that was deleted: another one may get its id."""
        self.by_id.pop(key, None)
        self._alive.pop(key, None)
        self.pop(key, None)

    def lookers(self, fgraph: FunctionGraph) -> list[Apply]:
        """Return the Applys of a graph, in order, on which some rule is tried."""
        looked_at = {key for key, op in fgraph.ops().items() if self.of(op).calls}
        return [n for n in fgraph.read_order() if id(n.op) in looked_at] if looked_at else []
