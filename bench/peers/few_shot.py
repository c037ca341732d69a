"""SetFit and PET by other libraries, to compare with `sesame finetune --method setfit|pet` on the same model, texts and
seeds.

Usage: python3 -P few_shot.py setfit|setfit-twin|pet|finetune MODEL TRAIN EVAL [--option VALUE]; prints the accuracy on EVAL,
with the head of a file (--head) and with that of transformers. MODEL is a folder for transformers (setfit: for
sentence-transformers), TRAIN and EVAL are tables with the columns text and label. SEED in the names of files: a seed of --seeds.
Weights, optimizer, schedule and losses are the same as in Sesame; examples, dropout, masked tokens and pairs have another order. `sesame finetune --steps 1` writes the first head of a seed: the first update of a warmup has a learning rate
of 0. setfit needs the packages setfit, sentence-transformers and datasets; setfit-twin, its algorithm, and the others need
torch, transformers and safetensors."""
import argparse
import csv
import json
import math
import random

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from transformers import (AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification, PreTrainedTokenizerFast,
                          get_linear_schedule_with_warmup)

LENGTH = 128


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


class Encoder:
    """Texts as padded tensors. Patterns: tokens of the text are removed, not of the pattern."""

    def __init__(self, folder, device):
        self.t = PreTrainedTokenizerFast(tokenizer_file=folder + "/tokenizer.json")
        self.device = device
        self.cls, self.sep, self.mask, self.pad = (self.t.convert_tokens_to_ids(x) for x in ("[CLS]", "[SEP]", "[MASK]", "[PAD]"))

    def words(self, text):
        return self.t(text, add_special_tokens=False)["input_ids"]

    def plain(self, text):
        return [self.cls] + self.words(text)[: LENGTH - 2] + [self.sep]

    def cloze(self, pattern, text):
        """ids, and 1 for tokens of the text."""
        marked = pattern.replace("{mask}", "[MASK]")
        e = self.t(marked.replace("{text}", text), add_special_tokens=False, return_offsets_mapping=True)
        begin = marked.index("{text}")
        inside = [int(begin <= a and b <= begin + len(text) and a < b) for a, b in e["offset_mapping"]]
        ids = e["input_ids"]
        while len(ids) > LENGTH - 2:
            last = max(i for i, x in enumerate(inside) if x)
            del ids[last], inside[last]
        return [self.cls] + ids + [self.sep], [0] + inside + [0]

    def batch(self, rows):
        n = max(map(len, rows))
        ids = torch.tensor([r + [self.pad] * (n - len(r)) for r in rows], device=self.device)
        return {"input_ids": ids, "attention_mask": (ids != self.pad).long()}


def optimizer(model, steps, lr, warmup):
    plain = [p for n, p in model.named_parameters() if p.ndim < 2]
    matrices = [p for n, p in model.named_parameters() if p.ndim >= 2]
    o = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}], lr=lr)
    s = get_linear_schedule_with_warmup(o, math.ceil(warmup * steps) if warmup < 1 else int(warmup), steps)
    return o, s


def update(model, loss, o, s):
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    o.step()
    s.step()
    o.zero_grad()


def epochs(rng, n, batch):
    """Indices of batches without end; the last of an epoch may be smaller."""
    order = list(range(n))
    while True:
        rng.shuffle(order)
        for i in range(0, n, batch):
            yield order[i:i + batch]


def predict(model, enc, rows, batch=64):
    out = []
    model.eval()
    with torch.no_grad():
        for i in range(0, len(rows), batch):
            out.append(model(**enc.batch(rows[i:i + batch])).logits.float())
    model.train()
    return torch.cat(out)


def classifier(a, labels, head):
    """A classifier with a new head: as transformers initializes it, or with the values of a file."""
    torch.manual_seed(a.seed)
    model = AutoModelForSequenceClassification.from_pretrained(a.model, num_labels=labels, dtype=torch.float32)
    if head:
        values = load_file(head.replace("SEED", str(a.seed)))
        model.classifier.load_state_dict({k: values["classifier." + k] for k in ("weight", "bias")})
    return model.to(a.device).train()


def accuracy(scores, rows, labels):
    return (scores.argmax(1).cpu() == torch.tensor([labels.index(r["label"]) for r in rows])).float().mean().item()


def finetune(a, enc, train, test, labels, head):
    model = classifier(a, len(labels), head)
    x, y = [enc.plain(r["text"]) for r in train], [labels.index(r["label"]) for r in train]
    o, s = optimizer(model, a.steps, a.lr, a.warmup)
    for _, rows in zip(range(a.steps), epochs(random.Random(a.seed), len(x), a.batch_size)):
        logits = model(**enc.batch([x[i] for i in rows])).logits
        update(model, F.cross_entropy(logits, torch.tensor([y[i] for i in rows], device=a.device)), o, s)
    return accuracy(predict(model, enc, [enc.plain(r["text"]) for r in test]), test, labels)


