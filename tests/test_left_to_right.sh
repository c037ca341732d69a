#!/bin/sh
# Left-to-right BERT (Devlin et al. 2018, table 5): pretrained from left to right, fine-tuned with the same attention, with and
# without a BiLSTM; its folders open in eval, predict, pipelines and the server.
# Usage: test_left_to_right.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

"$sesame" corpus build --format text --tokenizer "$tmp/vocab.txt" -o "$tmp/corpus" "$tmp/train.tsv" >"$tmp/out" 2>&1 || exit 1
ok "pretrained" exits 0 "$sesame" pretrain -c "$tmp/corpus" --tokenizer "$tmp/vocab.txt" --config "$tmp/config.json" --objective clm \
    --steps 5 --length 16 --threads 1 -o "$tmp/ltr"
ok "causal" grep -q '"is_decoder": true' "$tmp/ltr/config.json"
ok "its class in transformers" grep -q BertLMHeadModel "$tmp/ltr/config.json"

awk 'BEGIN { for (i = 0; i < 60; i++) printf "%s B-PER\nlives O\nin O\n%s B-LOC\n. O\n\n", i % 2 ? "anna" : "bob", i % 3 ? "paris" : "london" }' >"$tmp/tags"
awk 'BEGIN { printf "{\"version\": \"1.1\", \"data\": [{\"title\": \"t\", \"paragraphs\": ["
    for (i = 0; i < 60; i++) {
        who = i % 2 ? "anna" : "bob"; city = i % 3 ? "paris" : "london"
        printf "%s{\"context\": \"%s lives in %s .\", \"qas\": [{\"id\": \"%d\", \"question\": \"where ?\", \"answers\": [{\"text\": \"%s\", \"answer_start\": %d}]}]}", \
            i ? ", " : "", who, city, i, city, length(who) + 10
    }
    print "]}]}" }' >"$tmp/squad.json"

tune() # task, head, score, least, training file, evaluation file, then options
{
    task=$1 head=$2 name=$3 least=$4 train=$5 eval=$6 dir=$tmp/$1-$2
    shift 6
    # shellcheck disable=SC2086
    ok "$task, $head" exits 0 "$sesame" finetune --model "$tmp/ltr" --task "$task" --train "$train" --eval "$eval" --head "$head" \
        --freeze 0 --threads 1 --batch-size 8 --lr 3e-3 --epochs 8 "$@" -o "$dir"
    cp "$tmp/err" "$tmp/notices"
    ok "$task, $head: learned" above "$(score "eval_$name" "$dir/all_results.json")" "$least"
    ok "$task, $head: still causal" grep -q '"is_decoder": true' "$dir/config.json"
    ok "$task, $head: eval" exits 0 "$sesame" eval "$dir" "$eval" --task "$task" --json "$@"
    ok "$task, $head: the same score" test "$(score "eval_$name" "$tmp/out")" = "$(score "eval_$name" "$dir/eval_results.json")"
    ok "$task, $head: predict" exits 0 "$sesame" predict "$dir" "$eval" --task "$task" "$@"
}
notice() { grep -q "$1" "$tmp/notices" || { cat "$tmp/notices"; return 1; }; }

# The label depends on a word in the middle: a classifier of the first token, which sees nothing else, cannot learn it.
tune classify default accuracy 0.95 "$tmp/train.tsv" "$tmp/dev.tsv"
ok "a notice" notice 'reads from left to right: a linear head on the last token'
ok "in config.json" sh -c "tr -d ' \n' <'$tmp/classify-default/config.json' | grep -q '\"sesame_head\":{\"kind\":\"linear\"'"
for head in linear mlp1 bilstm; do
    tune classify $head accuracy 0.95 "$tmp/train.tsv" "$tmp/dev.tsv"
    ok "no notice" sh -c "! grep -q 'left to right' '$tmp/notices'"
done
for head in default bilstm; do
    tune tag $head f1 0.95 "$tmp/tags" "$tmp/tags" --text 1 --label 2
    tune answer $head f1 95 "$tmp/squad.json" "$tmp/squad.json"
    ok "a pipeline" exits 0 "$sesame" question-answering -m "$tmp/answer-$head" --json --context "bob lives in london ." "where ?"
    ok "agrees" out_has london
    ok "a pipeline" exits 0 "$sesame" text-classification -m "$tmp/classify-$head" "it was bad ."
    ok "agrees" out_has neg
done

# Left only: a tag does not depend on the words after it. Of a BiLSTM it does.
first_score() # model, text: the score of the first word
{
    "$sesame" ner -m "$1" -a none --json "$2" | sed 's/.*\[{[^}]*"score": \([0-9.]*\).*/\1/; s/}.*//' >"$tmp/score"
    grep '^0[.][0-9]*$' "$tmp/score" || echo "no score for $2"
}
ok "left only" test "$(first_score "$tmp/tag-default" 'anna lives in paris .')" = "$(first_score "$tmp/tag-default" 'anna was bad')"
ok "both sides" test "$(first_score "$tmp/tag-bilstm" 'anna lives in paris .')" != "$(first_score "$tmp/tag-bilstm" 'anna was bad')"

# Continued, the head stays; a new one is not made.
ok "trained further" exits 0 "$sesame" finetune --model "$tmp/classify-default" --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --threads 1 --steps 2 -o "$tmp/further"
ok "from its weights" above "$(score eval_accuracy "$tmp/further/all_results.json")" 0.95
# An adapter of it has the head, too.
ok "an adapter" exits 0 "$sesame" finetune --model "$tmp/ltr" --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" --threads 1 \
    --batch-size 8 --lr 1e-2 --epochs 6 --adapter lora -o "$tmp/lora"
ok "learned" above "$(score eval_accuracy "$tmp/lora/all_results.json")" 0.95
ok "opens" exits 0 "$sesame" text-classification -m "$tmp/lora" "it was bad ."
ok "agrees" out_has neg
# The head of multiple choice reads the first token.
awk 'BEGIN { print "text\ta\tb\tlabel"; for (i = 0; i < 8; i++) print "it was\tgood film\tbad film\t" i % 2 }' >"$tmp/choices.tsv"
ok "multiple choice" exits 3 "$sesame" finetune --model "$tmp/ltr" --task choose --text text --choices 'a|b' --label label --train "$tmp/choices.tsv" -o "$tmp/x"
ok "the reason" err_has 'choose: the model reads from left to right'

# The server.
"$sesame" serve --port 0 --threads 1 -m "$tmp/classify-bilstm" >"$tmp/serve.out" 2>"$tmp/log" &
pid=$!
trap 'kill $pid 2>/dev/null; wait; rm -rf "$tmp"' EXIT
for _ in $(seq 100); do
    grep -q ' ready in ' "$tmp/log" && break
    sleep 0.1
done
port=$(sed -n 's/.*http:.*:\([0-9]*\)$/\1/p' "$tmp/log")
ok "served" exits 0 "$build/http_post" "$port" /models/classify-bilstm '{"inputs": "it was bad ."}'
ok "agrees" out_has neg

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
