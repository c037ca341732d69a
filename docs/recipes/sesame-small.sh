#!/bin/sh
# Trains the bundled models from text: tokenizer, token file, pretraining, quantization.
#     sh docs/recipes/sesame-small.sh CORPUS VALID OUT
# CORPUS and VALID: English, one paragraph per line, an empty line between documents; plain or .xz. Writes to OUT:
#     small-f16      the encoder in 16 bits: start of full fine-tuning
#     sesame-small   the bundled encoder in 8 bits: base model of the adapters
#     sesame-gpt     the bundled generator, if PARTS contains generator
# The bundled encoder is the mean of the weights after a first and a second round: PARTS="encoder again generator" SEEDS=43.
# Both rounds learn with Muon. Sequences contain whole sentences: 128 tokens, 512 in the middle, 128 again at the end, because most
# texts of the tasks are short. Half of the batches mask whole words, the others single tokens.
# Variables:
#     PARTS                               encoder generator; again: further rounds; words: only the encoder's tokenizer and token files
#     TOKENIZER                           of the encoder: a tokenizer.json; default: trained on CORPUS
#     DEVICE, DTYPE                       cuda; bf16 on a GPU
#     STEPS or TIME                       updates of the encoder (26000), or as many as fit
#     AGAIN_STEPS or AGAIN_TIME           of a further round (8000)
#     SEEDS                               of the further rounds ("43 44"): each starts from the same model, and the result is the mean of the
#                                         weights of that model and of all rounds
#     GPT_TIME or GPT_STEPS               of the generator
#     BATCH, LENGTH                       tokens per update; sequence length
#     LR, AGAIN_LR, CONFIG, VOCAB         learning rates, architecture, vocabulary size
#     OPTIMIZER, RATIO, SCHEDULE          muon, its rate of hidden matrices relative to LR (2), linear
#     OBJECTIVE, UNIT                     mlm, token:0.5,word:0.5 (--mask-unit)
#     DECAY, AGAIN_DECAY, WARMUP          weight decay of the rounds; warmup of the first
#     FROM                                initial model of the further rounds (OUT/work/encoder; may be an 8-bit folder)
#     SAVE_EVERY, RESUME=1                updates per checkpoint; resume from one
#     EVAL_EVERY, EVAL_TOKENS             updates between evaluations (-1: one at the end), held-out tokens (1000000)
#     SESAME                              the command (build/sesame)
#     EXTRA, AGAIN_EXTRA, GPT_EXTRA       further options of pretrain
# A quick trial on two cores:
#     DEVICE=cpu TIME=1m GPT_TIME=1m BATCH=1024 sh docs/recipes/sesame-small.sh sample.txt sample.txt /tmp/try
set -eu
corpus=$1 valid=$2 out=$3
here=$(dirname "$0")
sesame=${SESAME:-build/sesame} device=${DEVICE:-cuda}
case $device in cuda*) dtype=${DTYPE:-bf16} ;; *) dtype=${DTYPE:-f32} ;; esac
work=$out/work
mkdir -p "$work"
text() { case $1 in *.xz) xz -dc "$1" ;; *) cat "$1" ;; esac; }
exists() { [ -e "$1" ] && echo "$1 exists" >&2; }

tokenizer() { # NAME OPTION-OF-CORPUS OPTION...
    name=$1 split=$2
    shift 2
    exists "$work/$name.json" || text "$corpus" | "$sesame" train-tokenizer -q -o "$work/$name.json" "$@" -
    for part in corpus valid; do
        eval "from=\$$part"
        # shellcheck disable=SC2086  # no option or one
        exists "$work/$part-$name.ids" ||
            "$sesame" corpus build -q $split --tokenizer "$work/$name.json" -o "$work/$part-$name.ids" "$from" >/dev/null
    done
}

