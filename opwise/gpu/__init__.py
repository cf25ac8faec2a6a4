"""CUDA: texts of kernels and plans of launches, which need no device; reached by import string.

There is no linker yet: asking for one says so.
"""
