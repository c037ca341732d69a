"""Pipelines with the arguments and results of transformers."""

import collections
import itertools
import warnings

from . import _sesame
from ._devices import Reopened, get_device
from ._results import shown
from ._settings import settings_of

_CHUNK = 256  # items of an iterator that are read before their results are returned
_DERIVED = 8  # settings of calls that are kept open

# Arguments of transformers that change no result: batches have no padding, and long texts are always truncated.
_IGNORED = {"batch_size", "num_workers", "padding", "truncation", "framework", "use_fast"}
# Arguments of transformers that have one value here: the others are refused.
_FIXED = {"clean_up_tokenization_spaces": False, "return_text": True}


def check_sequence(inputs):
    """Refuses sets, tables and arrays of several axes: their rows are not texts."""
    if isinstance(inputs, (str, bytes)):  # a NumPy string, too, which has ndim 0
        return
    if getattr(inputs, "ndim", 1) != 1:  # a DataFrame, whose sequence is the names of its columns, or a single value
        raise TypeError(f"the inputs have the shape {inputs.shape}; select one column, as table['text'] or array[:, 0]")
    if isinstance(inputs, (set, frozenset)):
        raise TypeError("the inputs are a set, which has no order: give a list")


class Pipeline(Reopened):
    """A task with its model; `pipeline` makes one. Call it with a text, a list of texts or an iterator of texts.

    One pipeline computes one call at a time: calls of other threads wait. `copy()` gives another one that shares the
    weights. It may be pickled, and is opened again in a forked process."""

    _text = ("text",)  # keys of an item that is a dict
    _pair = ("text_pair",)
    _list = ()
    _defaults = {}  # settings of the library that the arguments replace

    def __init__(self, task, model=None, *, device=None, dtype=None, threads=None, isa=None, base_model=None,
                 batch_tokens=None, max_seq_len=None, **arguments):
        self.task = task
        self.model = model if model is not None else _default_model(task)
        self._device_arguments = {"device": device, "dtype": dtype, "threads": threads, "isa": isa}
        self._base_model = base_model
        self._limits = {"batch_tokens": batch_tokens, "max_seq_len": max_seq_len}
        tokenizer = arguments.pop("tokenizer", None)
        if tokenizer is not None and tokenizer != self.model:
            raise ValueError("tokenizer: a pipeline reads the tokenizer of its model's folder")
        self._arguments = self._adapt(arguments)
        self._handle  # opens it

    # ---- the library's pipeline ----

    def _open(self):
        self._derived = collections.OrderedDict()
        core = _sesame.Pipeline(self.task, self.model, get_device(**self._device_arguments),
                                settings_of({**self._defaults, **self._arguments}), base_model=self._base_model)
        self._limit(core, self._limits)
        for line in core.warnings.splitlines():
            warnings.warn(line, stacklevel=4)
        return core

    @staticmethod
    def _limit(core, limits):
        for name, value in limits.items():
            if value is not None:
                setattr(core, name, value)

    def _core(self, arguments):
        """The library's pipeline for the arguments of a call; it shares the model."""
        core = self._handle
        limits = {name: arguments.pop(name) for name in ("batch_tokens", "max_seq_len") if name in arguments}
        arguments = self._adapt(arguments)
        if not arguments and not limits:
            return core
        merged = {**self._defaults, **self._arguments, **arguments}
        limits = {**self._limits, **limits}
        key = (settings_of(merged), tuple(limits.items()))
        made = self._derived.pop(key, None)  # single operations: other threads may do the same
        if made is None:
            made = _sesame.Pipeline(self.task, self.model, core.device, key[0], parent=core,
                                    base_model=self._base_model)
            self._limit(made, limits)
        self._derived[key] = made
        while len(self._derived) > _DERIVED:
            try:
                self._derived.popitem(last=False)
            except KeyError:
                break
        return made

    def copy(self):
        """Another pipeline with the same weights, for another thread."""
        other = self.__class__.__new__(self.__class__)
        other.__dict__.update(self.__getstate__())
        other._derived = collections.OrderedDict()
        core = self._handle
        other._handle_value = _sesame.Pipeline(self.task, self.model, core.device, settings_of({**self._defaults, **self._arguments}),
                                               parent=core, base_model=self._base_model)
        self._limit(other._handle_value, self._limits)
        other._handle_pid = self._handle_pid
        return other

    # ---- hooks of a task ----

    def _adapt(self, arguments):
        """Arguments of transformers as settings of the library."""
        for name, only in _FIXED.items():
            if arguments.get(name) not in (None, only):
                raise ValueError(f"{name}={arguments[name]!r} is not supported, only {only!r}")
        arguments = {name: value for name, value in arguments.items() if name not in _IGNORED and name not in _FIXED}
        if "top_k" in arguments and arguments["top_k"] is None:
            arguments["top_k"] = "all"
        return arguments

    def _item(self, x):
        """The library's item (text, pair, list)."""
        if isinstance(x, str):
            return x
        if isinstance(x, dict):
            unknown = set(x) - {*self._text, *self._pair, *self._list}
            if unknown:
                raise ValueError(f"unknown key {sorted(unknown)[0]!r}; {self.task} reads "
                                 f"{', '.join((*self._text, *self._pair, *self._list))}")
            return (_first(x, self._text), _first(x, self._pair), _words(_first(x, self._list)))
        raise TypeError(f"a text must be str or dict, not {type(x).__name__}")

    def _compute(self, core, items, options):
        return core.run(items, **options)

    def _one(self, result):
        """The result of a single text, from that of a list."""
        return result[0]

    def _many(self, results, arguments):
        return results

    # ---- calls ----

    def __call__(self, inputs, **arguments):
        options = {"keep_going": bool(arguments.pop("keep_going", False)), "stream": arguments.pop("streamer", None)}
        if options["stream"] is not None:
            options["stream"] = _stream_function(options["stream"])
            arguments["batch_tokens"] = 1
        return self._dispatch(inputs, options, arguments)

    def _dispatch(self, inputs, options, arguments):
        check_sequence(inputs)
        core = self._core(dict(arguments))
        if isinstance(inputs, (str, dict, bytes)) or not hasattr(inputs, "__iter__"):
            return shown(self._one(self._many(self._compute(core, [self._item(inputs)], options), arguments)))
        if hasattr(inputs, "__next__") or not hasattr(inputs, "__len__"):
            return self._iterate(core, iter(inputs), options, arguments)
        if hasattr(inputs, "tolist"):  # a NumPy array of str
            inputs = inputs.tolist()
        return shown(self._many(self._compute(core, self._items(inputs, 0), options), arguments))

    def _items(self, inputs, first):
        """Items of texts; errors name the position of the text."""
        items = []
        for i, x in enumerate(inputs, first):
            try:
                items.append(self._item(x))
            except (TypeError, ValueError) as error:
                raise type(error)(f"item {i}: {error}") from None
        return items

    def _iterate(self, core, inputs, options, arguments):
        first = 0  # position of the chunk, for errors
        while chunk := list(itertools.islice(inputs, _CHUNK)):
            items = self._items(chunk, first)
            yield from shown(self._many(self._compute(core, items, {**options, "first": first}), arguments))
            first += len(chunk)

    @property
    def labels(self):
        """Labels of the model's classifier, in order."""
        return self._handle.labels

    def __repr__(self):
        return f"<sesame.Pipeline {self.task!r} of {str(self.model)!r}>"


