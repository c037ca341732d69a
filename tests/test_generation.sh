#!/bin/sh
# The commands that generate text: output formats, streams, seeds, templates, errors.
# Usage: sh tests/test_generation.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
sesame=$1/sesame
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "failed: $*"
    sed 's/^/    stdout: /' "$tmp/out" | head -2
    sed 's/^/    stderr: /' "$tmp/err" | head -2
}
run() { # run CODE COMMAND...
    want=$1
    shift
    "$sesame" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    code=$?
    if [ "$code" -eq "$want" ]; then ok; else bad "exit $code, not $want: sesame $*"; fi
}
stdout_has() { if grep -qF -- "$1" "$tmp/out"; then ok; else bad "not on stdout: $1"; fi; }
stderr_has() { if grep -qF -- "$1" "$tmp/err"; then ok; else bad "not on stderr: $1"; fi; }
same() { if cmp -s "$1" "$2"; then ok; else bad "$1 and $2 differ"; fi; }

# Golden models with word-level tokenizers.
for i in 1 2 3; do
    echo "the cat sat on the mat and the dog ran to the house by the old river where a man was"
    echo "red blue green one two three four five six seven eight nine ten sun moon star sea sky"
done >"$tmp/words.txt"
for m in gpt2-lm t5-v1.0; do
    cp -r "tests/golden/$m" "$tmp/$m"
    chmod -R u+w "$tmp/$m"
    "$sesame" train-tokenizer -q --type wordlevel --vocab-size 60 --special-tokens '[PAD],[UNK]' \
        -o "$tmp/$m/tokenizer.json" "$tmp/words.txt" || exit 1
done
gpt=$tmp/gpt2-lm t5=$tmp/t5-v1.0

run 0 text-generation -m "$gpt" --json --max-new-tokens 6 "the cat sat"
stdout_has '[{"generated_text": "the cat sat'
run 0 text-generation -m "$gpt" --max-new-tokens 6 "the cat sat"
cp "$tmp/out" "$tmp/whole"
run 0 text-generation -m "$gpt" --max-new-tokens 6 --stream "the cat sat"
same "$tmp/out" "$tmp/whole"
run 0 text-generation -m "$gpt" --json --max-new-tokens 6 --return-full-text false "the cat sat"
if grep -qF 'the cat sat' "$tmp/out"; then bad "the prompt is there"; else ok; fi

# Spaces before punctuation are removed, as in transformers except for BPE; in a stream, too.
cp -r "$gpt" "$tmp/gpt2-marks"
printf "the cat sat . ' s , ! ? n't\nthe . ' , ! ? the . '\n" >"$tmp/marks.txt"
"$sesame" train-tokenizer -q --type wordlevel --vocab-size 60 --special-tokens '[PAD],[UNK]' --overwrite \
    -o "$tmp/gpt2-marks/tokenizer.json" "$tmp/marks.txt" || exit 1
some="--max-new-tokens 20 --min-new-tokens 20 --suppress-tokens $(seq -s , 13 70)"
for seed in 1 2 3; do
    run 0 text-generation -m "$tmp/gpt2-marks" --do-sample --seed $seed --temperature 9 $some "the cat"
    cp "$tmp/out" "$tmp/whole"
    if grep -qE " [.,!?]| ' " "$tmp/out"; then bad "a space before punctuation"; else ok; fi
    if grep -qE '[.,!?]' "$tmp/out"; then ok; else bad "no punctuation"; fi
    run 0 text-generation -m "$tmp/gpt2-marks" --do-sample --seed $seed --temperature 9 $some --stream "the cat"
    same "$tmp/out" "$tmp/whole"
done
for id in 4 5; do # the last token at the maximum length
    word=$(echo "[$id]" | "$sesame" detokenize -m "$tmp/gpt2-marks")
    run 0 text-generation -m "$tmp/gpt2-marks" --max-new-tokens 1 --forced-eos-token-id $id --json "the cat"
    if tr -d ' ' <"$tmp/out" | grep -qF "thecat$word\""; then ok; else bad "the last token is not $word"; fi
