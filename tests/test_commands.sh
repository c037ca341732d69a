#!/bin/sh
# Tests of the commands that inspect, run and convert models: output, exit codes, errors.
# Usage: sh tests/test_commands.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
sesame=$1/sesame
golden=tests/golden
tmp=$(mktemp -d) || exit 1
trap 'chmod -R u+rwx "$tmp"; rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "failed: $*"
    sed 's/^/    stdout: /' "$tmp/out" | head -2
    sed 's/^/    stderr: /' "$tmp/err" | head -2
}

# run CODE COMMAND...: output in $tmp/out and $tmp/err, input from $tmp/in.
: >"$tmp/in"
run() {
    want=$1
    shift
    "$sesame" "$@" <"$tmp/in" >"$tmp/out" 2>"$tmp/err"
    code=$?
    if [ "$code" -eq "$want" ]; then ok; else bad "exit $code, not $want: sesame $*"; fi
}

# out_has TEXT...: stdout of the last run contains each TEXT.
out_has() {
    for text in "$@"; do
        if grep -qF -- "$text" "$tmp/out"; then ok; else bad "not on stdout: $text"; fi
    done
}

# refuses TEXT... -- ARGUMENTS: exit 3 and exactly one line on stderr, which contains each TEXT.
refuses() {
    : >"$tmp/want"
    while [ "$1" != -- ]; do
        printf '%s\n' "$1" >>"$tmp/want"
        shift
    done
    shift
    run 3 "$@"
    if [ "$(wc -l <"$tmp/err")" -eq 1 ] && grep -q '^sesame: ' "$tmp/err"; then ok; else bad "one line: sesame $*"; fi
    while IFS= read -r text; do
        if grep -qF -- "$text" "$tmp/err"; then ok; else bad "not on stderr: $text: sesame $*"; fi
    done <"$tmp/want"
}

# json FILE: the file is JSON. It is checked by Sesame's own reader: as a config.json, its only error is a missing or
# unknown key.
json_text() {
    rm -rf "$tmp/checked"
    mkdir "$tmp/checked"
    cat >"$tmp/checked/config.json"
    "$sesame" info "$tmp/checked" 2>&1 | grep -qE '"model_type"|"vocab_size" is missing'
}
json() { if json_text <"$1"; then ok; else bad "not JSON: $1"; fi; }
json_lines() {
    while IFS= read -r line; do
        if printf '%s\n' "$line" | json_text; then ok; else bad "not JSON: $line"; fi
    done <"$1"
}

