# The example in one file, examples/minimal/bert.c: its output is that of the pipelines. Usage: sh tests/test_minimal.sh BUILD_DIR
set -u
build=$1 sesame=$1/sesame bert=$1/examples/minimal
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0
ok() { # NAME COMMAND...: the command succeeds
    name=$1
    shift
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)) && echo "FAILED $name"; fi
}
# column N: of the program's output
column() { awk -F "\t" -v n="$1" '{ print $n }' "$tmp/ours"; }
# values FILE KEY: the strings of a key of --json, a line each; numbers FILE KEY: the numbers
values() { grep -o "\"$2\": \"[^\"]*\"" "$1" | sed 's/^"[a-z_]*": "//; s/"$//'; }
numbers() { grep -o "\"$2\": [0-9.e-]*" "$1" | sed 's/.*: //'; }
# near FILE FILE: numbers line by line, at most 2e-6 apart, and as many
near() {
    [ -s "$1" ] && paste "$1" "$2" | awk 'NF != 2 || ($1 - $2) ^ 2 > 4e-12 { bad = 1 } END { exit bad }'
}

for text in 'The [MASK] rings at noon.' "Nobody's café is [MASK], ÀÉÎÕÜ [MASK]!" '  two   words [MASK]' 'x.y-z (42%) $5 [MASK]' '新しい[MASK]。' 'a [SEP] noon [MASK] [UNK]'; do
    ok "fill-mask runs: $text" "$bert" tests/pipelines/bert-mask "$text" >"$tmp/ours"
    "$sesame" fill-mask -m tests/pipelines/bert-mask --top-k 5 --json "$text" >"$tmp/json"
    column 1 >"$tmp/tokens"
    column 2 >"$tmp/scores"
    values "$tmp/json" token_str >"$tmp/tokens.expected"
    numbers "$tmp/json" score >"$tmp/scores.expected"
    ok "fill-mask: tokens: $text" cmp -s "$tmp/tokens" "$tmp/tokens.expected"
    ok "fill-mask: scores: $text" near "$tmp/scores" "$tmp/scores.expected"
done

for text in 'Nobody went home at noon.' 'unbelievably' 'a;b c!d'; do
    ok "tags run: $text" "$bert" tests/pipelines/bert-tag "$text" >"$tmp/ours"
    "$sesame" token-classification -m tests/pipelines/bert-tag --ignore-labels '' --json "$text" >"$tmp/json"
    column 1 >"$tmp/tokens"
    column 3 >"$tmp/scores"
    values "$tmp/json" word >"$tmp/tokens.expected"
    numbers "$tmp/json" score >"$tmp/scores.expected"
    ok "tags: tokens: $text" cmp -s "$tmp/tokens" "$tmp/tokens.expected"
    ok "tags: scores: $text" near "$tmp/scores" "$tmp/scores.expected"
done

text='Nobody went home at noon.'
"$bert" tests/pipelines/bert-label "$text" | sort >"$tmp/ours"
"$sesame" text-classification -m tests/pipelines/bert-label --top-k all --json "$text" >"$tmp/json"
values "$tmp/json" label | sort >"$tmp/labels.expected"
column 1 >"$tmp/labels"
column 2 | sort >"$tmp/scores"
numbers "$tmp/json" score | sort >"$tmp/scores.expected"
ok 'labels' cmp -s "$tmp/labels" "$tmp/labels.expected"
ok 'scores of labels' near "$tmp/scores" "$tmp/scores.expected"

# Old file sets: a vocabulary of lines.
mkdir "$tmp/old"
cp tests/pipelines/bert-mask/config.json tests/pipelines/bert-mask/model.safetensors "$tmp/old"
sed 's/.*"vocab":{//; s/}.*//; s/\(:[0-9]*\),"/\1\n"/g' tests/pipelines/bert-mask/tokenizer.json |
    sed 's/\\"/"/g; s/\\\\/\\/g; s/^"\(.*\)":\([0-9]*\)$/\2 \1/' | sort -n | sed 's/^[0-9]* //' >"$tmp/old/vocab.txt"
"$bert" tests/pipelines/bert-mask 'The [MASK] rings at noon.' >"$tmp/new"
ok 'vocab.txt' sh -c "'$bert' '$tmp/old' 'The [MASK] rings at noon.' | cmp -s - '$tmp/new'"

# refused NAME MESSAGE FOLDER TEXT: exits with 1 and this message
refused() {
    "$bert" "$3" "$4" >"$tmp/out" 2>"$tmp/err"
    code=$?
    ok "$1: exit 1" [ $code -eq 1 ]
    ok "$1: message" grep -q "$2" "$tmp/err"
}
refused 'no folder' 'no config.json' "$tmp/none" x
refused 'another model' 'model_type: must be bert' tests/pipelines/roberta-mask x
refused 'another head' 'BertForQuestionAnswering: this head is not in the example' tests/pipelines/bert-qa x
refused 'no mask' 'it has no .MASK.' tests/pipelines/bert-mask 'a [mask] b'
refused 'a score' 'regression' tests/pipelines/bert-score 'fine'
"$bert" tests/pipelines/bert-mask '“Łódź” [MASK]' >"$tmp/out" 2>"$tmp/err"
ok 'letters beyond Latin-1: a note' grep -q 'above U+00FF' "$tmp/err"
refused 'a long text' 'longer than' tests/pipelines/bert-mask "$(printf 'noon %.0s' $(seq 60))"
refused 'a text that is not UTF-8' 'is not UTF-8' tests/pipelines/bert-mask "$(printf 'caf\351')"
head -c 9000 tests/pipelines/bert-mask/model.safetensors >"$tmp/old/model.safetensors"
refused 'a truncated file' 'ends behind the file' "$tmp/old" x
printf '\377\377\377\377\377\377\377\377{}' >"$tmp/old/model.safetensors"
refused 'a header of wrong size' 'truncated' "$tmp/old" x
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
