#!/bin/sh
# Scores and speed of compressed models.
#
# usage: distillation.sh DATA OUT
#
# DATA has the folders glue/SST-2 (train.tsv, dev.tsv), conll2003 (train.txt, valid.txt) and squad (train-v1.1-subset.json, dev-v1.1.json.xz).
# DEVICE=cuda trains on a GPU.
set -eu
data=$1 out=$2
sesame=${SESAME:-sesame}
device=${DEVICE:+--device $DEVICE}
base=${BASE:-sesame-small}
mkdir -p "$out"

unpacked() # file of DATA, or its unpacked copy
{
    [ ! -e "$data/$1" ] || { echo "$data/$1" && return; }
    [ -e "$out/${1##*/}" ] || xz -dc "$data/$1.xz" >"$out/${1##*/}"
    echo "$out/${1##*/}"
}

files() # data set: its training and evaluation files
{
    case $1 in
    sst2) echo "$data/glue/SST-2/train.tsv $data/glue/SST-2/dev.tsv" ;;
    conll2003) echo "$data/conll2003/train.txt $data/conll2003/valid.txt" ;;
    squad) echo "$data/squad/train-v1.1-subset.json $(unpacked squad/dev-v1.1.json)" ;;
    esac
}

training() # data set: its options of training
{
    case $1 in
    sst2) echo "--batch-size 64 --lr 1.5e-4" ;;
    conll2003) echo "--batch-size 32 --lr 3e-4" ;;
    squad) echo "--batch-size 24 --lr 2e-4 --max-length 384" ;;
    esac
}

loss() # data set: a head with starts and ends has no soft labels
{
    [ "$1" != squad ] || echo "--soft-weight 0 --hard-weight 1 --cosine-weight 1"
}

# Distillation, DistilBERT's claim: half of the layers keep 97 % of the score, 40 % smaller and 60 % faster.
distillation()
{
    for set in sst2 conll2003 squad; do
        # shellcheck disable=SC2046  # two files
        set -- "$set" $(files "$set")
        # shellcheck disable=SC2046,SC2086  # several options
        {
            $sesame finetune --model "$base" --task "$1" --train "$2" --eval "$3" --epochs "${EPOCHS:-3}" $(training "$1") $device --resume -o "$out/$1-teacher"
            $sesame finetune --teacher "$out/$1-teacher" --student-layers 6 --task "$1" --train "$2" --eval "$3" $(loss "$1") --cosine-weight 1 \
                --epochs "${EPOCHS:-3}" $(training "$1") $device --resume -o "$out/$1-student"
            $sesame finetune --teacher "$out/$1-teacher" --student-layers 6 --task "$1" --train "$2" --eval "$3" $(loss "$1") --relation-weight 1 \
                --epochs "${EPOCHS:-3}" $(training "$1") $device --resume -o "$out/$1-relations"
        }
        for model in teacher student relations; do
            $sesame eval "$out/$1-$model" "$3" --task "$1" --json >"$out/$1-$model.json"
            echo "$1 $model: $(du -k "$out/$1-$model/model.safetensors" | cut -f 1) KB, $(cat "$out/$1-$model.json")"
        done
    done
}

# Quantization-aware training: the loss of int8 beside that of plain fine-tuning.
quantize_aware()
{
    # shellcheck disable=SC2046
    set -- sst2 $(files sst2)
    # shellcheck disable=SC2046,SC2086
    $sesame finetune --model "$base" --task "$1" --train "$2" --eval "$3" --epochs "${EPOCHS:-3}" $(training "$1") --qat $device --resume -o "$out/$1-qat"
    for model in teacher qat; do
        $sesame quantize "$out/$1-$model" "$out/$1-$model-int8" --dtype int8 --task "$1" --eval "$3" --overwrite
    done
}

# Pruning while fine-tuning, with the teacher of distillation: blocks of 32x32, whose empty rows and heads are removed; heads and rows;
# blocks of 1x4 for sparse int8.
movement()
{
    # shellcheck disable=SC2046
    set -- sst2 $(files sst2)
    for p in 32x32:0.5 32x32:0.3 unit:0.5 1x4:0.2; do
        # shellcheck disable=SC2046,SC2086
        $sesame finetune --model "$base" --task "$1" --train "$2" --eval "$3" --teacher "$out/$1-teacher" --epochs "${PRUNE_EPOCHS:-3}" $(training "$1") \
            --prune movement --block "${p%:*}" --keep "${p#*:}" $device --resume -o "$out/$1-movement-${p%:*}-${p#*:}"
    done
    $sesame quantize "$out/$1-movement-1x4-0.2" "$out/$1-movement-1x4-0.2-int8" --dtype int8 --task "$1" --eval "$3" --overwrite
}

distillation
quantize_aware
movement
