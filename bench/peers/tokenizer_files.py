"""Random tokenizer.json files: every stage and option of the tokenizers library, in any combination.

`make(rng, lines)` gives the text of one. The vocabulary is learned by the library's trainers from what the
file's own normalizer and pre-tokenizer make of `lines`, so that most texts have known pieces, and is then
disturbed. The library may refuse a file.
"""
import json

from tokenizers import Tokenizer, models, trainers

BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
STRINGS = [" ", "  ", "a", "e", "th", "▁", ".", "é", "中", "\n", "-", "'", "İ", "ss", "the",
           "\u0301", "<s>"]
REGEXES = [
    r"\s+", r" ", r"\w+", r"\W", r"[^\w\s]+", r"\d", r"\d{1,3}", r"\p{L}+", r"\p{N}", r"\p{P}",
    r"[a-z]+|[A-Z]", r"\s+(?!\S)|\s+", r"(?i)th|he", r"'s|'t|'re", r"[0-9][0-9][0-9]", r"^.", r".$", r"\b",
    r"[aeiou]", r"(?<=[a-z])e", r"[^\r\n\p{L}\p{N}]?\p{L}+", r"\n+", r"(a|e)+?", r"x*", r"[[:space:]]",
    r"[一-龥぀-ゟ゠-ヿ]+", r"[^\s]+|\s+", r"\p{Lu}", r"\p{Han}", r"(?=[A-Z])", r"[ ]{2,}", r"\.", r"\p{M}",
    r"\S", r".", r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
    r"\s*[\r\n]|\s+(?!\S)|\s+"]
REPLACEMENTS = ["", " ", "▁", "x", "yy", "é", "  ", "<0>", "\u0301", "ß"]
MARKS = ["▁", "▁", "▁", "_", "Ġ", "é"]


def flip(rng):
    return rng.random() < 0.5


def pattern(rng):
    return {"String": rng.choice(STRINGS)} if flip(rng) else {"Regex": rng.choice(REGEXES)}


def some(rng, make, key, kind, deep, charsmaps):
    return {"type": "Sequence", key: [make(rng, charsmaps, deep + 1) for _ in range(rng.randint(0, 4))]}


def normalizer(rng, charsmaps, deep=0):
    kind = rng.choice(["BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip",
                       "Replace", "Replace", "Prepend", "Nmt", "Precompiled", "ByteLevel",
                           "Sequence", "Sequence"])
    if kind == "Sequence" and deep < 2:
        return some(rng, normalizer, "normalizers", kind, deep, charsmaps)
    if kind == "BertNormalizer":
        return {"type": kind, "clean_text": flip(rng), "handle_chinese_chars": flip(rng),
                "strip_accents": rng.choice([None, True, False]), "lowercase": flip(rng)}
    if kind == "Strip":
        return {"type": kind, "strip_left": flip(rng), "strip_right": flip(rng)}
    if kind == "Replace":
        return {"type": kind, "pattern": pattern(rng), "content": rng.choice(REPLACEMENTS)}
    if kind == "Prepend":
        return {"type": kind, "prepend": rng.choice(["▁", " ", "ab", "é", "▁"])}
    if kind == "Precompiled" and charsmaps:
        return {"type": kind, "precompiled_charsmap": rng.choice(charsmaps)}
    if kind in ("Precompiled", "Sequence"):
        kind = "NFKC"
    return {"type": kind}


def metaspace(rng):
    m = {"type": "Metaspace", "replacement": rng.choice(MARKS),
                                        "prepend_scheme": rng.choice(["always", "first", "never"]),
         "split": flip(rng)}
    kind = rng.random()
    if kind < 0.1:
        del m["split"]
    elif kind < 0.2:
        del m["prepend_scheme"]
        m["add_prefix_space"] = flip(rng)
    elif kind < 0.3:
        m["add_prefix_space"] = m["prepend_scheme"] != "never"
        m["str_rep"] = m["replacement"]
    return m


