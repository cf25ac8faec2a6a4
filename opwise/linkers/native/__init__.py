"""The modules of the compiled VM. One file holds them all, that of ``opwise.linkers.opwise_c``.

They share the C code that the file holds too, and its state. Import ``opwise_c``, which loads them
and has their public names.
"""
