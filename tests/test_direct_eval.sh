#!/bin/sh
# eval of tasks that need no fine-tuning: LAMA (facts), CheckList (behavioral tests), options of minimal pairs.
# Usage: test_direct_eval.sh BUILD_DIR, from the source folder.
. tests/counted.sh
data=tests/fixtures/eval
lama() { m=$1; shift; "$sesame" eval "$m" "$data/lama.jsonl" --task lama --json -q "$@" >"$tmp/out" 2>"$tmp/err"; }
number() { sed -n "s/.*\"$1\": \([0-9.]*\).*/\1/p" "$tmp/out"; }
err_has() { grep -q -e "$1" "$tmp/err"; }
refuses() # CODE LINE MESSAGE: an evaluation of this line fails with this message
{
    printf '%s\n' "$2" >"$tmp/bad.jsonl"
    "$sesame" eval "$model" "$tmp/bad.jsonl" --task "$task" >"$tmp/out" 2>"$tmp/err"
    [ $? -eq "$1" ] && err_has "bad.jsonl: line 1: .*$3"
}

# ---- facts: ranks as by fill-mask, which is tested against transformers ----
hits=0 all=0 sum=0
while IFS='|' read -r text answer; do
    rank=$("$sesame" fill-mask -m sesame-small --top-k all --json "$text" 2>/dev/null |
        grep -o '"token_str": "[^"]*"' | grep -n -x "\"token_str\": \"$answer\"" | cut -d: -f1)
    all=$((all + 1))
    [ "$rank" = 1 ] && hits=$((hits + 1))
    sum=$(awk -v s="$sum" -v r="$rank" 'BEGIN { printf "%.9f", s + 1 / r }')
done <<EOT
Paris is the capital of [MASK].|france
Madrid is the capital of [MASK].|spain
Rome is the capital of [MASK].|italy
Berlin is the capital of [MASK].|germany
EOT
lama sesame-small && grep -o '{"name": "capital"[^}]*' "$tmp/out" >"$tmp/capital"
that "four facts" '[ $all -eq 4 ] && grep -q "\"facts\": 4, " "$tmp/capital"'
that "P@1 as by fill-mask" "awk -v h=$hits 'BEGIN { exit !(h / 4 == $(sed 's/.*at_1": \([0-9.]*\).*/\1/' "$tmp/capital")) }'"
that "MRR as by fill-mask" "awk -v s=$sum 'BEGIN { d = s / 4 - $(sed 's/.*mrr": \([0-9.]*\).*/\1/' "$tmp/capital"); exit !(d < 1e-8 && d > -1e-8) }'"
that "eight facts count" '[ "$(number eval_samples)" = 8 ]'
that "two are left out" 'grep -q "{\"not_one_mask\": 1, \"answer_not_one_token\": 1, \"answer_not_a_candidate\": 0, \"too_long\": 0}, \"relations\"" "$tmp/out"'
that "a relation without facts has no score" 'grep -q "\"IsA\", \"facts\": 0, \"precision_at_1\": null" "$tmp/out"'
whole=$(number eval_mrr)
lama sesame-small --candidates $data/lama-candidates.txt
that "11 candidates, one word has several tokens" '[ "$(number candidates)" = 11 ]'
that "a better rank among them" 'awk -v a=$(number eval_mrr) -v b=$whole "BEGIN { exit !(a > b) }"'
lama sesame-small --relations $data/lama-relations.jsonl
that "templates of relations" 'grep -q "\"P103\", \"facts\": 2, \"precision_at_1\": [0-9.]*, \"precision_at_10\": 1.0" "$tmp/out"'
lama sesame-gpt
that "a causal model" '[ "$(number eval_samples)" = 6 ]'
"$sesame" eval sesame-small $data/lama.jsonl $data/lama.jsonl --task lama >"$tmp/out" 2>"$tmp/err"
that "two files" 'grep -q "^all facts  *16 " "$tmp/out"'
cat $data/lama.jsonl | "$sesame" eval sesame-small - --task lama >"$tmp/two" 2>&1
that "standard input" 'grep -q "^all facts  *8 " "$tmp/two"'
# Minimal pairs: how a sentence is scored.
printf 'UID\tgood\tbad\nx\tThe unbelievably tired cats sleep.\tThe unbelievably tired cats sleeps.\n' >"$tmp/pairs.tsv"
pairs() { "$sesame" eval "$@" >"$tmp/out" 2>"$tmp/err"; }
that "pairs, the rest of words masked" 'pairs sesame-small "$tmp/pairs.tsv" --task blimp --pll word --temperature 2 && grep -q "100.00 % of 1 pairs" "$tmp/out"'
score() { "$sesame" prefer "$@" 'unbelievably tired cats' 'unbelievably tired cat' | awk 'NR == 1 { print $1 }'; }
plain=$(score) words=$(score --pll word) warm=$(score --temperature 2)
that "fewer pieces of a word to guess from" 'awk "BEGIN { exit !($words < $plain - 5) }"'
that "a flatter distribution" 'awk "BEGIN { exit !($warm < $plain - 1) }"'
that "no masks" '! pairs sesame-gpt "$tmp/pairs.tsv" --task blimp --pll word && err_has "pll word: .*sesame-gpt: GPT2LMHeadModel is a causal model, expected a masked one"'
pairs sesame-small "$tmp/pairs.tsv" --task blimp --pll word --temperature 2 --json
that "the scoring in the results" 'grep -q "\"eval_samples\": 1, \"pll\": \"word\", \"temperature\": 2.0, \"paradigms\"" "$tmp/out"'
for o in '--pll token' '--temperature 1'; do
    that "$o of another task" '! pairs sesame-small $data/lama.jsonl --task lama $o && err_has "${o% *} applies to --task blimp and --task agreement"'
