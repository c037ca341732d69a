#!/bin/sh
# Inputs of analyses from outside: texts of standard input, targets, tokens of the envelope, small data, messages.
# Usage: test_analysis_input.sh BUILD_DIR, from the source folder.
. tests/counted.sh
run() { "$sesame" "$@" >"$tmp/out" 2>"$tmp/err"; }
out_has() { grep -qF -e "$1" "$tmp/out"; }
err_is() { [ "$(cat "$tmp/err")" = "$1" ]; }
tokens() { sed 's/.*"tokens": \[\(.*\)\], "result".*/\1/' "$tmp/out"; }

# A text of standard input.
for analysis in view explain lens; do
    [ $analysis = lens ] && text='A [MASK] film' || text='A nice film'
    run $analysis "$text" --json && mv "$tmp/out" "$tmp/want"
    echo "$text" | run $analysis - --json
    that "$analysis - reads standard input" '[ -s "$tmp/want" ] && cmp -s "$tmp/want" "$tmp/out"'
    run $analysis - </dev/null
    that "$analysis - without a text" '[ $? -eq 3 ] && grep -q "^sesame: standard input is empty" "$tmp/err"'
done

# Files in another encoding.
awk 'BEGIN { print "text\tlabel"; for (i = 0; i < 40; i++) printf "the caf\351 %s the bell %d\t%d\n", i % 2 ? "and" : "or", i, i % 2 }' >"$tmp/latin1"
iconv -f LATIN1 -t UTF-8 "$tmp/latin1" >"$tmp/utf8"
for analysis in 'map --texts' 'geometry --min-count 2' heads 'neurons --label-column label --positive 1'; do
    for encoding in utf8 latin1; do
        cp "$tmp/$encoding" "$tmp/encoded.tsv"
        # shellcheck disable=SC2086 # an analysis and its options
        if [ $encoding = utf8 ]; then
            run $analysis --column text "$tmp/encoded.tsv" --json && sed 's/"encoding": "utf-8"/"encoding": "latin1"/' "$tmp/out" >"$tmp/want"
        else
            run $analysis --column text "$tmp/encoded.tsv" --json
            that "$analysis: invalid UTF-8" '[ $? -eq 3 ] && grep -q "encoded.tsv: line 2: byte 8: invalid UTF-8" "$tmp/err"'
            run $analysis --column text --encoding latin1 "$tmp/encoded.tsv" --json
            that "$analysis --encoding" '[ -s "$tmp/want" ] && cmp -s "$tmp/want" "$tmp/out"'
        fi
    done
    rm -f "$tmp/want"
done

# Tokens are named as in the vocabulary, special tokens too.
run lens 'The [MASK] sat.' --json
that 'tokens of lens' 'out_has "{\"text\": \"[CLS]\", \"start\": 0, \"end\": 0, \"word\": null}, {\"text\": \"the\", \"start\": 0, \"end\": 3, \"word\": 0}"'

