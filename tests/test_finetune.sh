#!/bin/sh
# finetune, eval and predict from outside: every task, interruptions, bad input.
# Usage: test_finetune.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# shellcheck disable=SC2086  # several options
ok "classify" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --epochs 4 -o "$tmp/one" --log "$tmp/log"
ok "learned" above "$(score eval_accuracy "$tmp/one/all_results.json")" 0.95
for file in config.json model.safetensors tokenizer.json README.md train_results.json eval_results.json \
    all_results.json trainer_state.json; do ok "leaves $file" test -s "$tmp/one/$file"; done
ok "labels in the config" grep -q '"1": "pos"' "$tmp/one/config.json"
ok "keys of transformers" grep -q '"best_model_checkpoint"' "$tmp/one/trainer_state.json"
for file in trainer_state all_results config; do
    ok "valid $file.json" sh -c "'$1/json_valid' <'$tmp/one/$file.json' >/dev/null"
done
ok "a line of log for each update" test "$(grep -c grad_norm "$tmp/log")" -eq 40
ok "eval" exits 0 "$sesame" eval "$tmp/one" "$tmp/dev.tsv" --task classify --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/one/eval_results.json")"
printf 'sentence\nthe film was good .\nit was bad .\n' >"$tmp/new.tsv"
ok "predict without labels" exits 0 "$sesame" predict "$tmp/one" "$tmp/new.tsv" --task classify
ok "a line each" test "$(tr -d '\n' <"$tmp/out" | sed 's/, "score": [0-9.]*//g')" = '{"label": "pos"}{"label": "neg"}'
ok "a pipeline reads it" exits 0 "$sesame" text-classification --model "$tmp/one" --json "the film was good ."
ok "and agrees" out_has pos
pipeline=$(score score "$tmp/out")
"$sesame" predict "$tmp/one" "$tmp/new.tsv" --task classify >"$tmp/out"
ok "to the last digit" test "$pipeline" = "$(score score "$tmp/out")"

# A benchmark's name: the model's labels keep their order, whatever the benchmark's is.
awk 'BEGIN { split("contradiction|entailment|neutral", l, "|"); split("bad|good|film", s, "|")
    print "sentence1\tsentence2\tgold_label"
    for (i = 0; i < 60; i++) printf "it was %s\tthe %s\t%s\n", s[i % 3 + 1], s[i % 3 + 1], l[i % 3 + 1] }' >"$tmp/nli.tsv"
# shellcheck disable=SC2086
ok "NLI by its columns" exits 0 "$sesame" finetune $small --task classify --train "$tmp/nli.tsv" --text sentence1 \
    --pair sentence2 --label gold_label --epochs 8 -o "$tmp/nli"
ok "eval by a benchmark" exits 0 "$sesame" eval "$tmp/nli" "$tmp/nli.tsv" --task mnli --json
ok "measures right" above "$(score eval_accuracy "$tmp/out")" 0.95
ok "predict by a benchmark" exits 0 "$sesame" predict "$tmp/nli" "$tmp/nli.tsv" --task mnli
ok "labels right" test "$(head -3 "$tmp/out" | sed 's/, "score.*//; s/.*: //' | tr -d '"\n')" = contradictionentailmentneutral
ok "other labels" exits 3 "$sesame" eval "$tmp/one" "$tmp/nli.tsv" --task mnli
ok "both lists" err_has 'the data have entailment, neutral, contradiction; the model has neg, pos'
sed 's/"contradiction"/"LABEL_0"/; s/"entailment"/"LABEL_1"/; s/"neutral"/"LABEL_2"/' "$tmp/nli/config.json" >"$tmp/c.json"
cp -r "$tmp/nli" "$tmp/nameless" && cp "$tmp/c.json" "$tmp/nameless/config.json"
ok "nameless labels" exits 0 "$sesame" eval "$tmp/nameless" "$tmp/nli.tsv" --task mnli --json