done
that "temperature 0" '! pairs sesame-small "$tmp/pairs.tsv" --task blimp --temperature 0 && err_has "0 is out of range"'
"$sesame" eval sesame-small x y --task blimp >"$tmp/out" 2>"$tmp/err"
that "two files of another task" '[ $? -ne 0 ] && err_has "only --task lama and --task checklist take several"'
lama sesame-ner
that "a model without an LM head" 'err_has "does not predict tokens: LAMA needs a masked or causal language model"'
task=lama model=sesame-small
that "not an object" 'refuses 3 "[1]" "an array, expected an object"'
that "no answer" 'refuses 3 "{\"masked_sentences\": [\"[MASK]\"]}" "expected the key \"obj_label\""'
that "no text" 'refuses 3 "{\"obj_label\": \"a\"}" "expected \"masked_sentences\""'
that "a text of the wrong type" 'refuses 3 "{\"obj_label\": \"a\", \"masked_sentences\": [1]}" "masked_sentences"'
that "damaged" 'refuses 3 "{\"obj_label\": " "column"'
: >"$tmp/empty.jsonl"
"$sesame" eval sesame-small "$tmp/empty.jsonl" --task lama >"$tmp/out" 2>"$tmp/err"
that "no facts" '[ $? -eq 3 ] && err_has "empty.jsonl: no facts"'
awk 'BEGIN { printf "{\"obj_label\": \"france\", \"masked_sentences\": [\""; for (i = 0; i < 20000; i++) printf "word "; print "[MASK]\"]}" }' >"$tmp/long.jsonl"
"$sesame" eval sesame-small "$tmp/long.jsonl" --task lama --json >"$tmp/out" 2>"$tmp/err"
that "a text longer than the model" 'grep -q "\"too_long\": 1" "$tmp/out"'
"$sesame" eval sesame-small $data/lama.jsonl --task lama --template "no marks" >"$tmp/out" 2>"$tmp/err"
that "a template without marks" '[ $? -eq 3 ] && err_has "expected \[X\] for the subject and \[Y\]"'

