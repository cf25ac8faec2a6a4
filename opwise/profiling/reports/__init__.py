"""Reports: texts and files made of a Profile; each form has a module, which owns its formats."""