done
run 2 text-generation -m "$gpt" --forced-eos-token-id 900 x
stderr_has "--forced-eos-token-id: '900' is not a token id"

# A text is the same alone and in a batch, sampled or not; the seed decides the sample.
printf 'the cat sat\nred blue\na man was\n' >"$tmp/prompts"
for how in "--num-beams 3" "--do-sample --seed 5" "--do-sample --seed 5 --top-p 0.9 --top-k all"; do
    run 0 text-generation -m "$gpt" --json --max-new-tokens 8 $how -f "$tmp/prompts"
    sed -n 2p "$tmp/out" >"$tmp/second"
    run 0 text-generation -m "$gpt" --json --max-new-tokens 8 $how "red blue"
    same "$tmp/out" "$tmp/second"
done
run 0 text-generation -m "$gpt" --json --max-new-tokens 8 --do-sample --seed 6 --top-p 0.9 --top-k all "red blue"
if cmp -s "$tmp/out" "$tmp/second"; then bad "another seed, the same text"; else ok; fi
run 0 text-generation -m "$gpt" --json --max-new-tokens 4 --do-sample --num-return-sequences 3 "red"
if [ "$(grep -o generated_text "$tmp/out" | wc -l)" -eq 3 ]; then ok; else bad "not three texts"; fi
run 0 text-generation -m "$gpt" --max-new-tokens 4 --num-beams 3 --early-stopping never --length-penalty -1 red
run 0 text-generation -m "$gpt" --max-new-tokens 4 --num-beams 3 --early-stopping red
run 0 text-generation -m "$gpt" --max-new-tokens 3 ""

# generation_config.json gives the defaults, options override them.
cp -r "$gpt" "$tmp/gpt2-samples"
echo '{ "do_sample": true, "temperature": 5.0, "max_new_tokens": 8, "eos_token_id": 70 }' \
    >"$tmp/gpt2-samples/generation_config.json"
run 0 text-generation -m "$tmp/gpt2-samples" --json red
cp "$tmp/out" "$tmp/drawn"
run 0 text-generation -m "$tmp/gpt2-samples" --json --seed 1 red
if cmp -s "$tmp/out" "$tmp/drawn"; then bad "the folder stdout_has do_sample: another seed, the same text"; else ok; fi
if grep -qF "no effect" "$tmp/err"; then bad "--seed has an effect"; else ok; fi
run 0 text-generation -m "$gpt" --json --seed 0 --do-sample --temperature 5 --max-new-tokens 8 --eos-token-id 70 red
same "$tmp/out" "$tmp/drawn"
run 0 text-generation -m "$tmp/gpt2-samples" --json --do-sample false red
cp "$tmp/out" "$tmp/likeliest"
run 0 text-generation -m "$gpt" --json --max-new-tokens 8 --eos-token-id 70 red
same "$tmp/out" "$tmp/likeliest"
echo '{ "do_sample": "yes" }' >"$tmp/gpt2-samples/generation_config.json"
run 3 text-generation -m "$tmp/gpt2-samples" red
stderr_has 'generation_config.json: "do_sample": is a string, expected true or false'

# Templates.
cat >"$tmp/template.json" <<'T'
{ "instruction": "one two ", "example": "{text} is {label} ", "query": "{text} is",
  "examples": [{ "text": "sun", "label": "red" }, { "text": "sea", "label": "blue" }], "stop": ["moon"] }
T
run 0 text-generation -m "$gpt" --json --max-new-tokens 2 --template "$tmp/template.json" --shots 1 moon
stdout_has '"one two sun is red moon is'
run 0 text-generation -m "$gpt" --json --max-new-tokens 2 --template "$tmp/template.json" moon
stdout_has '"one two sun is red sea is blue moon is'
echo '{"query": "{text} and {pair} is"}' >"$tmp/two.json"
printf '{"text": "red", "text_pair": "blue"}\n{"text": "red"}\n' >"$tmp/two.jsonl"
run 1 text-generation -m "$gpt" --json -q --max-new-tokens 2 --template "$tmp/two.json" --jsonl --keep-going -f "$tmp/two.jsonl"
stdout_has '"red and blue is'
stderr_has 'two.jsonl: line 2: '
stderr_has '{pair}: the item has no second text (key "text_pair"'
echo '{"query": "no text"}' >"$tmp/broken.json"
run 3 text-generation -m "$gpt" --template "$tmp/broken.json" moon
stderr_has '{text}'