# Labels without names, and with special characters.
tr -d '\n' <"$tmp/nli/config.json" | sed 's/,* *"id2label": {[^}]*}//; s/,* *"label2id": {[^}]*}//; s/}$/, "num_labels": 3}/' \
    >"$tmp/nameless/config.json"
ok "no id2label" exits 0 "$sesame" predict "$tmp/nameless" "$tmp/nli.tsv" --task classify --text sentence1 --pair sentence2
ok "numbers them" test "$(head -3 "$tmp/out" | sed 's/, "score.*//; s/.*: //' | tr -d '"\n')" = LABEL_0LABEL_1LABEL_2
sed 's/pos$/a|b/; s/neg$/c|/' "$tmp/train.tsv" >"$tmp/bars.tsv"
# shellcheck disable=SC2086
ok "labels with bars" exits 0 "$sesame" finetune $small --task classify --train "$tmp/bars.tsv" --epochs 4 -o "$tmp/bars"
ok "are measured" exits 0 "$sesame" eval "$tmp/bars" "$tmp/bars.tsv" --task classify --json
ok "right" above "$(score eval_accuracy "$tmp/out")" 0.95
ok "are predicted" exits 0 "$sesame" predict "$tmp/bars" "$tmp/new.tsv" --task classify
ok "in full" out_has '"label": "a|b"'

# Pipes can be read only once.
from() { file=$1; shift; "$@" <"$file"; }
# shellcheck disable=SC2086
ok "standard input" exits 2 from "$tmp/train.tsv" "$sesame" finetune $small --task classify --train - -o "$tmp/pipe"
ok "message" err_has 'set the column options text and label'
# shellcheck disable=SC2086
ok "with columns" exits 0 from "$tmp/train.tsv" "$sesame" finetune $small --task classify --train - -o "$tmp/pipe" \
    --text sentence --label label --steps 2
ok "predict of standard input" exits 0 from "$tmp/new.tsv" "$sesame" predict "$tmp/one" - --task classify --text sentence
ok "two predictions" test "$(wc -l <"$tmp/out")" -eq 2

# Tables with other delimiters, quotes, and a given label order.
tr '\t' ';' <"$tmp/train.tsv" | sed 's/^\(the [^;]*\);/"\1";/' >"$tmp/train.txt"
# shellcheck disable=SC2086
ok "a table with semicolons and quotes" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.txt" \
    --format csv --delimiter ';' --quotes on --labels 'pos|neg' --epochs 4 -o "$tmp/semi"
ok "labels in the order given" grep -q '"0": "pos"' "$tmp/semi/config.json"
ok "eval reads it too" exits 0 "$sesame" eval "$tmp/semi" "$tmp/train.txt" --task classify --format csv --delimiter ';' --json
ok "and agrees" above "$(score eval_accuracy "$tmp/out")" 0.95

# From a model: all parameters except the head are loaded.
ok "from a folder" exits 0 "$sesame" finetune --model "$tmp/one" --task classify --train "$tmp/train.tsv" --steps 2 \
    -o "$tmp/two"
ok "nothing was new" sh -c "! grep -q 'randomly initialized' '$tmp/err'"
sed 's/pos$/x/; s/neg$/y/; 2s/.$/z/' "$tmp/train.tsv" >"$tmp/three.tsv"
ok "with three labels" exits 0 "$sesame" finetune --model "$tmp/one" --task classify --train "$tmp/three.tsv" --steps 2 \
    -o "$tmp/three" --freeze 3
ok "the head was new" err_has 'randomly initialized: classifier.weight, classifier.bias'

ok "reports both label sets" err_has "labels of the base model: neg, pos; labels of the data: x, y, z"
ok "a fitting head" exits 0 "$sesame" finetune --model "$tmp/nli" --task classify --train "$tmp/three.tsv" --steps 1 -o "$tmp/kept"
ok "reports the kept head" err_has 'head is kept; labels of the base model: contradiction, entailment, neutral; labels of the data: x, y, z'
sed 's/"0": "contradiction"/"0": "neutral"/; s/"2": "neutral"/"2": "contradiction"/' "$tmp/nli/config.json" >"$tmp/c.json"
cp -r "$tmp/nli" "$tmp/turned" && cp "$tmp/c.json" "$tmp/turned/config.json"
ok "the same labels in another order" exits 0 "$sesame" finetune --model "$tmp/turned" --task classify \
    --train "$tmp/nli.tsv" --label gold_label --steps 1 -o "$tmp/turned2"
