#!/usr/bin/env python3
"""Predicts the speed of data-parallel training on many GPUs from measurements on one.

    bench/scale/predict.py                       the tables of docs/SCALE.md
    bench/scale/predict.py --nic 25 --nvlink 400 other links, in GB/s per GPU and direction

Time of an update on R ranks, each computing the same number of tokens:

    T(R) = compute + adds + exposed + gather + latency

    compute   step on one GPU, measured (docs/performance/GPU.md)
    reduce    4 P bytes of f32 gradients leave and reach each GPU, (R - 1) / R of them to and from others;
              the part that the backward pass hides is not exposed
    gather    2 P bytes of bf16 weights reach each GPU before the next forward pass: not hidden
    adds      the owner of a shard reads R partial sums of P / R values: 4 P bytes from GPU memory
    latency   an exchange sends one message to every rank and bucket; the host of a rank starts MESSAGE per message

Ranks of one node talk over NVLink, others over one network card per GPU. Messages to ranks in the same node do not
use the card. R above one node is limited by the card.
"""
import argparse

GB = 1e9
# name, parameters, ms of a step and tokens per step on one GPU: rows of docs/performance/GPU.md, bf16, one H200
MODELS = [
    ("bert-base, 256 x 128", 110e6, 36.4, 256 * 128),
    ("bert-large, 128 x 128", 336e6, 61.2, 128 * 128),
    ("12 layers of 384, 512 x 128", 28e6, 25.8, 512 * 128),
]
# The same batch of 4,096 sequences of 128 tokens per update for every R. ms of a step on one GPU: 4.2 of 8 sequences and
# 36.4 of 256 are measured, others lie on the line through both.
FIXED_BATCH = [("bert-base, 4,096 x 128 per update", 110e6, 4096, lambda n: 4.2 + (n - 8) * (36.4 - 4.2) / 248)]
BACKWARD = 0.62  # share of a step in which finished gradients can be sent: backward without its first bucket


def update_ms(parameters, compute, ranks, a):
    """Milliseconds of an update and its parts."""
    near, far = min(ranks, a.node) - 1, max(0, ranks - a.node)
    def transfer(size):
        share = size * parameters / ranks  # bytes for one rank
        return max(near * share / (a.nvlink * GB), far * share / (a.nic * GB)) * 1e3
    buckets = max(1, round(4 * parameters / (a.bucket * 1e6)))
    reduce, gather = transfer(4), transfer(2)
    messages = (ranks - 1) * (buckets + 1) * a.message * 1e-3
    exposed = max(0, reduce + messages * buckets / (buckets + 1) - BACKWARD * compute)
    exposed += min(reduce, reduce / buckets)  # the last bucket is sent when the backward pass has ended
    adds = 4 * parameters / (a.memory * GB) * 1e3
    total = compute + exposed + gather + adds + messages / (buckets + 1)
    return total, reduce, gather, messages


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--nvlink", type=float, default=360, help="GB/s of a GPU to its node, one direction")
    p.add_argument("--nic", type=float, default=42, help="GB/s of a GPU to other nodes, one direction")
    p.add_argument("--node", type=int, default=8, help="GPUs of a node")
    p.add_argument("--memory", type=float, default=3600, help="GB/s of GPU memory")
    p.add_argument("--bucket", type=float, default=26, help="MB of a gradient bucket")
    p.add_argument("--message", type=float, default=1.5, help="microseconds per message")
    a = p.parse_args()
    print("| model | GPUs | ms per update | reduce | gather | messages | tokens/s | efficiency |")
    print("|---|---|---|---|---|---|---|---|")
    for name, parameters, compute, tokens in MODELS:
        for ranks in (1, 8, 64, 512):
            total, reduce, gather, messages = update_ms(parameters, compute, ranks, a)
            if ranks == 1: total = compute
            print(f"| {name} | {ranks} | {total:.1f} | {reduce:.1f} | {gather:.1f} | {messages:.1f} |"
                  f" {ranks * tokens / total / 1e3:.1f} M | {compute / total:.0%} |")
    for name, parameters, batch, step in FIXED_BATCH:
        one = batch * 36.4 / 256
        for ranks in (8, 64, 512):
            total, reduce, gather, messages = update_ms(parameters, step(batch // ranks), ranks, a)
            print(f"| {name} | {ranks} | {total:.1f} | {reduce:.1f} | {gather:.1f} | {messages:.1f} |"
                  f" {batch * 128 / total / 1e3:.1f} M | {one / ranks / total:.0%} |")


if __name__ == "__main__":
    main()