# Encoder-decoders.
run 0 text2text-generation -m "$t5" --json --max-new-tokens 4 "the cat sat"
stdout_has '[{"generated_text": "'
run 0 summarization -m "$t5" --json --max-new-tokens 4 "the cat sat"
stdout_has '[{"summary_text": "'
run 0 translation_en_to_de -m "$t5" --json --max-new-tokens 4 "the cat sat"
stdout_has '[{"translation_text": "'
cp "$tmp/out" "$tmp/plain"
sed 's/^{/{ "task_specific_params": { "translation_en_to_fr": { "prefix": "red blue green ", "min_length": 4 } },/' \
    "$t5/config.json" >"$tmp/config" && cp "$tmp/config" "$t5/config.json"
run 0 translation_en_to_fr -m "$t5" --json --max-new-tokens 4 "the cat sat"
if cmp -s "$tmp/out" "$tmp/plain"; then bad "the prefix changes nothing"; else ok; fi
cp "$tmp/out" "$tmp/prefixed"
run 0 translation -m "$t5" --json --max-new-tokens 4 --min-length 4 --prefix "red blue green " "the cat sat"
same "$tmp/out" "$tmp/prefixed"

# Language tokens: --src-lang replaces the token in the source, --tgt-lang is the first generated token.
mbart=$tmp/mbart-lm
cp -r tests/golden/mbart-lm "$mbart"
chmod -R u+w "$mbart"
"$sesame" train-tokenizer -q --type wordlevel --vocab-size 60 --special-tokens '<s>,<pad>,</s>,<unk>,en_XX,de_DE' \
    -o "$tmp/plain.json" "$tmp/words.txt" || exit 1
token() { printf '{ "SpecialToken": { "id": "%s", "type_id": 0 } }' "$1"; }
ids() { printf '"%s": { "id": "%s", "ids": [%s], "tokens": ["%s"] }' "$1" "$1" "$2" "$1"; }
marks() { # marks LANGUAGE ID
    text='{ "Sequence": { "id": "A", "type_id": 0 } }' pair='{ "Sequence": { "id": "B", "type_id": 0 } }'
    way="\"type\": \"TemplateProcessing\", \"pair\": [$text, $pair]"
    way="$way, \"single\": [$text, $(token '<\/s>'), $(token "$1")]"
    way="{ $way, \"special_tokens\": { $(ids '<\/s>' 2), $(ids "$1" "$2") } }"
    sed "s/\"model\": {/\"post_processor\": $way, \"model\": {/" "$tmp/plain.json" >"$mbart/tokenizer.json"
}
marks de_DE 5
run 0 translation -m "$mbart" --json --logprobs --max-new-tokens 4 "the cat sat"
cp "$tmp/out" "$tmp/german"
marks en_XX 4
run 0 translation -m "$mbart" --json --logprobs --max-new-tokens 4 "the cat sat"
if cmp -s "$tmp/out" "$tmp/german"; then bad "the language makes no difference"; else ok; fi
run 0 translation -m "$mbart" --json --logprobs --max-new-tokens 4 --src-lang de_DE "the cat sat"
same "$tmp/out" "$tmp/german"
run 0 translation -m "$mbart" --json --logprobs --max-new-tokens 4 --tgt-lang de_DE "the cat sat"
stdout_has '"logprobs": [{"id": 5, "token": "de_DE"'
run 2 translation -m "$mbart" --src-lang xx_XX red
stderr_has 'no token "xx_XX"'
run 3 translation -m "$t5" --src-lang cat red
stderr_has "adds no language token"

