#!/bin/sh
# The command `sesame serve`: errors at the start, signals, and responses with the bits of the other commands.
# Usage: sh tests/test_serve.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_API_KEY_FILE
. tests/counted.sh
m=tests/pipelines
http=$build/http_post

# ---- errors at the start ----

# refuses TEXT OPTION...: the server ends with status 1 to 3 and one line that contains TEXT.
refuses() {
    text=$1
    shift
    timeout 20 "$sesame" serve --port 0 --threads 1 "$@" >"$tmp/out" 2>"$tmp/err"
    code=$?
    that "serve $*: exit status $code" '[ $code -ge 1 ] && [ $code -le 3 ]'
    that "serve $*: names $text" 'grep -qF -- "$text" "$tmp/err"'
    that "serve $*: one message" '[ "$(grep -vc "^Try " "$tmp/err")" -eq 1 ] && [ ! -s "$tmp/out" ]'
}

: >"$tmp/empty"
echo short >"$tmp/short"
echo 'no such model here' >"$tmp/list"
refuses '--api-key-file FILE, or --insecure' --host 0.0.0.0 -m $m/bert-mask
refuses "$tmp/none" --api-key-file "$tmp/none" -m $m/bert-mask
refuses 'contains no key' --api-key-file "$tmp/empty" -m $m/bert-mask
refuses 'at least 8 characters' --api-key-file "$tmp/short" -m $m/bert-mask
refuses "$tmp/none" -m "$tmp/none"
refuses "$tmp/empty: contains no model" --models-file "$tmp/empty"
refuses 'no such model here' --models-file "$tmp/list"
refuses "$tmp/none" --models-file "$tmp/none"
refuses 'port' --port 70000 -m $m/bert-mask
refuses "$tmp/short" --unix-socket "$tmp/short" -m $m/bert-mask
cp -r $m/bert-mask "$tmp/broken"
echo '{"version": "1.0", "model": {"type": "WordPiece", "vocab": [1]}}' >"$tmp/broken/tokenizer.json"
refuses 'tokenizer.json' -m "$tmp/broken"
cp -r $m/bert-mask "$tmp/truncated"
head -c 2000 $m/bert-mask/model.safetensors >"$tmp/truncated/model.safetensors"
refuses 'model.safetensors' -m "$tmp/truncated"

# ---- a server ----

pids=
trap 'kill $pids 2>/dev/null; wait; rm -rf "$tmp"' EXIT

# serve OPTION...: starts a server, waits for its port in $port; its process is $pid.
serve() {
    : >"$tmp/log"
    "$sesame" serve --port 0 --threads 2 "$@" >"$tmp/serve.out" 2>"$tmp/log" &
    pid=$!
    pids="$pids $pid"
    for _ in $(seq 300); do
        grep -q ' ready in ' "$tmp/log" && break
        kill -0 $pid 2>/dev/null || break
        sleep 0.1
    done
    port=$(sed -n 's/.*http:.*:\([0-9]*\)$/\1/p' "$tmp/log")
    grep -q ' ready in ' "$tmp/log" || { cat "$tmp/log"; return 1; }
}
ends() { # the process $pid ends with status $1
    wait $pid
    code=$?
    that "serve ends with status $code, not $1" "[ $code -eq $1 ]"
}

cat >"$tmp/models" <<END_OF_MODELS
# name and folder
mask=$m/bert-mask
label=$m/bert-label
tag=$m/bert-tag
qa=$m/bert-qa
score=$m/bert-score
END_OF_MODELS
that 'a server starts' 'serve -m sesame-gpt --models-file "$tmp/models" --access-log json'

# same PATH BODY BEFORE AFTER COMMAND...: the response equals the command's output, but for spaces.
same() {
    path=$1 body=$2 before=$3 after=$4
    shift 4
    "$http" "$port" "$path" "$body" >"$tmp/out" 2>"$tmp/err" || fail "POST $path"
    printf '%s%s%s\n' "$before" "$("$sesame" "$@" --json --threads 1 2>/dev/null)" "$after" | tr -d ' ' >"$tmp/want"
    tr -d ' ' <"$tmp/out" >"$tmp/got"
    that "$path and $1" 'cmp -s "$tmp/want" "$tmp/got" && [ -s "$tmp/want" ]'
}
text='The keeper of the lighthouse eats plums.'
same /embed "{\"inputs\":\"$text\",\"model\":\"mask\",\"normalize\":false}" '[' ']' embed -m $m/bert-mask "$text"
same /models/label "{\"inputs\":\"$text\"}" '[' ']' text-classification -m $m/bert-label --top-k all "$text"
same /models/tag "{\"inputs\":\"$text\"}" '' '' token-classification -m $m/bert-tag --aggregation-strategy simple "$text"
same /models/qa "{\"inputs\":{\"question\":\"Who eats?\",\"context\":\"$text\"}}" '' '' \
    question-answering -m $m/bert-qa 'Who eats?' "$text"
