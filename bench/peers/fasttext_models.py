#!/usr/bin/env python3
"""Compares fastText models with the package fasttext and its program, in both directions.

    python3 bench/peers/fasttext_models.py BUILD [--program fasttext]

Needs the package fasttext (0.9.3) and numpy. With --program (built with -O2 -ffp-contract=off) the bytes of models that
`sesame vectors train --exact fasttext --model supervised` and `vectors quantize` write are compared too. The texts are made here.
fastText leaves most rows uninitialized on one thread; a fresh process has zeros there if the matrix is large (over 128 KB).
"""
import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

import fasttext
import numpy as np

fasttext.FastText.eprint = lambda *a: None
parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("--program")
args = parser.parse_args()
sesame = os.path.join(args.build, "sesame")
tmp = tempfile.mkdtemp()
done = {"same": 0, "different": 0}


def path(name):
    return os.path.join(tmp, name)


def check(what, ok):
    done["same" if ok else "different"] += 1
    if not ok:
        print("different:", what)


def run(*a, text=None):
    return subprocess.run([sesame, "vectors", *a], input=text, capture_output=True, text=True, check=True).stdout


def make_texts(name, lines, labels, seed):
    rng = random.Random(seed)
    with open(path(name), "w") as f:
        for _ in range(lines):
            c = rng.randrange(labels)
            words = [f"w{(c * 7 + rng.randrange(30)) % 400}" if rng.random() < 0.4 else f"v{rng.randrange(900)}é" for _ in range(9)]
            more = f" __label__{rng.randrange(labels)}" if rng.random() < 0.1 else ""
            f.write(f"__label__{c}{more} {' '.join(words)}\n")


make_texts("few.txt", 1500, 4, 1)
make_texts("many.txt", 3000, 300, 2)
with open(path("few.txt")) as f:
    lines = [" ".join(w for w in line.split() if not w.startswith("__label__")) for line in f][:200]


def same_model(what, file, probabilities=True):
    """The package and Sesame read a file alike: predictions, scores and vectors."""
    peer = fasttext.load_model(path(file))
    for k in (1, 3):
        ours = run("predict", path(file), "-", "-k", str(k), text="\n".join(lines) + "\n").splitlines()
        labels, scores = peer.predict(lines, k=k)
        theirs = [" ".join(f"{l} {min(s, 9):.6g}" for l, s in zip(*row)) for row in zip(labels, scores)]
        a = [[x.split()[0::2], np.array(x.split()[1::2], float).clip(max=1)] for x in ours]
        b = [[x.split()[0::2], np.array(x.split()[1::2], float)] for x in theirs]
        check(f"{what}: predictions, k = {k}",
              len(a) == len(b) and all(x[0] == y[0] and np.allclose(x[1], y[1], atol=2e-5) for x, y in zip(a, b)))
    n, precision, recall = peer.test(path("few.txt"))
    ours = run("test", path(file), path("few.txt")).split()
    check(f"{what}: scores", ours == ["N", str(n), "P@1", f"{precision:.3g}", "R@1", f"{recall:.3g}"])


# Their files, read by Sesame
for i, (loss, ngrams, maxn) in enumerate(itertools.product(("softmax", "ns", "hs", "ova"), (1, 2), (0, 3))):
    m = fasttext.train_supervised(path("few.txt"), dim=16, loss=loss, wordNgrams=ngrams, minn=2 if maxn else 0, maxn=maxn,
                                  bucket=5000, epoch=3, thread=12, verbose=0)
    m.save_model(path("peer.bin"))
    same_model(f"their {loss}, {ngrams}, {maxn}", "peer.bin")
    if i % 3 == 0:
        m.quantize(path("few.txt"), qnorm=i % 2 == 0, cutoff=600 if ngrams > 1 else 0, retrain=ngrams > 1, verbose=0)
        m.save_model(path("peer.ftz"))
        same_model(f"their quantized {loss}, {ngrams}, {maxn}", "peer.ftz")