# Scores.
run 0 perplexity -m "$gpt" --json --tokens --text "the cat sat on the mat"
stdout_has '"tokens": 5'
stdout_has '"words": 6'
awk -v x="$(sed 's/.*"logprob": \([-0-9.e]*\).*/\1/' "$tmp/out")" -v w="$(sed 's/.*"word_perplexity": \([0-9.e+]*\).*/\1/' "$tmp/out")" \
    'BEGIN { r = log(w) * 6 / -x; exit !(r > 0.99999 && r < 1.00001) }' && ok || bad 'perplexity per word'
run 0 perplexity -m "$gpt" --json --text " the cat  sat "
stdout_has '"words": 3' # white space at the ends adds none
run 0 perplexity -m "$gpt" --lines -f "$tmp/prompts"
stdout_has "5 tokens  all" # of three lines: 2, 1, 2
sed 's/$/\r/' "$tmp/prompts" | "$sesame" perplexity -m "$gpt" --lines - >"$tmp/piped" 2>"$tmp/err"
sed "s|$tmp/prompts|-|" "$tmp/out" >"$tmp/lines"
same "$tmp/piped" "$tmp/lines" # a pipe, and lines that end in CRLF
run 3 perplexity -m "$gpt" -f "$tmp"
stderr_has "$tmp: Is a directory"
run 3 perplexity -m "$gpt" --text red
stderr_has "too short"
run 2 perplexity -m "$gpt"
run 0 perplexity -m "$gpt" --json --text "the cat sat on the mat"
cp "$tmp/out" "$tmp/one"
run 0 perplexity -m "$gpt" --json "the cat sat on the mat"
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'perplexity: an argument is a text'
run 3 perplexity -m "$gpt" -f "$tmp/missing"
stderr_has 'missing: No such file or directory'
"$sesame" perplexity -m "$gpt" "the cat" "$tmp/prompts" >"$tmp/out" 2>"$tmp/err"
stderr_has 'prompts: a file of this name exists, but arguments are texts; -f FILE reads the text in it'
run 0 perplexity -m "$gpt" --lines -f "$tmp/prompts"
[ -s "$tmp/err" ] && bad 'perplexity -f FILE: a notice' || ok
run 0 perplexity "the cat sat on the mat" # the bundled generator
stdout_has perplexity
run 3 perplexity -m "$t5" --text "red blue"
run 0 prefer -m "$gpt" --json "the cat sat" "red blue green"
stdout_has '"index": 1'
run 0 prefer -m "$gpt" "the cat sat" "red blue green"
if grep -qE '^ *-[0-9]+\.[0-9]{4}  (the cat sat|red blue green)$' "$tmp/out"; then ok; else bad "no scores"; fi
printf 'the cat\tcat the\nred\n' >"$tmp/pairs"
run 1 prefer -m "$gpt" --json --keep-going -f "$tmp/pairs"
stderr_has "line 2"

# One failing line among others: too long, found before its batch runs, or a failure within the batch.
printf 'the cat sat\nred blue green one two three four five six\na man was\nsun moon\n' >"$tmp/one-bad"
run 1 text-generation -m "$gpt" --json -q --max-length 8 --keep-going -f "$tmp/one-bad"
if [ "$(grep -c generated_text "$tmp/out")" -eq 3 ]; then ok; else bad "not three answers"; fi
if sed -n 2p "$tmp/out" | grep -qF '{"error": "'; then ok; else bad "the error is not the second line"; fi
stderr_has "one-bad: line 2: the prompt has 9 tokens"
run 3 text-generation -m "$gpt" --json -q --max-length 8 -f "$tmp/one-bad"
if [ "$(wc -l <"$tmp/out")" -eq 1 ]; then ok; else bad "the first line is answered"; fi
stderr_has "line 2: the prompt has 9 tokens"
printf 'the cat\tcat the\nred blue\t\nsun moon\tmoon sun\n' >"$tmp/one-short"
run 1 prefer -m "$gpt" --json -q --keep-going -f "$tmp/one-short"
if [ "$(grep -c '"score"' "$tmp/out")" -eq 2 ]; then ok; else bad "not two answers"; fi
if sed -n 2p "$tmp/out" | grep -qF '{"error": "'; then ok; else bad "the error is not the second line"; fi
stderr_has "one-short: line 2: "

