"""Tokenizer with the methods of Hugging Face Tokenizers, and callable as in transformers."""

import os

from . import _sesame
from ._model import ModelOutput

_STRATEGIES = {"longest_first": 1, "only_first": 2, "only_second": 3}


def _choice(name, value, known):
    if value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, known))}, not {value!r}")
    return value


class Tokenizer:
    """Texts to tokens and back. Ids and offsets equal Hugging Face Tokenizers.

        tokenizer = Tokenizer.from_pretrained("sesame-small")
        tokenizer.encode("A text.").ids
        tokenizer(["A text.", "Another"], padding=True)["input_ids"]

    One tokenizer encodes one text at a time: calls of other threads wait. It may be pickled, and works in forked
    processes."""

    def __init__(self, path=None, *, json=None, lower=False):
        self._source = {"path": None if path is None else os.fspath(path), "json": json, "lower": bool(lower)}
        self._core = _sesame.TokenizerCore(**self._source)
        self._truncation = None
        self._padding = None

    # ---- opening and saving ----

    @classmethod
    def from_file(cls, path):
        """Opens a tokenizer.json, a vocab.txt, a SentencePiece .model or a model folder."""
        return cls(path)

    @classmethod
    def from_pretrained(cls, identifier):
        """Opens the tokenizer of a model: its folder or its name."""
        return cls(identifier)

    @classmethod
    def from_str(cls, json):
        """Opens the text of a tokenizer.json."""
        return cls(json=json)

    def save(self, path, overwrite=False):
        """Writes a tokenizer.json with the same ids. An existing file is an error unless overwrite is set."""
        self._core.save(path, overwrite)

    def __getstate__(self):
        return {**self._source, "truncation": self._truncation, "padding": self._padding}

    def __setstate__(self, state):
        self.__init__(state["path"], json=state["json"], lower=state["lower"])
        self._truncation, self._padding = state["truncation"], state["padding"]

    # ---- settings ----

    def enable_truncation(self, max_length, stride=0, strategy="longest_first", direction="right"):
        """Truncates encodings to max_length tokens; the rest is in Encoding.overflowing."""
        if max_length < 0 or stride < 0:
            raise ValueError("max_length and stride must not be negative")
        _choice("strategy", strategy, _STRATEGIES)
        _choice("direction", direction, ("left", "right"))
        self._truncation = {"max_length": max_length, "stride": stride, "strategy": strategy, "direction": direction}

    def no_truncation(self):
        """Encodings have all tokens."""
        self._truncation = None

    def enable_padding(self, direction="right", length=None, pad_to_multiple_of=None):
        """Pads encodings to `length`, or to the longest one of a batch, with the tokenizer's padding token."""
        _choice("direction", direction, ("left", "right"))
        self._padding = {"direction": direction, "length": length, "pad_to_multiple_of": pad_to_multiple_of}

    def no_padding(self):
        """Encodings are not padded."""
        self._padding = None

    @property
    def truncation(self):
        """The settings of enable_truncation, or None."""
        return None if self._truncation is None else dict(self._truncation)

    @property
    def padding(self):
        """The settings of enable_padding, or None."""
        return None if self._padding is None else dict(self._padding)

    # ---- encoding ----

    @staticmethod
    def _options(truncation):
        if truncation is None:
            return {}
        return {"truncation": _STRATEGIES[truncation["strategy"]], "max_length": truncation["max_length"],
                "stride": truncation["stride"], "truncate_left": truncation["direction"] == "left",
                "full_overflow": truncation.get("overflow", True)}

    def _encode_all(self, pairs, special, truncation, padding):
        options = {"special": special, **self._options(truncation)}
        encodings = [self._core.encode(text, pair, **options) for text, pair in pairs]
        if padding is None or not encodings:
            return encodings
        length = padding["length"] or max(map(len, encodings))
        if multiple := padding["pad_to_multiple_of"]:
            length = -(-length // multiple) * multiple
        options.update(pad_to=length, pad_left=padding["direction"] == "left")
        return [x if len(x) >= length and not x.overflowing else self._core.encode(text, pair, **options)
                for x, (text, pair) in zip(encodings, pairs)]

    def encode(self, sequence, pair=None, is_pretokenized=False, add_special_tokens=True):
        """An Encoding of a text, or of two. is_pretokenized: texts are lists of words."""
        one = (_text(sequence, is_pretokenized), None if pair is None else _text(pair, is_pretokenized))
        return self._encode_all([one], add_special_tokens, self._truncation, self._padding)[0]

    def encode_batch(self, input, is_pretokenized=False, add_special_tokens=True):
        """Encodings of texts; a tuple is a pair of texts."""
        if isinstance(input, (str, bytes)):
            raise TypeError(f"encode_batch() reads a list of texts, not a single {type(input).__name__}")
        pairs = [_pair(x, is_pretokenized) for x in input]
        return self._encode_all(pairs, add_special_tokens, self._truncation, self._padding)

    def decode(self, ids, skip_special_tokens=True):
        """The text of ids."""
        return self._core.decode(_integers(ids), skip_special_tokens)

    def decode_batch(self, sequences, skip_special_tokens=True):
        """The texts of sequences of ids."""
        return [self.decode(ids, skip_special_tokens) for ids in sequences]

    batch_decode = decode_batch

    def tokenize(self, text, pair=None, add_special_tokens=False):
        """The strings of the tokens."""
        return self._core.encode(text, pair, special=add_special_tokens).tokens

    # ---- as in transformers ----

    def __call__(self, text, text_pair=None, *, add_special_tokens=True, padding=False, truncation=False,
                 max_length=None, stride=0, is_split_into_words=False, pad_to_multiple_of=None,
                 return_token_type_ids=None, return_attention_mask=None, return_overflowing_tokens=False,
                 return_special_tokens_mask=False, return_offsets_mapping=False, return_length=False,
                 return_tensors=None):
        """A dict of input_ids, token_type_ids, attention_mask, ... as the tokenizers of transformers return it; lists
        of lists for a list of texts. return_tensors: "np" or "pt", arrays of NumPy or PyTorch [texts, tokens]."""
        single = isinstance(text, str) or (is_split_into_words and text and isinstance(text[0], str))
        texts = [text] if single else list(text)
        seconds = [None] * len(texts) if text_pair is None else [text_pair] if single else list(text_pair)
        if len(texts) != len(seconds):
            raise ValueError(f"{len(texts)} texts, but {len(seconds)} second texts")
        pairs = [(_text(a, is_split_into_words), None if b is None else _text(b, is_split_into_words))
                 for a, b in zip(texts, seconds)]
        limits = self._call_truncation(truncation, max_length, stride, return_overflowing_tokens)
        pad = self._call_padding(padding, max_length, pad_to_multiple_of)
        encodings = self._encode_all(pairs, add_special_tokens, limits, pad)
        rows = []  # (number of the text, encoding)
        for i, x in enumerate(encodings):
            rows += [(i, x)] + ([(i, part) for part in x.overflowing] if return_overflowing_tokens else [])
        wanted = {"input_ids": "ids"}
        if return_token_type_ids is not False:
            wanted["token_type_ids"] = "type_ids"
        if return_attention_mask is not False:
            wanted["attention_mask"] = "attention_mask"
        if return_special_tokens_mask:
            wanted["special_tokens_mask"] = "special_tokens_mask"
        if return_offsets_mapping:
            wanted["offset_mapping"] = "offsets"
        result = {key: [getattr(x, name) for _, x in rows] for key, name in wanted.items()}
        if return_overflowing_tokens:
            result["overflow_to_sample_mapping"] = [i for i, _ in rows]
        if return_length:
            result["length"] = [len(x) for _, x in rows]
        if return_tensors is not None:
            result = {key: _tensor(key, value, return_tensors) for key, value in result.items()}
        elif single and not return_overflowing_tokens:
            result = {key: value[0] for key, value in result.items()}
        return ModelOutput(result)

    def _call_truncation(self, truncation, max_length, stride, overflow):
        if truncation is False or truncation == "do_not_truncate":
            return None
        strategy = "longest_first" if truncation is True else _choice("truncation", truncation, _STRATEGIES)
        limit = max_length or self._core.traits["max_length"]
        if not limit:
            raise ValueError("truncation needs max_length: the tokenizer's file has none")
        return {"max_length": limit, "stride": stride, "strategy": strategy,
                "direction": self._core.traits["truncation_side"], "overflow": overflow}

    @staticmethod
    def _call_padding(padding, max_length, multiple):
        if padding is False or padding == "do_not_pad":
            return None
        kind = "longest" if padding is True else _choice("padding", padding, ("longest", "max_length"))
        if kind == "max_length" and not max_length:
            raise ValueError('padding "max_length" needs max_length')
        return {"direction": "right", "length": max_length if kind == "max_length" else None,
                "pad_to_multiple_of": multiple}

    # ---- vocabulary ----

    def token_to_id(self, token):
        """Id of a token, or None."""
        return self._core.token_to_id(token)

    def id_to_token(self, id):
        """Token of an id, or None."""
        return self._core.id_to_token(id)

    def convert_tokens_to_ids(self, tokens):
        """Id of a token, or ids of a list of tokens; None for an unknown one."""
        return self.token_to_id(tokens) if isinstance(tokens, str) else [self.token_to_id(x) for x in tokens]

    def convert_ids_to_tokens(self, ids):
        """Token of an id, or tokens of a list of ids."""
        return self.id_to_token(ids) if isinstance(ids, int) else [self.id_to_token(x) for x in ids]

    def get_vocab(self, with_added_tokens=True):
        """Ids by token."""
        _require_added(with_added_tokens)
        return self._core.get_vocab()

    def get_vocab_size(self, with_added_tokens=True):
        """Number of ids."""
        _require_added(with_added_tokens)
        return self._core.traits["vocab_size"]

    @property
    def vocab_size(self):
        """Number of ids."""
        return self._core.traits["vocab_size"]

    def is_special(self, id):
        """Is the id a special token?"""
        return self._core.is_special(id)

    def __len__(self):
        return self.vocab_size

    def __repr__(self):
        return f"<sesame.Tokenizer {self._core.traits['model']} with {self.vocab_size} ids>"


def _require_added(with_added_tokens):
    if not with_added_tokens:
        raise ValueError("with_added_tokens=False is not supported")


def _tensor(name, rows, kind):
    """Rows of integers as an array of NumPy or PyTorch."""
    kind = _choice("return_tensors", getattr(kind, "value", kind), ("np", "pt"))
    if rows and isinstance(rows[0], list) and len(set(map(len, rows))) > 1:
        raise ValueError(f"{name}: texts of different lengths are not an array: set padding=True, and truncation=True for long texts")
    if kind == "np":
        import numpy

        return numpy.asarray(rows, dtype=numpy.int64)
    import torch

    return torch.tensor(rows, dtype=torch.int64)


def _integers(ids):
    if isinstance(ids, int):
        return (ids,)
    return ids.tolist() if hasattr(ids, "tolist") else ids


def _text(x, is_pretokenized):
    if not is_pretokenized:
        if not isinstance(x, str):
            raise TypeError(f"a text must be str, not {type(x).__name__}" +
                            ("; set is_pretokenized for words" if isinstance(x, (list, tuple)) else ""))
        return x
    if isinstance(x, str):
        raise TypeError("with is_pretokenized a text is a list of words, not a str")
    return tuple(x)


def _pair(x, is_pretokenized):
    """(text, second text) of an entry of a batch."""
    nested = isinstance(x, (list, tuple)) and x and isinstance(x[0], (list, tuple))
    is_pair = nested if is_pretokenized else isinstance(x, (list, tuple))
    if not is_pair:
        return _text(x, is_pretokenized), None
    if len(x) != 2:
        raise ValueError(f"a pair has 2 texts, not {len(x)}")
    return _text(x[0], is_pretokenized), _text(x[1], is_pretokenized)