def pre_tokenizer(rng, _=None, deep=0):
    kind = rng.choice(["BertPreTokenizer", "ByteLevel", "ByteLevel", "Metaspace", "Metaspace", "Whitespace",
                       "WhitespaceSplit", "Split", "Split", "Split", "Punctuation", "Digits",
                           "CharDelimiterSplit",
                       "UnicodeScripts", "FixedLength", "Sequence", "Sequence"])
    if kind == "Sequence" and deep < 2:
        return some(rng, pre_tokenizer, "pretokenizers", kind, deep, None)
    if kind == "ByteLevel":
        b = {"type": kind, "add_prefix_space": flip(rng), "trim_offsets": flip(rng),
                                        "use_regex": rng.random() < 0.7}
        if rng.random() < 0.1:
            del b["use_regex"]
        return b
    if kind == "Metaspace":
        return metaspace(rng)
    if kind == "Split":
        return {"type": kind, "pattern": pattern(rng), "behavior": rng.choice(BEHAVIORS), "invert": flip(rng)}
    if kind == "Punctuation":
        return {"type": kind, "behavior": rng.choice(BEHAVIORS)} if rng.random() < 0.9 else {"type": kind}
    if kind == "Digits":
        return {"type": kind, "individual_digits": flip(rng)}
    if kind == "CharDelimiterSplit":
        return {"type": kind, "delimiter": rng.choice([" ", "e", "é", "中", "▁", "-"])}
    if kind == "FixedLength":
        return {"type": kind, "length": rng.randint(1, 7)}
    return {"type": "Whitespace" if kind == "Sequence" else kind}


def learn(rng, kind, lines, norm, pre, specials):
    """A model of a kind, trained in the pipeline that will contain it."""
    alphabet = []
    if kind == "WordPiece":
        model, trainer = models.WordPiece(unk_token="[UNK]"), trainers.WordPieceTrainer
    elif kind == "BPE":
        options = {}
        if rng.random() < 0.25:
            options["end_of_word_suffix"] = rng.choice(["</w>", "@", "é"])
        if rng.random() < 0.25:
            options["continuing_subword_prefix"] = rng.choice(["##", "@", "é"])
        model = models.BPE(unk_token=rng.choice([None, "[UNK]", "[UNK]"]), **options)
        more = dict(options)
        trainer = lambda **k: trainers.BpeTrainer(**k, **more)
        if "ByteLevel" in json.dumps([norm, pre]):
            from tokenizers.pre_tokenizers import ByteLevel
            alphabet = ByteLevel.alphabet()
    elif kind == "Unigram":
        model = models.Unigram()
        trainer = lambda **k: trainers.UnigramTrainer(**k, unk_token="[UNK]")
    else:
        model, trainer = models.WordLevel(unk_token="[UNK]"), trainers.WordLevelTrainer
    shell = json.loads(Tokenizer(model).to_str())
    shell["normalizer"], shell["pre_tokenizer"] = norm, pre
    tok = Tokenizer.from_str(json.dumps(shell))
    options = {"vocab_size": rng.choice([120, 300, 800]), "special_tokens": specials, "show_progress": False}
    if alphabet:
        options["initial_alphabet"] = alphabet
    if kind == "BPE" or kind == "WordPiece":
        options["limit_alphabet"] = rng.choice([30, 100, 400])
    tok.train_from_iterator(rng.sample(lines, min(len(lines), 120)), trainer(**options))
    return json.loads(tok.to_str())["model"]


