#!/bin/sh
# finetune --teacher from outside: distillation into a small classifier; bad input.
# Usage: test_distill.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

sed 's/"num_hidden_layers": 2/"num_hidden_layers": 4/' "$tmp/config.json" >"$tmp/large.json"
large="--config $tmp/large.json --tokenizer $tmp/vocab.txt --threads 1 --lr 3e-3 --batch-size 8"
# shellcheck disable=SC2086  # several options
ok "a teacher" exits 0 "$sesame" finetune $large --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --epochs 4 -o "$tmp/teacher"
ok "that has learned" above "$(score eval_accuracy "$tmp/teacher/all_results.json")" 0.95

# Labels are worth nothing: what the student knows, it has from the teacher.
awk 'BEGIN { FS = OFS = "\t" } NR > 1 { $2 = NR % 3 ? "pos" : "neg" } { print }' "$tmp/train.tsv" >"$tmp/wrong.tsv"
teach="--teacher $tmp/teacher --hard-weight 0 --soft-weight 1"
# shellcheck disable=SC2086
ok "a student" exits 0 "$sesame" finetune $small --task classify --train "$tmp/wrong.tsv" --eval "$tmp/dev.tsv" $teach \
    --temperature 2 --epochs 12 -o "$tmp/student"
ok "learns from it" above "$(score eval_accuracy "$tmp/student/all_results.json")" 0.95
# shellcheck disable=SC2086
ok "begun with its layers" exits 0 "$sesame" finetune $small --task classify --train "$tmp/wrong.tsv" \
    --eval "$tmp/dev.tsv" $teach --from-teacher --cosine-weight 1 --hidden-weight 1 --attention-weight 1 --epochs 2 \
    -o "$tmp/begun"
ok "learns at once" above "$(score eval_accuracy "$tmp/begun/all_results.json")" 0.95
ok "has two layers" grep -q '"num_hidden_layers": 2' "$tmp/begun/config.json"

sed 's/"hidden_size": 32/"hidden_size": 16/' "$tmp/config.json" >"$tmp/narrow.json"
narrow="--config $tmp/narrow.json --tokenizer $tmp/vocab.txt --threads 1 --lr 3e-3 --batch-size 8"
# shellcheck disable=SC2086
ok "a narrow one" exits 0 "$sesame" finetune $narrow --task classify --train "$tmp/wrong.tsv" --eval "$tmp/dev.tsv" $teach \
    --lr 1e-2 --hidden-weight 1 --epochs 10 -o "$tmp/narrow"
ok "learns too" above "$(score eval_accuracy "$tmp/narrow/all_results.json")" 0.95

# Several teachers: the mean of their probabilities.
# shellcheck disable=SC2086
ok "another teacher" exits 0 "$sesame" finetune $large --task classify --train "$tmp/train.tsv" --epochs 4 --seed 9 -o "$tmp/second"
both="--teacher $tmp/teacher --teacher $tmp/second --hard-weight 0 --soft-weight 1"
# shellcheck disable=SC2086
ok "a student of two" exits 0 "$sesame" finetune $small --task classify --train "$tmp/wrong.tsv" --eval "$tmp/dev.tsv" $both \
    --epochs 12 -o "$tmp/of-two"
ok "learns from both" above "$(score eval_accuracy "$tmp/of-two/all_results.json")" 0.95
ok "stores both" sh -c "tr -d '\n ' <'$tmp/of-two/run.json' | grep -q '\"teacher\":\[\"[^,]*/teacher\",\"[^,]*/second\"\]'"
ok "a complete run" exits 0 "$sesame" finetune -o "$tmp/of-two" --resume
# shellcheck disable=SC2086
ok "no mean of hidden states" exits 2 "$sesame" finetune $small --task classify --train "$tmp/wrong.tsv" $both --hidden-weight 1 -o "$tmp/x"
ok "message" err_has 'several teachers have a mean of probabilities only'

# A resumed run ends with the same weights.
# shellcheck disable=SC2086
ok "stopped" exits 0 "$sesame" finetune $small --task classify --train "$tmp/wrong.tsv" $teach --from-teacher --steps 6 \
    --save-every 3 --keep 9 -o "$tmp/whole"
cp -r "$tmp/whole" "$tmp/part" && rm -r "$tmp/part/checkpoint-6"
# shellcheck disable=SC2086
ok "resumed" exits 0 "$sesame" finetune $small --task classify --train "$tmp/wrong.tsv" $teach --from-teacher --steps 6 \
    --save-every 3 --keep 9 -o "$tmp/part" --resume
ok "the same weights" cmp -s "$tmp/whole/model.safetensors" "$tmp/part/model.safetensors"

# What does not fit.
mkdir "$tmp/other" "$tmp/same"
{ cat "$tmp/vocab.txt"; echo more; } >"$tmp/other/vocab.txt"
other="--config $tmp/config.json --tokenizer $tmp/other/vocab.txt --threads 1"
# shellcheck disable=SC2086
ok "other vocabularies" exits 3 "$sesame" finetune $other --task classify --train "$tmp/train.tsv" $teach -o "$tmp/x"
ok "both sizes" err_has "the student's vocabulary has 29 tokens, the teacher's 28"
sed 's/^good$/fine/' "$tmp/vocab.txt" >"$tmp/same/vocab.txt"
same="--config $tmp/config.json --tokenizer $tmp/same/vocab.txt --threads 1"
# shellcheck disable=SC2086
ok "other tokens" exits 3 "$sesame" finetune $same --task classify --train "$tmp/train.tsv" $teach -o "$tmp/y"
ok "message" err_has "the teacher's tokenizer differs from the student's"
sed 's/pos$/yes/; s/neg$/no/' "$tmp/train.tsv" >"$tmp/yes.tsv"
# shellcheck disable=SC2086
ok "other labels" exits 3 "$sesame" finetune $small --task classify --train "$tmp/yes.tsv" $teach -o "$tmp/z"
ok "names both" err_has 'label 0 is "no" in the student, "neg" in the teacher'
# shellcheck disable=SC2086
ok "a teacher of yes" exits 0 "$sesame" finetune $small --task classify --train "$tmp/yes.tsv" --steps 2 -o "$tmp/yes"
# shellcheck disable=SC2086
ok "other labels of the second" exits 3 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" $teach --teacher "$tmp/yes" -o "$tmp/z"
ok "names the folder" err_has 'yes: label 0 is "neg" in the student, "no" in the teacher'
printf 'good A\nfilm B\n\nbad A\nfilm B\n' >"$tmp/tags"
# shellcheck disable=SC2086
ok "another task" exits 3 "$sesame" finetune $small --task tag --train "$tmp/tags" $teach -o "$tmp/v"
ok "names both" err_has "the teacher is a BertForSequenceClassification, the student a BertForTokenClassification"
# shellcheck disable=SC2086
ok "no teacher" exits 2 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --from-teacher -o "$tmp/w"
# shellcheck disable=SC2086
ok "smoothing too" exits 2 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" $teach --label-smoothing 0.1 \
    -o "$tmp/u"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
