"""``theano.misc.strutil``: texts of C code."""

import textwrap


def render_string(string, sub):
    """Return ``string % sub``; the error of a wrong format shows the text up to the fault."""
    try:
        return string % sub
    except Exception as error:
        for end in range(len(string) + 1):
            try:
                string[:end] % sub
            except Exception as found:
                if str(found) == str(error):
                    raise Exception(f"{string[:end]}<<<< caused exception {error}") from error
        raise


def strip_leading_white_space(line):
    """Return a line without the blanks and tabs at its start."""
    return line.lstrip(" \t")


def pretty_format(string):
    """Return C code indented by its braces."""
    lines, depth = [], 0
    for line in map(strip_leading_white_space, string.split("\n")):
        depth = max(depth - line.count("}"), 0)
        lines.append(textwrap.indent(line, "    " * depth, lambda _: True))
        depth += line.count("{")
    return "\n".join(lines)
