"""The public attributes of Theano's objects, and those that objects of opwise lack.

    python tests/legacy/attributes.py record     print attributes.json; runs on Theano 1.0.5
    python tests/legacy/attributes.py table      print the table of what is lacking, and why

``attributes.json`` holds {kind of object: its public attributes}. A test fails if opwise lacks one
that LACKING does not name, and if it has one that LACKING names.
"""

# This runs on Python 3.7 too.

import fnmatch
import json
import sys
import textwrap
from pathlib import Path

import numpy as np

import theano
import theano.tensor as T
import theano.tensor.opt
import theano.typed_list
from theano import compile as compiling
from theano import gof, scalar, sparse
from theano.compile.mode import Mode, get_mode
from theano.compile.nanguardmode import NanGuardMode
from theano.ifelse import IfElse
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor.shared_randomstreams import RandomStreams

RECORD = Path(__file__).parent / "attributes.json"

_CONSTRUCTION = "observers of construction, which Theano itself never used"
_MACHINE = "parts of Theano's virtual machines and of its protocol of calls"
_C_CODE = "pieces of Theano's C code and of its OpenMP options"
_SCAN = "how Theano's scan orders its inputs; opwise's Op is another one (op.inputs, op.outputs)"
_REWRITING = "how Theano's rewriting works inside, and the tables of its profile"
_FEATURE = "what the feature does is a part of FunctionGraph or of opwise.graph.aliasing"
_SHAPES = "how Theano's ShapeFeature fills its tables; opwise infers shapes when shape_of is read"
_SHAPES_OF_LISTS = "what would make a list look like a tensor; ttype is the type of its elements"
_PROFILE = "how Theano's profile prints; profile.records() gives the numbers"
_CACHING = "Theano's cache of optimized graphs on disk; the flag cache_graphs keeps opwise's"
_ARRAYS = "numpy functions behind Theano's Ops; op.perform and scalar_op.impl compute"
_MESSAGES = "texts of messages, and names with spelling mistakes"

#: kind of object -> {why opwise lacks attributes: their names}
LACKING = {
    "*Variable": {_CONSTRUCTION: "*construction_observer*"},
    "*Constant": {_CONSTRUCTION: "*construction_observer*"},
    "FunctionMaker": {_MACHINE: "expand_in function_builder wrap_in wrap_out",
                      _CACHING: "optimize_graph_with_cache"},
    "Function.fn": {_MACHINE: "clear_storage compute_map need_update_inputs position_of_error "
                              "time_thunks update_profile"},
    "Container": {_MACHINE: "implicit provided required"},
    "FunctionGraph": {_FEATURE: "destroy_handler merge_feature",
                      _PROFILE: "execute_callbacks_time execute_callbacks_times"},
    "VM_Linker": {_MACHINE: "accept_var_updates allow_partial_eval compute_gc_dependencies "
                            "updated_vars"},
    "CLinker": {_C_CODE: "*"},
    "WrapLinker": {_MACHINE: "pre"},
    "DebugMode": {_MACHINE: "function_maker"},
    "ProfileStats": {_PROFILE: "fill_node_total_time optimizer_profile output_size print_extra "
                               "variable_offset variable_shape variable_strides"},
    "Scan": {_SCAN: "*"},
    "OpFromGraph": {_MESSAGES: "*_MSG"},
    "DisconnectedType": {_MESSAGES: "fiter_variable value_eq"},
    "Scalar": {_C_CODE: "get_size"},
    "TypedListType": {_SHAPES_OF_LISTS: "dtype ndim"},
    "EnumList": {_C_CODE: "pyint_compat_code"},
    "Elemwise": {_ARRAYS: "nfunc python_constant_folding ufunc get_output_info",
                 _C_CODE: "gxx_support_openmp openmp test_gxx_support update_self_openmp"},
    "CAReduce": {_ARRAYS: "set_ufunc ufunc"},
    "scalar.*": {_ARRAYS: "nfunc_spec", _C_CODE: "supports_c_code"},
    "COp": {_C_CODE: "backward_re section_re"},
    "OpenMPOp": {_C_CODE: "gxx_support_openmp test_gxx_support update_self_openmp"},
    "DimShuffle": {_C_CODE: "*", },
    "*Subtensor*": {_C_CODE: "check_input default_helper_c_code_args helper_c_code* params_type "
                             "add_to_zview copy_into copy_of_x decl_view do_type_checking "
                             "get_helper_c_code_args make_view_array",
                    _MESSAGES: "debug e_indextype e_subslice my_as_scalar str_from_slice",
                    _REWRITING: "clone_inplace"},
    "Composite": {_ARRAYS: "init_* inputs_type outputs_type make_new_inplace prepare_node_called",
                  _C_CODE: "supports_c_code clone_float32"},
    "Reshape": {_C_CODE: "check_input params_type"},
    "Alloc": {_C_CODE: "validate_shape"},
    "*DB": {_REWRITING: "seq_opt apply_all_opts failure_callback local_opt profile"},
    "*Optimizer": {_REWRITING: "attach_updater detach_updater get_local_optimizers "
                   "local_optimizers_all local_optimizers_map merge_profile print_profile "
                   "process_node tracks_on_change_inputs"},
    "LocalOptGroup": {_REWRITING: "apply_all_opts merge_profile print_profile profile reentrant "
                      "retains_inputs track_map"},
    "PatternSub": {_REWRITING: "pdb"},
    "OpSub": {_REWRITING: "reentrant retains_inputs transfer_tags"},
    "OpRemove": {_REWRITING: "reentrant"},
    "ShapeFeature": {_SHAPES: "default_infer_shape get_node_infer_shape init_r make_vector_shape "
                              "set_shape set_shape_i shape_ir unpack update_shape"},
    "NodeFinder": {_FEATURE: "d fgraph query"},
    "ReplaceValidate": {_FEATURE: "*"},
    "History": {_FEATURE: "history pickle_rm_attr revert unpickle"},
    "DestroyHandler": {_FEATURE: "*"},
    "NoOutputFromInplace": {_FEATURE: "first_idx last_idx"},
    "PPrinter": {_MESSAGES: "process_graph"},
}  # fmt: skip


