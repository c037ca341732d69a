"""Sesame's tokenizers next to the tokenizers library (Rust), sentencepiece, tiktoken, tokie, gigatoken.

Needs a Python with the peers (missing ones are named and skipped), a C compiler and a built Sesame
(build/libsesame.a). Ids are compared first, line by line; then all take turns, round after round, on the same lines,
producing ids and offsets; sentencepiece, tiktoken and gigatoken give ids alone. The others but
gigatoken get the first part of the lines, so that a round takes about as long for each. With --once all begin
each round anew, with empty caches, and get the same lines, so that no line has been seen before. Printed: MB/s of input, the median of each round's ratio to
Sesame, and how many lines had other ids. One thread is timed by the processor's time, so that others who use the
machine count less, and more threads by the clock.

    python bench/peers/tokenizers.py [--shared ../shared] [--megabytes 20] [--rounds 7] [--threads 1,2] [--once]
"""
import argparse
import glob
import json
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != HERE]  # this file has the name of a peer


# ---- texts ----

def take_bytes(lines, size):
    out, n = [], 0
    for line in lines:
        out.append(line)
        n += len(line.encode()) + 1
        if n >= size:
            break
    return out


def english(shared, size):
    path = os.path.join(shared, "data/pretrain-corpus/sample-2mb.txt")
    lines = [line.rstrip("\n") for line in open(path, encoding="utf-8") if line.strip()]
    packed = os.path.join(shared, "data/pretrain-corpus/corpus.txt.xz")
    if size > 2000000 and os.path.exists(packed):
        import lzma
        with lzma.open(packed, "rt", encoding="utf-8") as f:
            lines = take_bytes((line.rstrip("\n") for line in f if line.strip()), size)
    return take_bytes(lines, size)


def mixed(shared, size):
    """Thirty languages by turns, lines in random order: other words than a few lines again and again would be
    better, but no more are available."""
    files = sorted(glob.glob(os.path.join(shared, "vocab/text/udhr/*.txt")))[::2][:30]
    lines = [line.rstrip("\n") for f in files for line in open(f, encoding="utf-8") if line.strip()]
    rng = random.Random(1)
    return take_bytes((rng.choice(lines) for _ in iter(int, 1)), size)


def no_spaces(shared, size):
    lines = ("".join(line.split()) for line in english(shared, 3 * size))
    return take_bytes((line for line in lines if line), size)


TEXTS = {"English prose": english, "30 languages": mixed, "no spaces": no_spaces}


# ---- contestants: run() encodes all lines and returns nothing; ids(line) gives one line's ----

def megabytes(lines):
    return sum(len(line.encode()) + 1 for line in lines) / 1e6