# Encoder-decoders: a tokenizer with an end token, as mBART's language.
model() { # NAME: a model of tests/golden with a tokenizer of words
    cp -r "tests/golden/$1" "$tmp/$1"
    awk 'BEGIN {
        printf "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":9,\"content\":\"w9\",\"special\":true}],"
        printf "\"pre_tokenizer\":{\"type\":\"Whitespace\"},\"post_processor\":{\"type\":\"TemplateProcessing\","
        printf "\"single\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"SpecialToken\":{\"id\":\"w9\",\"type_id\":0}}],"
        printf "\"pair\":[{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},{\"Sequence\":{\"id\":\"B\",\"type_id\":0}}],"
        printf "\"special_tokens\":{\"w9\":{\"id\":\"w9\",\"ids\":[9],\"tokens\":[\"w9\"]}}},"
        printf "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"w2\",\"vocab\":{"
        for (i = 0; i < 71; i++) printf "%s\"w%d\":%d", i ? "," : "", i, i
        print "}}}" }' >"$tmp/$1/tokenizer.json"
}
model bart-lm
model mbart-lm
run lens -m "$tmp/bart-lm" 'w5 w6' --target 'w7 w8' --json
that 'lens: tokens of the source' 'tokens | grep -qF "{\"text\": \"w6\", \"start\": 3, \"end\": 5, \"word\": 1}"'
run explain -m "$tmp/bart-lm" 'w5 w6' --target 'w7 w8' --json --method gradient
that 'explain: words of the target' 'tokens | grep -qF "{\"text\": \"w7\", \"start\": 0, \"end\": 2, \"word\": 0}, {\"text\": \"w8\", \"start\": 3, \"end\": 5, \"word\": 1}"'
run explain -m "$tmp/bart-lm" 'w5 w6' --target 'w7 w8' --word w8 --method gradient --json
that 'explain: a word of the target' 'out_has "\"label\": \"w8\""'
for analysis in view explain lens; do
    [ $analysis = explain ] && set -- --method gradient || set --
    run $analysis -m "$tmp/mbart-lm" 'w5 w6' --target 'w7 w8' --json "$@"
    case $analysis in
    view) first='"target": [{"text": "w9"' ;;
    explain) first='{"text": "w9", "start": 0, "end": 0, "word": null}, {"text": "w7"' ;;
    lens) first='"position": 0, "token": "w9"' ;;
    esac
    that "$analysis: mBART begins a target with its last token" 'out_has "$first"'
done
# The decoder of an mBART reads the last token first, in every analysis of a corpus: the start token of its config
# changes nothing. That of a BART does.
for m in bart mbart; do
    cp -r "$tmp/$m-lm" "$tmp/$m-9"
    sed 's/"decoder_start_token_id": 2/"decoder_start_token_id": 9/' "tests/golden/$m-lm/config.json" >"$tmp/$m-9/config.json"
done
awk 'BEGIN { print "text\ttarget\tlabel"
    for (i = 1; i < 121; i++) print "w" i % 60 + 10 " w" i % 7 " w6\tw7 w" i % 50 + 12 " w8\t" i % 2 }' >"$tmp/pairs.tsv"
# shellcheck disable=SC2086  # an analysis and its options
start_matters() { # MODEL; the analysis is in $analysis, which splits into words
    m=$1
    case $analysis in probe*) set -- $analysis "$tmp/pairs.tsv" ;; *) set -- $analysis "$tmp/pairs.tsv" --target-column target ;; esac
    run "$@" -m "$tmp/$m-9" --decoder --json && sed "s/$m-9/$m-lm/g" "$tmp/out" >"$tmp/want"
    run "$@" -m "$tmp/$m-lm" --decoder --json && [ -s "$tmp/want" ] && ! cmp -s "$tmp/want" "$tmp/out"
}
for analysis in "neurons --label-column label --positive 1" heads "geometry --min-count 2" "probe text --no-random --mdl"; do
    that "$analysis: the decoder of a BART begins with its start token" 'start_matters bart'
    that "$analysis: the decoder of an mBART begins with the last token" '! start_matters mbart && [ -s "$tmp/out" ]'
done
sed 's/"decoder_start_token_id": 2/"decoder_start_token_id": -1/' "$tmp/bart-lm/config.json" >"$tmp/bart-9/config.json"
for analysis in neurons heads geometry; do
    run $analysis "$tmp/pairs.tsv" -m "$tmp/bart-9" --decoder --target-column target
    that "$analysis: no start token" '[ $? -ne 0 ] && grep -q "no decoder_start_token_id" "$tmp/err"'
