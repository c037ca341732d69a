#!/bin/sh
# ULMFiT (Howard and Ruder 2018): a general language model, its adaptation to the texts of a task, and a classifier
# that is unfrozen layer by layer, with lower learning rates in lower layers.
#
# usage: ulmfit.sh GENERAL.txt TRAIN.tsv TEST.tsv OUT
#
# TRAIN and TEST have a header line and the columns sentence and label. Sizes and lengths are variables; the defaults
# are for a GPU and a corpus of 100 MB and more.
set -eu
general=$1 train=$2 test=$3 out=$4
sesame=${SESAME:-sesame}
mkdir -p "$out"

# Words, in lower case; unknown words share one entry.
[ -f "$out/tokenizer.json" ] || $sesame train-tokenizer --type wordlevel --lowercase --vocab-size "${VOCAB:-30000}" \
    -o "$out/tokenizer.json" "$general"
[ -f "$out/general.ids" ] || $sesame corpus build --tokenizer "$out/tokenizer.json" --held-out 1% -o "$out/general.ids" "$general"
cut -f 1 "$train" | tail -n +2 | sed 'G' > "$out/task.txt" # each text is a document
[ -f "$out/task.ids" ] || $sesame corpus build --tokenizer "$out/tokenizer.json" --held-out 5% -o "$out/task.ids" "$out/task.txt"

# 1. General language model.
$sesame pretrain --corpus "$out/general.ids" --tokenizer "$out/tokenizer.json" --preset ulmfit ${SIZE:-} --objective bptt \
    --length 72 --pieces "${PIECES:-4}" --batch-size "${BATCH:-64}" --epochs "${GENERAL_EPOCHS:-10}" --lr "${LR:-3e-3}" \
    --schedule one_cycle --weight-decay 0.01 --clip 0.4 --resume -o "$out/general"
# 2. Target language model.
$sesame pretrain --corpus "$out/task.ids" --model "$out/general" --objective bptt --length 72 --pieces 1 \
    --batch-size "${BATCH:-64}" --epochs "${TARGET_EPOCHS:-10}" --lr "${TARGET_LR:-2e-3}" --schedule one_cycle --clip 0.4 \
    --resume -o "$out/target"
# 3. Classifier: one more layer per epoch, rates divided by 2.6 from layer to layer, stronger dropout.
$sesame finetune --model "$out/target" --task classify --train "$train" --eval "$test" --max-length "${MAX_LENGTH:-2000}" \
    --unfreeze --layer-decay 0.385 --schedule slanted --epochs "${EPOCHS:-8}" --lr "${CLASSIFIER_LR:-5e-3}" \
    --batch-size "${CLASSIFIER_BATCH:-32}" --weight-decay 0.01 \
    --set hidden_p=0.25 --set input_p=0.35 --set embed_p=0.04 --set weight_p=0.4 --resume -o "$out/classifier"
