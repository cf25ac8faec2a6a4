"""CUDA: kernels and plans of launches, which need no device, and what runs them through CuPy.

Reached by import strings, so that nothing asks for a device before a function is linked for one.
"""
