"""Keyword arguments as settings of the library: pairs of a name and a text."""

import os


def text_of(name, value):
    """The text of one value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a NumPy scalar
        return text_of(name, value.item())
    raise TypeError(f"{name} must be a bool, a number, a str or a list of them, not {type(value).__name__}")


def settings_of(arguments):
    """A tuple of (name, text); None is left out, an item of a list is a pair of its own."""
    pairs = []
    for name, value in arguments.items():
        if value is None:
            continue
        if isinstance(value, dict):
            value = [f"{key}={text_of(name, one)}" for key, one in value.items()]
        if isinstance(value, (list, tuple, set, frozenset)):
            pairs += [(name, text_of(name, one)) for one in value]
        else:
            pairs.append((name, text_of(name, value)))
    return tuple(pairs)
