#!/bin/sh
# Fine-tunes the bundled encoder on all tasks and computes every score in docs/MODELS.md:
#     sh docs/recipes/sesame-tasks.sh DATA OUT [PART...]
# DATA contains glue/, conll2003/, squad/, qamr/, sentence-pairs/, text-classification/agnews/ and probes/blimp/; OUT is the output
# folder of sesame-small.sh. Each task is trained twice per seed: the whole model (from OUT/small-f16), and an adapter of the 8-bit
# model (OUT/sesame-small), which is bundled. PARTS, in this order: data runs scores ship shipped; collect only rebuilds
# OUT/scores.jsonl. Each run is evaluated when it ends. Finished runs and scores are skipped, so the same command resumes after an
# interruption.
# Writes OUT/runs/WAY-TASK-SEED, OUT/scores.jsonl (input of tools/model-cards), and OUT/sesame-{sentiment,ner,qa,nli,embed}: the
# adapters of the seeds with the median dev score.
# Variables: DEVICE (cuda), DTYPE, JOBS in parallel (6), SEEDS ("1 2 3"), EPOCHS (a factor, 1), TASKS, WAYS ("full|lora"),
# TUNE_EXTRA: further options of finetune.
set -eu
data=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- data runs scores ship shipped
sesame=${SESAME:-build/sesame}
export SESAME_DEVICE="${DEVICE:-cuda}" SESAME_THREADS="${THREADS:-1}"
case $SESAME_DEVICE in cuda*) dtype=${DTYPE:-bf16} ;; *) dtype=${DTYPE:-f32} ;; esac
seeds=${SEEDS:-1 2 3} work=$out/data runs=$out/runs
mkdir -p "$work" "$runs"

# get PATH: prints the path of a file of DATA, decompressed into OUT/data if necessary.
get() {
    if [ -e "$data/$1" ]; then
        echo "$data/$1"
    else
        to=$work/$(echo "$1" | tr / -)
        [ -e "$to" ] || xz -dc "$data/$1.xz" >"$to"
        echo "$to"
    fi
}

# ---- data: training files composed of several data sets ----

# QAMR's questions in SQuAD's JSON format, followed by the SQuAD questions.
make_qa() {
    LC_ALL=C awk -f "$(dirname "$0")/qamr-squad.awk" "$(get qamr/dev.tsv)" >"$work/qamr.part"
    { printf '{"version":"1.1","data":[{"title":"qamr","paragraphs":['; tr -d '\n' <"$work/qamr.part"
      printf ']},'; sed 's/^{"version":"[^"]*","data":\[//' "$(get squad/train-v1.1-subset.json)"; } >"$work/qa.json"
}

# Entailment: SNLI, SICK, SciTail, and topics of news in the hypothesis template of zero-shot classification.
make_nli() {
    cat "$(get sentence-pairs/snli/dev.txt)" "$(get sentence-pairs/sick/train.txt)" "$(get sentence-pairs/scitail/dev.txt)" \
        >"$work/nli.txt"
    awk -F '\t' 'BEGIN { n = split("world news|sports|business|science and technology", name, "|")
                         split("World|Sports|Business|Sci/Tech", was, "|"); for (i in was) at[was[i]] = i }
        NR % 2 == 0 && ($2 in at) {
            other = (at[$2] + NR / 2 % (n - 1)) % n + 1; how = NR % 4 ? "This example is about " : "This example is "
            print $1 "\t" how name[at[$2]] ".\t0"; print $1 "\t" how name[other] ".\t2" }' \
        "$(get text-classification/agnews/dev.tsv)" | grep -v '"' >>"$work/nli.txt"
    # Pairs in general (initial training of RTE, MRPC and STS-B): also duplicate and different questions.
    { cat "$work/nli.txt" "$(get sentence-pairs/scitail/test.txt)"
      cat "$(get sentence-pairs/quora/dev.txt)" "$(get sentence-pairs/quora/test.txt)" |
          awk -F '\t' -v OFS='\t' '{ $3 = 1 - $3; print }'; } >"$work/pairs.txt"
}

