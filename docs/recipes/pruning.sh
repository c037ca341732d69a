#!/bin/sh
# Compression: the experiments of docs/COMPRESSION.md. Each part runs alone: docs/recipes/pruning.sh PART.
# SST2: folder with train.tsv and dev.tsv; OUT: folder of the results; OPTIONS: options of all commands, such as "--device cuda"; TUNE: options of training.
set -eu
sesame=${SESAME-sesame} SST2=${SST2-SST-2} OUT=${OUT-compression} OPTIONS=${OPTIONS-} TUNE=${TUNE---batch-size 64 --lr 1.5e-4}
part=${1-}
mkdir -p "$OUT"

# shellcheck disable=SC2086  # TUNE and OPTIONS have several words
tune() { # MODEL OUTPUT [OPTION...]
    model=$1 to=$2
    shift 2
    "$sesame" finetune --model "$model" --task sst2 --train "$SST2/train.tsv" --eval "$SST2/dev.tsv" --output "$to" $TUNE $OPTIONS "$@"
}
base() { [ -e "$OUT/base/config.json" ] || tune sesame-small "$OUT/base" --epochs 2; }

# Head pruning against score: before and after an epoch of distillation.
# shellcheck disable=SC2086
prune_heads() {
    base
    for x in 0.1 0.2 0.3 0.4 0.5 0.6 0.7; do
        "$sesame" prune "$OUT/base" --heads $x --data "$SST2/train.tsv" --task sst2 --output "$OUT/heads-$x" --overwrite $OPTIONS
        "$sesame" eval "$OUT/heads-$x" "$SST2/dev.tsv" --task sst2 $OPTIONS
        tune "$OUT/heads-$x" "$OUT/heads-$x-tuned" --epochs 1 --teacher "$OUT/base" --overwrite
    done
}

# Layers dropped from top, bottom, alternating and by importance, then an epoch of fine-tuning.
# shellcheck disable=SC2086
prune_layers() {
    base
    for n in 10 8 6 4; do
        for from in top bottom alternate importance; do
            to="$OUT/layers-$n-$from"
            "$sesame" prune "$OUT/base" --layers $n --layers-from $from --data "$SST2/train.tsv" --task sst2 --output "$to" --overwrite $OPTIONS
            tune "$to" "$to-tuned" --epochs 1 --overwrite
        done
    done
}

# Heads, rows and layers together, distilled: SST-2 at half and a third of the FLOPs.
# shellcheck disable=SC2086
prune_all() {
    base
    for x in "0.3 0.5 12" "0.4 0.5 10" "0.4 0.5 8"; do
        # shellcheck disable=SC2086  # three numbers
        set -- $x
        to="$OUT/all-$1-$2-$3"
        "$sesame" prune "$OUT/base" --heads "$1" --ffn "$2" --layers "$3" --data "$SST2/train.tsv" --task sst2 --output "$to" --overwrite $OPTIONS
        tune "$to" "$to-tuned" --epochs 2 --teacher "$OUT/base" --overwrite
    done
}

# Early exit: exits trained with the model, and exits of the trained model; score against layers.
# shellcheck disable=SC2086
exits() {
    base
    tune sesame-small "$OUT/joint" --epochs 2 --exits joint --overwrite
    tune "$OUT/base" "$OUT/frozen" --epochs 1 --lr 1e-3 --exits frozen --overwrite
    for m in joint frozen; do "$sesame" eval "$OUT/$m" "$SST2/dev.tsv" --task sst2 --exit curve --svg "$OUT/$m.svg" --overwrite $OPTIONS; done
}

# Speed of a BERT-base shape with random weights: half of the heads and rows against all of them. Repeat, and compare the ratios.
prune_speed() { # MODEL: a folder of that shape; DATA: any labeled texts for it
    "$sesame" prune "$MODEL" --heads 0.5 --ffn 0.5 --data "$DATA" --output "$OUT/half" --overwrite
    for m in "$MODEL" "$OUT/half"; do
        for dtype in f32 int8; do "$sesame" bench model --model "$m" --dtype $dtype --load 1x128 --load 8x128; done
    done
}

case $part in
prune_heads | prune_layers | prune_all | exits | prune_speed) $part ;;
*) echo "usage: $0 prune_heads|prune_layers|prune_all|exits|prune_speed" >&2 && exit 2 ;;
esac
