#!/bin/sh
# The web page of `sesame serve` in a real browser: starts the server with the bundled models and tiny ones for the
# other tasks, then tests/test_web.py drives every panel. Skipped without chromium, its driver or python3-selenium.
# axe-core is taken from the Python package axe-playwright-python: installed, or a wheel in BUILD_DIR/axe.
set -u
. tests/counted.sh

skip_all() {
    echo "skipped: $1"
    skipped=1
    counted
    exit 0
}

python=
for candidate in /usr/bin/python3 python3; do
    "$candidate" -c 'import selenium' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || skip_all 'python3-selenium is not installed'
command -v chromedriver >/dev/null 2>&1 || skip_all 'chromium-driver is not installed'
command -v chromium >/dev/null 2>&1 || skip_all 'chromium is not installed'
[ -f models/sesame-small/config.json ] || skip_all 'the bundled models are missing'

axe=$tmp/axe.min.js
"$python" - "$axe" "$build"/axe/*.whl <<'END' || axe=
import importlib.util, pathlib, sys, zipfile
spec = importlib.util.find_spec("axe_playwright_python")
if spec:
    data = (pathlib.Path(spec.origin).parent / "axe.min.js").read_bytes()
elif pathlib.Path(sys.argv[2]).is_file():
    data = zipfile.ZipFile(sys.argv[2]).read("axe_playwright_python/axe.min.js")
else:
    sys.exit(1)
pathlib.Path(sys.argv[1]).write_bytes(data)
END

# A server with sanitizers is slow.
grep -qs '^SESAME_SANITIZE:.*=.' "$build/CMakeCache.txt" && axe=

# An encoder-decoder: it writes nonsense.
printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' the weather bridge town is of a to . , >"$tmp/vocab.txt"
cat >"$tmp/bart.json" <<'END'
{"model_type": "bart", "vocab_size": 15, "d_model": 32, "encoder_layers": 1, "decoder_layers": 1,
 "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
 "max_position_embeddings": 512, "init_std": 0.05, "is_encoder_decoder": true, "pad_token_id": 0, "bos_token_id": 2,
 "eos_token_id": 3, "decoder_start_token_id": 3}
END
printf 'source\ttarget\nthe weather is of the town .\tthe bridge\nthe bridge of a town\tthe weather\n' >"$tmp/pairs.tsv"
that 'a tiny encoder-decoder' '"$sesame" finetune --config "$tmp/bart.json" --tokenizer "$tmp/vocab.txt" --task rewrite \
    --train "$tmp/pairs.tsv" --epochs 1 --threads 1 -q -o "$tmp/bart" >"$tmp/out" 2>"$tmp/err"'

# serve NAME OPTION...: starts a server, and waits for its address in $url.
pids=
serve() {
    log=$tmp/$1.log
    : >"$log"
    shift
    "$sesame" serve --port 0 "$@" >"$log" 2>&1 &
    pids="$pids $!"
    url=
    for _ in $(seq 200); do
        url=$(sed -n 's/.* at \(http:[^ ]*\).*/\1/p' "$log" | head -n 1)
        [ -z "$url" ] || return 0
        sleep 0.1
    done
    cat "$log"
    return 1
}
trap 'kill $pids 2>/dev/null; wait; rm -rf "$tmp"' EXIT

models=
for dir in models/*/; do models="$models -m $(basename "$dir")"; done
# shellcheck disable=SC2086  # a list of options
that 'a server' 'serve all $models -m "ranker=tests/pipelines/bert-score" -m "rewriter=$tmp/bart"'
all=$url
that 'a server with one model' 'serve few -m sesame-small'
few=$url
echo right-key >"$tmp/keys"
chmod 600 "$tmp/keys"
that 'a server with a key' 'serve keyed -m sesame-sentiment --api-key-file "$tmp/keys"'
keyed=$url
[ $failed -eq 0 ] || { counted; exit 1; }

"$python" tests/test_web.py "$all" --few "$few" --keyed "$keyed" --build "$build" ${axe:+--axe "$axe"} | tee "$tmp/report"
eval "$(tail -n 1 "$tmp/report" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)*$/n=\1 bad=\2 out=\4/p')"
passed=$((passed + ${n:-0})) failed=$((failed + ${bad:-1})) skipped=$((skipped + ${out:-0}))
counted
