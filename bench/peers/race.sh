#!/bin/sh
# The same pretraining by Sesame and by PyTorch, one after the other on one GPU, in the same time: tokens and held-out loss.
#     bench/peers/race.sh CORPUS VALID OUT [SECONDS]
# CORPUS and VALID: text, a paragraph a line, an empty line between documents; plain or .xz. A BERT of 12 layers x 384, 16,384 lower-cased
# word pieces, rows of 128 tokens, 65,536 tokens an update, 15 % masked, AdamW; see race.py. Variables: SESAME
# (build/cuda/sesame), PYTHON (python3, with torch), LR (7e-4), DROPOUT (0), TORCH_SECONDS: PyTorch runs so long instead, as where its
# rate is enough.
set -eu
corpus=$1 valid=$2 out=$3 seconds=${4:-420}
here=$(dirname "$0")
sesame=${SESAME:-build/cuda/sesame} lr=${LR:-7e-4} drop=${DROPOUT:-0}
recipes=$here/../../docs/recipes work=$out/work
rm -f "$work/word.json" "$work/corpus-word.ids" "$work/valid-word.ids"
VOCAB=16384 PARTS=words SESAME=$sesame sh "$recipes/sesame-small.sh" "$corpus" "$valid" "$out"
"$sesame" pretrain --corpus "$work/corpus-word.ids" --eval "$work/valid-word.ids" --tokenizer "$work/word.json" \
    --output "$out/sesame" --overwrite --config "$recipes/sesame-small-bert.json" --set intermediate_size=1536 \
    --set hidden_dropout_prob="$drop" --set attention_probs_dropout_prob="$drop" --length 128 \
    --device "${DEVICE:-cuda}" --dtype "${DTYPE:-bf16}" --max-time "${seconds}s" --tokens-per-batch 65536 --lr "$lr" --warmup 0.05 \
    --weight-decay 0.05 --beta2 0.98 --clip 1 --eval-every -1 --save-every -1 --eval-tokens 1000000
"${PYTHON:-python3}" "$here/race.py" "$work/corpus-word.ids" "$work/valid-word.ids" "${TORCH_SECONDS:-$seconds}" "$lr" "$drop" >"$out/torch.json"
"${PYTHON:-python3}" - "$out" <<'PYTHON'
import json, sys
ours, theirs = (json.load(open(f"{sys.argv[1]}/{f}")) for f in ("sesame/all_results.json", "torch.json"))
sides = [("Sesame", ours["train_tokens"], ours["train_runtime"], ours["eval_mlm_loss"], ours["eval_mlm_accuracy"]),
         ("PyTorch", theirs["tokens"], theirs["seconds"], theirs["loss"], theirs["accuracy"])]
for name, tokens, seconds, loss, accuracy in sides:
    print(f"{name:8} {tokens / 1e6:8.1f} M tokens in {seconds:6.1f} s, {tokens / seconds / 1e6:.3f} M/s; held out: loss {loss:.3f}, "
          f"accuracy {100 * accuracy:.1f} %")
print(f"{sides[0][1] / sides[0][2] / (sides[1][1] / sides[1][2]):.2f} times the tokens a second")
PYTHON