# Texts that end at the model's 24 positions are reported once; texts that end at the requested length are not.
printf 'the cat sat\nred blue green one two three four five six\n' >"$tmp/two"
run 0 text-generation -m "$gpt" --json --max-new-tokens 22 --min-new-tokens 22 -f "$tmp/two"
stderr_has "sesame: 1 text ends before the requested length: the context of the model is 24 tokens"
run 0 text-generation -m "$gpt" --json --max-new-tokens 24 --min-new-tokens 24 -f "$tmp/two"
if [ "$(grep -c "sesame: 2 texts end before" "$tmp/err")" -eq 1 ]; then ok; else bad "not reported once"; fi
run 0 text-generation -m "$gpt" --json --max-new-tokens 5 --min-new-tokens 5 -f "$tmp/two"
if grep -qF "before the requested length" "$tmp/err"; then bad "reported without need"; else ok; fi

# Log-probabilities of generated tokens, only if requested: equal to the scores of the whole text.
logprobs_agree() { # logprobs_agree MODEL
    run 0 text-generation -m "$1" --json --logprobs --max-new-tokens 6 "the cat sat"
    words=$(grep -o '"token": "[a-z]*"' "$tmp/out" | cut -d '"' -f 4 | tr '\n' ' ')
    grep -o '"logprob": [-0-9.e]*' "$tmp/out" | cut -d ' ' -f 2 >"$tmp/logprobs"
    run 0 perplexity -m "$1" --json --tokens --text "the cat sat $words"
    grep -o '", [-0-9.e]*\]' "$tmp/out" | tr -d '",] ' | tail -n 6 | paste "$tmp/logprobs" - >"$tmp/both"
    if awk '{ d = $1 - $2; bad += NF != 2 || $1 >= 0 || d > 1e-4 || d < -1e-4 } END { exit bad || NR != 6 }' "$tmp/both"; then
        ok
    else
        bad "log-probabilities: $(tr '\n\t' ', ' <"$tmp/both")"
    fi
}
logprobs_agree "$gpt"
run 0 text-generation -m "$gpt" --json --max-new-tokens 6 "the cat sat"
if grep -qF logprob "$tmp/out"; then bad "log-probabilities without --logprobs"; else ok; fi
run 0 text-generation -m "$gpt" --logprobs --max-new-tokens 6 "the cat sat"
if [ "$(grep -cE '^ +-[0-9]+\.[0-9]{4}  [a-z]+$' "$tmp/out")" -eq 6 ]; then ok; else bad "a line for each token"; fi
run 0 summarization -m "$t5" --json --logprobs --num-beams 2 --num-return-sequences 2 --max-new-tokens 3 red
if [ "$(grep -o '"logprobs": \[{"id": ' "$tmp/out" | wc -l)" -eq 2 ]; then ok; else bad "not of both beams"; fi
run 2 text-generation -m "$gpt" --top-logprobs 2 --stream red
run 0 text-generation -m "$gpt" --json --top-logprobs 2 --max-new-tokens 6 "the cat sat"
if [ "$(grep -o '"top_logprobs": \[{"id": ' "$tmp/out" | wc -l)" -eq 6 ]; then ok; else bad "not 6 times top_logprobs"; fi
if grep -qF prompt_logprobs "$tmp/out"; then bad "prompt_logprobs without the option"; else ok; fi
run 0 text-generation -m "$gpt" --json --prompt-logprobs --max-new-tokens 6 "the cat sat"
stdout_has '"prompt_logprobs": [{"id": '
stdout_has '"token": "the", "logprob": null}, {"id": '
run 0 text-generation -m "$gpt" --prompt-logprobs --top-logprobs 2 --max-new-tokens 6 "the cat sat"
if [ "$(wc -l <"$tmp/out")" -eq 10 ]; then ok; else bad "not one line for each of 9 tokens and the text"; fi
run 3 summarization -m "$t5" --prompt-logprobs red
stderr_has "prompt_logprobs is not supported with T5ForConditionalGeneration"
run 2 text-generation -m "$gpt" --logprobs --stream red
stderr_has "exclude each other"

