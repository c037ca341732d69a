#!/bin/sh
# Pipeline commands: all forms of input, results independent of the batch, errors.
# Usage: sh tests/test_pipelines.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
sesame=$1/sesame
build=$1
m=tests/pipelines
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0

ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "failed: $*"
    sed 's/^/    stdout: /' "$tmp/out" | cut -c 1-200 | head -2
    sed 's/^/    stderr: /' "$tmp/err" | head -2
}

# run CODE COMMAND...: leaves its streams in $tmp/out and $tmp/err; input from $tmp/in.
: >"$tmp/in"
run() {
    want=$1
    shift
    "$sesame" "$@" <"$tmp/in" >"$tmp/out" 2>"$tmp/err"
    code=$?
    if [ "$code" -eq "$want" ]; then ok; else bad "exit $code, not $want: sesame $*"; fi
}
stdout_has() { for text in "$@"; do if grep -qF -- "$text" "$tmp/out"; then ok; else bad "not on stdout: $text"; fi; done; }
stderr_has() { for text in "$@"; do if grep -qF -- "$text" "$tmp/err"; then ok; else bad "not on stderr: $text"; fi; done; }
lines() { if [ "$(wc -l <"$tmp/out")" -eq "$1" ]; then ok; else bad "$(wc -l <"$tmp/out") lines, not $1"; fi; }

# input: arguments, files, standard input, JSON lines; names and aliases
run 0 text-classification -m $m/bert-label "The bell rings." "Nobody counts."
stdout_has 'The bell rings.' 'Nobody counts.' '0.'
grep -q 'texts/s' "$tmp/err" && bad 'the speed of arguments' || ok
run 0 text-classification -m $m/bert-label --verbose "The bell rings."
stderr_has '1 text, ' 'tokens/s'
if grep -Eq ' in [0-9]+(\.[0-9]+)? (ms|s): ' "$tmp/err"; then ok; else bad 'the time of arguments'; fi
run 0 text-classification -m $m/bert-label --verbose --quiet "The bell rings."
[ -s "$tmp/err" ] && bad 'quiet and verbose' || ok
printf 'The bell rings.\r\nNobody counts.' >"$tmp/texts"
run 0 text-classification -m $m/bert-label --json -f "$tmp/texts"
cp "$tmp/out" "$tmp/one"
lines 2
stderr_has '2 texts, ' 'texts/s' 'tokens/s'
cp "$tmp/texts" "$tmp/in"
run 0 sentiment-analysis -m $m/bert-label --json -q
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'standard input and a file'
[ -s "$tmp/err" ] && bad 'quiet' || ok
printf '{"text": "The bell rings."}\n"Nobody counts."\n' >"$tmp/in"
run 0 sentiment-analysis -m $m/bert-label --json --jsonl -q -f -
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'JSON lines'
printf '{"text": "The bell", "text_pair": "rings"}\n' >"$tmp/in"
run 0 text-classification -m $m/bert-label --json --jsonl -k all
cp "$tmp/out" "$tmp/one"
run 0 text-classification -m $m/bert-label --json -k 3 --text-pair rings "The bell"
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'a pair'
run 0 question-answering -m $m/bert-qa --json "Who eats?" "The keeper eats."
cp "$tmp/out" "$tmp/one"
stdout_has '"answer": '
for way in '--question Who@eats? The@keeper@eats.' '--context The@keeper@eats. Who@eats?'; do
    set -- $way
    run 0 question-answering -m $m/bert-qa --json "$1" "$(echo "$2" | tr @ ' ')" "$(echo "$3" | tr @ ' ')"
    cmp -s "$tmp/one" "$tmp/out" && ok || bad "question-answering $way"