done
run feature-extraction -m "$tmp/bart-9" 'w5 w6'
that 'feature-extraction: no start token' '[ $? -ne 0 ] && grep -q "no decoder_start_token_id" "$tmp/err"'
run explain -m "$tmp/bart-lm" 'w5 w6' --target 'w7 w8' --svg "$tmp/a.svg" --method gradient
that 'a long legend has two lines' 'grep -qE "<text x=\"0.0\"[^>]*>values [-0-9.]* to [-0-9.]*</text>" "$tmp/a.svg"'

# The word whose tag is explained.
run explain -m sesame-ner 'Ada went to Paris' --word Paris --method gradient
that 'explain: the word of a tag' 'out_has "\"B-LOC\" at \"Paris\""'

# Tasks without examples are left out unless they are named.
awk 'BEGIN { for (s = 0; s < 20; s++) { for (i = 1; i <= 5; i++)
    printf "%d\t%s\t_\tNOUN\t_\t_\t%d\t%s\t_\t_\n", i, (i * s) % 3 ? "a" : "b", i - 1, i == 1 ? "root" : "obj"; print "" } }' >"$tmp/x.conllu"
m=tests/pipelines/bert-tag
run probe text -m $m "$tmp/x.conllu" --layers 1 --no-random --json
that 'probe text: tasks that are left' 'out_has "\"kind\": \"text\"" && out_has "\"name\": \"bigram-shift\"" && ! out_has "\"name\": \"length\""'
that 'probe text: tasks that are not' 'out_has "\"tasks_left_out\": [\"length\""'
run probe text -m $m "$tmp/x.conllu" --layers 1 --no-random
that 'probe text: a note' 'out_has "Left out: length: all training examples have the label"'
run probe text -m $m "$tmp/x.conllu" --task length,bigram-shift --layers 1 --no-random
that 'probe text: a named task' '[ $? -eq 3 ] && grep -q "^sesame: length: all training examples" "$tmp/err"'
run probe arc -m $m "$tmp/x.conllu" --layers 1 --no-random --json
that 'probe arc without relations' 'out_has "\"kind\": \"arc\"" && out_has "\"name\": \"arc\"" && out_has "\"tasks_left_out\": [\"relation\"]"'
head -n 18 "$tmp/x.conllu" >"$tmp/few.conllu"
run probe tree -m $m "$tmp/few.conllu"
that 'probe tree: three sentences' '[ $? -eq 3 ]'
run probe arc -m $m "$tmp/few.conllu"
that 'probe arc: three sentences' '[ $? -eq 3 ] && grep -q "development data have no example; of a single file" "$tmp/err"'

# Messages.
bad=$(printf 'a \377')
for analysis in view explain lens; do
    run $analysis "$bad" --json
    that "$analysis: a text that is not UTF-8" '[ $? -eq 3 ] && err_is "sesame: the text: invalid UTF-8 at byte 3; expected a text in UTF-8"'
    run $analysis 'a [MASK]' --target "$bad" --json
    that "$analysis: an option that is not UTF-8" '[ $? -eq 3 ] && err_is "sesame: --target: invalid UTF-8 at byte 3; expected a text in UTF-8"'
done
: >"$tmp/empty.tsv"
printf 'sentence\tlabel\n' >"$tmp/header.tsv"
run explain good --influence "$tmp/empty.tsv"
that 'explain: an empty table' 'err_is "sesame: $tmp/empty.tsv: the file is empty"'
run explain good --influence "$tmp/header.tsv"
that 'explain: a table without rows' 'err_is "sesame: $tmp/header.tsv: no examples"'
run prune sesame-sentiment "$tmp/header.tsv" --heads
that 'prune: a table without rows' 'err_is "sesame: $tmp/header.tsv: no examples"'
printf 'text\tlabel\na b\tx\nc d\ty\ne f\tx\ng h\ty\n' >"$tmp/t.tsv"
run map -m tests/pipelines/bert-mask "$tmp/t.tsv" --method tsne --iterations 1 --html "$tmp/map.html"
that 'map: the title' 'grep -q "Map of 4 texts by t-SNE" "$tmp/map.html"'
counted
