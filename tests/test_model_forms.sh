#!/bin/sh
# Compressed forms of a classifier in the server and in Python: pruned, filled, factorized, with exits, sparse int8.
# Usage: test_model_forms.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# shellcheck disable=SC2086
ok "a model" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --epochs 6 -o "$tmp/plain"
tune="--task classify --train $tmp/train.tsv --threads 1 --lr 3e-3 --batch-size 8"
prune="--heads 0.5 --ffn 0.5 --multiple 4 --data $tmp/train.tsv --task classify"
# shellcheck disable=SC2086
{
    ok "pruned" exits 0 "$sesame" prune "$tmp/plain" $prune -o "$tmp/pruned"
    ok "filled" exits 0 "$sesame" prune "$tmp/plain" $prune --fill -o "$tmp/filled"
    ok "factorized" exits 0 "$sesame" factorize "$tmp/plain" --ratio 0.5 -o "$tmp/factorized"
    ok "exits" exits 0 "$sesame" finetune --model "$tmp/plain" $tune --exits frozen --epochs 4 -o "$tmp/open"
}
ok "with a rule" exits 0 "$sesame" convert "$tmp/open" "$tmp/exits" --exit-rule entropy:0.95
ok "sparse" exits 0 "$sesame" quantize "$tmp/plain" "$tmp/sparse" --dtype int8 --sparse 0.5 --json
ok "zeros" above "$(score zero_blocks "$tmp/out")" 0.5
for x in pruned factorized exits; do
    ok "$x in int8" exits 0 "$sesame" quantize "$tmp/$x" "$tmp/$x-int8" --dtype int8
done
forms="pruned filled factorized exits sparse pruned-int8 factorized-int8 exits-int8"
text='the film was good .'

# The command: the forms differ from each other, the filled one from the pruned one only by rounding.
for x in $forms; do
    ok "$x: command" exits 0 "$sesame" text-classification -m "$tmp/$x" --json --threads 1 --top-k all "$text"
    cp "$tmp/out" "$tmp/$x.want"
    ok "$x: a label" grep -q '"label": "\(pos\|neg\)"' "$tmp/$x.want"
done
ok "exits: layers" grep -q '"layers"' "$tmp/exits.want"

# The server gives the same numbers.
pids=
trap 'kill $pids 2>/dev/null; wait; rm -rf "$tmp"' EXIT
if [ -x "$build/http_post" ]; then
    for x in $forms; do echo "$x=$tmp/$x"; done >"$tmp/models"
    "$sesame" serve --port 0 --threads 1 --models-file "$tmp/models" >"$tmp/serve.out" 2>"$tmp/log" &
    pids=$!
    for _ in $(seq 300); do
        grep -q ' ready in ' "$tmp/log" && break
        kill -0 $pids 2>/dev/null || break
        sleep 0.1
    done
    port=$(sed -n 's/.*http:.*:\([0-9]*\)$/\1/p' "$tmp/log")
    for x in $forms; do
        ok "$x: request" exits 0 "$build/http_post" "$port" "/models/$x" "{\"inputs\":\"$text\"}"
        printf '[%s]\n' "$(cat "$tmp/$x.want")" | tr -d ' ' >"$tmp/want"
        ok "$x: the answer of the command" sh -c "tr -d ' ' <'$tmp/out' | cmp - '$tmp/want'"
    done
else
    skipped=$((skipped + 1))
fi

# So does Python.
if [ -e "$build/_sesame.abi3.so" ] && ! grep -qs '^SESAME_SANITIZE:.*=.*[a-z]' "$build/CMakeCache.txt"; then
    mkdir "$tmp/sesame" && cp python/sesame/*.py* "$build/_sesame.abi3.so" "$tmp/sesame/"
    for x in $forms; do
        ok "$x: Python" exits 0 env PYTHONPATH="$tmp" PYTHONDONTWRITEBYTECODE=1 "${PYTHON-python3}" -c "
import json, sesame
got = sesame.pipeline('text-classification', '$tmp/$x', top_k=None, threads=1)('$text')
want = json.load(open('$tmp/$x.want'))
got = {r['label']: r for r in (got[0] if isinstance(got[0], list) else got)}
assert len(got) == len(want), (got, want)
for r in want:
    assert abs(got[r['label']]['score'] - r['score']) < 1e-6, (got, want)
    assert got[r['label']].get('layers') == r.get('layers'), (got, want)
"
    done
else
    skipped=$((skipped + 1))
fi
counted