done
printf 'Who eats?\tThe keeper eats.\n' >"$tmp/in"
run 0 question-answering -m $m/bert-qa --json -q
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'question-answering: a tab'
printf '{"context": "The keeper eats."}\n' >"$tmp/in"
run 0 question-answering -m $m/bert-qa --json -q --jsonl --question 'Who eats?'
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'question-answering: one question for all'
: >"$tmp/in"
run 0 fill-mask -m $m/bert-mask
lines 0
run 0 zero-shot-classification -m $m/bert-label --json -c fruit,bells -c "a boat" "Plums."
stdout_has '"sequence": "Plums."' '"labels": ["' '"a boat"'
run 0 zero-shot-classification -m $m/bert-label --json -c Bells,bells,BELLS "Plums."
stdout_has '"labels": ["BELLS", "bells", "Bells"]'
run 0 rerank -m $m/bert-score --json -k 1 --return-text plums "He sells plums." "It rains."
stdout_has '"index": ' '"score": ' '"text": '
run 0 similarity -m $m/bert-mask --json plums plums "It rains."
stdout_has '[1.0, '
run 0 multiple-choice -m $m/bert-choice --json "He went" home away
stdout_has '"index": 0' '"choice": "home"'
run 0 next-sentence -m $m/bert-nsp --json "It rains." "The roof is wet."
stdout_has IsNext NotNext

# output for a terminal
run 0 ner -m $m/bert-tag -a simple --color never "Anna went to Lindau."
stdout_has '[' ' PER]'
run 0 ner -m $m/bert-tag -a first --color never "Anna went to Lindau."
cp "$tmp/out" "$tmp/one"
run 0 ner -m $m/bert-tag --color never "Anna went to Lindau."
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'ner groups words in text output'
run 0 ner -m $m/bert-tag --json -a none "Anna went to Lindau."
cp "$tmp/out" "$tmp/one"
stdout_has '"entity": ' '"index": '
run 0 ner -m $m/bert-tag --json "Anna went to Lindau."
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'ner --json: every token'
run 0 qa -m $m/bert-qa --json "Who eats?" "The keeper eats."
stdout_has '"answer": '
run 0 classify -m $m/bert-label --json "The bell rings."
stdout_has '"label": '
run 2 translate "The bell rings."
stderr_has '--model DIR is required: Sesame has no bundled model for translation'
run 0 rerank --help
stdout_has 'sesame rerank [OPTION...] [QUERY TEXT...]' 'No model is bundled for this task: --model is required.' '"index": 0'
run 0 fill-mask --help
stdout_has 'sesame fill-mask [OPTION...] [TEXT...]' 'Without --model the bundled model of this task is used.'
run 0 ner -m $m/bert-tag -a simple --color always "Anna went to Lindau."
stdout_has "$(printf '\033[')"
run 0 question-answering -m $m/bert-qa --color never "Who?" "The keeper eats."
stdout_has '['
run 0 question-answering --help
stdout_has 'equal' 'exceed 1'
run 0 fill-mask -m $m/bert-mask -k 2 "[MASK] and [MASK]"
stdout_has 'mask 1' 'mask 2' '#'
run 0 feature-extraction -m $m/bert-mask "a b"
stdout_has ' x 16' '[CLS]'

# vectors
run 0 embed -m $m/bert-mask --format tsv "a b" c
lines 2
run 0 embed -m $m/bert-mask --format jsonl "a b" c
lines 2
cp "$tmp/out" "$tmp/one"
run 0 embed -m $m/bert-mask --json "a b" c
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'embed --json and --format jsonl'
run 0 embed -m $m/bert-mask --format npy "a b" c d
cp "$tmp/out" "$tmp/one"
"$sesame" embed -m $m/bert-mask --format npy "a b" c d | cat >"$tmp/out"
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'npy to a file and to a pipe'
[ "$(wc -c <"$tmp/out")" -eq $((128 + 3 * 16 * 4)) ] && ok || bad 'npy: size'
head -c 128 "$tmp/out" | tr -d '\0\223' | grep -qF "'shape': (3, 16)" && ok || bad 'npy: header'
run 0 embed -m $m/bert-mask --format npy -q -f /dev/null
[ "$(wc -c <"$tmp/out")" -eq 128 ] && grep -qaF "'shape': (0, 16)" "$tmp/out" && ok || bad 'npy: no rows'
run 0 embed -m $m/bert-mask --format tsv -q -f /dev/null
lines 0