# ---- behavioral tests ----
task=checklist model=sesame-sentiment
"$sesame" eval $model $data/checklist.jsonl --task checklist --json >"$tmp/out" 2>"$tmp/err"
that "seven cases" '[ "$(number eval_samples)" = 7 ]'
that "valid JSON" '"$build/json_valid" <"$tmp/out" >/dev/null'
cat >"$tmp/fails.jsonl" <<'EOT'
{"type": "MFT", "name": "wrong", "text": "The film was great.", "label": "negative"}
{"type": "MFT", "name": "wrong", "text": "The film was great.", "label": "positive"}
{"type": "INV", "name": "opposite", "texts": ["The film was great.", "The film was terrible."]}
{"type": "INV", "name": "tolerated", "texts": ["The film was great.", "The film was terrible."], "tolerance": 1}
{"type": "DIR", "name": "against", "texts": ["I saw it on Monday.", "I saw it on Monday. I hated it."], "label": 1}
{"type": "DIR", "name": "cannot fail", "texts": ["I hated it.", "I loved it."], "label": 1, "tolerance": 1}
EOT
"$sesame" eval $model "$tmp/fails.jsonl" --task checklist --json >"$tmp/out" 2>"$tmp/err"
that "MFT fails" 'grep -q "\"wrong\", \"type\": \"MFT\", \"cases\": 2, \"failed\": 1, \"failure_rate\": 0.5, \"left_out\": 0, \"first_failed_line\": 1}" "$tmp/out"'
that "INV fails" 'grep -q "\"opposite\", \"type\": \"INV\", \"cases\": 1, \"failed\": 1" "$tmp/out"'
that "within the tolerance" 'grep -q "\"tolerated\", \"type\": \"INV\", \"cases\": 1, \"failed\": 0" "$tmp/out"'
that "DIR fails" 'grep -q "\"against\", \"type\": \"DIR\", \"cases\": 1, \"failed\": 1" "$tmp/out"'
that "DIR that cannot fail" 'grep -q "\"cannot fail\", \"type\": \"DIR\", \"cases\": 0, \"failed\": 0, \"failure_rate\": 0.0, \"left_out\": 1" "$tmp/out"'
"$sesame" eval $model "$tmp/fails.jsonl" --task checklist >"$tmp/out" 2>"$tmp/err"
that "rates by type" 'grep -q "^INV  *50.0 % of 2 cases fail" "$tmp/out"'
"$sesame" eval sesame-nli $data/checklist.jsonl --task checklist >"$tmp/out" 2>"$tmp/err"
that "a label that the model does not have" 'err_has "checklist.jsonl: line 1: label \"positive\" is not a label of the model: "'
echo '{"type": "MFT", "name": "pairs", "texts": [["A man sleeps.", "A person sleeps."]], "label": "entailment"}' >"$tmp/pairs.jsonl"
"$sesame" eval sesame-nli "$tmp/pairs.jsonl" --task checklist --json >"$tmp/out" 2>"$tmp/err"
that "pairs of texts" '[ "$(number failed)" = 0 ] && [ "$(number eval_samples)" = 1 ]'
that "an unknown type" 'refuses 3 "{\"type\": \"XYZ\"}" "\"XYZ\", expected \"MFT\", \"INV\" or \"DIR\""'
that "one text of INV" 'refuses 3 "{\"type\": \"INV\", \"texts\": [\"a\"]}" "at least 2 texts"'
that "MFT without a label" 'refuses 3 "{\"type\": \"MFT\", \"text\": \"a\"}" "expected the key \"label\""'
that "labels of another number" 'refuses 3 "{\"type\": \"MFT\", \"text\": \"a\", \"labels\": [1, 1]}" "a list of 1, one for each text"'
that "a tolerance above 1" 'refuses 3 "{\"type\": \"INV\", \"texts\": [\"a\", \"b\"], \"tolerance\": 2}" "from 0 to 1"'
"$sesame" eval sesame-small $data/checklist.jsonl --task checklist >"$tmp/out" 2>"$tmp/err"
that "a model that does not classify" '[ $? -ne 0 ] && err_has "does not support text-classification"'
counted
