#!/bin/sh
# The commands tokenize and detokenize: lines, JSON objects, truncation, errors, threads.
set -u
build=${1-build}
sesame=$build/sesame
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
unset NO_COLOR CLICOLOR_FORCE SESAME_THREADS
passed=0 failed=0

# expect WANT STATUS INPUT ARGS...: check standard output for INPUT, and the exit status
expect() {
    want=$1 status=$2
    printf '%b' "$3" >"$tmp/in"
    shift 3
    "$sesame" "$@" <"$tmp/in" >"$tmp/out" 2>"$tmp/err"
    got=$?
    if [ $got -eq "$status" ] && [ "$(cat "$tmp/out")" = "$want" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "failed: sesame $*: exit $got"
        echo "  want: $want"
        head -n 3 "$tmp/out" "$tmp/err"
    fi
}
err_has() {
    if grep -qF -- "$1" "$tmp/err"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "failed: stderr lacks \"$1\""
        cat "$tmp/err"
    fi
}

m=$tmp/tokenizer.json
cat >"$m" <<'END'
{"version": "1.0",
 "truncation": {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0},
 "padding": {"strategy": {"Fixed": 5}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
             "pad_type_id": 0, "pad_token": "[PAD]"},
 "added_tokens": [{"id": 2, "content": "[CLS]", "special": true}, {"id": 3, "content": "[SEP]", "special": true}],
 "normalizer": {"type": "BertNormalizer", "lowercase": true},
 "pre_tokenizer": {"type": "BertPreTokenizer"},
 "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
 "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
 "model": {"type": "WordPiece", "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "hello": 4, "wor": 5,
           "##ld": 6, ",": 7, "a": 8, "b": 9}}}
END

# lines
expect '[CLS] hello , wor ##ld [SEP]
[CLS] [SEP]
[CLS] a [SEP]' 0 'Hello, world\n\na\r\n' tokenize -m "$m"
expect '[CLS] a [SEP]
[CLS] b [SEP]' 0 'a\nb' tokenize -m "$tmp" -
expect '' 0 '' tokenize -m "$m"
expect 'a b' 0 'a b\n' tokenize -m "$m" --no-special
expect '' 3 'caf\303\n' tokenize -m "$m"
err_has 'line 1: byte 4: invalid UTF-8'
expect '[CLS] [UNK] [SEP]' 0 'caf\303\n' tokenize -m "$m" --encoding utf-8-replace
printf 'a\n' >"$tmp/one"
printf 'b' >"$tmp/two"
expect '[CLS] a [SEP]
[CLS] b [SEP]
[CLS] a [SEP]' 0 'a\n' tokenize -m "$m" -f "$tmp/one" -f "$tmp/two" -f -

# JSON
expect '{"ids":[2,4,3],"tokens":["[CLS]","hello","[SEP]"],"offsets":[[0,0],[0,5],[0,0]],"byte_offsets":[[0,0],[0,6],[0,0]],"word_ids":[null,0,null],"type_ids":[0,0,0],"special_tokens_mask":[1,0,1]}' \
    0 'h\303\251llo\n' tokenize -m "$m" --json
expect '{"ids":[5],"tokens":["wor"],"offsets":[[1,4]],"byte_offsets":[[2,5]],"word_ids":[0],"type_ids":[0],"special_tokens_mask":[0],"overflowing":[{"ids":[6],"tokens":["##ld"],"offsets":[[4,6]],"byte_offsets":[[5,7]],"word_ids":[0],"type_ids":[0],"special_tokens_mask":[0]}]}' \
    0 '\302\240world b a\n' tokenize -m "$m" --json --no-special --max-length 1 --truncation only_first
expect '[CLS] a b [SEP] hello [SEP]
[CLS] a b [SEP]
{"error":"line 1, column 1 (byte 0): a value expected, not '"'x'"'"}
{"error":"expected a key \"text\" or \"words\""}
{"error":"key \"text\": expected a string, found an integer"}
[CLS] b [SEP]' 1 '{"text": "a b", "text_pair": "Hello"}\n{"words": ["a", "b"]}\nx\n{}\n{"text": 3}\n{"text": "b"}\n' \
    tokenize -m "$m" --jsonl

expect '[CLS] a [SEP] b hello [SEP]
{"error":"key \"words_pair\": must be an array of strings, not an integer"}
{"error":"\"words_pair\" requires \"words\""}' 1 '{"words": ["a"], "words_pair": ["b", "Hello"]}\n{"words": ["a"], "words_pair": 3}\n{"text": "a", "words_pair": []}\n' \
    tokenize -m "$m" --jsonl

# limits
expect '[CLS] a b [SEP]
  + [CLS] a b [SEP]' 0 'a b a b a\n' tokenize -m "$m" --max-length 4 --truncation-side right
expect '[CLS] b a [SEP]
  + [CLS] b a [SEP]' 0 'a b a b a\n' tokenize -m "$m" --max-length 4 --truncation-side left
