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
ok "column files" exits 0 "$sesame" probe tag -m $m "$tmp/y.conll" "$tmp/y.conll" --tags 2,3 --layers 1
ok "spans" exits 0 "$sesame" probe tag -m $m "$tmp/y.conll" "$tmp/y.conll" --edge --layers 1 --json
ok "one example for each entity" out_has '"train": *40'

awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 80; i++) printf "%s\t%s\n", i % 2 ? "a b" : "d e c", i % 2 }' >"$tmp/x.tsv"
ok "texts" exits 0 "$sesame" probe text -m $m "$tmp/x.tsv" --layers 1 --no-random
ok "of two labels" out_has '2 classes'

# Static word vectors as a baseline. They tell the tags of x.conllu apart, and "b" only in lower case.
printf '4 4\na 1 0 0 0\nB 0 9 0 0\nc 0 1 0 0\nd 0 1 0 0\n' >"$tmp/x.vec"
static() { sed -n "s/.*\"static_vectors\": *{\"accuracy\": *\([0-9.]*\).*/\1/p" "$tmp/out"; }
ok "static vectors" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" "$tmp/x.conllu" --layers 1 --no-random --vectors "$tmp/x.vec" --json
ok "their accuracy: b and e are unknown" [ "$(static | cut -c 1-6)" = 0.8333 ]
ok "words without a vector" out_has '"words": *720, *"words_without_vector": *300'
cp "$tmp/out" "$tmp/one"
ok "static vectors on one thread" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" "$tmp/x.conllu" --layers 1 --no-random --vectors "$tmp/x.vec" --json --threads 1
ok "the same numbers" cmp "$tmp/one" "$tmp/out"
sed 's/^B/b/' "$tmp/x.vec" >"$tmp/y.vec"
ok "static vectors of texts" exits 0 "$sesame" probe text -m $m "$tmp/x.tsv" --layers 1 --no-random --vectors "$tmp/y.vec" --json
ok "tell the labels apart" [ "$(static | cut -c 1)" = 1 ]
ok "a row of the table" exits 0 "$sesame" probe arc -m $m "$tmp/x.conllu" --layers 1 --no-random --vectors "$tmp/y.vec"
ok "of arcs" out_has '^static vectors  *[0-9]'
ok "no vectors" exits 3 "$sesame" probe tag -m $m "$tmp/x.conllu" --vectors "$tmp/x.tsv"
ok "are named" err_has '--vectors .*x.tsv'

# Baselines of every form.
ok "edge: baselines" exits 0 "$sesame" probe arc -m $m "$tmp/x.conllu" --edge --layers 1 --mdl --json
ok "a control task" out_has '"selectivity"'
ok "random weights" out_has '"random_weights"'
ok "layer 0, although not chosen" out_has '"baseline": *true'
ok "majority by word" out_has '"majority_by_word"'
ok "a codelength" out_has '"codelength"'
ok "and without smoothing" out_has '"codelength_unsmoothed"'
ok "its formula" out_has '"codelength_smoothing": *"(n p + 1) / (n + K)"'
cp "$tmp/out" "$tmp/one"
ok "edge: three threads" exits 0 "$sesame" probe arc -m $m "$tmp/x.conllu" --edge --layers 1 --mdl --json --threads 3
ok "edge: the same result" cmp "$tmp/one" "$tmp/out"
ok "mix: baselines" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" --mix --layers 1 --mdl
ok "in one table" out_has 'layers up to.*accuracy.*control.*selectivity.*random.*weight.*kbits.*unsmoothed'
ok "tree: layer 0" exits 0 "$sesame" probe tree -m $m "$tmp/x.conllu" --layers 1 --tree-epochs 1 --no-random
ok "is a baseline" out_has '^0 (baseline)'

# Encoder-decoders, compressed files, long texts.
differ() { ! cmp -s "$1" "$2"; }
bart=tests/fixtures/attention/bart
sed 's/\ta\t/\tdog\t/; s/\tb\t/\tcat\t/; s/\tc\t/\tsaw\t/; s/\td\t/\tthe\t/' "$tmp/x.conllu" >"$tmp/words.conllu"
for kind in tag arc tree; do
    [ $kind = tree ] && few="--tree-epochs 1" || few=
    ok "$kind: encoder of an encoder-decoder" exits 0 "$sesame" probe $kind -m $bart "$tmp/words.conllu" $few --json
    cp "$tmp/out" "$tmp/one"
    ok "$kind: its decoder" exits 0 "$sesame" probe $kind -m $bart "$tmp/words.conllu" $few --layers 0,-1 --decoder --json
    ok "$kind: other states" differ "$tmp/one" "$tmp/out"
done
gzip -c "$tmp/x.conllu" >"$tmp/x.conllu.gz"
ok "tag: a compressed file" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu.gz" --layers 1 --no-random
awk 'BEGIN { for (s = 0; s < 20; s++) { for (i = 1; i <= 90; i++)
    printf "%d\t%s\t_\t%s\t_\t_\t%d\tdep\t_\t_\n", i, (i + s) % 3 ? "a" : "b", (i + s) % 3 ? "X" : "Y", i - 1; print "" } }' >"$tmp/long.conllu"
