"""Databases of rewrites, and queries to them."""

import pytest

from opwise.config import change_flags
from opwise.optimizers.database import (
    DB,
    EquilibriumDB,
    LocalGroupDB,
    OrderedSet,
    ProxyDB,
    Query,
    SequenceDB,
    TopoDB,
)
from opwise.optimizers.merge import MergeOptimizer
from opwise.optimizers.navigators import EquilibriumOptimizer, TopoOptimizer
from opwise.optimizers.passes import Optimizer, SeqOptimizer
from opwise.optimizers.rule import LocalOptGroup, rule

pytestmark = pytest.mark.null


def a_rule(name):
    return rule(name=name)(lambda fgraph, node: None)


class Nothing(Optimizer):
    def apply(self, fgraph):
        pass


@pytest.fixture
def db():
    db = DB("phase")
    db.register("a", a_rule("a"), "fast_run", "stable")
    db.register("b", a_rule("b"), "fast_run", "fast_compile")
    db.register("c", a_rule("c"), "unsafe")
    return db


def names(answer):
    return [one.name for one in answer]


# --- registration ---------------------------------------------------------------------------------


def test_the_class_and_the_database_are_tags(db):
    assert db.tags_of("a") == ["Rule", "fast_run", "phase", "stable"]
    db.register("d", Nothing(), use_db_name_as_tag=False)
    assert db.tags_of("d") == ["Nothing"]


def test_what_has_no_name_gets_the_one_it_is_registered_by():
    db, one = DB(), Nothing()
    db.register("d", one)
    assert one.name == "d"


@pytest.mark.parametrize("name", ["a", "fast_run", "Rule"])
def test_a_name_must_be_free(db, name):
    with pytest.raises(ValueError, match="cannot be an existing tag or the name of another"):
        db.register(name, a_rule("z"))


@pytest.mark.parametrize("tag", ["a", "z"])
def test_a_tag_must_not_be_a_name(db, tag):
    with pytest.raises(ValueError, match="The tag of the object collides with a name"):
        db.register("z", a_rule("z"), tag)
    with pytest.raises(ValueError, match="collides"):
        db.add_tags("b", "a")


def test_only_rewrites_can_be_registered(db):
    with pytest.raises(TypeError, match="Object cannot be registered in OptDB"):
        db.register("five", 5)


def test_lookup_by_name_and_by_unique_tag(db):
    assert db["a"].name == "a"
    assert db["unsafe"].name == "c"
    assert "a" in db and "unsafe" in db and "zork" not in db
    with pytest.raises(KeyError, match="Nothing registered for 'zork'"):
        db["zork"]
    with pytest.raises(ValueError, match="More than one match for fast_run"):
        db["fast_run"]


def test_tags_come_and_go(db):
    db.add_tags("c", "fast_run")
    assert names(db.query("+fast_run")) == ["a", "b", "c"]
    db.remove_tags("a", "fast_run")
    assert names(db.query("+fast_run")) == ["b", "c"]


# --- queries --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        (["+fast_run"], ["a", "b"]),
        (["+fast_run", "-stable"], ["b"]),
        (["+fast_run", "&stable"], ["a"]),
        (["+fast_run", "-a"], ["b"]),
        (["+c", "+a"], ["a", "c"]),
        (["+fast_run", "&zork"], []),
        (["+fast_run", "-zork"], ["a", "b"]),
        (["+phase"], ["a", "b", "c"]),
        ([], []),
    ],
)
def test_include_require_exclude(db, tags, found):
    assert names(db.query(*tags)) == found
    include, require, exclude = ([t[1:] for t in tags if t[0] == sign] for sign in "+&-")
    assert names(db.query(Query(include, require, exclude))) == found


def test_tags_of_a_query_start_with_a_sign(db):
    with pytest.raises(ValueError, match="must start with one of the following characters"):
        db.query("fast_run")
    with pytest.raises(TypeError, match="without tags and options"):
        db.query(Query(["a"]), "+b")
    with pytest.raises(TypeError, match="Expected a Query"):
        db.__query__("a")