# spaces at both ends of a text count; do_lower_case does not change special tokens
run 0 embed -m $m/roberta-mask --json "a b"
cp "$tmp/out" "$tmp/one"
run 0 embed -m $m/roberta-mask --json "a b "
cmp -s "$tmp/one" "$tmp/out" && bad 'embed: spaces at both ends' || ok
cp -r $m/roberta-mask "$tmp/lower"
chmod -R u+w "$tmp/lower"
sed 's/<mask>/<MASK>/g' $m/roberta-mask/tokenizer.json >"$tmp/lower/tokenizer.json"
run 0 embed -m "$tmp/lower" --json "the <MASK> bell"
cp "$tmp/out" "$tmp/one"
run 0 embed -m "$tmp/lower" --json "The <MASK> BELL"
cmp -s "$tmp/one" "$tmp/out" && bad 'embed: case counts' || ok
echo '{"do_lower_case": true}' >"$tmp/lower/sentence_bert_config.json"
run 0 embed -m "$tmp/lower" --json "The <MASK> BELL"
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'embed: do_lower_case'
# a prompt that is not pooled and fills the whole length keeps the special token at its end
cp -r $m/roberta-mask "$tmp/prompt"
chmod -R u+w "$tmp/prompt"
mkdir "$tmp/prompt/pool"
echo '[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
{"idx": 1, "name": "1", "path": "pool", "type": "sentence_transformers.models.Pooling"}]' >"$tmp/prompt/modules.json"
echo '{"pooling_mode": "lasttoken", "include_prompt": true}' >"$tmp/prompt/pool/config.json"
run 0 embed -m "$tmp/prompt" --json --max-seq-len 6 --prompt "the bell rings and nobody counts: " "a b"
cp "$tmp/out" "$tmp/one"
echo '{"pooling_mode": "mean", "include_prompt": false}' >"$tmp/prompt/pool/config.json"
run 0 embed -m "$tmp/prompt" --json --max-seq-len 6 --prompt "the bell rings and nobody counts: " "a b"
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'embed: a prompt longer than --max-seq-len'
echo '{"max_seq_length": 6}' >"$tmp/prompt/sentence_bert_config.json"
run 0 embed -m "$tmp/prompt" --json --prompt "the bell rings and nobody counts: " "a b"
cmp -s "$tmp/one" "$tmp/out" && ok || bad 'embed: a prompt longer than the folder allows'

# segment ids are given if the tokenizer class gives them: classes of BERT and related models
cp -r $m/bert-label "$tmp/segments"
chmod -R u+w "$tmp/segments"
for class in TokenizersBackend BertTokenizerFast DebertaV2Tokenizer BertweetTokenizer RobertaTokenizer; do
    sed "s/\"tokenizer_class\": \"[A-Za-z]*\"/\"tokenizer_class\": \"$class\"/; s/model_input_names/x/" \
        $m/bert-label/tokenizer_config.json >"$tmp/segments/tokenizer_config.json"
    run 0 text-classification -m "$tmp/segments" --json -k all --text-pair rings "The bell"
    cp "$tmp/out" "$tmp/$class"
done
cmp -s "$tmp/BertTokenizerFast" "$tmp/DebertaV2Tokenizer" && ok || bad 'segments: two classes that give them'
cmp -s "$tmp/TokenizersBackend" "$tmp/RobertaTokenizer" && ok || bad 'segments: two classes that do not'
cmp -s "$tmp/TokenizersBackend" "$tmp/BertweetTokenizer" && ok || bad 'segments: a class with a similar name'
cmp -s "$tmp/TokenizersBackend" "$tmp/BertTokenizerFast" && bad 'segments make no difference' || ok
sed '/"tokenizer_class"/d; s/model_input_names/x/' $m/bert-label/tokenizer_config.json >"$tmp/segments/tokenizer_config.json"
run 0 text-classification -m "$tmp/segments" --json -k all --text-pair rings "The bell"
cmp -s "$tmp/out" "$tmp/BertTokenizerFast" && ok || bad 'segments: no class, a BERT'

# the same results with any batch size and number of threads
awk 'BEGIN { srand(7); n = split("the bell rings at noon Anna Keller went to Lindau plums , . ! far from here naïve", w, " ")
    for (i = 0; i < 1000; i++) { k = int(rand() * rand() * 38) + 1; s = ""
        for (j = 0; j < k; j++) s = s w[int(rand() * n) + 1] " "; print s } }' >"$tmp/mixed"
