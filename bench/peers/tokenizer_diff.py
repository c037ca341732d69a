"""Sesame's tokenizer against the reference library's, over many lines of mixed languages and random Unicode.

Needs a Python with `tokenizers` installed and a built `sesame`. Every line is encoded by both; ids, tokens,
offsets in code points, word ids, type ids, special-token masks and (where truncation cuts) overflowing parts
must be equal. Prints the first differences and a count; exit status 1 where there are any.

    python bench/peers/tokenizer_diff.py --lines 1000000 ../shared/vocab/bert-base-uncased/tokenizer.json
"""
import argparse
import glob
import json
import os
import random
import string
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

RANGES = [(0x20, 0x7E)] * 6 + [
    (0x00, 0x1F), (0x7F, 0xFF), (0x100, 0x24F), (0x250, 0x36F), (0x370, 0x5FF), (0x600, 0x8FF),
    (0x900, 0xDFF), (0xE00, 0x109F), (0x10A0, 0x13FF), (0x1400, 0x1AFF), (0x1B00, 0x1DFF),
    (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x2BFF), (0x2C00, 0x303F), (0x3040, 0x33FF),
    (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xABFF), (0xAC00, 0xD7FF), (0xE000, 0xFAFF),
    (0xFB00, 0xFFFF), (0x10000, 0x1FFFF), (0x1F300, 0x1FAFF), (0x20000, 0x2FA1F),
    (0xE0000, 0xE01EF), (0x0, 0x10FFFF)]
MARKS = "\u0300\u0301\u0308\u0323\u0327\u0338\u0345\u05b0\u064b\u094d\u0e31\u200d\ufe0f\u3099"
SPACES = " \t\n\r\x0b\x0c\u0085\u00a0\u1680\u2003\u2028\u202f\u3000\u200b\ufeff\u2060"
WORDS = ("the of and to in is was that for it as with on be by at from his her not are but had they you "
         "can't I'll we've she'd don't it's U.S.A. e-mail 3.14 1,000,000 2024-01-01 http://a.b/c?d=e#f @user "
         "#tag "
         "naïve café Straße ǅ ﬁancé Ⅷ ½ №1 İstanbul ΣΟΦΟΣ").split()


def point(rng):
    a, b = rng.choice(RANGES)
    c = rng.randint(a, b)
    return 0x41 if 0xD800 <= c <= 0xDFFF else c


def scribble(rng, specials):
    """A line of anything."""
    out = []
    for _ in range(rng.randint(0, 12)):
        kind = rng.random()
        if kind < 0.35:
            out.append(rng.choice(WORDS))
        elif kind < 0.55:
            out.append("".join(chr(point(rng)) for _ in range(rng.randint(1, 8))))
        elif kind < 0.65:
            a, b = rng.choice(RANGES)
            out.append("".join(chr(c) for c in (rng.randint(a, b) for _ in range(rng.randint(1, 12)))
                               if not 0xD800 <= c <= 0xDFFF))
        elif kind < 0.72:
            out.append(chr(point(rng)) + "".join(rng.choice(MARKS) for _ in range(rng.randint(1, 4))))
        elif kind < 0.8:
            out.append("".join(rng.choice(SPACES) for _ in range(rng.randint(1, 4))))
        elif kind < 0.88 and specials:
            out.append(rng.choice(specials))
        elif kind < 0.9:
            out.append(rng.choice("aé中🙂.-") * rng.randint(1, 150))
        else:
            out.append("".join(rng.choice(string.punctuation) for _ in range(rng.randint(1, 5))))
        out.append(rng.choice(["", " ", " ", " ", "  ", "\t", "\u00a0"]))
    return "".join(out)


def twist(rng, line):
    """A sentence, a little changed."""
    chars = list(line)
    for _ in range(rng.randint(0, 3)):
        at = rng.randint(0, len(chars))
        chars[at:at] = chr(point(rng)) if rng.random() < 0.5 else rng.choice(MARKS + SPACES)
    return "".join(chars)


def corpus(folder):
    lines = []
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.txt"), recursive=True)):
        with open(path, encoding="utf-8", errors="replace") as f:
            lines += [line.rstrip("\n") for line in f if line.strip()]
    return lines


def texts(rng, lines, specials, n):
    for _ in range(n):
        yield twist(rng, rng.choice(lines)) if lines and rng.random() < 0.5 else scribble(rng, specials)


