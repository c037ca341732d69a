#!/bin/sh
# finetune --search random and halving: points, rounds, tables, interruptions, refusals.
# Usage: test_search_random.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

cat >"$tmp/tune" <<END
#!/bin/sh
exec "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --epochs 3 "\$@"
END
tune() { sh "$tmp/tune" "$@"; }
values() { ls "$tmp/$1" | sed -n 's/^trial=\([0-9]*\),lr=\([^,]*\),.*/\1 \2/p' | sort -n; }

# Random points.
ok "random" exits 0 tune -o "$tmp/random" --search random --trials 6 --grid lr=1e-5..1e-2:log --grid batch-size=8,16
ok "six runs" test "$(ls -d "$tmp"/random/trial=* | wc -l)" = 6
ok "six rows" test "$(grep -c '^[0-9.e-]*  *\(8\|16\)  *[01]\.[0-9]*  *-  *1 ' "$tmp/out")" = 6
ok "within the range" test "$(values random | awk '$2 >= 1e-5 && $2 <= 1e-2' | wc -l)" = 6
ok "spread over the ratios" test "$(values random | awk '{ n[int(log($2) / log(10))]++ } END { for (i in n) k++; print (k >= 2) }')" = 1
ok "the best" out_has '^Best .*trial='
ok "the command of a run" exits 0 grep -h '"command"' "$tmp"/random/trial=1,*/run.json
ok "has its values alone" test "$(grep -c -- '--search\|--grid\|--trials' "$tmp/out")" = 0
values random >"$tmp/six"
ok "more trials" exits 0 tune -o "$tmp/random" --search random --trials 8 --grid lr=1e-5..1e-2:log --grid batch-size=8,16 --resume
ok "begin with the same" test "$(values random | head -6)" = "$(cat "$tmp/six")"
ok "which are kept" test "$(grep -c 'already finished' "$tmp/err")" = 6
ok "another seed" exits 0 tune -o "$tmp/other" --search random --trials 2 --grid lr=1e-5..1e-2:log --grid batch-size=8,16 --seed 1
ok "other values" test "$(values other | head -1)" != "$(values random | head -1)"
ok "whole numbers" exits 0 tune -o "$tmp/whole" --search random --trials 5 --grid batch-size=3..6 --epochs 1
ok "are whole" test "$(ls "$tmp/whole" | grep -c '^trial=[1-5],batch-size=[3-6]$')" = 5
ok "with seeds" exits 0 tune -o "$tmp/seeds" --search random --trials 2 --seeds 2 --grid lr=1e-3..2e-3 --epochs 1
ok "four" test "$(ls -d "$tmp"/seeds/trial=*,seed=4[23] | wc -l)" = 4

# Halving: nine trials with 1/9 of the length, three with 1/3, one whole.
ok "halving" exits 0 tune -o "$tmp/half" --search halving --trials 9 --grid lr=1e-5..1e-2:log --grid batch-size=8,16 --epochs 9
ok "six end early" test "$(grep -c ' 1/9  *0 ' "$tmp/out")" = 6
ok "two later" test "$(grep -c ' 1/3  *0 ' "$tmp/out")" = 2
ok "one is whole" test "$(grep -c '^[0-9.e-]*  *\(8\|16\)  *[01]\.[0-9]*  *1  *1 ' "$tmp/out")" = 1
ok "one model" test "$(ls "$tmp"/half/trial=*/model.safetensors | wc -l)" = 1
ok "rounds" test "$(grep -c '^\[round 1/3' "$tmp/err") $(grep -c '^\[round 2/3' "$tmp/err") $(grep -c '^\[round 3/3' "$tmp/err")" = '9 3 1'
best=$(basename "$(dirname "$(ls "$tmp"/half/trial=*/model.safetensors)")")
lr=$(echo "$best" | sed 's/.*lr=\([^,]*\).*/\1/')
batch=$(echo "$best" | sed 's/.*batch-size=//')
ok "alone" exits 0 tune -o "$tmp/alone" --lr "$lr" --batch-size "$batch" --epochs 9 --eval-epochs 1
ok "the same bits" cmp "$tmp/alone/model.safetensors" "$tmp/half/$best/model.safetensors"
cp "$tmp/half/grid.json" "$tmp/was"
ok "again" exits 0 tune -o "$tmp/half" --search halving --trials 9 --grid lr=1e-5..1e-2:log --grid batch-size=8,16 --epochs 9 --resume
ok "nothing changes" test "$(grep '"rounds"\|"score"\|\[\|[0-9],$' "$tmp/half/grid.json" | grep -v runtime)" = "$(grep '"rounds"\|"score"\|\[\|[0-9],$' "$tmp/was" | grep -v runtime)"
ok "other settings" exits 3 tune -o "$tmp/half" --search halving --trials 9 --grid lr=1e-5..1e-2:log --grid batch-size=8,16 --epochs 18 --resume
ok "are named" err_has 'was run with epochs 9.0, not 18.0'
ok "as JSON" exits 0 tune -o "$tmp/half" --search halving --trials 9 --grid lr=1e-5..1e-2:log --grid batch-size=8,16 --epochs 9 --resume --json
"$1/json_valid" <"$tmp/out" >/dev/null
ok "valid" test $? -eq 0