sed 's/^/[MASK] /' "$tmp/mixed" >"$tmp/masks"
same() {
    first=
    for way in '-b 1 -t 1' '-b 512 -t 2' '-b 16384 -t 1' '-b 16384 -t 2' '-t 2'; do
        # shellcheck disable=SC2086  # several words
        run 0 "$@" --json -q $way
        lines 1000
        if [ -z "$first" ]; then
            first=1
            cp "$tmp/out" "$tmp/one"
        else
            cmp -s "$tmp/one" "$tmp/out" && ok || bad "batches: sesame $* $way"
        fi
    done
}
same text-classification -m $m/bert-label -k all -f "$tmp/mixed"
same ner -m $m/roberta-tag -a average -f "$tmp/mixed"
same fill-mask -m $m/bert-mask -k 2 -f "$tmp/masks"
same embed -m $m/bert-mask -f "$tmp/mixed"
same zero-shot-classification -m $m/bert-label -c fruit,bells -f "$tmp/mixed"
same fill-mask -m $m/bert-mask -k 2 --do-sample --temperature 2 --seed 3 -f "$tmp/masks"
run 0 fill-mask -m $m/bert-mask --json -k 2 --do-sample --temperature 2 --seed 4 -q -f "$tmp/masks"
cmp -s "$tmp/one" "$tmp/out" && bad 'another seed, the same tokens' || ok

# draws with replacement: their frequencies follow the probabilities (chi-squared), within the best ones with -k
same fill-mask -m $m/bert-mask --draws 3 --seed 3 -f "$tmp/masks"
same fill-mask -m $m/bert-mask --draws 2 --one-by-one --seed 3 -f "$tmp/masks"
scores() { sed 's/}, {/\n/g' "$tmp/out" | sed 's/.*"score": \([-0-9.e]*\), "token": \([0-9]*\),.*/\1 \2/'; }
run 0 fill-mask -m $m/bert-mask --json -k all --temperature 2 "Anna [MASK] noon."
scores >"$tmp/all"
for k in 0 6; do
    best=
    [ $k -eq 0 ] || best="-k $k"
    # shellcheck disable=SC2086
    run 0 fill-mask -m $m/bert-mask --json --draws 20000 --temperature 2 --seed 5 $best "Anna [MASK] noon."
    scores >"$tmp/drawn"
    awk -v k=$k 'NR == FNR { if (!k || NR <= k) { p[$2] = $1; sum += $1 } next }
        { if (!($2 in p) || $1 != p[$2]) wrong = 1; n[$2]++; all++ }
        END {
            for (t in p) { e = all * p[t] / sum; if (e >= 5) { x += (n[t] - e) ^ 2 / e; df++ } }
            exit wrong || all != 20000 || df < 5 || x > df + 4 * sqrt(2 * df)
        }' "$tmp/all" "$tmp/drawn" && ok || bad "frequencies of draws, k $k"
done
# one by one: the second token is drawn given the first
run 0 fill-mask -m $m/bert-mask --json --draws 8 --one-by-one --targets an,the "[MASK] rings [MASK]."
stdout_has '"sequence": "an rings the."' '"sequence": "the rings the."'
sed 's/.*\], \[//; s/}, {/\n/g' "$tmp/out" | grep '"an rings the' | sed 's/.*"score": \([0-9.]*\).*/\1/' >"$tmp/given"
run 0 fill-mask -m $m/bert-mask --json --targets the "an rings [MASK]."
stdout_has "\"score\": $(head -1 "$tmp/given")"
run 3 fill-mask -m $m/bert-mask --draws 2 --one-by-one "[MASK] $(awk 'BEGIN { for (i = 0; i < 99; i++) printf "the bell " }') [MASK]"
stderr_has 'its masks are in 2 windows; shorten it'
run 2 fill-mask -m $m/bert-mask --one-by-one "a [MASK]"
stderr_has 'one-by-one needs draws'
run 2 fill-mask -m $m/bert-mask --draws 2 --do-sample "a [MASK]"
stderr_has 'do-sample draws without replacement, draws with'