ok "the model's order stays" grep -q '"0": "neutral"' "$tmp/turned2/config.json"
ok "no notice" sh -c "! grep -q 'labels of the base model' '$tmp/err'"

# Epochs with --steps: 80 rows in batches of 8, 25 updates.
# shellcheck disable=SC2086
ok "steps" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --steps 25 \
    --eval-every 5 -o "$tmp/steps" --log "$tmp/steps.log"
ok "epochs of an evaluation" grep -q '"epoch": 1.5, "eval_accuracy".*"step": 15}' "$tmp/steps.log"
ok "epochs of the run" test "$(score epoch "$tmp/steps/all_results.json")" = 2.5

# Fractions of an epoch: 10 batches, 4 updates of 3, 3, 3 and 1.
# shellcheck disable=SC2086
ok "quarters of an epoch" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --epochs 2 --eval-epochs 0.25 -o "$tmp/quarters"
steps() { sed -n 's/.*"eval_loss".*"step": \([0-9]*\)}/\1/p' "$1/log.jsonl" | tr '\n' ' '; }
ok "when they have passed" test "$(steps "$tmp/quarters")" = '3 5 8 10 13 15 18 20 '
# shellcheck disable=SC2086
ok "accumulated" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --epochs 3 --eval-epochs 1.5 --accumulate 3 -o "$tmp/halves"
ok "after one and a half" test "$(steps "$tmp/halves")" = '6 12 '
# shellcheck disable=SC2086
ok "both" exits 2 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --eval-epochs 1 \
    --eval-every 3 -o "$tmp/both"

# Scores of metrics that are not defaults of the task.
# shellcheck disable=SC2086
ok "another metric" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --metric matthews_correlation --epochs 1 -o "$tmp/matthews"
ok "selects the best" err_has 'matthews_correlation [-0-9.]* best'
ok "is written" grep -q '"eval_matthews_correlation"' "$tmp/matthews/eval_results.json"

# An undefined score: the correlation with a constant.
printf 'sentence1\tsentence2\tscore\nit\ta film\t2\nit\tthe film\t2\n' >"$tmp/flat.tsv"
awk 'BEGIN { print "sentence1\tsentence2\tscore"; for (i = 0; i < 8; i++) printf "it was\tgood\t%d\n", i % 4 }' >"$tmp/some.tsv"
# shellcheck disable=SC2086
ok "an undefined score" exits 0 "$sesame" finetune $small --task stsb --train "$tmp/some.tsv" --eval "$tmp/flat.tsv" --epochs 1 \
    -o "$tmp/flat" --log "$tmp/flat.log"
ok "is null" grep -q '"eval_pearson": null' "$tmp/flat.log"
ok "is not the best" sh -c "! grep -q ' best ' '$tmp/err'"
ok "valid JSON" sh -c "'$1/json_valid' <'$tmp/flat/trainer_state.json' >/dev/null"

# Another architecture, with buffers that are neither trained nor saved.
sed 's/"bert"/"modernbert"/; s/"layer_norm_eps"/"norm_eps"/; s/"hidden_act"/"classifier_pooling": "mean", "hidden_activation"/' \
    "$tmp/config.json" >"$tmp/modern.json"
ok "ModernBERT" exits 0 "$sesame" finetune --config "$tmp/modern.json" --tokenizer "$tmp/vocab.txt" --task classify \
    --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --epochs 3 --lr 3e-3 --batch-size 8 -o "$tmp/modern"
