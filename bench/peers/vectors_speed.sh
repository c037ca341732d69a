#!/bin/sh
# Compares the CPU time of `sesame vectors train` with word2vec.c, fastText and gensim: one thread, one pass, d = 100, window 5,
# 5 negative samples, subsampling 1e-3, in alternating rounds. Prints words per second of CPU time, reading included.
# Usage: bench/peers/vectors_speed.sh SESAME ORIGINALS CORPUS [PYTHON]
# ORIGINALS holds word2vec and fasttext, built with -O3 -march=native; PYTHON has gensim. ROUNDS=3 repeats.
set -u
sesame=$1 originals=$2 corpus=$3 python=${4-}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
words=$(wc -w <"$corpus")

timed() { # timed NAME COMMAND...
    name=$1
    shift
    (
        "$@" >"$tmp/log" 2>&1
        times
    ) | awk -v name="$name" -v words="$words" 'END { split($1, t, /[ms]/); s = t[1] * 60 + t[2]; printf "%-22s %7.2f s  %6.0f k words/s\n", name, s, words / s / 1000 }'
}
round=0
while [ $round -lt "${ROUNDS-3}" ]; do
    round=$((round + 1))
    for cbow in 0 1; do
        model=$([ $cbow = 1 ] && echo cbow || echo skipgram)
        timed "sesame $model" "$sesame" vectors train -q -t 1 --model $model --epochs 1 --format word2vec-binary --overwrite \
            --output "$tmp/ours" "$corpus"
        timed "word2vec.c $model" "$originals/word2vec" -train "$corpus" -output "$tmp/theirs" -cbow $cbow -size 100 -window 5 \
            -negative 5 -hs 0 -sample 1e-3 -iter 1 -threads 1 -binary 1 -debug 0
        timed "fastText $model" "$originals/fasttext" $model -input "$corpus" -output "$tmp/ft" -epoch 1 -maxn 0 -t 1e-3 -thread 1 \
            -verbose 0
        [ -z "$python" ] || OMP_NUM_THREADS=1 timed "gensim $model" "$python" -c "
from gensim.models.word2vec import Word2Vec
Word2Vec(corpus_file='$corpus', vector_size=100, window=5, negative=5, sample=1e-3, min_count=5, epochs=1, sg=1 - $cbow, workers=1)"
    done
done
