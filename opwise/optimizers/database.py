"""Databases of rewrites: objects by name and tag, and the queries that select among them.

A database answers a query with one pass. The databases themselves are defined in ``stages``.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSet, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

from opwise.config import config
from opwise.optimizers.navigators import EquilibriumOptimizer, TopoOptimizer
from opwise.optimizers.passes import Optimizer, SeqOptimizer
from opwise.optimizers.rule import LocalOptGroup, LocalOptimizer


class OrderedSet(MutableSet[Any]):
    """A set that remembers the order of insertion."""

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items = dict.fromkeys(items)

    def __contains__(self, item: Any) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, value: Any) -> None:
        self._items[value] = None

    def discard(self, value: Any) -> None:
        self._items.pop(value, None)

    def update(self, items: str) -> None:
        self._items.update(dict.fromkeys(items))

    def copy(self) -> OrderedSet:
        return OrderedSet(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MutableSet | set | frozenset) and set(self) == set(other)

    __hash__ = None  # type: ignore[assignment]  # equality is by what it holds now

    def __repr__(self) -> str:
        return f"OrderedSet({list(self._items)!r})" if self._items else "OrderedSet()"


class Query:
    """Selects the objects with any tag of ``include``, all of ``require`` and none of ``exclude``.

    subquery: dict from the name of a nested database to the query for it, or None to leave it out
    (default: this query). position_cutoff: in a sequence, select only objects before this position.
    extra_optimizations: (pass, position) pairs that are added to the sequence.
    """

    def __init__(
        self,
        include: Iterable[str],
        require: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        subquery: Mapping[str, Query] | None = None,
        position_cutoff: float | None = math.inf,
        extra_optimizations: Iterable[Any] | None = None,
    ) -> None:
        self.include = OrderedSet(include)
        self.require = OrderedSet(require or ())
        self.exclude = OrderedSet(exclude or ())
        self.subquery = dict(subquery or {})
        self.position_cutoff = math.inf if position_cutoff is None else position_cutoff
        self.extra_optimizations = list(extra_optimizations or ())
        #: its name in profiles, which derived queries inherit
        self.name: str | None = None

    def _changed(
        self,
        include: Iterable[str] = (),
        require: Iterable[str] = (),
        exclude: Iterable[str] = (),
        extra: Iterable[Any] = (),
    ) -> Query:
        new = Query(
            [*self.include, *include],
            [*self.require, *require],
            [*self.exclude, *exclude],
            self.subquery,
            self.position_cutoff,
            [*self.extra_optimizations, *extra],
        )
        new.name = self.name
        return new

    def including(self, *tags: str) -> Query:
        """Return a query that also selects the objects with one of ``tags``."""
        return self._changed(include=tags)

    def excluding(self, *tags: str) -> Query:
        """Return a query that selects no object with one of ``tags``."""
        return self._changed(exclude=tags)

    def requiring(self, *tags: str) -> Query:
        """Return a query that selects only objects with all of ``tags``."""
        return self._changed(require=tags)

    def register(self, *optimizations: Any) -> Query:
        """Return a query that adds (pass, position) pairs to the sequence."""
        return self._changed(extra=optimizations)

    def until(self, cutoff: float) -> Query:
        """Return a query that selects only objects before a position."""
        query = self._changed()
        query.position_cutoff = cutoff
        return query

    def inside(self) -> Query:
        """Return the query for nested databases, which have positions of their own."""
        if not self.extra_optimizations and self.position_cutoff == math.inf:
            return self
        return Query(self.include, self.require, self.exclude, self.subquery)

    def key(self) -> tuple[Any, ...]:
        """Return a hashable value; queries with equal keys select the same."""
        return (
            frozenset(self.include),
            frozenset(self.require),
            frozenset(self.exclude),
            tuple((name, q and q.key()) for name, q in sorted(self.subquery.items())),
            self.position_cutoff,
            tuple((id(opt), position) for opt, position in self.extra_optimizations),
        )

    def __str__(self) -> str:
        return (
            f"Query{{inc={self.include},ex={self.exclude},require={self.require},"
            f"subquery={self.subquery},position_cutoff={self.position_cutoff},"
            f"extra_opts={self.extra_optimizations}}}"
        )

    __repr__ = __str__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("extra_optimizations", [])


class _Generation:
    """Counts the changes of all databases, to find cached answers that are outdated."""

    number = 0
    #: whether a program has changed a database
    changed = False
    #: whether what this thread registers is opwise's own
    own: ContextVar[bool] = ContextVar("opwise_own_rewrites", default=False)

    @classmethod
    def next(cls) -> None:
        cls.number += 1
        if not cls.own.get():
            cls.changed = True


@contextmanager
def own_rewrites(own: bool = True) -> Iterator[None]:
    """Register opwise's own rewrites inside (own: or not)."""
    token = _Generation.own.set(own)
    try:
        yield
    finally:
        _Generation.own.reset(token)


