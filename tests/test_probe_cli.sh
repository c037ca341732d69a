#!/bin/sh
# sesame probe tag, text and arc: files, splits, outputs and errors.
# Usage: test_probe_cli.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh
m=tests/pipelines/bert-mask

# Sentences of four words with tags by word, and trees with the second word as root.
awk 'BEGIN { for (i = 0; i < 60; i++) { a = i % 3 ? "a" : "b"; c = i % 2 ? "c" : "d"
    printf "# sentence %d\n1\t%s\t_\tDET\t_\tNumber=%s\t2\tdet\t_\t_\n", i, a, i % 3 ? "Sing" : "Plur"
    printf "2\t%s\t_\tNOUN\t_\t_\t0\troot\t_\t_\n3\te\t_\tVERB\t_\t_\t2\tacl\t_\t_\n4\t%s\t_\tDET\t_\t_\t3\tobj\t_\t_\n\n", c, a } }' >"$tmp/x.conllu"
ok "tags" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" --columns upos,feats.Number --mdl --threads 2
ok "baselines" out_has 'majority by word'
ok "two tasks" out_has 'feats.Number: accuracy'
ok "tasks by layers" out_has 'Accuracy by task and layer'
ok "JSON" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" "$tmp/x.conllu" --json --mdl
ok "is valid" "$build/json_valid" <"$tmp/out"
ok "scores" out_has '"selectivity"'
ok "codelength" out_has '"codelength"'
ok "random weights" out_has '"random_weights"'
cp "$tmp/out" "$tmp/one"
ok "another number of threads" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" "$tmp/x.conllu" --json --mdl --threads 1
ok "the same result" cmp "$tmp/one" "$tmp/out"
ok "MLP" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" --mlp 8 --layers 1
ok "edge" exits 0 "$sesame" probe arc -m $m "$tmp/x.conllu" --edge --layers 1
ok "mix" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" --mix
ok "centre of gravity" out_has 'centre of gravity'
ok "arcs" exits 0 "$sesame" probe arc -m $m "$tmp/x.conllu" --no-random --html "$tmp/arc.html" --svg "$tmp/arc.svg"
ok "their relations" out_has 'relation: accuracy'
ok "page" grep -q '<html' "$tmp/arc.html"

printf 'a DT B-NP\nb NN I-NP\nc VB O\n\n%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 >"$tmp/x.conll"
sed 's/B-NP/B-PP/; s/I-NP/I-PP/; s/^a/d/' "$tmp/x.conll" >>"$tmp/x.conll.2"
cat "$tmp/x.conll" "$tmp/x.conll.2" >"$tmp/y.conll"
ok "column files" exits 0 "$sesame" probe tag -m $m "$tmp/y.conll" "$tmp/y.conll" --columns 2,3 --layers 1
ok "spans" exits 0 "$sesame" probe tag -m $m "$tmp/y.conll" "$tmp/y.conll" --edge --layers 1 --json
ok "one example for each entity" out_has '"train": *40'

awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 80; i++) printf "%s\t%s\n", i % 2 ? "a b" : "d e c", i % 2 }' >"$tmp/x.tsv"
ok "texts" exits 0 "$sesame" probe text -m $m "$tmp/x.tsv" --layers 1 --no-random
ok "of two labels" out_has '2 classes'

# Refused.
ok "a kind" exits 2 "$sesame" probe word -m $m "$tmp/x.conllu"
ok "layers" exits 2 "$sesame" probe tag -m $m "$tmp/x.conllu" --layers 9
ok "a column" exits 2 "$sesame" probe tag -m $m "$tmp/x.conllu" --columns lemma
ok "C" exits 2 "$sesame" probe tag -m $m "$tmp/x.conllu" -C 1,0
sed 's/^3\te\(.*\)\t2\tacl/3\te\1\t9\tacl/' "$tmp/x.conllu" >"$tmp/bad.conllu"
ok "an invalid head" exits 3 "$sesame" probe tag -m $m "$tmp/bad.conllu"
ok "its line" err_has 'line 4'
: >"$tmp/empty.conllu"
ok "an empty file" exits 3 "$sesame" probe tag -m $m "$tmp/empty.conllu"
ok "one class" exits 3 "$sesame" probe tag -m $m "$tmp/x.conllu" --columns xpos
sed 's/NOUN/DET/; s/VERB/DET/' "$tmp/x.conllu" >"$tmp/same.conllu"
ok "all labels are the same" exits 3 "$sesame" probe tag -m $m "$tmp/same.conllu"
ok "the label" err_has 'have the label "DET"'
sed 's/NOUN/X/' "$tmp/x.conllu" >"$tmp/unseen.conllu"
ok "labels unseen in training" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" "$tmp/x.conllu" "$tmp/unseen.conllu" --layers 1
ok "are counted" out_has '60 of 240 test labels do not occur'
ok "no decoder" exits 3 "$sesame" probe tag -m $m "$tmp/x.conllu" --decoder

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