expect '[CLS] a b [SEP] [PAD]' 0 'a b\n' tokenize -m "$m" --stored-limits
expect '' 2 '' tokenize -m "$m" --stride 2
err_has '--stride requires --max-length'
expect '' 2 '' tokenize -m "$m" --truncation only_first
err_has '--truncation requires --max-length'
expect '' 2 '' tokenize -m "$m" --max-length 4 --stride 4
err_has '--stride 4 must be less than --max-length 4'
expect '' 3 'a b\n' tokenize -m "$m" --max-length 1
err_has 'standard input: line 1: max_length 1 is less than the 2 special tokens'
expect '' 3 '' tokenize -m "$tmp/none"
expect '' 3 '' tokenize -m "$m" -f "$tmp/none"
err_has 'none: No such file or directory'
expect '[UNK]' 0 '' tokenize -m "$m" --no-special none
expect '' 3 '' tokenize -m "$m" --jsonl none
err_has 'none: No such file'
expect '' 2 '' tokenize -m "$m" -f "$tmp/one" a
err_has 'arguments and --file are mutually exclusive'
expect '' 2 '' tokenize -m "$m" - -
err_has "'-' (standard input) is given 2 times"

# arguments are texts, each on one line; the name of a file gets a hint; -f reads files
expect 'hello wor ##ld
a b
a' 0 'a\n' tokenize -m "$m" --no-special 'Hello world' "a
b" -
[ -s "$tmp/err" ] && { failed=$((failed + 1)); cat "$tmp/err"; } || passed=$((passed + 1))
cp "$tmp/one" "$tmp/one.txt"
expect "$("$sesame" tokenize -m "$m" <"$tmp/one")" 0 '' tokenize -m "$m" -f "$tmp/one.txt"
[ -s "$tmp/err" ] && { failed=$((failed + 1)); cat "$tmp/err"; } || passed=$((passed + 1))
expect "$(echo "$tmp/one.txt" | "$sesame" tokenize -m "$m")" 0 '' tokenize -m "$m" "$tmp/one.txt"
err_has "one.txt: a file of this name exists, but arguments are texts; -f FILE reads the texts in it, one per line"

