"""Classes of variables name the modules in which Theano has them.

Programs ask whether something is a variable by the name of its class: ``"theano" in str(type(x))``,
``type(x).__module__.startswith("theano.tensor")``.
"""

import importlib

from opwise.graph.variable import HOMES, Variable

HOMES.update(
    {
        "opwise.compile.shared.RandomStateSharedVariable": "theano.tensor.shared_randomstreams",
        "opwise.compile.shared.ScalarSharedVariable": "theano.tensor.sharedvar",
        "opwise.compile.shared.SharedVariable": "theano.compile.sharedvalue",
        "opwise.compile.shared.TensorSharedVariable": "theano.tensor.sharedvar",
        "opwise.compile.sparseshared.SparseTensorSharedVariable": "theano.sparse.sharedvar",
        "opwise.graph.variable.Constant": "theano.gof.graph",
        "opwise.graph.variable.Variable": "theano.gof.graph",
        "opwise.scalar.types.ScalarConstant": "theano.scalar.basic",
        "opwise.scalar.types.ScalarVariable": "theano.scalar.basic",
        "opwise.sparse.variable.SparseConstant": "theano.sparse.basic",
        "opwise.sparse.variable.SparseVariable": "theano.sparse.basic",
        "opwise.tensor.lists.TypedListVariable": "theano.typed_list.basic",
        "opwise.tensor.variable.TensorConstant": "theano.tensor.var",
        "opwise.tensor.variable.TensorVariable": "theano.tensor.var",
    }
)


def adopt():
    """Rename the classes that exist already; ``HOMES`` names those that are made later.

    Their modules are imported: cloudpickle writes a class by name only if its module is loaded.
    """
    classes = [Variable]
    for cls in classes:
        cls.name_home()
        classes += cls.__subclasses__()
    for module in {cls.__module__ for cls in classes} & {*HOMES.values()}:
        importlib.import_module(module)
