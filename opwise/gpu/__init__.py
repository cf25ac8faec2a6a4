"""The device, reached by import string only. It has no linker yet: asking for one says so."""
