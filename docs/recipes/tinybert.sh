#!/bin/sh
# TinyBERT (Jiao et al. 2020): a small student learns the embeddings, hidden states and attention scores of its teacher,
# first on a corpus, then on a task; last it learns the teacher's predictions.
#
# usage: tinybert.sh CORPUS.txt GENERAL TEACHER TASK TRAIN EVAL OUT
#
# GENERAL is a masked language model, TEACHER the same model fine-tuned for TASK (a task of 'sesame finetune') on TRAIN. Sizes and
# lengths are variables; the defaults are for a GPU and a corpus of 100 MB and more. The student has the heads of its
# teacher, since attention scores are compared head by head. TinyBERT's data augmentation is not part of this recipe.
set -eu
corpus=$1 general=$2 teacher=$3 task=$4 train=$5 eval=$6 out=$7
sesame=${SESAME:-sesame}
device=${DEVICE:+--device $DEVICE}
mkdir -p "$out"
[ -f "$out/corpus.ids" ] || $sesame corpus build --tokenizer "$general" --held-out 1% -o "$out/corpus.ids" "$corpus"
inner="--soft-weight 0 --hard-weight 0 --hidden-weight 1 --attention-weight 1"

# 1. General distillation: the layers of a pretrained model. TinyBERT-4 of BERT-base is LAYERS=4 HIDDEN=312 HEADS=12 FFN=1200.
# shellcheck disable=SC2086  # several options
$sesame pretrain --corpus "$out/corpus.ids" --teacher "$general" --student-layers "${LAYERS:-4}" ${HIDDEN:+--student-hidden $HIDDEN} \
    ${HEADS:+--student-heads $HEADS} ${FFN:+--student-ffn $FFN} $inner --length "${LENGTH:-128}" --batch-size "${BATCH:-256}" \
    --epochs "${GENERAL_EPOCHS:-3}" --lr "${GENERAL_LR:-1e-4}" $device --resume -o "$out/general"

# 2. Task distillation, inner layers: the fine-tuned teacher.
# shellcheck disable=SC2086
$sesame finetune --model "$out/general" --teacher "$teacher" --task "$task" --train "$train" --eval "$eval" $inner \
    --epochs "${INNER_EPOCHS:-10}" --lr "${INNER_LR:-5e-5}" --batch-size "${TASK_BATCH:-32}" --last-weights $device --resume -o "$out/inner"

# 3. Task distillation, predictions at temperature 1.
# shellcheck disable=SC2086
$sesame finetune --model "$out/inner" --teacher "$teacher" --task "$task" --train "$train" --eval "$eval" --soft-weight 1 \
    --hard-weight 0 --temperature 1 --epochs "${EPOCHS:-3}" --lr "${LR:-3e-5}" --batch-size "${TASK_BATCH:-32}" $device --resume -o "$out/student"