def view(e):
    return [e.ids, e.tokens, [list(o) for o in e.offsets], e.word_ids, e.type_ids, e.special_tokens_mask]


NAMES = ["ids", "tokens", "offsets", "word_ids", "type_ids", "special_tokens_mask"]


def compare(reference, ours):
    """What differs, or None."""
    if "error" in ours:
        return "error: " + ours["error"]
    want = view(reference)
    for name, value in zip(NAMES, want):
        if ours[name] != value:
            return f"{name}: {value} | {ours[name]}"
    parts = ours.get("overflowing", [])
    if len(parts) != len(reference.overflowing):
        return f"{len(reference.overflowing)} overflowing parts | {len(parts)}"
    for a, b in zip(reference.overflowing, parts):
        for name, value in zip(NAMES, view(a)):
            if b[name] != value:
                return f"overflowing {name}: {value} | {b[name]}"
    return None


def encode(tok, item):
    try:
        if "words" in item:
            return tok.encode(item["words"], is_pretokenized=True)
        if "text_pair" in item:
            return tok.encode(item["text"], item["text_pair"])
        return tok.encode(item["text"])
    except BaseException as e:  # the reference panics on some inputs
        return "error: " + str(e)


def shapes(rng, texts_, mixed):
    """Texts as jobs: all plain, or pairs and words among them."""
    source = iter(texts_)
    for text in source:
        kind = rng.random()
        if mixed and kind < 0.4:
            yield {"text": text, "text_pair": next(source, "")}
        elif mixed and kind < 0.6:
            yield {"words": text.split(" ")}
        else:
            yield {"text": text}


def run(args, path, tok, items, options, name):
    """One round: both on the same items; returns the number of differences."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as f:
        for item in items:
            f.write(json.dumps(item) + "\n")
    command = [args.sesame, "tokenize", "--model", path, "--jsonl", "--json"] + options + [f.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        wrong = refused = seen = 0
        for item, line in zip(items, p.stdout):
            seen += 1
            want, got = encode(tok, item), json.loads(line)
            if isinstance(want, str):
                refused += 1
                what = None if "error" in got else f"{want[:80]} | no error"
            else:
                what = compare(want, got)
            if what:
                wrong += 1
                if wrong <= args.show:
                    print(f"  {json.dumps(item)[:400]}\n    {what[:600]}")
    os.unlink(f.name)
    if seen != len(items):
        print(f"  only {seen} of {len(items)} lines came back")
        wrong += len(items) - seen
    told = " ".join([name] + options)
    print(f"{told:90} {len(items)} texts, {refused} refused, {wrong} differ", flush=True)
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tokenizers", nargs="+", help="tokenizer.json files")
    p.add_argument("--sesame", default="build/sesame")
    p.add_argument("--texts", default="../shared/vocab/text",
                   help="folder of .txt files to take sentences from")
    p.add_argument("--lines", type=int, default=20000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", type=int, default=5)
    p.add_argument("--truncation", action="store_true", help="also pairs and words, cut in many ways")
    args = p.parse_args()
    os.environ["RUST_BACKTRACE"] = "0"
    lines, wrong = corpus(args.texts), 0
    for path in args.tokenizers:
        name = os.path.basename(os.path.dirname(path)) or path
        tok = Tokenizer.from_file(path)
        tok.no_truncation()
        tok.no_padding()
        specials = [t.content for t in tok.get_added_tokens_decoder().values()]
        rng = random.Random(args.seed)
        left = args.lines
        while left > 0:
            n = min(left, 50000)
            left -= n
            wrong += run(args, path, tok, list(shapes(rng, texts(rng, lines, specials, n), False)), [], name)
        if not args.truncation:
            continue
        for _ in range(24):
            side = rng.choice(["left", "right"])
            strategy = rng.choice(["longest_first", "only_first", "only_second"])
            most = tok.num_special_tokens_to_add(True) + rng.choice([0, 1, 2, 3, 5, 10, 20, 50])
            stride = rng.choice([0, 0, 1, 2, most // 3])
            items = list(shapes(rng, texts(rng, lines, specials, 400), True))
            options = ["--max-length", str(most), "--stride", str(stride), "--truncation", strategy,
                       "--truncation-side", side]
            try:
                tok.enable_truncation(most, stride=stride, strategy=strategy, direction=side)
            except BaseException as e:
                print(f"{name}: {options}: the reference says {e}")
                continue
            wrong += run(args, path, tok, items, options, name)
            tok.no_truncation()
    print(f"{wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
