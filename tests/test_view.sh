#!/bin/sh
# `sesame view` and `sesame heads`: drawings, JSON, pages and their sizes, bad input; then tests/test_view_page.py
# drives the pages in chromium. Values are compared in test_attention_view.c.
set -u
. tests/counted.sh
bert=tests/fixtures/attention/bert bart=tests/fixtures/attention/bart gpt=tests/fixtures/attention/gpt2

run() { "$sesame" "$@" >"$tmp/out" 2>"$tmp/err"; }
refuses() # MESSAGE ARGUMENT...: fails with the message and writes nothing
{
    message=$1
    shift
    run "$@"
    code=$?
    that "$* is refused: $message" '[ $code -ne 0 ] && [ ! -s "$tmp/out" ] && grep -q -e "$message" "$tmp/err"'
}
draws() # PATTERN ARGUMENT...
{
    pattern=$1
    shift
    run "$@"
    code=$?
    that "$* draws $pattern" '[ $code -eq 0 ] && grep -q -e "$pattern" "$tmp/out"'
}
is_json() { run "$@" --json && "$build/json_valid" <"$tmp/out" >/dev/null; }

text='the cat sat on the mat , because it was tired .'
draws 'layers down, heads across' view -m $bert "$text"
draws 'Attention, layer 3, head 2' view -m $bert "$text" --layers 3 --heads 2
draws 'mean of 2 heads' view -m $bert "$text" --mode matrix
draws 'attends most to' view -m $bert "$text" --mode heads --layers 1,2
draws 'q\.k\*scale' view -m $bert "$text" --mode neuron --layers 2 --heads 1 --query 3
draws 'rollout to layer 3' view -m $bert "$text" --mode rollout --words --hide-special
draws 'flow to the last layer' view -m $gpt "$text" --mode flow
draws 'Cross-attention' view -m $bart "$text" --target 'a dog saw it .'
draws 'Cross-attention' view -m $bart "$text" --generate --max-new-tokens 4
draws 'Encoder attention\|Attention' view -m $bart "$text"
draws 'Generated tokens follow' view -m $gpt "$text" --generate --max-new-tokens 3
draws 'tokens were left out' view -m $bert "$text $text $text $text"
that 'a text from standard input' 'echo "$text" | run view -m $bert - && grep -q "layers down" "$tmp/out"'

for mode in heads neuron rollout flow; do
    that "JSON of $mode" 'is_json view -m $bart "$text" --target "a dog ." --mode $mode &&
        grep -q "\"family\": \"cross\"" "$tmp/out" && grep -q "\"analysis\": \"view\"" "$tmp/out"'
done
that 'tokens in the envelope' 'is_json view -m $bert "unhappiness" && grep -q "\"text\": \"##happi\"" "$tmp/out"'
that 'words' 'is_json view -m $bert "unhappiness" --words && grep -q "\"text\": \"unhappiness\"" "$tmp/out"'
that 'chosen heads' 'is_json view -m $bert "$text" --layers 2 --heads 2 && ! grep -q "\"head\": 1" "$tmp/out"'
that 'an SVG' 'run view -m $bert "$text" --svg "$tmp/a.svg" && grep -q "<svg" "$tmp/a.svg"'
that 'the same bits on any threads' 'is_json view -m $bert "$text" --mode flow --threads 1 && cp "$tmp/out" "$tmp/one" &&
    is_json view -m $bert "$text" --mode flow --threads 4 && cmp -s "$tmp/one" "$tmp/out"'

refuses 'the text is empty' view -m $bert ''
refuses 'no decoder' view -m $bert "$text" --target x
refuses 'does not generate' view -m $bert "$text" --generate
refuses '0 is the embeddings' view -m $bert "$text" --layers 0
refuses 'expected numbers and ranges' view -m $bert "$text" --layers 9
refuses '--heads 3: expected' view -m $bert "$text" --heads 3
refuses '--heads 0: expected' view -m $bert "$text" --heads 0
refuses 'the text has' view -m $bert "$text" --mode neuron --query 99
refuses 'leave out --words' view -m $bert "$text" --mode neuron --words
refuses '--query requires' view -m $bert "$text" --query 2
refuses 'missing argument' view -m $bert
refuses 'exclude each other' view -m $bart "$text" --target x --generate

printf '%s\n' "$text" 'a dog saw two birds in the old house .' '' 'unhappiness !' >"$tmp/texts.txt"
printf '1\tthe\tthe\tDET\tX\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\tX\t_\t3\tnsubj\t_\t_\n3\tsat\tsit\tVERB\tX\t_\t0\troot\t_\t_\n\n' \
    >"$tmp/words.conllu"