ok "learned" above "$(score eval_accuracy "$tmp/modern/all_results.json")" 0.95
ok "from it" exits 0 "$sesame" finetune --model "$tmp/modern" --task classify --train "$tmp/three.tsv" --steps 1 -o "$tmp/modern3"
ok "a new head" err_has 'randomly initialized: classifier.weight'

# Interrupted by a signal and resumed: the same weights as without interruption, with other threads and recomputation.
# shellcheck disable=SC2086
for signal in INT TERM; do
    rm -rf "$tmp/stopped"
    "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --epochs 4 --accumulate 3 \
        -o "$tmp/stopped" --log "$tmp/stopped.log" >/dev/null 2>"$tmp/err" &
    pid=$!
    while kill -0 $pid 2>/dev/null && [ ! -s "$tmp/stopped/checkpoint-4/manifest.json" ]; do sleep 0.05; done
    kill -$signal $pid 2>/dev/null
    wait $pid
    ok "resumes after $signal" exits 0 "$sesame" finetune $small --threads 2 --task classify --train "$tmp/train.tsv" \
        --eval "$tmp/dev.tsv" --epochs 4 --accumulate 3 -o "$tmp/stopped" --resume --recompute
    [ -d "$tmp/whole" ] || exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" \
        --eval "$tmp/dev.tsv" --epochs 4 --accumulate 3 -o "$tmp/whole"
    ok "the same bits after $signal" cmp -s "$tmp/stopped/model.safetensors" "$tmp/whole/model.safetensors"
done
# The exit code after a signal is 128 plus its number; a checkpoint is saved.
# shellcheck disable=SC2086
for signal in INT:130 TERM:143 HUP:129 USR1:138; do
    rm -rf "$tmp/signal"
    "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --steps 1000000 --save-every -1 -o "$tmp/signal" \
        >/dev/null 2>"$tmp/err" &
    pid=$!
    while kill -0 $pid 2>/dev/null && [ ! -s "$tmp/signal/log.jsonl" ]; do sleep 0.05; done
    kill -"${signal%:*}" $pid
    wait $pid
    ok "exit code of $signal" test $? -eq "${signal#*:}"
    ok "checkpoint after $signal" test -n "$(find "$tmp/signal" -path '*/checkpoint-*/manifest.json')"
    ok "message after $signal" err_has 'stopped after update .* --resume continues'
done
ok "resumed with another rate" exits 3 "$sesame" finetune $small --lr 1e-3 --task classify --train "$tmp/train.tsv" \
    --eval "$tmp/dev.tsv" --epochs 4 --accumulate 3 -o "$tmp/stopped" --resume
ok "names it" err_has 'started with lr 0.003, not 0.001'

# The other tasks.
awk 'BEGIN { print "sentence1\tsentence2\tscore"
    for (i = 0; i < 60; i++) printf "the film was %s\tit was %s\t%s\n", i % 2 ? "good" : "bad", i % 4 < 2 ? "good" : "bad",
        (i % 2) == (i % 4 < 2) ? "4.5" : "0.5" }' >"$tmp/pairs.tsv"
# shellcheck disable=SC2086
ok "regress" exits 0 "$sesame" finetune $small --task stsb --train "$tmp/pairs.tsv" --eval "$tmp/pairs.tsv" --epochs 12 \
    -o "$tmp/regress" --optimizer bert_adam --schedule cosine --tokens-per-batch 100 --bucket 4
ok "one output" grep -q 'LABEL_0' "$tmp/regress/config.json"
ok "its loss is the mean square" awk -v a="$(score eval_loss "$tmp/regress/all_results.json")" \
    -v b="$(score eval_mse "$tmp/regress/all_results.json")" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-6) }'
awk 'BEGIN { print "text\tlabels"; split("good|bad|good film|bad film", s, "|"); split("g|b|g,f|b,f", l, "|")
    for (i = 0; i < 60; i++) printf "%s\t%s\n", s[i % 4 + 1], l[i % 4 + 1] }' >"$tmp/multi.tsv"
