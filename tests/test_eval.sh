#!/bin/sh
# eval from outside: classes one by one, the confusion matrix, confidence intervals.
# Usage: test_eval.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# shellcheck disable=SC2086  # several options
exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --epochs 6 -o "$tmp/one"
# 80 rows that it gets right, but the labels of some are wrong: of 40 neg every fourth, of 40 pos every tenth.
awk -F '\t' 'NR > 1 && $2 == "neg" && ++n % 4 == 0 { $2 = "pos" ; print $1 "\t" $2; next }
    NR > 1 && $2 == "pos" && ++p % 10 == 0 { print $1 "\tneg"; next } { print }' "$tmp/train.tsv" >"$tmp/mixed.tsv"
evaluate() { exits 0 "$sesame" eval "$tmp/one" "$tmp/mixed.tsv" --task classify "$@"; }
ok "eval" evaluate
ok "of each class" out_has '^pos  *0.9000  *0.7826  *0.8372  *46$' # 36 of 40 that it calls pos are; 46 are
ok "confusion matrix" out_has '^true \\ predicted  neg  pos$'
ok "second row" out_has '^pos  *10   36$'
cp "$tmp/out" "$tmp/first"
# task and columns of the run that trained the model
evaluate --json && cp "$tmp/out" "$tmp/with-task"
ok "eval without --task" exits 0 "$sesame" eval "$tmp/one" "$tmp/mixed.tsv" --json
ok "the same scores" cmp "$tmp/out" "$tmp/with-task"
ok "predict without --task" exits 0 "$sesame" predict "$tmp/one" "$tmp/mixed.tsv"
cp "$tmp/out" "$tmp/rows"
ok "predict with --task" exits 0 "$sesame" predict "$tmp/one" "$tmp/mixed.tsv" --task classify
ok "the same rows" cmp "$tmp/out" "$tmp/rows"
ok "quantize --eval without --task" exits 0 "$sesame" quantize "$tmp/one" "$tmp/one-f16" --dtype f16 --eval "$tmp/mixed.tsv" --max-drop 100
ok "its line" grep -q '^Evaluated  ' "$tmp/out" "$tmp/err"
# a folder without run.json: the task of the class in config.json
ok "no run.json" test ! -e "$tmp/one-f16/run.json"
ok "the task of its class" exits 0 "$sesame" eval "$tmp/one-f16" "$tmp/mixed.tsv" --text sentence --json
ok "scores of classify" out_has '"eval_accuracy": .*"eval_labels": \["neg", "pos"\]'
ok "also of predict" exits 0 "$sesame" predict "$tmp/one-f16" "$tmp/mixed.tsv" --text sentence
sed 's/neg$/negative/; s/pos$/positive/' "$tmp/mixed.tsv" >"$tmp/long.tsv"
ok "also of a bundled model" exits 0 "$sesame" eval -m sesame-sentiment "$tmp/long.tsv" --text sentence
ok "also of an adapter" exits 0 "$sesame" predict sesame-small --adapter sesame-sentiment "$tmp/mixed.tsv" --text sentence
ok "a class without a task" exits 2 "$sesame" eval -m sesame-small "$tmp/mixed.tsv"
ok "its message" err_has '--task TASK is required: .*: no run.json, and a ModernBertForMaskedLM has no head of a fine-tuning task'
ok "no model" exits 3 "$sesame" eval "$tmp/nothing" "$tmp/mixed.tsv"
ok "its file" err_has 'nothing/config.json: No such file'
mkdir "$tmp/odd" && cp -r "$tmp/one/." "$tmp/odd"
rm -rf "$tmp/odd"/checkpoint-*
echo '{"options": {"task": 5}}' >"$tmp/odd/run.json"
ok "a number as task" exits 3 "$sesame" eval "$tmp/odd" "$tmp/mixed.tsv"
ok "its option" grep -q -e 'stored option task: unexpected value; give --task on the command line' "$tmp/err"
echo '[' >"$tmp/odd/run.json"
ok "a damaged run.json" exits 3 "$sesame" eval "$tmp/odd" "$tmp/mixed.tsv"
ok "its file" grep -q 'run.json' "$tmp/err"
ok "not read with --task" exits 0 "$sesame" eval "$tmp/odd" "$tmp/mixed.tsv" --task classify

ok "--model is the first argument, too" exits 0 "$sesame" eval --model="$tmp/one" "$tmp/mixed.tsv" --task classify
ok "the same" cmp -s "$tmp/out" "$tmp/first"
ok "not both" exits 2 "$sesame" eval "$tmp/one" "$tmp/mixed.tsv" -m "$tmp/one" --task classify
ok "as JSON" evaluate --json
ok "an array" out_has '"eval_labels": \["neg", "pos"\], "eval_confusion_matrix": \[\[30, 4\], \[10, 36\]\]'
"$1/json_valid" <"$tmp/out" >/dev/null
ok "valid" test $? -eq 0

