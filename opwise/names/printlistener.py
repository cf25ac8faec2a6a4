"""``theano.gof.toolbox.PrintListener``."""

from opwise.graph.features import Feature


class PrintListener(Feature):
    """Prints each change of a FunctionGraph while ``active`` is true."""

    def __init__(self, active=True):
        self.active = active

    def _print(self, text):
        if self.active:
            print(f"-- {text}")

    def on_attach(self, fgraph):
        self._print(f"attaching to:  {fgraph}")

    def on_detach(self, fgraph):
        self._print(f"detaching from:  {fgraph}")

    def on_import(self, fgraph, node, reason):
        self._print(f"importing: {node}, reason: {reason}")

    def on_prune(self, fgraph, node, reason):
        self._print(f"pruning: {node}, reason: {reason}")

    def on_change_input(self, fgraph, node, i, old, new, reason=None):
        self._print(f"changing ({node}.inputs[{i}]) from {old} to {new}")
