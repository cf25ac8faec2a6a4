"""A kernel in which notebooks run; all tests of a process share it."""

import os

import pytest

#: set to have a missing kernel fail the tests instead of skipping them
_REQUIRED = "OPWISE_TEST_NOTEBOOK"


@pytest.fixture(scope="session")
def kernel():
    """A started kernel: (its manager, its client)."""
    try:
        import ipykernel  # noqa: F401
        import nbclient  # noqa: F401
    except ImportError as error:
        reason = f"{error.name} is not installed: pip install -e '.[notebook]'"
        if os.environ.get(_REQUIRED) == "required":
            pytest.fail(f"{reason}, and {_REQUIRED} is 'required'")
        pytest.skip(reason)
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=600)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


class Output:
    """What a cell gave."""

    def __init__(self, outputs):
        self.outputs = outputs
        #: the error's class and text, or None
        self.error = next(((o.ename, o.evalue) for o in outputs if o.output_type == "error"), None)
        #: {stream: text}
        self.streams = dict.fromkeys((o.name for o in outputs if o.output_type == "stream"), "")
        for output in outputs:
            if output.output_type == "stream":  # a text may come in several pieces
                self.streams[output.name] += output.text
        #: the MIME bundles of what is displayed, then of the result
        self.shown = [dict(o.data) for o in outputs if hasattr(o, "data")]

    @property
    def html(self):
        """The HTML of what is shown last."""
        return self.shown[-1]["text/html"]

    @property
    def text(self):
        """The result as text."""
        return self.shown[-1]["text/plain"]


@pytest.fixture
def run(kernel):
    """``run(cell, ...)``: run cells through nbclient; the Output of the last one."""
    import nbformat
    from nbclient import NotebookClient

    manager, client = kernel

    def execute(*cells):
        made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        notebook = NotebookClient(made, km=manager, timeout=600, allow_errors=True)
        notebook.kc = client
        with notebook.setup_kernel(cleanup_kc=False):
            for k, cell in enumerate(made.cells):
                notebook.execute_cell(cell, k)
        return Output(made.cells[-1].outputs)

    return execute