# Positive pairs: entailment, duplicate question, paraphrase, a question and its sentence.
make_embed() {
    { for f in sentence-pairs/snli/dev.txt sentence-pairs/sick/train.txt; do
          awk -F '\t' -v OFS='\t' '$3 == 0 { print $1, $2 }' "$(get $f)"; done
      for f in dev test; do awk -F '\t' -v OFS='\t' '$3 == 1 { print $1, $2 }' "$(get sentence-pairs/quora/$f.txt)"; done
      awk -F '\t' -v OFS='\t' 'NR > 1 && $1 == 1 { print $4, $5 }' "$(get glue/MRPC/train.tsv)"
      awk -F '\t' -v OFS='\t' 'NR > 1 && $10 >= 4 { print $8, $9 }' "$(get glue/STS-B/train.tsv)"
      awk -F '\t' -v OFS='\t' 'NR > 1 && NR % 3 == 0 { print $3, $2 }' "$(get qamr/dev.tsv)"; } >"$work/embed.txt"
}

# ---- runs ----

# files TASK: options of finetune: --task, --train, --eval and others.
files() {
    g=$data/glue
    case $1 in
    sst2) echo "--task sst2 --train $g/SST-2/train.tsv --eval $g/SST-2/dev.tsv" ;;
    cola) echo "--task cola --train $g/CoLA/train.tsv --eval $g/CoLA/dev.tsv" ;;
    mrpc) echo "--task mrpc --train $g/MRPC/train.tsv --eval $g/MRPC/dev.tsv" ;;
    stsb) echo "--task stsb --train $g/STS-B/train.tsv --eval $g/STS-B/dev.tsv" ;;
    rte) echo "--task rte --train $g/RTE/train.tsv --eval $g/RTE/dev.tsv" ;;
    ner) echo "--task conll2003 --train $data/conll2003/train.txt --eval $data/conll2003/valid.txt" ;;
    qa) echo "--task squad --train $work/qa.json --eval $(get squad/dev-v1.1.json) --max-length 384" ;;
    nli) echo "--task snli --train $work/nli.txt --eval $(get sentence-pairs/sick/dev.txt)" ;;
    pairs) echo "--task snli --train $work/pairs.txt --eval $(get sentence-pairs/sick/dev.txt)" ;;
    embed) echo "--task embed --no-header --text 1 --pair 2 --train $work/embed.txt --loss negatives --max-length 128" ;;
    *) echo "unknown task $1" >&2; exit 2 ;;
    esac
}

# numbers TASK: epochs, batch size, learning rate of the whole model, of the adapter, epochs between evaluations.
numbers() {
    case $1 in
    sst2) echo 3 64 1.5e-4 1e-3 0.5 ;;
    cola) echo 8 32 1.5e-4 1e-3 1 ;;
    mrpc) echo 6 16 1.5e-4 1e-3 0.5 ;;
    stsb) echo 6 16 1.5e-4 1e-3 1 ;;
    rte) echo 6 16 1e-4 5e-4 0.5 ;;
    ner) echo 7 32 3e-4 2e-3 1 ;;
    qa) echo 4 24 2e-4 1.5e-3 1 ;;
    nli | pairs) echo 3 48 1.5e-4 1e-3 1 ;;
    embed) echo 3 128 1e-4 2e-3 1 ;;
    esac
}

