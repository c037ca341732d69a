#!/bin/sh
# Speed of `sesame vectors train --model glove` and of GloVe's program, in training pairs per second of CPU time on one thread, in
# alternating rounds; and the number of pairs, which must be equal.
# Usage: bench/peers/glove_speed.sh SESAME ORIGINALS CORPUS [DIM [ROUNDS]]
# ORIGINALS holds GloVe's vocab_count, cooccur, shuffle and glove, built with -O3 -march=native.
set -eu
sesame=$1 originals=$2 corpus=$3 dim=${4-50} rounds=${5-3}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

seconds() { # seconds COMMAND...: its user time
    (TIMEFORMAT=; exec 3>&2; { command time -f %U "$@" >"$tmp/log" 2>"$tmp/log2"; } 2>&3; tail -n 1 "$tmp/log2")
}
"$originals/vocab_count" -min-count 5 -verbose 0 <"$corpus" >"$tmp/vocab" 2>"$tmp/log"
echo "counting, cooccur: $(cd "$tmp" && seconds sh -c "'$originals/cooccur' -vocab-file vocab -window-size 15 -memory 4 -verbose 0 <'$corpus' >counts") s"
pairs=$(($(wc -c <"$tmp/counts") / 16))
(cd "$tmp" && "$originals/shuffle" -memory 2 -seed 1 -verbose 0 <counts >shuffled 2>log)
rm -f "$tmp/counts"

ours() { seconds "$sesame" vectors train -q --model glove --threads 1 --dim "$dim" --epochs "$1" --overwrite --output "$tmp/ours" "$corpus"; }
for round in $(seq "$rounds"); do
    one=$(ours 1) six=$(ours 6)
    theirs=$(cd "$tmp" && seconds "$originals/glove" -input-file shuffled -vocab-file vocab -save-file theirs -vector-size "$dim" -iter 1 -threads 1 -binary 0 -seed 1)
    awk -v n="$pairs" -v a="$one" -v b="$six" -v t="$theirs" -v r="$round" 'BEGIN { u = (b - a) / 5
        printf "round %d: %d pairs; sesame %.2f M pairs/s (reading, counting, output %.1f s), glove %.2f M pairs/s, ratio %.1f\n", r, n, n / u / 1e6, a - u, n / t / 1e6, t / u }'
done
