#!/bin/sh
# Compares `sesame vectors train --exact` with the original programs, byte for byte, on a text of your choice.
# Usage: bench/peers/vectors_exact.sh SESAME ORIGINALS CORPUS
# ORIGINALS holds word2vec, fasttext, and GloVe's vocab_count, cooccur, shuffle and glove, built without contraction of
# multiplications and additions: gcc -O2 -ffp-contract=off FILE.c -pthread -lm. fastText's command rounds --t and --lr to
# floats, its Python package does not: the values here are floats. Rows that it does not initialize are zero only in
# matrices large enough for fresh pages.
set -u
sesame=$1 originals=$2 corpus=$3
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
same=0 different=0

compare() { # compare NAME
    if cmp -s "$tmp/theirs" "$tmp/ours"; then same=$((same + 1)); else different=$((different + 1)); echo "differs: $1"; fi
    [ -z "${SUMS-}" ] || echo "writes '$(cksum <"$tmp/theirs")' $1"
}

word2vec() { # word2vec OPTION...
    single=$(echo " $*" | sed 's/ --/ -/g; s/-binary/-binary 1/')
    "$originals/word2vec" -train "$corpus" -output "$tmp/theirs" -threads 1 -debug 0 $single >"$tmp/log"
    "$sesame" vectors train -q --exact word2vec "$@" --overwrite --output "$tmp/ours" "$corpus"
    compare "word2vec $*"
}
word2vec
word2vec --cbow 0
word2vec --binary
word2vec --cbow 0 --binary
word2vec --hs 1 --negative 0
word2vec --hs 1 --negative 0 --cbow 0
word2vec --hs 1 --negative 3
word2vec --hs 1 --negative 3 --cbow 0
word2vec --size 7 --window 1
word2vec --size 64 --window 12 --cbow 0
word2vec --sample 0
word2vec --sample 0 --cbow 0
word2vec --sample 0.01 --cbow 0
word2vec --sample 1e-4
word2vec --negative 1 --cbow 0
word2vec --negative 25
word2vec --iter 1 --min-count 1
word2vec --iter 9 --min-count 1 --cbow 0
word2vec --min-count 20
word2vec --alpha 0.2 --cbow 0
word2vec --alpha 0.001 --hs 1

glove() { # glove MIN_COUNT WINDOW MEMORY OPTION...: MEMORY "-" is the programs' own
    count=$1 window=$2 memory=$3
    shift 3
    limit= ours=
    [ "$memory" = - ] || limit="-memory $memory" ours="--memory $memory"
    single=$(echo " $*" | sed 's/ --/ -/g; s/-binary/-binary 1/')
    seed=$(echo " $*" | sed -n 's/.*--seed \([-0-9]*\).*/\1/p')
    (
        cd "$tmp" || exit 1
        "$originals/vocab_count" -min-count "$count" -verbose 0 <"$corpus" >vocab
        "$originals/cooccur" -vocab-file vocab -window-size "$window" $limit -verbose 0 <"$corpus" >pairs
        "$originals/shuffle" $limit -verbose 0 -seed "$seed" <pairs >shuffled
        "$originals/glove" -vocab-file vocab -input-file shuffled -save-file v -threads 1 -verbose 0 $single
        if [ -e v.bin ]; then mv v.bin theirs; else mv v.txt theirs; fi
    ) 2>"$tmp/log"
    "$sesame" vectors train -q --exact glove --min-count "$count" --window-size "$window" $ours "$@" --overwrite \
        --output "$tmp/ours" "$corpus"
    compare "glove --min-count $count --window-size $window $ours $*"
}
glove 1 15 - --seed 1
glove 5 15 - --seed 1
glove 5 15 - --seed 1 --binary
glove 5 15 - --seed 2
glove 5 15 - --seed 123456789
glove 5 15 - --seed -7
glove 1 1 - --seed 3
glove 2 50 - --seed 3 --vector-size 100
glove 2 5 - --seed 3 --vector-size 1
glove 2 10 - --seed 3 --vector-size 300 --iter 2
glove 5 15 - --seed 1 --x-max 1
glove 5 15 - --seed 1 --x-max 10 --alpha 0.5
glove 5 15 - --seed 1 --eta 0.5 --iter 5
glove 1 15 0.0001 --seed 1 --iter 3
glove 1 15 0.0005 --seed 1 --iter 3
glove 1 15 0.001 --seed 9 --iter 3
glove 3 4 0.0001 --seed 5 --vector-size 20
glove 1 15 0.00005 --seed 1 --iter 3
glove 1 2 0.01 --seed 11 --iter 50
glove 10 8 1 --seed 77 --vector-size 33 --binary

fasttext() { # fasttext MODEL OPTION...
    model=$1
    shift
    single=$(echo " $*" | sed 's/ --/ -/g')
    "$originals/fasttext" "$model" -input "$corpus" -output "$tmp/v" -thread 1 -verbose 0 $single >"$tmp/log" 2>&1
    mv "$tmp/v.bin" "$tmp/theirs"
    "$sesame" vectors train -q --exact fasttext --model "$model" "$@" --binary --overwrite --output "$tmp/ours" "$corpus"
    compare "fasttext --binary --model $model $*"
}
fasttext skipgram --bucket 3000 --dim 20
fasttext cbow --bucket 3000 --dim 20
fasttext skipgram --bucket 5000 --dim 16
fasttext cbow --bucket 5000 --dim 16
fasttext skipgram --bucket 1000 --minn 2 --maxn 3
fasttext cbow --bucket 1000 --minn 1 --maxn 1
fasttext skipgram --bucket 1000 --minn 5 --maxn 4
fasttext skipgram --bucket 1000 --ws 1
fasttext skipgram --bucket 1000 --ws 12
fasttext cbow --bucket 1000 --ws 12
fasttext skipgram --bucket 1000 --neg 1
fasttext cbow --bucket 1000 --neg 17
fasttext skipgram --bucket 1000 --t 0.0078125
fasttext cbow --bucket 1000 --t 1
fasttext skipgram --bucket 1000 --lr 0.25
fasttext cbow --bucket 1000 --lr 0.03125 --lrUpdateRate 1
fasttext skipgram --bucket 1000 --lrUpdateRate 1000
fasttext skipgram --bucket 1000 --minCount 1 --epoch 1
fasttext cbow --bucket 1000 --minCount 20 --epoch 11
fasttext skipgram --bucket 1000 --seed 12345
fasttext cbow --bucket 2000 --dim 64 --seed 3
echo "$same equal, $different different"
[ $different -eq 0 ]