def objects():
    """Return {kind: an object of it}."""
    x, i, v = T.dmatrix("x"), T.lscalar("i"), T.dvector("v")
    s, a = theano.shared(np.zeros(3), "s"), scalar.float64("a")
    f = theano.function([x, theano.In(i, value=3)], [x * 2 + i], updates=[(s, s + 1)], profile=True)
    loop = theano.scan(lambda e, h: e + h, v, T.constant(np.float64(0)))[0]
    [scan] = [
        node for node in gof.graph.list_of_nodes([v], [loop]) if "Scan" in type(node.op).__name__
    ]
    rule = gof.local_optimizer([T.add])(lambda node: None)
    return {
        "Function": f, "FunctionMaker": f.maker, "Function.fn": f.fn,
        "FunctionGraph": f.maker.fgraph, "Container": f.input_storage[0],
        "In": theano.In(x), "Out": theano.Out(x),
        "Variable": gof.Variable(T.dscalar), "TensorVariable": x, "ScalarVariable": a,
        "SharedVariable": theano.shared([1]), "TensorSharedVariable": s,
        "TensorConstant": T.constant(np.ones(3)), "ScalarConstant": scalar.constant(2.0),
        "SparseVariable": sparse.csr_matrix("a"), "Apply": (x + 1).owner,
        "Op": gof.Op(), "COp": gof.COp, "OpenMPOp": gof.OpenMPOp,
        "Type": gof.Type(), "TensorType": T.dmatrix, "Scalar": scalar.float64,
        "Generic": gof.generic, "CDataType": gof.type.CDataType("void*"),
        "SparseType": sparse.csr_matrix("a").type, "ParamsType": gof.ParamsType(a=scalar.int64),
        "Params": gof.ParamsType(a=scalar.int64).get_params(a=1), "EnumList": gof.EnumList("A"),
        "TypedListType": theano.typed_list.TypedListType(T.dvector),
        "TypedListVariable": theano.typed_list.TypedListType(T.dvector)(),
        "RandomStateType": T.raw_random.random_state_type,
        "NullType": theano.gradient.NullType(),
        "DisconnectedType": theano.gradient.DisconnectedType(),
        "Mode": Mode(), "DebugMode": get_mode("DEBUG_MODE"), "MonitorMode": compiling.MonitorMode(),
        "NanGuardMode": NanGuardMode(), "ProfileStats": f.profile,
        "VM_Linker": gof.vm.VM_Linker(), "PerformLinker": gof.PerformLinker(),
        "OpWiseCLinker": gof.OpWiseCLinker(), "CLinker": gof.CLinker(),
        "DualLinker": gof.DualLinker(), "Linker": gof.Linker(),
        "WrapLinker": gof.WrapLinker([gof.PerformLinker()], lambda *given: None),
        "RandomStreams": RandomStreams(3), "MRG_RandomStreams": MRG_RandomStreams(3),
        "Scan": scan.op, "OrderedUpdates": theano.OrderedUpdates(),
        "OpFromGraph": theano.OpFromGraph([x], [x * 2]), "IfElse": IfElse(1),
        "Elemwise": (x + 1).owner.op, "CAReduce": x.sum().owner.op,
        "DimShuffle": x.T.owner.op, "Dot": T.dot(x, x).owner.op, "Alloc": T.Alloc(),
        "Subtensor": x[1:].owner.op, "IncSubtensor": T.inc_subtensor(x[1:], 1.0).owner.op,
        "AdvancedSubtensor1": v[T.lvector()].owner.op,
        "AdvancedIncSubtensor1": T.inc_subtensor(v[T.lvector()], 1.0).owner.op,
        "Reshape": x.reshape((2, 2)).owner.op, "Print": theano.printing.Print("a"),
        "scalar.add": scalar.add, "Composite": scalar.Composite([a], [scalar.add(a, a)]),
        "FromFunctionOp": compiling.ops.FromFunctionOp(abs, [v.type], [v.type], None),
        "SequenceDB": compiling.mode.optdb, "EquilibriumDB": gof.EquilibriumDB(),
        "LocalGroupDB": gof.optdb.LocalGroupDB(), "Query": gof.Query(["a"]),
        "local_optimizer": rule, "PatternSub": gof.PatternSub((T.add, "x", "x"), "x"),
        "OpSub": gof.OpSub(T.add, T.mul), "OpRemove": gof.OpRemove(T.add),
        "TopoOptimizer": gof.TopoOptimizer(rule), "SeqOptimizer": gof.SeqOptimizer([]),
        "EquilibriumOptimizer": gof.EquilibriumOptimizer([rule], max_use_ratio=3),
        "MergeOptimizer": gof.MergeOptimizer(), "Optimizer": gof.Optimizer(),
        "LocalOptimizer": gof.LocalOptimizer(), "LocalOptGroup": gof.opt.LocalOptGroup(rule),
        "ShapeFeature": theano.tensor.opt.ShapeFeature(), "NodeFinder": gof.NodeFinder(),
        "Feature": gof.toolbox.Feature(), "Bookkeeper": gof.toolbox.Bookkeeper(),
        "ReplaceValidate": gof.toolbox.ReplaceValidate(), "History": gof.toolbox.History(),
        "DestroyHandler": gof.DestroyHandler(), "PreserveNames": gof.toolbox.PreserveNames(),
        "NoOutputFromInplace": gof.toolbox.NoOutputFromInplace(),
        "scratchpad": x.tag, "PPrinter": theano.printing.pp,
    }  # fmt: skip


