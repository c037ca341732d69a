#!/bin/sh
# --labels: names of classes in finetune, eval, predict and text-classification; label sets that do not cover the data.
# Usage: sh tests/test_labels.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
. tests/finetune_fixture.sh

# data with numbers, a model with names
for set in train dev; do awk -F'\t' 'BEGIN { OFS = "\t" } NR > 1 { $2 = $2 == "pos" } { print }' "$tmp/$set.tsv" >"$tmp/$set.num.tsv"; done
task="--task classify"
names="--labels 0=negative,1=positive"
ok "finetune" exits 0 "$sesame" finetune $small $task $names --train "$tmp/train.num.tsv" --eval "$tmp/dev.num.tsv" \
    -o "$tmp/named" --steps 60
ok "names in config.json" grep -q '"id2label": {' "$tmp/named/config.json"
for name in '"0": "negative"' '"1": "positive"' '"negative": 0' '"positive": 1'; do
    ok "config.json: $name" grep -q "$name" "$tmp/named/config.json"
done
ok "the model learns them" exits 0 "$sesame" eval "$tmp/named" $task "$tmp/dev.num.tsv" $names --json -q
accuracy=$(sed -n 's/.*"eval_accuracy": \([0-9.]*\).*/\1/p' "$tmp/out" | head -1)
ok "accuracy" above "$accuracy" 0.95
ok "swapped names" exits 0 "$sesame" eval "$tmp/named" $task "$tmp/dev.num.tsv" --labels 1=negative,0=positive --json -q
accuracy=$(sed -n 's/.*"eval_accuracy": \([0-9.]*\).*/\1/p' "$tmp/out" | head -1)
ok "swapped names: accuracy" above 0.05 "$accuracy"
ok "pipeline" exits 0 "$sesame" text-classification -q -m "$tmp/named" --json "the film was good ."
ok "pipeline: name" out_has '"label": "positive"'

# other names for the output
ok "pipeline: rename by number and name" exits 0 "$sesame" text-classification -q -m "$tmp/named" --json -k all \
    --labels 0=down,positive=up "the film was good ."
ok "pipeline: up" out_has '"label": "up"'
ok "pipeline: down" out_has '"label": "down"'
ok "predict: rename" exits 0 "$sesame" predict "$tmp/named" $task "$tmp/dev.num.tsv" --labels 1=up -q
ok "predict: up" out_has '"label": "up"'
ok "predict: negative" out_has '"label": "negative"'
ok "predict: swap" exits 0 "$sesame" predict "$tmp/named" $task "$tmp/dev.num.tsv" --labels 0=positive,1=negative --keep -q
ok "predict: swapped" grep -q "was good.*[[:space:]]1[[:space:]]negative" "$tmp/out"
ok "no such label" exits 3 "$sesame" predict "$tmp/named" $task "$tmp/dev.num.tsv" --labels 2=up -q
ok "no such label: message" err_has 'labels: "2" is not a label of the model; it has negative, positive (or numbers from 0 to 1)'
ok "pipeline: no such label" exits 3 "$sesame" text-classification -q -m "$tmp/named" --labels other=x "the film"
ok "pipeline: message" err_has 'labels: "other" is not a label of the model'

# several values of one class, in the training and the evaluation file
awk -F'\t' 'BEGIN { OFS = "\t" } NR > 1 { $2 = $2 ? 4 + NR % 2 : 1 + NR % 2 } { print }' "$tmp/train.num.tsv" >"$tmp/stars.tsv"
ok "stars" exits 0 "$sesame" finetune $small $task --labels '1=bad,2=bad,4=good,5=good' --train "$tmp/stars.tsv" \
    --eval "$tmp/stars.tsv" -o "$tmp/stars" --steps 60
ok "stars: two classes" test "$(grep -c '"[0-9]*": "[a-z]*"' "$tmp/stars/config.json")" -eq 2
ok "stars: accuracy" above "$(score eval_accuracy "$tmp/stars/eval_results.json")" 0.95

ok "stars: predict by run.json" exits 0 "$sesame" predict "$tmp/stars" "$tmp/stars.tsv" -q
ok "stars: names" out_has '"label": "good"'
ok "stars: eval by run.json" exits 0 "$sesame" eval "$tmp/stars" "$tmp/stars.tsv" -q --json

# labels that do not cover the data: the label, its line, what to do; nothing is written
printf 'it was not good .\t2\n' | cat "$tmp/train.num.tsv" - >"$tmp/three.tsv"
for set in '0=negative,1=positive' '0|1'; do
    ok "not covered ($set)" exits 3 "$sesame" finetune $small $task --labels "$set" --train "$tmp/three.tsv" -o "$tmp/none"
    ok "not covered: message" err_has 'three.tsv: line 82: unknown label "2"; expected one of: 0, 1; correct the label or add it to'
    ok "not covered: no folder" test ! -e "$tmp/none"
done
ok "an evaluation file" exits 3 "$sesame" finetune $small $task --train "$tmp/train.num.tsv" --eval "$tmp/three.tsv" -o "$tmp/none"
ok "an evaluation file: message" err_has 'three.tsv: line 82: unknown label "2"'
ok "eval" exits 3 "$sesame" eval "$tmp/named" $task $names "$tmp/three.tsv" -q
ok "eval: message" err_has 'three.tsv: line 82: unknown label "2"'

# usage
for set in '0=a,1' '0=a,=b' '0=a,0=b' '0='; do
    ok "labels $set" exits 2 "$sesame" finetune $small $task --labels "$set" --train "$tmp/train.num.tsv" -o "$tmp/none"
    ok "labels $set: message" err_has 'labels: '
done
counted
