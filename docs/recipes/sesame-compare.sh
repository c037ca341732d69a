#!/bin/sh
# Short runs that compare settings for the recipe of sesame-small.sh. Each run trains for TIME (35s), or STEPS updates, on the same
# text. The script prints the held-out loss, the accuracy on 6,700 minimal pairs (BLiMP) and, if SST2 is set, the accuracy of a
# sentiment model fine-tuned from the result. Losses are comparable only between models with the same vocabulary; accuracies always.
#     sh docs/recipes/sesame-compare.sh CORPUS VALID PAIRS OUT [NAME...]
# Variables: STEPS: number of updates per run instead of TIME; JOBS: parallel runs with STEPS (1); SST2: folder with train.tsv and
# dev.tsv; BATCH: tokens per update (65536); EVAL_TOKENS: held-out tokens (300000); DECAY: weight decay (0.1); SESAME (build/sesame),
# DEVICE (cuda), DTYPE (bf16).
set -eu
corpus=$1 valid=$2 pairs=$3 out=$4
shift 4
[ $# -gt 0 ] || set -- bert modern modern-2e-3 modern-16k
here=$(dirname "$0")
sesame=${SESAME:-build/sesame}
export SESAME_DEVICE="${DEVICE:-cuda}" SESAME_THREADS=1
mkdir -p "$out"
sed 's/"bert"/"electra"/; s/^  "hidden_size": \(.*\),/&\n  "embedding_size": \1,/' "$here/sesame-small-bert.json" >"$out/electra.json"

# choose NAME: sets the configuration of a run.
choose() {
    config=$here/sesame-small.json lr=1e-3 vocab=8192 length=128 extra= batch=${BATCH:-65536} optimizer=adamw ratio=
    # Post-norm models stay longer on the plateau of the unigram loss; smaller batches shorten it.
    case $1 in bert*) config=$here/sesame-small-bert.json batch=$((batch / 2)) extra='--warmup 0.3' ;; esac
    case $1 in
    bert | modern) ;;
    bert-rtd) config=$out/electra.json extra="$extra --objective rtd --mask-rate -1 --mask-rate-end -1" ;;
    bert-mix) extra="$extra --objective mntp:15,clm:1" ;;
    modern-2e-3) lr=2e-3 ;;
    modern-16k) vocab=16384 ;;
    modern-mask15) extra='--mask-rate 0.15' ;;
    modern-512) length=512 ;;
    modern-ema) extra='--ema 0.99' ;;
    modern-lamb) lr=8e-3 optimizer=lamb ;;
    modern-ramp) extra='--batch-ramp 0.5 --ramp-from 0.25' ;;
    muon-*e-*-*) # muon-RATE-RATIO, as muon-2e-3-4
        optimizer=muon ratio=${1##*-} lr=${1#muon-} lr=${lr%-*} ;;
    *) echo "unknown run $1" >&2; exit 2 ;;
    esac
}

run() { # NAME
    choose "$1"
    mkdir -p "$out/$1/work"
    ln -sf "$(cd "$out/$vocab/work" && pwd)"/*word* "$out/$1/work/"
    CONFIG=$config BATCH=$batch LR=$lr VOCAB=$vocab TIME=${TIME:-35s} STEPS=${STEPS:-} LENGTH=$length WARMUP=0.05 UNIT=token OPTIMIZER=$optimizer RATIO=$ratio EVAL_TOKENS=${EVAL_TOKENS:-300000} PARTS=encoder EXTRA=$extra \
        sh "$here/sesame-small.sh" "$corpus" "$valid" "$out/$1" >"$out/$1.log" 2>&1 || { tail -3 "$out/$1.log"; return 0; }
    grep -E ' per update: |^Held|mlm_accuracy|^Time' "$out/$1.log" | tr -s ' \n' ' ' | sed "s/^/$1: /; s/ *$/\n/"
}

evaluate() { # NAME
    model=$out/$1/work/encoder
    [ -e "$model/model.safetensors" ] || return 0
    case $1 in *rtd) ;; *)
        "$sesame" eval "$model" "$pairs" --task blimp --json -q | sed "s/^{\"eval_accuracy\": \([0-9.]*\).*/$1: BLiMP \1/" ;;
    esac
    [ -n "${SST2:-}" ] || return 0
    "$sesame" finetune --model "$model" --task sst2 --train "$SST2/train.tsv" --eval "$SST2/dev.tsv" --output "$out/$1/sst2" \
        --epochs 1 --batch-size 64 --lr 1.5e-4 --overwrite --dtype "${DTYPE:-bf16}" -q &&
        sed -n "s/.*\"eval_accuracy\": \([0-9.]*\).*/$1: SST-2 \1/p" "$out/$1/sst2/all_results.json"
}

run_parallel() { # COMMAND NAME...
    command=$1 n=0
    shift
    for name; do
        $command "$name" &
        n=$((n + 1))
        [ $((n % ${JOBS:-1})) -ne 0 ] || wait
    done
    wait
}

for name; do
    choose "$name"
    VOCAB=$vocab PARTS=words sh "$here/sesame-small.sh" "$corpus" "$valid" "$out/$vocab"
done
run_parallel run "$@"
run_parallel evaluate "$@"
