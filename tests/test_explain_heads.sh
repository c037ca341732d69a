#!/bin/sh
# sesame explain: target texts of encoder-decoders, multiple choice, XLNet, texts longer than the model, bad input.
set -u
. tests/counted.sh

gives() { # exit code, arguments of sesame explain
    want=$1
    shift
    "$sesame" explain "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame explain $*: exit $got, wanted $want"; fi
}
has() { if tr '\n' ' ' <"$tmp/out" | grep -qF -- "$1"; then pass; else fail "stdout lacks \"$1\""; fi; }
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\""; fi; }

awk 'BEGIN {
    printf "{\"version\":\"1.0\",\"added_tokens\":[],\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
    printf "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"w2\",\"vocab\":{"
    for (i = 0; i < 71; i++) printf "%s\"w%d\":%d", i ? "," : "", i, i
    print "}}}" }' >"$tmp/tokenizer.json"
for model in bart-lm t5-v1.1 marian-mt roberta2gpt2 bert2roberta bert-choice xlnet-permutation-lm bert-tag bert-masked-lm bert-qa gpt2-lm bert-classify \
    bert-multilabel electra-discriminator transfo-xl-lm; do
    cp -r "tests/golden/$model" "$tmp/$model" && cp "$tmp/tokenizer.json" "$tmp/$model"
    echo '{"mask_token": "w3", "unk_token": "w2"}' >"$tmp/$model/tokenizer_config.json"
done

# every token of a target: columns add up, the last one reads all tokens before it
for model in bart-lm t5-v1.1 marian-mt roberta2gpt2 bert2roberta; do
    gives 0 -m "$tmp/$model" 'w5 w9 w17 w30' --target 'w4 w8 w12' --json
    that "$model: columns" 'tr -d "\n " <"$tmp/out" | tr ",{}[" "\n\n\n\n" |
        awk -F : "/^\"score\"/ { s = \$2 } /^\"baseline_score\"/ { s -= \$2 } /^\"delta\"/ { n++; if (\$2 * \$2 > 0.0025 * s * s) bad = 1 }
                  END { exit bad || n != 3 }"'
    gives 0 -m "$tmp/$model" 'w5 w9 w17 w30' --target 'w4 w8 w12' --method gradient --html "$tmp/$model.html" --svg "$tmp/$model.svg"
    has 'w12'
    that "$model: pages" 'grep -q "Contributions to each token" "$tmp/$model.html" && grep -q "<rect" "$tmp/$model.svg"'
    gives 0 -m "$tmp/$model" 'w5 w9' --target 'w4 w8 w12' --token w8 --json
    has '"label": "w8"'
    gives 0 -m "$tmp/$model" 'w5 w9' --target 'w4 w8 w12' --token w8 --foil w9 --method value-zero-score
    gives 2 -m "$tmp/$model" 'w5 w9' --target 'w4 w8 w12' --foil w9
    err_has '--token TOKEN'
    gives 2 -m "$tmp/$model" 'w5 w9' --target 'w4 w8' --token w9
    err_has 'the target has no such token'
    gives 2 -m "$tmp/$model" 'w5 w9' --target ''
    err_has '--target is empty'
done
for method in ig occlude value-zero; do gives 0 -m "$tmp/bart-lm" 'w5 w9' --method $method; done # a generated text

# multiple choice
gives 0 -m "$tmp/bert-choice" 'w5 w9' w30 'w20 w33' --json
has '"kind": "choice"'
best=$(sed -n 's/.*"label": "\([^"]*\)".*/\1/p' "$tmp/out")
that 'the best choice' '"$sesame" multiple-choice -m "$tmp/bert-choice" "w5 w9" w30 "w20 w33" --json | tr -d "\n" | grep -q "\"choice\": *\"$best\"[^}]*}.*choice"'
gives 0 -m "$tmp/bert-choice" 'w5 w9' w30 'w20 w33' --label 1 --method occlude
has 'w33'
gives 0 -m "$tmp/bert-choice" 'w5 w9' w30 'w20 w33' --pair w40 --label w30 --method erase
has 'w40'
gives 2 -m "$tmp/bert-choice" 'w5 w9'
err_has 'at least two'
gives 2 -m "$tmp/bert-choice" 'w5 w9' w30 w31 --label w32
err_has 'number from 0 to 1'
gives 3 -m "$tmp/bert-choice" 'w5 w9' w30 w31 --foil w31
err_has 'reads each choice alone'
gives 2 'a film' 'a choice'
err_has 'does not choose between texts'