def recorded():
    """Return {kind: the public attributes of Theano 1.0.5}."""
    return {kind: text.split() for kind, text in json.loads(RECORD.read_text()).items()}


def missing():
    """Return {kind: attributes of Theano 1.0.5 that objects of opwise lack}."""
    found = objects()
    return {
        kind: [name for name in names if not hasattr(found[kind], name)]
        for kind, names in recorded().items()
        if not all(hasattr(found[kind], name) for name in names)
    }


def why(kind, name):
    """Return why opwise lacks an attribute, or None if LACKING does not say."""
    for pattern, reasons in LACKING.items():
        if fnmatch.fnmatchcase(kind, pattern):
            for text, names in reasons.items():
                if any(fnmatch.fnmatchcase(name, each) for each in names.split()):
                    return text
    return None


def table():
    """Return the lines of the table of what is lacking."""
    by_reason = {}
    for kind, names in missing().items():
        for name in names:
            by_reason.setdefault(why(kind, name), {}).setdefault(kind, []).append(name)
    lines = []
    for text, kinds in by_reason.items():
        lines.append(f"{text}:")
        for kind, names in kinds.items():
            lines += textwrap.wrap(f"{kind}: {' '.join(names)}", 100, initial_indent="    ",
                                   subsequent_indent="        ")  # fmt: skip
    return lines


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        # c_* are pieces of C code, which only the class itself uses
        kept = {
            kind: " ".join(n for n in dir(one) if not n.startswith(("_", "c_")))
            for kind, one in objects().items()
        }
        print(json.dumps(kept, indent=0))
    elif sys.argv[1:] == ["table"]:
        print("\n".join(table()))
    else:
        sys.exit(__doc__)
