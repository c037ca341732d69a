#!/usr/bin/env python3
"""Compares `sesame vectors` with gensim, fasttext and word2vec's compute-accuracy.

Usage: vectors_files.py SESAME VECTORS QUESTIONS LISTS [COMPUTE_ACCURACY]

VECTORS: a word2vec binary file; QUESTIONS: questions-words.txt; LISTS: a folder of word pairs;
COMPUTE_ACCURACY: the program of word2vec. Files are exchanged in both directions; counts of analogies must be
equal, correlations within 1e-9. Prints a line per comparison and exits with 1 if one fails.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.pop(0)  # tokenizers.py beside this script is not the library

import numpy as np
from gensim.models import KeyedVectors

FAILED = []


def check(what, ok, detail=""):
    print(f"{'ok    ' if ok else 'FAILED'}  {what}{': ' if detail else ''}{detail}")
    if not ok:
        FAILED.append(what)


def call(*command, **more):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, **more).stdout.decode()


def same(a, b, tolerance=0.0):
    return a.index_to_key == b.index_to_key and np.abs(a.vectors - b.vectors).max() <= tolerance


def read_safetensors(path, name):
    """An f32 tensor, read without the library."""
    data = open(path, "rb").read()
    size = int.from_bytes(data[:8], "little")
    x = json.loads(data[8:8 + size])[name]
    assert x["dtype"] == "F32"
    begin, end = x["data_offsets"]
    return np.frombuffer(data[8 + size + begin:8 + size + end], np.float32).reshape(x["shape"])


def exchange(sesame, vectors, tmp):
    """Files that one writes and the other reads."""
    kv = KeyedVectors.load_word2vec_format(vectors, binary=True, unicode_errors="surrogateescape")

    def convert(source, to, name, *options):
        out = os.path.join(tmp, name)
        call(sesame, "vectors", "convert", "-q", "--overwrite", source, "--to", to, "--output", out, *options)
        return out

    def read(path, **how):
        return KeyedVectors.load_word2vec_format(path, unicode_errors="surrogateescape", **how)

    check("gensim reads word2vec text, six decimals",
          same(kv, read(convert(vectors, "word2vec", "a.txt")), 5.1e-7))
    check("gensim reads word2vec text, full precision",
          same(kv, read(convert(vectors, "word2vec", "a.txt", "--full-precision"))))
    check("gensim reads word2vec binary", same(kv, read(convert(vectors, "word2vec-binary", "a.bin"), binary=True)))
    check("gensim reads .vec", same(kv, read(convert(vectors, "vec", "a.vec"))))
    check("gensim reads GloVe text",
          same(kv, read(convert(vectors, "glove", "a.glove", "--full-precision"), no_header=True)))
    folder = convert(vectors, "safetensors", "a")
    words = open(os.path.join(folder, "vocab.txt"), "rb").read().decode("utf8", "surrogateescape").split("\n")[:-1]
    matrix = read_safetensors(os.path.join(folder, "model.safetensors"), "vectors")
    check("safetensors reads a folder", words == kv.index_to_key and np.array_equal(matrix, kv.vectors))

    def back(path):
        return read(convert(path, "word2vec-binary", "back.bin"), binary=True)

    for name in ("a.bin", "a.vec", "a.glove", "a"):
        check(f"round trip of {name}", same(kv, back(os.path.join(tmp, name))))
    clean = KeyedVectors(kv.vector_size)  # gensim writes UTF-8 only
    keep = [i for i, w in enumerate(kv.index_to_key) if w.encode("utf8", "ignore").decode() == w]
    clean.add_vectors([kv.index_to_key[i] for i in keep], kv.vectors[keep])
    for name, how in (("g.txt", {}), ("g.bin", {"binary": True}), ("g.vec", {}), ("g.glove", {"write_header": False})):
        path = os.path.join(tmp, name)
        clean.save_word2vec_format(path, **how)
        check(f"sesame reads gensim's {name}", same(clean, back(path)))
    path = os.path.join(tmp, "g.kv")
    clean.save(path)
    check("sesame reads gensim's .kv", same(clean, back(path)))
    path = os.path.join(tmp, "h.kv")
    clean.save(path, sep_limit=1000)
    check("sesame reads gensim's .kv with .npy", os.path.exists(path + ".vectors.npy") and same(clean, back(path)))
    return kv


def exchange_fasttext(sesame, kv, tmp):
    """A .vec file as the pretrained vectors of a classifier whose rate is almost zero."""
    import fasttext
    path, data = os.path.join(tmp, "p.vec"), os.path.join(tmp, "train.txt")
    call(sesame, "vectors", "convert", "-q", os.path.join(tmp, "a.bin"), "--to", "vec", "--output", path)
    words = [w for w in kv.index_to_key[:200] if w.isascii() and w.isalpha()][:50]
    with open(data, "w") as f:
        for w in words:
            f.write(f"__label__x {w}\n__label__y {w}\n")
    model = fasttext.train_supervised(data, dim=kv.vector_size, pretrainedVectors=path, lr=1e-12, epoch=1, verbose=0)
    difference = max(np.abs(model.get_word_vector(w) - kv[w]).max() for w in words)
    check("fasttext reads .vec", difference < 1e-6, f"{difference:.3g}")
    path = os.path.join(tmp, "p.bin")
    call(sesame, "vectors", "convert", "-q", os.path.join(tmp, "a.bin"), "--to", "fasttext", "--output", path)
    plain = fasttext.load_model(path)
    check("fasttext reads our .bin", all(np.array_equal(plain.get_word_vector(w), kv[w]) for w in words))
    text = os.path.join(tmp, "text.txt")
    with open(text, "w") as f:
        for i in range(3000):
            f.write(" ".join(words[(i * k + k) % len(words)] for k in range(1, 12)) + "\n")
    models = {"subwords.bin": fasttext.train_unsupervised(text, dim=20, bucket=5000, epoch=1, minn=2, maxn=4, verbose=0),
              "labels.bin": fasttext.train_supervised(data, dim=20, minn=2, maxn=3, bucket=1000, epoch=5, verbose=0)}
    for name in list(models):
        models[name].save_model(os.path.join(tmp, name))
    models["labels.bin"].quantize(input=data)
    models["labels.ftz"] = models["labels.bin"]
    models["labels.ftz"].save_model(os.path.join(tmp, "labels.ftz"))
    models["labels.bin"] = fasttext.load_model(os.path.join(tmp, "labels.bin"))
    for name, m in models.items():
        out = os.path.join(tmp, "from.bin")
        call(sesame, "vectors", "convert", "-q", "--overwrite", os.path.join(tmp, name), "--to", "word2vec-binary",
             "--output", out)
        got = KeyedVectors.load_word2vec_format(out, binary=True)
        known = got.index_to_key == m.get_words() and all(np.array_equal(got[w], m.get_word_vector(w)) for w in got.index_to_key)
        # An unknown word: the nearest words by its subwords.
        word = words[0] + words[1]
        near = json.loads(call(sesame, "vectors", "nearest", os.path.join(tmp, name), word, "--json", "-k", "3"))["nearest"]
        x = m.get_word_vector(word)
        cosines = sorted((-np.dot(x, got[w]) / np.linalg.norm(x) / np.linalg.norm(got[w]), w) for w in got.index_to_key)[:3]
        check(f"sesame reads fasttext's {name}, and unknown words",
              known and max(abs(n["cosine"] + c[0]) for n, c in zip(near, cosines)) < 1e-5, f"{len(got)} words")


def analogies(sesame, vectors, kv, questions, program):
    def counts(*options):
        j = json.loads(call(sesame, "vectors", "eval", "--json", vectors, "--analogies", questions, *options))
        return [(s["section"], s["correct"], s["scored"]) for s in j["analogies"]["sections"]], j["analogies"]

    for limit in (1000, 30000, 300000):
        for options, how in (([], {}), (["--case"], {"case_insensitive": False}),
                             (["--unknown-is-wrong"], {"dummy4unknown": True})):
            _, sections = kv.evaluate_word_analogies(questions, restrict_vocab=limit, **how)
            want = [(s["section"], len(s["correct"]), len(s["correct"]) + len(s["incorrect"])) for s in sections[:-1]]
            got, _ = counts("--rules", "gensim", "--restrict", str(limit), *options)
            check(f"analogies as gensim, {limit} words {' '.join(options)}", got == want,
                  f"{sum(x[1] for x in got)}/{sum(x[2] for x in got)}, gensim {sum(x[1] for x in want)}")
    multiply(kv, questions, counts)
    for limit in (1000, 10000, 30000, 0) if program else ():
        out = call(program, vectors, str(limit), stdin=open(questions))
        want = [(int(a), int(b)) for a, b in re.findall(r"ACCURACY TOP1:.*\((\d+) / (\d+)\)", out)]
        seen = re.search(r"seen / total: (\d+) (\d+)", out)
        last = re.findall(r"Total accuracy: ([\d.]+) %   Semantic accuracy: ([\d.]+) %   Syntactic accuracy: ([\d.]+)", out)[-1]
        got, j = counts("--rules", "word2vec", "--restrict", str(limit))
        check(f"analogies as compute-accuracy, {limit or 'all'} words",
              [(c, max(n, 1)) for _, c, n in got] == want and
              (j["total"]["scored"], j["total"]["questions"]) == tuple(map(int, seen.groups())) and
              all(abs(100 * (j[k]["accuracy"] or 0) - float(x)) < 0.006
                  for k, x in zip(("total", "semantic", "syntactic"), last)),
              f"{sum(x[1] for x in got)}/{sum(x[2] for x in got)}, compute-accuracy {sum(x[0] for x in want)}")


def multiply(kv, questions, counts):
    """3CosMul: evaluate_word_analogies with most_similar_cosmul, for every twentieth question."""
    some = os.path.join(tempfile.gettempdir(), f"questions.{os.getpid()}")
    lines = open(questions).read().splitlines()
    with open(some, "w") as f:
        f.write("\n".join(x for i, x in enumerate(lines) if x.startswith(":") or i % 20 == 0) + "\n")
    before = kv.most_similar
    kv.most_similar = lambda positive, negative, topn, restrict_vocab: kv.most_similar_cosmul(positive, negative, topn)
    _, sections = kv.evaluate_word_analogies(some, restrict_vocab=len(kv))
    kv.most_similar = before
    want = sum(len(s["correct"]) for s in sections[:-1])
    j = json.loads(call(SESAME, "vectors", "eval", "--json", VECTORS, "--analogies", some, "--rules", "gensim",
                        "--method", "3cosmul", "--restrict", "0"))["analogies"]["total"]
    check("3CosMul as gensim", j["correct"] == want, f"{j['correct']}/{j['scored']}, gensim {want}")
    os.remove(some)


def neighbours(sesame, vectors, kv):
    words = [w for w in kv.index_to_key[10:2000:67] if w.isascii()]
    lines = call(sesame, "vectors", "nearest", vectors, "--json", "-k", "10", *words).splitlines()
    worst, equal = 0.0, True
    for w, line in zip(words, lines):
        got, want = json.loads(line)["nearest"], kv.most_similar(w, topn=10)
        worst = max([worst] + [abs(x["cosine"] - y[1]) for x, y in zip(got, want)])
        equal = equal and [x["word"] for x in got] == [y[0] for y in want]
    check("nearest as gensim", equal and worst < 1e-6, f"{len(words)} words, cosines within {worst:.2g}")
    a, b, c = "man", "king", "woman"
    if all(w in kv for w in (a, b, c)):
        for method, fn in (("3cosadd", kv.most_similar), ("3cosmul", kv.most_similar_cosmul)):
            got = json.loads(call(sesame, "vectors", "analogy", vectors, a, b, c, "--json", "--method", method))["nearest"]
            want = fn(positive=[b, c], negative=[a], topn=10)
            check(f"analogy by {method} as gensim", [x["word"] for x in got] == [y[0] for y in want])


def similarities(sesame, vectors, kv, lists):
    for options, how in (([], {}), (["--case"], {"case_insensitive": False}),
                         (["--unknown-as-zero"], {"dummy4unknown": True}), (["--restrict", "5000"], {"restrict_vocab": 5000})):
        rows = json.loads(call(sesame, "vectors", "similarity", "--json", vectors, lists, *options))
        worst, pearson, coverage = 0.0, 0.0, True
        for row in rows:
            path = os.path.join(lists, row["list"])
            p, s, oov = kv.evaluate_word_pairs(path, **how)
            worst = max(worst, abs(row["spearman"] - s[0]))
            pearson = max(pearson, abs(row["pearson"] - p[0]))
            coverage = coverage and abs(100 * (1 - row["known"] / row["pairs"]) - oov) < 1e-9
        check(f"similarity as gensim {' '.join(options)}", worst < 1e-9 and pearson < 1e-6 and coverage,
              f"{len(rows)} lists, rho within {worst:.2g}, Pearson within {pearson:.2g}")


SESAME, VECTORS = sys.argv[1], sys.argv[2]
with tempfile.TemporaryDirectory() as folder:
    model = exchange(SESAME, VECTORS, folder)
    exchange_fasttext(SESAME, model, folder)
neighbours(SESAME, VECTORS, model)
similarities(SESAME, VECTORS, model, sys.argv[4])
analogies(SESAME, VECTORS, model, sys.argv[3], sys.argv[5] if len(sys.argv) > 5 else None)
print(f"{len(FAILED)} failed")
sys.exit(bool(FAILED))
