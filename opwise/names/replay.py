"""``theano.tests.record``: a mode that records what each Apply computes, or compares it."""

from __future__ import annotations

from opwise.graph.printing import hex_digest
from opwise.linkers.base import OpWiseCLinker
from opwise.linkers.wrap import WrapLinker
from opwise.modes.mode import Mode

#: the most characters of a line in a message
_SHOWN = 100


class MismatchError(Exception):
    """A program computes something else than what was recorded."""


class Record:
    """A text file of lines, which is written, or with ``replay`` compared with what is given.

    file_object: an open file; file_path: the path of one that is opened.
    """

    def __init__(self, file_object=None, file_path=None, replay=False):
        if file_object is None and file_path is None:
            raise AssertionError("Record needs a file_object or a file_path")
        self.file_object, self.file_path, self.replay = file_object, file_path, replay
        if file_object is None:
            file_object = open(file_path, "r" if replay else "w")  # noqa: SIM115  (as f.close())
        self.f = file_object

    def handle_line(self, line):
        """Write a line, which ends with a line break, or raise MismatchError if it is another."""
        if not line.endswith("\n") or "\n" in line[:-2]:
            raise AssertionError(f"expected one line with a line break at its end, not {line!r}")
        if not self.replay:
            self.f.write(line)
            return
        recorded = self.f.readline()
        if recorded != line:
            raise MismatchError(
                f"Replay detected mismatch.\n I wanted to write:\n{_shortened(line)}\n"
                f"when previous job wrote:\n{_shortened(recorded)}"
            )


def _shortened(line):
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


class RecordMode(Mode):
    """A mode that records each Apply of named functions: its text, and digests of its values.

    record: a Record (default: one made of the other arguments).
    """

    def __init__(self, record=None, **kwargs):
        if record is not None and kwargs:
            raise AssertionError("RecordMode takes a record, or the arguments of one, not both")
        self.set_record(Record(**kwargs) if record is None else record)
        super().__init__(WrapLinker([OpWiseCLinker()], self._run), "fast_run")

    def set_record(self, record):
        """Use another Record, with which no function has run yet."""
        self.record = record
        self.known_fgraphs = set()

    def _run(self, i, node, thunk):
        fgraph = node.fgraph
        if fgraph not in self.known_fgraphs:
            if any(known.name == fgraph.name for known in self.known_fgraphs):
                raise AssertionError(f"two functions are called {fgraph.name}: rename one of them")
            self.known_fgraphs.add(fgraph)
            self._note(f"Function {fgraph.name} has {len(fgraph.apply_nodes)} apply nodes.", node)
        self._note(f"Function name: {fgraph.name}", node)
        self._note(f"Node {i}:{node}", node)
        self._note(f"Inputs: {_digests(thunk.inputs)}", node)
        thunk()
        self._note(f"Outputs: {_digests(thunk.outputs)}", node)

    def _note(self, line, node):
        try:
            self.record.handle_line(f"{line}\n")
        except MismatchError as error:
            message = f"Non-determinism detected by WrapLinker at {node}: {error}"
            raise MismatchError(message) from None


def _digests(storages):
    return " ".join(hex_digest(storage[0]) for storage in storages)
