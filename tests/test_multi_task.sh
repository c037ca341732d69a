#!/bin/sh
# finetune with several --train: losses by PyTorch, folders of the tasks, resuming, bad input.
# Usage: test_multi_task.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# ---- PyTorch's losses: one BERT, two heads, AdamW (tests/fixtures/multi_task.py) ----

data=tests/fixtures/multi_task
ok "two tasks" exits 0 "$sesame" finetune --config $data/config.json --tokenizer $data/vocab.txt --lr 1e-3 --steps 8 --batch-size 64 \
    --schedule constant --warmup 0 --mix-alpha 0.5 --train $data/classify.tsv --task classify --train $data/tags.txt --task tag \
    -o "$tmp/torch"
sed -n 's/.*"loss": \([0-9.]*\).*/\1/p' "$tmp/torch/log.jsonl" >"$tmp/losses"
cut -d' ' -f2 $data/losses.txt | paste - "$tmp/losses" >"$tmp/both"
ok "the same losses" awk '{ d = $1 - $2; if (d < 0) d = -d; if (NF < 2 || d > 1e-5) bad = 1 } END { exit bad || NR < 8 }' "$tmp/both"

# ---- five kinds of tasks ----

awk 'BEGIN { for (i = 0; i < 40; i++) printf "anna B-PER\nlives O\nin O\n%s B-LOC\n. O\n\n", i % 2 ? "paris" : "london" }' >"$tmp/tags"
awk 'BEGIN { print "text,a,b,label"
    for (i = 0; i < 40; i++) { r = int(i / 2) % 2; printf "%s film was,%s,%s,%d\n", i % 2 ? "the" : "a", r ? "bad ." : "good .", r ? "good ." : "bad .", r } }' \
    >"$tmp/choose.csv"
awk -F '\t' 'NR == 1 { print "sentence\tscore"; next } { printf "%s\t%d\n", $1, $2 == "pos" ? 3 : 1 }' "$tmp/train.tsv" >"$tmp/real.tsv"
cat >"$tmp/squad.json" <<END
{"data": [{"paragraphs": [{"context": "anna lives in paris . bob lives in london .", "qas": [
 {"id": "1", "question": "where lives anna ?", "answers": [{"text": "paris", "answer_start": 14}]},
 {"id": "2", "question": "where lives bob ?", "answers": [{"text": "london", "answer_start": 35}]}]}]}]}
END
five() # output, then more options: classify, tag, answer, choose, regress
{
    out=$1
    shift
    # shellcheck disable=SC2086  # several options
    exits 0 "$sesame" finetune $small "$@" --mix-alpha 0.3 --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --task classify --label label \
        --train "$tmp/tags" --eval "$tmp/tags" --task tag --train "$tmp/squad.json" --eval "$tmp/squad.json" --task answer --max-length 32 \
        --train "$tmp/choose.csv" --task choose --choices 'a|b' --eval "$tmp/choose.csv" \
        --train "$tmp/real.tsv" --label score --eval "$tmp/real.tsv" --task regress -o "$tmp/$out"
}
ok "five tasks" five whole --epochs 8
ok "shares of the batches" err_has 'classify: 80 examples of .*train.tsv, in 25.3 % of the batches' # 80^0.3 of 2 (80^0.3 + 40^0.3) + 2^0.3
ok "the mean selects" err_has 'mean 0\.[0-9]* best'
for s in classify_accuracy tag_f1 choose_accuracy regress_pearson; do
    ok "learned: $s" above "$(score eval_$s "$tmp/whole/all_results.json")" 0.9
done
ok "their mean" sh -c "awk -F '[:,]' '/eval_classify_accuracy|eval_tag_f1\"|eval_choose_accuracy|eval_regress_pearson\"/ { s += \$2 } /eval_answer_f1/ { s += \$2 / 100 }
    /eval_mean/ { d = \$2 - s / 5; exit !(d < 1e-9 && d > -1e-9) }' '$tmp/whole/all_results.json'"
