#!/bin/sh
# Recurrent models from language models to taggers, classifiers and translation: the tables of docs/RECIPES.md,
# "Recurrent models on one GPU".
#
# usage: recurrent.sh CORPUS DATA OUT [PART...]
#
# CORPUS: a text with a paragraph per line and a blank line between documents (.xz is read). DATA contains conll2003,
# conll2000, glue, text-classification and multi30k. Parts: lms, taggers, imdb, glue, sentences, ladder, translation;
# default: all. Finished models are skipped. Variables: DEVICE ("--device cuda"), DTYPE ("--dtype bf16", of language
# models and classifiers), SCALE (100: percent of the updates of language models), UNLABELED (sentences in CoNLL format:
# Cross-View Training), SMALL (sesame-small), SESAME. All lengths are numbers of updates or epochs, so that a run on a
# shared or slower GPU gives the same models.
# shellcheck disable=SC2086  # several options in one variable
set -eu
corpus=$1 data=$2 out=$3
shift 3
[ $# -gt 0 ] || set -- lms taggers imdb glue sentences ladder translation
sesame=${SESAME:-sesame} device=${DEVICE---device cuda} dtype=${DTYPE---dtype bf16} scale=${SCALE:-100}
recipes=$(dirname "$0")
mkdir -p "$out"

# new FOLDER COMMAND...: runs a command that writes a folder or file, unless it exists.
new() {
    made=$out/$1
    shift
    [ -e "$made" ] || "$sesame" "$@" --output "$made"
}
# text FILE: its text, .xz or not.
text() { case $1 in *.xz) xz -dc "$1" ;; *) cat "$1" ;; esac; }
updates() { echo "$(($1 * scale / 100))"; }
once="--eval-every -1 --save-every -1" # no score selects a checkpoint

lms() {
    new lower.json train-tokenizer --type wordlevel --lowercase --vocab-size 30000 "$corpus"
    new elmo.json train-tokenizer --type wordlevel --special-tokens '[UNK],[CLS],[SEP]' --stages "$recipes/elmo-stages.json" \
        --vocab-size 50000 "$corpus"
    new skip.json train-tokenizer --type wordlevel --stages "$recipes/skip-stages.json" --vocab-size 30000 "$corpus"
    new bytes.json train-tokenizer --type bpe --vocab-size 257 "$corpus"
    new vectors.bin vectors train --words text --dim 100 --epochs 5 $device --format word2vec-binary "$corpus"
    new words.json vectors tokenizer "$out/vectors.bin"
    new lower.ids corpus build --tokenizer "$out/lower.json" --held-out 0.5% "$corpus"
    new elmo.ids corpus build --tokenizer "$out/elmo.json" --held-out 0.5% "$corpus"
    [ -e "$out/words.txt" ] || text "$corpus" | sed -E -f "$recipes/split-words.sed" >"$out/words.txt" # as in CoNLL files
    new bytes.ids corpus build --tokenizer "$out/bytes.json" --line-ends --held-out 0.5% "$out/words.txt"
    new sentences.ids corpus build --tokenizer "$out/skip.json" --split-sentences --held-out 0.5% "$corpus"
    bptt="--objective bptt --schedule one_cycle --clip 0.4 $once $device $dtype"
    new general pretrain -c "$out/lower.ids" --tokenizer "$out/lower.json" -p ulmfit --set alpha=0 --set beta=0 \
        --set input_p=0.15 --set hidden_p=0.1 --set weight_p=0.15 --length 72 --pieces 2 -b 128 --lr 3e-3 --steps "$(updates 6000)" $bptt
    for forward in true false; do
        new flair-$forward pretrain -c "$out/bytes.ids" --tokenizer "$out/bytes.json" -p flair-lm --set hidden_size=1024 \
            --set is_forward_lm=$forward --length 128 --pieces 2 -b 128 --lr 2e-3 --steps "$(updates 2900)" $bptt
    done
    new elmo pretrain -c "$out/elmo.ids" --tokenizer "$out/elmo.json" -p elmo-small --set projection_dim=256 \
        --set sampled_softmax=0 --objective bilm -b 128 -n 64 --lr 2e-3 --steps "$(updates 6000)" $once $device $dtype
    new skip pretrain -c "$out/sentences.ids" --tokenizer "$out/skip.json" -p skip-thought --set hidden_size=1024 \
        --set embedding_size=320 --objective skip -b 32 -n 256 --lr 1e-3 --steps "$(updates 4000)" $once $device $dtype
}