def _first(x, keys):
    return next((x[key] for key in keys if x.get(key) is not None), None)


def _words(x):
    if x is None:
        return None
    return (x,) if isinstance(x, str) else tuple(x)


def _default_model(task):
    canonical = {"sentiment-analysis": "text-classification", "ner": "token-classification"}.get(task, task)
    name = _sesame.default_model(canonical)
    known = (*_CLASSES, "sparse-embed", "next-sentence", "prefer")
    if name is None and task not in known and not task.startswith("translation_"):
        raise ValueError(f"unknown task {task!r}; expected one of {', '.join(sorted(known))}")
    if name is None:
        raise ValueError(f"{task} has no bundled model: name one, as in pipeline({task!r}, 'path/of/a/model')")
    return name


def _stream_function(streamer):
    if callable(streamer):
        return streamer
    if hasattr(streamer, "on_finalized_text"):  # transformers' TextStreamer
        return streamer.on_finalized_text
    raise TypeError("streamer must be a function of a str")


# ---- tasks ----


class FillMask(Pipeline):
    def _adapt(self, arguments):
        if arguments.get("top_k", 1) is None:
            arguments = {name: value for name, value in arguments.items() if name != "top_k"}
        return super()._adapt(arguments)

    def __call__(self, inputs, **arguments):
        outputs = super().__call__(inputs, **arguments)
        return outputs[0] if isinstance(inputs, list) and len(inputs) == 1 else outputs


