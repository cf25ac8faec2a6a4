"""The order of every walk over a graph, on graphs of random shape: programs number by it."""

import itertools

from .register import program


def toy_graph(theano, T, np, seed):
    """Return (leaves, outputs, names): a random graph of Applys with one or two results."""
    rng = np.random.RandomState(seed)
    names = {}

    class Toy(theano.Op):
        def __init__(self, results):
            self.results = results

        def make_node(self, *inputs):
            return theano.Apply(self, list(inputs), [T.dscalar() for _ in range(self.results)])

    leaves = [T.dscalar() for _ in range(rng.randint(2, 6))]
    pool = list(leaves)
    for _ in range(rng.randint(3, 12)):
        chosen = [pool[k] for k in rng.randint(0, len(pool), rng.randint(1, 4))]
        pool += Toy(int(rng.randint(1, 3))).make_node(*chosen).outputs
    for number, var in enumerate(pool):
        names[var] = "v%d" % number
    computed = pool[len(leaves) :]
    outputs = [computed[k] for k in rng.permutation(len(computed))[: rng.randint(1, 4)]]
    return leaves, outputs, names


@program("traversals.orders")
def orders(theano, T, np):
    graph = theano.gof.graph
    results = {}
    for seed in range(12):
        leaves, outputs, names = toy_graph(theano, T, np, seed)
        given = leaves[::2]

        def named(items, names=names):
            return [names.get(v) or "of " + names[v.outputs[0]] for v in items]

        walked = results[str(seed)] = {
            "outputs": named(outputs),
            "inputs": named(graph.inputs(outputs)),
            "inputs, reversed": named(graph.inputs(list(reversed(outputs)))),
            "ancestors": named(graph.ancestors(outputs)),
            "ancestors, blockers": named(graph.ancestors(outputs, blockers=given)),
            "inputs, blockers": named(graph.inputs(outputs, blockers=outputs[:1])),
            "variables": named(graph.variables(given, outputs)),
            "orphans": named(graph.orphans(given, outputs)),
            "io_toposort": named(graph.io_toposort(leaves, outputs)),
            "sorted ops": sorted(named(graph.ops(leaves, outputs))),
        }
        equiv = graph.clone_get_equiv(given, outputs, copy_inputs=True)
        walked["clone_get_equiv"] = named(equiv)
        clients = {}
        deps = {v: v.owner.inputs for v in names if v.owner is not None}
        walked["general_toposort"] = named(
            graph.general_toposort(outputs, lambda v, deps=deps: deps.get(v), clients=clients)
        )
        walked["clients"] = sorted((names[v], named(found)) for v, found in clients.items())
        for mode, invert in itertools.product(["bfs", "dfs"], [False, True]):
            start = graph.deque(outputs)
            found = graph.stack_search(start, lambda v, deps=deps: deps.get(v), mode, invert)
            order = found[0] if invert else found
            walked["%s, %s" % (mode, invert)] = named(order)
        fgraph = theano.gof.FunctionGraph(leaves, outputs, clone=False)
        walked["toposort"] = named(fgraph.toposort())
    return results
