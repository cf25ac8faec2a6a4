"""Classes of variables name the modules in which Theano has them.

Programs ask whether something is a variable by the name of its class: ``"theano" in str(type(x))``,
``type(x).__module__.startswith("theano.tensor")``.
"""

import importlib

from opwise.graph.legacystate import legacy
from opwise.graph.variable import Variable

legacy.homes.update(
    {
        "opwise.compile.shared.RandomStateSharedVariable": "theano.tensor.shared_randomstreams",
        "opwise.compile.shared.ScalarSharedVariable": "theano.tensor.sharedvar",
        "opwise.compile.shared.SharedVariable": "theano.compile.sharedvalue",
        "opwise.compile.shared.TensorSharedVariable": "theano.tensor.sharedvar",
        "opwise.compile.sparseshared.SparseTensorSharedVariable": "theano.sparse.sharedvar",
        "opwise.graph.variable.Constant": "theano.gof.graph",
        "opwise.graph.variable.Variable": "theano.gof.graph",
        "opwise.scalar.variable.ScalarConstant": "theano.scalar.basic",
        "opwise.scalar.variable.ScalarVariable": "theano.scalar.basic",
        "opwise.sparse.operators.SparseConstant": "theano.sparse.basic",
        "opwise.sparse.operators.SparseVariable": "theano.sparse.basic",
        "opwise.tensor.lists.TypedListVariable": "theano.typed_list.basic",
        "opwise.tensor.operators.TensorConstant": "theano.tensor.var",
        "opwise.tensor.operators.TensorVariable": "theano.tensor.var",
    }
)


def adopt():
    """Rename the classes that exist already; ``legacy.homes`` names those that are made later.

    Their modules are imported: cloudpickle writes a class by name only if its module is loaded.
    """
    classes = [Variable]
    for cls in classes:
        cls.name_home()
        classes += cls.__subclasses__()
    for module in {cls.__module__ for cls in classes} & {*legacy.homes.values()}:
        importlib.import_module(module)