# size limits, full disk, small stack, closed pipe
expect '' 3 '' tokenize -m "$m" -f /dev/zero
err_has '/dev/zero: line 1 is longer than 256 MiB'
expect '{"error":"line 1, column 129 (byte 128): nested deeper than 128 levels"}' 1 \
    "$(awk 'BEGIN { while (i++ < 100000) printf "[" }')" tokenize -m "$m" --jsonl
expect '' 3 'a \000\357\277\275 b\n' tokenize -m "$m"
err_has 'line 1: byte 3: NUL'
"$sesame" tokenize -m "$m" >/dev/full 2>"$tmp/err" <"$tmp/one"
[ $? -eq 1 ] && passed=$((passed + 1)) || { failed=$((failed + 1)); echo "failed: a full disk"; }
err_has 'standard output'
(ulimit -s 256 && awk 'BEGIN { while (i++ < 3000000) printf "a" }' | "$sesame" tokenize -m "$m" --no-special) \
    >"$tmp/out" 2>"$tmp/err"
[ "$(cat "$tmp/out")" = '[UNK]' ] && passed=$((passed + 1)) || { failed=$((failed + 1)); cat "$tmp/err"; }
got=$(yes a | "$sesame" tokenize -m "$m" --no-special 2>"$tmp/err" | head -n 2 | tr '\n' ' ')
[ "$got" = 'a a ' ] && passed=$((passed + 1)) || { failed=$((failed + 1)); echo "failed: a broken pipe: $got"; }

# detokenize
expect 'hello world,

a' 0 '[2, 4, 5, 6, 7, 3]\n[]\n[8]' detokenize -m "$m"
expect '"hello world,"' 0 '[4, 5, 6, 7]' detokenize -m "$m" --json
expect '[CLS] a [SEP]' 0 '[2, 8, 3]\n' detokenize -m "$m" --keep-special
expect 'a' 3 '[8]\n[10]\n' detokenize -m "$m"
err_has 'standard input: line 2: id 10 at index 0 is not in the vocabulary of size 10'
expect '' 3 '{}\n' detokenize -m "$m"
err_has 'no array "ids" in the object'
expect 'hello world,' 0 '{"ids": [4, 5, 6, 7], "tokens": []}\n' detokenize -m "$m"
expect 'hello world,

a' 0 '2 4 5  6 7 3\r\n\n8' detokenize -m "$m"
expect 'hello world,
a' 0 '' detokenize -m "$m" '2 4 5 6 7 3' '[8]'
expect 'hello world,' 0 '' detokenize -m "$m" '4, 5, 6, 7'
for ids in '8 x' '8 -1' '1.5' '8 9a' '[8'; do
    expect '' 3 "$ids\n" detokenize -m "$m"
done
expect '' 3 '4 hello\n' detokenize -m "$m"
err_has 'line 1: hello: expected ids such as 101 7592 102, or a JSON array of ids'
expect '' 3 '99999999999999999999\n' detokenize -m "$m"
err_has 'is not in the vocabulary'

# lines keep their order on any number of threads
awk 'BEGIN { for (i = 0; i < 60000; i++) print (i % 7 ? "a b" : "hello world, a"), i % 3 ? "b" : "" }' >"$tmp/many"
"$sesame" tokenize -m "$m" --json --threads 1 -f "$tmp/many" >"$tmp/1"
for n in 2 5; do
    "$sesame" tokenize -m "$m" --json --threads $n <"$tmp/many" >"$tmp/n"
    if cmp -s "$tmp/1" "$tmp/n" && [ "$(wc -l <"$tmp/n")" -eq 60000 ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "failed: $n threads"
    fi
done

# a truncated .gz file: the complete lines, then an error
if command -v gzip >/dev/null && "$sesame" --version --verbose | grep -q 'zlib.*: in this build'; then
    i=0
    while [ $i -lt 400 ]; do echo "a $i b $((i * 7919))"; i=$((i + 1)); done >"$tmp/numbers"
    gzip -c "$tmp/numbers" | head -c 1500 >"$tmp/truncated.gz"
    gzip -dc "$tmp/truncated.gz" 2>/dev/null | sed '$d' >"$tmp/whole"
    expect "$("$sesame" tokenize -m "$m" -f "$tmp/whole")" 3 '' tokenize -m "$m" -f "$tmp/truncated.gz"
    err_has 'truncated after 1500 bytes'
    [ -s "$tmp/whole" ] && passed=$((passed + 1)) || failed=$((failed + 1))
fi

# Padding: ids and attention_mask by transformers 5.22 (PreTrainedTokenizerFast of the folder, padding="longest" and
# padding="max_length" with truncation).
mkdir "$tmp/right" "$tmp/left"
sed 's/"Fixed": 5/"Fixed": 9/; s/"pad_id": 0/"pad_id": 9/; s/"##ld": 6/"##ld": 6, "<fill>": 10/' "$m" >"$tmp/right/tokenizer.json"
cp "$tmp/right/tokenizer.json" "$tmp/left"
echo '{"pad_token": "[PAD]", "model_max_length": 7}' >"$tmp/right/tokenizer_config.json"
echo '{"pad_token": "<fill>", "padding_side": "left", "model_max_length": 7}' >"$tmp/left/tokenizer_config.json"
padded() { # WANT ARGS...: ids and attention_mask of a pair of texts
    want=$1
    shift
    got=$("$sesame" tokenize --json "$@" 'Hello, world' a |
        sed 's/,"overflowing.*//; s/{"ids":\(\[[0-9,]*\]\).*"attention_mask":\(\[[0-9,]*\]\).*/\1 \2/' | tr '\n' ';')
    if [ "$got" = "$want" ]; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "failed: $*: $got, expected $want"
    fi
}
padded '[2,4,7,5,6,3] [1,1,1,1,1,1];[2,8,3,0,0,0] [1,1,1,0,0,0];' -m "$tmp/right" --padding longest
padded '[2,4,7,5,6,3,0] [1,1,1,1,1,1,0];[2,8,3,0,0,0,0] [1,1,1,0,0,0,0];' -m "$tmp/right" --padding max
padded '[2,4,7,3] [1,1,1,1];[2,8,3,0] [1,1,1,0];' -m "$tmp/right" --padding max --max-length 4
padded '[2,4,7,5,6,3] [1,1,1,1,1,1];[10,10,10,2,8,3] [0,0,0,1,1,1];' -m "$tmp/left" --padding longest
padded '[10,2,4,7,5,6,3] [0,1,1,1,1,1,1];[10,10,10,10,2,8,3] [0,0,0,0,1,1,1];' -m "$tmp/left" --padding max
padded '[2,4,7,3] [1,1,1,1];[10,2,8,3] [0,1,1,1];' -m "$tmp/left" --padding max --max-length 4
expect '<fill> <fill> [CLS] a [SEP]
[CLS] hello wor ##ld [SEP]
{"error":"line 1, column 1 (byte 0): a value expected, not '"'"'x'"'"'"}' 1 '{"text": "a"}\n{"words": ["hello", "world"]}\nx\n' \
    tokenize -m "$tmp/left" --jsonl --padding longest
expect '' 0 '' tokenize -m "$tmp/left" --padding longest
expect '' 2 'a\n' tokenize -m "$m" --padding max
err_has 'the tokenizer stores no maximum length; give --max-length'
expect '' 2 'a\n' tokenize -m "$m" --padding longest --stored-limits
err_has 'mutually exclusive'
sed 's/"\[PAD\]": 0/"zero": 0/' "$m" >"$tmp/unpadded.json"
expect '' 3 'a\n' tokenize -m "$tmp/unpadded.json" --padding longest
err_has 'has no padding token: set "pad_token"'

# An interactive line is answered before the next one.
mkfifo "$tmp/typed" "$tmp/answer"
timeout 60 "$sesame" tokenize -m "$m" --no-special <"$tmp/typed" >"$tmp/answer" &
exec 3>"$tmp/typed" 4<"$tmp/answer"
echo a >&3
if read -r line <&4 && [ "$line" = a ]; then passed=$((passed + 1)); else
    failed=$((failed + 1))
    echo 'failed: an interactive line was not answered at once'
fi
exec 3>&- 4<&-

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