ok "a folder per task" sh -c "cd '$tmp/whole' && ls -d classify tag answer choose regress tasks.json >/dev/null && test ! -e config.json"
ok "classes of transformers" sh -c "cd '$tmp/whole' && grep -q BertForTokenClassification tag/config.json && grep -q BertForQuestionAnswering answer/config.json &&
    grep -q BertForMultipleChoice choose/config.json && grep -q '\"regression\"' regress/config.json"
for task in classify tag answer choose regress; do
    ok "features of $task" exits 0 "$sesame" features -m "$tmp/whole/$task" "the film was good ." --json
    cp "$tmp/out" "$tmp/$task.features"
    ok "the encoder is the same" cmp "$tmp/$task.features" "$tmp/classify.features"
done
ok "eval of a task needs no options" exits 0 "$sesame" eval "$tmp/whole/regress" "$tmp/real.tsv" --json
ok "the same score" test "$(score eval_pearson "$tmp/out")" = "$(score eval_regress_pearson "$tmp/whole/all_results.json")"
ok "eval of the tags" exits 0 "$sesame" eval "$tmp/whole/tag" "$tmp/tags" --json
ok "the same score" test "$(score eval_f1 "$tmp/out")" = "$(score eval_tag_f1 "$tmp/whole/all_results.json")"
ok "predict" exits 0 "$sesame" predict "$tmp/whole/choose" "$tmp/choose.csv"
ok "a pipeline" exits 0 "$sesame" text-classification -m "$tmp/whole/classify" "the film was good ."
ok "its label" out_has pos
ok "command line in run.json" grep -q -e '--train .*tags --eval .* --task tag --train' "$tmp/whole/run.json"
ok "a complete run" exits 0 "$sesame" finetune -o "$tmp/whole" --resume
ok "nothing to do" err_has 'nothing to resume'

# ---- resumed, from the options in run.json: the same bits ----

ok "with checkpoints" five long --steps 20 --eval-every 5 --save-every 5 --keep 9
cp -r "$tmp/long" "$tmp/part"
rm -r "$tmp/part/checkpoint-15" "$tmp/part/checkpoint-20" "$tmp/part/tasks.json" "$tmp/part/tag" "$tmp/part/trainer_state.json"
ok "resumed" exits 0 "$sesame" finetune -o "$tmp/part" --resume
ok "from its checkpoint" err_has 'resuming from .*checkpoint-10: update 10 of 20'
for task in classify tag answer choose regress; do
    ok "the same weights: $task" cmp "$tmp/long/$task/model.safetensors" "$tmp/part/$task/model.safetensors"
done
ok "the same results" test "$(score eval_mean "$tmp/long/all_results.json")" = "$(score eval_mean "$tmp/part/all_results.json")"
ok "another alpha does not resume" exits 3 "$sesame" finetune -o "$tmp/part" --resume --mix-alpha 0.5
ok "message" err_has 'mix_alpha'

# ---- equal names, frozen layers, seeds ----

# shellcheck disable=SC2086
ok "two of a kind" exits 0 "$sesame" finetune $small --steps 2 --train "$tmp/train.tsv" --task classify --train "$tmp/dev.tsv" --task classify -o "$tmp/twice"
ok "numbered" sh -c "test -e '$tmp/twice/classify/config.json' && test -e '$tmp/twice/classify-2/config.json'"
# shellcheck disable=SC2086
ok "other labels for each head" exits 0 "$sesame" finetune $small --steps 2 --train "$tmp/train.tsv" --task classify --train "$tmp/dev.tsv" --task classify \
    --labels 'pos|neg' -o "$tmp/labels"