# shellcheck disable=SC2086
ok "multi_label" exits 0 "$sesame" finetune $small --task multi_label --train "$tmp/multi.tsv" --eval "$tmp/multi.tsv" \
    --epochs 12 -o "$tmp/multi"
ok "learned" above "$(score eval_f1_micro "$tmp/multi/all_results.json")" 0.9
ok "the separator is named" err_has 'multi.tsv: labels are separated by ","; 3 labels: b, f, g'
tr , '|' <"$tmp/multi.tsv" >"$tmp/bars.tsv"
# shellcheck disable=SC2086
ok "labels with |" exits 0 "$sesame" finetune $small --task multi_label --train "$tmp/bars.tsv" --eval "$tmp/multi.tsv" \
    --epochs 12 -o "$tmp/several"
ok "the separator is named" err_has 'bars.tsv: labels are separated by "|"; 3 labels: b, f, g'
ok "the same model" cmp -s "$tmp/multi/model.safetensors" "$tmp/several/model.safetensors"
ok "a model with several labels" exits 0 "$sesame" text-classification -m "$tmp/multi" --json -q "good film"
ok "gives all above 0.5" test "$(sed 's/, "score": [0-9.]*//g' "$tmp/out" | grep -o '"[gbf]"' | sort | tr -d '\n')" = '"f""g"'
ok "the best one" exits 0 "$sesame" text-classification -m "$tmp/multi" --json -q --top-k 1 "good film"
ok "if asked" test "$(grep -o '"label"' "$tmp/out" | wc -l)" -eq 1
ok "columns" sh -c "'$sesame' text-classification -m '$tmp/multi' -q --keep jsonl --column text '$tmp/multi.tsv' >'$tmp/out'"
ok "with lists" grep -q '"label": \["[gf]", "[gf]"\]' "$tmp/out"

# Gaps and odd labels: counted, said once, dropped if asked.
awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 40; i++) printf "%s\t%s\n", i % 10 == 3 ? "" : "it was " (i % 2 ? "good" : "bad"),
    i % 8 == 4 ? "Neg" : i % 2 ? "pos" : "neg" }' >"$tmp/gaps.tsv"
# shellcheck disable=SC2086
ok "empty texts" exits 0 "$sesame" finetune $small --task classify --train "$tmp/gaps.tsv" --epochs 1 -o "$tmp/gaps"
ok "are counted" err_has 'gaps.tsv: 4 rows: empty text (lines 5, 15, 25, 35) of 40; --skip-bad drops them'
ok "labels that differ in case" err_has '"Neg" and "neg" are different labels: they differ only in case or blanks'
# shellcheck disable=SC2086
ok "skip-bad" exits 0 "$sesame" finetune $small --task classify --train "$tmp/gaps.tsv" --epochs 1 -o "$tmp/gaps" --skip-bad --overwrite
ok "drops them" err_has 'gaps.tsv: 4 rows: empty text (lines 5, 15, 25, 35): dropped, 36 rows are left'
ok "predict keeps each row" exits 0 "$sesame" predict "$tmp/gaps" "$tmp/gaps.tsv" --skip-bad
ok "a line each" test "$(wc -l <"$tmp/out")" -eq 40
awk '{ print (NR == 1 ? $1 : "") "\t" $NF }' "$tmp/gaps.tsv" >"$tmp/blank.tsv"
# shellcheck disable=SC2086
ok "no text at all" exits 3 "$sesame" finetune $small --task classify --train "$tmp/blank.tsv" --epochs 1 -o "$tmp/blank"
ok "names the column" err_has 'the texts of all 40 examples are empty: is it the right column (--text)?'
awk 'NR == 1 || /pos/' "$tmp/dev.tsv" >"$tmp/positive.tsv"
ok "one class" exits 0 "$sesame" eval "$tmp/one" "$tmp/positive.tsv" --bootstrap 50
ok "is named" err_has 'rows have the label "pos": scores of other labels are not measured'
ok "and intervals without a width" out_has 'the same in every resample'
iconv -f UTF-8 -t UTF-16 "$tmp/dev.tsv" >"$tmp/utf16.tsv"
ok "UTF-16 by its byte order mark" exits 0 "$sesame" eval "$tmp/one" "$tmp/utf16.tsv" --json
ok "has the score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/one/eval_results.json")"
ok "the option" exits 0 "$sesame" eval "$tmp/one" "$tmp/utf16.tsv" --encoding utf-16 --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/one/eval_results.json")"
awk 'BEGIN { for (i = 0; i < 40; i++) printf "%s N B-PER\nlives V O\nin P O\n%s N B-LOC\n. . O\n\n", i % 2 ? "anna" : "bob",
    i % 3 ? "paris" : "londons" }' >"$tmp/tags.txt"
