"""Sesame's tokenizers against tokenizers and sentencepiece, on mixed languages and random Unicode.

Needs a Python with `tokenizers` (and, for .model files, `sentencepiece`) installed and a built `sesame`.
Every line is encoded by both; ids, tokens, offsets in code points, word ids, type ids, special-token
masks, decoded text and (with truncation) overflowing parts must be equal; of .model files ids and
decoded text. Prints the first differences and a count; exit status 1 if there are any.

    python bench/peers/tokenizer_diff.py --lines 1000000 ../shared/vocab/bert-base-uncased/tokenizer.json
    python bench/peers/tokenizer_diff.py --truncation ../shared/vocab/*/tokenizer.json
    python bench/peers/tokenizer_diff.py ../shared/vocab/*/*.model
    python bench/peers/tokenizer_diff.py --synthetic 1000 --lines 300     # random tokenizer.json files
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

sys.path.append(sys.path.pop(0))  # this folder last: it has a tokenizers.py of its own
from tokenizers import Tokenizer

import tokenizer_files

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
    """The difference, or None."""
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


def encode(tok, item, special=True):
    try:
        if "words" in item:
            return tok.encode(item["words"], item.get("words_pair"), is_pretokenized=True,
                              add_special_tokens=special)
        return tok.encode(item["text"], item.get("text_pair"), add_special_tokens=special)
    except BaseException as e:  # the tokenizers library panics on some inputs
        return "error: " + str(e)


def shapes(rng, texts_, mixed):
    """Texts as jobs: all plain, or pairs and words among them."""
    source = iter(texts_)
    for text in source:
        kind = rng.random()
        if mixed and kind < 0.4:
            yield {"text": text, "text_pair": next(source, "")}
        elif mixed and kind < 0.5:
            yield {"words": text.split(" ")}
        elif mixed and kind < 0.6:
            yield {"words": text.split(" "), "words_pair": next(source, "").split(" ")}
        else:
            yield {"text": text}


class Round:
    """Differences of one round: printed one by one, then counted."""

    def __init__(self, args):
        self.show, self.wrong = args.show, 0

    def differ(self, item, what):
        self.wrong += 1
        if self.wrong <= self.show:
            print(f"  {json.dumps(item)[:400]}\n    {what[:600]}")


def sesame(args, command, model, lines, options):
    """Parsed output of a command for lines of JSON."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as f:
        for line in lines:
            f.write(json.dumps(line) + "\n")
    argv = [args.sesame, command, "--model", model, "--json"] + options + [f.name]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        for line in p.stdout:
            yield json.loads(line)
    os.unlink(f.name)


def run(args, path, tok, items, options, name):
    """One round: both on the same items; returns the number of differences."""
    round_, refused, seen, all_ids = Round(args), 0, 0, []
    for item, got in zip(items, sesame(args, "tokenize", path, items, ["--jsonl"] + options)):
        seen += 1
        want = encode(tok, item, "--no-special" not in options)
        if isinstance(want, str):
            refused += 1
            what = None if "error" in got else f"{want[:80]} | no error"
        elif "error" in got and "is less than the" in got["error"]:
            refused += 1  # the count of the tokenizers library wraps around, and it truncates nothing
            what = None
        else:
            what = compare(want, got)
            all_ids.append([i for i in want.ids if tok.id_to_token(i) is not None])
        if what:
            round_.differ(item, what)
    if seen != len(items):
        print(f"  only {seen} of {len(items)} lines came back")
        round_.wrong += len(items) - seen
    round_.wrong += decode(args, path, tok, all_ids, round_)
    title = " ".join([name] + options)
    print(f"{title:90} {len(items)} texts, {refused} refused, {round_.wrong} differ", flush=True)
    return round_.wrong


def decode(args, path, tok, all_ids, round_):
    """Ids back to text, with and without special tokens."""
    missing = 0
    for keep in (False, True):
        good, want = [], []
        for ids in all_ids:
            try:
                want.append(tok.decode(ids, skip_special_tokens=not keep))
                good.append(ids)
            except BaseException:  # a panic of Strip
                pass
        got = list(sesame(args, "detokenize", path, good, ["--keep-special"] if keep else []))
        for ids, a, b in zip(good, want, got):
            if a != b:
                round_.differ(ids, f"decoded (keep {keep}): {a!r} | {b!r}")
        missing += len(good) - len(got)
    if missing:
        print(f"  {missing} lines were not decoded")
    return missing


def piece_round(args, path, sp, items, name):
    """A .model file against SentencePiece itself."""
    round_, all_ids = Round(args), []
    texts_ = [item["text"] for item in items]
    for item, got in zip(items, sesame(args, "tokenize", path, items, ["--jsonl", "--no-special"])):
        ids = sp.encode(item["text"])
        all_ids.append(ids)
        if "error" in got or got["ids"] != ids:
            round_.differ(item, f"ids: {ids} | {got}")
    for item, ids, got in zip(items, all_ids, sesame(args, "detokenize", path, all_ids, [])):
        if sp.decode(ids) != got:
            round_.differ(item, f"decoded: {sp.decode(ids)!r} | {got!r}")
    round_.wrong += len(texts_) - len(all_ids)
    print(f"{name:90} {len(items)} texts, {round_.wrong} differ", flush=True)
    return round_.wrong


def models(args, lines, path):
    import sentencepiece
    sp = sentencepiece.SentencePieceProcessor(model_file=path)
    rng, wrong, left = random.Random(args.seed), 0, args.lines
    while left > 0:
        n = min(left, 50000)
        left -= n
        items = list(shapes(rng, texts(rng, lines, ["<s>", "</s>", "<unk>", "▁"], n), False))
        wrong += piece_round(args, path, sp, items, path)
    return wrong


