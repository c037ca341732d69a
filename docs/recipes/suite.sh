#!/bin/sh
# Fine-tunes a pretrained model on GLUE tasks and prints one table of scores.
#     sh docs/recipes/suite.sh MODEL OUT [TASK...]        DATA: folder with glue/ (data)
# Writes OUT/TASK/ with each model and its scores; finished tasks are skipped. Variables: EPOCHS (3), LR (1e-4).
set -eu
model=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- cola sst2 mrpc stsb rte
sesame=${SESAME:-build/sesame} data=${DATA:-data}/glue
mkdir -p "$out"
for task; do
    case $task in
    cola) dir=CoLA ;;
    sst2) dir=SST-2 ;;
    mrpc) dir=MRPC ;;
    stsb) dir=STS-B ;;
    rte) dir=RTE ;;
    *) echo "unknown task $task: cola, sst2, mrpc, stsb, rte" >&2; exit 2 ;;
    esac
    [ -e "$out/$task/all_results.json" ] ||
        "$sesame" finetune --model "$model" --task "$task" --train "$data/$dir/train.tsv" --eval "$data/$dir/dev.tsv" \
            --output "$out/$task" --epochs "${EPOCHS:-3}" --lr "${LR:-1e-4}" --batch-size 32 --max-length 128 --overwrite
done
"$sesame" compare "$out"
