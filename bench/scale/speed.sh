#!/bin/sh
# Seconds per update of bert-small (batches of 32 x 128 tokens, vocabulary 30522), measured in turn:
#     accumulate  one rank of two threads, LANES accumulated batches
#     lanes       one rank of two threads, LANES lanes
#     ranks       two ranks of one thread, LANES lanes, TCP on this machine
#
#     bench/scale/speed.sh [BUILD [ROUNDS [UPDATES [LANES]]]]      default: build 3 3 4
set -u
build=${1-build} rounds=${2-3} updates=${3-3} lanes=${4-4}
sesame=$(realpath "$build")/sesame
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
awk 'BEGIN { srand(1); for (i = 0; i < 60000; i++) { s = ""
    for (j = 0; j < 12; j++) s = s " w" int(rand() * 900); print s; if (i % 20 == 19) print "" } }' >"$tmp/text"
"$sesame" train-tokenizer --type wordpiece --vocab-size 1200 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1

# train UPDATES RANKS OPTIONS...: seconds
train() {
    n=$1 size=$2
    shift 2
    port=$((20000 + ($$ + $(date +%N | sed 's/^0*//') / 1000) % 30000))
    pids='' r=0 start=$(date +%s.%N)
    while [ $r -lt "$size" ]; do
        [ "$size" -eq 1 ] || export RANK=$r LOCAL_RANK=$r WORLD_SIZE="$size" MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
        "$sesame" pretrain -c "$tmp/c" --tokenizer "$tmp/t.json" -p bert-small --set vocab_size=30522 --batch-size 32 \
            --length 128 --steps "$n" --save-every -1 --eval-every -1 --eval-tokens 1 -q "$@" -o "$tmp/run" >"$tmp/out.$r" 2>&1 &
        pids="$pids $!" r=$((r + 1))
    done
    unset RANK LOCAL_RANK WORLD_SIZE
    for p in $pids; do wait "$p" || { cat "$tmp"/out.*; exit 1; } done
    echo "$(date +%s.%N) - $start" | bc
    rm -rf "$tmp/run"
}

# The time of further updates: without start and end of the run.
update() {
    name=$1
    shift
    a=$(train 1 "$@") && b=$(train $((1 + updates)) "$@") || exit 1
    echo "$name $(echo "($b - $a) / $updates" | bc -l)"
}

i=0
while [ $i -lt "$rounds" ]; do
    update accumulate 1 --threads 2 --accumulate "$lanes"
    update lanes 1 --threads 2 --lanes "$lanes"
    update ranks 2 --threads 1 --lanes "$lanes"
    i=$((i + 1))
done | awk '{ print; n[$1]++; v[$1, n[$1]] = $2; if (!($1 in best) || $2 < best[$1]) best[$1] = $2 }
    END { printf "best: accumulate %.3f s, lanes %.3f s (%.3f), ranks %.3f s (%.3f)\n", best["accumulate"], best["lanes"],
        best["lanes"] / best["accumulate"], best["ranks"], best["accumulate"] / best["ranks"] }'