def model(rng, lines, norm, pre, specials):
    kind = rng.choice(["WordPiece", "BPE", "BPE", "BPE", "Unigram", "Unigram", "WordLevel"])
    try:
        m = learn(rng, kind, lines, norm, pre, specials)
    except BaseException:
        m = learn(rng, "BPE", lines, None, {"type": "Whitespace"}, specials)
    kind = m["type"]
    if kind == "WordPiece":
        m["max_input_chars_per_word"] = rng.choice([100, 100, 5, 1, 20])
        if rng.random() < 0.1:
            m["continuing_subword_prefix"] = rng.choice(["", "@@"])
    if kind == "BPE":
        m["fuse_unk"], m["ignore_merges"], m["byte_fallback"] = flip(rng), flip(rng), rng.random() < 0.4
        if m["byte_fallback"]:
            for b in range(256):
                if rng.random() < 0.98:
                    m["vocab"].setdefault(f"<0x{b:02X}>", len(m["vocab"]))
        if rng.random() < 0.2:
            m["merges"] = [" ".join(p) for p in m["merges"] if " " not in p[0] + p[1]]
        if rng.random() < 0.1:
            m["dropout"] = rng.choice([0.0, None])
        if rng.random() < 0.3:  # ignore_merges finds whole words that no merges lead to
            for line in rng.sample(lines, 3):
                for word in line.split()[:4]:
                    m["vocab"].setdefault(word, len(m["vocab"]))
    if kind == "Unigram":
        m["byte_fallback"] = flip(rng)
        if m["byte_fallback"] and flip(rng):
            m["vocab"] += [[f"<0x{b:02X}>", 0.0] for b in range(256)]
        if rng.random() < 0.1:
            m["unk_id"] = rng.choice([None, 0, 5])
    return m


def content(rng, lines):
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(["<mask>", "[MASK]", "<extra>", "<|end|>", "<a b>", " x", "y ", "é", "É",
                                       "the", "The", "e",
                           "ab", "th", " ", "  ", "中", "\n", "...", "(", "[", "m", "  the", "İ", "ﬁ"])
    words = rng.choice(lines).split() or ["x"]
    return rng.choice(words)[:rng.randint(1, 6)]


def added_tokens(rng, lines, specials, m):
    names = {}
    for s in specials:
        if rng.random() < 0.8:
            names[s] = True
    for _ in range(rng.choice([0, 0, 1, 3, 8])):
        names.setdefault(content(rng, lines), rng.random() < 0.3)
    vocab = m["vocab"] if isinstance(m["vocab"], dict) else {p: i for i, (p, _) in enumerate(m["vocab"])}
    out, following = [], len(vocab)
    for name, special in names.items():
        at = vocab.get(name)
        if at is None:
            at, following = following, following + 1
        out.append({"id": at, "content": name, "single_word": rng.random() < 0.3,
                    "lstrip": rng.random() < 0.3,
                    "rstrip": rng.random() < 0.3,
                                        "normalized": flip(rng) if rng.random() < 0.6 else not special,
                    "special": special})
    out.sort(key=lambda t: t["id"])
    return out


def template(rng, known):
    used = {}

    def special():
        name = rng.choice(list(known))
        if rng.random() < 0.2:
            names = [rng.choice(list(known)) for _ in range(rng.randint(1, 3))]
            used["X"] = {"id": "X", "ids": [known[n] for n in names], "tokens": names}
            name = "X"
        else:
            used[name] = {"id": name, "ids": [known[name]], "tokens": [name]}
        return {"SpecialToken": {"id": name, "type_id": rng.choice([0, 0, 1, 2])}}

    def side(sequences):
        parts = []
        for s in sequences:
            parts += [special() for _ in range(rng.choice([0, 1, 1, 2]))]
            parts.append({"Sequence": {"id": s, "type_id": rng.choice([0, 0, 1, 3])}})
        return parts + [special() for _ in range(rng.choice([0, 1, 1, 2]))]

    single = side("A")
    pair = side("AB" if rng.random() < 0.8 else "BA")
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": used}


