"""Erasure check of attributions: removes the ten words that speak most for the predicted label, and ten random ones.

usage: erasure.py SESAME SST-2.tsv [SENTENCES] [METHOD]

Reads sentences of at least 20 words from a TSV file with a column "sentence". Needs only Python's standard library."""
import csv
import json
import random
import subprocess
import sys

REMOVED = 10


def classify(sesame, texts):
    lines = "\n".join(" ".join(t.split()) for t in texts)
    out = subprocess.run(
        [sesame, "text-classification", "--json", "--top-k", "all", "-"], input=lines, capture_output=True, text=True, check=True
    )
    return [{row["label"]: row["score"] for row in json.loads(line)} for line in out.stdout.splitlines()]


def explain(sesame, text, label, method):
    out = subprocess.run(
        [sesame, "explain", "--json", "--method", method, "--label", label, "--", text], capture_output=True, text=True, check=True
    )
    words = json.loads(out.stdout)["result"]["words"]
    return [w for w in words if w["end"] > w["start"]]


def without(text, words):
    data = text.encode()
    for w in sorted(words, key=lambda w: -w["start"]):
        data = data[: w["start"]] + data[w["end"] :]
    return data.decode()


def main():
    sesame, path = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    method = sys.argv[4] if len(sys.argv) > 4 else "ig"
    with open(path, encoding="utf-8") as file:
        texts = [r["sentence"].strip() for r in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]
    texts = [t for t in texts if len(t.split()) >= 20][:count]
    before = classify(sesame, texts)
    label = [max(b, key=b.get) for b in before]
    rng = random.Random(42)
    kept = {"most important": [], "random": []}
    for text, name in zip(texts, label):
        words = explain(sesame, text, name, method)
        kept["most important"].append(without(text, sorted(words, key=lambda w: -w["value"])[:REMOVED]))
        kept["random"].append(without(text, rng.sample(words, min(REMOVED, len(words)))))
    print(f"{len(texts)} sentences, method {method}, {REMOVED} words removed")
    print(f"mean probability of the label before: {sum(b[n] for b, n in zip(before, label)) / len(texts):.3f}")
    for which, shorter in kept.items():
        after = classify(sesame, shorter)
        mean = sum(a[n] for a, n in zip(after, label)) / len(texts)
        flipped = sum(max(a, key=a.get) != n for a, n in zip(after, label))
        print(f"without the {which} words: {mean:.3f}, label changed in {flipped} of {len(texts)}")


main()
