"""Ops of users that have C++ code of their own (``c_code``), as programs wrote them for Theano.

``source`` makes one C++ file of the texts of an Apply, ``recipe`` says how to compile it, ``code``
compiles it and reports errors, ``thunks`` runs Ops that make thunks of their own. The VM runs the
result as a step between Python objects (``native/objectcode.pyx``).
"""
