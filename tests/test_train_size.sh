#!/bin/sh
# finetune --train-size, --shots: number of examples, records, resume, refusals, every kind of task.
# Usage: test_train_size.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

tune() { out=$1; shift; "$sesame" finetune $small --task classify --train "$tmp/train.tsv" -o "$tmp/$out" "$@"; } # shellcheck disable=SC2086
sample() { sed -n 's/^| sample | \(.*\) |$/\1/p' "$tmp/$1/README.md"; }

ok "ten examples" exits 0 tune ten --train-size 10 --eval "$tmp/dev.tsv" --epochs 4
ok "are said" err_has ', 10 examples of'
ok "in the card" test "$(sample ten)" = '10 examples, drawn by the seed from 80'
ok "in the settings" grep -q '"train-size": 10' "$tmp/ten/run.json"
ok "both labels" grep -q '"1": "pos"' "$tmp/ten/config.json"
ok "again" exits 0 tune again --train-size 10 --eval "$tmp/dev.tsv" --epochs 4
ok "the same bits" cmp "$tmp/ten/model.safetensors" "$tmp/again/model.safetensors"
ok "another seed" exits 0 tune other --train-size 10 --eval "$tmp/dev.tsv" --epochs 4 --seed 43
ok "three of each class" exits 0 tune shots --shots 3 --epochs 1
ok "six" err_has ', 6 examples of'
ok "in the card" test "$(sample shots)" = '6 examples, drawn by the seed from 80; 3 of each class'
ok "all" exits 0 tune all --train-size all --epochs 1
ok "eighty" err_has ', 80 examples of'
ok "no sample" test -z "$(sample all)"

# A resumed run has the same sample.
ok "part of a run" exits 0 tune part --train-size 10 --steps 4 --schedule constant --warmup 0
ok "continued" exits 0 "$sesame" finetune -o "$tmp/part" --resume --steps 6
ok "whole" exits 0 tune whole --train-size 10 --steps 6 --schedule constant --warmup 0
ok "the same bits" cmp "$tmp/part/model.safetensors" "$tmp/whole/model.safetensors"
ok "another size" exits 3 "$sesame" finetune -o "$tmp/part" --resume --steps 8 --train-size 12
ok "is refused" err_has 'started with train_examples 10, not 12\|started with train_size 10, not 12'
ok "in other words" exits 3 "$sesame" finetune -o "$tmp/part" --resume --steps 8 --train-size 0 --shots 5
ok "refused, too" err_has 'started with'

# Methods.
ok "a method" exits 0 "$sesame" finetune --method nb --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --shots 2 -o "$tmp/nb"
ok "its card" test "$(sample nb)" = '4 examples, drawn by the seed from 80; 2 of each class'
ok "a grid of sizes" exits 0 tune grid --eval "$tmp/dev.tsv" --grid train-size=4,8 --seeds 2 --epochs 1
ok "four runs" test -s "$tmp/grid/train-size=4,seed=42/config.json" -a -s "$tmp/grid/train-size=8,seed=43/config.json"

# The last weights.
ok "last weights" exits 0 tune last --eval "$tmp/dev.tsv" --last-weights --train-size 20 --epochs 3
ok "no evaluation in training" test "$(grep -c 'accuracy' "$tmp/last/log.jsonl")" = 0
ok "with a score" grep -q '"eval_accuracy"' "$tmp/last/all_results.json"
ok "that selects nothing" test "$(grep -c 'selected the best' "$tmp/last/README.md")" = 0
ok "without evaluation" exits 0 tune blind --train-size 20 --epochs 3
ok "the same weights" cmp "$tmp/last/model.safetensors" "$tmp/blind/model.safetensors"
ok "complete" exits 0 "$sesame" finetune -o "$tmp/last" --resume
ok "not with patience" exits 2 tune bad --eval "$tmp/dev.tsv" --last-weights --patience 2

# Other tasks.
awk 'BEGIN { for (i = 0; i < 30; i++) printf "anna B-PER\nlives O\nin O\n%s %s\n\n", i % 3 ? "paris" : "it", i % 3 ? "B-LOC" : "O" }' >"$tmp/tags.txt"
ok "tag" exits 0 "$sesame" finetune $small --task tag --train "$tmp/tags.txt" --train-size 7 --epochs 1 -o "$tmp/tag" # shellcheck disable=SC2086
ok "seven sentences" err_has ', 7 examples of'
ok "tag by type" exits 0 "$sesame" finetune $small --task tag --train "$tmp/tags.txt" --shots 5 --epochs 1 -o "$tmp/tag2" # shellcheck disable=SC2086
ok "too many of a type" exits 3 "$sesame" finetune $small --task tag --train "$tmp/tags.txt" --shots 21 --epochs 1 -o "$tmp/tag3" # shellcheck disable=SC2086
ok "named" err_has 'entity type "LOC" has 20 sentences'
awk 'BEGIN { print "sentence\tscore"; for (i = 0; i < 20; i++) printf "film %d\t%d\n", i, i % 5 }' >"$tmp/numbers.tsv"
ok "regress" exits 0 "$sesame" finetune $small --task regress --train "$tmp/numbers.tsv" --train-size 6 --epochs 1 -o "$tmp/numbers" # shellcheck disable=SC2086
ok "six numbers" err_has ', 6 examples of'
ok "no classes" exits 3 "$sesame" finetune $small --task regress --train "$tmp/numbers.tsv" --shots 2 --epochs 1 -o "$tmp/numbers2" # shellcheck disable=SC2086
ok "said" err_has 'regression have no classes; set train-size'

# Refusals.
ok "more than the file has" exits 3 tune bad --train-size 81
ok "its size" err_has 'train.tsv: train-size 81: the data have 80 examples'
ok "more than a class has" exits 3 tune bad --shots 41
ok "its name and size" err_has 'shots 41: class "neg" has 40 examples'
ok "both" exits 2 tune bad --shots 4 --train-size 4
ok "set one" err_has 'set one'
ok "one example" exits 3 tune bad --train-size 1
ok "nothing to learn" err_has 'nothing to learn'
ok "negative" exits 2 tune bad --train-size -3
ok "no number" exits 2 tune bad --shots few
ok "nothing was written" test ! -e "$tmp/bad"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