def post_processor(rng, known, deep=0):
    kind = rng.choice([None, "TemplateProcessing", "TemplateProcessing", "BertProcessing",
                       "RobertaProcessing",
                       "ByteLevel", "Sequence"])
    if kind == "Sequence" and deep == 0:
        steps = [s for s in (post_processor(rng, known, 1) for _ in range(rng.randint(1, 2))) if s]
        if sum(s["type"] != "ByteLevel" for s in steps) > 1:
            steps = steps[:1]
        return {"type": kind, "processors": steps}
    name = rng.choice(list(known))
    if kind == "TemplateProcessing":
        return template(rng, known)
    if kind == "BertProcessing":
        return {"type": kind, "sep": ["[SEP]", known["[SEP]"]], "cls": [name, known[name]]}
    if kind == "RobertaProcessing":
        return {"type": kind, "sep": ["[SEP]", known["[SEP]"]], "cls": [name, known[name]],
                                        "trim_offsets": flip(rng),
                "add_prefix_space": flip(rng)}
    if kind == "ByteLevel":
        return {"type": kind, "add_prefix_space": flip(rng), "trim_offsets": flip(rng),
                                        "use_regex": flip(rng)}
    return None


def decoder(rng, deep=0):
    kind = rng.choice([None, "WordPiece", "ByteLevel", "Metaspace", "BPEDecoder", "ByteFallback",
                       "Fuse", "Strip",
                       "Replace", "Sequence", "Sequence"])
    if kind == "Sequence" and deep < 2:
        steps = [s for s in (decoder(rng, deep + 1) for _ in range(rng.randint(0, 4))) if s]
        return {"type": kind, "decoders": steps}
    if kind == "WordPiece":
        return {"type": kind, "prefix": rng.choice(["##", "##", "", "@"]), "cleanup": flip(rng)}
    if kind == "Metaspace":
        return metaspace(rng)
    if kind == "BPEDecoder":
        return {"type": kind, "suffix": rng.choice(["</w>", "@", "", "é"])}
    if kind == "Strip":
        return {"type": kind, "content": rng.choice([" ", "▁", "e"]), "start": rng.randint(0, 2),
                                        "stop": rng.randint(0, 2)}
    if kind == "Replace":
        return {"type": kind, "pattern": pattern(rng), "content": rng.choice(REPLACEMENTS)}
    if kind == "ByteLevel":
        return {"type": kind, "add_prefix_space": flip(rng), "trim_offsets": flip(rng),
                                        "use_regex": flip(rng)}
    return {"type": kind} if kind and kind != "Sequence" else None


def make(rng, lines, charsmaps):
    norm = normalizer(rng, charsmaps) if rng.random() < 0.7 else None
    pre = pre_tokenizer(rng) if rng.random() < 0.85 else None
    specials = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    m = model(rng, lines, norm, pre, specials)
    vocab = m["vocab"] if isinstance(m["vocab"], dict) else {p: i for i, (p, _) in enumerate(m["vocab"])}
    known = {s: vocab[s] for s in specials if s in vocab}
    post = post_processor(rng, known) if len(known) == len(specials) else None
    limits = {}
    if flip(rng):
        limits["truncation"] = {"direction": rng.choice(["Left", "Right"]),
                                        "max_length": rng.choice([0, 3, 5, 8, 20, 64]),
                                "strategy": rng.choice(["LongestFirst", "OnlyFirst", "OnlySecond"]),
                                "stride": rng.choice([0, 0, 1, 2])}
    if flip(rng):
        limits["padding"] = {"strategy": rng.choice(["BatchLongest", {"Fixed": rng.choice([0, 4, 12, 40])}]),
                             "direction": rng.choice(["Left", "Right"]),
                                        "pad_to_multiple_of": rng.choice([None, 0, 4, 7]),
                             "pad_id": rng.choice([0, 3, 9999]), "pad_type_id": rng.choice([0, 2]),
                             "pad_token": rng.choice(["[PAD]", "<pad>"])}
    return {"version": "1.0", "truncation": limits.get("truncation"), "padding": limits.get("padding"),
            "added_tokens": added_tokens(rng, lines, specials, m), "normalizer": norm, "pre_tokenizer": pre,
            "post_processor": post, "decoder": decoder(rng), "model": m}
