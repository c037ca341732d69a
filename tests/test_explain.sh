#!/bin/sh
# sesame explain and prune from outside: every head, every method, known values, bad input, files.
set -u
. tests/counted.sh

gives() { # exit code, arguments of sesame
    want=$1
    shift
    "$sesame" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame $*: exit $got, wanted $want"; fi
}
out_has() { if grep -qF -- "$1" "$tmp/out"; then pass; else fail "stdout lacks \"$1\""; fi; }
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\""; fi; }

text='a gorgeous, witty, seductive movie'
# values of captum's LayerIntegratedGradients: bench/peers/analysis/explain.py
gives 0 explain "$text" --json
that 'values of captum' 'tr -d "\n " <"$tmp/out" | sed "s/.*\"values\":\[\([^]]*\)\].*/\1/" | tr "," "\n" | paste - - - - - - - - - - - - - - |
    awk "{ split(\"0 .2107 .95523 .96953 .74898 .60988 .38443 .3574 .04802 .28543 .19194 .09187 .03226 0\", w, \" \")
           for (i = 1; i <= 14; i++) { d = \$i - w[i]; if (d < 0) d = -d; if (d > 2e-5) bad = 1 }
           exit bad || NF != 14 }"'
out_has '"label": "positive"'
out_has '"steps": 50'
for method in gradient input-gradient occlude erase value-zero value-zero-score; do
    gives 0 explain "$text" --method $method
    out_has 'gorgeous'
done
gives 0 explain "$text" --method occlude --occlude delete --unit ngram --ngram 3
gives 0 explain "$text" --label negative --foil positive
out_has '"negative" and not "positive"'
gives 0 explain -m sesame-ner 'Ada went to Paris' --word Paris --foil B-PER
out_has '"B-LOC" and not "B-PER"'
gives 0 explain -m sesame-small 'The capital of France is [MASK].' --token paris --foil london
out_has '"paris" and not "london"'
gives 0 explain -m sesame-qa 'Who wrote it?' --pair 'The book was written by Ada Lovelace in 1843.'
out_has '"Ada Lovelace"'
gives 0 explain -m sesame-qa 'Who wrote it?' --pair 'The book was written by Ada Lovelace in 1843.' --label 1843
out_has '"1843"'
gives 0 explain -m sesame-nli 'It rains.' --pair 'The street is wet.' --method gradient
gives 0 explain -m sesame-gpt 'The king and the' --method occlude
gives 0 explain "$text" --method gradient --html "$tmp/x.html" --svg "$tmp/x.svg" --json "$tmp/x.json"
that 'files' '[ -s "$tmp/x.html" ] && [ -s "$tmp/x.svg" ] && grep -q "\"analysis\": *\"explain\"" "$tmp/x.json"'

# every architecture: the values add up to the difference of the scores
awk 'BEGIN {
    printf "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
    printf "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"w2\",\"vocab\":{"
    for (i = 0; i < 71; i++) printf "%s\"w%d\":%d", i ? "," : "", i, i
    print "}}}" }' >"$tmp/tokenizer.json"
for model in t5-v1.0 bart-lm bart-classify mbart-qa marian-mt gpt2-lm deberta-v2-qa xlnet-classify mobilebert-wide bloom-lm \
    roberta-tag electra-discriminator albert-classify t5-classify modernbert-classify-mean; do
    cp -r "tests/golden/$model" "$tmp/$model" && cp "$tmp/tokenizer.json" "$tmp/$model"
    pair=
    case $model in *-qa) pair='--pair=w20 w21 w22' ;; esac
    gives 0 explain -m "$tmp/$model" 'w5 w9 w17 w30' ${pair:+"$pair"} --json
    that "$model: values add up" 'tr -d "\n " <"$tmp/out" | tr ",{}[" "\n\n\n\n" |
        awk -F : "/^\"(score|baseline_score|delta)\"/ { v[\$1] = \$2 }
                  END { d = v[\"\\\"score\\\"\"] - v[\"\\\"baseline_score\\\"\"]; x = v[\"\\\"delta\\\"\"]
                        exit !(d != 0 && x * x <= 0.0025 * d * d) }"'
done

# what it refuses
for model in gpt2-lm bart-lm; do # a tokenizer with more tokens than the model
    sed 's/"w70":70/"w70":70'"$(seq 71 399 | sed 's/.*/,"w&":&/' | tr -d '\n')"'/' "$tmp/tokenizer.json" >"$tmp/$model/tokenizer.json"
    gives 2 explain -m "$tmp/$model" 'w5 w9' --foil w399
    err_has 'id 399, but the model has'
done
gives 2 explain -m "$tmp/gpt2-lm" 'w5 w9' --token w399
err_has 'id 399, but the model has'
gives 2 explain x --label positve
err_has "did you mean 'positive'?"
gives 2 explain -m sesame-ner 'Ada went to Paris' --word Pariss
err_has "did you mean 'Paris'?"
gives 2 explain -m sesame-small 'no mask here'
err_has 'the text has no mask: write [MASK]'
gives 2 explain -m sesame-qa who
err_has 'needs a second text'
gives 2 explain x --label positive --foil positive
err_has 'is the explained label itself'
gives 2 explain x --target y
err_has 'has no decoder'
"$sesame" explain -m sesame-embed x >"$tmp/out" 2>"$tmp/err"
that 'a model without a head' '[ $? -ne 0 ]'
err_has 'has no prediction to explain'

# influence: supporting examples have the label of the prediction
awk 'BEGIN { print "text\tlabel"; for (i = 0; i < 12; i++) { print "a wonderful film number " i "\tgood"; print "a terrible film number " i "\tbad" } }' >"$tmp/train.tsv"
gives 0 explain 'a wonderful movie' --influence "$tmp/train.tsv" --top 3 --json
out_has '"label": "good"'
that 'supporting' 'tr -d "\n" <"$tmp/out" | sed "s/.*\"supporting\": *\[\([^]]*\)\].*/\1/" | grep -q "wonderful"'

# prune: importance, curve, a smaller model that gives the same labels
awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 6; i++) { print "a wonderful film\t1"; print "a terrible film\t0" } }' >"$tmp/dev.tsv"
gives 0 prune sesame-sentiment "$tmp/dev.tsv" --heads --step 0.5 --write "$tmp/small" --fraction 0.1
out_has 'the model without 7 heads'
that 'pruned_heads' 'grep -q "\"pruned_heads\"" "$tmp/small/config.json"'
gives 0 text-classification -m "$tmp/small" 'a wonderful film'
out_has 'positive'
gives 2 prune sesame-sentiment "$tmp/dev.tsv" --heads --write "$tmp/small"
err_has 'exists'
gives 2 prune sesame-sentiment "$tmp/dev.tsv"
err_has 'give --heads'
"$sesame" prune sesame-small "$tmp/dev.tsv" --heads >"$tmp/out" 2>"$tmp/err"
err_has 'is not a classifier'
printf 'text\tlabel\nx\tmaybe\ny\tno\n' >"$tmp/bad.tsv"
"$sesame" prune sesame-sentiment "$tmp/bad.tsv" --heads >"$tmp/out" 2>"$tmp/err"
err_has 'is not a label of the model: negative, positive'
counted