# long texts: windows, or a notice of truncation
awk 'BEGIN { for (i = 0; i < 120; i++) printf "Anna Keller went to Lindau. "; print "" }' >"$tmp/long"
run 0 ner -m $m/bert-tag -a simple --json -f "$tmp/long"
stdout_has '"end": 33'
grep -q 'truncated' "$tmp/err" && bad 'windows truncate nothing' || ok
run 0 ner -m $m/bert-tag --json -f "$tmp/long"
stdout_has '"end": 33'
run 0 text-classification -m $m/bert-label --json -f "$tmp/long"
stderr_has 'long: line 1: truncated by ' ' tokens: the maximum sequence length is 48'
run 0 fill-mask -m $m/bert-mask --json "$(cat "$tmp/long") and [MASK]."
stdout_has '"token_str"'
stderr_has 'text 1: truncated by ' ' tokens: the maximum sequence length is 48'
run 0 fill-mask -m $m/bert-mask --json "Anna and [MASK]."
grep -q 'truncated' "$tmp/err" && bad 'a short text is not truncated' || ok
run 0 text-classification -m $m/bert-label --json --max-seq-len 8 "The bell rings at noon, nobody knows why."
stderr_has 'the maximum sequence length is 8'
run 3 ner -m $m/bert-tag --max-seq-len 2 "The bell rings."
stderr_has 'a maximum length of 2 tokens leaves no room for the text'
run 3 ner -m $m/bert-tag --stride 46 -f "$tmp/long"
stderr_has 'stride 46'
run 3 question-answering -m $m/bert-qa "$(head -c 300 "$tmp/long")" "The bell rings."
stderr_has 'leaves no room for its context'
run 3 zero-shot-classification -m $m/bert-label -c "$(head -c 300 "$tmp/long")" "The bell rings."
stderr_has 'label "Anna'

