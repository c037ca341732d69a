"""Writes sesame/_options.pyi: the options of commands as types, read from their help. Runs when the package is built.

Usage: option_types.py COMMAND FILE"""

import re
import subprocess
import sys

CLASSES = {"finetune": "Finetune", "pretrain": "Pretrain", "search": "Search", "index": "Index", "serve": "Serve",
           "vectors train": "VectorsTrain"}
# Parameters of the functions, and options of the terminal.
OMITTED = {"finetune": {"task", "train", "eval", "model", "output"}, "pretrain": {"corpus", "output"},
           "search": {"file", "top_k"}, "index": {"output"}, "serve": {"model", "port"}, "vectors train": {"output"}}
OF_THE_COMMAND = {"json", "help", "color", "quiet", "seeds", "grid", "search", "trials", "eta", "adapt", "adapt_steps", "adapt_set",
                  "first", "first_task", "first_eval", "first_set", "transport", "rank_timeout"}
OF_THE_DEVICE = {"device", "dtype", "threads", "isa"}


def type_of(value):
    """The type of an option, by the name of its value in the help; None: it has none."""
    if value is None:
        return "bool | None"
    numbers = {"N": "int", "X": "float"}
    parts = value.removesuffix(",...").removesuffix("...").split("|")
    if value in numbers:
        return numbers[value] + " | None"
    if len(parts) > 1 and all(re.fullmatch("[a-z0-9_-]+", x) for x in parts):
        return "Literal[" + ", ".join(f'"{x}"' for x in parts) + "] | None"
    return "_Value"


def options_of(command, name):
    shown = subprocess.run([command, *name.split(), "--help", "all"], capture_output=True, text=True, check=True).stdout
    omitted = OMITTED[name] | OF_THE_COMMAND | (OF_THE_DEVICE if name in ("finetune", "pretrain") else set())
    found = {}
    for option, value in re.findall(r"^(?:  -\w, |      )--([\w-]+)(?: (\S+))?(?:  .*)?$", shown, re.M):
        if (option := option.replace("-", "_")) not in omitted:
            found[option] = type_of(value or None)
    return found


def text_of(command):
    lines = ["from collections.abc import Mapping, Sequence", "from os import PathLike", "from typing import Literal, TypedDict",
             "", "_One = str | int | float | PathLike[str]",
             "_Value = _One | Sequence[_One] | Mapping[str, _One] | None", ""]
    for name, title in CLASSES.items():
        lines += ["", f"class {title}Options(TypedDict, total=False):"]
        lines += [f"    {option}: {kind}" for option, kind in options_of(command, name).items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(text_of(sys.argv[1]))