# Our files, read by them
for loss, ngrams, maxn in itertools.product(("softmax", "ns", "hs", "ova"), (1, 2), (0, 3)):
    run("supervised", "-q", "--overwrite", "-o", path("ours.bin"), "--dim", "16", "--loss", loss, "--wordNgrams", str(ngrams),
        "--minn", "2" if maxn else "0", "--maxn", str(maxn), "--bucket", "5000", "--epoch", "3", path("few.txt"))
    same_model(f"our {loss}, {ngrams}, {maxn}", "ours.bin")
    run("quantize", "-q", "--overwrite", "-o", path("ours.ftz"), "--qnorm", path("ours.bin"))
    same_model(f"our quantized {loss}, {ngrams}, {maxn}", "ours.ftz")
# Our word vectors with n-grams: the same vectors of known and unknown words, of their .vec too
unknown = ["w", "w399999", "vé", "ünknown", "日本語", "</s>"]
for model, loss, maxn in itertools.product(("skipgram", "cbow"), ("ns", "hs"), (0, 4)):
    options = ["--model", model, "--loss", loss, "--dim", "17", "--min-count", "2", "--bucket", "3000", "--minn", "2", "--maxn", str(maxn)]
    run("train", "-q", "--overwrite", "--format", "fasttext", *options, "-o", path("ours.bin"), path("few.txt"))
    run("train", "-q", "--overwrite", "--format", "vec", *options, "-o", path("ours.vec"), path("few.txt"))
    peer = fasttext.load_model(path("ours.bin"))
    with open(path("ours.vec")) as f:
        rows = [line.split() for line in f][1:]
    check(f"our {model}, {loss}, {maxn}: words", peer.words == [r[0] for r in rows])
    check(f"our {model}, {loss}, {maxn}: vectors",
          all(np.array_equal(peer.get_word_vector(r[0]), np.array(r[1:], np.float32)) for r in rows))
    with open(path("ours.bin"), "rb") as x:
        before = x.read()
    peer.save_model(path("again.bin"))
    with open(path("again.bin"), "rb") as y:
        check(f"our {model}, {loss}, {maxn}: bytes of the package's copy", before == y.read())
    matrix = np.array([peer.get_word_vector(r[0]) for r in rows])
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    for word in unknown if maxn else ():
        x = peer.get_word_vector(word)
        if not x.any():
            continue
        best = json.loads(run("nearest", "--json", "-k", "1", path("ours.bin"), word))["nearest"][0]["cosine"]
        check(f"our {model}, {loss}, {maxn}: nearest to {word}", abs(best - float((matrix @ x).max() / np.linalg.norm(x))) < 1e-5)



def program(*a):
    subprocess.run([args.program, *a, "-thread", "1", "-verbose", "0"], check=True, capture_output=True)


def same_bytes(what, a, b):
    with open(path(a), "rb") as x, open(path(b), "rb") as y:
        check(what, x.read() == y.read())


def to_program(options):
    return [o[1:] if o.startswith("--") else o for o in options.split()]


# Bytes of the program
for file, options in ([("few.txt", f"--dim {32 if 'bucket' in o else 128} --loss {l} {o}") for l, o in itertools.product(
        ("softmax", "ns", "hs", "ova"), ("", "--wordNgrams 2 --bucket 4000", "--minn 2 --maxn 4 --bucket 3000",
                                                "--minCount 3 --seed 5 --lr 0.5", "--seed -9 --epoch 2"))] +
                      [("many.txt", f"--dim 24 --loss {l} --wordNgrams 2 --bucket 2500 --epoch 2") for l in ("softmax", "hs", "ns", "ova")]
                      if args.program else []):
    program("supervised", "-input", path(file), "-output", path("exact"), *to_program(options))
    run("train", "-q", "--exact", "fasttext", "--model", "supervised", "--binary", "--overwrite", "-o", path("ours.bin"),
        *options.split(), path(file))
    same_bytes(f"{file} {options}", "exact.bin", "ours.bin")
    for q in ("", "--qnorm", "--cutoff 900 --dsub 3", "--cutoff 700 --qnorm --retrain --epoch 2") if "wordNgrams" in options else ():
        q += " --qout" if file == "many.txt" else ""
        program("quantize", "-output", path("exact"), "-input", path(file), *to_program(q))
        run("quantize", "-q", "--overwrite", "-o", path("ours.ftz"), path("exact.bin"),
            *q.replace("--retrain", f"--retrain {path(file)}").split())
        same_bytes(f"{file} {options}, quantize {q}", "exact.ftz", "ours.ftz")
print(f"{done['same']} comparisons are the same, {done['different']} differ")
sys.exit(done["different"] > 0)
