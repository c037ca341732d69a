#!/bin/sh
# Question answering by beam search (XLNetForQuestionAnswering, XLMForQuestionAnswering): fine-tuning, evaluation with
# questions that have no answer, the pipeline. Usage: test_answer_beam.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# XLNet reads the passage before the question, and CLS is the last token.
mkdir "$tmp/xlnet" "$tmp/xlm"
awk 'BEGIN { printf "{\"version\": \"1.0\", \"added_tokens\": [" }
    { token[NR - 1] = $0 }
    END {
        for (i = 0; i < 5; i++) printf "%s{\"id\": %d, \"content\": \"%s\", \"special\": true}", i ? ", " : "", i, token[i]
        printf "], \"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"post_processor\": {\"type\": \"TemplateProcessing\", "
        printf "\"single\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": 2}}], "
        printf "\"pair\": [{\"Sequence\": {\"id\": \"A\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 0}}, {\"Sequence\": {\"id\": \"B\", \"type_id\": 1}}, "
        printf "{\"SpecialToken\": {\"id\": \"[SEP]\", \"type_id\": 1}}, {\"SpecialToken\": {\"id\": \"[CLS]\", \"type_id\": 2}}], "
        printf "\"special_tokens\": {\"[SEP]\": {\"id\": \"[SEP]\", \"ids\": [3], \"tokens\": [\"[SEP]\"]}, \"[CLS]\": {\"id\": \"[CLS]\", \"ids\": [2], \"tokens\": [\"[CLS]\"]}}}, "
        printf "\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"[UNK]\", \"vocab\": {"
        for (i = 0; i < NR; i++) printf "%s\"%s\": %d", i ? ", " : "", token[i], i
        print "}}}" }' "$tmp/vocab.txt" >"$tmp/xlnet/tokenizer.json"
printf '{"tokenizer_class": "XLNetTokenizerFast", "cls_token": "[CLS]"}' >"$tmp/xlnet/tokenizer_config.json"
cat >"$tmp/xlnet.json" <<END
{"model_type": "xlnet", "architectures": ["XLNetForQuestionAnswering"], "vocab_size": 100, "d_model": 32, "n_layer": 2,
 "n_head": 4, "d_inner": 64, "dropout": 0.0, "initializer_range": 0.1, "start_n_top": 3, "end_n_top": 3, "mem_len": null}
END
cat >"$tmp/xlm.json" <<END
{"model_type": "xlm", "architectures": ["XLMForQuestionAnswering"], "vocab_size": 100, "emb_dim": 32, "n_layers": 2,
 "n_heads": 4, "max_position_embeddings": 64, "dropout": 0.0, "attention_dropout": 0.0, "init_std": 0.1}
END
cp "$tmp/vocab.txt" "$tmp/xlm/vocab.txt"
printf '{"tokenizer_class": "BertTokenizer"}' >"$tmp/xlm/tokenizer_config.json"

awk 'BEGIN { printf "{\"version\": \"v2.0\", \"data\": [{\"paragraphs\": ["
    for (i = 0; i < 60; i++) {
        who = i % 2 ? "anna" : "bob"; where = i % 3 ? "paris" : "london"
        printf "%s{\"context\": \"%s lives in %s . it was good .\", \"qas\": [{\"id\": \"q%d\", \"question\": \"who ?\", \"answers\": [{\"text\": \"%s\", \"answer_start\": 0}]},", i ? ", " : "", who, where, i, who
        printf "{\"id\": \"r%d\", \"question\": \"where ?\", \"answers\": [{\"text\": \"%s\", \"answer_start\": %d}]},", i, where, length(who) + 10
        printf "{\"id\": \"s%d\", \"question\": \"not ?\", \"is_impossible\": true, \"answers\": []}]}", i
    }
    print "]}]}" }' >"$tmp/squad.json"

for type in xlnet xlm; do
    ok "$type: finetune" exits 0 "$sesame" finetune --config "$tmp/$type.json" --tokenizer "$tmp/$type" --task answer --no-answers \
        --threads 1 --lr 3e-3 --batch-size 12 --train "$tmp/squad.json" --eval "$tmp/squad.json" --epochs 8 -o "$tmp/tuned-$type"
    ok "$type: learned" above "$(score eval_f1 "$tmp/tuned-$type/all_results.json")" 95
    ok "$type: its class" grep -q 'ForQuestionAnswering"' "$tmp/tuned-$type/config.json"
    ok "$type: eval" exits 0 "$sesame" eval "$tmp/tuned-$type" "$tmp/squad.json" --task answer --no-answers --json
    ok "$type: the same score" test "$(score eval_f1 "$tmp/out")" = "$(score eval_f1 "$tmp/tuned-$type/eval_results.json")"
    ok "$type: windows" exits 0 "$sesame" predict "$tmp/tuned-$type" "$tmp/squad.json" --task answer --no-answers --max-length 12 --stride 2
    ok "$type: a prediction for each question" test "$(wc -l <"$tmp/out")" -eq 180
    ok "$type: pipeline" exits 0 "$sesame" question-answering -m "$tmp/tuned-$type" --json "where ?" "anna lives in paris . it was good ."
    ok "$type: the answer" out_has '"start": 14, "end": 19, "answer": "paris"'
    ok "$type: no answer" exits 0 "$sesame" question-answering -m "$tmp/tuned-$type" --json --handle-impossible-answer "not ?" \
        "anna lives in paris . it was good ."
    ok "$type: an empty answer" out_has '"answer": ""'
    ok "$type: run" exits 0 "$sesame" run "$tmp/tuned-$type" --ids "5 6 7 8 9 10 11"
done

sed 's/"start_n_top": 3/"start_n_top": 1000/' "$tmp/xlnet.json" >"$tmp/wide.json"
ok "too wide a beam" exits 3 "$sesame" finetune --config "$tmp/wide.json" --tokenizer "$tmp/xlnet" --task answer --train "$tmp/squad.json" -o "$tmp/x"
ok "names the key" err_has '"start_n_top" is 1000, expected 1 to 100'

counted