class Sesame:
    name = "sesame"

    def __init__(self, program, model, path, threads, special, once, ids):
        self.ids = ids
        self.p = subprocess.Popen([program, model, path, str(threads), "special" if special else "plain",
                                   "once" if once else "again", ids], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.p.stdout.readline().strip() != "ready":
            raise RuntimeError("no answer from " + program)

    def seconds(self, clock):
        self.p.stdin.write("go\n")
        self.p.stdin.flush()
        return float(self.p.stdout.readline().split()[2 if clock == "cpu" else 0])

    def close(self):
        self.p.stdin.close()
        self.p.wait()

    def lines(self):
        data = open(self.ids, "rb").read()
        out, line = [], []
        for (i,) in struct.iter_unpack("i", data):
            if i < 0:
                out.append(line)
                line = []
            else:
                line.append(i)
        return out


class Peer:
    """run encodes all lines, one gives a line's ids; fresh makes the two of them anew, caches empty."""

    def __init__(self, name, lines, fresh):
        self.name, self.texts, self.fresh = name, lines, fresh
        self.begin()

    def begin(self):
        self.run, self.one = self.fresh()

    def seconds(self, clock):
        now = time.process_time if clock == "cpu" else time.perf_counter
        start = now()
        self.run(self.texts)
        return now() - start

    def lines(self, part):
        return [self.one(t) for t in part]


def reference(path, lines, threads, special):
    from tokenizers import Tokenizer

    def fresh():
        t = Tokenizer.from_file(path)
        t.no_truncation()
        t.no_padding()
        # encode_batch of one thread still pays for the pool; a plain loop does not.
        batch = (lambda x: t.encode_batch(x, add_special_tokens=special)) if threads > 1 else (
            lambda x: [t.encode(y, add_special_tokens=special) for y in x])
        return batch, lambda x: t.encode(x, add_special_tokens=special).ids
    return Peer("tokenizers (Rust)", lines, fresh)


def sentencepiece(path, lines, threads, special):
    import sentencepiece as spm
    p = spm.SentencePieceProcessor(model_file=path)
    return Peer("sentencepiece", lines, lambda: (lambda x: p.encode(x, num_threads=threads), p.encode))


def tiktoken(folder, lines, threads, special):
    import tiktoken as tk
    vocab = json.load(open(os.path.join(folder, "vocab.json"), encoding="utf-8"))
    byte = {}
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    for b in range(256):
        byte[chr(b) if b in plain else chr(256 + len([x for x in range(b) if x not in plain]))] = b
    ranks = {bytes(byte[c] for c in s): i for s, i in vocab.items() if s != "<|endoftext|>"}
    pattern = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
    e = tk.Encoding("gpt2", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    batch = (lambda x: e.encode_ordinary_batch(x, num_threads=threads)) if threads > 1 else (
        lambda x: [e.encode_ordinary(y) for y in x])
    return Peer("tiktoken", lines, lambda: (batch, e.encode_ordinary))


def tokie(path, lines, threads, special):
    import tokie as tk

    def fresh():
        t = tk.Tokenizer.from_json(path)
        return (lambda x: [t.encode_with_offsets(y, add_special_tokens=special) for y in x],
                lambda x: t.encode(x, add_special_tokens=special).ids)
    return Peer("tokie", lines, fresh)


def gigatoken(path, lines, threads, special):
    """Lines in one buffer, ids in one array: its fastest way, which skips empty lines (there are none)."""
    import gigatoken as gt
    source = gt.BytesSource("\n".join(lines).encode(), separator=b"\n")

    def fresh():
        t = gt.Tokenizer(path)
        return lambda x: t.encode_batch(source, parallel=threads > 1), lambda x: t.encode(x).tolist()
    return Peer("gigatoken (ids)", lines, fresh)


# kind, our file, the peers' files
KINDS = [
    ("WordPiece", "bert-base-uncased/tokenizer.json", [(reference, "tokenizer.json"), (tokie, "tokenizer.json")]),
    ("WordPiece", "bert-base-multilingual-cased/tokenizer.json", [(reference, "tokenizer.json")]),
    ("byte-level BPE", "gpt2/tokenizer.json", [(reference, "tokenizer.json"), (tiktoken, "."),
                                               (tokie, "tokenizer.json"), (gigatoken, "tokenizer.json")]),
    ("byte-level BPE", "roberta-base/tokenizer.json", [(reference, "tokenizer.json")]),
    ("Unigram", "t5-base/tokenizer.json", [(reference, "tokenizer.json"), (sentencepiece, "spiece.model")]),
    ("Unigram", "albert-base-v2/tokenizer.json", [(reference, "tokenizer.json"), (sentencepiece, "spiece.model")]),
    ("Unigram", "t5-base/spiece.model", [(sentencepiece, "spiece.model")]),
    ("BPE", "barthez/tokenizer.json", [(reference, "tokenizer.json")]),
    ("BPE", "hf-transformers-fixtures/test_sentencepiece_bpe.model",
     [(sentencepiece, "test_sentencepiece_bpe.model")]),
]


def contestants(makers, folder, lines, part, threads, special):
    for make, name in makers:
        try:
            yield make(os.path.join(folder, name), lines if make is gigatoken else part, threads, special)
        except Exception as e:  # not installed, or not for this file: continue with the others
            print(f"    ({make.__name__}: {str(e).splitlines()[0] if str(e) else type(e).__name__})")


# ---- the contest ----

def contest(args, program, kind, model, makers, title, lines, threads):
    folder = os.path.dirname(model)
    clock = args.clock or ("wall" if threads > 1 else "cpu")
    part = lines if args.once else take_bytes(lines, int(args.part * 1e6))
    special = False
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "lines.txt")
        with open(path, "w", encoding="utf-8", newline="\n") as f:
            f.write("".join(line + "\n" for line in lines))
        ours = Sesame(program, model, path, threads, special, args.once, os.path.join(tmp, "ids"))
        peers = list(contestants(makers, folder, lines, part, threads, special))
        want = ours.lines()
        differ = {p.name: sum(a != b for a, b in zip(want, p.lines(part))) for p in peers} if threads == 1 else {}
        speed = {p.name: [] for p in [ours, *peers]}
        for _ in range(args.rounds):
            for p in [ours, *peers]:
                if args.once and p is not ours:
                    p.begin()
                speed[p.name].append(megabytes(lines if p is ours else p.texts) / p.seconds(clock))
        ours.close()
    name = os.path.join(os.path.basename(folder), os.path.basename(model))
    print(f"{name} ({kind}), {title}, {threads} thread{'s' if threads > 1 else ''}, {clock} time"
          f"{', seen once' if args.once else ''}")
    for name, rate in speed.items():
        ratio = statistics.median(a / b for a, b in zip(speed["sesame"], rate))
        note = "" if name == "sesame" else f"   Sesame {ratio:6.1f}x"
        if differ.get(name):
            note += f"   ({differ[name]} of {len(part)} lines have other ids)"
        print(f"    {name:20} {statistics.median(rate):9.1f} MB/s   best {max(rate):9.1f}{note}", flush=True)


def libraries(library):
    """Libraries to link, from the pkg-config file."""
    with open(os.path.join(os.path.dirname(library), "sesame.pc"), encoding="utf-8") as f:
        words = [w for line in f if line.startswith("Libs") for w in line.split()]
    return [w for w in words if w.startswith("-l") and w != "-lsesame"] + ["-lm", "-lpthread"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shared", default="../shared")
    p.add_argument("--library", default="build/libsesame.a")
    p.add_argument("--megabytes", type=float, default=20, help="of text for Sesame")
    p.add_argument("--part", type=float, default=1, help="megabytes of it for the others")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--once", action="store_true", help="caches are empty at the begin of each round")
    p.add_argument("--only", default="", help="a part of the tokenizer's name")
    p.add_argument("--text", default="", help="a part of the text's name")
    p.add_argument("--clock", choices=["cpu", "wall"], help="cpu for one thread, wall for more, by default")
    args = p.parse_args()
    counts = [int(x) for x in args.threads.split(",")]
    if len(counts) > 1:  # the thread pool of tokenizers is created once, so each count runs in its own process
        return max(subprocess.call([sys.executable, *sys.argv, "--threads", str(n)]) for n in counts)
    os.environ["RAYON_NUM_THREADS"] = str(counts[0])
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if counts[0] > 1 else "false"
    with tempfile.TemporaryDirectory() as tmp:
        program = os.path.join(tmp, "tokenizers")
        subprocess.check_call(["cc", "-O2", "-Iinclude", os.path.join(HERE, "tokenizers.c"), args.library,
                               *libraries(args.library), "-o", program])
        for kind, name, makers in KINDS:
            model = os.path.join(args.shared, "vocab", name)
            if args.only not in name or not os.path.exists(model):
                continue
            for title, make in TEXTS.items():
                if args.text in title:
                    lines = make(args.shared, int(args.megabytes * 1e6))
                    contest(args, program, kind, model, makers, title, lines, counts[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