def changed_by_program() -> bool:
    """Return whether a program has added rewrites to a database, or changed their tags."""
    return _Generation.changed


def _as_query(tags: Sequence[Any], options: Mapping[str, Any]) -> Query:
    if tags and isinstance(tags[0], Query):
        if len(tags) > 1 or options:
            raise TypeError("A Query is given alone, without tags and options")
        return tags[0]
    chosen: dict[str, list[str]] = {"+": [], "&": [], "-": []}
    for tag in tags:
        if tag[:1] not in chosen:
            raise ValueError(
                "All tags must start with one of the following characters: '+', '&' or '-'", tags
            )
        chosen[tag[0]].append(tag[1:])
    return Query(chosen["+"], chosen["&"], chosen["-"], subquery=options)


#: one thread fills a database, others wait for it
_lock = threading.RLock()


class DB:
    """Rewrites and nested databases, by name and tag. The base class answers with a set.

    fill: function that fills the database, called once, before its first use.
    """

    def __init__(self, name: str | None = None, fill: Callable[..., Any] | None = None) -> None:
        self.name = name
        self._objects: dict[str, object] = {}
        self._tags: dict[str, dict[str, None]] = {}
        self._places: dict[str, float] = {}
        self._fill = fill
        self._filling = False
        self._answers: dict[Any, Any] = {}
        self._answers_of = -1

    def _filled(self) -> None:
        if self._fill is None:
            return
        with _lock:
            if self._fill is None or self._filling:
                return
            self._filling = True
            try:
                self._fill()
                self._fill = None
            finally:
                self._filling = False
                if self._fill is not None:  # it raised: the next use tries again
                    self._objects.clear()
                    self._tags.clear()

    def register(
        self,
        name: str,
        obj: Any,
        *tags: str,
        use_db_name_as_tag: bool = True,
        place: float = math.inf,
    ) -> None:
        """Add a rewrite or a database; the names of its class and of this database become tags.

        place: a number; it stands behind all of smaller numbers, and behind those of its own number
        that were registered before it.

        Raises ValueError if the name is in use, as a name or a tag, or if a tag is a name in use.
        """
        self._filled()
        if not isinstance(obj, DB | Optimizer | LocalOptimizer):
            raise TypeError("Object cannot be registered in OptDB", obj)
        if name in self._objects or name in self._tags:
            raise ValueError(
                "The name of the object cannot be an existing tag or the name of another existing "
                "object.",
                obj,
                name,
            )
        all_tags = [type(obj).__name__, *tags]
        if use_db_name_as_tag and self.name is not None:
            all_tags.append(self.name)
        for tag in all_tags:
            if tag in self._objects or tag == name:
                raise ValueError("The tag of the object collides with a name.", obj, tag)
        if obj.name is None:
            obj.name = name
        self._objects[name] = obj
        self._places[name] = place
        _Generation.next()
        for tag in all_tags:
            self._tags.setdefault(tag, {})[name] = None

    def vocabulary(self) -> set[str]:
        """Return the set of names and tags, those of nested databases included."""
        self._filled()
        words = {*self._objects, *self._tags}
        for obj in self._objects.values():
            if isinstance(obj, DB):
                words |= obj.vocabulary()
        return words

    def add_tags(self, name: str, *tags: str) -> None:
        """Give the object of a name more tags."""
        for tag in tags:
            if tag in self._objects:
                raise ValueError("The tag of the object collides with a name.", self[name], tag)
            self._tags.setdefault(tag, {})[name] = None
        _Generation.next()

    def remove_tags(self, name: str, *tags: str) -> None:
        """Remove tags from the object of a name."""
        for tag in tags:
            self._tags[tag].pop(name, None)
        _Generation.next()

    def tags_of(self, name: str) -> list[str]:
        """Return the tags of the object of a name, sorted."""
        self._filled()
        return sorted(tag for tag, names in self._tags.items() if name in names)

    def names(self) -> list[str]:
        """Return the names of everything here, in order; see ``register``."""
        self._filled()
        return sorted(self._objects, key=lambda name: self._places.get(name, math.inf))

    def __getitem__(self, name: str) -> Any:
        """Return the object of a name, or the only one that has it as a tag."""
        self._filled()
        if name in self._objects:
            return self._objects[name]
        found = list(self._tags.get(name, ()))
        if not found:
            raise KeyError(f"Nothing registered for '{name}'")
        if len(found) > 1:
            raise ValueError(f"More than one match for {name} (please use query)")
        return self._objects[found[0]]

    def __contains__(self, name: str) -> bool:
        self._filled()
        return name in self._objects or bool(self._tags.get(name))

    def _named(self, tag: str) -> dict[Any, Any]:
        return {tag: None} if tag in self._objects else self._tags.get(tag, {})

    def select(self, query: Query) -> dict[Any, Any]:
        """Return {name: object} of the objects that a query selects, in their order.

        A nested database is replaced by its own answer.
        """
        names = self.names()
        chosen: set[Any] = set()
        for tag in query.include:
            chosen.update(self._named(tag))
        for tag in query.require:
            chosen.intersection_update(self._named(tag))
        for tag in query.exclude:
            chosen.difference_update(self._named(tag))
        found = {}
        for name in names:
            if name not in chosen:
                continue
            obj = self._objects[name]
            if isinstance(obj, DB):
                inner = query.subquery.get(name, query.inside())
                if not inner:
                    continue
                obj = obj._answer(inner)
            found[name] = obj
        return found

    def __query__(self, query: Query) -> Any:
        if not isinstance(query, Query):
            raise TypeError("Expected a Query.", query)
        return OrderedSet(self.select(query).values())

    def query(self, *tags: Any, **subqueries: Any) -> Any:
        """Return the answer to a Query, or to tags that start with '+', '&' or '-'.

        The answer to the same query is the same object, until a database changes.
        """
        return self._answer(_as_query(tags, subqueries), config.optdb.position_cutoff)

    def _answer(self, query: Query, cutoff: float = math.inf) -> Any:
        self._filled()
        if self._answers_of != _Generation.number:
            self._answers.clear()
            self._answers_of = _Generation.number
        key = (query.key(), cutoff)
        answer = self._answers.get(key)
        if answer is None:
            if cutoff < query.position_cutoff:
                query = query.until(cutoff)
            answer = self.__query__(query)
            # the answer keeps the extra passes alive, whose ids are in the key
            self._answers[key] = answer
        return answer

    def print_summary(self, stream: TextIO | None = None) -> None:
        """Print every name with its tags."""
        print(f"{type(self).__name__} {self.name or ''}", file=stream)
        for name in self.names():
            print(f"  {name}: {', '.join(self.tags_of(name))}", file=stream)


