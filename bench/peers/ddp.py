"""Fine-tuning on two ranks, by Sesame and by PyTorch's DistributedDataParallel with Gloo: the losses of 20 updates.

Usage: ddp.py SESAME [UPDATES]. Makes a BERT of random weights with transformers, and labeled texts; both programs start from
this folder, without dropout, and each update sees all texts, half of them on each rank. Prints both losses of every update;
fails if one differs by more than 1e-4 of its value."""
import json
import os
import random
import socket
import subprocess
import sys
import tempfile

sys.path[:] = [p for p in sys.path if p != os.path.dirname(os.path.abspath(__file__))]  # tokenizers.py hides the package

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from transformers import BertConfig, BertForSequenceClassification

RANKS, EXAMPLES, WORDS, LR, TOLERANCE = 2, 64, 500, 5e-4, 1e-4
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make(folder):
    """A model folder, its vocabulary and a table of texts whose label is that of their first word."""
    torch.manual_seed(1)
    config = BertConfig(vocab_size=len(SPECIAL) + WORDS, hidden_size=128, num_hidden_layers=2, num_attention_heads=2,
                        intermediate_size=512, max_position_embeddings=64, hidden_dropout_prob=0.0,
                        attention_probs_dropout_prob=0.0, id2label={0: "neg", 1: "pos"}, label2id={"neg": 0, "pos": 1})
    BertForSequenceClassification(config).save_pretrained(os.path.join(folder, "model"))
    with open(os.path.join(folder, "model", "vocab.txt"), "w") as f:
        f.write("\n".join(SPECIAL + ["w%d" % i for i in range(WORDS)]) + "\n")
    draw = random.Random(2)
    rows = [[draw.randrange(WORDS) for _ in range(draw.randint(3, 24))] for _ in range(EXAMPLES)]
    with open(os.path.join(folder, "train.tsv"), "w") as f:
        f.write("sentence\tlabel\n")
        for row in rows:
            f.write(" ".join("w%d" % w for w in row) + "\t" + ("neg", "pos")[row[0] % 2] + "\n")
    return rows


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def sesame_losses(program, folder, updates):
    command = [program, "finetune", "--model", folder + "/model", "--task", "classify", "--train", folder + "/train.tsv",
               "--output", folder + "/out", "--steps", str(updates), "--batch-size", str(EXAMPLES // RANKS),
               "--lanes", str(RANKS), "--lr", str(LR), "--schedule", "constant", "--warmup", "0", "--dropout", "0",
               "--attention-dropout", "0", "--classifier-dropout", "0", "--threads", "1", "--save-every", "-1", "-q"]
    port = str(free_port())
    ranks = [subprocess.Popen(command, env=dict(os.environ, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE=str(RANKS),
                                                MASTER_ADDR="127.0.0.1", MASTER_PORT=port)) for r in range(RANKS)]
    if any(p.wait() for p in ranks):
        sys.exit("ddp.py: sesame failed")
    with open(folder + "/out/log.jsonl") as f:
        return [entry["loss"] for entry in map(json.loads, f) if "grad_norm" in entry]


def train(rank, folder, rows, updates, port):
    """A rank of DDP: AdamW, weight decay for matrices only, gradients clipped to 1."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:%d" % port, rank=rank, world_size=RANKS)
    model = DistributedDataParallel(BertForSequenceClassification.from_pretrained(folder + "/model"))
    model.train()
    decay = [p for n, p in model.named_parameters() if not n.endswith("bias") and "LayerNorm" not in n]
    rest = [p for n, p in model.named_parameters() if n.endswith("bias") or "LayerNorm" in n]
    optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}],
                                  lr=LR, betas=(0.9, 0.999), eps=1e-8)
    mine = rows[rank::RANKS]
    width = max(len(row) for row in mine) + 2
    ids = torch.zeros(len(mine), width, dtype=torch.long)
    mask = torch.zeros(len(mine), width, dtype=torch.long)
    for i, row in enumerate(mine):
        tokens = [2] + [w + len(SPECIAL) for w in row] + [3]
        ids[i, :len(tokens)], mask[i, :len(tokens)] = torch.tensor(tokens), 1
    labels = torch.tensor([row[0] % 2 for row in mine])
    losses = []
    for _ in range(updates):
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item() / RANKS)
    if rank == 0:
        with open(folder + "/ddp.json", "w") as f:
            json.dump(losses, f)
    dist.destroy_process_group()


def main():
    program, updates = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory() as folder:
        rows = make(folder)
        ours = sesame_losses(program, folder, updates)
        mp.spawn(train, (folder, rows, updates, free_port()), nprocs=RANKS)
        with open(folder + "/ddp.json") as f:
            theirs = json.load(f)
    worst = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs))
    print("update  sesame        DDP           difference")
    for i, (a, b) in enumerate(zip(ours, theirs)):
        print("%6d  %.10f  %.10f  %.1e" % (i + 1, a, b, abs(a - b) / abs(b)))
    print("largest relative difference %.2e of %d updates; the limit is %g" % (worst, len(ours), TOLERANCE))
    sys.exit(len(ours) != updates or worst > TOLERANCE)


if __name__ == "__main__":
    main()