# ---- PET ----

def masked(enc, ids, inside, rng, vocab):
    ids, want = list(ids), [-100] * len(ids)
    for i, x in enumerate(inside):
        if not x or rng.random() >= 0.15:
            continue
        want[i], u = ids[i], rng.random()
        if u < 0.8:
            ids[i] = enc.mask
        elif u < 0.9:
            ids[i] = rng.randrange(5, vocab)
    return ids, want


def member(a, enc, pattern, words, train, texts, labels):
    """Scores of the texts by a masked LM trained on one pattern, and its accuracy before training."""
    torch.manual_seed(a.seed)
    model = AutoModelForMaskedLM.from_pretrained(a.model, dtype=torch.float32).to(a.device).train()
    rng = random.Random(a.seed)
    x = [enc.cloze(pattern, r["text"])[0] for r in train]
    y = [labels.index(r["label"]) for r in train]
    more = [enc.cloze(pattern, r["text"]) for r in texts]
    words = [[enc.t.convert_tokens_to_ids(w) for w in ws] for ws in words]

    def scores(logits, ids):
        at = logits[ids == enc.mask]
        return torch.stack([at[:, w].mean(1) for w in words], 1)

    def score_all(rows):
        out = []
        model.eval()
        with torch.no_grad():
            for i in range(0, len(rows), 64):
                b = enc.batch(rows[i:i + 64])
                out.append(scores(model(**b).logits, b["input_ids"]))
        model.train()
        return torch.cat(out)

    before = (score_all(x).argmax(1).cpu() == torch.tensor(y)).float().mean().item()
    o, s = optimizer(model, a.member_steps, a.lr, a.warmup)
    for _, rows in zip(range(a.member_steps), epochs(rng, len(x), a.batch_size)):
        pairs = [masked(enc, *more[rng.randrange(len(more))], rng, model.config.vocab_size) for _ in rows]
        n = len(rows)
        b = enc.batch([x[i] for i in rows] + [p[0] for p in pairs])
        want = torch.tensor([p[1] + [-100] * (b["input_ids"].shape[1] - len(p[1])) for p in pairs], device=a.device)
        logits = model(**b).logits
        loss = F.cross_entropy(scores(logits[:n], b["input_ids"][:n]), torch.tensor([y[i] for i in rows], device=a.device))
        lm = F.cross_entropy(logits[n:].flatten(0, 1), want.flatten()) if any(max(p[1]) >= 0 for p in pairs) else 0.0
        update(model, (1 - a.mlm_weight) * loss + a.mlm_weight * lm, o, s)
    return score_all([m[0] for m in more]), before


def votes(a, enc, train, texts, labels):
    """The mean scores of the texts by the models of all patterns."""
    with open(a.patterns, encoding="utf-8") as f:
        p = json.load(f)
    words = [[w] if isinstance(w, str) else w for w in (p["verbalizers"][l] for l in labels)]
    votes = [member(a, enc, pattern, words, train, texts, labels) for pattern in p["patterns"]]
    total = sum(w for _, w in votes)
    return sum(v * (w / total if total else 1 / len(votes)) for v, w in votes)


