"""The device: kernels, which are written and tested without one, and what runs them through CuPy.

Other folders reach it by import strings, so that no device is opened before a function needs one.
"""
