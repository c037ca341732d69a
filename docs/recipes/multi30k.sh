#!/bin/sh
# English to German on Multi30k with recurrent layers, with attention and without, from random weights:
#     sh docs/recipes/multi30k.sh DATA OUT [ATTENTION...]
# DATA contains train.en, train.de, val.en, val.de, test_2016_flickr.en and test_2016_flickr.de. ATTENTION: general, dot, additive, none;
# default: additive and none. Writes OUT/ATTENTION (models), OUT/ATTENTION.txt (BLEU of the test set, 5 beams) and OUT/alignment.svg.
# Finished models are skipped. Variables: EPOCHS (6), HIDDEN (128), EMBEDDING (HIDDEN), DROPOUT (0.1), BATCH (32), LR (2e-3), SCHEDULE (constant),
# SEED (1), THREADS (0: all cores), SESAME, SESAME_DEVICE (cpu).
set -eu
data=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- additive none
sesame=${SESAME:-build/sesame} hidden=${HIDDEN:-128}
export SESAME_THREADS="${THREADS:-0}"
mkdir -p "$out/tokenizer"

# Pairs of lines as columns; a few lines contain tabs.
for part in train val test_2016_flickr; do
    tr '\t' ' ' <"$data/$part.en" >"$out/en"
    tr '\t' ' ' <"$data/$part.de" >"$out/de"
    { printf 'text\ttarget\n' && paste "$out/en" "$out/de"; } >"$out/$part.tsv"
    rm "$out/en" "$out/de"
done
head -n 201 "$out/val.tsv" >"$out/val200.tsv" # enough to choose an epoch

# One vocabulary for both languages; texts end with </s>.
[ -e "$out/tokenizer/tokenizer.json" ] || paste "$data/train.en" "$data/train.de" | tr '\t' '\n' |
    "$sesame" train-tokenizer --type unigram --vocab-size 4000 --special-tokens '<pad>,<s>,</s>,<unk>' \
        --stages docs/recipes/multi30k-stages.json --output "$out/tokenizer/tokenizer.json" -

for attention; do
    [ -e "$out/$attention/model.safetensors" ] ||
        "$sesame" finetune --task translation --config rnn-seq2seq --set attention="$attention" --set hidden_size="$hidden" \
            --set embedding_size="${EMBEDDING:-$hidden}" --set dropout="${DROPOUT:-0.1}" --tokenizer "$out/tokenizer" \
            --train "$out/train.tsv" --eval "$out/val200.tsv" --output "$out/$attention" --epochs "${EPOCHS:-6}" --batch-size "${BATCH:-32}" --bucket 50 \
            --lr "${LR:-2e-3}" --schedule "${SCHEDULE:-constant}" --warmup 0 \
            --clip 5 --metric bleu --seed "${SEED:-1}"
    "$sesame" eval "$out/$attention" "$out/test_2016_flickr.tsv" --task translation --num-beams 5 >"$out/$attention.txt"
    printf '%s\n' "$attention" && cat "$out/$attention.txt"
done

[ ! -e "$out/additive" ] ||
    "$sesame" view -m "$out/additive" "A man in a blue shirt is standing on a ladder." --generate --svg "$out/alignment.svg"
