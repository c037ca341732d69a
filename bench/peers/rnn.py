"""The rows of `sesame bench rnn` with PyTorch: torch.nn.LSTM and GRU, mean squared error, gradients of all weights and of
the input. Usage: rnn.py cpu|cuda [f32|tf32|bf16 ...] [--only TEXT] [--threads N] [--turns]; a JSON object a row."""
import argparse
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

# name, type, widths (input, units of each layer), projection, both directions, devices, batches
NETS = [
    ("lstm-1152", "LSTM", [1152, 1152], 0, False, "cpu", [(64, 72)]),
    ("bilstm-300", "LSTM", [300, 256], 0, True, "cpu", [(32, 25)]),
    ("bigru-300", "GRU", [300, 256], 0, True, "cpu", [(32, 25)]),
    ("awd-lstm", "LSTM", [400, 1152, 1152, 400], 0, False, "cuda", [(64, 72), (128, 72), (256, 72)]),
    ("elmo", "LSTM", [512, 4096], 512, False, "cuda", [(128, 20), (64, 128)]),
    ("bilstm-400", "LSTM", [400, 256], 0, True, "cuda", [(32, 25), (256, 25)]),
]


class Net(nn.Module):
    def __init__(self, kind, widths, proj, both):
        super().__init__()
        self.layers = nn.ModuleList()
        width = widths[0]
        for units in widths[1:]:
            more = {"proj_size": proj} if proj else {}
            self.layers.append(getattr(nn, kind)(width, units, bidirectional=both, **more))
            width = (proj or units) * (2 if both else 1)
        self.width = width

    def compact(self):
        for layer in self.layers:
            layer.flatten_parameters()
        return self

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)[0]
        return x


def timed(args, run, name):
    def once():
        begin = time.perf_counter()
        run()
        if args.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    for _ in range(10 if args.device == "cuda" else 2):
        once()
    if args.turns:  # a round per line on standard input, as `sesame bench --turns`
        print(json.dumps({"ready": [name]}), flush=True)
        for line in sys.stdin:
            if line == "next\n":
                break
            end, best = time.perf_counter() + 0.1, once()
            while time.perf_counter() < end:
                best = min(best, once())
            print(json.dumps({"seconds": [best]}), flush=True)
        return None
    best, end = once(), time.perf_counter() + (0.15 if args.device == "cuda" else 3)
    while time.perf_counter() < end:
        best = min(best, once())
    return best


def main():
    p = argparse.ArgumentParser()
    p.add_argument("device")
    p.add_argument("modes", nargs="*", default=["f32"])
    p.add_argument("--only", default="")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--turns", action="store_true")
    args = p.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    for mode in args.modes:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = mode == "tf32"
        dtype = torch.bfloat16 if mode == "bf16" else torch.float32
        for name, kind, widths, proj, both, device, batches in NETS:
            for seqs, length in batches:
                for train in (False, True):
                    bench, shape = "rnn.train" if train else "rnn.forward", f"{name} {seqs}x{length}"
                    if args.only not in f"{bench} {shape}" or (not args.only and device != args.device):
                        continue
                    net = Net(kind, widths, proj, both).to(args.device, dtype).compact()
                    x = torch.randn(length, seqs, widths[0], device=args.device, dtype=dtype, requires_grad=train)
                    target = torch.randn(length, seqs, net.width, device=args.device, dtype=dtype)

                    def step():
                        net.zero_grad(set_to_none=True)
                        x.grad = None
                        F.mse_loss(net(x), target).backward()

                    def infer():
                        with torch.inference_mode():
                            net(x)

                    best = timed(args, step if train else infer, f"{bench} {shape}")
                    if best:
                        print(json.dumps({"bench": bench, "shape": shape, "dtype": mode, "ms": 1e3 * best,
                                          "tokens_s": seqs * length / best}), flush=True)


main()