# bad input
run 3 fill-mask -m $m/bert-label "a [MASK]"
stderr_has 'BertForSequenceClassification does not support fill-mask; it supports text-classification, zero-shot'
run 3 fill-mask -m $m/bert-mask "no such thing"
stderr_has 'text 1: no mask in the text: expected at least one [MASK]'
run 0 text-classification -m $m/bert-label --json ""
stdout_has '"label"'
mkdir "$tmp/odd"
cp $m/bert-mask/* "$tmp/odd"
cp $m/roberta-mask/tokenizer* "$tmp/odd"
run 3 fill-mask -m "$tmp/odd" "a <mask>"
stderr_has "the tokenizer has ids up to 329, but the model's embedding table has only 140 rows"
rm "$tmp/odd"/tokenizer*
run 3 fill-mask -m "$tmp/odd" "a [MASK]"
run 3 fill-mask -m "$tmp/nowhere" "a [MASK]"
stderr_has nowhere
awk 'BEGIN { for (i = 0; i < 40000; i++) printf "The bell rings at noon. "; print "" }' >"$tmp/mega"
run 0 text-classification -m $m/bert-label --json -f "$tmp/mega"
lines 1
run 0 ner -m $m/bert-tag -a simple --json -q -f "$tmp/mega"
lines 1
printf 'bell \377\376 rings [MASK]\n' >"$tmp/in"
run 3 fill-mask -m $m/bert-mask --json
stderr_has 'line 1: byte 6: invalid UTF-8'
run 0 fill-mask -m $m/bert-mask --json --encoding utf-8-replace
stdout_has '"token_str"'
run 0 zero-shot-classification -m $m/bert-label -c a,b --json --encoding utf-8-replace
"$build/json_valid" <"$tmp/out" >/dev/null 2>&1 && ok || bad 'invalid UTF-8 in, JSON out'
printf '{"text": "a"}\n{"txt": "b"}\n{"text": 3}\n{"text": \n["c"]\n{"text": "d"}\n' >"$tmp/in"
run 3 text-classification -m $m/bert-label --json --jsonl
lines 1
stderr_has 'line 2: key "text" is missing'
run 1 text-classification -m $m/bert-label --json --jsonl --keep-going
lines 6
stdout_has '{"error": "standard input: line 2: key \"text\" is missing"}' '{"error": "standard input: line 3: key \"text\" must be a string' \
    '{"error": "standard input: line 5: expected an object or a string'
stderr_has 'line 2: ' 'line 3: ' 'line 4: ' 'line 5: '
run 1 text-classification -m $m/bert-label --jsonl --keep-going
stderr_has 'line 2: '
printf '{"text": "The bell rings."}\n' >"$tmp/one.jsonl"
run 0 text-classification -m $m/bert-label --json --jsonl "$tmp/one.jsonl" "$tmp/one.jsonl"
lines 2
run 3 text-classification -m $m/bert-label --json --jsonl "$tmp/none.jsonl"
stderr_has 'none.jsonl: No such file'
for wrong in 'mutually exclusive|--file x y' '--top-k: 0 is out of range|--top-k 0 y' \
    'is not a whole number or all|--top-k some y' '--model DIR is required|' "unknown option '--topk'|--topk 1 y" \
    'out of range|--batch-tokens 0 y' 'is not one of|--function-to-apply x y'; do
    # shellcheck disable=SC2086  # several words
    case $wrong in
    *'required|') run 2 multiple-choice y ;;
    *) run 2 text-classification -m $m/bert-label ${wrong#*|} ;;
    esac
    stderr_has "${wrong%%|*}"
done
run 2 embed -m $m/bert-mask --normalize --no-normalize x
stderr_has 'exclude each other'
run 2 question-answering -m $m/bert-qa --question a --context b c
run 2 zero-shot-classification -m $m/bert-label -c a --hypothesis-template x y
stderr_has 'has no {}'
run 2 zero-shot-classification -m $m/bert-label -c a --hypothesis-template "{} and {}" y
stderr_has 'has more than one {}'
printf '"a"\n{"text": }\n' >"$tmp/in"
run 3 text-classification -m $m/bert-label --jsonl
stderr_has 'sesame: standard input: line 2: column 10 (byte 9): '
: >"$tmp/in"
run 2 embed -m $m/bert-mask --format npy --json x
stderr_has 'mutually exclusive'
run 3 zero-shot-classification -m $m/bert-label y
stderr_has 'no labels'
run 3 rerank -m $m/bert-label q d
stderr_has 'one output'
run 3 multiple-choice -m $m/bert-choice a b
stderr_has 'at least two choices'
run 2 fill-masks -m x y
stderr_has "did you mean 'fill-mask'?"

# a closed pipe ends the command without an error, an interrupt at once; earlier results remain
(yes 'the bell rings' | head -20000 | "$sesame" text-classification -m $m/bert-label --json 2>"$tmp/err"
    echo $? >"$tmp/code") | head -2 >"$tmp/out"
lines 2
[ -s "$tmp/err" ] && bad 'a closed pipe must not be an error' || ok
mkfifo "$tmp/fifo"
: >"$tmp/out"
"$sesame" text-classification -m $m/bert-label --json <"$tmp/fifo" >"$tmp/out" 2>"$tmp/err" &
pid=$!
exec 3>"$tmp/fifo"
echo 'the bell rings' >&3
i=0
while [ ! -s "$tmp/out" ] && [ $i -lt 100 ]; do # a busy machine takes its time
    i=$((i + 1))
    sleep 0.2
done
lines 1
kill -INT $pid 2>/dev/null
kill -TERM $pid 2>/dev/null # a background job of sh may ignore the first
exec 3>&-
wait $pid
[ $? -gt 128 ] && ok || bad 'an interrupt'
lines 1

# an interrupted command leaves complete lines
: >"$tmp/out"
yes 'Anna Keller went to Lindau, far from here' |
    "$sesame" feature-extraction -m $m/bert-mask --json -q >"$tmp/out" 2>"$tmp/err" &
pid=$!
i=0
while [ "$(wc -c <"$tmp/out")" -lt 100000 ] && [ $i -lt 500 ]; do
    i=$((i + 1))
    sleep 0.02
done
kill -TERM $pid
wait $pid 2>/dev/null
[ "$(wc -c <"$tmp/out")" -ge 100000 ] && [ "$(tail -c 1 "$tmp/out" | od -An -c | tr -d ' ')" = '\n' ] && ok ||
    bad 'ended inside a line'

# the examples
for x in "classify_file $m/bert-label $tmp/texts" "tag_entities $m/bert-tag Anna" \
    "answer_question $m/bert-qa Who? Anna" "embed_search $m/bert-mask $tmp/texts bell" \
    "shared_model $m/bert-label $tmp/texts sea,land" "model_outputs $m/bert-mask bell logits"; do
    # shellcheck disable=SC2086  # several words
    "$build"/examples/$x >"$tmp/out" 2>"$tmp/err" && [ -s "$tmp/out" ] && ok || bad "example $x"
    name=${x%% *}
    [ "$(wc -l <"examples/$name.c")" -le 80 ] && ok || bad "$name is longer than 80 lines"
done

printf '%d passed, %d failed\n' $passed $failed
[ $failed -eq 0 ]