def truncations(args, path, tok, rng, lines, specials, name, rounds, each):
    wrong = 0
    for _ in range(rounds):
        side = rng.choice(["left", "right"])
        strategy = rng.choice(["longest_first", "only_first", "only_second"])
        most = tok.num_special_tokens_to_add(True) + rng.choice([0, 1, 2, 3, 5, 10, 20, 50])
        stride = rng.choice([0, 0, 1, 2, most // 3])
        items = list(shapes(rng, texts(rng, lines, specials, each), True))
        options = ["--max-length", str(most), "--stride", str(stride), "--truncation", strategy,
                   "--truncation-side", side]
        if rng.random() < 0.2:
            options.append("--no-special")
        if stride and stride >= most:
            continue
        try:
            tok.enable_truncation(most, stride=stride, strategy=strategy, direction=side)
        except BaseException as e:
            print(f"{name}: {options}: tokenizers reports {e}")
            continue
        wrong += run(args, path, tok, items, options, name)
        tok.no_truncation()
    return wrong


def file(args, lines, path):
    name = os.path.basename(os.path.dirname(path)) or path
    tok = Tokenizer.from_file(path)
    tok.no_truncation()
    tok.no_padding()
    specials = [t.content for t in tok.get_added_tokens_decoder().values()]
    rng, wrong, left = random.Random(args.seed), 0, args.lines
    while left > 0:
        n = min(left, 50000)
        left -= n
        wrong += run(args, path, tok, list(shapes(rng, texts(rng, lines, specials, n), False)), [], name)
    if args.truncation:
        wrong += truncations(args, path, tok, rng, lines, specials, name, 24, 400)
    return wrong


def loads(args, path):
    p = subprocess.run([args.sesame, "tokenize", "-m", path], stdin=subprocess.DEVNULL, capture_output=True,
                       text=True)
    return None if p.returncode == 0 else p.stderr.strip()


def synthetic(args, lines, number, maps):
    """One random tokenizer.json: plain texts, pairs and words, truncation, and the limits it stores."""
    rng = random.Random(f"{args.seed} {number}")
    made = tokenizer_files.make(rng, lines, maps)
    path = os.path.join(args.keep, f"{args.seed}-{number}.json")
    with open(path, "w") as f:
        json.dump(made, f)
    name = f"synthetic {args.seed}-{number}"
    stages = " ".join(str(made[k] and made[k]["type"]) for k in
                      ("normalizer", "pre_tokenizer", "model", "post_processor", "decoder"))
    ours = loads(args, path)
    try:
        tok = Tokenizer.from_file(path)
    except BaseException as e:
        tok, theirs = None, str(e)
    if not tok or ours:
        # a token that normalizes to the empty string: tokenizers finds it everywhere, or panics
        wrong = tok is not None and "reduces token" not in (ours or "")
        print(f"{name} {stages}: {'sesame reports ' + ours if ours else 'loads'}; tokenizers "
              f"{'loads it' if tok else 'reports ' + theirs[:100]}")
        return int(wrong)
    specials = [t["content"] for t in made["added_tokens"]]
    forms = [tok.normalizer.normalize_str(t["content"]) if tok.normalizer else t["content"]
             for t in made["added_tokens"] if t["normalized"]]
    if len(forms) != len(set(forms)):  # tokenizers finds either of two equal ones, at random
        os.unlink(path)
        return 0
    wrong = run(args, path, tok, list(shapes(rng, texts(rng, lines, specials, args.lines // 4), True)),
                ["--stored-limits"], name + " " + stages)
    tok.no_truncation()
    tok.no_padding()
    items = list(shapes(rng, texts(rng, lines, specials, args.lines // 2), True))
    wrong += run(args, path, tok, items, [], name)
    wrong += truncations(args, path, tok, rng, lines, specials, name, 2, args.lines // 8)
    if not wrong:
        os.unlink(path)
    return wrong


def charsmaps(folder):
    """Character maps of the tokenizer.json files in a folder."""
    found = set()
    for path in glob.glob(os.path.join(folder, "**", "tokenizer.json"), recursive=True):
        with open(path) as f:
            steps = [json.load(f).get("normalizer") or {}]
        for step in steps:
            steps += step.get("normalizers", [])
            if step.get("precompiled_charsmap"):
                found.add(step["precompiled_charsmap"])
    return sorted(found)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tokenizers", nargs="*", help="tokenizer.json and .model files")
    p.add_argument("--sesame", default="build/sesame")
    p.add_argument("--texts", default="../shared/vocab/text",
                   help="folder of .txt files to take sentences from")
    p.add_argument("--vocab", default="../shared/vocab", help="folder to take character maps from")
    p.add_argument("--lines", type=int, default=20000, help="texts for each tokenizer")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--show", type=int, default=5)
    p.add_argument("--truncation", action="store_true", help="also pairs and words, with many truncation settings")
    p.add_argument("--synthetic", type=int, default=0, help="this many random tokenizer.json files")
    p.add_argument("--first", type=int, default=0, help="number of the first of them")
    p.add_argument("--keep", default=tempfile.gettempdir(), help="folder for the files that differ")
    args = p.parse_args()
    os.environ["RUST_BACKTRACE"] = "0"
    lines, maps = corpus(args.texts), charsmaps(args.vocab) if args.synthetic else []
    wrong = 0
    for path in args.tokenizers:
        wrong += models(args, lines, path) if path.endswith(".model") else file(args, lines, path)
    for number in range(args.first, args.first + args.synthetic):
        wrong += synthetic(args, lines, number, maps)
    print(f"{wrong} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