draws 'Heads by distance' heads -m $bert "$tmp/texts.txt"
draws '3 texts' heads -m $bert "$tmp/texts.txt"
draws '1 texts' heads -m $bert "$tmp/words.conllu"
that 'JSON of heads' 'is_json heads -m $gpt "$tmp/texts.txt" && grep -q "\"max_entropy\"" "$tmp/out" && grep -q "\"matrix\"" "$tmp/out"'
that 'heads without distances' 'is_json heads -m $bert "$tmp/texts.txt" --distance-texts 0 && ! grep -q "\"matrix\"" "$tmp/out"'
that 'heads on any threads' 'is_json heads -m $bert "$tmp/texts.txt" --threads 1 && cp "$tmp/out" "$tmp/one" &&
    is_json heads -m $bert "$tmp/texts.txt" --threads 3 && cmp -s "$tmp/one" "$tmp/out"'
draws 'were truncated' heads -m $bert "$tmp/texts.txt" --max-seq-len 6
: >"$tmp/empty.txt"
refuses 'no text' heads -m $bert "$tmp/empty.txt"
refuses 'No such file' heads -m $bert "$tmp/missing.txt"
refuses '0 is the embeddings' heads -m $bert "$tmp/texts.txt" --layers 0

# ---- pages ----

page() { run view "$@" --overwrite; }
that 'a page' 'page -m $bert "$text" --pair "a dog ." --html "$tmp/bert.html"'
that 'a page of an encoder-decoder' 'page -m $bart "$text" --target "a dog saw it ." --html "$tmp/bart.html"'
that 'a page by word' 'page -m $bert "unhappiness sat" --words --html "$tmp/words.html"'
that 'a page without scripts has tables' 'grep -q "<table>" "$tmp/bert.html"'
that 'no other file' '! grep -q "src=\|href=\"http" "$tmp/bert.html"'
that 'a page is not overwritten' '! run view -m $bert "$text" --html "$tmp/bert.html" && grep -q exists "$tmp/err"'

# Random models of BERT's shape: 72 heads of 64 tokens in 450 kB, 144 heads of 512 tokens in 16 MiB.
printf 'sentence\tlabel\nthe cat\ta\na dog\tb\n' >"$tmp/train.tsv"
random_model() # NAME LAYERS
{
    cat >"$tmp/$1.json" <<EOF
{"model_type": "bert", "vocab_size": 29, "hidden_size": 96, "num_hidden_layers": $2, "num_attention_heads": 12,
 "intermediate_size": 32, "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.2, "pad_token_id": 0}
EOF
    "$sesame" finetune --config "$tmp/$1.json" --tokenizer $bert/tokenizer.json --task classify --train "$tmp/train.tsv" \
        --epochs 1 --threads 1 -q -o "$tmp/$1" >"$tmp/out" 2>"$tmp/err"
}
long=$(awk 'BEGIN { n = split("the cat sat on mat because it was tired a dog saw two birds in old house", w, " ")
    for (i = 0; i < 510; i++) printf "%s ", w[i * 7 % n + 1] }')
that 'a random model' 'random_model six 6 && random_model twelve 12'
that 'a page of 64 tokens' 'page -m "$tmp/six" "$long" --max-seq-len 64 --html "$tmp/64.html"'
that 'a page of 512 tokens' 'page -m "$tmp/twelve" "$long" --html "$tmp/512.html"'
that '64 tokens, 72 heads: at most 450 kB' '[ "$(wc -c <"$tmp/64.html")" -le 450000 ]'
that '512 tokens, 144 heads: at most 16 MiB' '[ "$(wc -c <"$tmp/512.html")" -le 16777216 ]'
that 'the page reports the weights left out' 'grep -q "\"top\": [1-9]" "$tmp/512.html"'
refuses 'would take about' view -m "$tmp/twelve" "$long" --mode flow

python=
for candidate in /usr/bin/python3 python3; do
    "$candidate" -c 'import selenium' 2>/dev/null && python=$candidate && break
done
if [ -z "$python" ] || ! command -v chromedriver >/dev/null 2>&1; then
    skipped=$((skipped + 1))
    echo 'skipped: chromium, its driver or python3-selenium are missing'
    counted
    exit $((failed > 0))
fi
that 'a page from right to left' 'page -m $bert "שלום עולם , cat" --html "$tmp/rtl.html"'
axe=$tmp/axe.min.js
"$python" - "$axe" "$build"/axe/*.whl <<'EOF' || axe=
import importlib.util, pathlib, sys, zipfile
spec = importlib.util.find_spec("axe_playwright_python")
if spec:
    data = (pathlib.Path(spec.origin).parent / "axe.min.js").read_bytes()
elif pathlib.Path(sys.argv[2]).is_file():
    data = zipfile.ZipFile(sys.argv[2]).read("axe_playwright_python/axe.min.js")
else:
    sys.exit(1)
pathlib.Path(sys.argv[1]).write_bytes(data)
EOF
"$python" tests/test_view_page.py "$tmp" $axe >"$tmp/report"
cat "$tmp/report"
eval "$(tail -n 1 "$tmp/report" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)*$/n=\1 bad=\2 out=\4/p')"
passed=$((passed + ${n:-0})) failed=$((failed + ${bad:-1})) skipped=$((skipped + ${out:-0}))
counted
