#!/usr/bin/env python3
"""Compares every method of `sesame explain` with captum and transformers on the small checkpoints of tests/golden.

Needs torch, transformers and captum. Usage: explain_methods.py SESAME, in the root of the repository.
Prints the largest difference of each case, relative to its largest value; tests/test_explain_values.sh holds the values.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers
from captum.attr import IntegratedGradients

IDS = [5, 9, 47, 30, 17, 50]
TEXT = "w5 w9v47 w30 w17v50"
WORDS = [[0], [1, 2], [3], [4, 5]]
MASK = 3
NAN = float("nan")


def units(kind):
    if kind == "piece":
        return [[i] for i in range(len(IDS))]
    return WORDS if kind == "word" else [WORDS[i] + WORDS[i + 1] for i in range(len(WORDS) - 1)]


def spread(groups, values, n):
    """A token's share of its units' values: their mean."""
    shares = [[float(v) / len(u) for u, v in zip(groups, values) if t in u] for t in range(n)]
    return [sum(s) / len(s) if s else NAN for s in shares]


def integrate(score, ends, starts):
    values = IntegratedGradients(score).attribute(ends, starts, n_steps=50, method="gausslegendre")
    return [v.sum(-1)[0].tolist() for v in values]


def gradients(score, inputs):
    inputs = [x.clone().requires_grad_(True) for x in inputs]
    grads = torch.autograd.grad(score(*inputs).sum(), inputs)
    return [g.norm(dim=-1)[0].tolist() for g in grads], [(g * x).sum(-1)[0].tolist() for g, x in zip(grads, inputs)]


def zero_rows(rows, first_column=0):
    def hook(_module, _inputs, output):
        output = output.clone()
        output[:, rows, first_column:] = 0
        return output

    return hook


def distances(module, n, states, first_column=0):
    """Cosine distances [rows, n] of the states without the values of each token."""
    full, columns = states(), []
    for j in range(n):
        handle = module.register_forward_hook(zero_rows([j], first_column))
        columns.append(1 - torch.nn.functional.cosine_similarity(full.double(), states().double(), dim=-1))
        handle.remove()
    return torch.stack(columns, -1)


class Comparison:
    def __init__(self, sesame):
        self.sesame, self.folder = sesame, tempfile.TemporaryDirectory()
        vocabulary = {("w" if i < 40 else "##v") + str(i): i for i in range(71)}
        self.tokenizer = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
                          "model": {"type": "WordPiece", "unk_token": "w2", "continuing_subword_prefix": "##",
                                    "max_input_chars_per_word": 100, "vocab": vocabulary}}

    def open(self, class_name, name):
        self.name, self.path = name, pathlib.Path(self.folder.name) / name
        self.path.mkdir(exist_ok=True)
        for file in pathlib.Path("tests/golden", name).iterdir():
            (self.path / file.name).write_bytes(file.read_bytes())
        (self.path / "tokenizer.json").write_text(json.dumps(self.tokenizer))
        (self.path / "tokenizer_config.json").write_text('{"mask_token": "w3", "unk_token": "w2"}')
        return getattr(transformers, class_name).from_pretrained(f"tests/golden/{name}", attn_implementation="eager").eval()

    def check(self, want, *args, key="values", text=TEXT):
        out = subprocess.run([self.sesame, "explain", "-m", self.path, text, *args, "--json"], check=True, capture_output=True)
        got = [NAN if v is None else v for v in json.loads(out.stdout)["result"][key]]
        top = max(abs(w) for w in want if w == w)
        same = len(got) == len(want) and all((g == g) == (w == w) for g, w in zip(got, want))
        off = max(abs(g - w) for g, w in zip(got, want) if w == w) / (top or 1) if same else NAN
        print(f"{self.name:22} {off:8.1e}  {key} {' '.join(args)}")

    def one_input(self, score, score_embeds, likelihood, embed, pad, read=None):
        """score(ids), score_embeds(x), likelihood(x); read: the position that cannot be deleted."""
        ids = torch.tensor([IDS])
        x, base = embed(ids).detach(), embed(torch.full_like(ids, pad)).detach()
        self.check(integrate(score_embeds, (x,), (base,))[0])
        norms, products = gradients(score_embeds, [x])
        self.check(norms[0], "--method", "gradient")
        self.check(products[0], "--method", "input-gradient")
        for kind in "piece", "word", "ngram":
            masked, deleted, erased = [], [], []
            for u in units(kind):
                other, zero = ids.clone(), x.clone()
                other[0, u], zero[0, u] = MASK, 0
                rest = [i for i in range(len(IDS)) if i not in u]
                masked.append(score(ids) - score(other))
                deleted.append(NAN if read in u else score(ids) - score(ids[:, rest]))
                erased.append((likelihood(x) - likelihood(zero)) / abs(likelihood(x)))
            for values, options in ((masked, ["occlude"]), (deleted, ["occlude", "--occlude", "delete"]), (erased, ["erase"])):
                self.check(spread(units(kind), values, len(IDS)), "--unit", kind, "--method", *options)

    def bert(self):
        m, ids = self.open("BertForSequenceClassification", "bert-classify"), torch.tensor([IDS])
        label = int(m(ids).logits[0].argmax())
        self.one_input(lambda i: m(i).logits[0, label], lambda x: m(inputs_embeds=x).logits[:, label],
                       lambda x: m(inputs_embeds=x).logits.log_softmax(-1)[0, label], m.get_input_embeddings(), m.config.pad_token_id)
        shares = torch.eye(len(IDS)).double()
        for i, layer in enumerate(m.bert.encoder.layer):
            c = distances(layer.attention.self.value, len(IDS), lambda: m(ids, output_hidden_states=True).hidden_states[i + 1][0])
            shares = c / c.sum(-1, keepdim=True) @ shares
        self.check(shares[0].tolist(), "--method", "value-zero")
        values = []
        for u in WORDS:
            handles = [layer.attention.self.value.register_forward_hook(zero_rows(u)) for layer in m.bert.encoder.layer]
            values.append(m(ids).logits[0, label])
            for h in handles:
                h.remove()
        self.check(spread(WORDS, [m(ids).logits[0, label] - v for v in values], len(IDS)), "--method", "value-zero-score")

    def gpt2(self):
        m, ids = self.open("GPT2LMHeadModel", "gpt2-lm"), torch.tensor([IDS])
        label = int(m(ids).logits[0, -1].argmax())
        self.one_input(lambda i: m(i).logits[0, -1, label], lambda x: m(inputs_embeds=x).logits[:, -1, label],
                       lambda x: m(inputs_embeds=x).logits[0, -1].log_softmax(-1)[label], m.get_input_embeddings(),
                       m.config.pad_token_id, read=len(IDS) - 1)
        shares = torch.eye(len(IDS)).double()
        for i, block in enumerate(m.transformer.h):
            c = distances(block.attn.c_attn, len(IDS), lambda: m(ids, output_hidden_states=True).hidden_states[i + 1][0],
                          2 * m.config.n_embd)
            shares = c / c.sum(-1, keepdim=True) @ shares
        self.check(shares[-1].tolist(), "--method", "value-zero")

    def t5(self):
        m, ids, target = self.open("T5ForConditionalGeneration", "t5-v1.0"), torch.tensor([IDS]), [4, 8, 52]
        embed, start, pad = m.get_input_embeddings(), m.config.decoder_start_token_id, m.config.pad_token_id
        for k, token in (0, "w4"), (2, "##v52"):
            options = ["--target", "w4 w8v52", "--token", token]
            read = torch.tensor([[start] + target[:k]])
            base = torch.tensor([[start] + [pad] * k])
            score = lambda x, y: m(inputs_embeds=x, decoder_inputs_embeds=y).logits[:, -1, target[k]]
            ends = embed(ids).detach(), embed(read).detach()
            values = integrate(score, ends, (embed(torch.full_like(ids, pad)).detach(), embed(base).detach()))
            norms, _ = gradients(score, ends)
            for i, key in enumerate(("values", "target_values")):
                self.check(values[i], *options, key=key)
                self.check(norms[i], *options, "--method", "gradient", key=key)
        n, d = len(IDS), read.shape[1]
        run = lambda: m(ids, decoder_input_ids=read, output_hidden_states=True)
        source = torch.eye(n).double()
        for i, block in enumerate(m.encoder.block):
            c = distances(block.layer[0].SelfAttention.v, n, lambda: run().encoder_hidden_states[i + 1][0])
            source = c / c.sum(-1, keepdim=True) @ source
        source = torch.cat([source, torch.zeros(n, d).double()], 1)
        shares = torch.cat([torch.zeros(d, n), torch.eye(d)], 1).double()
        for i, block in enumerate(m.decoder.block):
            own = distances(block.layer[0].SelfAttention.v, d, lambda: run().decoder_hidden_states[i + 1][0])
            cross = distances(block.layer[1].EncDecAttention.v, n, lambda: run().decoder_hidden_states[i + 1][0])
            total = own.sum(-1, keepdim=True) + cross.sum(-1, keepdim=True)
            shares = own / total @ shares + cross / total @ source
        self.check(shares[-1, :n].tolist(), *options, "--method", "value-zero")
        self.check(shares[-1, n:].tolist(), *options, "--method", "value-zero", key="target_values")

    def xlnet(self):
        m, ids, n = self.open("XLNetLMHeadModel", "xlnet-permutation-lm"), torch.tensor([IDS]), len(IDS)
        embed, hidden = m.get_input_embeddings(), [1, 2]
        mask, mapping, base = torch.zeros(1, n, n), torch.zeros(1, 1, n), torch.full_like(ids, m.config.pad_token_id)
        mask[:, :, hidden], mapping[0, 0, hidden[0]], base[0, hidden] = 1, 1, ids[0, hidden]
        score = lambda x: m(inputs_embeds=x, perm_mask=mask.expand(len(x), n, n),
                            target_mapping=mapping.expand(len(x), 1, n)).logits[:, 0, IDS[1]]
        x = embed(ids).detach()
        self.check(integrate(score, (x,), (embed(base).detach(),))[0], "--word", "w9v47")
        self.check(gradients(score, [x])[0][0], "--word", "w9v47", "--method", "gradient")

    def choice(self):
        m, ids = self.open("BertForMultipleChoice", "bert-choice"), torch.tensor([IDS[:4]])
        embed, segments = m.get_input_embeddings(), torch.tensor([[[0, 0, 0, 1]]])
        score = lambda x: m(inputs_embeds=x[:, None], token_type_ids=segments.expand(len(x), 1, 4)).logits[:, 0]
        base = torch.full_like(ids, m.config.pad_token_id)
        self.check(integrate(score, (embed(ids).detach(),), (embed(base).detach(),))[0], "w30", "w20 w33", "--label", "w30", text="w5 w9v47")


if __name__ == "__main__":
    comparison = Comparison(sys.argv[1])
    for case in comparison.bert, comparison.gpt2, comparison.t5, comparison.xlnet, comparison.choice:
        case()
