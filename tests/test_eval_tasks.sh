#!/bin/sh
# eval of language models by task files: output, options, bundled tasks, errors.
# Usage: test_eval_tasks.sh BUILD_DIR, from the source folder.
. tests/counted.sh
data=tests/fixtures/likelihood
run() { "$sesame" eval sesame-gpt "$@" >"$tmp/out" 2>"$tmp/err"; }
has() { grep -q -e "$1" "$tmp/out"; }
err_has() { grep -q -e "$1" "$tmp/err"; }
task() # FIELDS: a task file of multiple choice with more fields
{
    printf '{"task": "t", "output_type": "multiple_choice", "doc_to_text": "{question}", %s}\n' "$1" >"$tmp/t.json"
}
refuses() # CODE MESSAGE ARGUMENT...
{
    code=$1 message=$2
    shift 2
    run "$@"
    [ $? -eq "$code" ] && err_has "$message"
}

# ---- results ----
run $data/choice.tsv --task $data/choice.json
that "a table of scores" 'has "^acc  *0\.[0-9]* " && has "^Baselines  *chance 0.3333, most frequent choice 0.4286"'
that "documents and requests" 'has "^Task  *choice, 7 documents, 0 examples each" && has "^Requests  *42 in "'
run $data/choice.tsv --task $data/choice.json --shots 1 --json --bootstrap 100 --log "$tmp/log"
that "valid JSON" '"$build/json_valid" <"$tmp/out" >/dev/null'
that "scores, errors, intervals" 'has "\"eval_acc_norm\": .*\"eval_acc_norm_stderr\": .*\"eval_acc_norm_low\": .*\"eval_acc_norm_high\": "'
that "one example" 'has "\"num_fewshot\": 1, "'
that "a log of each request" '[ "$(wc -l <"$tmp/log")" -eq 42 ] && grep -q "\"context\": \"a test: the dog had a bone and ate it. where did" "$tmp/log"'
that "unconditional requests" '[ "$(grep -c unconditional "$tmp/log")" -eq 21 ]'
cp "$tmp/log" "$tmp/log1"
for n in 1 50 100000; do
    run $data/choice.tsv --task $data/choice.json --shots 1 --json --log "$tmp/log" --batch-tokens $n -t 1
    that "the same log in passes of $n tokens" 'cmp -s "$tmp/log" "$tmp/log1"'
done
run $data --task $data/choice.json --shots 1 --fewshot $data/choice.tsv --seed 5 --log "$tmp/log"
that "a folder needs the name of a file" '[ $? -ne 0 ] && err_has "expected FILE, because the task file names no test_split"'
for seed in 5 5 6; do
    run $data/choice.tsv --task blimp-pairs --shots 0 >/dev/null
    sed 's/"first_n"/"default"/' $data/choice.json >"$tmp/default.json"
    run $data/choice.tsv --task "$tmp/default.json" --shots 2 --fewshot $data/choice.tsv --seed $seed --log "$tmp/seed$seed"
