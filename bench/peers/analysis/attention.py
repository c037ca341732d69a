"""Compares `sesame view` and `sesame heads` with transformers, networkx and numpy on tiny random models.

    bench/peers/analysis/attention.py [SESAME]

Needs torch, transformers, tokenizers, networkx, scipy. Prints the largest difference of each comparison and exits
with 1 if one is above its tolerance: attention weights 1e-5, queries and keys 1e-5, rollout 1e-6, flow 1e-6, the
statistics of heads 1e-6, distances between heads 1e-5."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import networkx
import numpy as np

# The models of the test's fixtures, wider.
spec = importlib.util.spec_from_file_location(
    "fixtures", os.path.join(os.path.dirname(__file__), "../../../tests/fixtures/attention.py"))
fixtures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fixtures)

SESAME = sys.argv[1] if len(sys.argv) > 1 else "build/sesame"
TEXT = "the cat sat on the mat , because it was tired ."
TARGET = "a dog saw two birds in the old house ."
failed = False


def report(name, difference, tolerance):
    global failed
    ok = difference <= tolerance
    failed = failed or not ok
    print(f"{'ok    ' if ok else 'FAILED'} {name}: {difference:.2e}, at most {tolerance:.0e}")


def sesame(*arguments):
    done = subprocess.run([SESAME, *arguments, "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"sesame {' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout)


def families(answer):
    return {f["family"]: f for f in answer["result"]["attention"]}


def weights(family):
    return [np.array([h["weights"] for h in layer["heads"]]) for layer in family["layers"]]


def largest(ours, theirs):
    return max(np.abs(a - b[0].detach().double().numpy()).max() for a, b in zip(ours, theirs, strict=True))


def with_residual(layer):
    a = layer.mean(0) + np.eye(layer.shape[1])
    return a / a.sum(-1, keepdims=True)


def check_rollout(name, folder, maps, *options):
    answer = sesame("view", "-m", folder, TEXT, "--mode", "rollout", *options)
    ours = next(iter(families(answer).values()))["layers"]
    r, worst = None, 0
    for layer, got in zip(maps, ours):
        a = with_residual(layer)
        r = a if r is None else a @ r
        worst = max(worst, np.abs(r - np.array(got["rollout"])).max())
    report(f"{name} rollout", worst, 1e-6)


def add_stack(g, maps, name):
    for l, layer in enumerate(maps):
        a = with_residual(layer)
        for i, row in enumerate(a):
            for j, x in enumerate(row):
                g.add_edge((name, l + 1, i), (name, l, j), capacity=float(x))


def check_flow(name, folder, maps, *options):
    answer = sesame("view", "-m", folder, TEXT, "--mode", "flow", *options)
    ours = np.array(next(iter(families(answer).values()))["flow"])
    g = networkx.DiGraph()
    add_stack(g, maps, "e")
    n = len(ours)
    theirs = [[networkx.maximum_flow_value(g, ("e", len(maps), i), ("e", 0, j)) for j in range(n)] for i in range(n)]
    report(f"{name} flow", np.abs(ours - np.array(theirs)).max(), 1e-6)


def check_cross_flow(name, folder, enc, dec, cross):
    """A decoder token takes half from cross attention, half from its self-attention with the residual."""
    options = ("--target", TARGET)
    rolled = families(sesame("view", "-m", folder, TEXT, "--mode", "rollout", *options))
    r = np.eye(enc[0].shape[1])
    for layer in enc:
        r = with_residual(layer) @ r
    t = dec[0].shape[1]
    d, c, worst = np.eye(t), np.zeros((t, len(r))), 0
    for i, (own, other) in enumerate(zip(dec, cross)):
        a = with_residual(own)
        d, c = 0.5 * a @ d, 0.5 * a @ c + 0.5 * other.mean(0) @ r
        worst = max(worst, np.abs(d - np.array(rolled["decoder"]["layers"][i]["rollout"])).max(),
                    np.abs(c - np.array(rolled["cross"]["layers"][i]["rollout"])).max())
    report(f"{name} rollout of decoder and cross", worst, 1e-6)
    g = networkx.DiGraph()
    add_stack(g, enc, "e")
    for l, (own, other) in enumerate(zip(dec, cross)):
        for i, row in enumerate(with_residual(own)):
            for j, x in enumerate(row):
                g.add_edge(("m", l + 1, i), ("d", l, j), capacity=float(x))
            g.add_edge(("d", l + 1, i), ("m", l + 1, i), capacity=0.5)
            for j, x in enumerate(other.mean(0)[i]):
                g.add_edge(("d", l + 1, i), ("e", len(enc), j), capacity=0.5 * float(x))
    ours = families(sesame("view", "-m", folder, TEXT, "--mode", "flow", *options))
    for family, inputs in (("decoder", ("d", t)), ("cross", ("e", len(r)))):
        theirs = [[networkx.maximum_flow_value(g, ("d", len(dec), i), (inputs[0], 0, j)) for j in range(inputs[1])]
                  for i in range(t)]
        report(f"{name} flow of {family}", np.abs(np.array(ours[family]["flow"]) - np.array(theirs)).max(), 1e-6)


def check_neurons(name, folder, *options):
    """Queries, keys, scale and bias give the weights: softmax(q.k*scale + bias)."""
    worst, biased = 0, False
    for family in sesame("view", "-m", folder, TEXT, "--mode", "neuron", *options)["result"]["attention"]:
        for layer in family["layers"]:
            for head in layer["heads"]:
                q, k, w = (np.array(head[x]) for x in ("queries", "keys", "weights"))
                score = q @ k.T * head["scale"]
                worst = max(worst, np.abs(score - np.array(head["scores"])).max() / max(1, np.abs(score).max()))
                if "bias" in head:
                    score, biased = score + np.array(head["bias"]), True
                score = np.where(w > 0, score, -np.inf)
                p = np.exp(score - score.max(-1, keepdims=True))
                worst = max(worst, np.abs(p / p.sum(-1, keepdims=True) - w).max())
    report(f"{name} softmax of q.k*scale{' + bias' if biased else ''}", worst, 1e-5)


def check_words(folder, tok):
    text = "unhappiness , the unhappi cat"
    token = weights(families(sesame("view", "-m", folder, text))["encoder"])
    plain = sesame("view", "-m", folder, text, "--words", "--hide-special")
    ids = tok(text).word_ids()
    units = sorted({w for w in ids if w is not None})
    worst = 0
    for a, got in zip(token, weights(families(plain)["encoder"])):
        merged = np.stack([[[sum(h[i, j] for j, v in enumerate(ids) if v == y) for y in units] for i in range(len(ids))]
                           for h in a])
        rows = np.stack([[h[[i for i, v in enumerate(ids) if v == x]].mean(0) for x in units] for h in merged])
        worst = max(worst, np.abs(rows / rows.sum(-1, keepdims=True) - got).max())
    names = [u["text"] for u in plain["result"]["source"]]
    report("bert words without special tokens", worst if names[0] == "unhappiness" else 1, 1e-6)


def smooth(a):
    return 0.999 * a + 0.001 / a.shape[-1]


def divergence(p, q):
    m = (p + q) / 2
    return 0.5 * (p * np.log(p / m)).sum(-1) + 0.5 * (q * np.log(q / m)).sum(-1)


def check_heads(name, folder, family, top):
    """Statistics of the exported maps, by numpy; rows of special tokens do not count."""
    texts = [TEXT, TARGET, "two dogs !", "unhappiness , it saw the unhappi cat ."]
    path = os.path.join(top, "texts.txt")
    with open(path, "w") as f:
        f.write("\n".join(texts))
    answer = sesame("heads", "-m", folder, path)["result"]
    sums, rows, distance, ceiling = {}, 0, 0, 0
    for text in texts:
        view = sesame("view", "-m", folder, text)
        special = np.array([u["special"] for u in view["result"]["source"]])
        stop = np.array([u["text"] in ".,!" for u in view["result"]["source"]]) & ~special
        a = np.concatenate(weights(families(view)[family]))
        n = len(special)
        plain = np.flatnonzero(~special) if not special.all() else np.arange(n)
        rows += len(plain)
        last = np.zeros(n, bool)
        last[1:] = special[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            h = -np.where(a > 0, a * np.log(a), 0).sum(-1)
        for i in plain:
            ceiling += np.log(i + 1 if family == "decoder" else n)
            k = i + 1 if family == "decoder" else n
            r = smooth(a[:, i, :k])
            distance = distance + divergence(r[:, None], r[None])
            for key, value in {
                "self": a[:, i, i], "next": a[:, i, i + 1] if i + 1 < n else 0, "previous": a[:, i, i - 1] if i else 0,
                "first": a[:, i, 0], "separator": a[:, i, last].sum(-1), "punctuation": a[:, i, stop].sum(-1),
                "special": a[:, i, special].sum(-1), "entropy": h[:, i],
            }.items():
                sums[key] = sums.get(key, 0) + value
    report(f"{name} rows counted", abs(rows - answer["rows"]), 0)
    worst = max(np.abs(np.array([h[key] for h in answer["heads"]]) - value / rows).max() for key, value in sums.items())
    report(f"{name} statistics of heads", worst, 1e-6)
    report(f"{name} largest entropy", abs(ceiling / rows - answer["heads"][0]["max_entropy"]), 1e-9)
    ours = np.array(answer["distance"]["matrix"])
    report(f"{name} distances of heads", np.abs(ours - distance / rows).max(), 1e-6)
    center = np.eye(len(ours)) - 1 / len(ours)
    value, vector = np.linalg.eigh(-0.5 * center @ (ours ** 2) @ center)
    theirs = vector[:, [-1, -2]] * np.sqrt(value[[-1, -2]])
    got = np.array(answer["distance"]["map"])
    theirs *= np.sign((theirs * got).sum(0))
    report(f"{name} map of heads", np.abs(theirs - got).max() / np.abs(got).max(), 1e-6)
    labels = []
    for i in range(len(ours)):
        mean = {key: value[i] / rows for key, value in sums.items()}
        labels.append("next" if mean["next"] > 0.5 else "previous" if mean["previous"] > 0.5
                      else "special" if mean["special"] > 0.6 else "first" if mean["first"] > 0.6
                      else "broad" if mean["entropy"] > 0.9 * ceiling / rows else None)
    report(f"{name} labels", sum(a != h["label"] for a, h in zip(labels, answer["heads"])), 0)


def main():
    with tempfile.TemporaryDirectory() as top:
        for kind in ("bert", "gpt2", "t5", "bart", "modernbert"):
            folder = os.path.join(top, kind)
            tok, model = fixtures.make(folder, kind, 32, 4)
            x = tok(TEXT, return_tensors="pt")
            x = {k: v for k, v in x.items() if k in ("input_ids", "token_type_ids") and (kind == "bert" or k == "input_ids")}
            if kind in ("t5", "bart"):
                labels = tok(TARGET, return_tensors="pt").input_ids
                out = model(**x, labels=labels, output_attentions=True)
                ours = families(sesame("view", "-m", folder, TEXT, "--target", TARGET))
                enc, dec, cross = (weights(ours[f]) for f in ("encoder", "decoder", "cross"))
                report(f"{kind} encoder", largest(enc, out.encoder_attentions), 1e-5)
                report(f"{kind} decoder", largest(dec, out.decoder_attentions), 1e-5)
                report(f"{kind} cross", largest(cross, out.cross_attentions), 1e-5)
                alone = weights(families(sesame("view", "-m", folder, TEXT))["encoder"])
                report(f"{kind} encoder alone", largest(alone, out.encoder_attentions), 1e-5)
                check_neurons(kind, folder, "--target", TARGET)
                check_cross_flow(kind, folder, enc, dec, cross)
                continue
            family = "decoder" if kind == "gpt2" else "encoder"
            ours = weights(families(sesame("view", "-m", folder, TEXT))[family])
            report(f"{kind} {family}", largest(ours, model(**x, output_attentions=True).attentions), 1e-5)
            check_neurons(kind, folder)
            check_rollout(kind, folder, ours)
            check_flow(kind, folder, ours)
            check_heads(kind, folder, family, top)
            if kind == "bert":
                pair = tok(TEXT, TARGET, return_tensors="pt")
                got = weights(families(sesame("view", "-m", folder, TEXT, "--pair", TARGET))[family])
                theirs = model(**{k: pair[k] for k in ("input_ids", "token_type_ids")}, output_attentions=True)
                report("bert pair", largest(got, theirs.attentions), 1e-5)
                check_words(folder, tok)
            if kind == "gpt2":
                full = model.generate(x["input_ids"], max_new_tokens=6, do_sample=False, pad_token_id=0)[0]
                got = families(sesame("view", "-m", folder, TEXT, "--generate", "--max-new-tokens", "6"))[family]
                full = full[: -1] if full[-1] == 0 else full
                theirs = model(full[None], output_attentions=True).attentions
                report("gpt2 generated", largest(weights(got), theirs), 1e-5)
    sys.exit(failed)


main()
