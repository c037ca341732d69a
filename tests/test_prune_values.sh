#!/bin/sh
# sesame prune: importance of heads against |output . gradient| of transformers (gradients at the input of the output projections), targets
# of encoder-decoders, a pruned encoder-decoder that generates, truncated texts, bad input.
set -u
. tests/counted.sh

gives() { # exit code, arguments of sesame
    want=$1
    shift
    "$sesame" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame $*: exit $got, wanted $want"; fi
}
has() { if tr '\n' ' ' <"$tmp/out" | grep -qF -- "$1"; then pass; else fail "stdout lacks \"$1\""; fi; }
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\""; fi; }
# KEY VALUES: the member KEY of all heads, 1e-4 of the largest value
heads_have() {
    got=$(tr ',{}' '\n\n\n' <"$tmp/out" | sed -n "s/^ *\"$1\": *//p" | tr '\n' ' ')
    if awk -v got="$got" -v want="$2" 'BEGIN {
        n = split(got, g, " "); m = split(want, w, " "); bad = n != m
        for (i = 1; i <= m; i++) if (w[i] > top) top = w[i] + 0
        for (i = 1; i <= m; i++) { d = g[i] - w[i]; if (d < 0) d = -d; if (d > 1e-4 * top) bad = 1 }
        exit bad }'; then pass; else fail "$1: $got, wanted $2"; fi
}

awk 'BEGIN {
    printf "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
    printf "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"w2\",\"vocab\":{"
    for (i = 0; i < 71; i++) printf "%s\"w%d\":%d", i ? "," : "", i, i
    print "}}}" }' >"$tmp/tokenizer.json"
for model in bert-classify gpt2-classify t5-v1.0 bart-classify bert-masked-lm albert-classify; do
    cp -r "tests/golden/$model" "$tmp/$model" && cp "$tmp/tokenizer.json" "$tmp/$model"
done
printf 'text\tlabel\nw5 w9 w47 w30\tLABEL_0\nw17 w50 w12\tlabel_2\nw33 w8 w21 w60 w44\t1\n' >"$tmp/three.tsv"
printf 'text\tlabel\nw5 w9 w47 w30\t0\nw17 w50 w12\t1\n' >"$tmp/two.tsv"
printf 'text\ttarget\nw5 w9 w47 w30\tw4 w8 w52\nw17 w50 w12\tw20 w21\n' >"$tmp/targets.tsv"

gives 0 prune "$tmp/bert-classify" "$tmp/three.tsv" --heads --json
heads_have raw '0.08764599 0.4825371 0.3605589 0.1682673 0.2003667 0.04611797'
heads_have importance '0.143987 0.792722 0.592334 0.633338 0.754156 0.173583'
has '"accuracy": 0.333333333'
gives 0 prune "$tmp/gpt2-classify" "$tmp/two.tsv" --heads --json
heads_have raw '0.1297928 0.177222 0.006037232 0.09614682 0.2974707 0.4746493'
gives 0 prune "$tmp/t5-v1.0" "$tmp/targets.tsv" --heads --json
heads_have raw '0.1523496 0.210012 0.2126877 0.02993943 0.00372988 0.08725525 0.03749849 0.2129047 0.1319338 0.1344832 0.07408173 0.07197146 0.1490008 0.08720037 0.05605697 0.06093464 0.07731679 0.0840992'

# an encoder-decoder without heads in every part opens, and generates
gives 0 prune "$tmp/t5-v1.0" "$tmp/targets.tsv" --heads --write "$tmp/small" --fraction 0.5
has 'of the 5 target tokens'
that 'pruned heads' 'tr -d "\n " <"$tmp/small/config.json" | grep -q "\"pruned_heads\":{\"encoder\":{\".*},\"decoder\":{\".*},\"cross\":{\".*}}"'
gives 0 text2text-generation -m "$tmp/small" 'w5 w6' --max-new-tokens 5
gives 0 prune "$tmp/bart-classify" "$tmp/two.tsv" --heads --write "$tmp/bart-small" --fraction 0.3
gives 0 text-classification -m "$tmp/bart-small" 'w5 w6'
sed 's/"encoder": {/"middle": {/' "$tmp/small/config.json" >"$tmp/config.json" && cp "$tmp/config.json" "$tmp/small"
gives 3 text2text-generation -m "$tmp/small" 'w5 w6'
err_has '"middle", expected "encoder", "decoder" or "cross"'

# truncated texts are counted; bad input
printf 'text\tlabel\n%s\t0\nw17\t1\n' "$(seq 10 60 | sed 's/^/w/' | tr '\n' ' ')" >"$tmp/long.tsv"
gives 0 prune "$tmp/bert-classify" "$tmp/long.tsv" --heads
has '1 texts are longer than the model reads'
gives 3 prune "$tmp/bert-masked-lm" "$tmp/two.tsv" --heads
err_has 'is not a classifier'
gives 3 prune "$tmp/albert-classify" "$tmp/two.tsv" --heads --write "$tmp/none"
err_has 'its layers share their weights'
that 'nothing is written' '[ ! -e "$tmp/none" ]'
gives 3 prune "$tmp/t5-v1.0" "$tmp/two.tsv" --heads
err_has 'target'
counted