class TextClassification(Pipeline):
    _defaults = {"top_k": 1}  # as transformers, also for models with several labels

    def _adapt(self, arguments):
        arguments = dict(arguments)
        if (every := arguments.pop("return_all_scores", None)) is not None and "top_k" not in arguments:
            arguments["top_k"] = None if every else 1
        return super()._adapt(arguments)

    def _many(self, results, arguments):
        if {"top_k", "return_all_scores"} & {*arguments, *self._arguments}:
            return results
        return [x[0] if isinstance(x, list) else x for x in results]

    def __call__(self, inputs, **arguments):
        outputs = super().__call__(inputs, **arguments)
        return shown([outputs]) if isinstance(inputs, str) and "top_k" not in arguments else outputs


class TokenClassification(Pipeline):
    _list = ("words",)

    def _adapt(self, arguments):
        arguments = dict(arguments)
        arguments.pop("is_split_into_words", None)
        if (grouped := arguments.pop("grouped_entities", None)) is not None:
            arguments.setdefault("aggregation_strategy", "simple" if grouped else "none")
        strategy = arguments.get("aggregation_strategy")
        if strategy is not None and not isinstance(strategy, str):  # an enum of transformers
            arguments["aggregation_strategy"] = strategy.value
        return super()._adapt(arguments)

    def _item(self, x):
        return (None, None, tuple(x)) if isinstance(x, (list, tuple)) else super()._item(x)

    def __call__(self, inputs, **arguments):
        split = arguments.get("is_split_into_words") and isinstance(inputs, (list, tuple))
        if split and inputs and isinstance(inputs[0], str):
            return super().__call__([inputs], **arguments)[0]
        return super().__call__(inputs, **arguments)


class QuestionAnswering(Pipeline):
    _text = ("question",)
    _pair = ("context",)

    def _adapt(self, arguments):
        arguments = dict(arguments)
        if (top_k := arguments.pop("topk", None)) is not None:
            arguments.setdefault("top_k", top_k)
        if (align := arguments.pop("align_to_words", None)) is not None:
            arguments["no_align_to_words"] = not align
        return super()._adapt(arguments)

    def _item(self, x):
        item = super()._item(x)
        if isinstance(item, str) or not item[0] or not item[1]:
            raise ValueError("question-answering reads a question and a context, neither of them empty")
        return item

    def __call__(self, *inputs, question=None, context=None, **arguments):
        if len(inputs) == 2 and all(isinstance(x, str) for x in inputs):
            inputs = {"question": inputs[0], "context": inputs[1]}
        elif len(inputs) == 1:
            inputs = inputs[0]
        elif inputs:
            inputs = list(inputs)
        elif isinstance(question, str) and isinstance(context, str):
            inputs = {"question": question, "context": context}
        elif question is not None and context is not None and not isinstance(question, str):
            contexts = itertools.repeat(context) if isinstance(context, str) else list(context)
            if not isinstance(context, str) and len(contexts) != len(question):
                raise ValueError("Questions and contexts don't have the same lengths")
            inputs = [{"question": q, "context": c} for q, c in zip(question, contexts)]
        else:
            raise ValueError("question-answering reads question=... and context=...")
        outputs = super().__call__(inputs, **arguments)
        return outputs[0] if isinstance(inputs, list) and len(inputs) == 1 else outputs


class ZeroShot(Pipeline):
    _text = ("text", "sequence")
    _pair = ()
    _list = ("candidate_labels",)

    def __call__(self, sequences, candidate_labels=None, **arguments):
        check_sequence(sequences)
        if isinstance(candidate_labels, str):
            candidate_labels = [label.strip() for label in candidate_labels.split(",") if label.strip()]
        if candidate_labels is not None:
            labels = tuple(candidate_labels)
            if not labels:
                raise ValueError("You must include at least one label and at least one sequence.")
            if isinstance(sequences, str):
                return super().__call__({"text": sequences, "candidate_labels": labels}, **arguments)
            sequences = [{"text": x, "candidate_labels": labels} if isinstance(x, str) else x for x in sequences]
        return super().__call__(sequences, **arguments)


