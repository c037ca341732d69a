#!/bin/sh
# Sesame and PyTorch on the same GPU, one after the other, and how many times as fast Sesame is.
# Usage: bench/peers/gpu.sh [BUILD_DIR], from the source folder; python3 must have torch.
set -eu
build=${1-build/cuda}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
"$build/sesame" bench model --device cuda --dtype bf16 --json >"$tmp/ours"
python3 bench/peers/gpu.py >"$tmp/theirs"
python3 - "$tmp/ours" "$tmp/theirs" <<'PYTHON'
import json, sys
ours = {(r["bench"], r["shape"]): r["value"] for r in map(json.loads, open(sys.argv[1])) if r["unit"] == "ms"}
for r in map(json.loads, open(sys.argv[2])):
    mine = ours.get((r["bench"], r["shape"]))
    if mine:
        print(f'{r["bench"]:14} {r["shape"]:20} Sesame {mine:8.2f} ms  PyTorch {r["ms"]:8.2f} ms  {r["ms"] / mine:5.2f} x')
PYTHON
