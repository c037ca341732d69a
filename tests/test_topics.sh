#!/bin/sh
# `sesame topics`: training, resuming, inference, files, tables, drawings, bad input. test_lda and test_lsa compare numbers.
set -u
. tests/counted.sh

# 200 texts with two groups of words, words of all texts, and rare ones.
awk 'BEGIN { x = 7; for (i = 0; i < 200; i++) { for (j = 0; j < 12; j++) { x = x * 16807 % 2147483647
    k = int(x / 1000) % 20; printf "%s%d ", i % 2 ? "Alpha" : "beta", k; if (j % 4 == 0) printf "the common%d, ", k % 3 }
    print "rare" i } }' >"$tmp/texts"
topics() { "$sesame" topics "$@" >"$tmp/out" 2>"$tmp/err"; }
train() { topics train -q -o "$tmp/model" --overwrite "$@" "$tmp/texts"; }

that 'LDA' 'train -k 2 --passes 4 && grep -q "UMass" "$tmp/out" && grep -q "Perplexity of the last pass" "$tmp/out"'
that 'the files' '[ "$(ls "$tmp/model" | tr "\n" " ")" = "config.json model.safetensors vocab.txt " ] && [ "$(wc -l <"$tmp/model/vocab.txt")" -eq 43 ]'
that 'lower case, no stop words, no rare words' '! grep -qE "^(the|rare.*|Alpha.*)$" "$tmp/model/vocab.txt"'
cp -R "$tmp/model" "$tmp/first"
that 'equal bytes on any number of threads' 'train -k 2 --passes 4 --threads 8 && cmp "$tmp/model/model.safetensors" "$tmp/first/model.safetensors" && cmp "$tmp/model/config.json" "$tmp/first/config.json"'
that 'a resumed training' 'train -k 2 --passes 2 --chunk 30 && topics train -q -o "$tmp/model" --resume --passes 4 "$tmp/texts" && cp -R "$tmp/model" "$tmp/resumed" && train -k 2 --passes 4 --chunk 30 &&
    cmp "$tmp/model/model.safetensors" "$tmp/resumed/model.safetensors" && cmp "$tmp/model/config.json" "$tmp/resumed/config.json"'
rm -rf "$tmp/resumed"
that 'inference separates the groups' 'topics infer -q "$tmp/first" "$tmp/texts" --top 1 && [ "$(awk -F: "{ print NR % 2, \$1 }" "$tmp/out" | sort -u | wc -l)" -eq 2 ]'
that 'shares sum to 1' 'topics infer -q "$tmp/first" "$tmp/texts" && awk "{ s = \$1 + \$2; if (s < 0.99999 || s > 1.00001) exit 1 }" "$tmp/out" && [ "$(wc -l <"$tmp/out")" -eq 200 ]'
that 'JSON of inference' 'topics infer -q --json "$tmp/first" "$tmp/texts" && grep -q "^{\"perplexity\": [0-9.]*, \"texts\": \[{\"line\": 1, \"topics\": \[" "$tmp/out"'
that 'bars' 'topics show "$tmp/first" --top-words 3 && [ "$(grep -cE "^(alpha|beta|common)[0-9]+ +0\." "$tmp/out")" -eq 6 ]'
that 'JSON' 'topics show "$tmp/first" --json && grep -q "\"topics\": \[{\"topic\": 1, \"share\": 0\." "$tmp/out"'
that 'a page and a picture' 'topics show "$tmp/first" --html "$tmp/p.html" --svg "$tmp/p.svg" && grep -q "</html>" "$tmp/p.html" && grep -q "</svg>" "$tmp/p.svg"'
that 'they are not overwritten' '! topics show "$tmp/first" --html "$tmp/p.html" && grep -q overwrite "$tmp/err"'

that 'LSA' 'train --method lsa -k 4 && grep -q "singular value" "$tmp/out"'
cp -R "$tmp/model" "$tmp/lsa"
that 'LSA on any number of threads' 'train --method lsa -k 4 --threads 8 && cmp "$tmp/model/model.safetensors" "$tmp/lsa/model.safetensors"'
that 'coordinates of LSA' 'topics infer "$tmp/lsa" "$tmp/texts" && [ "$(awk "{ print NF }" "$tmp/out" | sort -u)" = 4 ] && ! grep -q perplexity "$tmp/err"'

{ echo 'id,body'; awk '{ printf "%d,\"%s\"\n", NR, $0 }' "$tmp/texts"; } >"$tmp/t.csv"
that 'a table' 'topics train -q -k 2 --passes 4 --text-column body -o "$tmp/csv" "$tmp/t.csv" && cmp "$tmp/csv/model.safetensors" "$tmp/first/model.safetensors"'
that 'words between blanks' 'train -k 2 --words blank --stop-words none --passes 1 && grep -qx "the" "$tmp/model/vocab.txt" && grep -qx "Alpha3" "$tmp/model/vocab.txt" && grep -q "common1,$" "$tmp/model/vocab.txt"'
that 'a vocabulary limit' 'train -k 2 --vocabulary 7 --passes 1 && [ "$(wc -l <"$tmp/model/vocab.txt")" -eq 7 ]'
that 'as many topics as words' 'train -k 7 --vocabulary 7 --passes 1'

