"""``theano.function_dump``: the arguments of a function in a file, to compile it elsewhere."""

from opwise.py2.archives import DEFAULT_PROTOCOL, StripPickler


def function_dump(
    filename, inputs, outputs=None, mode=None, updates=None, *, extra_tag_to_remove=None,
    **arguments
):  # fmt: skip
    """Pickle the arguments of ``theano.function`` into a file, without the traces of variables.

    ``theano.function(**pickle.load(file))`` compiles it. extra_tag_to_remove: the name of a further
    attribute of ``tag`` that is not pickled.
    """
    given = {"inputs": inputs, "outputs": outputs, "mode": mode, "updates": updates, **arguments}
    with open(filename, "wb") as file:
        StripPickler(file, DEFAULT_PROTOCOL, extra_tag_to_remove).dump(given)
