#!/bin/sh
# Folders of `finetune --method` in other commands: `sesame info` describes them, `sesame serve` classifies with them, with
# the numbers of `sesame text-classification`.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_API_KEY_FILE
. tests/counted.sh
http=$build/http_post

awk 'BEGIN { print "text\tlabel"; for (i = 0; i < 60; i++) printf "%s number %d\t%s\n", i % 3 ? "a good film" : "a dull play", i % 7, i % 3 ? "pos" : "neg" }' >"$tmp/train.tsv"
printf '4 2\ngood 1 0\ndull 0 1\nfilm 0.5 0.1\nplay 0.1 0.5\n' >"$tmp/vectors"
for method in majority nb nb-svm logreg cbow fasttext; do
    more=
    [ $method = cbow ] && more="--vectors $tmp/vectors"
    that "$method: trained" '"$sesame" finetune -q --method $method --task classify --train "$tmp/train.tsv" --output "$tmp/$method" $more >"$tmp/out" 2>"$tmp/err"'
    that "$method: info" '"$sesame" info "$tmp/$method" >"$tmp/out" 2>"$tmp/err" && grep -q "^Classifier  *$method: " "$tmp/out" &&
        grep -q "^Labels  *2: neg, pos$" "$tmp/out" && grep -q "^Size  *[0-9]" "$tmp/out"'
    that "$method: info --json" '"$sesame" info --json "$tmp/$method" >"$tmp/out" && grep -q "\"method\": \"$method\".*\"labels\": \[\"neg\", \"pos\"\].*\"bytes\": [1-9]" "$tmp/out"'
done
that 'features of n-grams' '"$sesame" info "$tmp/nb" | grep -q "^Features  *26$"'
that 'settings' '"$sesame" info "$tmp/nb" | grep -q "^Settings  *words text, ngrams 2"'
that 'features are known words' '"$sesame" info "$tmp/cbow" | grep -q "^Features  *4$"'
that 'tensors' '"$sesame" info --tensors "$tmp/nb" >"$tmp/out" 2>"$tmp/err" && [ -s "$tmp/out" ]'
cp -r "$tmp/nb" "$tmp/damaged"
head -c 100 "$tmp/nb/model.safetensors" >"$tmp/damaged/model.safetensors"
that 'info of a damaged folder' '! "$sesame" info "$tmp/damaged" >"$tmp/out" 2>"$tmp/err" && grep -q "model.safetensors" "$tmp/err"'
that 'serve: a damaged folder' '! timeout 20 "$sesame" serve --port 0 -m "$tmp/damaged" 2>"$tmp/err" && grep -q "model.safetensors" "$tmp/err"'

# ---- a server with classifiers and an encoder ----

pid=
trap 'kill $pid 2>/dev/null; wait; rm -rf "$tmp"' EXIT
"$sesame" serve --port 0 --threads 2 -m "$tmp/nb-svm" -m fast="$tmp/fasttext" -m cbow="$tmp/cbow" -m mask=tests/pipelines/bert-mask --admin \
    >"$tmp/serve.out" 2>"$tmp/log" &
pid=$!
for _ in $(seq 300); do
    grep -q ' ready in ' "$tmp/log" && break
    sleep 0.1
done
port=$(sed -n 's/.*http:.*:\([0-9]*\)$/\1/p' "$tmp/log")

post() { "$http" "$port" "$@" >"$tmp/out" 2>"$tmp/err"; }
has() { grep -qF -- "$1" "$tmp/out"; }
same() { # same NAME FOLDER TEXT: the scores of the command
    post "/models/$1" "{\"inputs\":\"$3\"}" && printf '[%s]\n' "$("$sesame" text-classification -m "$tmp/$2" --top-k all --json "$3" 2>/dev/null)" | tr -d ' ' >"$tmp/want" &&
        tr -d ' ' <"$tmp/out" | cmp -s - "$tmp/want"
}
for text in 'a good film' 'the dull play of 1' 'unknown'; do
    that "nb-svm: $text" 'same nb-svm nb-svm "$text"'
    that "fastText: $text" 'same fast fasttext "$text"'
    that "CBoW: $text" 'same cbow cbow "$text"'
done
that 'models' 'post /v1/models && has "\"id\":\"fast\"" && has "\"architecture\":\"nb-svm\"" && has "\"tasks\":[\"text-classification\"],\"architecture\":\"nb-svm\",\"model_type\":\"sesame_classifier\"" && has "\"labels\":[\"neg\",\"pos\"]"'
that '/info' 'post /info && has "\"model_type\":{\"classifier\":{}}"'
that '/api/tags' 'post /api/tags && has "sesame_classifier"'
that '/predict' 'post /predict "{\"inputs\":[[\"a good film\"],[\"a dull play\"]]}" && has "\"label\":\"pos\"},{" && has "\"label\":\"neg\"},{"'
that '/classify' 'post /classify "{\"input\":[\"a good film\",\"a dull play\"],\"model\":\"fast\"}" && has "\"label\":\"neg\",\"probs\":["'
that 'the best label of /' 'post / "{\"inputs\":\"a good film\",\"parameters\":{\"top_k\":1}}" && has "pos" && ! has "neg"'
that 'other names of labels' 'post /models/nb-svm "{\"inputs\":\"a good film\",\"parameters\":{\"labels\":\"pos=good\"}}" && has "\"label\":\"good\"" && post /models/nb-svm "{\"inputs\":\"a good film\"}" && has "\"label\":\"pos\""'
that 'a list' 'post /models/fast "{\"inputs\":[\"a good film\",\"a dull play\"]}" && has "],["'
that 'an encoder beside them' 'post /embed "{\"inputs\":\"the bell\"}" && post /tokenize "{\"inputs\":\"the bell\",\"model\":\"mask\"}"'
for i in $(seq 40); do post /models/nb-svm "{\"inputs\":\"x\",\"parameters\":{\"labels\":\"pos=name$i\"}}" || fail "labels $i"; done
that 'many settings' 'same nb-svm nb-svm "a good film"'
that 'reload' 'post /admin/models/nb-svm/reload "{}" && same nb-svm nb-svm "a good film"'

refuses() { # refuses TEXT PATH BODY
    if post "$2" "$3"; then fail "$2 accepts $3"; elif has "$1"; then pass; else fail "$2: $(cat "$tmp/out")"; fi
}
refuses 'has probabilities only' /predict '{"inputs":"a good film","raw_scores":true}'
refuses 'it has no tokenizer' /tokenize '{"inputs":"a"}'
refuses 'it has no tokenizer' /decode '{"ids":[1]}'
refuses 'fast does not support embed' /v1/embeddings '{"input":"x","model":"fast"}'
refuses 'fast does not support feature-extraction' /attention '{"inputs":"x","model":"fast"}'
refuses 'fast does not support text-generation' /v1/completions '{"prompt":"x","model":"fast"}'
refuses 'fast is a classifier of words: analyses need a neural model' /analyze '{"analysis":"explain","inputs":"x","model":"fast"}'
that 'the server ends' 'kill $pid && wait $pid'

counted