# By steps, another eta, an interruption.
ok "steps" exits 0 tune -o "$tmp/steps" --search halving --trials 4 --eta 2 --grid lr=1e-3..1e-2 --steps 40
ok "budgets" test "$(grep -c ' 1/4  *0 ' "$tmp/out") $(grep -c ' 1/2  *0 ' "$tmp/out")" = '2 1'
sh "$tmp/tune" -o "$tmp/stopped" --search halving --trials 4 --eta 2 --grid lr=1e-3..1e-2 --steps 40 >"$tmp/out" 2>"$tmp/err" &
pid=$!
while kill -0 $pid 2>/dev/null && ! ls "$tmp"/stopped/trial=2,*/log.jsonl >/dev/null 2>&1; do sleep 0.02; done
kill -INT $pid 2>/dev/null
wait $pid
code=$?
ok "stopped" test $code = 130 -o $code = 0
ok "resumed" exits 0 tune -o "$tmp/stopped" --search halving --trials 4 --eta 2 --grid lr=1e-3..1e-2 --steps 40 --resume
best=$(basename "$(dirname "$(ls "$tmp"/steps/trial=*/model.safetensors)")")
ok "the same winner and bits" cmp "$tmp/steps/$best/model.safetensors" "$tmp/stopped/$best/model.safetensors"
ok "a trial that diverges" exits 0 tune -o "$tmp/nan" --search halving --trials 3 --grid lr=3e-3,100 --weight-decay 10 --warmup 0 --steps 30 --seed 3
ok "is dropped" test "$(ls "$tmp"/nan/trial=*,lr=3e-3/model.safetensors | wc -l)" = 1

# Refusals.
ok "a range without a search" exits 2 tune -o "$tmp/bad" --grid lr=1e-5..1e-4
ok "said" err_has 'add --search random'
ok "no axes" exits 2 tune -o "$tmp/bad" --search random
ok "said" err_has 'add --grid'
for grid in lr=1e-4..1e-5 lr=1e-5..x lr=..1e-4 lr=0..1:log lr=1e-5..1e-4:lin batch-size=1.5..3 seed=1,2 lr=1e-5...1e-4 lr=-1..2; do
    ok "$grid" exits 2 tune -o "$tmp/bad" --search random --trials 3 --grid "$grid"
done
halve() { tune -o "$tmp/bad" --search halving --grid lr=1e-3..1e-2 "$@"; }
ok "two trials" exits 2 halve --trials 2
ok "said" err_has 'too few'
ok "seeds" exits 2 halve --trials 9 --seeds 2
ok "evaluations" exits 2 halve --trials 9 --eval-every 5
ok "lengths" exits 2 halve --trials 9 --grid epochs=1,2
ok "a method" exits 2 "$sesame" finetune --method nb --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" -o "$tmp/bad" --search halving --grid alpha=0.1..1
ok "no trial" exits 2 halve --trials 0
ok "nothing was written" test ! -e "$tmp/bad"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