ok "tag: sentences longer than the model" exits 0 "$sesame" probe tag -m $bart "$tmp/long.conllu" --layers 1 --no-random
ok "are counted" out_has '20 texts are longer than the model.s 32 tokens'
awk 'BEGIN { for (s = 0; s < 30; s++) { for (i = 1; i <= (s == 3 ? 701 : 3 + s % 4); i++)
    printf "%d\t%s\t_\t%s\t_\t_\t%d\tdep\t_\t_\n", i, (i + s) % 3 ? "a" : "b", (i + s) % 3 ? "X" : "Y", i - 1; print "" } }' >"$tmp/huge.conllu"
ok "tree: a sentence of 701 words" exits 0 "$sesame" probe tree -m $m "$tmp/huge.conllu" --layers 1 --tree-epochs 1 --no-random
ok "tree: is counted" out_has 'with more than 700 words'
ok "text: a sentence of 701 words" exits 0 "$sesame" probe text -m $m "$tmp/huge.conllu" --task length --layers 1 --no-random
ok "text: is counted" out_has 'with more than 700 words'
ok "heads: a sentence of 701 words" exits 0 "$sesame" heads -m $m "$tmp/huge.conllu"
ok "heads: is counted" out_has 'with more than 700 words'

# Ctrl-C: one line, the signal's status, no files.
mkdir "$tmp/temporary" "$tmp/results"
awk 'BEGIN { for (s = 0; s < 20000; s++) { for (i = 1; i <= 20; i++)
    printf "%d\t%s\t_\t%s\t_\t_\t%d\tdep\t_\t_\n", i, (i + s) % 3 ? "a" : "b", (i * s) % 2 ? "X" : "Y", i - 1; print "" } }' >"$tmp/big.conllu"
TMPDIR="$tmp/temporary" timeout -s INT --preserve-status 2 "$sesame" probe tag "$tmp/big.conllu" --html "$tmp/results/a.html" >"$tmp/out" 2>"$tmp/err"
code=$?
ok "Ctrl-C ends a probe" [ $code -eq 130 ]
ok "with a message" err_has 'sesame: interrupted, the analysis has no result'
ok "and no files" [ -z "$(ls -A "$tmp/temporary" "$tmp/results" | grep -v ':$')" ]

# Options that would be ignored are refused.
refused() { # OPTIONS...: the message names the first option
    option=$1
    shift
    ok "$option $*" exits 2 "$sesame" probe "$@"
    ok "$option is named" err_has "^sesame probe: $option has no effect\|^sesame: $option has no effect"
}
refused --rank tag -m $m "$tmp/x.conllu" --rank 3
refused --tags arc -m $m "$tmp/x.conllu" --tags upos
refused --mdl tree -m $m "$tmp/x.conllu" --mdl
refused --edge tree -m $m "$tmp/x.conllu" --edge
refused --task text -m $m "$tmp/x.tsv" --task length
refused --label-column text -m $m "$tmp/x.conllu" --label 2
refused --word-pieces text -m $m "$tmp/x.tsv" --word-pieces first
refused --skip-invalid tag -m $m "$tmp/y.conll" --skip-invalid
refused --mlp tag -m $m "$tmp/x.conllu" --edge --mlp 8
refused --vectors tag -m $m "$tmp/x.conllu" --mix --vectors "$tmp/x.vec"
refused --vectors tree -m $m "$tmp/x.conllu" --vectors "$tmp/x.vec"
refused --mlp tag -m $m "$tmp/x.conllu" --mix --mlp 8
refused --regularization tag -m $m "$tmp/x.conllu" --mlp 8 -C 1
refused --tolerance tag -m $m "$tmp/x.conllu" --mix --tolerance 0.1
refused --random-all tag -m $m "$tmp/x.conllu" --no-random --random-all

# Refused.
ok "a kind" exits 2 "$sesame" probe word -m $m "$tmp/x.conllu"
ok "layers" exits 2 "$sesame" probe tag -m $m "$tmp/x.conllu" --layers 9
ok "a column" exits 2 "$sesame" probe tag -m $m "$tmp/x.conllu" --tags lemma
ok "C" exits 2 "$sesame" probe tag -m $m "$tmp/x.conllu" -C 1,0
sed 's/^3\te\(.*\)\t2\tacl/3\te\1\t9\tacl/' "$tmp/x.conllu" >"$tmp/bad.conllu"
ok "an invalid head" exits 3 "$sesame" probe tag -m $m "$tmp/bad.conllu"
ok "its line" err_has 'line 4'
: >"$tmp/empty.conllu"
ok "an empty file" exits 3 "$sesame" probe tag -m $m "$tmp/empty.conllu"
ok "one class" exits 3 "$sesame" probe tag -m $m "$tmp/x.conllu" --tags xpos
sed 's/NOUN/DET/; s/VERB/DET/' "$tmp/x.conllu" >"$tmp/same.conllu"
ok "all labels are the same" exits 3 "$sesame" probe tag -m $m "$tmp/same.conllu"
ok "the label" err_has 'have the label "DET"'
sed 's/NOUN/X/' "$tmp/x.conllu" >"$tmp/unseen.conllu"
ok "labels unseen in training" exits 0 "$sesame" probe tag -m $m "$tmp/x.conllu" "$tmp/x.conllu" "$tmp/unseen.conllu" --layers 1
ok "are counted" out_has '60 of 240 test labels do not occur'
ok "no decoder" exits 3 "$sesame" probe tag -m $m "$tmp/x.conllu" --decoder

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
