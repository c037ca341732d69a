#!/usr/bin/env python3
"""Compares `sesame geometry`, `lens` and `neurons` with numpy, scikit-learn and transformers.

Usage: geometry.py SESAME MODEL TEXTS [geometry|lens|neurons...]

MODEL: a folder in the format of transformers (float weights); TEXTS: one text per line. Prints one line per
comparison and exits with 1 if a difference exceeds its tolerance.
"""
import json
import subprocess
import sys
import tempfile

sys.path.pop(0)  # tokenizers.py beside this script is not the library

import numpy as np

FAILED = []


def report(what, difference, tolerance):
    ok = difference <= tolerance
    print(f"{'ok    ' if ok else 'FAILED'}  {what}: {difference:.3g} (at most {tolerance:g})")
    if not ok:
        FAILED.append(what)


def call(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def word_states(sesame, model, texts, layer):
    """[words, width], the word of each row and the number of its text."""
    rows = [line.split("\t") for line in call(
        sesame, "features", "-m", model, "-f", texts, "--layers", str(layer), "--pool", "words", "-o", "tsv"
    ).decode().splitlines()]
    return np.array([[float(x) for x in r[2:]] for r in rows]), [r[1] for r in rows], [int(r[0]) for r in rows]


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def mev(x):
    s = np.linalg.svd(x, compute_uv=False) ** 2
    return s[0] / s.sum()


def cka(x, y, debiased):
    x, y = x - x.mean(0), y - y.mean(0)
    n = len(x)

    def product(a, b):
        p = np.linalg.norm(a.T @ b) ** 2
        if not debiased:
            return p
        ra, rb = (a * a).sum(1), (b * b).sum(1)
        return p - n / (n - 2) * ra @ rb + ra.sum() * rb.sum() / ((n - 1) * (n - 2))

    return product(x, y) / np.sqrt(product(x, x) * product(y, y))


def compare_geometry(sesame, model, texts):
    for debiased in (False, True):
        options = ["--debiased"] if debiased else []
        r = json.loads(call(sesame, "geometry", texts, "-m", model, "--json", *options))["result"]
        pairs = np.array(r["pairs"]).reshape(-1, 2)
        layers, worst = [], {}
        for layer in r["layers"]:
            x, words, text = word_states(sesame, model, texts, layer["layer"])
            layers.append(x[r["cka"]["words"]])
            u = unit(x)
            base = (u[pairs[:, 0]] * u[pairs[:, 1]]).sum(1).mean()
            forms = {}
            for i, w in enumerate(words):
                forms.setdefault(w, []).append(i)
            rows = [np.array(v)[np.arange(min(len(v), 1000)) * len(v) // min(len(v), 1000)]
                    for v in forms.values() if len(v) >= 5]
            selfsim = np.mean([(np.sum(u[v] @ u[v].T) - len(v)) / (len(v) * (len(v) - 1)) for v in rows])
            texts_of = {}
            for i, t in enumerate(text):
                texts_of.setdefault(t, []).append(i)
            intra = np.mean([(u[v] @ unit(x[v].mean(0))).mean() for v in texts_of.values() if len(v) > 1])
            want = {"anisotropy": base, "self_similarity": selfsim, "intra_sentence_similarity": intra,
                    "mev": np.mean([mev(x[v]) for v in rows]), "mev_baseline": mev(x[pairs[:, 0]])}
            for k, v in want.items():
                worst[k] = max(worst.get(k, 0), abs(layer[k] - v))
        for k, v in worst.items():
            report(k, v, 1e-6)
        got = np.array(r["cka"]["matrix"])
        want = np.array([[cka(a, b, debiased) for b in layers] for a in layers])
        report("debiased CKA" if debiased else "CKA", np.abs(got - want).max(), 1e-6)
    word = max((w for w in forms if len(forms[w]) == 3), key=len)
    r = json.loads(call(sesame, "geometry", texts, "-m", model, "--json", "--nearest", word))["result"]["nearest"]
    order = np.argsort(-(u @ u[r["index"]]), kind="stable")
    order = order[order != r["index"]][:5]
    report("nearest neighbours", sum(a["index"] != b for a, b in zip(r["layers"][-1]["words"], order)), 0)


def open_lm(model):
    import torch
    import transformers
    with open(model + "/config.json") as f:
        names = json.load(f)["architectures"]
    m = getattr(transformers, names[0]).from_pretrained(model).eval()
    names = {"mask_token": "[MASK]"} if "ForMaskedLM" in type(m).__name__ else {}
    return torch, m, transformers.PreTrainedTokenizerFast(tokenizer_file=model + "/tokenizer.json", **names)


def head_of(m):
    """The final norm and the language model head."""
    if hasattr(m, "cls"):
        return m.cls
    if hasattr(m, "transformer") and hasattr(m.transformer, "ln_f"):
        return lambda h: m.lm_head(m.transformer.ln_f(h))
    if hasattr(m, "lm_head") and hasattr(m, "roberta"):
        return m.lm_head
    sys.exit(f"{type(m).__name__}: no rule for its head")


def compare_lens(sesame, model, texts):
    torch, m, tokenizer = open_lm(model)
    read, depth, worst = head_of(m), m.config.num_hidden_layers, {}
    masked = tokenizer.mask_token is not None and "ForMaskedLM" in type(m).__name__
    for text in open(texts, encoding="utf-8").read().splitlines()[:20]:
        text = text + " " + tokenizer.mask_token if masked else text
        r = json.loads(call(sesame, "lens", text, "-m", model, "--json", "--top-k", "1"))["result"]
        with torch.no_grad():
            states = m(tokenizer(text, return_tensors="pt").input_ids, output_hidden_states=True).hidden_states
        end = None
        for layer in range(depth, -1, -1):
            h = states[layer][0]
            with torch.no_grad():
                if layer == depth and hasattr(m, "transformer"):
                    logits = m.lm_head(h)
                else:
                    logits = read(h)
            log_p = torch.log_softmax(logits.double(), -1)
            end = log_p if end is None else end
            for x in r["positions"]:
                got, lp, le = x["layers"][layer], log_p[x["position"]], end[x["position"]]
                want = {"probability": lp[x["target_id"]].exp(), "entropy": -(lp.exp() * lp).sum(),
                        "kl": (le.exp() * (le - lp)).sum()}
                for k, v in want.items():
                    worst[k] = max(worst.get(k, 0), abs(got[k] - float(v)))
    for k, v in worst.items():
        report("lens: " + k, v, 1e-4)


def compare_neurons(sesame, model, texts):
    """MODEL is a BERT: activations by a hook on the input of its last projections."""
    from sklearn.metrics import roc_auc_score
    torch, m, tokenizer = open_lm(model)
    layers, caught = m.bert.encoder.layer, {}
    for i, layer in enumerate(layers):
        layer.output.dense.register_forward_hook(lambda _, x, __, i=i: caught.__setitem__(i, x[0][0].double()))
    lines, rows = open(texts, encoding="utf-8").read().splitlines()[:200], []
    for text in lines:
        with torch.no_grad():
            m(tokenizer(text, return_tensors="pt").input_ids)
        rows.append(np.concatenate([caught[i].numpy()[1:-1].mean(0) for i in range(len(layers))]))
    x, y = np.array(rows), np.arange(len(lines)) % 2
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as f:
        f.write("sentence\tlabel\n" + "".join(f"{t}\t{k}\n" for t, k in zip(lines, y)))
        f.flush()
        r = json.loads(call(sesame, "neurons", f.name, "-m", model, "--label", "label", "--positive", "1",
                            "--top", "1000000", "--json"))["result"]
    width, auc, mean = x.shape[1] // len(layers), 0, 0
    for n in r["neurons"]:
        v = x[:, (n["layer"] - 1) * width + n["neuron"]]
        mean = max(mean, abs(n["mean"] - v.mean()))
        auc = max(auc, abs(n["auc"] - roc_auc_score(y, v.astype(np.float32))))
    report("neurons: mean activation", mean, 1e-5)
    print(f"        largest difference of an AUC, of activations that differ in rounding: {auc:.3g}")
    strip = r["strip"]
    with torch.no_grad():
        m(tokenizer(lines[strip["line"] - 2], return_tensors="pt").input_ids)
    best = r["neurons"][0]
    want = caught[best["layer"] - 1].numpy()[:, best["neuron"]]
    report("neurons: activations of a text", np.abs(want - np.array(strip["activations"])).max(), 1e-5)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sesame, model, texts = sys.argv[1:4]
    every = {name[8:]: f for name, f in globals().items() if name.startswith("compare_")}
    for name in sys.argv[4:] or every:
        every[name](sesame, model, texts)
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
