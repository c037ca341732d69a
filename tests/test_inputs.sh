#!/bin/sh
# Input of commands that read texts: arguments, standard input, files, compressed files, the maximum line.
# Usage: sh tests/test_inputs.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
sesame=$1/sesame
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
no_stderr() { if [ -s "$tmp/err" ]; then bad "$*: stderr is not empty"; else ok; fi; }
same() { if cmp -s "$tmp/one" "$tmp/out"; then ok; else bad "$*: different output"; fi; }

printf 'The bell rings.\nThe keeper counts.\n' >"$tmp/texts"
run 0 text-classification -m $m/bert-label --json -q "The bell rings." "The keeper counts."
cp "$tmp/out" "$tmp/one"

# compressed files
for format in gzip:gz xz:xz zstd:zst; do
    program=${format%:*} file=$tmp/texts.${format#*:}
    if ! command -v "$program" >/dev/null || ! "$program" -c "$tmp/texts" >"$file" 2>/dev/null; then
        skipped=$((skipped + 1))
        continue
    fi
    "$sesame" text-classification -m $m/bert-label --json -q -f "$file" >"$tmp/out" 2>"$tmp/err"
    if [ $? -eq 3 ] && grep -q 'this build does not support' "$tmp/err"; then
        ok # the library was missing when Sesame was built
        continue
    fi
    same "text-classification -f texts.${format#*:}"
    cp "$file" "$tmp/in"
    run 0 text-classification -m $m/bert-label --json -q
    same "text-classification <texts.${format#*:}"
    head -c 20 "$file" >"$tmp/short"
    run 3 text-classification -m $m/bert-label --json -q -f "$tmp/short"
    stderr_has "$tmp/short: $program"
done
printf '2 5 3\n{"ids": [2, 6, 3]}\n' >"$tmp/ids"
: >"$tmp/in"
run 0 run $m/bert-label --json -q "$tmp/ids"
sed 's/"file": "[^"]*", //' "$tmp/out" >"$tmp/one.ids"
for program in gzip xz zstd; do
    if ! "$program" -c "$tmp/ids" >"$tmp/in" 2>/dev/null; then
        skipped=$((skipped + 1))
        continue
    fi
    "$sesame" run $m/bert-label -q - <"$tmp/in" >"$tmp/out" 2>"$tmp/err"
    if [ $? -eq 3 ] && grep -q 'this build does not support' "$tmp/err"; then
        ok # the library was missing when Sesame was built
        continue
    fi
    run 0 run $m/bert-label --json -q -
    if sed 's/"file": "[^"]*", //' "$tmp/out" | cmp -s - "$tmp/one.ids"; then ok; else bad "run <ids, $program"; fi
    head -c 20 "$tmp/in" >"$tmp/short"
    run 3 run $m/bert-label "$tmp/short"
    stderr_has "$tmp/short: $program"
done
: >"$tmp/in"
printf 'BZh91AY&SY' >"$tmp/texts.bz2"
run 3 run $m/bert-label "$tmp/texts.bz2"
stderr_has "$tmp/texts.bz2: this file is compressed: unpack it first"
run 3 text-classification -m $m/bert-label -f "$tmp/texts.bz2"
stderr_has "$tmp/texts.bz2: this file is compressed: unpack it first"
printf 'PAR1\025\004\025\n' >"$tmp/texts.parquet"
run 3 text-classification -m $m/bert-label -f "$tmp/texts.parquet"
stderr_has 'this file is Parquet'
printf 'PAR1\tgene\nBZh9\tnot compressed\n' >"$tmp/gene.tsv" # text that begins like a binary file
run 0 text-classification -m $m/bert-label --column 1 --no-header "$tmp/gene.tsv"
run 0 text-classification -m $m/bert-label -f "$tmp/gene.tsv"
printf '\377\376T\000h\000e\000' >"$tmp/utf16"
run 3 text-classification -m $m/bert-label -f "$tmp/utf16"
stderr_has 'this file is UTF-16'

# a line without an end
for command in 'text-classification -m tests/pipelines/bert-label -f' 'tokenize -m tests/pipelines/bert-label -f'; do
    run 3 $command /dev/zero
    stderr_has '/dev/zero: line 1 is longer than 256 MiB; expected one text per line, lines ending in LF'
done
run 3 text-classification -m $m/bert-label -f "$tmp/missing"
stderr_has "$tmp/missing: No such file"

# arguments are texts; "-" is standard input; -f reads files
run 0 text-classification -m $m/bert-label --json "$tmp/texts"
cp "$tmp/out" "$tmp/name"
stderr_has "sesame: $tmp/texts: a file of this name exists, but arguments are texts; -f FILE reads"
[ "$(wc -l <"$tmp/err")" -eq 1 ] && ok || bad 'the hint is one line'
run 0 text-classification -m $m/bert-label --json -q "$tmp/texts"
no_stderr 'a hint with --quiet'
cp "$tmp/texts" "$tmp/in"
run 0 text-classification -m $m/bert-label --json -
same 'text-classification -'
run 0 text-classification -m $m/bert-label --json -q -f "$tmp/texts"
same 'text-classification -f'
printf 'The keeper counts.' >"$tmp/in"
run 0 text-classification -m $m/bert-label --json "The bell rings." -
same 'text-classification TEXT -'
no_stderr 'texts that do not name files'
run 2 text-classification -m $m/bert-label - -
stderr_has "'-' (standard input) is given 2 times"
run 3 text-classification -m $m/bert-label --jsonl '{"text": "a"}'
stderr_has 'with --jsonl or --column arguments are files'
run 0 text-classification --help
stdout_has "Arguments are texts, '-' is standard input, -f FILE reads files"

# tasks with several texts: "-" is one text, or the lines of a list
printf 'The keeper eats.\nIt rains.\n' >"$tmp/in"
run 0 question-answering -m $m/bert-qa --json "Who eats?" "$(cat "$tmp/in")"
cp "$tmp/out" "$tmp/one"
run 0 question-answering -m $m/bert-qa --json "Who eats?" -
same 'question-answering Q -'
run 0 question-answering -m $m/bert-qa --json --question "Who eats?" --context "$(cat "$tmp/in")"
same 'question-answering --question Q --context C'
no_stderr 'question-answering --question Q --context C'
run 2 question-answering -m $m/bert-qa --question "Who eats?" --context "The keeper eats." text
stderr_has '--context and --question give both texts'
run 0 question-answering -m $m/bert-qa --json "Who eats?" "$tmp/texts"
stderr_has "$tmp/texts: a file of this name exists, but arguments are texts; - <FILE reads"
run 0 rerank -m $m/bert-score --json plums "The keeper eats." "It rains."
cp "$tmp/out" "$tmp/one"
run 0 rerank -m $m/bert-score --json plums -
same 'rerank QUERY -'
: >"$tmp/in"

# commands that read files: the error gives the way to pass text
run 3 run $m/bert-label "The bell rings."
stderr_has 'The bell rings.: No such file or directory; run reads files of token ids; for a text: sesame tokenize'
run 3 predict $m/bert-label "The bell rings." --task classify
stderr_has "The bell rings.: No such file or directory; predict reads a file; 'sesame text-classification'"
run 3 train-tokenizer --type bpe -o "$tmp/tokenizer.json" "The bell rings."
stderr_has "The bell rings.: No such file or directory; arguments are files; '-' is standard input"

# a file instead of the folder of a model: the error names its format and the remedy
printf 'GGUF\003\000\000\000rest of the file' >"$tmp/m.gguf"
printf '\010\007\022\007pytorch\032\003' >"$tmp/m.onnx"
printf '\200\002\175\161\001more bytes' >"$tmp/m.pkl"
weights=tests/golden/bert-classify/model.safetensors
for command in "text-classification -m FILE hi" "embed -m FILE hi" "tokenize -m FILE hi" "info FILE" "run FILE --ids 1" "convert FILE $tmp/none" \
    "eval FILE $tmp/in" "finetune -m FILE --task classify --train $tmp/in -o $tmp/none" "view -m FILE hi"; do
    # shellcheck disable=SC2086,SC2046  # several words
    run 3 $(echo "$command" | sed "s,FILE,$tmp/m.gguf,")
    stderr_has "$tmp/m.gguf: a GGUF file (llama.cpp), expected the folder of a model: use the folder that it was converted from"
done
run 3 embed -m "$tmp/m.onnx" hi
stderr_has "an ONNX model, expected the folder of a model: use the folder"
run 3 embed -m "$tmp/m.pkl" hi
stderr_has "a pickle (PyTorch weights or a Python object), expected the folder of a model: name the folder that contains it"
run 3 embed -m $weights hi
stderr_has "$weights: weights in safetensors, expected the folder of a model: name tests/golden/bert-classify"
run 3 embed -m "$tmp/in" hi
stderr_has "$tmp/in: a file, expected the folder of a model, with config.json and model.safetensors"
# in a folder
mkdir "$tmp/folder" && cp tests/golden/bert-classify/config.json "$tmp/folder" && cp "$tmp/m.gguf" "$tmp/folder/model.gguf"
run 3 info "$tmp/folder"
stderr_has 'model.gguf is a GGUF file (llama.cpp): use the folder that it was converted from'
mv "$tmp/folder/model.gguf" "$tmp/folder/model.safetensors"
run 3 info "$tmp/folder"
stderr_has 'model.safetensors: a GGUF file (llama.cpp), not safetensors: use the folder'
cp "$tmp/m.pkl" "$tmp/folder/model.safetensors"
run 3 info "$tmp/folder"
stderr_has 'not safetensors: such a file is named pytorch_model.bin'
rm "$tmp/folder/model.safetensors" && cp $weights "$tmp/folder/pytorch_model.bin"
run 3 info "$tmp/folder"
stderr_has 'pytorch_model.bin: weights in safetensors, not PyTorch weights: such a file is named model.safetensors'
mv "$tmp/folder/pytorch_model.bin" "$tmp/folder/weights.safetensors"
run 3 info "$tmp/folder"
stderr_has "weights.safetensors has weights in safetensors: if they are the model's, name it model.safetensors"

printf "%d passed, %d failed, %d skipped\n" $passed $failed $skipped
[ $failed -eq 0 ]
