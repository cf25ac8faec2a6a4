"""What ``theano.printing`` says of the package pydot, which opwise does not need."""

pydot_imported = False
pydot_imported_msg = "opwise draws graphs with Graphviz alone: it does not import pydot"
