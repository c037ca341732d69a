#!/bin/sh
# heads, geometry, neurons, map and lens on small models of many architectures; encoder-decoders also with their decoder
# and cross attention. Usage: test_analysis_models.sh BUILD_DIR, from the source folder.
. tests/counted.sh
awk 'BEGIN {
    printf "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
    printf "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"w2\",\"vocab\":{"
    for (i = 0; i < 71; i++) printf "%s\"w%d\":%d", i ? "," : "", i, i
    print "}}}" }' >"$tmp/tokenizer.json"
awk 'BEGIN { print "text\ttarget\tlabel"
    for (i = 0; i < 10; i++) printf "w%d w%d w%d w%d\tw%d w%d w%d\t%d\n", 5 + i, 9 + 2 * i, 17, 30 - i, 6 + i, 8, 9 + i, i % 2 }' >"$tmp/w.tsv"
runs() { # runs ANALYSIS ARGUMENT...: on the model
    analysis=$1
    shift
    "$sesame" "$analysis" -m "$tmp/$model" "$@" --json >"$tmp/out" 2>"$tmp/err"
    status=$?
    that "$model: $analysis $*" '[ $status -eq 0 ] && "$build/json_valid" <"$tmp/out" >/dev/null'
}
corpus() { # corpus ARGUMENT...: analyses of texts
    runs heads "$tmp/w.tsv" "$@"
    runs geometry "$tmp/w.tsv" --min-count 2 "$@"
    runs neurons "$tmp/w.tsv" --label-column label --positive 1 "$@"
}
for model in xlnet-permutation-lm deberta-v2-masked-lm mobilebert-wide xlm-masked-lm bloom-lm t5-v1.1 bart-lm mbart-lm marian-mt; do
    cp -r "tests/golden/$model" "$tmp/$model" && cp "$tmp/tokenizer.json" "$tmp/$model"
    corpus
    runs map "$tmp/w.tsv" --method pca
    [ $model = mobilebert-wide ] || runs lens 'w5 w9 w17' --all
    case $model in
    t5* | *bart* | marian*)
        corpus --decoder --target-column target
        runs heads "$tmp/w.tsv" --cross --target-column target
        runs lens 'w5 w9 w17' --target 'w6 w8'
        ;;
    *)
        "$sesame" heads -m "$tmp/$model" "$tmp/w.tsv" --cross >"$tmp/out" 2>"$tmp/err"
        status=$?
        that "$model: no cross attention" '[ $status -ne 0 ] && grep -q "no decoder with an input of its own" "$tmp/err"'
        ;;
    esac
done
counted
