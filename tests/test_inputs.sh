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
stderr_lacks() { if grep -qF -- "$1" "$tmp/err"; then bad "on stderr: $1"; else ok; fi; }
lines() { if [ "$(wc -l <"$tmp/out")" -eq "$1" ]; then ok; else bad "lines on stdout, wanted $1"; fi; }
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
printf '\377\376T\000h\000e\000' >"$tmp/utf16" # by its byte order mark
run 0 text-classification -m $m/bert-label -f "$tmp/utf16"
gzip -c "$tmp/utf16" >"$tmp/utf16.gz"
run 3 text-classification -m $m/bert-label -f "$tmp/utf16.gz"
stderr_has 'this file is UTF-16'

# the rule for texts: UTF-8 without NUL, for every command that reads them; --encoding converts
printf 'good bell\ncaf\351 bell\nlast\n' >"$tmp/latin1"
printf 'good bell\na\000b\n' >"$tmp/nul"
iconv -f LATIN1 -t UTF-8 "$tmp/latin1" >"$tmp/utf8"
iconv -f LATIN1 -t UTF-16 "$tmp/latin1" >"$tmp/utf16"
printf '\357\273\277' | cat - "$tmp/utf8" >"$tmp/marked"
: >"$tmp/in"
for command in "text-classification -m $m/bert-label --json -q" "ner -m $m/bert-tag --json -q" "embed -m sesame-embed -q" \
    "tokenize -m $m/bert-label" "perplexity -m sesame-gpt --json" "search -m sesame-embed --json --rebuild bell" "rank -m $m/bert-label --json"; do
    f=-f
    case $command in rank*) f= ;; esac # arguments are files
    run 3 $command $f "$tmp/latin1"
    stderr_has "$tmp/latin1: line 2: byte 4: invalid UTF-8 (to convert: --encoding latin1"
    run 3 $command $f "$tmp/nul"
    stderr_has "$tmp/nul: line 2: byte 2: NUL"
    run 0 $command $f "$tmp/utf8"
    sed "s|$tmp/[a-z0-9]*|FILE|" "$tmp/out" >"$tmp/one.out"
    for file in latin1:latin1 utf16:utf-16 marked:utf-8; do
        case $command,$file in perplexity*,marked*) continue ;; esac # reads the file as one text
        run 0 $command --encoding ${file#*:} $f "$tmp/${file%:*}"
        if sed "s|$tmp/[a-z0-9]*|FILE|" "$tmp/out" | cmp -s - "$tmp/one.out"; then ok; else bad "$command, ${file#*:}"; fi
    done
done
cp "$tmp/latin1" "$tmp/in"
run 3 text-classification -m $m/bert-label
stderr_has 'standard input: line 2: byte 4: invalid UTF-8'
lines 2 # the result of the line before
run 1 text-classification -m $m/bert-label --json --keep-going
stderr_has 'line 2: byte 4: invalid UTF-8'
lines 3
run 0 text-classification -m $m/bert-label --json --encoding utf-8-replace
lines 3
run 3 text-classification -m $m/bert-label "$(printf 'caf\351')"
stderr_has 'byte 4: invalid UTF-8: arguments are UTF-8'
stderr_lacks '--encoding'
run 3 tokenize -m $m/bert-label "$(printf 'caf\351')"
stderr_has 'byte 4: invalid UTF-8: arguments are UTF-8'
stderr_lacks '--encoding'
run 2 text-classification -m $m/bert-label --encoding latin1 --shard 0/2 -f "$tmp/latin1"
stderr_has 'convert them to UTF-8 first'
run 3 train-tokenizer --type bpe -o "$tmp/t.json"
stderr_has 'standard input: line 2: byte 4: invalid UTF-8'
run 0 train-tokenizer --type bpe --encoding latin1 -o "$tmp/t.json"
run 3 corpus build --tokenizer $m/bert-label -o "$tmp/c.ids" "$tmp/latin1"
stderr_has 'latin1: line 2: byte 4: invalid UTF-8'
run 0 corpus build --tokenizer $m/bert-label -o "$tmp/c1.ids" --encoding latin1 "$tmp/latin1"
run 0 corpus build --tokenizer $m/bert-label -o "$tmp/c2.ids" "$tmp/utf8"
if cmp -s "$tmp/c1.ids" "$tmp/c2.ids"; then ok; else bad 'corpus build --encoding'; fi
printf 'text\tlabel\ncaf\351\tx\n' >"$tmp/latin1.tsv"
run 3 text-classification -m $m/bert-label --json -q --column text "$tmp/latin1.tsv"
stderr_has 'line 2: byte 4: invalid UTF-8'
run 0 text-classification -m $m/bert-label --json -q --column text --encoding latin1 "$tmp/latin1.tsv"
printf '__label__a good bell\n__label__b caf\351 bell\n' >"$tmp/labeled"
printf 'text\tlabel\ngood bell\ta\ncaf\351 bell\tb\n' >"$tmp/labeled.tsv"
for file in labeled labeled.tsv; do
    run 3 vectors supervised --dim 4 --epoch 1 --overwrite -o "$tmp/s.bin" "$tmp/$file"
    stderr_has "$file: line " 'invalid UTF-8'
    run 0 vectors supervised --dim 4 --epoch 1 --overwrite --encoding latin1 -o "$tmp/s.bin" "$tmp/$file"
    run 0 vectors test --encoding latin1 "$tmp/s.bin" "$tmp/$file"
done
for command in 'vectors phrases --min-count 1 --threshold 0 --passes 2' 'clusters -c 2'; do
    run 3 $command -o "$tmp/words" "$tmp/latin1"
    stderr_has "$tmp/latin1: line 2: byte 4: invalid UTF-8"
    run 0 $command --overwrite -o "$tmp/words" "$tmp/utf8"
    run 0 $command --encoding latin1 -o "$tmp/words.latin1" "$tmp/latin1"
    if cmp -s "$tmp/words" "$tmp/words.latin1"; then ok; else bad "$command --encoding"; fi
    rm -f "$tmp/words" "$tmp/words.latin1"
done
run 3 topics train -k 2 --min-df 1 -o "$tmp/topics" "$tmp/latin1"
stderr_has "$tmp/latin1: line 2: byte 4: invalid UTF-8"
for file in latin1 labeled.tsv; do
    run 0 topics train -k 2 --min-df 1 --overwrite --encoding latin1 -o "$tmp/topics" "$tmp/$file"
    run 0 topics infer --encoding latin1 "$tmp/topics" "$tmp/$file"
done
: >"$tmp/in"

# an empty text
run 0 text-classification -m $m/bert-label ''
stderr_has 'sesame: the text is empty'
run 0 text-classification -m $m/bert-label -q ''
no_stderr 'an empty text with --quiet'
printf 'a\n\nb\n \n' >"$tmp/in"
run 0 text-classification -m $m/bert-label
stderr_has 'sesame: 2 of 4 texts are empty, first standard input: line 2'
: >"$tmp/in"

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
[ "$(grep -c -v 'compares two texts' "$tmp/err")" -eq 1 ] && ok || bad 'the hint is one line'
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
! grep -q 'a file of this name' "$tmp/err" && ok || bad 'texts that do not name files'
run 2 text-classification -m $m/bert-label - -
stderr_has "'-' (standard input) is given 2 times"
run 3 text-classification -m $m/bert-label --jsonl '{"text": "a"}'
stderr_has 'with --jsonl or --column arguments are files'
run 0 text-classification --help all
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
mv "$tmp/folder/config.json" "$tmp/config.json"
run 3 embed -m "$tmp/folder" hi
stderr_has "$tmp/folder: no config.json; model.gguf is a GGUF file (llama.cpp): use the folder that it was converted from"
mkdir "$tmp/weights" && cp $weights "$tmp/weights"
run 3 embed -m "$tmp/weights" hi
stderr_has "$tmp/weights: no config.json beside the weights in model.safetensors"
mkdir "$tmp/nothing"
run 3 embed -m "$tmp/nothing" hi
stderr_has "$tmp/nothing: no config.json: not the folder of a model"
mv "$tmp/config.json" "$tmp/folder"
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
