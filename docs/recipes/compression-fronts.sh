#!/bin/sh
# The measured fronts of docs/COMPRESSION.md: SST-2, CoNLL-2003 and SQuAD on the bundled encoder.
#     sh docs/recipes/compression-fronts.sh OUT [TASK...]         DATA: folder of the data sets (data)
# Writes OUT/TASK/ with compress.json, compress.svg, compress.html and the chosen model; a repeated call continues. The options
# in OPTIONS are added: OPTIONS="--device cuda --dtype bf16 --jobs 6 --make-only" trains on a GPU, a second call without
# --make-only measures on the CPU. Variables: MODEL (sesame-small), METHODS, TEXTS and ROUNDS of the timing. Run it from the source folder.
#
# Scores of the fronts are on the dev files, which also choose; OUT/TASK.test has the score of the chosen model on the test file.
set -eu
out=$1
shift
[ $# -gt 0 ] || set -- sst2 conll2003 squad
sesame=${SESAME:-build/sesame} data=${DATA:-data}
work=$out/data
mkdir -p "$work"

# get PATH: prints the path of a file of DATA, decompressed into OUT/data if necessary.
get() {
    if [ -e "$data/$1" ]; then
        echo "$data/$1"
    else
        to=$work/$(echo "$1" | tr / -)
        [ -e "$to" ] || { xz -dc "$data/$1.xz" >"$to.part" && mv "$to.part" "$to"; } || return 1
        echo "$to"
    fi
}

for task; do
    test=
    case $task in
    sst2) set -- glue/SST-2/train.tsv glue/SST-2/dev.tsv "--epochs 2 --batch-size 64 --lr 1.5e-4" test=glue/SST-2/test-labelled.tsv ;;
    conll2003) set -- conll2003/train.txt conll2003/valid.txt "--epochs 4 --batch-size 32 --lr 3e-4" test=conll2003/test.txt ;;
    squad) set -- squad/train-v1.1-subset.json squad/dev-v1.1.json "--epochs 3 --batch-size 24 --lr 2e-4 --max-length 384" ;;
    *) echo "unknown task $task: sst2, conll2003, squad" >&2; exit 2 ;;
    esac
    [ $# -lt 4 ] || test=${4#test=}
    train=$(get "$1") eval=$(get "$2")
    resume=
    [ ! -e "$out/$task/compress.json" ] || resume=--resume
    # shellcheck disable=SC2086  # several options
    "$sesame" compress "${MODEL:-sesame-small}" --task "$task" --data "$train" --eval "$eval" $3 --texts "${TEXTS:-32}" \
        --rounds "${ROUNDS:-5}" ${METHODS:+--methods "$METHODS"} --output "$out/$task" $resume ${OPTIONS:-}
    if [ -n "$test" ] && [ -e "$out/$task/model/config.json" ]; then
        test=$(get "$test")
        "$sesame" eval "$out/$task/model" "$test" --task "$task" --bootstrap 1000 >"$out/$task.test"
    fi
done
