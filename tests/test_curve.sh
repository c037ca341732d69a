#!/bin/sh
# curve: cells, table, files, nested samples, resume, interruption, jobs, refusals.
# Usage: test_curve.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# shellcheck disable=SC2086
ok "a model" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --epochs 1 -o "$tmp/model"
rm -f "$tmp/model/run.json"

curve() { "$sesame" curve --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" -m "$tmp/model" --threads 1 --lr 3e-3 --least-updates 20 "$@"; }
points() { grep -o '"mean": [-0-9.e]*' "$1" | wc -l; }
number() { sed -n "s/^ *\"$1\": \([-0-9.e]*\).*/\1/p" "$2" | head -1; }

ok "curve" exits 0 curve -o "$tmp/a" --methods nb,logreg,finetune,lora --sizes 4,16,all --seeds 3
ok "a row each" test "$(grep -c '^\(nb\|logreg\|finetune\|lora\) .* +-' "$tmp/out")" -ge 4
ok "recommendations" test "$(grep -c '^ *\(4\|16\|all\)  [a-z]* .* to .*s  ' "$tmp/out")" -ge 2
ok "how" out_has 'half the 95 % interval of the mean over 3 seeds'
ok "nothing is tuned" out_has 'select neither'
ok "the cells" test "$(ls "$tmp/a/cells" | wc -l)" = 32 # all: nb and logreg do not depend on the seed
ok "no models" test -z "$(find "$tmp/a/cells" -mindepth 1 -type d)"
ok "results during the run" err_has '^\[32/32\] lora,size=all,seed=44: accuracy [01]\.'
ok "a picture" grep -q '<svg.*Learning curves: train.tsv' "$tmp/a/curve.svg"
ok "a page" grep -q '<html' "$tmp/a/curve.html"
ok "twelve points" test "$(points "$tmp/a/curve.json")" = 12
ok "words are enough" above "$(number score "$tmp/a/cells/finetune,size=all,seed=42.json")" 0.99
ok "its examples" test "$(number examples "$tmp/a/cells/finetune,size=16,seed=42.json")" = 16

# A cell is a run of finetune.
# shellcheck disable=SC2086
ok "the same run" exits 0 "$sesame" finetune -m "$tmp/model" --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --threads 1 --lr 3e-3 --batch-size 16 \
    --max-length 128 --last-weights --steps 20 --train-size 16 --seed 43 -o "$tmp/same"
ok "the same score" test "$(score eval_accuracy "$tmp/same/all_results.json")" = "$(number score "$tmp/a/cells/finetune,size=16,seed=43.json")"

# Resume: finished cells stay, sizes, methods and seeds may be added, another setting is refused.
ok "not without being asked" exits 3 curve -o "$tmp/a" --methods nb --sizes 4
ok "its message" err_has '--resume continues its curve'
cp "$tmp/a/curve.json" "$tmp/before.json"
ok "resume" exits 0 curve -o "$tmp/a" --methods nb,logreg,finetune,lora --sizes 4,16,all --seeds 3 --resume
ok "nothing is left" err_has '32 cells are finished, 0 are left'
ok "the same file" cmp "$tmp/before.json" "$tmp/a/curve.json"
rm "$tmp/a/cells/finetune,size=16,seed=43.json"
ok "one is lost" exits 0 curve -o "$tmp/a" --methods nb,logreg,finetune,lora --sizes 4,16,all --seeds 3 --resume
ok "one runs" err_has '31 cells are finished, 1 are left'
sed 's/"score": [0-9.]*/"score": 0.125/' "$tmp/a/cells/nb,size=4,seed=43.json" >"$tmp/x" && cp "$tmp/x" "$tmp/a/cells/nb,size=4,seed=43.json"
ok "a changed score" exits 0 curve -o "$tmp/a" --methods nb,logreg,finetune,lora --sizes 4,16,all --seeds 3 --resume
ok "is said" err_has 'nb,size=4,seed=43.json: damaged: .*: the cell is run again'
ok "it runs" err_has '31 cells are finished, 1 are left'
sed '/"recommended"/,$d;/train_seconds\|joules/d' "$tmp/before.json" >"$tmp/x" # the cheapest method depends on the time
sed '/"recommended"/,$d;/train_seconds\|joules/d' "$tmp/a/curve.json" >"$tmp/y"
ok "the same scores" cmp "$tmp/x" "$tmp/y"
ok "more" exits 0 curve -o "$tmp/a" --methods nb,majority --sizes 4,8,16,all --seeds 4 --resume --json
ok "points" test "$(grep -o '"mean"' "$tmp/out" | wc -l)" = 8
ok "another setting" exits 3 curve -o "$tmp/a" --methods nb --sizes 4 --resume --epochs 7
ok "is named" err_has 'was run with epochs 3.0, not 7.0; --overwrite repeats all cells'
many= # more settings than a message shows
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do many="$many --set nb:ngrams=$((i % 3 + 1))"; done
# shellcheck disable=SC2086
ok "many settings" exits 0 curve -o "$tmp/many" --methods nb --sizes 4 --seeds 1 $many --set nb:ngrams=1
# shellcheck disable=SC2086
ok "the same ones" exits 0 curve -o "$tmp/many" --methods nb --sizes 4 --seeds 1 $many --set nb:ngrams=1 --resume
# shellcheck disable=SC2086
ok "the last differs" exits 3 curve -o "$tmp/many" --methods nb --sizes 4 --seeds 1 $many --set nb:ngrams=2 --resume
ok "is named" err_has 'was run with set '
ok "overwrite" exits 0 curve -o "$tmp/a" --methods nb --sizes 4 --seeds 2 --overwrite
ok "old cells are gone" test "$(ls "$tmp/a/cells" | wc -l)" = 2
ok "nothing to resume" exits 3 curve -o "$tmp/model" --methods nb --sizes 4 --resume
ok "its message" err_has 'no curve.json to resume from'
ok "both" exits 2 curve -o "$tmp/a" --methods nb --sizes 4 --resume --overwrite

# Interrupted in a cell: continued with the same bits.
ok "whole" exits 0 curve -o "$tmp/whole" --methods finetune --sizes 32 --seeds 1 --least-updates 300
curve -o "$tmp/half" --methods finetune --sizes 32 --seeds 1 --least-updates 300 >"$tmp/out" 2>"$tmp/err" &
pid=$!
i=0
while [ ! -e "$tmp/half/cells/finetune,size=32,seed=42/log.jsonl" ] && [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done
kill -INT $pid
wait $pid
code=$?
ok "the code of the signal" test $code = 130 -o $code = 0 # a fast machine may have finished
ok "continue" exits 0 curve -o "$tmp/half" --methods finetune --sizes 32 --seeds 1 --least-updates 300 --resume --keep-models
ok "the same score" test "$(number score "$tmp/half/cells/finetune,size=32,seed=42.json")" = "$(number score "$tmp/whole/cells/finetune,size=32,seed=42.json")"
[ $code = 0 ] || ok "the model is kept" test -s "$tmp/half/cells/finetune,size=32,seed=42/model.safetensors"

# Interrupted in the second seed: a method without all seeds is not recommended. Nobody else may overwrite a curve that runs.
seeds() { curve -o "$tmp/seeds" --methods nb,finetune --sizes 32 --seeds 2 --least-updates 300 "$@"; }
seeds >"$tmp/out.seeds" 2>&1 &
pid=$!
i=0
while [ ! -e "$tmp/seeds/cells/finetune,size=32,seed=43/log.jsonl" ] && [ $i -lt 1200 ] && kill -0 $pid 2>/dev/null; do sleep 0.02; i=$((i + 1)); done
kill -STOP $pid
ok "a curve that runs" exits 3 seeds --overwrite
ok "keeps its cells" test -s "$tmp/seeds/cells/finetune,size=32,seed=42.json"
kill -CONT $pid
kill -INT $pid
wait $pid
code=$?
[ $code = 0 ] || ok "one seed is missing" grep -q '32 examples: 1 method without the scores of all 2 seeds is not compared' "$tmp/out.seeds"
[ $code = 0 ] || ok "the other method" grep -q '^ *32  nb ' "$tmp/out.seeds"
ok "and run" exits 0 seeds --resume
ok "all are compared" sh -c "! grep -q 'is not compared' '$tmp/out'"

# Several processes: the same scores.
ok "one job" exits 0 curve -o "$tmp/one" --methods nb,logreg,head --sizes 4,8 --seeds 2
ok "three jobs" exits 0 curve -o "$tmp/three" --methods nb,logreg,head --sizes 4,8 --seeds 2 --jobs 3
for dir in one three; do sed '/"recommended"/,$d;/train_seconds\|joules\|"command"\|"output"/d' "$tmp/$dir/curve.json" >"$tmp/$dir.json"; done
ok "the same scores" cmp "$tmp/one.json" "$tmp/three.json"

# Sizes and seeds.
ok "doubled" exits 0 curve -o "$tmp/b" --methods nb --sizes 4,...,40,all --seeds 2 --json
ok "five sizes and all" test "$(grep -o '"size": [0-9a-z"]*' "$tmp/out" | head -6 | tr -d '"\n')" = 'size: 4size: 8size: 16size: 32size: 40size: all'
ok "unsorted" exits 0 curve -o "$tmp/b" --methods nb --sizes all,16,4 --seeds 1 --overwrite
ok "sorted" out_has '^method  *4  *16  *all$'
ok "one seed" out_has 'One seed: no intervals'
ok "too large" exits 0 curve -o "$tmp/b" --methods nb --sizes 16,100,200 --seeds 1 --overwrite
ok "all instead" err_has 'train.tsv has 80 examples; the last point is all of them'
ok "two columns" out_has '^method  *16  *all$'
ok "of each class" exits 0 curve -o "$tmp/b" --methods nb,vectors --sizes 2,4,...,all --per-class --seeds 1 --overwrite
ok "up to the smallest" out_has '^method  *2  *4  *8  *16  *32  *all$'
ok "sixteen" test "$(number examples "$tmp/b/cells/nb,shots=8,seed=42.json")" = 16
ok "all examples on the axis" sh -c "grep -q '>training examples<' '$tmp/b/curve.svg'"
ok "more than a class" exits 3 curve -o "$tmp/c" --methods nb --sizes 2,41 --per-class
ok "named" err_has 'class "neg" has 40 examples'
for sizes in '' 0 -4 4,4 4x 4,,8 ...,8 4,... 8,...,all,16,16 99999999999999999999; do
    ok "sizes \"$sizes\"" exits 2 curve -o "$tmp/c" --methods nb --sizes "$sizes"
    ok "sizes \"$sizes\": said" err_has '--sizes'
done

# Methods and their options.
ok "an unknown method" exits 2 curve -o "$tmp/c" --methods nb,lorra
ok "the others" err_has 'unknown method of the task classify "lorra".*lora'
ok "twice" exits 2 curve -o "$tmp/c" --methods nb,nb
ok "set" exits 0 curve -o "$tmp/d" --methods lora,nb --sizes 8 --seeds 1 --set lora:lora-rank=2 --set lora:lr=1e-2 --keep-models
ok "reaches the run" grep -q '"lora-rank": 2' "$tmp/d/cells/lora,size=8,seed=42/run.json"
ok "and beats the line" grep -q '"lr": 0.01' "$tmp/d/cells/lora,size=8,seed=42/run.json"
for set in lora lora:x=1 lora:lr nb:train=x svm:lr=1 lora:lr=fast lora:seed=3; do
    ok "set $set" exits 2 curve -o "$tmp/c" --methods lora,nb --sizes 8 --set $set
done
ok "nothing was written" test ! -e "$tmp/c"

# Adapters and few-shot methods.
ok "adapters" exits 0 curve -o "$tmp/g" --methods prefix,prompt,ia3,bitfit,bottleneck,setfit --sizes 8 --seeds 1
ok "six scores" test "$(grep -l '"score"' "$tmp"/g/cells/*.json | wc -l)" = 6
ok "with times" above "$(number train_seconds "$tmp/g/cells/setfit,size=8,seed=42.json")" 1e-6
ok "pet needs patterns" exits 2 curve -o "$tmp/h" --methods nb,pet --sizes 8 --seeds 1
ok "said" err_has '^sesame: --methods: pet needs --patterns FILE'
ok "before any run" test ! -e "$tmp/h"

cat >"$tmp/patterns.json" <<END
{"patterns": ["{text} it was {mask} .", "{mask} ? {sep} {text}"], "verbalizers": {"neg": "bad", "pos": "good"}}
END
ok "patterns by --set" exits 0 curve -o "$tmp/by-set" --methods pet --sizes 8 --seeds 1 --set "pet:patterns=$tmp/patterns.json" \
    --set pet:member-steps=2 --set pet:repetitions=1
few_shot() { curve -o "$tmp/i" --methods pet,adapet --sizes 8 --seeds 1 --patterns "$tmp/patterns.json" --set pet:member-steps=100 --set pet:lr=3e-3 --set pet:repetitions=1 --set adapet:member-steps=10 "$@"; }
ok "pet and adapet" exits 0 few_shot --keep-models
ok "two scores" test "$(grep -l '"score"' "$tmp"/i/cells/*.json | wc -l)" = 2
ok "with eight examples" grep -q '"train_examples": 8' "$tmp/i/cells/pet,size=8,seed=42/method.json"

# A method that fails leaves the others.
printf '2 2\ngood 1 0\nbad 0 x\n' >"$tmp/broken.txt" # the second vector
ok "a method fails" exits 0 curve -o "$tmp/e" --methods nb,vectors --sizes 4 --seeds 2 --vectors "$tmp/broken.txt"
ok "its reason" out_has 'vectors with 4 examples, seed 42, has no score: .*broken.txt'
ok "the other" out_has '^nb '
sed 's/"model_type": "bert"/"model_type": "modernbert"/' "$tmp/config.json" >"$tmp/modern.json"
ok "a model without biases" exits 0 "$sesame" finetune --config "$tmp/modern.json" --tokenizer "$tmp/vocab.txt" --threads 1 --task classify --train "$tmp/train.tsv" \
    --steps 1 -o "$tmp/modern"
rm -f "$tmp/modern/run.json"
for jobs in 1 2; do
    ok "methods it cannot have" exits 0 curve -m "$tmp/modern" -o "$tmp/modern-$jobs" --methods nb,bitfit,bottleneck --sizes 4,8,16 --seeds 3 --jobs $jobs
    for method in bitfit bottleneck; do
        ok "$method is tried once" test "$(grep -c "$method,size" "$tmp/err")" -le $jobs
        ok "$method: one reason" test "$(grep -c "^$method with" "$tmp/out")" = 1
    done
    ok "for all cells" test "$(grep -c 'The same' "$tmp/out")" -ge 1
done
mkdir "$tmp/broken" && cp "$tmp/config.json" "$tmp/broken" # without weights
ok "all fail" exits 1 curve -o "$tmp/f" --methods finetune --sizes 4 --seeds 1 -m "$tmp/broken"
ok "said" err_has 'no cell has a score'

# Tags.
awk 'BEGIN { for (i = 0; i < 30; i++) printf "anna B-PER\nlives O\nin O\n%s %s\n\n", i % 3 ? "paris" : "it", i % 3 ? "B-LOC" : "O" }' >"$tmp/tags.txt"
tags() { "$sesame" curve --task tag --train "$tmp/tags.txt" --eval "$tmp/tags.txt" -m "$tmp/model" --threads 1 --lr 3e-3 --least-updates 10 --seeds 2 --sizes 4,8 "$@"; }
ok "tags" exits 0 tags --methods bilstm,finetune -o "$tmp/tags"
ok "two rows" test "$(grep -c '^\(bilstm\|finetune\) .* +-' "$tmp/out")" -ge 2
ok "entities" grep -q '"metric": "f1"' "$tmp/tags/curve.json"
ok "not for tags" exits 2 tags --methods nb -o "$tmp/tags2"
ok "the others" err_has 'method of the task tag "nb".*finetune'

# Scores that are percentages.
cat >"$tmp/squad.json" <<END
{"version": "1", "data": [{"title": "t", "paragraphs": [{"context": "anna lives in paris .", "qas": [
 {"id": "1", "question": "who ?", "answers": [{"text": "anna", "answer_start": 0}]},
 {"id": "2", "question": "where ?", "answers": [{"text": "paris", "answer_start": 14}]}]}]}]}
END
ok "answers" exits 0 "$sesame" curve --task answer --train "$tmp/squad.json" --eval "$tmp/squad.json" -m "$tmp/model" --threads 1 --lr 3e-3 \
    --least-updates 60 --seeds 1 --sizes all --methods finetune -o "$tmp/answers"
ok "in percent" above "$(score score "$tmp/answers/cells/finetune,size=all,seed=42.json")" 2
ok "as they are" out_has "^finetune  *$(score score "$tmp/answers/cells/finetune,size=all,seed=42.json" | awk '{ printf "%.1f", $1 }')$"
ok "the axis" sh -c "! grep -q 'x 100' '$tmp/answers/curve.svg'"

# An interval of two noisy scores is wider than the scores can be.
awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 64; i++) { k = int((i * 37 % 64) ^ 2 / 512); printf "w%d\t%s\n", k, k % 2 ? "pos" : "neg" } }' >"$tmp/noise.tsv"
awk -F '\t' 'NR == 1 { print; next } { printf "%s\t%s\n", $1, $2 == "pos" ? "neg" : "pos" }' "$tmp/noise.tsv" >"$tmp/wrong.tsv"
ok "noise" exits 0 "$sesame" curve --task classify --train "$tmp/noise.tsv" --eval "$tmp/wrong.tsv" --methods nb --sizes 4,8 --seeds 2 -o "$tmp/noise"
ok "the interval is wide" out_has '^ *[48]  nb  .* 0\.0 to '
ok "nothing is below 0 or above 100" sh -c "! grep -E ' -[0-9]|to 1[0-9][1-9]' '$tmp/out'"

# Files.
: >"$tmp/empty.tsv"
ok "an empty file" exits 3 "$sesame" curve --task classify --train "$tmp/empty.tsv" --eval "$tmp/dev.tsv" -o "$tmp/c"
ok "no file" exits 3 "$sesame" curve --task classify --train "$tmp/train.tsv" --eval "$tmp/none.tsv" -o "$tmp/c"
ok "no task" exits 2 "$sesame" curve --task clasify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" -o "$tmp/c"
ok "nothing was written" test ! -e "$tmp/c"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