class FeatureExtraction(Pipeline):
    """Nested lists as in transformers, [1, tokens, size] for each text; with return_tensors=True arrays."""

    def __init__(self, *operands, return_tensors=False, **arguments):
        self._return_tensors = return_tensors
        super().__init__(*operands, **arguments)

    def _adapt(self, arguments):
        arguments = dict(arguments)
        arguments.pop("return_tensors", None)
        if arguments.pop("tokenize_kwargs", None):
            raise ValueError("tokenize_kwargs is not supported; max_seq_len sets the maximum length")
        return super()._adapt(arguments)

    def _compute(self, core, items, options):
        options.pop("stream", None)
        return core.run(items, arrays=True, **options)

    def _many(self, results, arguments):
        if arguments.get("return_tensors", self._return_tensors):
            return results
        return [[x.tolist()] if isinstance(x, _sesame.Array) else x for x in results]


class Embed(Pipeline):
    """One vector for each text: an Array [size], of a list of texts [texts, size]."""

    _pair = ()

    def _compute(self, core, items, options):
        if options.get("keep_going"):
            raise ValueError("keep_going is not supported: vectors of all texts are one array")
        return core.vectors(items, None, options.get("first", 0))


class Features(Pipeline):
    _pair = ()
    _list = ("words",)

    def _item(self, x):
        return (None, None, tuple(x)) if isinstance(x, (list, tuple)) else super()._item(x)

    def _compute(self, core, items, options):
        options.pop("stream", None)
        return core.run(items, arrays=True, **options)

    def _many(self, results, arguments):
        pool = arguments.get("pool", self._arguments.get("pool", "cls"))
        if pool in ("words", "tokens"):
            return results
        return [x[0] if isinstance(x, _sesame.Array) else x for x in results]


class MultipleChoice(Pipeline):
    _list = ("choices",)


class Similarity(Pipeline):
    _text = ("source_sentence",)
    _pair = ()
    _list = ("sentences",)


class Rerank(Pipeline):
    _text = ("query",)
    _pair = ()
    _list = ("texts",)


class Generation(Pipeline):
    def _adapt(self, arguments):
        arguments = dict(arguments)
        stop = arguments.pop("stop_sequence", None)
        if stop is not None:
            arguments.setdefault("stop_strings", stop)
        return super()._adapt(arguments)


class Text2Text(Generation):
    def __call__(self, inputs, **arguments):
        outputs = super().__call__(inputs, **arguments)
        if isinstance(inputs, list) and all(isinstance(x, list) and len(x) == 1 for x in outputs):
            return shown([x[0] for x in outputs])
        return outputs


_CLASSES = {
    "fill-mask": FillMask,
    "text-classification": TextClassification,
    "sentiment-analysis": TextClassification,
    "token-classification": TokenClassification,
    "ner": TokenClassification,
    "question-answering": QuestionAnswering,
    "zero-shot-classification": ZeroShot,
    "feature-extraction": FeatureExtraction,
    "features": Features,
    "embed": Embed,
    "similarity": Similarity,
    "multiple-choice": MultipleChoice,
    "rerank": Rerank,
    "text-generation": Generation,
    "text2text-generation": Text2Text,
    "summarization": Text2Text,
    "translation": Text2Text,
}


def pipeline(task, model=None, *, device=None, dtype=None, torch_dtype=None, threads=None, **arguments):
    """A pipeline for a task, as transformers.pipeline makes one.

    task: "fill-mask", "text-classification", "token-classification" ("ner"), "question-answering",
        "zero-shot-classification", "feature-extraction", "text-generation", "text2text-generation", "summarization",
        "translation" ("translation_xx_to_yy"); and Sesame's "embed", "sparse-embed", "similarity", "rerank", "features",
        "multiple-choice", "next-sentence", "prefer".
    model: folder or name of a model; None: the bundled one of the task.
    device: "cpu", "cuda", "cuda:0", or a number as in transformers; or a Device.
    dtype: of dense weights: "f32", "f16", "bf16", "int8", or "auto": as they are; "bf16" also of the operands of products,
        where the processor has bf16 instructions.
    threads: CPU threads; None: one per core, or as set by set_num_threads.
    arguments: options of the task, named as in transformers and in `sesame TASK --help`."""
    if not isinstance(task, str):
        raise TypeError(f"task must be str, not {type(task).__name__}")
    dtype = torch_dtype if dtype is None else dtype
    made = Text2Text if task.startswith("translation_") else _CLASSES.get(task, Pipeline)
    return made(task, model, device=device, dtype=dtype, threads=threads, **arguments)
