#!/bin/sh
# sesame geometry: drawing, JSON, pages, another model, neighbours, bad input.
# Usage: test_geometry.sh BUILD_DIR, from the source folder.
. tests/counted.sh
cat >"$tmp/texts.txt" <<'EOT'
The bank of the river was green.
The bank gave the man some money.
A man sat near the river and the bank.
The money of the bank was in the river.
The man gave the green money to the bank.
EOT
geometry() { "$sesame" geometry "$tmp/texts.txt" "$@" >"$tmp/out" 2>"$tmp/err"; }
err_has() { grep -q -e "$1" "$tmp/err"; }
geometry --json --threads 1 && cp "$tmp/out" "$tmp/one"
that "a result" 'grep -q "\"analysis\": \"geometry\", \"model\": \"sesame-small\"" "$tmp/one"'
that "valid JSON" '"$build/json_valid" <"$tmp/one" >/dev/null'
that "13 layers" '[ "$(grep -o "\"layer\": " "$tmp/one" | wc -l)" -eq 13 ]'
geometry --json --threads 2
that "the same bits on two threads" 'cmp -s "$tmp/one" "$tmp/out"'
geometry --json --seed 7
that "other pairs with another seed" '! cmp -s "$tmp/one" "$tmp/out"'
geometry --layers 0,12 --html "$tmp/g.html" --svg "$tmp/g.svg"
that "a drawing of two layers" 'grep -q "^ *12  *0\." "$tmp/out" && ! grep -q "^ *11  *0\." "$tmp/out"'
that "a page and a picture" '[ -s "$tmp/g.html" ] && grep -q "<svg" "$tmp/g.svg"'
geometry --layers 0,12 --html "$tmp/g.html"
that "existing files are kept" '[ $? -eq 2 ] && err_has "g.html exists"'
geometry --like sesame-small --json
that "a model is like itself" 'sed "s/.*\"matrix\": \[\[//; s/,.*//" "$tmp/out" | awk "{ exit !(\$1 > 0.999999) }"'
geometry --like sesame-gpt --json --debiased
that "another tokenizer" 'grep -q "\"debiased\": true" "$tmp/out"'
printf 'bank 1 0\nmoney 0.9 0.1\nriver 0 1\n' >"$tmp/v.txt"
geometry --nearest bank --occurrence 2 --vectors "$tmp/v.txt"
that "neighbours" 'grep -q "^The \[bank\] gave the man" "$tmp/out" && grep -q "^static  *money 0.99, river 0.00" "$tmp/out"'
that "the same word is near" 'grep -q "^0  *bank 1.00" "$tmp/out"'
geometry --nearest bank --occurrence 99
that "too many occurrences" '[ $? -ne 0 ] && err_has "occurs 5 times"'
geometry --nearest zebra
that "an unknown word" '[ $? -ne 0 ] && err_has "\"zebra\" is not among"'
printf 'bank 1 nan\n' >"$tmp/v.txt"
geometry --nearest bank --vectors "$tmp/v.txt"
that "NaN in a vector file" '[ $? -eq 3 ] && err_has "v.txt: vector of \"bank\": line 1: number 2, \"nan\", is not a finite number"'
geometry --vectors "$tmp/v.txt"
that "vectors without a word" '[ $? -eq 2 ] && err_has "needs --nearest"'
awk 'BEGIN { print "text\ttarget"; for (i = 0; i < 8; i++) print "the cat sat on the mat .\ta dog saw it ." }' >"$tmp/pairs.tsv"
decoder() { "$sesame" geometry -m tests/fixtures/attention/bart "$tmp/pairs.tsv" "$@" >"$tmp/out" 2>"$tmp/err"; }
decoder --decoder --target-column target --nearest dog --json
that "words of the decoder" 'grep -q "\"word\": \"dog\"" "$tmp/out"'
decoder --nearest dog
that "words of the encoder" '[ $? -ne 0 ] && err_has "\"dog\" is not among"'
geometry --decoder
that "a model without a decoder" '[ $? -ne 0 ] && err_has "has no decoder with an input of its own"'
printf 'One.\n' >"$tmp/short.txt"
"$sesame" geometry "$tmp/short.txt" >"$tmp/out" 2>"$tmp/err"
that "too few words" '[ $? -ne 0 ] && err_has "txt: [0-9]* words*: CKA needs at least 4"'
: >"$tmp/empty.txt"
"$sesame" geometry "$tmp/empty.txt" >"$tmp/out" 2>"$tmp/err"
that "no text" '[ $? -eq 3 ] && err_has "empty.txt: no text"'
for m in sesame-gpt tests/golden/t5-classify tests/golden/bart-model; do
    [ -e "$m/tokenizer.json" ] || [ "$m" = sesame-gpt ] || continue
    geometry -m "$m" --layers 0,1
    that "$m" '[ -s "$tmp/out" ]'
done
awk 'BEGIN { for (i = 0; i < 3000; i++) printf "word%d and ", i % 7 }' >"$tmp/long.txt"
"$sesame" geometry "$tmp/long.txt" --layers 12 >"$tmp/out" 2>"$tmp/err"
that "a text longer than the model" 'grep -q "words of 1 texts" "$tmp/out"'
counted
