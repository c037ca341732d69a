"""Model: ids to hidden states, attentions and logits."""

import os

from . import _sesame
from ._devices import Reopened, get_device

_FAMILIES = ("hidden_states", "attentions", "encoder_hidden_states", "encoder_attentions", "decoder_hidden_states",
             "decoder_attentions", "cross_attentions")


class ModelOutput(dict):
    """Outputs by name, also as attributes. hidden_states and attentions are tuples, an Array for each layer."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{name!r} is not one of {', '.join(map(repr, self))}") from None


def _is_sequence(x):
    return isinstance(x, (list, tuple)) or hasattr(x, "tolist")


def _list(x, name):
    """A list, from an array of integers. Masks may be of bool. numpy names another byte order as ">i8"."""
    kind = str(getattr(x, "dtype", "int64"))
    if not ("int" in kind or kind[1:] in ("i2", "i4", "i8", "u2", "u4", "u8") or "bool" in kind and "mask" in name):
        raise TypeError(f"{name} must be integers, not {kind}: convert it, as with astype(\"int64\")")
    return x.tolist()


def _batch(x, name):
    """A tuple of tuples of int, from nested lists or an array of integers."""
    if x is None:
        return None
    if hasattr(x, "tolist"):
        x = _list(x, name)
    if not isinstance(x, (list, tuple)):
        raise TypeError(f"{name} must be a list of ids, or a list of such lists, not {type(x).__name__}")
    if len(x) and not _is_sequence(x[0]):
        x = [x]
    if not all(_is_sequence(row) for row in x):
        raise TypeError(f"{name} must be a list of ids, or a list of such lists, not both")
    return tuple(tuple(_list(row, name) if hasattr(row, "tolist") else row) for row in x)


def _without_padding(batch, mask, name):
    """The tokens that the mask does not hide."""
    if batch is None or mask is None:
        return batch
    if [len(x) for x in batch] != [len(x) for x in mask]:
        raise ValueError(f"the attention mask must have the shape of {name}")
    for keeps in mask:
        if any(b and not a for a, b in zip(keeps, keeps[1:])):
            raise ValueError(f"the attention mask of {name} must hide only positions on the right (padding='right')")
    return tuple(tuple(x for x, keep in zip(row, keeps) if keep) for row, keeps in zip(batch, mask))


class Model(Reopened):
    """A model: a folder with config.json and weights, or the name of one.

        model = Model.from_pretrained("sesame-small")
        out = model(**tokenizer(["A text.", "Another one."], padding=True), output_hidden_states=True)
        out.logits, out.hidden_states[-1]

    Outputs are Arrays of float32, [sequences, tokens, size] as in transformers. Sequences run without padding: outputs
    have the length of the longest one, and shorter ones end in zeros. One model computes one batch at a time:
    calls of other threads wait."""

    def __init__(self, model, *, class_name=None, head=True, device=None, dtype=None, threads=None, isa=None,
                 base_model=None):
        self.name = os.fspath(model)
        self._device_arguments = {"device": device, "dtype": dtype, "threads": threads, "isa": isa}
        self._options = {"class_name": class_name, "no_head": not head, "base_model": base_model}
        self._handle  # opens it

    @classmethod
    def from_pretrained(cls, model, **arguments):
        """Opens a model by path or name. class_name: as "BertForMaskedLM"; head=False: hidden states only."""
        return cls(model, **arguments)

    def _open(self):
        return _sesame.ModelCore(self.name, get_device(**self._device_arguments), **self._options)

    def __call__(self, input_ids, attention_mask=None, token_type_ids=None, decoder_input_ids=None, *,
                 decoder_attention_mask=None, output_hidden_states=False, output_attentions=False, num_choices=0):
        """The outputs of a batch. Ids are lists of int, or arrays of integers; sequences may have different lengths.
        num_choices: consecutive sequences of a question, for multiple choice."""
        mask = _batch(attention_mask, "attention_mask")
        target_mask = _batch(decoder_attention_mask, "decoder_attention_mask")
        ids = _without_padding(_batch(input_ids, "input_ids"), mask, "input_ids")
        segments = _without_padding(_batch(token_type_ids, "token_type_ids"), mask, "token_type_ids")
        target = _without_padding(_batch(decoder_input_ids, "decoder_input_ids"), target_mask, "decoder_input_ids")
        if segments is not None and not any(map(any, segments)):
            segments = None  # all zeros, which some models do not read
        outputs = self._handle.forward(ids, segments, target, hidden_states=output_hidden_states,
                                       attentions=output_attentions, choices=num_choices)
        return self._collect(outputs)

    @staticmethod
    def _collect(outputs):
        result = ModelOutput()
        for name, array in outputs.items():
            family, _, layer = name.rpartition(".")
            if family in _FAMILIES and layer.isdigit():
                result.setdefault(family, []).append((int(layer), array))
            else:
                result[name] = array
        for family in _FAMILIES:
            if family in result:
                result[family] = tuple(array for _, array in sorted(result[family], key=lambda x: x[0]))
        return result

    @property
    def config(self):
        """config.json as a dict."""
        return self._handle.config

    @property
    def info(self):
        """model_type, class_name, head, max_tokens, vocab_size, layers, parameters, dtype."""
        return self._handle.info

    def __repr__(self):
        return f"<sesame.Model {self.info['class_name']} of {self.name!r}>"
