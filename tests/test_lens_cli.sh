#!/bin/sh
# sesame lens: logit lens, tuned lens, files, bad input.
# Usage: test_lens_cli.sh BUILD_DIR, from the source folder.
. tests/counted.sh
m=tests/pipelines/bert-mask
lens() { "$sesame" lens "$@" >"$tmp/out" 2>"$tmp/err"; }
err_has() { grep -q -e "$1" "$tmp/err"; }
number() { grep -o "\"$1\": [-0-9.e]*" "$tmp/out" | sed -n "$2p" | cut -d' ' -f2; }
lens "Paris is in [MASK]." --json
that "one position" 'grep -q "\"lens\": \"logit\", \"positions\": \[{\"position\": 4, \"token\": \"\[MASK\]\"" "$tmp/out"'
that "valid JSON" '"$build/json_valid" <"$tmp/out" >/dev/null'
that "13 layers" '[ "$(grep -o "\"layer\": " "$tmp/out" | wc -l)" -eq 13 ]'
that "no divergence of the last layer" 'awk -v k="$(number kl 13)" "BEGIN { exit !(k == 0) }"'
that "divergence of the first" 'awk -v k="$(number kl 1)" "BEGIN { exit !(k > 1) }"'
last=$(grep -o '"layer": 12, .*' "$tmp/out" | grep -o '"id": [0-9]*, "probability": [0-9.e-]*' | head -1)
"$sesame" fill-mask -m sesame-small --top-k 1 --json "Paris is in [MASK]." >"$tmp/fill" 2>/dev/null
that "the prediction of fill-mask" 'grep -q "\"token\": $(echo "$last" | cut -d" " -f2)" "$tmp/fill"'
that "its probability" 'awk -v a="${last##* }" -v b="$(sed "s/.*\"score\": \([0-9.e-]*\).*/\1/" "$tmp/fill")" "BEGIN { d = a - b; exit !(d < 1e-6 && d > -1e-6) }"'
lens "Paris is in [MASK]." --token italy
that "another token" 'grep -q "probability of \"italy\"" "$tmp/out"'
lens "Paris is in [MASK]." --layers 6,12 --html "$tmp/l.html" --svg "$tmp/l.svg"
that "a page and a picture" '[ -s "$tmp/l.html" ] && grep -q "<svg" "$tmp/l.svg"'
lens -m sesame-gpt "The children played" --json
that "every position of a causal model" '[ "$(grep -o "\"position\": " "$tmp/out" | wc -l)" -ge 3 ]'
printf 'a b c\nb a c d\nc c a b\nd a b\n' >"$tmp/texts.txt"
lens -m $m --train "$tmp/texts.txt" --save "$tmp/t.safetensors" --steps 150 --batch-tokens 64 --rate 2 --json
that "training" 'awk -v a="$(number kl_first 1)" -v b="$(number kl_last 1)" "BEGIN { exit !(b < 0.7 * a) }"'
cp "$tmp/t.safetensors" "$tmp/first"
lens -m $m --train "$tmp/texts.txt" --save "$tmp/t.safetensors" --steps 2
that "existing translators are kept" '[ $? -ne 0 ] && cmp -s "$tmp/first" "$tmp/t.safetensors"'
lens -m $m --train "$tmp/texts.txt" --save "$tmp/two" --steps 150 --batch-tokens 64 --rate 2 --threads 2
that "the same bits on two threads" 'cmp -s "$tmp/first" "$tmp/two"'
lens -m $m "a [MASK] c" --json && k0=$(number kl 1)
lens -m $m --translators "$tmp/t.safetensors" "a [MASK] c" --json
that "the tuned lens is closer" 'grep -q "\"lens\": \"tuned\"" "$tmp/out" && awk -v a="$k0" -v b="$(number kl 1)" "BEGIN { exit !(b < a) }"'
lens --translators "$tmp/t.safetensors" "Paris is in [MASK]."
that "translators of another model" '[ $? -eq 3 ] && err_has "t.safetensors: translator.0.weight: another shape"'
lens --translators "$tmp/texts.txt" "Paris is in [MASK]."
that "not translators" '[ $? -eq 3 ]'
lens -m sesame-ner "x"
that "a model without the head" '[ $? -ne 0 ] && err_has "has no language model head"'
lens "Paris is in [MASK]." --target italy
that "a target without a decoder" '[ $? -eq 2 ] && err_has "has no decoder; --token TOKEN ranks a token"'
bart=tests/fixtures/attention/bart
lens -m $bart "the cat sat" --target "a dog" --json && cp "$tmp/out" "$tmp/one"
lens -m $bart "the cat sat" --output-text "a dog" --json
that "the decoder's text, and its older name" '[ -s "$tmp/one" ] && cmp -s "$tmp/one" "$tmp/out"'
lens "no mask here"
that "no mask" '[ $? -ne 0 ] && err_has "no mask in the text: expected at least one \[MASK\], or --all"'
lens "$(awk 'BEGIN { for (i = 0; i < 3000; i++) printf "so long " }') [MASK]"
that "a mask that the model does not read" '[ $? -ne 0 ] && err_has "no mask among the [0-9]* tokens that the model reads"'
lens "no mask here" --all --json
that "every position" '[ "$(grep -o "\"position\": " "$tmp/out" | wc -l)" -ge 5 ]'
lens "a [MASK]" --token "two words"
that "a token of two pieces" '[ $? -ne 0 ] && err_has "is 2 tokens, expected one"'
lens --train "$tmp/texts.txt"
that "training without a file" '[ $? -eq 2 ] && err_has "needs --save"'
lens
that "no text" '[ $? -eq 2 ]'
lens "[MASK] $(awk 'BEGIN { for (i = 0; i < 3000; i++) printf "word " }')"
that "a text longer than the model" 'grep -q "the rest is left out" "$tmp/out"'
counted
