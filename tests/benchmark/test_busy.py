"""The benchmark beside busy processes runs, and leaves none behind."""

import json

import pytest

from benchmark import busy


@pytest.mark.c
def test_every_program_is_timed_alone_and_among_others(tmp_path, capsys):
    path = tmp_path / "busy.json"
    assert busy.main(["--quick", "--json", str(path)]) == 0
    seconds = json.loads(path.read_text())["seconds"]
    assert list(seconds) == list(busy.PROGRAMS)
    assert all(value > 0 for times in seconds.values() for value in times.values())
    rows = capsys.readouterr().out.splitlines()[-len(seconds) :]
    assert [row[: len(name)] for row, name in zip(rows, seconds, strict=True)] == list(seconds)


def test_processes_that_never_wait_are_killed(monkeypatch):
    begun = []

    class Process:
        def __init__(self, command):
            begun.append(self)
            self.ended = []

        def kill(self):
            self.ended.append("killed")

        def wait(self):
            self.ended.append("waited for")

    monkeypatch.setattr(busy.subprocess, "Popen", Process)
    with pytest.raises(KeyError), busy.busy():
        raise KeyError
    assert len(begun) == busy.resources.processors()
    assert all(process.ended == ["killed", "waited for"] for process in begun)