done
that "examples by the seed" '[ -s "$tmp/seed5" ] && ! cmp -s "$tmp/seed5" "$tmp/seed6"'
run $data/choice.tsv --task "$tmp/default.json" --shots 2 --fewshot $data/choice.tsv --seed 5 --log "$tmp/log" --limit 3
that "--limit keeps the examples" '[ "$(wc -l <"$tmp/log")" -eq 18 ] && head -n 18 "$tmp/seed5" | cmp -s - "$tmp/log"'
run $data/texts.jsonl --task $data/rolling.json
that "perplexity" 'has "^word_perplexity  *[0-9]" && has "^bits_per_byte  *[0-9]" && has "4 documents"'
run $data/words.txt --task lambada
that "a bundled task without --shots" 'has "^perplexity  *[0-9]" && has "^acc "'
run $data/words.txt --task $data/generate.json --log "$tmp/log"
that "greedy output" 'has "^exact_match  *0\.[0-9]*" && grep -q "\"generated\": \".*\"target\": \" fire\"" "$tmp/log"'
"$sesame" eval sesame-small $data/choice.tsv --task $data/choice.json >"$tmp/out" 2>"$tmp/err"
that "a masked model" 'has "^acc_norm  *0\."'
awk 'BEGIN { printf "question\ta\tb\tc\tanswer\n"; for (i = 0; i < 600; i++) printf "word "; print "\tx\ty\tz\ta" }' >"$tmp/long.tsv"
run "$tmp/long.tsv" --task $data/choice.json
that "truncated contexts are counted" 'has "^Truncated  *3 contexts lost tokens"'
for t in tasks/*.json; do
    n=$(basename "$t" .json)
    run "$tmp/none" --task "$n" --shots 0
    that "$n is a valid task" 'err_has "$tmp/none: No such file"'
done
"$sesame" finetune --model sesame-gpt --task continue --train $data/words.txt --lines --adapter lora --lr 0.1 --epochs 2 -q -o "$tmp/lora" >/dev/null 2>&1
mkdir "$tmp/bare" && cp "$tmp"/lora/adapter_* "$tmp/bare/"
for m in "$tmp/lora" "$tmp/bare" sesame-gpt; do
    "$sesame" eval $m $data/choice.tsv --task $data/choice.json --log "$tmp/adapter$(basename $m)" >"$tmp/out" 2>"$tmp/err"
done
that "an adapter with and without a tokenizer" '[ -s "$tmp/adapterlora" ] && cmp -s "$tmp/adapterlora" "$tmp/adapterbare" && ! cmp -s "$tmp/adapterlora" "$tmp/adaptersesame-gpt"'
run $data/choice.tsv --adapter "$tmp/bare" --task $data/choice.json --log "$tmp/adapter"
that "--adapter" 'cmp -s "$tmp/adapter" "$tmp/adapterlora"'

# Each second choice alone has its context to itself, which is then not read into the cache.
alone() # DESCRIPTION TEXT: a task file of the second choices
{
    printf '{"task": "t", "output_type": "loglikelihood", "description": "%s", "doc_to_text": "%s", "doc_to_target": "{b}", "target_delimiter": ""}\n' "$1" "$2" >"$tmp/alone.json"
}
alone "a test: " "{question} "
for k in prefix prompt; do
    "$sesame" finetune --model sesame-gpt --task continue --train $data/words.txt --lines --adapter $k --virtual-tokens 3 --lr 0.1 --steps 2 -q -o "$tmp/$k" >/dev/null 2>&1
    rm -f "$tmp/alone"
    "$sesame" eval "$tmp/$k" $data/choice.tsv --task "$tmp/alone.json" --log "$tmp/alone" >"$tmp/out" 2>"$tmp/err"
    for n in 1 4096; do
        "$sesame" eval "$tmp/$k" $data/choice.tsv --task $data/choice.json --batch-tokens $n --log "$tmp/shared" >"$tmp/out" 2>"$tmp/err"
        for f in alone shared; do
            grep -v unconditional "$tmp/$f" | awk -v f=$f 'f == "alone" || NR % 3 == 2' | sed 's/.*"logprob": \([-0-9.]*\).*/\1/' >"$tmp/$f.p"
        done
        that "virtual tokens ($k) before shared contexts in passes of $n tokens" '[ "$(wc -l <"$tmp/alone.p")" -eq 7 ] && paste "$tmp/alone.p" "$tmp/shared.p" | awk "NF != 2 || (\$1 - \$2) ^ 2 > 1e-8 { exit 1 }"'
    done