refuses() { # refuses TEXT ARGUMENT...: the command fails with TEXT
    text=$1
    shift
    if topics "$@"; then fail "accepted: $*"; else that "$*" 'grep -qF -- "$text" "$tmp/err"'; fi
}
new="train -q -o $tmp/new"
refuses 'exists: --overwrite replaces it' train -o "$tmp/first" "$tmp/texts"
refuses 'none of the 244 words is left' $new --min-df 1000 "$tmp/texts"
refuses '9 topics of 200 texts and 7 words; expected 1 to 7' $new --method lsa -k 9 --vocabulary 7 "$tmp/texts"
refuses 'decay' $new --decay nan "$tmp/texts"
refuses 'alpha' $new --alpha -1 "$tmp/texts"
refuses 'passes has no effect with --method lsa: it belongs to --method lda' $new --method lsa --passes 3 "$tmp/texts"
refuses 'start has no effect with --method lsa' $new --method lsa --start x "$tmp/texts"
refuses 'rounds has no effect with --method lda: it belongs to --method lsa' $new --rounds 3 "$tmp/texts"
refuses 'chunk has no effect with --update batch' $new --update batch --chunk 3 "$tmp/texts"
refuses 'topics has no effect with --resume: the settings of' train --resume -k 3 -o "$tmp/first" "$tmp/texts"
refuses 'chunk has no effect with --resume' train --resume --chunk 3 -o "$tmp/first" "$tmp/texts"
refuses 'top has no effect with --json' infer --json --top 2 "$tmp/first" "$tmp/texts"
refuses 'only LDA can be resumed' train --resume -o "$tmp/lsa" "$tmp/texts"
head -n 50 "$tmp/texts" >"$tmp/part"
refuses 'the texts differ' train --resume --passes 9 -o "$tmp/first" "$tmp/part"
refuses 'config.json: No such file' show "$tmp"
mkdir "$tmp/other" && echo '{"model_type": "bert"}' >"$tmp/other/config.json"
refuses 'is not a topic model' show "$tmp/other"
refuses 'is not a topic model' train -q --overwrite -o "$tmp/other" "$tmp/texts"
printf '1\t2\t3\n' >"$tmp/start.tsv"
refuses 'expected 2 topics x 43 words' $new -k 2 --start "$tmp/start.tsv" "$tmp/texts"
: >"$tmp/empty"
refuses 'empty' $new "$tmp/empty"
printf '. ! ?\n- -\n' >"$tmp/marks"
refuses 'the texts have no word' $new "$tmp/marks"
refuses 'missing' $new "$tmp/missing"
printf 'a \377\376 b\n' >"$tmp/bytes"
refuses 'line 1' $new "$tmp/bytes"
printf 'a b\na\000b\n' >"$tmp/bytes"
refuses 'line 2' $new "$tmp/bytes"
that 'nothing was written' '[ ! -e "$tmp/new" ]'
echo 'one text with a few words' >"$tmp/one"
that 'one text' 'topics train -q -k 2 --min-df 1 --passes 2 -o "$tmp/one.model" "$tmp/one" && topics infer -q "$tmp/one.model" "$tmp/one"'
{ head -c 10000000 /dev/zero | tr '\0' x; echo ' of a long word'; } >"$tmp/long"
that 'a word of 10 MB' 'topics train -q -k 1 --min-df 1 --passes 1 -o "$tmp/long.model" "$tmp/long" && topics infer -q "$tmp/long.model" "$tmp/long"'

damage() { # damage FILE TEXT: a changed file of a model is refused
    rm -rf "$tmp/bad" && cp -R "$tmp/first" "$tmp/bad" && cat >"$tmp/bad/$1"
    refuses "$2" show "$tmp/bad"
}
sed 's/"words": 43/"words": 42/' "$tmp/first/config.json" | damage config.json 'expected 42 words'
sed 's/"topics": 2/"topics": 3/' "$tmp/first/config.json" | damage config.json 'expected 3 x 43'
sed 's/"decay": 0.5/"decay": "x"/' "$tmp/first/config.json" | damage config.json '"decay": expected a number'
sed '2s/.*/alpha0/;3s/.*/alpha0/' "$tmp/first/vocab.txt" | damage vocab.txt 'is repeated'
head -c 200 "$tmp/first/model.safetensors" | damage model.safetensors 'model.safetensors'

that 'a full disk' '! "$sesame" topics show "$tmp/first" >/dev/full 2>"$tmp/err"'
# An interruption keeps the updates so far; a resume ends with the same bits.
"$sesame" topics train -q -k 8 --passes 3000 --chunk 7 -o "$tmp/int" "$tmp/texts" >"$tmp/out" 2>"$tmp/err" &
pid=$!
sleep 0.5
kill -TERM $pid
wait $pid
status=$?
if [ $status -eq 0 ] || [ ! -e "$tmp/int" ]; then # it has ended before, or not begun
    skipped=$((skipped + 1))
else
    that 'an interruption' '[ $status -eq 143 ] && grep -q -- "--resume continues" "$tmp/err" && [ -e "$tmp/int/config.json" ]'
fi
counted