# baselines: the majority class of the training data has its share of the file; without vectors CBoW is fastText's model and has its name
awk -F '\t' 'NR == 1 || $2 == "neg" || n++ < 5' "$tmp/train.tsv" >"$tmp/negs.tsv"
ok "baselines" evaluate --json --baselines --train "$tmp/negs.tsv"
ok "valid" sh -c "'$1/json_valid' <'$tmp/out' >/dev/null"
ok "the model's score stays" test "$(score eval_accuracy "$tmp/with-task")" = "$(sed 's/.*{"eval_accuracy": \([0-9.]*\).*"baselines".*/\1/; s/^{"eval_accuracy": \([0-9.]*\).*/\1/' "$tmp/out")"
share=$(awk -F '\t' 'NR > 1 { n += $2 == "neg"; all++ } END { printf "%.3f", n / all }' "$tmp/mixed.tsv")
ok "majority" out_has "\"majority\": {\"eval_accuracy\": $share,"
ok "fastText" exits 0 "$sesame" finetune --method fasttext --task classify --train "$tmp/negs.tsv" --eval "$tmp/mixed.tsv" --seed 1 -o "$tmp/ft"
bag=$(score eval_accuracy "$tmp/ft/all_results.json")
evaluate --json --baselines --train "$tmp/negs.tsv"
ok "CBoW" out_has "\"fasttext\": {\"eval_accuracy\": $bag,"
ok "a table" evaluate --baselines --train "$tmp/negs.tsv"
ok "its rows" out_has "^majority  *$share"
ok "--train alone" exits 2 "$sesame" eval "$tmp/one" "$tmp/mixed.tsv" --train "$tmp/negs.tsv"
ok "its message" err_has '--train is an option of --baselines: give both'
ok "--baselines alone" exits 2 "$sesame" eval "$tmp/one" "$tmp/mixed.tsv" --baselines
ok "its message" err_has '--baselines needs training data: --train FILE'
printf 'sentence\tlabel\na film\tother\nbad\tneg\n' >"$tmp/other.tsv"
ok "other labels" exits 3 "$sesame" eval "$tmp/one" "$tmp/mixed.tsv" --baselines --train "$tmp/other.tsv"
ok "its message" err_has 'baseline majority: .*unknown label'
ok "another task" exits 2 "$sesame" eval "$tmp/one" "$tmp/mixed.tsv" --task blimp --baselines --train "$tmp/negs.tsv"
ok "its message" err_has '--baselines classify texts: they have no task blimp'

ok "intervals" evaluate --json --bootstrap 300
cp "$tmp/out" "$tmp/first"
low=$(score eval_accuracy_low "$tmp/first") high=$(score eval_accuracy_high "$tmp/first")
ok "around the score" awk -v l="$low" -v h="$high" 'BEGIN { exit !(l > 0.7 && l < 0.825 && h > 0.825 && h < 0.95) }'
ok "once more" evaluate --json --bootstrap 300 --threads 2
ok "the same" cmp -s "$tmp/out" "$tmp/first"
ok "another seed" evaluate --json --bootstrap 300 --seed 2
ok "others" sh -c "! cmp -s '$tmp/out' '$tmp/first'"
ok "less sure" evaluate --json --bootstrap 300 --confidence 50
ok "narrower" awk -v l="$low" -v h="$high" -v a="$(score eval_accuracy_low "$tmp/out")" \
    -v b="$(score eval_accuracy_high "$tmp/out")" 'BEGIN { exit !(a > l && b < h) }'
ok "text output" evaluate --bootstrap 300
ok "in brackets" out_has '^Scores  *accuracy 0.8250 (0\.7[0-9]*-0\.[89][0-9]*)'
ok "too sure" exits 2 "$sesame" eval "$tmp/one" "$tmp/mixed.tsv" --task classify --bootstrap 10 --confidence 100
ok "at the end of finetune" exits 0 "$sesame" finetune --model "$tmp/one" --task classify --train "$tmp/train.tsv" \
    --eval "$tmp/mixed.tsv" --steps 1 --lr 0 --bootstrap 100 -o "$tmp/two"
ok "the matrix" sh -c "tr -d ' \n' <'$tmp/two/eval_results.json' | grep -q '\"eval_confusion_matrix\":\[\[30,4\],\[10,36\]\]'"
ok "intervals" grep -q eval_accuracy_low "$tmp/two/eval_results.json"

# Tags: one line per entity type, tags in the matrix. Many labels: only the most frequent confusions.
awk 'BEGIN { for (i = 0; i < 40; i++) printf "%s B-PER\nlives O\nin O\n%s B-LOC\n\n", i % 2 ? "anna" : "bob",
    i % 3 ? "paris" : "london" }' >"$tmp/tags.txt"
# shellcheck disable=SC2086
exits 0 "$sesame" finetune $small --task tag --train "$tmp/tags.txt" --epochs 8 -o "$tmp/tag"
ok "tags" exits 0 "$sesame" eval "$tmp/tag" "$tmp/tags.txt" --task tag
ok "types" out_has '^PER  *1.0000'
ok "tags in the matrix" out_has '^B-LOC  *40'
awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 60; i++) print "it was good\tl" i % 15 }' >"$tmp/many.tsv"
# shellcheck disable=SC2086
exits 0 "$sesame" finetune $small --task classify --train "$tmp/many.tsv" --steps 2 -o "$tmp/many"
ok "many labels" exits 0 "$sesame" eval "$tmp/many" "$tmp/many.tsv" --task classify
ok "most frequent confusions" out_has '^true  predicted  *number$'
ok "ten of them" test "$(sed -n '/^true  predicted/,$p' "$tmp/out" | wc -l)" -eq 11

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
