#!/bin/sh
# `sesame vectors train --exact`: bits of the original programs. word2vec.c, fastText and GloVe (gcc -O2
# -ffp-contract=off, one thread) write files with these sums for the same text; bench/peers/vectors_exact.sh compares more settings.
set -u
. tests/counted.sh

# About 3,000 words with a Zipf-like distribution, empty lines, a tab, a carriage return, no end of the last line.
awk 'BEGIN { x = 1; for (i = 0; i < 3000; i++) { x = x * 16807 % 2147483647; y = int(x % 1000 / 100) * int(x / 1000 % 30)
    printf "w%d%s", y, x % 17 == 0 ? "\n" : x % 97 == 0 ? "\r\n\n" : x % 41 == 0 ? "\t" : " " } printf "end" }' >"$tmp/corpus"
that 'the corpus is the one of the sums' '[ "$(cksum <"$tmp/corpus")" = "180755808 12263" ]'

train() { rm -f "$tmp/out" && "$sesame" vectors train -q --exact "$@" --output "$tmp/out" "$tmp/corpus" 2>"$tmp/err"; }
writes() { # writes SUM PROGRAM OPTION...
    sum=$1
    shift
    if train "$@" && [ "$(cksum <"$tmp/out")" = "$sum" ]; then pass; else fail "$*"; fi
}
writes '392095152 130563' word2vec
writes '992371729 130532' word2vec --cbow 0
writes '3996082746 55541' word2vec --binary
writes '3049227107 55541' word2vec --cbow 0 --binary
writes '3168609381 130843' word2vec --hs 1 --negative 0
writes '1143745946 130692' word2vec --hs 1 --negative 0 --cbow 0
writes '1889690890 130692' word2vec --hs 1 --negative 3
writes '2896122010 130221' word2vec --hs 1 --negative 3 --cbow 0
writes '3393567090 9520' word2vec --size 7 --window 1
writes '2366120073 83554' word2vec --size 64 --window 12 --cbow 0
writes '3311191975 131390' word2vec --sample 0
writes '3735013125 131183' word2vec --sample 0 --cbow 0
writes '2188335198 130532' word2vec --sample 0.01 --cbow 0
writes '2581921653 130874' word2vec --sample 1e-4
writes '2092754474 130881' word2vec --negative 1 --cbow 0
writes '1866347843 130178' word2vec --negative 25
writes '2725063424 131800' word2vec --iter 1 --min-count 1
writes '1644142404 131781' word2vec --iter 9 --min-count 1 --cbow 0
writes '1279366528 49397' word2vec --min-count 20
writes '2638810173 130711' word2vec --alpha 0.2 --cbow 0
writes '3043373970 130893' word2vec --alpha 0.001 --hs 1
writes '2922911736 66650' glove --min-count 1 --window-size 15 --seed 1
writes '2609751861 65694' glove --min-count 5 --window-size 15 --seed 1
writes '4169400863 110976' glove --min-count 5 --window-size 15 --seed 1 --binary
writes '3191061909 65696' glove --min-count 5 --window-size 15 --seed 2
writes '2757503525 65684' glove --min-count 5 --window-size 15 --seed 123456789
writes '1656335378 65673' glove --min-count 5 --window-size 15 --seed -7
writes '642267305 66566' glove --min-count 1 --window-size 1 --seed 3
writes '850414467 131619' glove --min-count 2 --window-size 50 --seed 3 --vector-size 100
writes '3213150546 1911' glove --min-count 2 --window-size 5 --seed 3 --vector-size 1
writes '3106168295 393835' glove --min-count 2 --window-size 10 --seed 3 --vector-size 300 --iter 2
writes '2367750372 65668' glove --min-count 5 --window-size 15 --seed 1 --x-max 1
writes '631427937 65641' glove --min-count 5 --window-size 15 --seed 1 --x-max 10 --alpha 0.5
writes '3249897593 65639' glove --min-count 5 --window-size 15 --seed 1 --eta 0.5 --iter 5
writes '3100177490 66647' glove --min-count 1 --window-size 15 --memory 0.0001 --seed 1 --iter 3
writes '2096867450 66646' glove --min-count 1 --window-size 15 --memory 0.0005 --seed 1 --iter 3
writes '836985890 66604' glove --min-count 1 --window-size 15 --memory 0.001 --seed 9 --iter 3
writes '2183348224 26856' glove --min-count 3 --window-size 4 --memory 0.0001 --seed 5 --vector-size 20
writes '2614956784 66647' glove --min-count 1 --window-size 15 --memory 0.00005 --seed 1 --iter 3
writes '2217329078 66681' glove --min-count 1 --window-size 2 --memory 0.01 --seed 11 --iter 50
writes '1769233619 53856' glove --min-count 10 --window-size 8 --memory 1 --seed 77 --vector-size 33 --binary
writes '270661586 263875' fasttext --binary --model skipgram --bucket 3000 --dim 20
writes '1413145173 263875' fasttext --binary --model cbow --bucket 3000 --dim 20
writes '3513674339 339491' fasttext --binary --model skipgram --bucket 5000 --dim 16
writes '1167485833 339491' fasttext --binary --model cbow --bucket 5000 --dim 16
writes '2790882763 511555' fasttext --binary --model skipgram --bucket 1000 --minn 2 --maxn 3
writes '457161915 511555' fasttext --binary --model cbow --bucket 1000 --minn 1 --maxn 1
writes '2489427769 511555' fasttext --binary --model skipgram --bucket 1000 --minn 5 --maxn 4
writes '4115722325 511555' fasttext --binary --model skipgram --bucket 1000 --ws 1
writes '1187093968 511555' fasttext --binary --model skipgram --bucket 1000 --ws 12
writes '4135199123 511555' fasttext --binary --model cbow --bucket 1000 --ws 12
writes '1129739110 511555' fasttext --binary --model skipgram --bucket 1000 --neg 1
writes '809977408 511555' fasttext --binary --model cbow --bucket 1000 --neg 17
writes '1341044398 511555' fasttext --binary --model skipgram --bucket 1000 --t 0.0078125
writes '2421696916 511555' fasttext --binary --model cbow --bucket 1000 --t 1
writes '3133340573 511555' fasttext --binary --model skipgram --bucket 1000 --lr 0.25
writes '2601368567 511555' fasttext --binary --model cbow --bucket 1000 --lr 0.03125 --lrUpdateRate 1
writes '2727638884 511555' fasttext --binary --model skipgram --bucket 1000 --lrUpdateRate 1000
writes '3290774532 513182' fasttext --binary --model skipgram --bucket 1000 --minCount 1 --epoch 1
writes '3467176571 442409' fasttext --binary --model cbow --bucket 1000 --minCount 20 --epoch 11
writes '2968285649 511555' fasttext --binary --model skipgram --bucket 1000 --seed 12345
writes '3306565236 584099' fasttext --binary --model cbow --bucket 2000 --dim 64 --seed 3