def test_a_query_is_changed_into_another():
    query = Query(["fast_run"])
    more = query.including("x").excluding("y", "z").requiring("w")
    assert list(query.include) == ["fast_run"]
    assert list(more.include) == ["fast_run", "x"]
    assert list(more.exclude) == ["y", "z"]
    assert list(more.require) == ["w"]


def test_text_of_a_query():
    assert str(Query(["fast_run"])) == (
        "Query{inc=OrderedSet(['fast_run']),ex=OrderedSet(),require=OrderedSet(),subquery={},"
        "position_cutoff=inf,extra_opts=[]}"
    )


def test_equal_queries_get_the_same_answer_until_something_is_registered(db):
    first = db.query(Query(["fast_run"]))
    assert db.query(Query(["fast_run"])) is first
    assert db.query("+fast_run") is first
    db.register("d", a_rule("d"), "fast_run")
    assert names(db.query("+fast_run")) == ["a", "b", "d"]


def test_ordered_set():
    one = OrderedSet("ba")
    one.update("ca")
    one.discard("a")
    assert list(one) == ["b", "c"]
    assert one == {"c", "b"} and "b" in one and len(one.copy()) == 2


# --- kinds of databases ---------------------------------------------------------------------------


@pytest.fixture
def sequence():
    sequence = SequenceDB()
    inner = EquilibriumDB()
    sequence.register("middle", inner, 2, "fast_run")
    inner.register("r1", a_rule("r1"), "fast_run")
    inner.register("r2", a_rule("r2"), "rare")
    inner.register("merge", MergeOptimizer(), "fast_run", cleanup=True)
    inner.register("last_thing", Nothing(), "fast_run", final_opt=True)
    sequence.register("z_first", Nothing(), -0.5, "fast_run")
    sequence.register("late", Nothing(), 49, "fast_run", "fusion")
    sequence.register("at_49", Nothing(), 49, "fast_run")
    return sequence


def test_a_sequence_is_in_the_order_of_positions_then_names(sequence):
    answer = sequence.query("+fast_run")
    assert isinstance(answer, SeqOptimizer)
    assert answer.labels == ["z_first", "middle", "at_49", "late"]
    assert sequence.positions() == {"z_first": -0.5, "middle": 2, "at_49": 49, "late": 49}
    assert sequence.__position__["late"] == 49


def test_positions_are_numbers_or_last(sequence):
    sequence.register("end", Nothing(), "last", "fast_run")
    assert sequence.positions()["end"] == 50
    with pytest.raises(TypeError, match="must be a number, not 'fast_run'"):
        sequence.register("bad", Nothing(), "fast_run")


def test_a_database_inside_answers_the_same_query(sequence):
    equilibrium = sequence.query("+fast_run")[1]
    assert isinstance(equilibrium, EquilibriumOptimizer)
    assert equilibrium.name == "middle"
    assert names(equilibrium.rules) == ["r1"]
    assert names(equilibrium.cleanup_optimizers) == ["merge"]
    assert names(equilibrium.final_optimizers) == ["last_thing"]
    assert names(sequence.query("+fast_run", "+r2")[1].rules) == ["r1", "r2"]
    assert names(sequence.query("+fast_run", "-r1")[1].rules) == []


def test_a_database_inside_may_get_a_query_of_its_own(sequence):
    answer = sequence.query(Query(["fast_run"], subquery={"middle": Query(["rare"])}))
    assert names(answer[1].rules) == ["r2"]
    answer = sequence.query(Query(["fast_run"], subquery={"middle": None}))
    assert answer.labels == ["z_first", "at_49", "late"]