# one WAY TASK SEED: trains one run and prints one line.
one() {
    way=$1 task=$2 seed=$3
    to=$runs/$way-$task-$seed
    [ -e "$to/all_results.json" ] && return 0
    # shellcheck disable=SC2046  # five words
    set -- $(numbers "$task")
    epochs=$(awk "BEGIN { print $1 * ${EPOCHS:-1} * (\"$way\" == \"lora\" ? 1.25 : 1) }")
    case $way in
    full) model=$out/small-f16 rate=$3 how="--layer-decay 0.9" ;;
    lora)
        case $task in embed) targets=attn.qkv,attn.out ;; *) targets=all ;; esac
        model=$out/sesame-small rate=$4 how="--adapter lora --lora-rank 4 --lora-alpha 8 --lora-targets $targets" ;;
    esac
    pairs=$runs/full-pairs-${seeds%% *}
    case $way-$task in full-mrpc | full-stsb | full-rte) [ ! -e "$pairs/all_results.json" ] || model=$pairs ;; esac
    # shellcheck disable=SC2046,SC2086  # several options
    if "$sesame" finetune -m "$model" $(files "$task") -o "$to" --overwrite --dtype "$dtype" --epochs "$epochs" \
        --batch-size "$2" --lr "$rate" --eval-epochs "$5" $how --dropout 0.1 --attention-dropout 0.1 --classifier-dropout 0.1 \
        --seed "$seed" ${TUNE_EXTRA:-} >"$to.log" 2>&1; then
        grep -o '"eval_\(accuracy\|f1\|matthews_correlation\|pearson\|spearmanr\)": [0-9.e-]*' "$to/all_results.json" |
            head -1 | sed "s/^/$way $task $seed: /"
        rm -rf "$to"/checkpoint-*
        measure "$way" "$task" "$seed"
    else
        echo "$way $task $seed: $(tail -1 "$to.log")"
    fi
}

# All runs in order: bundled adapters and long runs first; runs that start from the pair model last.
queue() {
    echo "full pairs ${seeds%% *}"
    for run in lora-qa lora-sst2 lora-ner lora-nli lora-embed full-qa full-sst2 full-ner full-cola full-rte full-mrpc full-stsb \
        lora-rte lora-mrpc lora-stsb lora-cola; do
        way=${run%-*} task=${run#*-}
        for seed in $seeds; do
            case " ${TASKS:-$task} " in *" $task "*) echo "$way $task $seed" ;; esac
        done
    done
}

# ---- scores ----

# score NAME WAY TASK SEED MODEL FILE OPTION...: runs sesame eval; one output file per score, because several run in parallel.
score() {
    name=$1 way=$2 task=$3 seed=$4 model=$5 file=$6
    shift 6
    to=$runs/eval.$name-$way-$seed
    [ -e "$model/config.json" ] || return 0
    [ -z "${missing-}" ] || [ ! -s "$runs/score.$name-$way-$seed" ] || return 0
    "$sesame" eval "$model" "$file" --json -q "$@" >"$to" 2>"$to.log" || { tail -1 "$to.log"; return 0; }
    sed "s|^{|{\"name\": \"$name\", \"way\": \"$way\", \"task\": \"$task\", \"seed\": $seed, |" "$to" | tr -d '\n' | sed 's/$/\n/' \
        >"$runs/score.$name-$way-$seed"
}

# measure WAY TASK SEED [MODEL]: computes the scores of a run.
measure() {
    g=$data/glue m=${4:-$runs/$1-$2-$3} name=$2
    set -- "$1" "$2" "$3" "$m"
    case $name in
    sst2)
        score sst2 "$@" "$g/SST-2/dev.tsv" --task sst2
        score sst2-test "$@" "$g/SST-2/test-labelled.tsv" --task sst2 ;;
    cola) score cola "$@" "$g/CoLA/dev.tsv" --task cola ;;
    mrpc) score mrpc "$@" "$g/MRPC/dev.tsv" --task mrpc ;;
    stsb) score stsb "$@" "$g/STS-B/dev.tsv" --task stsb ;;
    rte) score rte "$@" "$g/RTE/dev.tsv" --task rte ;;
    ner)
        score conll2003 "$@" "$data/conll2003/test.txt" --task conll2003
        score conll2003-dev "$@" "$data/conll2003/valid.txt" --task conll2003 ;;
    qa) score squad "$@" "$(get squad/dev-v1.1.json)" --task squad --max-length 384 ;;
    nli)
        score sick-dev "$@" "$(get sentence-pairs/sick/dev.txt)" --task sick
        score snli "$@" "$(get sentence-pairs/snli/test.txt)" --task snli
        score sick "$@" "$(get sentence-pairs/sick/test.txt)" --task sick ;;
    embed)
        score stsb-cosine "$@" "$g/STS-B/dev.tsv" --task embed --text sentence1 --pair sentence2 --label score \
            --measure scores ;;
    esac
}