fresh() { # NAME [GOLDEN CASE]: copies a model folder, to be damaged
    rm -rf "${tmp:?}/$1"
    mkdir "$tmp/$1"
    cp "$golden/${2-bert-classify}/config.json" "$golden/${2-bert-classify}/model.safetensors" "$tmp/$1/"
    chmod u+w "$tmp/$1"/*
}

# edit NAME SED: edits config.json of the folder
edit() {
    sed "$2" "$tmp/$1/config.json" >"$tmp/edited" && cp "$tmp/edited" "$tmp/$1/config.json"
}

# poke FILE OFFSET BYTES: writes bytes, in the notation of printf
poke() { printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc 2>"$tmp/dd"; }

# Offset of the tensor data in a safetensors file (header below 64 KiB).
data_begins() {
    set -- $(od -An -tu1 -N2 "$1")
    echo $((8 + $1 + 256 * $2))
}

# A tokenizer.json for the 71 ids of the golden models.
words() {
    awk 'BEGIN {
        printf "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null, \"added_tokens\": [], "
        printf "\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"BertPreTokenizer\"}, \"post_processor\": null, "
        printf "\"decoder\": null, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", "
        printf "\"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 100, \"vocab\": {"
        printf "\"[PAD]\": 0, \"[UNK]\": 1, \"[CLS]\": 2, \"[SEP]\": 3, \"[MASK]\": 4"
        for (i = 5; i < 71; i++) printf ", \"w%d\": %d", i, i
        print "}}}"
    }'
}

section_info() {
    for dir in "$golden"/bert-*; do
        run 0 info "$dir"
        out_has "Architecture  bert (Bert" 'Parameters' 'Memory'
        run 0 info "$dir" --json
        json "$tmp/out"
        run 0 info "$dir" --tensors
        out_has 'embeddings.word_embeddings.weight'
    done
    run 0 info "$golden/bert-classify"
    out_has 'classify: labels a text or a pair of texts' '2 layers, hidden size 24, 3 heads of 8' 'LABEL_0, LABEL_1, LABEL_2' \
        '12,403' 'F32, 52.7 KiB in model.safetensors' 'no files found'
    run 0 info "$golden/bert-classify" --json --tensors
    json "$tmp/out"
    out_has '"total": 12403' '"name": "bert.pooler.dense.weight"' '"nan": 0' '"finite": true' '"supported": true'
    run 0 info "$golden/bert-classify/model.safetensors" --tensors
    if [ "$(wc -l <"$tmp/out")" -eq 42 ]; then ok; else bad "a line per tensor and one of titles"; fi
    run 0 info "$golden/bert-classify" --tokens 1
    run 2 info "$golden/bert-classify" --tokens 25
    run 2 info
    run 2 info "$golden/bert-classify" "$golden/bert-tag"

    run 0 info tests/sentence/old-bin
    out_has 'Dense (60 to 7, gelu), Normalize' '7 dimensions, similarity cosine, at most 20 tokens' \
        '2 layers, hidden size 12'
    run 0 info tests/sentence/all-pools --json
    json "$tmp/out"
    out_has '"similarity": "dot"' '"width": 72' '"query": "query: "'

    fresh tokenizer
    words >"$tmp/tokenizer/tokenizer.json"
    run 0 info "$tmp/tokenizer"
    out_has '71 tokens: tokenizer.json'
    echo "{" >"$tmp/tokenizer/tokenizer.json"
    run 0 info "$tmp/tokenizer" # a bad tokenizer does not make the model invalid
    out_has 'usable:'
}

# An unsupported architecture: its tensors can still be listed.
section_unknown() {
    fresh other
    edit other 's/"bert"/"grover"/'
    refuses 'other/config.json' '"model_type" "grover" is not supported' 'bert' -- info "$tmp/other"
    refuses 'other/config.json' '"grover" is not supported' -- info "$tmp/other" --json
    run 0 info "$tmp/other" --tensors
    out_has 'bert.pooler.dense.weight'
    run 0 info "$tmp/other" --tensors --json
    json "$tmp/out"
    out_has '"supported": false' '"problem": '
    refuses 'weights in safetensors, expected the folder of a model' -- info "$golden/bert-classify/model.safetensors"
}

section_config() {
    while IFS='|' read -r edit text; do
        fresh config
        edit config "$edit"
        refuses config "$text" -- info "$tmp/config"
    done <<'LIST'
/"vocab_size"/d; s/"use_cache": true,/"use_cache": true/|"vocab_size" is missing
s/"hidden_size": 24/"hidden_size": "24"/|key "hidden_size" must be an integer, not a string
s/"hidden_size": 24/"hidden_size": 24.5/|"hidden_size"
s/"hidden_size": 24/"hidden_size": 0/|"hidden_size" is 0, expected 1
s/"hidden_size": 24/"hidden_size": -24/|"hidden_size" is -24, expected 1
s/"hidden_size": 24/"hidden_size": 25/|25 is not a multiple of 3 heads
s/"num_hidden_layers": 2/"num_hidden_layers": 1000000000000/|"num_hidden_layers" is 1000000000000, expected 1 to
s/"num_hidden_layers": 2/"num_hidden_layers": 1e400/|num
s/"num_attention_heads": 3/"num_attention_heads": 0/|"num_attention_heads" is 0, expected 1
s/"hidden_act": "gelu"/"hidden_act": "swoosh"/|"hidden_act" is "swoosh"
s/"hidden_act": "gelu"/"hidden_act": 7/|key "hidden_act" must be a string, not an integer
s/"layer_norm_eps": 1e-12/"layer_norm_eps": -1/|"layer_norm_eps" is -1
s/"pad_token_id": 0/"pad_token_id": 71/|"pad_token_id" 71 is outside the vocabulary of 71
s/"model_type": "bert"/"model_type": 3/|"model_type" is missing or not a string
s/BertForSequenceClassification/BertForDreaming/|class "BertForDreaming" is not supported
s/"1": "LABEL_1"/"7": "LABEL_1"/|"id2label" has 3 entries but no name for "1"
s/"add_cross_attention": false/"add_cross_attention": true/|crossattention.self.query.weight" [24, 24] is missing
s/"hidden_size": 24,/"hidden_size": 24/|line
s/"hidden_size"/"vocab_size"/|key "vocab_size" appears twice
LIST
    fresh config
    printf '[1, 2]' >"$tmp/config/config.json"
    refuses 'config/config.json' 'an object expected' -- info "$tmp/config"
    : >"$tmp/config/config.json"
    refuses 'config/config.json' -- info "$tmp/config"
    # valid sizes that differ from the weights
    fresh config
    edit config 's/"intermediate_size": 44/"intermediate_size": 48/'
    refuses 'config: model.safetensors: tensor "' 'config.json requires [48, 24]' -- info "$tmp/config"
    fresh config
    edit config 's/"num_hidden_layers": 2/"num_hidden_layers": 1024/'
    refuses 'config: tensor "bert.encoder.layer.2.' 'is missing' -- info "$tmp/config"
}

section_weights() {
    mkdir "$tmp/empty"
    refuses 'empty: no config.json' 'not the folder of a model' -- info "$tmp/empty"
    refuses 'empty' 'model.safetensors' -- info "$tmp/empty" --tensors
    refuses 'nowhere' 'No such file' -- info "$tmp/nowhere"
    fresh weights
    rm "$tmp/weights/model.safetensors"
    refuses 'weights' 'neither model.safetensors nor pytorch_model.bin' -- info "$tmp/weights"
    : >"$tmp/weights/pytorch_model.bin"
    refuses 'pytorch_model.bin' -- info "$tmp/weights"

    fresh weights
    size=$(wc -c <"$tmp/weights/model.safetensors")
    for n in 0 7 8 9 100 2000 $((size / 2)) $((size - 1)); do
        head -c "$n" "$golden/bert-classify/model.safetensors" >"$tmp/weights/model.safetensors"
        refuses 'weights/model.safetensors' -- info "$tmp/weights"
    done
    fresh weights
    printf 'x' >>"$tmp/weights/model.safetensors"
    refuses 'weights/model.safetensors' '1 ' -- info "$tmp/weights"
    printf 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n' >"$tmp/weights/model.safetensors"
    refuses 'weights/model.safetensors' 'Git LFS pointer' -- info "$tmp/weights"
    refuses 'Git LFS pointer' -- info "$tmp/weights" --tensors

    # Flips single bits: never a crash, at most one error line.
    for at in 0 1 2 3 7 8 9 20 40 60 90 130 200 333 1000; do
        for bit in 001 020 100; do
            fresh flip
            was=$(od -An -to1 -j "$at" -N1 "$tmp/flip/model.safetensors" | tr -d ' ')
            now=$(printf '%03o' $((0$was ^ 0$bit)))
            poke "$tmp/flip/model.safetensors" "$at" "\\$now"
            "$sesame" info "$tmp/flip" >"$tmp/out" 2>"$tmp/err"
            code=$?
            if [ $code -eq 0 ] || { [ $code -eq 3 ] && [ "$(wc -l <"$tmp/err")" -eq 1 ]; }; then
                ok
            else
                bad "bit $bit of byte $at: exit $code"
            fi
        done
    done

    # NaN and infinity in the weights: the complete output, then an error line.
    for bits in '\000\000\300\177' '\000\000\200\377'; do
        fresh nan
        at=$(data_begins "$tmp/nan/model.safetensors")
        poke "$tmp/nan/model.safetensors" $((at + 4 * 5)) "$bits"
        refuses 'nan: model.safetensors: tensor "bert.' 'element 5 is NaN or infinite' 'expected finite weights' -- \
            info "$tmp/nan"
        out_has 'Parameters' 'Memory'
        refuses 'element 5 is NaN or infinite' -- info "$tmp/nan" --tensors
        out_has 'classifier.bias'
        refuses 'element 5 is NaN or infinite' -- info "$tmp/nan" --json
        json "$tmp/out"
        out_has '"finite": false'
    done

    fresh closed
    chmod 000 "$tmp/closed"
    if [ -r "$tmp/closed/config.json" ]; then # root can read all files
        skipped=$((skipped + 1))
    else
        refuses 'closed' 'Permission denied' -- info "$tmp/closed"
    fi
    chmod 755 "$tmp/closed"
}

section_run() {
    printf '2 5 7 3\n9,8\t|\t4\n' >"$tmp/in"
    for head in classify multilabel regress tag qa nsp masked-lm pretraining model; do
        run 0 run "$golden/bert-$head"
        out_has 'Sequence 1 (line 1), 4 tokens' 'Sequence 2 (line 2), 3 tokens'
        if grep -q '^2 sequences, 7 tokens in ' "$tmp/err"; then ok; else bad "speed on stderr"; fi
        run 0 run "$golden/bert-$head" - --json --quiet --hidden-states --attentions
        json_lines "$tmp/out"
        if [ ! -s "$tmp/err" ]; then ok; else bad "--quiet"; fi
        mv "$tmp/out" "$tmp/both"
        for batch in 1 5; do # the batch size does not change results
            run 0 run "$golden/bert-$head" - --json -q --hidden-states --attentions --batch-tokens $batch -t 2
            if cmp -s "$tmp/out" "$tmp/both"; then ok; else bad "bert-$head differs in batches of $batch"; fi
        done
    done
    run 0 run "$golden/bert-classify" --ids '2 5 7' -i '3 4'
    out_has 'Sequence 2, 2 tokens' 'LABEL_2'
    run 0 run "$golden/bert-multilabel" -i '2 5 7' -k 1
    out_has 'and 2 more'
    for dir in "$golden"/*; do # every architecture and head, with internals
        ids="2 5 7" more=
        "$sesame" run "$dir" -i "$ids" >"$tmp/out" 2>"$tmp/err"
        if grep -q -- --choices "$tmp/err"; then more="--choices 2"; fi
        if grep -q "no decoder input" "$tmp/err"; then ids="2 5 > 4 5"; fi
        run 0 run "$dir" -i "$ids" -i "$ids" --hidden-states --attentions $more
        run 0 run "$dir" -i "$ids" -i "$ids" --hidden-states --attentions $more --json
        json_lines "$tmp/out"
        run 0 info "$dir"
    done
    run 0 run "$golden/bart-lm" -i '2 5 > 2 4' -a
    out_has "Encoder attention, layer 1" "Cross-attention"
    run 0 run "$golden/electra-discriminator" -i '2 5'
    out_has Replaced
    run 0 run "$golden/albert-pretraining" -i '2 5 | 3'
    out_has 'in order' swapped
    run 0 run "$golden/bert-masked-lm" -i '2 5 7' --position 1 --top 2
    if [ "$(wc -l <"$tmp/out")" -eq 4 ]; then ok; else bad "two tokens for one position"; fi
    run 0 run "$golden/bert-masked-lm" -i '2 5 7' --mask-id 9
    out_has 'no token 9 in this sequence'
    run 0 run "$golden/bert-qa" -i '2 5 7 | 3 4' -k 3
    if [ "$(grep -c '^ *[34]  *[34]  *[0-9.]* %' "$tmp/out")" -eq 3 ]; then ok; else bad "three answers"; fi
    run 0 run "$golden/bert-choice" --choices 2
    out_has 'Question 1 (line 1 to 2), 7 tokens' 'choice 0' 'choice 1'
    run 0 run "$golden/bert-model" -i '2 5 7' --hidden-states --attentions
    out_has 'embeddings' 'Attention, layer 1, mean of 3 heads' 'pooled'
    run 0 run "$golden/bert-model" -i '2 5 7' -a --layer 0 --head 2
    out_has 'Attention, layer 0, head 2'
    run 0 run "$golden/bert-classify" -i '2 5' --class BertModel
    out_has 'First values'
    printf '{"ids": [2, 5, 4, 3], "type_ids": [0, 0, 1, 1], "more": {}}\n{"ids": [7]}\n' >"$tmp/in"
    run 0 run "$golden/bert-masked-lm" --json -q
    sed 's/"sequence.*"ids/"ids/' "$tmp/out" >"$tmp/want"
    printf '2 5 | 4 3\n7\n' >"$tmp/in"
    run 0 run "$golden/bert-masked-lm" --json -q
    sed 's/"sequence.*"ids/"ids/' "$tmp/out" >"$tmp/got"
    if cmp -s "$tmp/got" "$tmp/want"; then ok; else bad "an object and a line of the same ids differ"; fi
    fresh words bert-masked-lm
    words >"$tmp/words/tokenizer.json"
    run 0 run "$tmp/words" --position 0 --attentions
    out_has '2 [CLS]' ' w5 '
    run 0 run "$tmp/words" --position 0 --json
    json_lines "$tmp/out"
    out_has '"tokens": ["[CLS]", "w5", "[MASK]", "[SEP]"]'
    printf '1 2\n3' >"$tmp/in" # no newline at the end; empty input
    run 0 run "$golden/bert-tag" --json
    if [ "$(wc -l <"$tmp/out")" -eq 2 ]; then ok; else bad "a line without a newline"; fi
    : >"$tmp/in"
    run 0 run "$golden/bert-tag"
    if [ ! -s "$tmp/out" ]; then ok; else bad "output for empty input"; fi
}

section_run_errors() {
    : >"$tmp/in"
    while IFS='|' read -r line text; do
        printf '1 2\n3 4\n%b\n5 6\n' "$(echo "$line" | tr '!' '|')" >"$tmp/ids"
        refuses "ids: line 3: $text" -- run "$golden/bert-tag" "$tmp/ids"
        out_has 'Sequence 2 (' # lines before the error have results
        if grep -q 'Sequence 3' "$tmp/out"; then bad "a result for a bad line"; else ok; fi
    done <<'LIST'
|empty, expected token ids
 \t|empty, expected token ids
1 71 2|token id 71 at position 1, expected 0 to 70
-1|token id -1 at position 0, expected 0 to 70
99999999999999999999999999|token id 99999999999999999999999999 at position 0
1 2x|"2x" at position 1 is not a token id
1.5|"1.5" at position 0 is not a token id
\0001|"\x01" at position 0 is not a token id
1 ! 2 ! 3|'|' begins segment 3, expected at most 2 segments
1 !|no token after the last '|'
{"id": [1]}|no array "ids"
{"ids": []}|"ids" is empty
{"ids": [1, "2"]}|"ids" at position 1 is a string
{"ids": [1, 71]}|token id 71 at position 1
{"ids": [1, 2], "type_ids": [0]}|"type_ids" has 1 entries for 2 ids
{"ids": [1, 2], "type_ids": [0, 2]}|"type_ids" at position 1 is not a segment
{"ids": [1|line 1
1 > 2|'>' starts the decoder input, but the model has no such decoder
1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5|more than 24 tokens, the maximum sequence length of the model
LIST
    refuses -- run "$golden/bert-tag" --ids '1 x'
    refuses 'no token after' -- run "$golden/bart-lm" -i '1 2 >'
    refuses "'|' after" -- run "$golden/bart-lm" -i '1 > 2 | 3'
    refuses 'token id 71' -- run "$golden/bart-lm" -i '1 > 71'
    refuses 'no decoder input' -- run "$golden/mbart-lm" -i '1 2'
    refuses '--ids: sequence 2: empty' -- run "$golden/bert-tag" --ids '1' --ids ' '
    refuses 'nowhere: No such file' -- run "$golden/bert-tag" "$tmp/nowhere"
    refuses 'Is a directory' -- run "$golden/bert-tag" "$tmp"
    printf '1 2\n3\n4\n' >"$tmp/in"
    refuses 'standard input: line 3: the input ends after 1 of 2 choices' -- run "$golden/bert-choice" -c 2
    out_has 'Question 1'
    refuses '--position 1, but the sequence has 1 tokens' -- run "$golden/bert-masked-lm" -p 1
    : >"$tmp/in"
    run 2 run "$golden/bert-tag" --mask-id 3
    run 2 run "$golden/bert-tag" --choices 2
    run 2 run "$golden/bert-choice"
    run 2 run "$golden/bert-masked-lm" --mask-id 71
    run 2 run "$golden/bert-masked-lm" --mask-id 3 --position 1
    run 2 run "$golden/bert-model" --layer 1
    run 2 run "$golden/bert-model" --attentions --layer 2
    run 2 run "$golden/bert-model" --attentions --head 3
    run 2 run
    refuses 'class "BertForDreaming" is not supported' -- run "$golden/bert-model" --class BertForDreaming
    refuses 'empty: no config.json' -- run "$tmp/empty"

    # half the memory, identical results
    run 0 run "$golden/gpt2-lm" -i '7 8 9 10' --json
    cp "$tmp/out" "$tmp/packed"
    run 0 run "$golden/gpt2-lm" -i '7 8 9 10' --json --lean
    if cmp -s "$tmp/out" "$tmp/packed"; then ok; else bad "--lean changes results"; fi

    # unused tensors: a notice, or an error with --strict
    run 0 run "$golden/bert-classify" --class BertModel -i '5 6 7'
    if grep -q '^sesame: 2 tensors not used by a BertModel: classifier.bias, classifier.weight$' "$tmp/err"; then
        ok
    else
        bad "notice of unused tensors"
    fi
    refuses 'BertModel does not use: classifier.bias, classifier.weight' -- \
        run "$golden/bert-classify" --class BertModel --strict -i '5 6 7'
    run 0 info "$golden/bert-classify" --strict
    cp -r "$golden/bert-classify" "$tmp/code"
    sed 's/^{/{"auto_map": {"AutoModel": "modeling_mine.Mine"},/' "$golden/bert-classify/config.json" >"$tmp/code/config.json"
    run 0 info "$tmp/code"
    if grep -q '"auto_map" names code (modeling_mine.Mine), which is never run' "$tmp/err"; then ok; else bad "auto_map"; fi
    run 0 convert "$golden/bert-classify" "$tmp/strict" --strict
    refuses 'tensor "bert.pooler.dense.weight"' 'would be random' 'BertForMaskedLM' -- \
        run "$golden/bert-masked-lm" --class BertForSequenceClassification -i '5 6 7'

    # NaN weights: found by NaN in the output
    fresh nan
    poke "$tmp/nan/model.safetensors" "$(data_begins "$tmp/nan/model.safetensors")" '\000\000\300\177'
    refuses 'nan: tensor "bert.' 'element 0 is NaN or infinite' -- run "$tmp/nan" --ids '1 2'
}

section_convert() {
    from=$golden/bert-pretraining
    run 0 convert "$from" "$tmp/same"
    out_has 'config.json, model.safetensors' '13,097 parameters, F32, '
    run 0 info "$tmp/same"
    run 0 convert "$golden/bert-masked-lm" "$tmp/lm"
    if cmp -s "$tmp/lm/model.safetensors" "$golden/bert-masked-lm/model.safetensors"; then # identical to the file written by transformers
        ok
    else
        bad "convert to the same format changes the file"
    fi
    refuses 'same' '--overwrite' -- convert "$from" "$tmp/same"
    run 0 convert "$from" "$tmp/same" --dtype f16 --overwrite
    out_has 'F32 to F16' 'Rounding'
    run 0 info "$tmp/same" --json
    out_has '"F16": 13097' '"converted_bytes": 2948'
    run 0 convert "$tmp/same" "$tmp/half" --json # keeps its type
    json "$tmp/out"
    out_has '"dtype": "F16"' '"rounding": 0.0' '"files": ["model.safetensors"]'
    run 0 convert "$from" "$tmp/brain" --dtype bf16
    run 0 convert tests/sentence/old-bin "$tmp/sentence"
    out_has 'modules.json and 3 modules after the model'
    run 0 info "$tmp/sentence"
    out_has 'Dense (60 to 7, gelu), Normalize' '7 dimensions, similarity cosine'
    run 0 convert "$from" "$tmp/shards" --shard-size 10K
    out_has 'model-00001-of-00006.safetensors to' 'and their index'
    for dir in "$tmp/shards" "$tmp/half" "$tmp/brain"; do
        run 0 run "$dir" --ids '2 5 7 | 3'
        run 0 info "$dir"
    done
    run 0 run "$from" --ids '2 5 7 | 3' --json
    cp "$tmp/out" "$tmp/want"
    run 0 run "$tmp/shards" --ids '2 5 7 | 3' --json
    if cmp -s "$tmp/out" "$tmp/want"; then ok; else bad "shards change results"; fi
    run 0 convert "$tmp/shards" "$tmp/shards" --overwrite # onto itself: removes the shards
    if [ "$(ls "$tmp/shards" | tr '\n' ' ')" = 'config.json model.safetensors ' ]; then ok; else bad "files left"; fi

    fresh tokenizer
    echo word >"$tmp/tokenizer/vocab.txt"
    run 0 convert "$tmp/tokenizer" "$tmp/tokenizer2"
    out_has 'Copied        vocab.txt'
    if cmp -s "$tmp/tokenizer/vocab.txt" "$tmp/tokenizer2/vocab.txt"; then ok; else bad "vocab.txt is not the same"; fi

    # 1e6 exceeds the range of f16; NaN is always an error
    fresh large
    at=$(data_begins "$tmp/large/model.safetensors")
    poke "$tmp/large/model.safetensors" "$at" '\000\044\164\111'
    refuses 'large: tensor "bert.' '1 values up to 1e+06 exceed the range of F16' -- convert "$tmp/large" "$tmp/no" -d f16
    poke "$tmp/large/model.safetensors" "$at" '\000\000\300\177'
    refuses 'large: tensor "bert.' 'NaN' -- convert "$tmp/large" "$tmp/no"
    if [ ! -e "$tmp/no" ]; then ok; else bad "a failed conversion leaves files"; fi
    : >"$tmp/file"
    refuses 'file' -- convert "$from" "$tmp/file"
    refuses 'nowhere' -- convert "$tmp/nowhere" "$tmp/no"
    run 2 convert "$from"
    run 2 convert "$from" "$tmp/no" --dtype f8
}

section_bench() {
    keys='^{"bench": "[a-z0-9_.]*", "shape": "[^"]*", "threads": [0-9]*, "isa": "[a-z0-9]*", "dtype": "f32", "value": '
    keys=$keys'[0-9.e+-]*, "unit": "[A-Za-z/]*", "peak_share": [0-9.enul-]*}$'
    kinds="gemm ops model"
    case $("$sesame" --version --verbose) in
    *Release*) ;;
    *) # sanitizers: speed is meaningless, and everything takes minutes
        kinds=gemm
        skipped=$((skipped + 2))
        ;;
    esac
    for what in $kinds; do
        run 0 bench $what --quick --json --threads 1 --quiet
        if [ -s "$tmp/out" ] && ! grep -qv "$keys" "$tmp/out"; then ok; else bad "rows of bench $what"; fi
        head -1 "$tmp/out" >"$tmp/first"
        json_lines "$tmp/first"
    done
    run 2 bench
    run 2 bench gems
    for how in 'gpt2-lm --load 2x5' 'gpt2-lm --load 3+4 --beams 2' 't5-v1.1 --load 2x5' 't5-v1.1 --load 1x4 --beams 3'; do
        # shellcheck disable=SC2086  # a folder and options
        run 0 bench generate --json --quiet --threads 1 --new-tokens 4 --model tests/golden/$how
        if [ "$(grep -c '"bench": "generate.prefill"' "$tmp/out")" -eq 2 ] && [ "$(grep -c '"bench": "generate.decode"' "$tmp/out")" -eq 2 ] &&
            ! grep -qv "$keys" "$tmp/out"; then ok; else bad "rows of bench generate $how"; fi
    done
    for how in '--load 2x5' '--beams 2' '--model tests/golden/gpt2-lm' '--model tests/golden/gpt2-lm --load 2x5 --train'; do
        # shellcheck disable=SC2086  # options
        run 2 bench generate $how
    done
    run 2 bench ops --new-tokens 3
    # Ctrl-C: results so far, then exit 1
    env --default-signal=INT "$sesame" bench gemm --threads 1 >"$tmp/out" 2>"$tmp/err" & # background jobs ignore SIGINT
    bench=$!
    for _ in $(seq 300); do # wait for the first rows
        grep -q 'forward, packed, hot' "$tmp/out" && break
        sleep 0.1
    done
    kill -INT $bench
    wait $bench
    if [ $? -eq 1 ] && grep -q 'Stopped' "$tmp/err"; then ok; else bad "SIGINT"; fi
    out_has 'forward, packed, hot'
}

section_info
section_unknown
section_config
section_weights
section_run
section_run_errors
section_convert
section_bench

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