# longer than the 48 positions: windows
long=$(for _ in 1 2 3 4 5 6 7 8; do printf '%s ' "$text"; done)
same /models/qa "{\"inputs\":{\"question\":\"Who eats?\",\"context\":\"$long\"}}" '' '' \
    question-answering -m $m/bert-qa 'Who eats?' "$long"
same /models/tag "{\"inputs\":\"$long\"}" '' '' token-classification -m $m/bert-tag --aggregation-strategy simple "$long"
same /models/mask '{"inputs":"The [MASK] rings.","parameters":{"targets":["bell","plums"]}}' '' '' \
    fill-mask -m $m/bert-mask --targets bell,plums 'The [MASK] rings.'
same /models/mask '{"inputs":"The [MASK] rings."}' '' '' fill-mask -m $m/bert-mask 'The [MASK] rings.'
same /rerank '{"query":"plums","texts":["It rains.","He sells plums."]}' '' '' \
    rerank -m $m/bert-score plums 'It rains.' 'He sells plums.'
same /models/sesame-gpt '{"inputs":"The town","parameters":{"max_new_tokens":20,"seed":7,"return_full_text":true}}' '' '' \
    text-generation -m sesame-gpt --seed 7 --max-new-tokens 20 'The town'
"$http" "$port" /models/label/pipeline/zero-shot-classification \
    '{"inputs":"plums","parameters":{"candidate_labels":["a","bell"]}}' >"$tmp/out" 2>"$tmp/err"
"$sesame" zero-shot-classification -m $m/bert-label --candidate-labels a,bell --json plums >"$tmp/want" 2>>"$tmp/err"
for label in a bell; do
    score=$(sed "s/.*\"$label\",\"score\":\([0-9.]*\).*/\1/" "$tmp/out")
    that "zero-shot: $label" 'grep -qF -- "$score" "$tmp/want"'
done

# the address is in use
refuses "$port" --port "$port" -m $m/bert-mask

# SIGHUP: models are loaded, unloaded and replaced
{ echo "mask=$m/bert-tag"; echo "new=$m/bert-qa"; } >"$tmp/models"
kill -HUP $pid
for _ in $(seq 100); do
    "$http" "$port" /v1/models/new >"$tmp/out" 2>"$tmp/err" && break
    sleep 0.1
done
that 'SIGHUP loads a model' '"$http" "$port" /v1/models/new >"$tmp/out"'
that 'SIGHUP replaces a model' '"$http" "$port" /v1/models/mask | grep -q token-classification'
sleep 0.2
that 'SIGHUP unloads a model' '! "$http" "$port" /v1/models/label >"$tmp/out"'
that 'SIGHUP keeps models of the command line' '"$http" "$port" /v1/models/sesame-gpt >"$tmp/out"'
echo "mask=$tmp/none" >"$tmp/models"
kill -HUP $pid
for _ in $(seq 100); do
    grep -q 'the loaded models stay' "$tmp/log" && break
    sleep 0.1
done
that 'a failed reload is reported' 'grep -q "reload: .*none.*the loaded models stay" "$tmp/log"'
that 'a failed reload keeps the models' '"$http" "$port" /v1/models/new >"$tmp/out"'

# SIGTERM: requests in progress are answered
"$http" "$port" /v1/completions '{"prompt":"A","max_tokens":400,"n":8,"seed":1}' >"$tmp/last" 2>"$tmp/err" &
client=$!
for _ in $(seq 100); do
    "$http" "$port" /metrics | grep -q '^sesame_admitted_inputs 1' && break
    sleep 0.01
done
kill -TERM $pid
that 'SIGTERM: the request in progress is answered' 'wait $client && grep -q "\"index\":7" "$tmp/last"'
ends 0
that 'the access log has no texts' 'grep -q "\"path\":\"/rerank\"" "$tmp/log" && ! grep -q plums "$tmp/log"'
grep '^{' "$tmp/log" >"$tmp/lines"
that 'the access log is JSON' '"$build/json_valid" --lines <"$tmp/lines"'

# a Unix socket, keys, another address
echo right-key-1 >"$tmp/keys"
that 'a server on a Unix socket' 'serve -m $m/bert-mask --unix-socket "$tmp/socket"'
that 'a request over the socket' '"$http" "$tmp/socket" /embed "{\"inputs\":\"a\"}" >"$tmp/out"'
kill -INT $pid
ends 0
that 'the socket is removed' '[ ! -e "$tmp/socket" ]'
that 'all addresses with a key' 'serve -m $m/bert-mask --host 0.0.0.0 --api-key-file "$tmp/keys"'
that 'without the key' '! "$http" "$port" /embed "{\"inputs\":\"a\"}" >"$tmp/out" && grep -q "API key" "$tmp/out"'
kill -TERM $pid
ends 0
counted
