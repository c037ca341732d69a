"""finetune and pretrain: the runs of `sesame finetune` and `sesame pretrain`."""

import json
import os
import tempfile

from . import _sesame
from ._command import command
from ._devices import device_name, dtype_name, get_device
from ._results import shown
from ._settings import settings_of


def _with_columns(rows):
    """The rows of a table as dicts: dicts as they are, pairs as text and label."""
    for row in rows:
        if isinstance(row, dict):
            yield row
        elif isinstance(row, (list, tuple)) and len(row) == 2:
            yield {"text": row[0], "label": row[1]}
        else:
            raise TypeError(f"an example must be a dict or (text, label), not {type(row).__name__}")


def _plain(x):
    """A value of a row for JSON: NumPy's numbers become Python's."""
    return x.item() if hasattr(x, "item") and not isinstance(x, (str, bytes)) else x


def _file_of(data, folder, name):
    """A path as it is; examples in memory as a file of JSON lines."""
    if data is None or isinstance(data, (str, os.PathLike)):
        return data
    path = os.path.join(folder, name + ".jsonl")
    with open(path, "w", encoding="utf-8") as out:
        for row in _with_columns(data):
            out.write(json.dumps({key: _plain(value) for key, value in row.items()}, ensure_ascii=False) + "\n")
    return path


def finetune(train=None, *, eval=None, model=None, output=None, task=None, callback=None, device=None, dtype=None,
             threads=None, isa=None, **options):
    """Trains a model on labeled examples, evaluates it and writes the folder `output`; returns its scores.

        sesame.finetune("train.csv", eval="dev.csv", model="sesame-small", task="classify", output="out", epochs=2)

    train, eval: a file, or examples in memory: dicts with columns as of a file, or pairs (text, label).
    task: classify, regress, multi_label, tag, answer, choose, rewrite, continue, embed; None: by the data.
    options: as in `sesame finetune --help`, with underscores: lr, epochs, batch_size, adapter, seed, resume, ...;
        class_weights: "balanced", a file, or a dict; with method, as "logreg" or "setfit", the command of the package does the run, without callback.
    callback: receives a dict after each batch and evaluation: kind ("started", "step", "evaluating", "evaluated",
        "notice"), update, updates, loss, lr, scores, ... False stops the run; a checkpoint is saved, and
        resume=True continues it bit for bit. Ctrl-C does the same and raises KeyboardInterrupt.

    Returns a dict: end ("complete", "early_stopped", "stopped", "was_complete"), output, and what all_results.json
    has: train_loss, eval_accuracy, ..."""
    if train is None and not options.get("resume"):
        raise TypeError("finetune() needs train: a file or examples")
    if output is None:
        raise TypeError("finetune() needs output: the folder to write")
    with tempfile.TemporaryDirectory(prefix="sesame-") as folder:
        files = {"train": _file_of(train, folder, "train"), "eval": _file_of(eval, folder, "eval")}
        if isinstance(weights := options.get("class_weights"), dict):
            options["class_weights"] = os.path.join(folder, "class_weights.json")
            with open(options["class_weights"], "w", encoding="utf-8") as out:
                json.dump(weights, out)
        if options.get("method") is not None:
            compute = {"device": device if device is None else device_name(device), "dtype": dtype_name(dtype), "threads": threads,
                       "isa": isa}
            return _by_method(callback, {"task": task, **files, "model": model, "output": output, **compute, **_joined(options)})
        settings = settings_of({"task": task, **files, "model": model, "output": output, **_joined(options)})
        return shown(_sesame.finetune(get_device(device, threads, dtype, isa), settings, callback))


def _by_method(callback, options):
    """A run of another kind of model (method="logreg", "setfit", ...), which the command starts."""
    if callback is not None:
        raise ValueError(f"method {options['method']!r} has no events: leave out callback")
    return shown({"end": "complete", **command("finetune", quiet=True, **options)[0]})


def pretrain(corpus, *, output, callback=None, device=None, dtype=None, threads=None, isa=None, **options):
    """Pretrains a language model on corpora made by `sesame corpus build`; returns its scores.

        sesame.pretrain("books.ids", tokenizer="tokenizer.json", preset="bert-mini", output="mini", epochs=1)

    corpus: a path, "path:weight", or a list of them. options: as in `sesame pretrain --help`, with underscores:
    objective, preset, config, model, tokenizer, length, lr, steps, ... callback and result: as of finetune."""
    settings = settings_of({"corpus": corpus, "output": output, **_joined(options)})
    return shown(_sesame.pretrain(get_device(device, threads, dtype, isa), settings, callback))


def _joined(options):
    """Lists of options that are one text with "|" between its items."""
    single = {"labels", "choices", "metrics"}
    return {name: "|".join(map(str, value)) if name in single and isinstance(value, (list, tuple)) else value
            for name, value in options.items()}