class EquilibriumDB(DB):
    """Rules and passes that are applied until none of them changes the graph."""

    def __init__(
        self,
        ignore_newtrees: bool = True,
        tracks_on_change_inputs: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.ignore_newtrees = ignore_newtrees
        self.tracks_on_change_inputs = tracks_on_change_inputs
        self._final: set[str] = set()
        self._cleanup: set[str] = set()

    def register(
        self,
        name: str,
        obj: Any,
        *tags: str,
        final_opt: bool = False,
        cleanup: bool = False,
        **options: Any,
    ) -> None:
        """Add a rule or a pass.

        final_opt: whether it is a pass that runs each time the rules are done. cleanup: whether it
        is a pass that runs after those, such as a merge.
        """
        if final_opt and cleanup:
            raise ValueError("a pass is either final or a cleanup", obj)
        super().register(name, obj, *tags, **options)
        if final_opt:
            self._final.add(name)
        if cleanup:
            self._cleanup.add(name)

    def __query__(self, query: Query) -> Any:
        found = self.select(query)
        special = self._final | self._cleanup
        return EquilibriumOptimizer(
            [obj for name, obj in found.items() if name not in special],
            final_optimizers=[obj for name, obj in found.items() if name in self._final],
            cleanup_optimizers=[obj for name, obj in found.items() if name in self._cleanup],
            name=self.name,
        )


class SequenceDB(DB):
    """Passes in the order of their positions; equal positions in the order of their names."""

    def __init__(
        self,
        failure_callback: Callable[..., Any] | None = None,
        name: str | None = None,
        fill: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(name, fill)
        self.failure_callback = failure_callback
        self.__position__: dict[str, float] = {}

    # programs pass the position as third argument
    def register(  # type: ignore[override]
        self,
        name: str,
        obj: Any,
        position: float | str,
        *tags: str,
        use_db_name_as_tag: bool = True,
    ) -> None:
        """Add a pass at a position, a number or 'last'."""
        self._filled()
        if position == "last":
            position = max(self.__position__.values(), default=-1) + 1
        if isinstance(position, bool) or not isinstance(position, int | float):
            raise TypeError(f"The position of {name!r} must be a number, not {position!r}")
        super().register(name, obj, *tags, use_db_name_as_tag=use_db_name_as_tag)
        self.__position__[name] = position

    def positions(self) -> dict[Any, Any]:
        """Return a dict from names to positions, in the order in which the passes run."""
        self._filled()
        return dict(sorted(self.__position__.items(), key=lambda item: (item[1], item[0])))

    def __query__(self, query: Query) -> Any:
        found = self.select(query)
        placed = [(self.__position__[name], False, name, obj) for name, obj in found.items()]
        # extra passes come after the registered passes of the same position
        placed += [(at, True, opt.name or "", opt) for opt, at in query.extra_optimizations]
        placed = [entry for entry in placed if entry[0] < query.position_cutoff]
        placed.sort(key=lambda entry: entry[:3])
        sequence = SeqOptimizer(
            [obj for *_, obj in placed], failure_callback=self.failure_callback, name=self.name
        )
        sequence.labels = [name for _, _, name, _ in placed]
        return sequence


class LocalGroupDB(DB):
    """Rules that form one rule: the first replacement is taken (see ``LocalOptGroup``)."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.__position__: dict[str, float] = {}

    def register(
        self,
        name: str,
        obj: Any,
        *tags: str,
        position: Any = "last",
        place: float = math.inf,
        **options: Any,
    ) -> None:
        """Add a rule at a position in the group, a number or 'last' (with a ``place``: 0)."""
        super().register(name, obj, *tags, place=place, **options)
        if position == "last":
            first = place < math.inf
            position = 0 if first else max(self.__position__.values(), default=-1) + 1
        self.__position__[name] = position

    def __query__(self, query: Query) -> Any:
        def order(name: str) -> tuple[float | str, ...]:
            place = self._places[name]
            return self.__position__[name], place, name if place == math.inf else ""

        found = self.select(query)
        return LocalOptGroup([found[name] for name in sorted(found, key=order)], name=self.name)


class TopoDB(DB):
    """A database of rules, answered by one pass over the graph in topological order."""

    def __init__(
        self,
        db: DB,
        order: str = "in_to_out",
        ignore_newtrees: bool = False,
        failure_callback: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.db = db
        self.order = order
        self.ignore_newtrees = ignore_newtrees
        self.failure_callback = failure_callback

    def register(self, name: str, obj: Any, *tags: str, **options: Any) -> None:
        """Add a rule to the nested database."""
        self.db.register(name, obj, *tags, **options)

    def __query__(self, query: Query) -> Any:
        return TopoOptimizer(
            self.db._answer(query),
            self.order,
            self.ignore_newtrees,
            failure_callback=self.failure_callback,
            name=self.name,
        )


class ProxyDB(DB):
    """Another database under another name, to register it several times."""

    def __init__(self, db: EquilibriumDB | LocalGroupDB | int) -> None:
        if not isinstance(db, DB):
            raise TypeError(f"ProxyDB stands for a database, not for {db!r}")
        super().__init__()
        self.db = db

    def _answer(self, query: Query, cutoff: float = math.inf) -> Any:
        return self.db._answer(query, cutoff)