# XLNet: a mask, or a word that no token reads
gives 0 -m "$tmp/xlnet-permutation-lm" 'w5 w9 w3 w30' --json
has '"position": 2'
gives 0 -m "$tmp/xlnet-permutation-lm" 'w5 w9 w17 w30' --word w9 --foil w17 --method value-zero-score
gives 2 -m "$tmp/xlnet-permutation-lm" 'w5 w9 w17 w30'
err_has 'choose a word that is hidden'
gives 3 -m "$tmp/xlnet-permutation-lm" 'w5 w9 w17 w30' --word w9 --method value-zero
err_has 'use value-zero-score'

# labels that do not exclude each other, replaced tokens, adaptive softmax
gives 0 -m "$tmp/bert-multilabel" 'w5 w9 w17' --json
logit=$(sed -n 's/.*"score": *\([-0-9.e]*\).*/\1/p' "$tmp/out") p=$(sed -n 's/.*"probability": *\([-0-9.e]*\).*/\1/p' "$tmp/out")
that 'a sigmoid' 'awk "BEGIN { d = $p - 1 / (1 + exp(-($logit))); exit !(d * d < 1e-10) }"'
gives 0 -m "$tmp/electra-discriminator" 'w5 w9 w17' --word w9 --method erase
has '"replaced"'
gives 0 -m "$tmp/transfo-xl-lm" 'w5 w9 w17' --method input-gradient

# 51 tokens, the models read 24: the part with the target
long=$(seq 10 60 | sed 's/^/w/' | tr '\n' ' ')
gives 0 -m "$tmp/bert-classify" "$long" --method gradient
has 'The text has 51 tokens, the model reads 24: its beginning is explained, 27 tokens are left out.'
gives 0 -m "$tmp/bert-tag" "$long" --word w55 --method gradient --json
that 'a window around the word' 'grep -q "\"w60\"" "$tmp/out" && ! grep -q "\"w20\"" "$tmp/out"'
gives 0 -m "$tmp/bert-masked-lm" "$long w3 $long" --method gradient
has 'the part around the mask'
gives 0 -m "$tmp/gpt2-lm" "$long" --method gradient --json
that 'the end' 'grep -q "\"w60\"" "$tmp/out" && ! grep -q "\"w20\"" "$tmp/out"'
gives 0 -m "$tmp/bert-qa" 'w5 w6' --pair "$long" --label 'w58 w59' --method gradient
has '"w58 w59"'
gives 0 -m "$tmp/bert-qa" 'w5 w6' --pair "$long" --method gradient
has 'the part with the answer'
gives 0 -m "$tmp/bart-lm" "$long" --target "$long" --method gradient
has 'the model reads 24: its beginning is explained'
has 'its end is left out'
gives 3 -m "$tmp/bert-qa" "$long" --pair w5
err_has 'shorten it'

# bad input
gives 2 -m "$tmp/bert-tag" 'w5 w9' --layers 1
err_has '--layers: only value-zero'
gives 0 -m "$tmp/bert-tag" 'w5 w9' --layers 1 --method value-zero
gives 2 -m "$tmp/bert-qa" 'w5 w6' --pair ''
err_has '--pair is empty'
gives 2 -m "$tmp/bert-qa" 'w5 w6' --pair ' '
err_has 'the passage has no words'
gives 3 -m "$tmp/bert-classify" ''
err_has 'no tokens to explain'
gives 2 -m "$tmp/bert-masked-lm" 'w5 w3' --word w5
err_has 'write the mask'
size=$(wc -c <"$tmp/bert-classify/model.safetensors")
head -c 4000 /dev/zero | tr '\0' '\377' | dd of="$tmp/bert-classify/model.safetensors" bs=1 seek=$((size - 4000)) conv=notrunc 2>/dev/null
for method in ig occlude value-zero erase; do
    gives 3 -m "$tmp/bert-classify" 'w5 w9' --method $method
    err_has 'is not a finite number'
done
if [ -e /dev/full ]; then
    "$sesame" explain -m "$tmp/bert-tag" 'w5 w9' --method gradient >/dev/full 2>"$tmp/err"
    that 'a full disk' '[ $? -ne 0 ] && grep -q "cannot be written" "$tmp/err"'
fi
counted