# tagger SET NAME EMBEDDINGS LR OPTION...: dev and test F1.
tagger() {
    set_=$1 name=$2 embeddings=$3 lr=$4
    shift 4
    new "tag-$set_-$name" finetune --task tag --embed "$embeddings" --train "$out/$set_/train.txt" --eval "$out/$set_/valid.txt" \
        --epochs 12 --lr "$lr" $device "$@"
    "$sesame" eval "$out/tag-$set_-$name" "$out/$set_/test.txt" --task tag $device
}

taggers() {
    for set in conll2003 conll2000; do
        mkdir -p "$out/$set"
        cp "$data/$set/test.txt" "$out/$set"
        if [ $set = conll2003 ]; then
            cp "$data/$set/train.txt" "$data/$set/valid.txt" "$out/$set"
        else # the last 900 sentences select the epoch
            awk -v RS= -v ORS='\n\n' 'NR <= 8036' "$data/$set/train.txt" >"$out/$set/train.txt"
            awk -v RS= -v ORS='\n\n' 'NR > 8036' "$data/$set/train.txt" >"$out/$set/valid.txt"
        fi
        static=static:$out/vectors.bin,char
        flair=$static,flair:$out/flair-true,flair:$out/flair-false
        tagger $set word word,char 2e-3
        tagger $set static "$static" 2e-3
        for lm in lm:general elmo:elmo; do # at the input; between two layers (TagLM)
            tagger $set "${lm%:*}" "$static,${lm%:*}:$out/${lm#*:}" 5e-4
            tagger $set "${lm%:*}-late" "$static,${lm%:*}:$out/${lm#*:}" 1e-3 --lm-layer 1
        done
        tagger $set flair "$flair" 5e-4
        tagger $set flair-late "$flair" 5e-4 --lm-layer 1
        tagger $set transformer "transformer:${SMALL:-sesame-small},char" 2e-3
        [ -z "${UNLABELED:-}" ] || tagger $set cvt "$static" 1e-3 --unlabeled "$UNLABELED"
    done
}

imdb() {
    reviews=$data/text-classification/imdb
    run="finetune --task classify --train $reviews/train.tsv.xz --eval $reviews/test.tsv.xz --max-length 400 --bucket 20 $once"
    run="$run $device $dtype"
    bptt="--objective bptt --length 72 --pieces 4 -b 64 --schedule one_cycle --clip 0.4 $once $device $dtype"
    # The training reviews and documents of one or two paragraphs of the corpus, most of them reviews without labels.
    { text "$reviews/train.tsv.xz" | cut -f 1 | tail -n +2 | sed G; text "$corpus" | awk -v RS= -v ORS='\n\n' -F'\n' 'NF <= 2'; } \
        >"$out/reviews.txt"
    new reviews.ids corpus build --tokenizer "$out/lower.json" --held-out 2% "$out/reviews.txt"
    lstm="--config bilstm --set bidirectional=false --tokenizer $out/words.json --epochs 5 --lr 1e-3"
    new imdb-lstm $run $lstm
    new imdb-vectors $run $lstm --vectors "$out/vectors.bin"
    new reviews-lm pretrain -c "$out/reviews.ids" --tokenizer "$out/lower.json" -p lstm --epochs 4 --lr 2e-3 $bptt
    new imdb-lm $run -m "$out/reviews-lm" --epochs 5 --lr 1e-3
    new reviews-sa pretrain -c "$out/reviews.ids" --tokenizer "$out/lower.json" -p lstm --objective autoencoder --packing doc \
        --length 400 -b 64 --epochs 4 --lr 2e-3 $once $device $dtype
    new imdb-sa $run -m "$out/reviews-sa" --epochs 5 --lr 1e-3
    new target pretrain -c "$out/reviews.ids" -m "$out/general" --epochs 8 --lr 2e-3 $bptt
    new imdb-ulmfit $run -m "$out/target" --max-length 800 --unfreeze --layer-decay 0.385 --schedule slanted --epochs 8 --batch-size 32 \
        --lr 5e-3 --set hidden_p=0.25 --set input_p=0.35 --set embed_p=0.04 --set weight_p=0.4
}

