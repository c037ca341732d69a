#!/bin/sh
# finetune --grid and --seeds: every run, the table, interruptions, wrong values.
# Usage: test_finetune_search.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

cat >"$tmp/tune" <<END
#!/bin/sh
exec "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --epochs 3 "\$@"
END
tune() { sh "$tmp/tune" "$@"; }

ok "a grid" exits 0 tune -o "$tmp/grid" --grid lr=1e-4,5e-3 --grid batch-size=8,16 --seeds 2
ok "its table" out_has '^lr    batch-size  accuracy  deviation  runs  time  *energy$'
ok "every point" test "$(grep -c '^\(1e-4\|5e-3\)  \(8\|16\) ' "$tmp/out")" -eq 4
ok "the best is named" out_has '^Best  *.*/grid/lr=5e-3,batch-size=8,seed=4[23]: accuracy'
for run in "$tmp"/grid/lr=*; do ok "a model in $run" test -s "$run/model.safetensors"; done
ok "runs have their values" grep -q '"lr": 0.005' "$tmp/grid/lr=5e-3,batch-size=16,seed=43/run.json"
ok "and seeds" grep -q '"seed": 43' "$tmp/grid/lr=5e-3,batch-size=16,seed=43/run.json"
ok "and a command" grep -q '"command": "sesame finetune .*--lr 0.005 .*--seed 43' \
    "$tmp/grid/lr=5e-3,batch-size=16,seed=43/run.json"
# Mean and deviation by hand.
for seed in 42 43; do score eval_accuracy "$tmp/grid/lr=1e-4,batch-size=8,seed=$seed/all_results.json"; done >"$tmp/two"
by_hand=$(awk '{ s += $1; q += $1 * $1 } END { m = s / NR; printf "%.4f %.4f", m, sqrt((q - NR * m * m) / (NR - 1) + 1e-18) }' "$tmp/two")
ok "mean and deviation" test "$(awk '$1 == "1e-4" && $2 == 8 { print $3, $4 }' "$tmp/out")" = "$by_hand"
ok "the same as alone" exits 0 tune -o "$tmp/alone" --lr 5e-3 --batch-size 16 --seed 43
ok "to the last bit" cmp -s "$tmp/alone/model.safetensors" "$tmp/grid/lr=5e-3,batch-size=16,seed=43/model.safetensors"

ok "again" exits 3 tune -o "$tmp/grid" --grid lr=1e-4,5e-3 --grid batch-size=8,16 --seeds 2
ok "message" err_has '\-\-resume continues its search, --overwrite replaces it'
cp "$tmp/grid/grid.json" "$tmp/was"
rm -rf "$tmp/grid/lr=1e-4,batch-size=8,seed=43"
ok "resumed" exits 0 tune -o "$tmp/grid" --grid lr=1e-4,5e-3 --grid batch-size=8,16 --seeds 2 --resume
ok "only what lacks" test "$(grep -c 'already finished' "$tmp/err")" -eq 7
ok "the same scores" test "$(grep '"mean"' "$tmp/grid/grid.json")" = "$(grep '"mean"' "$tmp/was")"
ok "with other settings" exits 3 tune -o "$tmp/grid" --grid lr=1e-4,5e-3 --grid batch-size=8,16 --seeds 2 --resume --epochs 4
ok "names it" err_has 'was run with epochs 3.0, not 4.0'
ok "as JSON" exits 0 tune -o "$tmp/grid" --grid lr=1e-4,5e-3 --grid batch-size=8,16 --seeds 2 --resume --json
"$1/json_valid" <"$tmp/out" >/dev/null
ok "valid" test $? -eq 0

# Stopped by a signal, and gone on with.
sh "$tmp/tune" -o "$tmp/stopped" --grid lr=1e-3,2e-3,3e-3,4e-3 --epochs 40 >"$tmp/out" 2>"$tmp/err" &
pid=$!
while kill -0 $pid 2>/dev/null && [ ! -e "$tmp/stopped/lr=2e-3/log.jsonl" ]; do sleep 0.02; done
kill -INT $pid 2>/dev/null
wait $pid
ok "stopped" test $? -eq 130
ok "message" err_has 'search stopped; the same command with --resume continues'
ok "resumed after it" exits 0 tune -o "$tmp/stopped" --grid lr=1e-3,2e-3,3e-3,4e-3 --epochs 40 --resume
ok "all four" test "$(grep -c '^[1234]e-3 .* 1 ' "$tmp/out")" -eq 4

# Runs that come to nothing do not end the others.
ok "one that diverges" exits 0 tune -o "$tmp/nan" --grid lr=1e-3,100 --weight-decay 10 --warmup 0
ok "message" err_has 'lr=100: .*NaN or infinity'
ok "has no score" out_has '^100  *-  *-  *0 '
ok "is written down" grep -q '"failed": ' "$tmp/nan/grid.json"
ok "seeds alone" exits 0 tune -o "$tmp/seeds" --seeds 3 --seed 7
ok "three" test -s "$tmp/seeds/seed=9/model.safetensors"
ok "words and flags" exits 0 tune -o "$tmp/words" --grid optimizer=adamw,sgd --grid schedule=linear --epochs 1
ok "both" out_has '^sgd  *linear '

refused() { ok "$1" exits 2 tune -o "$tmp/bad" $3; ok "$1: message" err_has "$2"; ok "$1: leaves nothing" test ! -e "$tmp/bad"; }
refused "no such option" 'did you mean' '--grid lrr=1'
refused "trials of a grid" 'runs of --search random or halving' '--grid lr=1e-3,2e-3 --trials 4'
refused "trials of one run" 'runs of --search random or halving' '--trials 4'
refused "a wrong value" '"x" is not a number' '--grid lr=1e-3,x'
refused "a value twice" 'given twice' '--grid lr=1e-3,1e-3'
refused "an option twice" 'given twice' '--grid lr=1e-3 --grid lr=2e-3'
refused "no value" 'expected NAME=VALUE' '--grid lr'
refused "the folder" 'the same for all' '--grid output=a,b'
refused "seeds and seed" 'not both' '--grid seed=1,2 --seeds 2'
refused "too many" 'more than 10000 runs' '--grid batch-size=1,2,3,4,5,6,7,8,9,10,11 --seeds 1000'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
