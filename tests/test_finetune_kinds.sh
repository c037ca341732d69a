#!/bin/sh
# finetune, eval and predict of the kinds whose examples are several texts: choices, rewriting, continuing, comparing.
# Usage: test_finetune_kinds.sh BUILD_DIR, from the source folder.
sesame=$1/sesame
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0

ok() # what, then a command that must succeed
{
    what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "failed: $what"
    fi
}

exits() # code, then a command; its output goes to $tmp/out and $tmp/err
{
    want=$1
    shift
    "$@" >"$tmp/out" 2>"$tmp/err"
    code=$?
    [ $code -eq "$want" ] || { echo "exit $code, expected $want:"; cat "$tmp/out" "$tmp/err"; return 1; }
}

says() { grep -q -- "$1" "$tmp/err" || { cat "$tmp/err"; return 1; }; }
prints() { grep -q -- "$1" "$tmp/out" || { cat "$tmp/out"; return 1; }; }
score() { sed -n "s/.*\"$1\": \([-0-9.e]*\).*/\1/p" "$2" | head -1; } # of a results file
above() { awk -v x="$1" -v least="$2" 'BEGIN { exit !(x >= least) }' || { echo "$1 is below $2"; return 1; }; }

printf '%s\n' '[PAD]' '[UNK]' '[CLS]' '[SEP]' '[MASK]' good bad film the a was it not paris london anna bob lives in \
    of '##s' who where '?' . 1 2 3 >"$tmp/vocab.txt"
cat >"$tmp/config.json" <<END
{"model_type": "bert", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
 "max_position_embeddings": 64, "type_vocab_size": 2, "vocab_size": 100, "hidden_act": "gelu",
 "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "layer_norm_eps": 1e-12, "initializer_range": 0.05}
END
small="--config $tmp/config.json --tokenizer $tmp/vocab.txt --threads 1 --lr 3e-3 --batch-size 8"

refused() # what, exit code, message, options
{
    what=$1 code=$2 message=$3
    shift 3
    # shellcheck disable=SC2086  # several options
    ok "$what" exits "$code" "$sesame" finetune $small -o "$tmp/bad" "$@"
    ok "$what: says so" says "$message"
    ok "$what: leaves nothing" test ! -e "$tmp/bad/config.json"
}

# ---- choose: films are good ----

awk 'BEGIN { print "text,a,b,label"
    for (i = 0; i < 80; i++) {
        r = int(i / 2) % 2
        printf "%s film was,%s,%s,%d\n", i % 2 ? "the" : "a", r ? "bad ." : "good .", r ? "good ." : "bad .", r } }' >"$tmp/choose.csv"
# shellcheck disable=SC2086
ok "choose" exits 0 "$sesame" finetune $small --task choose --choices 'a|b' --train "$tmp/choose.csv" --eval "$tmp/choose.csv" \
    --epochs 8 -o "$tmp/choose"
ok "learned" above "$(score eval_accuracy "$tmp/choose/all_results.json")" 0.95
ok "the reference's class" grep -q BertForMultipleChoice "$tmp/choose/config.json"
ok "eval" exits 0 "$sesame" eval "$tmp/choose" "$tmp/choose.csv" --task choose --choices 'a|b' --json
ok "the same score" test "$(score eval_accuracy "$tmp/out")" = "$(score eval_accuracy "$tmp/choose/eval_results.json")"
cut -d, -f1-3 "$tmp/choose.csv" >"$tmp/open.csv"
ok "predict without labels" exits 0 "$sesame" predict "$tmp/choose" "$tmp/open.csv" --task choose --choices 'a|b'
ok "says which" test "$(head -3 "$tmp/out" | sed 's/"score": [0-9.]*, //' | tr -d '\n')" = \
    '{"choice": 0, "text": "good ."}{"choice": 0, "text": "good ."}{"choice": 1, "text": "good ."}'
score=$(score score "$tmp/out")
ok "a pipeline agrees" exits 0 "$sesame" multiple-choice -m "$tmp/choose" --json "a film was" "good ." "bad ."
ok "to the last digit" prints "\"index\": 0, \"score\": $score,"

# A benchmark: two texts, what all choices begin with is the second.
sed 's/text,a,b,label/premise,choice1,choice2,label/' "$tmp/choose.csv" | awk -F, 'NR > 1 {
    printf "{\"premise\": \"%s\", \"choice1\": \"%s\", \"choice2\": \"%s\", \"question\": \"where ?\", \"label\": %s}\n", $1, $2, $3, $4 }' \
    >"$tmp/copa.jsonl"
# shellcheck disable=SC2086
ok "COPA" exits 0 "$sesame" finetune $small --task superglue-copa --train "$tmp/copa.jsonl" --eval "$tmp/copa.jsonl" --epochs 8 \
    -o "$tmp/copa"
ok "learned" above "$(score eval_accuracy "$tmp/copa/all_results.json")" 0.95

refused "choices that are not named" 3 'the columns of two choices or more' --task choose --train "$tmp/choose.csv"
refused "a choice that is not there" 3 'no column "c"; there are: text, a, b, label' --task choose --choices 'a|c' \
    --train "$tmp/choose.csv"
sed '3s/.$/2/' "$tmp/choose.csv" >"$tmp/third.csv"
refused "a choice too many" 3 'line 3: label "2" is not known; there are: 0, 1' --task choose --choices 'a|b' \
    --train "$tmp/third.csv"
sed '5s/,[^,]*$//' "$tmp/choose.csv" >"$tmp/ragged.csv"
refused "a ragged row of choices" 3 'line 5: 3 fields, the header has 4' --task choose --choices 'a|b' --train "$tmp/ragged.csv"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