# Models with mems instead of a KV cache. Transformer-XL generates what a pass over the whole text predicts, because all its
# tokens have the same context length; XLNet's texts are compared with transformers in test_generate.
for m in transfo-xl-lm xlnet-permutation-lm; do
    cp -r "tests/golden/$m" "$tmp/$m"
    chmod -R u+w "$tmp/$m"
    cp "$gpt/tokenizer.json" "$tmp/$m"
    for how in "--num-beams 3" "--do-sample --seed 5"; do
        run 0 text-generation -m "$tmp/$m" --json --max-new-tokens 8 $how -f "$tmp/prompts"
        sed -n 2p "$tmp/out" >"$tmp/second"
        run 0 text-generation -m "$tmp/$m" --json --max-new-tokens 8 $how "red blue"
        same "$tmp/out" "$tmp/second"
    done
done
logprobs_agree "$tmp/transfo-xl-lm"
run 3 text-generation -m tests/golden/bert-masked-lm red
stderr_has "BertForMaskedLM does not support text-generation; it supports fill-mask"
run 3 fill-mask -m tests/golden/bart-causal-lm red
stderr_has "BartForCausalLM does not support fill-mask; it supports feature-extraction, features, embed, similarity, text-generation, prefer"

# Options without effect are errors or warnings.
run 2 text-generation -m "$gpt" --shots 1 red
stderr_has "--shots needs --template"
for x in "--max-seq-len 8" "--diversity-penalty 1" "--early-stopping" "--length-penalty 2"; do
    run 0 text-generation -m "$gpt" --max-new-tokens 2 $x red
    stderr_has "${x%% *} has no effect"
done
run 0 summarization -m "$t5" --max-new-tokens 2 --max-seq-len 8 --return-full-text red
stderr_has "--return-full-text has no effect"
if grep -qF "max-seq-len" "$tmp/err"; then bad "max-seq-len applies to an encoder"; else ok; fi
run 0 translation_zz_to_yy -m "$t5" --max-new-tokens 2 red
stderr_has "config.json has no task_specific_params for translation_zz_to_yy"
run 0 translation_en_to_fr -m "$t5" --max-new-tokens 2 red
if grep -qF "task_specific_params" "$tmp/err"; then bad "a warning about a known task"; else ok; fi

# Bad input.
run 2 text-generation -m "$gpt" --num-beams 0 x
stderr_has "--num-beams: 0"
run 2 text-generation -m "$gpt" --num-beams 2 --num-return-sequences 3 x
stderr_has "at most num_beams"
run 2 text-generation -m "$gpt" --num-return-sequences 2 x
run 2 text-generation -m "$gpt" --min-new-tokens 9 --max-new-tokens 3 x
stderr_has "exclude each other"
run 2 text-generation -m "$gpt" --stream --num-beams 2 x
run 2 text-generation -m "$gpt" --suppress-tokens 1,900 x
stderr_has "900"
run 0 text-generation -m "$gpt" --do-sample --temperature 0 --max-new-tokens 2 red
run 0 text-generation -m "$gpt" --temperature 0.5 --max-new-tokens 2 red
stderr_has "no effect without --do-sample"
run 0 text-generation -m "$gpt" --max-new-tokens 900 red
stderr_has "texts end there"
run 3 text-generation -m "$gpt" "$(cat "$tmp/words.txt" "$tmp/words.txt")"
stderr_has "the model accepts 24, prompt and generated text together"
run 3 summarization -m "$gpt" red
stderr_has "does not support summarization"
run 2 translation -m "$t5" --tgt-lang xx_XX red
stderr_has "no token"
"$sesame" text-generation -q -m "$gpt" --max-new-tokens 9 -f "$tmp/prompts" | head -n 1 >"$tmp/out"
if [ "$(wc -l <"$tmp/out")" -eq 1 ]; then ok; else bad "a closed pipe"; fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
