#!/bin/sh
# Plausible wrong input of commands that train: evaluation data that are training data, files that fail after hours,
# tables that are read as text, settings without effect.
# Usage: test_wrong_inputs.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# 40 training texts, 20 others; `part` has 5 of the training texts.
awk 'BEGIN { for (i = 0; i < 60; i++) printf "the film %d was %s .\t%s\n", i, i % 2 ? "good" : "bad", i % 2 ? "pos" : "neg" }' >"$tmp/r"
table() { { printf 'sentence\tlabel\n'; cat; } >"$tmp/$1"; }
head -40 "$tmp/r" | table train.tsv
tail -20 "$tmp/r" | table new.tsv
tail -25 "$tmp/r" | table part.tsv
sed 's/pos$/great/' "$tmp/new.tsv" >"$tmp/labels.tsv" # a label that the training data lack
# shellcheck disable=SC2086
tune() { "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --overwrite "$@"; }
quick() { tune --steps 1 "$@"; }

# ---- evaluation data that are training data ----

all='train.tsv: 40 of 40 examples are also in the training data: scores on them say nothing about new texts'
some='part.tsv: 5 of 25 examples are also in the training data'
ok "finetune" exits 0 quick --eval "$tmp/train.tsv" -o "$tmp/model"
ok "tells" err_has "$all"
ok "in the results" test "$(score eval_samples_in_train "$tmp/model/all_results.json")" = 40
ok "and in the card" grep -q 'On train.tsv, 40 examples, of which 40 are training examples' "$tmp/model/README.md"
ok "a part" exits 0 quick --eval "$tmp/part.tsv" -o "$tmp/f"
ok "is counted" err_has "$some"
ok "new texts" exits 0 quick --eval "$tmp/new.tsv" -o "$tmp/f"
ok "say nothing" sh -c "! grep 'training data' '$tmp/err'"
ok "nor in the results" sh -c "! grep in_train '$tmp/f/all_results.json'"
ok "the examples that are drawn" exits 0 quick --eval "$tmp/train.tsv" --train-size 10 -o "$tmp/f"
ok "are compared" err_has 'train.tsv: 10 of 40 examples'
ok "a classifier" exits 0 "$sesame" finetune --method nb --task classify --train "$tmp/train.tsv" --eval "$tmp/part.tsv" -o "$tmp/nb"
ok "tells" err_has "$some"
ok "two tasks" exits 0 quick --eval "$tmp/new.tsv" --train "$tmp/new.tsv" --task classify --eval "$tmp/part.tsv" -o "$tmp/two"
ok "each is compared with its own" err_has 'part.tsv: 20 of 25 examples'
printf 'bob O\nlives O\n\nanna B-PER\nin O\n' >"$tmp/tags"
# shellcheck disable=SC2086
ok "tags" exits 0 "$sesame" finetune $small --task tag --train "$tmp/tags" --eval "$tmp/tags" --steps 1 -o "$tmp/t"
ok "tell" err_has 'tags: 2 of 2 examples are also'

curve() { "$sesame" curve --task classify --train "$tmp/train.tsv" --methods nb --sizes 8,all --seeds 2 --overwrite "$@"; }
ok "curve" exits 0 curve --eval "$tmp/part.tsv" -o "$tmp/curve"
ok "tells before it runs" sh -c "head -1 '$tmp/err' | grep -q '$some'"
ok "and after it" out_has "$some"
ok "in its file" grep -q '"eval_examples_in_train": 5,' "$tmp/curve/curve.json"
ok "ladder" exits 0 "$sesame" ladder classify "$tmp/train.tsv" "$tmp/part.tsv" --only nb
ok "tells" err_has "$some"
ok "and notes it" out_has "$some"
sort -R --random-source="$tmp/r" "$tmp/r" "$tmp/r" | table twice.tsv
ok "a split of a file with each text twice" exits 0 "$sesame" ladder classify "$tmp/twice.tsv" --only nb
ok "tells" err_has 'twice.tsv: [0-9]* of 24 examples are also'
m=tests/pipelines/bert-mask
ok "probe" exits 0 "$sesame" probe text -m $m "$tmp/train.tsv" "$tmp/part.tsv" --layers 1 --no-random
ok "tells" out_has 'test: 5 of 25 examples are also in the training data'
ok "probe of new texts" exits 0 "$sesame" probe text -m $m "$tmp/train.tsv" "$tmp/new.tsv" --layers 1 --no-random --json
ok "does not" sh -c "! grep in_train '$tmp/out'"
awk 'BEGIN { for (i = 0; i < 20; i++) printf "1\ta%d\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n", i % 5 }' >"$tmp/x.conllu"
ok "probe of trees" exits 0 "$sesame" probe tree -m $m "$tmp/x.conllu" "$tmp/x.conllu" --layers 1 --no-random --tree-epochs 1
ok "tells" out_has 'test: 20 of 20 examples are also in the training data'
ok "compress" exits 0 "$sesame" compress "$tmp/model" --data "$tmp/train.tsv" --eval "$tmp/part.tsv" --methods int8 --texts 2 --rounds 1 -o "$tmp/z"
ok "tells" err_has "$some"
ok "and notes it" out_has "$some"
ok "in its file" grep -q '"eval_examples_in_train": 5,' "$tmp/z/compress.json"
recipe() { printf '{"runs": {"r": {"model": "%s"}}, "seeds": 1, "tasks": {"films": {"task": "classify", "train": "%s", "eval": "%s", "steps": 1}}}' \
    "$tmp/model" "$tmp/train.tsv" "$1" >"$tmp/recipe.json"; }
recipe "$tmp/part.tsv"
ok "ablate" exits 0 "$sesame" ablate "$tmp/recipe.json" -o "$tmp/study"
ok "tells before it runs" sh -c "head -1 '$tmp/err' | grep -q '^films: 5 of 25 examples are also'"
ok "and notes it" grep -q '^films: 5 of 25 examples are also' "$tmp/study/ablate.md"
ok "in its file" grep -q '"eval_examples_in_train": 5$' "$tmp/study/ablate.json"

# ---- all inputs are checked before anything is made ----

unknown='labels.tsv: line 3: unknown label "great"; expected one of: neg, pos'
none() { # description of the run, its folder
    ok "$1: nothing was made" test ! -e "$2"
}
ok "compress: labels of --eval" exits 3 "$sesame" compress "$tmp/model" --eval "$tmp/labels.tsv" --methods int8 -o "$tmp/z1"
ok "are named" err_has "$unknown"
none compress "$tmp/z1"
ok "compress: labels of --data" exits 3 "$sesame" compress "$tmp/model" --data "$tmp/labels.tsv" --eval "$tmp/new.tsv" --methods student -o "$tmp/z1"
ok "are named" err_has "$unknown"
none compress "$tmp/z1"
ok "compress of an encoder: labels of --eval" exits 3 "$sesame" compress $m --task classify --data "$tmp/train.tsv" --eval "$tmp/labels.tsv" --methods int8 -o "$tmp/z1"
ok "are named" err_has "$unknown"
none compress "$tmp/z1"
recipe "$tmp/labels.tsv"
ok "ablate: labels of a task" exits 3 "$sesame" ablate "$tmp/recipe.json" -o "$tmp/study1"
ok "are named" err_has "r: films, seed 1: .*$unknown"
none ablate "$tmp/study1"
ok "search: labels" exits 3 quick --eval "$tmp/labels.tsv" --grid lr=1e-3,1e-2 -o "$tmp/g"
ok "are named" err_has "$unknown"
ok "search: no run has begun" test ! -e "$tmp/g"
ok "search: a file among the values" exits 3 quick --eval "$tmp/new.tsv" --grid patterns="$tmp/none" -o "$tmp/g"
adapt() { "$sesame" finetune -m $m --task classify --train "$tmp/train.tsv" --adapt "$tmp/r" --adapt-steps 1 --steps 1 -o "$tmp/stages" "$@"; }
ok "adapt: labels" exits 3 adapt --eval "$tmp/labels.tsv"
ok "are named" err_has "$unknown"
ok "adapt: no file" exits 3 adapt --eval "$tmp/none.tsv"
ok "first: labels" exits 3 adapt --first "$tmp/train.tsv" --first-eval "$tmp/labels.tsv"
ok "are named" err_has "--first: .*$unknown"
ok "first: an option" exits 2 adapt --first "$tmp/train.tsv" --first-set lr=fast
none stages "$tmp/stages"
printf '{"patterns": ["{text_a} It was {mask} ."], "verbalizers": [{"neg": ["bad"], "pos": ["good"]}]}' >"$tmp/patterns"
cut -f1 "$tmp/r" >"$tmp/unlabeled.txt"
ok "pet: labels of --eval" exits 3 "$sesame" finetune --method pet -m $m --task classify --train "$tmp/train.tsv" --eval "$tmp/labels.tsv" \
    --patterns "$tmp/patterns" --unlabeled "$tmp/unlabeled.txt" -o "$tmp/pet"
ok "are named" err_has "$unknown"
none pet "$tmp/pet"
ok "curve: an option without effect" exits 2 curve --methods nb,majority --eval "$tmp/new.tsv" --set nb:lr=5 -o "$tmp/c1"
ok "is named" err_has 'nb: --lr has no effect on method nb; its settings: '
ok "curve: no vectors" exits 3 curve --methods nb,vectors --eval "$tmp/new.tsv" --vectors "$tmp/train.tsv" -o "$tmp/c1"
ok "are named" err_has 'vectors: --vectors: .*train.tsv: '
ok "curve: no model" exits 3 curve --methods nb,finetune --eval "$tmp/new.tsv" -m "$tmp/z" -o "$tmp/c1"
none curve "$tmp/c1"
ladder() { "$sesame" ladder classify "$tmp/train.tsv" "$tmp/new.tsv" -o "$tmp/l1" "$@"; }
ok "ladder: no vectors" exits 3 ladder --only nb,bilstm --vectors "$tmp/train.tsv"
ok "are named" err_has '--vectors: .*train.tsv: '
ok "ladder: no model" exits 3 ladder --only nb,finetuned -m "$tmp/z"
ok "ladder: another model" exits 3 ladder --only nb,ulmfit --lm $m
ok "is named" err_has '--lm .*a model of type "bert", expected "awd-lstm"'
none ladder "$tmp/l1"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