train() { # NAME TOKENIZER TIME STEPS OPTION...
    name=$1 t=$2 time="--max-time $3"
    [ -z "$4" ] || time="--steps $4"
    shift 4
    again=--overwrite
    [ -z "${RESUME:-}" ] || again=--resume
    # shellcheck disable=SC2086  # several words
    "$sesame" pretrain --corpus "$work/corpus-$t.ids" --eval "$work/valid-$t.ids" --tokenizer "$work/$t.json" \
        --output "$work/$name" --device "$device" --dtype "$dtype" $time --tokens-per-batch "${BATCH:-65536}" \
        --save-every "${SAVE_EVERY:--1}" --eval-every "${EVAL_EVERY:--1}" --eval-tokens "${EVAL_TOKENS:-1000000}" \
        $again "$@"
}

export_encoder() { # FOLDER: writes the encoder in 16 and in 8 bits
    "$sesame" convert "$1" "$out/small-f16" --dtype f16 --overwrite -q
    "$sesame" quantize "$out/small-f16" "$out/sesame-small" --dtype int8 --embeddings int8 --overwrite -q
}

parts=${PARTS:-encoder generator}
optimizer=${OPTIMIZER:-muon}
mlm="--objective ${OBJECTIVE:-mlm} --mask-rate 0.3 --mask-rate-end 0.15 --mask-unit ${UNIT:-token:0.5,word:0.5} --optimizer $optimizer"
[ "$optimizer" != muon ] || mlm="$mlm --muon-ratio ${RATIO:-2}"
mlm="$mlm --schedule ${SCHEDULE:-linear}"
words() {
    if [ -n "${TOKENIZER:-}" ]; then
        [ -e "$work/word.json" ] || cp "$TOKENIZER" "$work/word.json"
        cmp -s "$TOKENIZER" "$work/word.json" || { echo "$work/word.json is another tokenizer than $TOKENIZER: remove it, or use another OUT" >&2; exit 1; }
    fi
    tokenizer word --split-sentences --type wordpiece --lowercase --vocab-size "${VOCAB:-8192}" --limit-alphabet 120
}
length=${LENGTH:-128:0.7,512:0.12,128:0.18}

case $parts in *words*) words ;; esac
case $parts in *encoder*)
    words
    steps=${STEPS:-}
    [ -n "$steps${TIME:-}" ] || steps=26000
    # shellcheck disable=SC2086  # several options
    train encoder word "${TIME:-}" "$steps" --config "${CONFIG:-$here/sesame-small.json}" $mlm \
        --length "$length" --lr "${LR:-2e-3}" --weight-decay "${DECAY:-0.1}" --warmup "${WARMUP:-0.02}" ${EXTRA:-}
    export_encoder "$work/encoder" ;;
esac
case $parts in *again*)
    words
    from=${FROM:-$work/encoder}
    steps=${AGAIN_STEPS:-}
    [ -n "$steps${AGAIN_TIME:-}" ] || steps=8000
    set --
    for seed in ${SEEDS:-43 44}; do
        # shellcheck disable=SC2086  # several options
        train "again-$seed" word "${AGAIN_TIME:-}" "$steps" --model "$from" $mlm \
            --length "$length" --lr "${AGAIN_LR:-1e-3}" --weight-decay "${AGAIN_DECAY:-0.1}" --warmup 0.02 --seed "$seed" ${AGAIN_EXTRA:-}
        set -- "$@" --average "$work/again-$seed"
    done
    "$sesame" convert "$from" "$work/mean" "$@" --dtype f32 --overwrite -q
    export_encoder "$work/mean" ;;
esac
case $parts in *generator*)
    tokenizer byte '' --type bpe --vocab-size 4096
    # shellcheck disable=SC2086  # several options
    train generator byte "${GPT_TIME:-2m}" "${GPT_STEPS:-}" --config "$here/sesame-gpt.json" --objective clm --length 256 --lr 2e-3 \
        --weight-decay 0.05 --warmup 0.05 ${GPT_EXTRA:-}
    "$sesame" quantize "$work/generator" "$out/sesame-gpt" --dtype int8 --embeddings int8 --overwrite -q
    cp "$here/sesame-gpt-generation.json" "$out/sesame-gpt/generation_config.json" ;;
esac