# shellcheck disable=SC2086
ok "tag" exits 0 "$sesame" finetune $small --task tag --train "$tmp/tags.txt" --eval "$tmp/tags.txt" --epochs 8 -o "$tmp/tag"
ok "learned" above "$(score eval_f1 "$tmp/tag/all_results.json")" 0.9
ok "predicts" exits 0 "$sesame" predict "$tmp/tag" "$tmp/tags.txt" --task tag
ok "every word" out_has '"tags": \["B-PER", "O", "O", "B-LOC", "O"\]'
ok "truncated tags" exits 0 "$sesame" predict "$tmp/tag" "$tmp/tags.txt" --task tag --max-length 5
ok "reports the rows" err_has 'tags.txt: 40 of 40 examples are longer than 5 tokens and were truncated'
ok "reports the words" err_has 'tags.txt: 80 words have no tokens or were truncated'
ok "counts them" out_has '"cut": 2'
ok "eval truncates" exits 0 "$sesame" eval "$tmp/one" "$tmp/dev.tsv" --task classify --max-length 4
ok "message" err_has 'dev.tsv: 20 of 20 examples are longer than 4 tokens and were truncated'
# shellcheck disable=SC2086
ok "finetune truncates" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --max-length 4 --steps 1 -o "$tmp/short"
ok "warns about both files" err_has 'dev.tsv: 20 of 20 examples are longer'
# shellcheck disable=SC2086
ok "all pieces, smooth labels" exits 0 "$sesame" finetune $small --task tag --label-smoothing 0.1 --all-pieces --train "$tmp/tags.txt" --steps 2 -o "$tmp/tag2"
awk 'BEGIN { printf "{\"version\": \"v2.0\", \"data\": [{\"paragraphs\": ["
    for (i = 0; i < 60; i++) {
        who = i % 2 ? "anna" : "bob"; where = i % 3 ? "paris" : "london"
        printf "%s{\"context\": \"%s lives in %s . it was good .\", \"qas\": [{\"id\": \"q%d\", \"question\": \"who ?\", \"answers\": [{\"text\": \"%s\", \"answer_start\": 0}]},", i ? ", " : "", who, where, i, who
        printf "{\"id\": \"r%d\", \"question\": \"where ?\", \"answers\": [{\"text\": \"%s\", \"answer_start\": %d}]},", i, where, length(who) + 10
        printf "{\"id\": \"s%d\", \"question\": \"not ?\", \"is_impossible\": true, \"answers\": []}]}", i
    }
    print "]}]}" }' >"$tmp/squad.json"
# shellcheck disable=SC2086
ok "answer" exits 0 "$sesame" finetune $small --task answer --no-answers --train "$tmp/squad.json" --eval "$tmp/squad.json" \
    --epochs 12 -o "$tmp/answer"
ok "learned" above "$(score eval_f1 "$tmp/answer/all_results.json")" 60
ok "answers" exits 0 "$sesame" predict "$tmp/answer" "$tmp/squad.json" --task answer --no-answers --max-length 12 --stride 2
ok "in windows" test "$(wc -l <"$tmp/out")" -eq 180
ok "with ids" out_has '"id": "r3"'

