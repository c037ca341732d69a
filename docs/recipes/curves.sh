#!/bin/sh
# Learning curves on SST-2, AG News, TREC and CoNLL-2003: 8 to all examples, five seeds with intervals. Methods: nb, fasttext,
# vectors, bilstm, logreg, finetune, lora, prefix, setfit and pet; of CoNLL-2003 bilstm, head, finetune, lora and prefix.
#     sh docs/recipes/curves.sh OUT [TASK...]             DATA: folder of the data sets (data)
# Writes OUT/TASK/ with curve.json, curve.svg and curve.html; a repeated call continues. The options in OPTIONS are added, on a GPU
# OPTIONS="--device cuda --jobs 16"; OUT on a disk in memory (/dev/shm) saves time. Variables: MODEL (sesame-small),
# ENCODER (of setfit, sesame-embed), SEEDS (5), SIZES (8,16,...,1024,all), METHODS, VECTORS (word vectors of vectors and
# bilstm; default: of the drawn texts), UNLABELED (texts that pet reads, drawn from the training file: 2000). Run it from the
# source folder.
#
# AG News: the curve draws from dev.tsv, 10,001 texts of the official training set.
set -eu
out=$1
shift
[ $# -gt 0 ] || set -- sst2 agnews trec conll2003
sesame=${SESAME:-build/sesame} data=${DATA:-data} sizes=${SIZES:-8,16,...,1024,all}
mkdir -p "$out"
for task; do
    case $task in
    sst2) train=glue/SST-2/train.tsv eval=glue/SST-2/dev.tsv ;;
    agnews) train=text-classification/agnews/dev.tsv.xz eval=text-classification/agnews/test.tsv.xz ;;
    trec) train=text-classification/trec/train.tsv eval=text-classification/trec/test.tsv ;;
    conll2003) train=conll2003/train.txt eval=conll2003/test.txt ;;
    *) echo "unknown task $task: sst2, agnews, trec, conll2003" >&2; exit 2 ;;
    esac
    methods=bilstm,head,finetune,lora,prefix
    [ "$task" = conll2003 ] || methods=nb,fasttext,vectors,bilstm,logreg,finetune,lora,prefix,setfit,pet
    methods=${METHODS:-$methods}
    more=
    case ",$methods," in *,setfit,*) more="--set setfit:model=${ENCODER:-sesame-embed}" ;; esac
    case ",$methods," in *,pet,*)
        case $train in *.xz) xz -dc "$data/$train" ;; *) tail -n +2 "$data/$train" ;; esac | awk 'BEGIN { srand(1) } { print rand() "\t" $0 }' |
            sort -n | head -n "${UNLABELED:-2000}" | cut -f 2- >"$out/$task.unlabeled"
        case $train in *.xz) ;; *) head -n 1 "$data/$train" | cat - "$out/$task.unlabeled" >"$out/$task.tsv" && mv "$out/$task.tsv" "$out/$task.unlabeled" ;; esac
        more="$more --unlabeled $out/$task.unlabeled --patterns docs/recipes/patterns/$task.json --set pet:repetitions=1 --set pet:batch-size=16"
        ;;
    esac
    if [ "$task" != conll2003 ]; then
        more="$more ${VECTORS:+--vectors $VECTORS}"
    elif [ -n "${VECTORS:-}" ]; then
        case ",$methods," in *,bilstm,*) more="$more --set bilstm:embed=static:$VECTORS,char" ;; esac
    fi
    resume=
    [ ! -e "$out/$task/curve.json" ] || resume=--resume
    # shellcheck disable=SC2086  # several options
    "$sesame" curve --model "${MODEL:-sesame-small}" --task "$task" --train "$data/$train" --eval "$data/$eval" --sizes "$sizes" \
        --seeds "${SEEDS:-5}" --methods "$methods" $more --output "$out/$task" $resume ${OPTIONS:-}
done