def test_the_sequence_stops_before_the_cutoff(sequence):
    assert sequence.query(Query(["fast_run"], position_cutoff=2.1)).labels == ["z_first", "middle"]
    with change_flags({"optdb.position_cutoff": 2.0}):
        assert sequence.query(Query(["fast_run"])).labels == ["z_first"]
    assert len(sequence.query(Query(["fast_run"]))) == 4


def test_the_cutoff_counts_positions_of_the_outer_sequence_only():
    outer, inner = SequenceDB(), SequenceDB()
    outer.register("inner", inner, 1, "t")
    inner.register("deep", Nothing(), 10, "t")
    assert outer.query(Query(["t"], position_cutoff=2))[0].labels == ["deep"]


def test_a_query_may_bring_passes_along(sequence):
    extra = Nothing()
    answer = sequence.query(Query(["fast_run"]).register((extra, 49)))
    assert answer[-1] is extra and len(answer) == 5
    answer = sequence.query(Query(["fast_run"], extra_optimizations=[(extra, 1)]))
    assert answer[1] is extra


def test_an_equilibrium_pass_is_final_or_cleanup_not_both():
    with pytest.raises(ValueError, match="either final or a cleanup"):
        EquilibriumDB().register("m", MergeOptimizer(), final_opt=True, cleanup=True)


@pytest.mark.parametrize("db", [DB(), EquilibriumDB(), LocalGroupDB(), TopoDB(LocalGroupDB())])
def test_what_has_a_place_stands_there_whenever_it_is_registered(db):
    db.register("x", a_rule("x"), "t")
    for name, place in ("f", 1), ("b", 2), ("e", 1), ("a", 0):
        db.register(name, a_rule(name), "t", place=place)
    db.register("c", a_rule("c"), "t")
    found = getattr(db, "db", db)
    answer = found.query("+t")
    rules = getattr(answer, "opts", None) or getattr(answer, "rules", None) or answer
    assert found.names() == names(rules) == ["a", "f", "e", "b", "x", "c"]


def test_groups_and_topological_databases():
    db = TopoDB(LocalGroupDB(), order="out_to_in", ignore_newtrees=True)
    db.register("b", a_rule("b"), "t")
    db.register("a", a_rule("a"), "t")
    db.register("first", a_rule("first"), "t", position=-1)
    db.register("other", a_rule("other"), "u")
    answer = db.query("+t")
    assert isinstance(answer, TopoOptimizer) and answer.order == "out_to_in"
    assert isinstance(answer.local_opt, LocalOptGroup)
    assert names(answer.local_opt.opts) == ["first", "b", "a"]


def test_a_proxy_stands_for_a_database(db):
    sequence = SequenceDB()
    sequence.register("again", ProxyDB(EquilibriumDB()), 1, "t")
    assert isinstance(sequence.query("+t")[0], EquilibriumOptimizer)
    with pytest.raises(TypeError, match="stands for a database"):
        ProxyDB(5)


# --- filling --------------------------------------------------------------------------------------


def test_a_database_is_filled_before_its_first_use():
    calls = []

    def fill():
        calls.append(1)
        db.register("given", Nothing(), 1, "t")

    db = SequenceDB(fill=fill)
    assert calls == []
    db.register("mine", Nothing(), 0, "t")
    assert db.query("+t").labels == ["mine", "given"]
    with pytest.raises(ValueError, match="existing tag or the name"):
        db.register("given", Nothing(), 0, "t")
    assert calls == [1]


def test_filling_that_fails_is_tried_again():
    attempts = []

    def fill():
        db.register("given", Nothing(), 1, "t")
        attempts.append(1)
        if len(attempts) == 1:
            raise ImportError("not now")

    db = SequenceDB(fill=fill)
    with pytest.raises(ImportError, match="not now"):
        db.query("+t")
    assert db.query("+t").labels == ["given"]


def test_summary(db, capsys):
    db.print_summary()
    assert "  b: Rule, fast_compile, fast_run, phase\n" in capsys.readouterr().out
