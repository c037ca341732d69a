#!/bin/sh
# sesame neurons: ranking by tag and by label, erasure, bad input.
# Usage: test_neurons.sh BUILD_DIR, from the source folder.
. tests/counted.sh
neurons() { "$sesame" neurons "$@" >"$tmp/out" 2>"$tmp/err"; }
err_has() { grep -q -e "$1" "$tmp/err"; }
number() { grep -o "\"$1\": [-0-9.e]*" "$tmp/out" | head -1 | cut -d' ' -f2; }
awk 'BEGIN { split("dogs run|cats sleep|birds fly|men work|children play|horses jump", s, "|")
    for (i = 1; i <= 6; i++) { split(s[i], w, " ")
        printf "1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2\t%s\t_\tNOUN\tNNS\t_\t3\tnsubj\t_\t_\n", w[1]
        printf "3\t%s\t_\tVERB\tVBP\t_\t0\troot\t_\t_\n4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_\n\n", w[2] } }' >"$tmp/s.conllu"
neurons "$tmp/s.conllu" --positive NOUN --json --threads 1 && cp "$tmp/out" "$tmp/one"
that "24 words, 6 nouns" 'grep -q "\"label\": \"NOUN\", \"samples\": 24, \"positive\": 6" "$tmp/one"'
that "valid JSON" '"$build/json_valid" <"$tmp/one" >/dev/null'
that "a neuron of nouns" 'awk -v a="$(number auc)" "BEGIN { exit !(a > 0.95 || a < 0.05) }"'
neurons "$tmp/s.conllu" --positive NOUN --json --threads 2
that "the same bits on two threads" 'cmp -s "$tmp/one" "$tmp/out"'
neurons "$tmp/s.conllu" --label deprel --positive root --html "$tmp/n.html"
that "another column" 'grep -q "tell \"root\" from other samples" "$tmp/out" && [ -s "$tmp/n.html" ]'
neurons "$tmp/s.conllu" --positive ADJ
that "a label that no word has" '[ $? -eq 3 ] && err_has "0 of 24 samples have the label \"ADJ\"; there are DET, NOUN, VERB, PUNCT"'
awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 12; i++) print (i % 2 ? "A wonderful film ." : "A terrible film .") "\t" i % 2 }' >"$tmp/t.tsv"
neurons -m sesame-sentiment "$tmp/t.tsv" --label label --positive 1 --erase 5 --trials 2 --json
that "texts with labels" 'grep -q "\"label\": \"1\", \"samples\": 12, \"positive\": 6" "$tmp/out"'
that "accuracy of the whole model" '[ "$(number accuracy)" = 1.0 ]'
that "scores without neurons" 'grep -q "\"accuracy_without_top\": [0-9.]*, \"accuracy_without_random\": [0-9.]*" "$tmp/out"'
neurons -m sesame-sentiment "$tmp/t.tsv" --label label --erase 100000
that "more neurons than there are" '[ $? -eq 2 ] && err_has "the model has [0-9]* neurons"'
neurons "$tmp/t.tsv" --label label --erase 5
that "a model that does not classify" '[ $? -ne 0 ] && err_has "does not classify texts"'
neurons "$tmp/t.tsv"
that "a table without a label column" '[ $? -eq 2 ] && err_has "the texts have no labels"'
neurons "$tmp/s.conllu" --positive NOUN --rank-by l1 -C 1 --json && cp "$tmp/out" "$tmp/one"
that "an L1 probe" 'grep -q "\"converged\": true" "$tmp/out" && awk -v a="$(number accuracy)" -v n="$(number nonzero)" "BEGIN { exit !(a == 1 && n > 0 && n < 50) }"'
that "weights, largest first" 'grep -o "\"weight\": [-0-9.e]*" "$tmp/out" | cut -d" " -f2 | tr -d - | sort -c -g -r'
neurons "$tmp/s.conllu" --positive NOUN --rank-by l1 -C 1 --json --threads 2
that "the same weights on two threads" 'cmp -s "$tmp/one" "$tmp/out"'
bart=tests/fixtures/attention/bart
neurons -m $bart "$tmp/s.conllu" --positive NOUN --json
that "the encoder of an encoder-decoder" 'grep -q "\"part\": \"encoder\"" "$tmp/out"'
cp "$tmp/out" "$tmp/one"
neurons -m $bart "$tmp/s.conllu" --positive NOUN --decoder --json
that "its decoder" 'grep -q "\"part\": \"decoder\"" "$tmp/out" && ! cmp -s "$tmp/one" "$tmp/out"'
awk 'BEGIN { print "text\ttarget\tlabel"; for (i = 0; i < 8; i++) print "the cat\t" (i % 2 ? "a dog" : "the mat") "\t" i % 2 }' >"$tmp/pairs.tsv"
neurons -m $bart "$tmp/pairs.tsv" --label label --positive 1 --decoder --target-column target --json
that "targets from a column" 'awk -v a="$(number auc)" "BEGIN { exit !(a == 1 || a == 0) }"'
neurons "$tmp/s.conllu" --decoder
that "no decoder" '[ $? -ne 0 ] && err_has "has no decoder with an input of its own"'
neurons -m $bart "$tmp/pairs.tsv" --label label --target-column target
that "a target without --decoder" '[ $? -eq 2 ] && err_has "needs --decoder"'
neurons -m sesame-gpt "$tmp/s.conllu" --positive VERB
that "a causal model" '[ -s "$tmp/out" ]'
counted
