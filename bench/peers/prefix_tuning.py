"""A training step of prefix tuning with peft and with Sesame, in turns: CPU time of a step, from runs of two lengths, so that
loading does not count. BERT of 4 layers, width 512, 16 x 128 tokens, 20 virtual tokens, random weights.

Usage: python3 -P prefix_tuning.py SESAME WORK [THREADS [ROUNDS]]; SESAME: the command, WORK: a folder for model and data. Needs
torch, transformers and peft."""
import json
import os
import random
import resource
import subprocess
import sys

SHORT, LONG = 2, 8
CONFIG = dict(model_type="bert", architectures=["BertForSequenceClassification"], vocab_size=1000, hidden_size=512, num_hidden_layers=4,
              num_attention_heads=8, intermediate_size=2048, max_position_embeddings=256, hidden_dropout_prob=0.0,
              attention_probs_dropout_prob=0.0, num_labels=2)


def prepare(work):
    os.makedirs(work, exist_ok=True)
    json.dump(CONFIG, open(work + "/config.json", "w"))
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(995)]
    open(work + "/vocab.txt", "w").write("\n".join(words) + "\n")
    r = random.Random(1)
    with open(work + "/train.tsv", "w") as f:
        f.write("text\tlabel\n")
        for i in range(16 * LONG):
            f.write(" ".join(r.choice(words[5:]) for _ in range(126)) + f"\t{'ab'[i % 2]}\n")


def cpu_time(command, env):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def peft_steps(work, steps, threads):
    import torch
    from peft import PrefixTuningConfig, get_peft_model
    from transformers import BertForSequenceClassification
    torch.set_num_threads(threads)
    base = BertForSequenceClassification.from_pretrained(work + "/base")
    model = get_peft_model(base, PrefixTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=20)).train()
    o = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    g = torch.Generator().manual_seed(1)
    for _ in range(steps):
        ids = torch.randint(5, 1000, (16, 128), generator=g)
        model(input_ids=ids, attention_mask=torch.ones_like(ids), labels=torch.arange(16) % 2).loss.backward()
        o.step()
        o.zero_grad()


def main(sesame, work, threads="2", rounds="3"):
    prepare(work)
    env = dict(os.environ, OMP_NUM_THREADS=threads)
    data = [sesame, "finetune", "--task", "classify", "--text", "text", "--label", "label", "--train", work + "/train.tsv", "--batch-size", "16",
            "--threads", threads, "--max-length", "128", "--save-every", "-1", "--overwrite"]
    cpu_time(data + ["--config", work + "/config.json", "--tokenizer", work + "/vocab.txt", "--steps", "1", "-o", work + "/base"], env)
    tune = data + ["--model", work + "/base", "--adapter", "prefix", "--virtual-tokens", "20", "-o", work + "/prefix", "--steps"]
    peer = [sys.executable, "-P", __file__, "--peft", work]
    for i in range(int(rounds)):
        step = {}
        for name, command in ("sesame", tune), ("peft", peer):
            times = [cpu_time(command + [str(n)] + ([threads] if name == "peft" else []), env) for n in (SHORT, LONG)]
            step[name] = (times[1] - times[0]) / (LONG - SHORT)
        print(f"round {i + 1}: sesame {step['sesame']:.2f} s, peft {step['peft']:.2f} s of CPU time a step: {step['peft'] / step['sesame']:.1f}x", flush=True)


if sys.argv[1] == "--peft":
    peft_steps(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    main(*sys.argv[1:])