ok "in their order" sh -c "grep -A1 id2label '$tmp/labels/classify/config.json' | grep -q neg && grep -A1 id2label '$tmp/labels/classify-2/config.json' | grep -q pos"
# shellcheck disable=SC2086
ok "frozen" exits 0 "$sesame" finetune $small --steps 4 --freeze all --train "$tmp/train.tsv" --task classify --train "$tmp/tags" --task tag -o "$tmp/frozen"
# shellcheck disable=SC2086
ok "learning rate 0" exits 0 "$sesame" finetune $small --steps 1 --lr 0 --train "$tmp/train.tsv" --task classify --train "$tmp/tags" --task tag -o "$tmp/still"
for d in frozen still; do
    ok "features of $d" exits 0 "$sesame" features -m "$tmp/$d/tag" "the film was good ." --json
    cp "$tmp/out" "$tmp/$d.features"
done
ok "the encoder is unchanged" cmp "$tmp/frozen.features" "$tmp/still.features"

# shellcheck disable=SC2086
ok "a search" exits 0 "$sesame" finetune $small --steps 2 --seeds 2 --grid lr=1e-3,3e-3 --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --task classify \
    --train "$tmp/tags" --eval "$tmp/tags" --task tag -o "$tmp/search"
ok "a table of the mean" out_has 'lr=3e-3'
ok "a folder per task and run" test -e "$tmp/search/lr=1e-3,seed=43/tag/config.json"

# ---- bad input ----

bad() # what, exit code, message, options
{
    name=$1 code=$2 message=$3
    shift 3
    # shellcheck disable=SC2086
    ok "$name" exits "$code" "$sesame" finetune $small -o "$tmp/bad" "$@"
    ok "$name: message" err_has "$message"
    ok "$name: leaves nothing" test ! -e "$tmp/bad/tasks.json"
}
two="--train $tmp/train.tsv --task classify --train $tmp/tags --task tag"
# shellcheck disable=SC2086
{
    bad "a task without data" 2 '--train FILE is required' --task classify
    bad "tasks before their data" 2 '--task is given twice for one --train; the options of a --train follow it' \
        --task classify --train "$tmp/train.tsv" --task tag --train "$tmp/tags"
    bad "no task of the second" 2 'data set 2 (.*tags) has no task: set the option task after its train' \
        --train "$tmp/train.tsv" --task classify --train "$tmp/tags"
    bad "twice in the second" 2 '--task is given twice for one --train' $two --task answer
    bad "alpha" 2 '--mix-alpha' $two --mix-alpha 1.5
    bad "alpha of one data set" 2 'mix-alpha mixes several data sets: repeat train' --train "$tmp/train.tsv" --task classify --mix-alpha 0.5
    bad "one evaluation of two" 2 'set an evaluation file for each data set, or for none' $two --eval "$tmp/tags"
    bad "a teacher" 2 'leave out a teacher' $two --teacher "$tmp/whole/classify"
    ok "an adapter" exits 2 "$sesame" finetune --model "$tmp/whole/classify" --adapter bitfit $two -o "$tmp/bad"
    ok "an adapter: message" err_has 'leave out an adapter'
    bad "label smoothing" 2 'leave out label smoothing' $two --label-smoothing 0.1
    bad "another metric" 2 'compared by the mean of their main scores' $two --metric accuracy
    awk -F '\t' 'BEGIN { OFS = FS } { print $0, NR == 1 ? "other" : $1 }' "$tmp/train.tsv" >"$tmp/pairs.tsv"
    bad "a task of another kind" 3 'cannot be trained together' $two --train "$tmp/pairs.tsv" --task embed --loss softmax --text sentence --pair other
    bad "a missing file" 3 'data set 2: .*nothere' --train "$tmp/train.tsv" --task classify --train "$tmp/nothere" --task tag
    bad "an unknown task" 2 'data set 2: ' --train "$tmp/train.tsv" --task classify --train "$tmp/tags" --task nothing
    bad "a bad value" 2 '--tag-column of data set 2' $two --tag-column x
    bad "a classifier" 2 'give --train once' $two --method nb
}

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