done
# A normalizer deletes the context: as without a context.
mkdir "$tmp/deletes"
cp tests/golden/gpt2-lm/*.json tests/golden/gpt2-lm/model.safetensors $data/gpt/tokenizer_config.json "$tmp/deletes/"
sed 's/"normalizer":null/"normalizer":{"type":"Replace","pattern":{"String":"~"},"content":""}/' $data/gpt/tokenizer.json >"$tmp/deletes/tokenizer.json"
for text in '' '~~'; do
    alone "" "$text"
    rm -f "$tmp/log"
    "$sesame" eval "$tmp/deletes" $data/choice.tsv --task "$tmp/alone.json" --log "$tmp/log" >"$tmp/out" 2>"$tmp/err"
    sed 's/.*"continuation"//' "$tmp/log" >"$tmp/deleted${#text}"
done
that "a context without tokens" '[ "$(wc -l <"$tmp/deleted0")" -eq 7 ] && cmp -s "$tmp/deleted0" "$tmp/deleted2"'

# ---- errors ----
that "an unknown task" 'refuses 2 "no task file nonsense: expected FILE.json or one of agnews, " x.tsv --task nonsense --shots 0'
that "--shots without --task" 'refuses 2 "needs --task FILE.json" x.tsv --shots 0'
for o in "limit 3" "log x" "fewshot x" "batch-tokens 4096"; do
    that "--$o without a task file" "refuses 2 '--${o%% *} applies to task files' $data/choice.tsv --$o"
    that "--$o with a task of pairs" "refuses 2 '--${o%% *} applies to task files' $data/choice.tsv --task blimp --$o"
done
for o in "ensemble a,b" baselines "train x" "vectors x"; do
    that "--$o with a task file" "refuses 2 '--${o%% *} does not apply to task files' $data/choice.tsv --task $data/choice.json --$o"
done
that "--ensemble with a task file and no other model" 'refuses 2 "unexpected\|does not apply to task files" --ensemble a,b --task $data/choice.json'
that "two files" 'refuses 2 "a task file takes one" a b --task $data/choice.json'
that "a task file that does not exist" 'refuses 3 "none.json" x.tsv --task "$tmp/none.json"'
echo '{"task": "t"}' >"$tmp/t.json"
that "no documents" 'refuses 3 "documents of task copa (give FILE after the model, or the folder with test.tsv): test.tsv: No such file" --task tasks/copa.json --shots 0'
that "a missing field" 'refuses 3 "t.json: the field \"output_type\" is missing; fields are task, output_type, test_split, " $data/choice.tsv --task "$tmp/t.json"'
task '"doc_to_targets": "x"'
that "an unknown field" 'refuses 3 "t.json: unknown field \"doc_to_targets\"" $data/choice.tsv --task "$tmp/t.json"'
task '"doc_to_target": "{answer}", "doc_to_choice": []'
that "empty choices" 'refuses 3 "\"doc_to_choice\" is empty" $data/choice.tsv --task "$tmp/t.json"'
task '"doc_to_target": "{right}", "doc_to_choice": ["x"]'
that "an absent column" 'refuses 3 "task t: \"doc_to_target\": {right}: .*choice.tsv has no such column; its columns are question, a, b, c, answer" $data/choice.tsv --task "$tmp/t.json"'
task '"doc_to_target": "{answer}", "doc_to_choice": {"x": "yes", "b": "no"}'
that "an unknown label" 'refuses 3 "choice.tsv: line 3: \"doc_to_target\" is \"a\", expected a label" $data/choice.tsv --task "$tmp/t.json"'
task '"doc_to_target": 0, "doc_to_choice": ["a", ""], "target_delimiter": ""'
that "a choice without tokens" 'refuses 3 "choice.tsv: line 2: choice 1 (\"\"): the continuation has no tokens" $data/choice.tsv --task "$tmp/t.json"'
task '"doc_to_target": 0, "doc_to_choice": "{a}"'
that "choices in a column of a table" 'refuses 3 "has no lists, expected JSON lines" $data/choice.tsv --task "$tmp/t.json"'
task '"doc_to_target": 0, "doc_to_choice": ["{a}"], "doc_values": {"a": {"x": "y"}}'
that "a value without replacement" 'refuses 3 "line 2: {a}: \"doc_values\" has no entry for \"a den\"" $data/choice.tsv --task "$tmp/t.json"'
that "too many examples" 'refuses 3 "7 examples were requested, but there are only 2" $data/choice.tsv --task $data/choice.json --shots 7'
that "examples of whole texts" 'refuses 2 "it has no examples, expected --shots 0" $data/texts.jsonl --task $data/rolling.json --shots 1'
that "no file" 'refuses 2 "expected FILE" --task $data/choice.json'
"$sesame" eval sesame-small $data/words.txt --task $data/generate.json >"$tmp/out" 2>"$tmp/err"
that "a masked model generates" '[ $? -ne 0 ] && err_has "predicts masked tokens: it cannot generate text, which task generate (generate_until) needs"'
"$sesame" eval sesame-ner $data/choice.tsv --task $data/choice.json >"$tmp/out" 2>"$tmp/err"
that "a model without an LM head" '[ $? -ne 0 ] && err_has "does not predict tokens: expected a causal, masked or sequence-to-sequence"'
: >"$tmp/empty.tsv"
that "an empty file" 'refuses 3 "empty.tsv: " "$tmp/empty.tsv" --task $data/choice.json'
"$sesame" eval sesame-gpt --task blimp >"$tmp/out" 2>"$tmp/err"
that "other evaluations need a file" '[ $? -eq 2 ] && err_has "expected a FILE with labeled examples"'
counted