refuses() { # refuses TEXT OPTION...: the command fails with TEXT and writes nothing
    text=$1
    shift
    if train "$@"; then fail "accepted: $*"; else that "$*" 'grep -qF -- "$text" "$tmp/err" && [ ! -e "$tmp/out" ]'; fi
}
refuses 'unknown program; expected one of word2vec, fasttext, glove' word2vex
refuses '--window-size is not an option of word2vec' word2vec --window-size 5
refuses '--size "many": expected a number' word2vec --size many
refuses '--size "2.5": expected an integer' word2vec --size 2.5
refuses '--size 0: expected a number from 1' word2vec --size 0
refuses 'no word occurs at least 100000 times' word2vec --min-count 100000
refuses 'no word occurs at least 100000 times' glove --min-count 100000
refuses 'GloVe takes the clock' glove --seed 0
that 'text of fastText' 'train fasttext --bucket 100 --dim 3 && [ "$(head -n 1 "$tmp/out")" = "$(sed 1d "$tmp/out" | wc -l) 3" ]'
refuses '--model "skip": expected skipgram, cbow or supervised' fasttext --model skip
refuses '--bucket 0 needs --maxn 0' fasttext --bucket 0
refuses 'too many rows' fasttext --bucket 2147483647 --dim 1
refuses 'fewer than two words' fasttext --minCount 100000
refuses 'training diverged' fasttext --lr 1e30 --bucket 10
refuses 'training diverged' word2vec --alpha 1e30 --cbow 0
printf 'a b\nc\000d e\n' >"$tmp/corpus"
refuses 'line 2: byte 0x00 in a word' glove --min-count 1
printf 'a b <unk>\n' >"$tmp/corpus"
refuses 'GloVe reserves it' glove --min-count 1
printf 'a\nb\n' >"$tmp/corpus"
refuses 'no two words of the vocabulary occur in one line' glove --min-count 1
: >"$tmp/corpus"
refuses 'no word occurs' word2vec --min-count 1
refuses 'no word occurs' glove --min-count 1
rm "$tmp/corpus"
refuses 'corpus' word2vec
head -c 10000000 /dev/zero | tr '\0' x >"$tmp/corpus" # a word of 10 MB
that 'a long word' 'echo " a b a b" >>"$tmp/corpus" && train word2vec --min-count 1 --size 5 && grep -qE "^x{98} " "$tmp/out"'
that 'the output is not overwritten' '! "$sesame" vectors train --exact word2vec --min-count 1 -o "$tmp/out" "$tmp/corpus" 2>"$tmp/err" && grep -q overwrite "$tmp/err"'
that 'an unknown action' '! "$sesame" vectors fly 2>"$tmp/err" && grep -q "expected one of train" "$tmp/err"'
counted