# Computes the missing scores, then the scores of the encoders.
scores() {
    queue | while read -r way task seed; do
        missing=yes
        measure "$way" "$task" "$seed" </dev/null
    done
    blimp=${BLIMP:-$(get probes/blimp/blimp.tsv)}
    score blimp f16 encoder 0 "$out/small-f16" "$blimp" --task blimp &
    score blimp int8 encoder 0 "$out/sesame-small" "$blimp" --task blimp &
    wait
    collect
}

collect() { cat "$runs"/score.* >"$out/scores.jsonl"; }

# Scores of the bundled files in MODELS (default: OUT).
shipped() {
    m=${MODELS:-$out}
    measure shipped sst2 0 "$m/sesame-sentiment" &
    measure shipped ner 0 "$m/sesame-ner" &
    measure shipped qa 0 "$m/sesame-qa" &
    measure shipped nli 0 "$m/sesame-nli" &
    measure shipped embed 0 "$m/sesame-embed" &
    # The adapters on the encoder in 16 bits; skipped if there is none.
    score sst2 shipped-over-f16 sst2 0 "$out/small-f16" "$data/glue/SST-2/dev.tsv" --task sst2 --adapter "$m/sesame-sentiment" &
    score conll2003 shipped-over-f16 ner 0 "$out/small-f16" "$data/conll2003/test.txt" --task conll2003 --adapter "$m/sesame-ner" &
    pairs=$(get probes/blimp/blimp-sample100.tsv)
    score blimp6700 shipped encoder 0 "$m/sesame-small" "$pairs" --task blimp &
    score blimp6700-word shipped encoder 0 "$m/sesame-small" "$pairs" --task blimp --pll word &
    score blimp6700-warm shipped encoder 0 "$m/sesame-small" "$pairs" --task blimp --temperature 2 &
    wait
    collect
}

# ---- bundled adapters: for each task the seed with the median dev score (ties: by seed) ----

# median_seed NAME SCORE: prints the seed with the median score.
median_seed() {
    grep "\"name\": \"$1\", \"way\": \"lora\"" "$out/scores.jsonl" |
        sed "s/.*\"seed\": \([0-9]*\).*\"eval_$2\": \([0-9.e-]*\).*/\2 \1/" | sort -n |
        awk '{ seed[NR] = $2 } END { print seed[int((NR + 1) / 2)] }'
}

ship() { # FOLDER TASK NAME SCORE
    seed=$(median_seed "$3" "$4")
    [ -n "$seed" ] || { echo "no scores of $2: no adapter is written" >&2; return 0; }
    "$sesame" convert "$runs/lora-$2-$seed" "$out/$1" --keep-adapter --dtype f16 --overwrite -q
    echo "$1: seed $seed"
}

for part; do
    case $part in
    data) make_qa; make_nli; make_embed ;;
    runs) queue | grep -E "^(${WAYS:-full|lora}) " | xargs -P "${JOBS:-6}" -L 1 sh "$0" "$data" "$out" one ;;
    one) one "$2" "$3" "$4"; exit ;;
    scores) scores ;;
    collect) collect ;;
    ship)
        ship sesame-sentiment sst2 sst2 accuracy
        ship sesame-ner ner conll2003-dev f1
        ship sesame-qa qa squad f1
        ship sesame-nli nli sick-dev accuracy
        ship sesame-embed embed stsb-cosine spearmanr ;;
    shipped) shipped ;;
    *) echo "unknown part $part" >&2; exit 2 ;;
    esac
done