# glue TASK FOLDER EPOCHS
glue_task() {
    files="--train $data/glue/$2/train.tsv --eval $data/glue/$2/dev.tsv"
    new "glue-bilstm-$1" finetune --config bilstm --tokenizer "$out/words.json" --vectors "$out/vectors.bin" --task "$1" $files \
        --epochs "$3" --lr 1e-3
    new "glue-elmo-$1" finetune -m "$out/elmo" --head bilstm --mix-layers --freeze all --classifier-dropout 0.3 --task "$1" $files --epochs "$3" \
        --lr 1e-3 $device
}

# STS-B: both texts are read by themselves; the score is the cosine of their vectors.
pairs() {
    pair="--task embed --loss cosine --text sentence1 --pair sentence2 --label score --train $data/glue/STS-B/train.tsv"
    pair="$pair --eval $data/glue/STS-B/dev.tsv $device"
    new pair-bilstm finetune $pair --config bilstm --tokenizer "$out/words.json" --vectors "$out/vectors.bin" --pooling max --epochs 6 --lr 1e-3
    new pair-elmo finetune $pair -m "$out/elmo" --pooling mean --epochs 3 --lr 1e-4
}

glue() {
    glue_task cola CoLA 8
    glue_task mrpc MRPC 8
    glue_task rte RTE 8
    glue_task stsb STS-B 8
    glue_task sst2 SST-2 3
    pairs
}

sentences() {
    for set in mr subj trec; do
        text=sentence label=label files=$data/text-classification/$set
        [ $set != trec ] || text=question label=coarse
        new "birnn-$set" finetune --config bilstm --tokenizer "$out/words.json" --vectors "$out/vectors.bin" --task classify \
            --text $text --label $label --train "$files/train.tsv" --eval "$files/test.tsv" --epochs 6 --lr 1e-3 --eval-every -1
        for part in train test; do
            "$sesame" features -m "$out/skip" -f "$files/$part.tsv" --column $text --pool last $device --format npy \
                --to "$out/skip-$set-$part.npy"
        done
        "$sesame" logreg "$out/skip-$set-train.npy" "$files/train.tsv" --label $label --test-features "$out/skip-$set-test.npy" \
            --test-labels "$files/test.tsv" -C 0.1,1,10 --iterations 500
    done
}

ladder() {
    files=$data/text-classification/trec
    "$sesame" ladder classify "$files/train.tsv" "$files/test.tsv" --text question --label coarse --only bilstm,lm-lstm,sa-lstm,ulmfit,elmo \
        --lm "$out/general" --elmo "$out/elmo" --vectors "$out/vectors.bin" $device
}

# Without DTYPE: f32.
translation() {
    HIDDEN=512 EMBEDDING=256 DROPOUT=0.3 BATCH=64 LR=1e-3 SCHEDULE=linear EPOCHS=8 SESAME=$sesame SESAME_DEVICE=cuda \
        sh "$recipes/multi30k.sh" "$data/multi30k" "$out/multi30k"
}

for part; do $part; done
