#!/bin/bash
# Kills a random rank of a pretraining run at a random time, resumes with another number of ranks, many times; the folder
# must have the same bytes as that of a run of one rank that was left alone.
# Usage: bench/scale/kills.sh BUILD_DIR [KILLS] [SEED], from the source folder. Prints a line per kill and a summary.
. tests/counted.sh
. tests/ranks_fixture.sh
kills=${2-50} RANDOM=${3-1}
lanes=4 limit=60 # seconds in which the other ranks end
awk 'BEGIN { srand(1); for (i = 0; i < 900; i++) { w = int(rand() * 40); s = ""
    for (j = 0; j < 4 + i % 9; j++) { s = s " w" w; w = (w * 7 + 3) % 40 } print s; if (i % 6 == 5) print "" } }' >"$tmp/text"
"$sesame" train-tokenizer --type wordpiece --vocab-size 200 -q -o "$tmp/t.json" "$tmp/text" || exit 1
"$sesame" corpus build --tokenizer "$tmp/t.json" --held-out 20% -o "$tmp/c" "$tmp/text" >"$tmp/out" || exit 1
run=(pretrain -c "$tmp/c" --tokenizer "$tmp/t.json" -p bert-tiny --set hidden_size=64 --set num_hidden_layers=2
    --set num_attention_heads=2 --set intermediate_size=256 --threads 1 -o out -q --lanes "$lanes" --batch-size 8
    --steps $((kills * 25)) --eval-every 40 --save-every 10 --keep 2 --lr 1e-3 --ema 0.99)

begin=$SECONDS
ranks 1 whole "${run[@]}" || exit 1
[ "$codes" = ' 0' ] || { cat "$tmp/err"; exit 1; }
echo "one rank, left alone: $((SECONDS - begin)) s"
done=0 slowest=0 size=1 resume=()
while [ $done -lt "$kills" ]; do
    size=$(((size + RANDOM % (lanes - 1)) % lanes + 1)) # another number of ranks
    victim=$((RANDOM % size))
    start $size killed "${run[@]}" "${resume[@]}"
    resume=(--resume)
    sleep "$(awk -v x="$RANDOM" 'BEGIN { print 0.1 + 1.2 * x / 32768 }')"
    if ! kill -9 "$(cat "$tmp/pid.$victim")" 2>/dev/null; then
        echo "the run was complete after $done kills"
        finish
        break
    fi
    at=$(date +%s%N)
    finish 2>/dev/null # "Killed"
    took=$((($(date +%s%N) - at) / 1000000))
    [ $took -le $slowest ] || slowest=$took
    done=$((done + 1))
    updates=$(wc -l <"$tmp/killed/out/log.jsonl" 2>/dev/null || echo 0)
    echo "kill $done: rank $victim of $size, $updates lines in the log, the others ended in $took ms, codes$codes: $(tail -1 "$tmp/err")"
    that 'the others end in time' "[ $took -lt $((limit * 1000)) ]"
    [ $size -eq 1 ] || that 'one line' "[ \$(wc -l <'$tmp/err') -eq 1 ]"
    that 'the others fail' "case '$codes' in *' 0'*) false ;; esac"
done
size=$((size % lanes + 1))
ranks $size killed "${run[@]}" --resume
that 'the last part' "[ '$codes' = '$(yes ' 0' | head -$size | tr -d '\n')' ]"
that 'the same bytes' 'same_folder whole killed'
echo "$done kills, the others ended in $slowest ms at most"
counted