# Bad input: nothing is written, the message names the location.
refused() # what, exit code, message, options
{
    what=$1 code=$2 message=$3
    shift 3
    # shellcheck disable=SC2086
    ok "$what" exits "$code" "$sesame" finetune $small -o "$tmp/bad" "$@"
    ok "$what: message" err_has "$message"
    ok "$what: leaves nothing" test ! -e "$tmp/bad/config.json"
}
: >"$tmp/empty.tsv"
refused "an empty file" 3 'empty.tsv' --task classify --train "$tmp/empty.tsv"
printf 'sentence\tlabel\na\tx\nb\tx\n' >"$tmp/single.tsv"
refused "one class" 3 'single.tsv' --task classify --train "$tmp/single.tsv"
printf 'sentence\tlabel\na\tx\nb\n' >"$tmp/ragged.tsv"
refused "a ragged row" 3 'line 3\|:3' --task classify --train "$tmp/ragged.tsv"
printf 'sentence\tlabel\na\tother\n' >"$tmp/odd.tsv"
refused "an unseen label" 3 'other' --task classify --train "$tmp/train.tsv" --eval "$tmp/odd.tsv"
refused "a wrong column" 3 'sentence' --task classify --train "$tmp/train.tsv" --text body
printf 'sentence1\tsentence2\tscore\na\tb\tinf\n' >"$tmp/inf.tsv"
refused "a target that is not finite" 3 'inf' --task stsb --train "$tmp/inf.tsv"
# Errors of each kind, in evaluations of models that have learned nothing.
errors() # kind, score, then options
{
    kind=$1 by=$2
    shift 2
    rm -rf "$tmp/errors"
    # shellcheck disable=SC2086
    ok "a $kind run" exits 0 "$sesame" finetune $small --steps 1 -o "$tmp/errors" "$@"
    ok "errors of $kind" grep -q "\"kind\": \"$kind\"" "$tmp/errors/eval_errors.json"
    ok "their score" grep -q "\"score\": \"$by\"" "$tmp/errors/eval_errors.json"
    ok "a text of $kind" grep -q '"text": "[a-z]' "$tmp/errors/eval_errors.json"
    ok "a report of $kind" grep -q '<figcaption>Worst errors</figcaption>' "$tmp/errors/report.html"
}
errors labels probability --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv"
errors tags 'wrong words' --task tag --train "$tmp/tags.txt" --eval "$tmp/tags.txt"
ok "wrong words" grep -q '>word</th><th scope="col">true</th><th scope="col">predicted</th>' "$tmp/errors/report.html"
errors sets 'wrong labels' --task multi_label --train "$tmp/multi.tsv" --eval "$tmp/multi.tsv"
errors texts f1 --task answer --train "$tmp/squad.json" --eval "$tmp/squad.json" --no-answers
awk 'BEGIN { print "sentence\tscore"; for (i = 0; i < 20; i++) printf "the film was %s\t%g\n", i % 2 ? "good" : "bad", i / 4 }' \
    >"$tmp/numbers.tsv"
errors values 'absolute difference' --task regress --train "$tmp/numbers.tsv" --eval "$tmp/numbers.tsv"

# Pipelines name the task that trains their models.
ok "the name of a pipeline" exits 0 "$sesame" finetune $small --task text-classification --train "$tmp/train.tsv" \
    --eval "$tmp/dev.tsv" --steps 2 -o "$tmp/by-pipeline"
ok "its task" grep -q 'Task classify' "$tmp/by-pipeline/README.md"
ok "eval with it" exits 0 "$sesame" eval "$tmp/by-pipeline" "$tmp/dev.tsv" --task sentiment-analysis
for pair in ner:tag token-classification:tag question-answering:answer multiple-choice:choose summarization:rewrite \
    text-generation:continue similarity:embed; do
    "$sesame" data "$tmp/none.txt" --task "${pair%:*}" >"$tmp/out" 2>"$tmp/err"
    ok "${pair%:*} is a task" sh -c "! grep -q 'unknown task' '$tmp/err'"
