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