def pet(a, enc, train, test, labels, head):
    texts = read(a.unlabeled)
    if a.votes is None:
        a.votes = votes(a, enc, train, texts, labels)
    model = classifier(a, len(labels), head)
    x = [enc.plain(r["text"]) for r in texts]
    steps = a.epochs * ((len(x) + a.batch_size - 1) // a.batch_size)
    o, s = optimizer(model, steps, a.lr, a.warmup)
    for _, rows in zip(range(steps), epochs(random.Random(a.seed), len(x), a.batch_size)):
        logits = model(**enc.batch([x[i] for i in rows])).logits
        soft = F.softmax(a.votes[rows] / 2, -1)
        update(model, F.kl_div(F.log_softmax(logits / 2, -1), soft, reduction="batchmean") * 4, o, s)
    return accuracy(predict(model, enc, [enc.plain(r["text"]) for r in test]), test, labels)


# ---- SetFit ----

def setfit(a, enc, train, test, labels, _):
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from setfit import SetFitModel, Trainer, TrainingArguments
    body = SentenceTransformer(a.model, device=a.device)
    body.max_seq_length = LENGTH
    from sklearn.linear_model import LogisticRegression
    model = SetFitModel(model_body=body, model_head=LogisticRegression(), labels=labels)
    t = TrainingArguments(batch_size=a.batch_size, num_epochs=1, num_iterations=a.pair_draws, body_learning_rate=a.lr,
                          warmup_proportion=a.warmup, seed=a.seed, report_to="none", save_strategy="no",
                          output_dir="/tmp/setfit-out")
    data = Dataset.from_dict({"text": [r["text"] for r in train], "label": [labels.index(r["label"]) for r in train]})
    trainer = Trainer(model=model, args=t, train_dataset=data)
    trainer.train()
    found = model.predict([r["text"] for r in test], use_labels=False)
    return sum(int(p) == labels.index(r["label"]) for p, r in zip(found, test)) / len(test)


def fit_logistic(x, y, n):
    """scikit-learn's objective with C = 1, by L-BFGS in double precision."""
    x, k = x.double(), n if n > 2 else 1
    w = torch.zeros(k, x.shape[1] + 1, dtype=torch.double, requires_grad=True, device=x.device)
    o = torch.optim.LBFGS([w], max_iter=500, tolerance_grad=1e-9, tolerance_change=1e-14, line_search_fn="strong_wolfe")

    def scores(x):
        z = x.double() @ w[:, :-1].T + w[:, -1]
        return z if n > 2 else torch.cat([torch.zeros_like(z), z], 1)

    def closure():
        o.zero_grad()
        loss = F.cross_entropy(scores(x), y, reduction="sum") + 0.5 * (w[:, :-1] ** 2).sum()
        loss.backward()
        return loss

    o.step(closure)
    return scores


def setfit_twin(a, enc, train, test, labels, _):
    torch.manual_seed(a.seed)
    rng = random.Random(a.seed)
    model = AutoModel.from_pretrained(a.model, dtype=torch.float32).to(a.device).train()
    x, y = [enc.plain(r["text"]) for r in train], [labels.index(r["label"]) for r in train]

    def embed(rows):
        b = enc.batch(rows)
        m = b["attention_mask"][:, :, None].float()
        return (model(**b).last_hidden_state * m).sum(1) / m.sum(1)

    pairs = []
    for i in range(len(x)):
        same = [j for j in range(len(x)) if y[j] == y[i] and j != i] or [i]
        other = [j for j in range(len(x)) if y[j] != y[i]]
        for _ in range(a.pair_draws):
            pairs += [(i, rng.choice(same), 1.0), (i, rng.choice(other), 0.0)]
    rng.shuffle(pairs)
    steps = (len(pairs) + a.batch_size - 1) // a.batch_size
    o, s = optimizer(model, steps, a.lr, a.warmup)
    for k in range(steps):
        part = pairs[k * a.batch_size:(k + 1) * a.batch_size]
        v = embed([x[p[0]] for p in part] + [x[p[1]] for p in part])
        target = torch.tensor([p[2] for p in part], device=a.device)
        update(model, F.mse_loss(F.cosine_similarity(v[:len(part)], v[len(part):]), target), o, s)
    model.eval()
    with torch.no_grad():
        def embed_all(rows):
            return torch.cat([embed(rows[i:i + 64]) for i in range(0, len(rows), 64)])
        vx, vt = embed_all(x), embed_all([enc.plain(r["text"]) for r in test])
    return accuracy(fit_logistic(vx, torch.tensor(y, device=a.device), len(labels))(vt).detach(), test, labels)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("method", choices=["setfit", "setfit-twin", "pet", "finetune"])
    for x in ("model", "train", "eval"):
        p.add_argument(x)
    p.add_argument("--unlabeled")
    p.add_argument("--patterns")
    p.add_argument("--head", help="safetensors file with the first values of classifier.weight and classifier.bias")
    p.add_argument("--device", default="cpu")
    p.add_argument("--seeds", default="42")
    for name, value in (("lr", 5e-5), ("warmup", 0.1), ("mlm-weight", 1e-4)):
        p.add_argument("--" + name, type=float, default=value)
    for name, value in (("batch-size", 16), ("steps", 120), ("member-steps", 100), ("epochs", 3), ("pair-draws", 20)):
        p.add_argument("--" + name, type=int, default=value)
    a = p.parse_args()
    enc, test = Encoder(a.model, a.device), read(a.eval)
    labels = sorted({r["label"] for r in test})
    for seed in a.seeds.split(","):
        a.seed = int(seed)
        train = read(a.train.replace("SEED", seed))
        a.votes = None
        for head in [a.head, None] if a.head and "setfit" not in a.method else [None]:
            score = globals()[a.method.replace("-", "_")](a, enc, train, test, labels, head)
            print(a.method, seed, "head of the file" if head else "own head", round(score, 4), flush=True)


main()