done
refused "no such task" 2 'unknown task "fly"' --task fly --train "$tmp/train.tsv"
refused "zero updates" 3 '0 updates' --task classify --train "$tmp/train.tsv" --epochs 0
refused "no such metric" 2 'unknown score "fog"' --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --metric fog
refused "a metric of numbers" 2 'unknown score "pearson"' --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --metric pearson
refused "no such metric, nothing to measure with" 2 'unknown score "fog"; choose one of loss, accuracy, ' --task classify \
    --train "$tmp/train.tsv" --metric fog
refused "no such metric of answers" 2 'choose one of loss, exact' --task answer --train "$tmp/squad.json" --metric fog
refused "no such metric of tags" 2 'f1' --task tag --train "$tmp/tags.txt" --metric fog
refused "no such metric of several" 2 'f1_micro' --task multi_label --train "$tmp/multi.tsv" --metric fog
sed 's/answer_start": 0/answer_start": 1/' "$tmp/squad.json" >"$tmp/off.json"
refused "an answer that is not there" 3 'off.json' --task answer --train "$tmp/off.json"
# shellcheck disable=SC2086
ok "a folder that exists" exits 3 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" -o "$tmp/one"
ok "message" err_has 'resume continues it, overwrite replaces it'

ok "both at once" exits 2 "$sesame" finetune --model "$tmp/one" --task classify --train "$tmp/train.tsv" -o "$tmp/new" \
    --resume --overwrite
ok "both at once: message" err_has 'resume continues a run, overwrite replaces it: set one'
for file in README.md tokenizer.json notes.txt; do
    rm -rf "$tmp/mine" && mkdir "$tmp/mine" && echo mine >"$tmp/mine/$file"
    ok "a folder with $file" exits 3 "$sesame" finetune --model "$tmp/one" --task classify --train "$tmp/train.tsv" \
        --steps 1 -o "$tmp/mine"
    ok "resume in a folder with $file" exits 3 "$sesame" finetune --model "$tmp/one" --task classify \
        --train "$tmp/train.tsv" --steps 1 -o "$tmp/mine" --resume
    ok "message" err_has 'no checkpoint to resume from'
    ok "$file is as it was" test "$(cat "$tmp/mine/$file")" = mine
done
ok "overwrite" exits 0 "$sesame" finetune --model "$tmp/one" --task classify --train "$tmp/train.tsv" --steps 1 \
    -o "$tmp/mine" --overwrite
echo mine >"$tmp/my.log"
ok "a log that exists" exits 3 "$sesame" finetune --model "$tmp/one" --task classify --train "$tmp/train.tsv" --steps 1 \
    -o "$tmp/new" --log "$tmp/my.log"
ok "a log that exists: message" err_has 'my.log: exists already'
ok "is as it was" test "$(cat "$tmp/my.log")" = mine
ok "resumed" exits 0 "$sesame" finetune --model "$tmp/one" --task classify --train "$tmp/train.tsv" --steps 1 \
    -o "$tmp/new" --log "$tmp/my.log" --resume
ok "the log is continued" test "$(head -1 "$tmp/my.log")" = mine

# The example program: CSV in, a model of three labels out.
awk 'BEGIN { print "text,label"; split("good|bad|film", w, "|"); split("pos|neg|none", l, "|")
    for (i = 0; i < 60; i++) printf "\"it was %s, .\",%s\n", w[i % 3 + 1], l[i % 3 + 1] }' >"$tmp/three.csv"
ok "example" exits 0 "$1/examples/finetune" "$tmp/one" "$tmp/three.csv" "$tmp/three.csv" "$tmp/example"
ok "reports each label" test "$(grep -c '^\(neg\|none\|pos\) *precision' "$tmp/out")" -eq 3
ok "predicts rows" test "$(grep -c '^row [1-5]: ' "$tmp/out")" -eq 5
ok "predicts a text" out_has '^"a good film": '
ok "saves a folder" exits 0 "$sesame" eval "$tmp/example" "$tmp/three.csv" --task classify --json
ok "of at most 80 lines" test "$(wc -l <examples/finetune.c)" -le 80

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
