#!/bin/sh
# What people type and the files they have: one section per promise of the command line.
# Usage: sh tests/test_last_mile.sh BUILD_DIR, from the source folder.
set -u
LC_ALL=C
export LC_ALL
unset SESAME_ISA SESAME_THREADS NO_COLOR CLICOLOR_FORCE COLUMNS
. tests/finetune_fixture.sh

# runs STATUS ARGUMENT...: a command with its exit status; then what stdout has and lacks, and what stderr notes
runs() {
    want=$1
    shift
    ok "sesame $*" exits "$want" "$sesame" "$@"
}
gives() { ok "stdout: $1" grep -qF -- "$1" "$tmp/out"; }
absent() { ! grep -qF -- "$1" "$tmp/out"; }
lacks() { ok "not on stdout: $1" absent "$1"; }
notes() { ok "stderr: $1" grep -qF -- "$1" "$tmp/err"; }
lines() { wc -l <"$tmp/out"; }

# ---- help ----

# the first page: ten tasks, five commands, where to go next; every task line works as printed
runs 0
cp "$tmp/out" "$tmp/start"
for title in 'Ten tasks' 'Five commands' 'Next steps'; do gives "$title"; done
printf 'A cat sleeps.\nThe train leaves at nine.\nA small dog barks.\n' >"$tmp/texts.txt"
sed -n '/^Ten tasks/,/^$/s/^  sesame //p' "$tmp/start" | sed 's/  .*//' >"$tmp/tasks"
that 'ten tasks' '[ "$(wc -l <"$tmp/tasks")" = 10 ]'
that 'five commands' '[ "$(sed -n "/^Five commands/,/^$/p" "$tmp/start" | grep -c "^  sesame ")" = 5 ]'
case $sesame in /*) command=$sesame ;; *) command=$PWD/$sesame ;; esac
while read -r task; do
    that "sesame $task" '(cd "$tmp" && eval "\"$command\" $task" >one 2>err </dev/null && [ -s one -o -s vectors.npy ])'
done <"$tmp/tasks"

# all commands by group
runs 0 --help
for title in 'Use a model' Data Train Inspect Compress Vectors Serve Maintain; do
    that "group $title" 'grep -q "^$title:$" "$tmp/out"'
done
that 'pipelines are in the first group' 'sed -n "/^Use a model:/,/^$/p" "$tmp/out" | grep -q "^  fill-mask "'
that 'analyses are in Inspect' 'sed -n "/^Inspect:/,/^$/p" "$tmp/out" | grep -q "^  explain "'

# a screenful of a long command, its groups by name, a group, all of it, and of one task
runs 0 finetune --help
that 'finetune --help is short' '[ "$(lines)" -le 80 ]'
for option in --task --train --eval --output --model --epochs --lr --batch-size; do
    that "finetune --help has $option" 'grep -q -e "^  ...  *$option \|^  -., $option " "$tmp/out"'
done
gives 'by --help GROUP or --help all'
that 'and not the options of groups' '! grep -q "^      --lora-rank" "$tmp/out"'
that 'it names the groups' 'grep -q "^  adapter .*--lora-rank" "$tmp/out"'
runs 0 finetune --help adapter
gives '      --lora-rank'
lacks '--epochs'
runs 0 finetune --help all
that 'finetune --help all is long' '[ "$(lines)" -gt 400 ]'
for option in lora-rank relation-weight crf max-answer search; do gives "      --$option "; done
cp "$tmp/out" "$tmp/all"
runs 0 help finetune all
that 'help finetune all' 'cmp -s "$tmp/all" "$tmp/out"'
runs 0 --help finetune
gives 'Usage: sesame finetune'
runs 2 finetune --help nonsense
notes "'sesame finetune' has no options named 'nonsense'; expected data, "
runs 0 finetune --task tag --help
gives 'Options of tag:'
gives '--crf'
lacks '--max-answer'
lacks '--patterns'
runs 0 finetune --task sst2 --help
gives 'Options of classify:'
lacks '--crf'
runs 0 finetune --help all --task answer
gives '--max-answer'
lacks '--crf'
lacks '(may be repeated) (may be repeated)'
for command in doctor vectors models; do # short ones are whole
    "$sesame" $command --help >"$tmp/out"
    lacks 'More options'
done
runs 0 fill-mask --help
lacks 'may be repeated (may be repeated)'
runs 0 fill-mask --help all
lacks 'may be repeated (may be repeated)'
gives '(may be repeated)'

# ---- words people type ----

for pair in list:models ls:models download:pull embeddings:embed sim:similarity mask:fill-mask \
    zero-shot:zero-shot-classification train:finetune fine-tune:finetune sentiment:text-classification; do
    "$sesame" "${pair#*:}" --help >"$tmp/one"
    runs 0 "${pair%:*}" --help
    that "${pair%:*} is ${pair#*:}" 'cmp -s "$tmp/one" "$tmp/out"'
done
runs 0 --version
cp "$tmp/out" "$tmp/one"
runs 0 version
that 'version is --version' 'cmp -s "$tmp/one" "$tmp/out"'
runs 0 version --verbose
gives 'compiler: '
runs 0 mask 'Tea is a [MASK] drink.'
runs 0 sim 'a cat' 'a kitten'
runs 2 encode 'a text'
notes "'sesame embed' gives vectors of texts, 'sesame tokenize' their tokens"
runs 2 chat
notes "'sesame generate' continues a text"

# ---- options as other programs spell them ----

"$sesame" generate --max-new-tokens 8 --do-sample false 'The old house' >"$tmp/greedy" 2>/dev/null
for spelling in '--max-tokens 8 --do-sample false' '-n 8 --do-sample false' '-n 8 --temperature 0' '-n 8 --do-sample --temperature 0' \
    '-n 8 --temperature 0 --batch-size 1'; do
    # shellcheck disable=SC2086  # several words
    runs 0 generate $spelling 'The old house'
    ok "generate $spelling" cmp -s "$tmp/greedy" "$tmp/out"
    ok "generate $spelling: no notice" test ! -s "$tmp/err"
done
printf 'One.\nTwo words.\nThree words here.\n' >"$tmp/some.txt"
"$sesame" classify -q -f "$tmp/some.txt" >"$tmp/one"
runs 0 classify -q -f "$tmp/some.txt" --batch-size 2
ok "the batch size does not change results" cmp -s "$tmp/one" "$tmp/out"
# shellcheck disable=SC2086  # several options
ok "--best-metric" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval "$tmp/dev.tsv" \
    --epochs 1 --best-metric f1 -o "$tmp/best"

# a file of texts as an argument and by -f
runs 0 search 'small animals' "$tmp/texts.txt" -q
cp "$tmp/out" "$tmp/one"
runs 0 search 'small animals' -f "$tmp/texts.txt" -q
ok "search QUERY FILE is search QUERY -f FILE" cmp -s "$tmp/one" "$tmp/out"
runs 2 search 'small animals'
notes "no file to search: give it last, as in 'sesame search QUERY FILE', or by -f FILE"
runs 0 index "$tmp/texts.txt" -o "$tmp/a.index"
runs 0 index -f "$tmp/texts.txt" -o "$tmp/b.index"
ok "index -f FILE is index FILE" cmp -s "$tmp/a.index" "$tmp/b.index"
runs 2 index -f "$tmp/texts.txt" "$tmp/texts.txt"
notes 'expected one FILE, not 2'
runs 2 index

# a model that is not there
runs 3 info bert-base-uncased
notes "'sesame pull bert-base-uncased' downloads one of this name"
runs 3 info org/name
notes "'sesame pull org/name' downloads it"

# errors name a model as it was typed
mkdir -p "$tmp/here/models"
ln -s "$PWD/models/sesame-small" "$tmp/here/models/mine"
runs 3 search -m "$tmp/here/models/mine" cat "$tmp/texts.txt"
notes "not $tmp/here/models/mine (384)"
runs 3 search -m sesame-small cat "$tmp/texts.txt"
notes 'not sesame-small (384)'

# progress without a terminal: lines of jobs that take longer than some seconds
awk 'BEGIN { for (i = 0; i < 40000; i++) printf "line %d of a file about ships, rivers and the number %d\n", i, i * 7919 % 10007 }' \
    >"$tmp/many.txt"
: >"$tmp/err"
"$sesame" index -t 1 "$tmp/many.txt" -o "$tmp/many.index" >/dev/null 2>"$tmp/err" &
job=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
    if [ -s "$tmp/err" ] || ! kill -0 $job 2>/dev/null; then break; fi
    sleep 1
done
kill $job 2>/dev/null
wait $job 2>/dev/null
ok "index reports its progress" err_has "^index [0-9]*%, .* left$"

# ---- output files ----

# -o, --output and --to are the file; its ending is the format
for option in -o --output --to; do
    runs 0 embed -q -f "$tmp/texts.txt" $option "$tmp/v$option.npy"
    ok "$option x.npy is a NumPy file" eval 'head -c 6 "$tmp/v$option.npy" | tail -c 5 | grep -q NUMPY'
done
runs 0 embed -q -f "$tmp/texts.txt" -o "$tmp/v.csv"
ok ".csv: 3 lines of 384 numbers" test "$(awk -F , 'NF == 384' "$tmp/v.csv" | wc -l)" -eq 3
runs 0 embed -q -f "$tmp/texts.txt" -o "$tmp/v.tsv"
ok ".tsv: the same with tabs" eval 'tr "\t" , <"$tmp/v.tsv" | cmp -s - "$tmp/v.csv"'
runs 0 embed -q -f "$tmp/texts.txt" -o "$tmp/v.jsonl"
ok ".jsonl: 3 arrays" test "$(grep -c '^\[.*\]$' "$tmp/v.jsonl")" -eq 3
runs 0 embed -q -f "$tmp/texts.txt" -o "$tmp/v.json"
ok ".json: an array of these" eval '{ echo "["; sed "\$!s/\$/,/" "$tmp/v.jsonl"; echo "]"; } | cmp -s - "$tmp/v.json"'
runs 0 embed -f "$tmp/texts.txt" -o npy -q
cp "$tmp/out" "$tmp/old.npy"
ok "-o npy is still the format" cmp -s "$tmp/old.npy" "$tmp/v-o.npy"
runs 0 embed -f "$tmp/texts.txt" -o npy --to "$tmp/old2.npy"
notes '-o npy is now --format npy; -o names the output file'
ok "also with a file" cmp -s "$tmp/old2.npy" "$tmp/v-o.npy"
runs 2 embed -f "$tmp/texts.txt" -o "$tmp/a" --to "$tmp/b"
runs 2 classify -f "$tmp/texts.txt" -o "$tmp/c.npy"
notes 'text-classification has no vectors for a NumPy file'
runs 0 classify -f "$tmp/texts.txt" -o "$tmp/upper.CSV"
runs 0 embed -q -f "$tmp/texts.txt" -o "$tmp/upper.NPY"
ok ".NPY: an array" cmp -s "$tmp/upper.NPY" "$tmp/v-o.npy"
ok ".CSV: a table" grep -q '^text,label,score' "$tmp/upper.CSV"

# tables
runs 0 classify --csv 'A warm film.' 'A "bad", one.'
gives 'text,label,score'
gives '"A ""bad"", one.",negative,0.9'
cp "$tmp/out" "$tmp/table"
printf 'A warm film.\nA "bad", one.\n' >"$tmp/two.txt"
runs 0 classify -q -f "$tmp/two.txt" -o "$tmp/c.csv"
ok "-o x.csv is that table" cmp -s "$tmp/table" "$tmp/c.csv"
runs 0 classify -q -f "$tmp/two.txt" -o "$tmp/c.tsv"
ok ".tsv" grep -q "^A warm film.$(printf '\t')positive$(printf '\t')0.9" "$tmp/c.tsv"
runs 0 classify -q -f "$tmp/two.txt" -o "$tmp/c.json"
ok ".json begins an array" eval 'head -n 1 "$tmp/c.json" | grep -qx "\["'
runs 0 classify -q -f "$tmp/two.txt" -o "$tmp/c.jsonl"
ok ".jsonl" test "$(grep -c '"label"' "$tmp/c.jsonl")" -eq 2
ok "an empty input gives an empty array" eval ': >"$tmp/empty"; "$sesame" classify -q -f "$tmp/empty" -o "$tmp/empty.json" && grep -qx "\[\]" "$tmp/empty.json"'
ok "finetune" exits 0 "$sesame" finetune --task classify --method nb --train "$tmp/train.tsv" --to "$tmp/mine"
for ending in csv tsv json jsonl; do runs 0 predict "$tmp/mine" "$tmp/dev.tsv" -o "$tmp/p.$ending"; done
ok "predict -o x.csv" eval 'head -n 1 "$tmp/p.csv" | grep -q "^sentence,label,"'
ok "predict -o x.json" eval '{ echo "["; sed "\$!s/\$/,/" "$tmp/p.jsonl"; echo "]"; } | cmp -s - "$tmp/p.json"'

# ---- README: short, with commands at its beginning ----

ok "README.md has at most 90 lines" test "$(wc -l <README.md)" -le 90
ok "its first command is on the first screen" eval 'head -n 20 README.md | grep -q "^\$ sesame "'
ok "docs/FEATURES.md has the table" grep -q '^| encoders | BERT' docs/FEATURES.md

# ---- tables as people have them ----

# texts LABELS FILE ARGUMENT...: `sesame data` finds 40 texts with the labels neg and pos in a file.
reads() {
    file=$1
    shift
    ok "data $file $*" exits 0 "$sesame" data "$tmp/$file" --task classify --json "$@"
    ok "$file: 40 rows" out_has '"examples": 40'
    ok "$file: 20 of a label" out_has '"value": "pos", "count": 20'
}
awk -F '\t' 'BEGIN { print "Text,Label" } NR <= 40 { print "\"" $1 ", caf\303\251\"," $2 }' "$tmp/rows" >"$tmp/upper.csv"
sed 's/",/";/; s/^Text,/Text;/' "$tmp/upper.csv" >"$tmp/semicolon.csv"
sed 's/",/"\t/; s/^Text,/Text\t/' "$tmp/upper.csv" >"$tmp/tab.csv"
cp "$tmp/upper.csv" "$tmp/comma.tsv"
iconv -f UTF-8 -t UTF-16 "$tmp/tab.csv" >"$tmp/utf16.csv"
iconv -f UTF-8 -t LATIN1 "$tmp/semicolon.csv" >"$tmp/latin1.csv"
awk -F '\t' 'BEGIN { print "[" } NR <= 40 { printf "%s{\"Text\": \"%s\",\n  \"Label\": \"%s\"}", (NR > 1) ? ",\n" : "", $1, $2 }
    END { print "\n]" }' "$tmp/rows" >"$tmp/array.json"
for file in upper.csv semicolon.csv tab.csv comma.tsv utf16.csv array.json; do reads $file; done
reads latin1.csv --encoding latin1
ok "Latin-1 is refused" exits 3 "$sesame" data "$tmp/latin1.csv" --task classify
ok "with the option" err_has '--encoding latin1'
ok "finetune reads an array" exits 0 "$sesame" finetune --task classify --method nb --train "$tmp/array.json" -o "$tmp/array"
ok "predict reads another spelling" exits 0 "$sesame" predict "$tmp/array" "$tmp/semicolon.csv"

# ---- columns with other names: one of texts and one of few values ----

awk 'BEGIN { print "id,date,Customer Message,Category"
    for (i = 0; i < 40; i++) printf "%d,2024-01-%02d 10:00,\"%s number %d, please\",%s\n", i, i % 28 + 1,
        i % 2 ? "my card is lost" : "send the bill", i, i % 2 ? "pos" : "neg" }' >"$tmp/message.csv"
cut -d , -f 3- "$tmp/message.csv" | sed 's/Category/kind/' >"$tmp/kind.csv" # no usual name at all
sed 1d "$tmp/kind.csv" >"$tmp/headless.csv"
awk -F '\t' 'BEGIN { print "review;sentiment;source" } NR <= 40 { print $1 " " NR ";" $2 ";" (NR % 3 ? "web" : "mail") }' \
    "$tmp/rows" >"$tmp/sentiment.csv"
reads message.csv
ok "names its columns" err_has 'message.csv: texts are in column "Customer Message", labels in "Category", found by their values (--text and --label choose)'
reads kind.csv
ok "names both" err_has 'texts are in column "Customer Message", labels in "kind"'
reads headless.csv
ok "has no header" err_has 'no header: texts are in column 1, labels in 2'
reads sentiment.csv
ok "the name decides" err_has 'texts are in column "review", labels in "sentiment"'
ok "finetune" exits 0 "$sesame" finetune --task classify --method nb --train "$tmp/message.csv" --eval "$tmp/kind.csv" -o "$tmp/nb"
ok "gives its columns" err_has 'message.csv: texts are in column "Customer Message", labels in "Category"'
ok "and the columns of the evaluation" err_has 'kind.csv: texts are in column "Customer Message", labels in "kind"'
for command in eval predict; do
    ok "$command" exits 0 "$sesame" $command "$tmp/nb" "$tmp/headless.csv"
    ok "$command names the columns" err_has 'headless.csv: no header: texts are in column 1'
done
ok "all rows are predicted" test "$(wc -l <"$tmp/out")" -eq 40
ok "ladder" exits 0 "$sesame" ladder classify "$tmp/kind.csv" --only nb
ok "ladder names them" err_has 'labels in "kind"'
ok "curve" exits 0 "$sesame" curve --task classify --train "$tmp/kind.csv" --eval "$tmp/kind.csv" --methods nb --sizes all -o "$tmp/curve"
ok "curve names them" err_has 'labels in "kind"'

# in doubt: the columns and the options
doubt() { # FILE MESSAGE
    ok "$1 is refused" exits 3 "$sesame" data "$tmp/$1" --task classify
    ok "$1: the reason" err_has "$2"
}
awk -F , 'NR == 1 { print "subject line,Customer Message,kind" } NR > 1 { print "about case " NR "," $1 "," $NF }' "$tmp/kind.csv" |
    tr -d '"' >"$tmp/two.csv"
doubt two.csv 'which column has the texts? "subject line", "Customer Message" may be texts; name it with --text; columns: "subject line", "Customer Message"'
sed '1s/sentiment/a/; 1s/source/b/' "$tmp/sentiment.csv" >"$tmp/labels.csv"
doubt labels.csv 'which column has the labels? "a", "b" may be labels; name it with --label; columns: "review", "a", "b"'
printf 'I loved it. Great!,positive\nbad it was,negative\nso it was,negative\nso so film,negative\n' >"$tmp/once.csv"
doubt once.csv 'columns: "I loved it. Great!", "positive"'
ok "with the option" exits 0 "$sesame" data "$tmp/once.csv" --task classify --no-header

# ---- finetune --eval 10%: a part of the training data ----

ok "a method" exits 0 "$sesame" finetune --task classify --method nb --train "$tmp/train.tsv" --eval 10% -o "$tmp/held"
ok "names the part" err_has 'train.tsv: 8 examples are held out for evaluation, drawn by seed 42'
ok "its results" grep -q '"eval_samples": 8' "$tmp/held/eval_results.json"
# shellcheck disable=SC2086
ok "a model" exits 0 "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --eval 10% --epochs 1 --seed 7 -o "$tmp/held2"
ok "names the part, too" err_has 'train.tsv: 8 examples are held out for evaluation, drawn by seed 7'
ok "72 examples are left" err_has '72 examples of .*, 8 for evaluation'
ok "four of a label" grep -q '"eval_neg_number": 4' "$tmp/held/eval_results.json"
ok "no part" exits 2 "$sesame" finetune --task classify --method nb --train "$tmp/train.tsv" --eval 0% -o "$tmp/none"
ok "is refused" err_has 'eval 0%: expected a part above 0% and below 100%'

# ---- finetune: weights of classes; no optimizer states are left behind ----

awk -F '\t' 'NR == 1 || $2 == "pos" || NR % 8 == 2' "$tmp/train.tsv" >"$tmp/rare.tsv" # 10 neg, 40 pos
rare="finetune --config $tmp/config.json --tokenizer $tmp/vocab.txt --threads 1 --lr 3e-3 --batch-size 8 --task classify --train $tmp/rare.tsv --eval $tmp/dev.tsv --epochs 1"
# shellcheck disable=SC2086
ok "balanced" exits 0 "$sesame" $rare --class-weights balanced -o "$tmp/balanced"
ok "names the weights" err_has 'class weights: neg 2.5, pos 0.625'
printf '{"neg": 2.5, "pos": 0.625}\n' >"$tmp/weights.json"
# shellcheck disable=SC2086
ok "the same from a file" exits 0 "$sesame" $rare --class-weights "$tmp/weights.json" -o "$tmp/weighted"
ok "has the same weights" cmp "$tmp/balanced/model.safetensors" "$tmp/weighted/model.safetensors"
# shellcheck disable=SC2086
ok "without weights" exits 0 "$sesame" $rare -o "$tmp/plain"
ok "is another model" sh -c "! cmp -s '$tmp/balanced/model.safetensors' '$tmp/plain/model.safetensors'"
printf '{"neg": 2.5}\n' >"$tmp/weights.json"
# shellcheck disable=SC2086
ok "a label without a weight" exits 3 "$sesame" $rare --class-weights "$tmp/weights.json" -o "$tmp/none"
ok "is named" err_has 'weights.json: no weight of label "pos"'
printf '{"neg": 0, "pos": 0}\n' >"$tmp/weights.json"
# shellcheck disable=SC2086
ok "no weight above 0" exits 3 "$sesame" $rare --class-weights "$tmp/weights.json" -o "$tmp/none"
ok "is said" err_has 'weights.json: all weights are 0: nothing would be learned'
# shellcheck disable=SC2086
ok "with label smoothing" exits 2 "$sesame" $rare --class-weights balanced --label-smoothing 0.1 -o "$tmp/none"
no_states() { ! find "$1" -name '*.safetensors' ! -name model.safetensors | grep . && ! ls -d "$1"/checkpoint-* 2>/dev/null; }
ok "no checkpoint is left" no_states "$tmp/plain"
ok "the run is complete" exits 0 "$sesame" finetune -o "$tmp/plain" --resume
ok "with a notice" err_has 'plain: the run is complete; nothing to resume'
ok "a longer run" exits 3 "$sesame" finetune -o "$tmp/plain" --resume --epochs 2
ok "cannot continue it" err_has 'was run with epochs 1.0, not 2.0; the run has ended and deleted its checkpoints (--keep-checkpoints keeps them)'
# shellcheck disable=SC2086
ok "unless they are kept" exits 0 "$sesame" $rare --keep-checkpoints 1 -o "$tmp/kept"
ok "there is one" sh -c "ls -d '$tmp'/kept/checkpoint-* >/dev/null"
# shellcheck disable=SC2086
env --default-signal=INT "$sesame" $rare --epochs 30 --save-every 2 -o "$tmp/stopped" >/dev/null 2>&1 & # Ctrl-C
for _ in $(seq 100); do
    ls -d "$tmp"/stopped/checkpoint-* >/dev/null 2>&1 && break
    sleep 0.05
done
kill -INT $!
wait $!
ok "a stopped run is resumed" exits 0 "$sesame" finetune -o "$tmp/stopped" --resume
ok "no checkpoint is left after its end" no_states "$tmp/stopped"

# ---- fill-mask: masks of other models ----

ok "fill-mask" exits 0 "$sesame" fill-mask --json 'Paris is the [MASK] of France.'
cp "$tmp/out" "$tmp/mask"
for mask in '<mask>' '<extra_id_0>' '___' '______' '{mask}'; do
    ok "$mask" exits 0 "$sesame" fill-mask --json "Paris is the $mask of France."
    ok "$mask: the same" cmp "$tmp/out" "$tmp/mask"
    ok "$mask is named" err_has "\"$mask\" is read as \[MASK\], the mask of this model"
done
ok "no mask at all" exits 3 "$sesame" fill-mask 'Paris is __ of France.'
ok "is refused" err_has 'no mask in the text: expected at least one \[MASK\]'

# ---- fastText's files in info and text-classification ----

awk -F '\t' 'NR <= 40 { print "__label__" $2 " " $1; for (i = 0; i < 8; i++) printf "%s", (i ? " w" : "__label__" $2 " w") NR * 8 + i; print "" }' \
    "$tmp/rows" >"$tmp/ft.txt"
ok "train a file" exits 0 "$sesame" vectors supervised "$tmp/ft.txt" -o "$tmp/ft.bin"
ok "quantize it" exits 0 "$sesame" vectors quantize "$tmp/ft.bin" -o "$tmp/ft.ftz"
for file in ft.bin ft.ftz; do
    ok "info $file" exits 0 "$sesame" info "$tmp/$file"
    ok "$file: labels" out_has 'Labels  *2: neg, pos\|Labels  *2: pos, neg'
    echo 'the film was good .' | "$sesame" vectors predict "$tmp/$file" - | sed 's/__label__//' >"$tmp/one.txt"
    ok "text-classification -m $file" exits 0 "$sesame" text-classification -m "$tmp/$file" --json 'the film was good .'
    # fastText adds 1e-5 to the probabilities that it prints
    ok "$file: the label and probability of fastText" sh -c "sed 's/.*\"label\": \"\([a-z]*\)\", \"score\": \([0-9.]*\).*/\1 \2/' '$tmp/out' |
        paste -d ' ' - '$tmp/one.txt' | awk '{ d = \$4 - \$2 - 1e-5; exit !(\$1 == \$3 && d < 2e-6 && d > -2e-6) }'"
done
awk '{ $1 = ""; print }' "$tmp/ft.txt" >"$tmp/plain.txt"
ok "vectors without labels" exits 0 "$sesame" vectors train --format fasttext "$tmp/plain.txt" -o "$tmp/cbow.bin" --min-count 1 --dim 8 --epochs 1
ok "do not classify" exits 3 "$sesame" text-classification -m "$tmp/cbow.bin" 'a text'
ok "but vectors" err_has 'word vectors of fastText, without labels'

# ---- SentencePiece by content ----

mkdir "$tmp/named" "$tmp/unnamed" "$tmp/two"
cp tests/golden/marian-two-vocabs/source.spm "$tmp/named/tokenizer.model"
cp "$tmp/named/tokenizer.model" "$tmp/unnamed/pieces.dat"
cp "$tmp/named/tokenizer.model" "$tmp/any.bin"
cp "$tmp/named/tokenizer.model" "$tmp/two/x" && cp "$tmp/two/x" "$tmp/two/y"
ok "a .model file" exits 0 "$sesame" tokenize -m "$tmp/named/tokenizer.model" 'abba'
cp "$tmp/out" "$tmp/ids"
for from in named unnamed any.bin; do
    ok "tokenize -m $from" exits 0 "$sesame" tokenize -m "$tmp/$from" 'abba'
    ok "$from: the same ids" cmp "$tmp/out" "$tmp/ids"
done
ok "two models" exits 3 "$sesame" tokenize -m "$tmp/two" 'abba'
ok "leave a doubt" err_has 'nor one SentencePiece model of another name found'

# ---- overfitting, and the report of a small run ----

awk 'function next_number() { x = (x * 1103 + 12345) % 65536; return int(x / 64) }
    BEGIN { x = 7; print "text\tlabel"
    for (i = 0; i < 40; i++) {
        s = ""
        for (k = 0; k < 6; k++) s = s sprintf("%c%c ", 97 + next_number() % 26, 97 + next_number() % 26)
        print s "\t" (next_number() % 2 ? "pos" : "neg")
    } }' >"$tmp/noise.tsv" # labels without a reason
ok "noise" exits 0 "$sesame" finetune --config bert-tiny --tokenizer sesame-small --task classify --train "$tmp/noise.tsv" --eval 40% \
    --epochs 10 --lr 3e-3 --batch-size 8 --threads 1 -o "$tmp/noise"
ok "is overfitted" err_has 'overfitting: the evaluation loss has risen for two epochs, the training loss fell'
in_report() { grep -q -- "$1" "$tmp/noise/report.html"; }
ok "the report flags it" in_report '>overfitting<'
ok "has an interval" in_report '16 examples: 95 % interval 0\.'
ok "and each curve once" sh -c "! grep -q 'Score against' '$tmp/noise/report.html'"
ok "no time among the scores" sh -c "! grep -q '<td>predict_runtime\|<td>runtime\|samples_per_second' '$tmp/noise/report.html'"
ok "no command with a part as a file" sh -c "! grep -q 'sesame eval[^<]*40%\|quantize[^<]*40%' '$tmp/noise/report.html'"
# shellcheck disable=SC2086
ok "one evaluation" exits 0 "$sesame" $rare -o "$tmp/dot"
ok "makes no curve" sh -c "! grep -q 'Evaluation loss\|Evaluation: accuracy' '$tmp/dot/report.html'"

# ---- the score of a logistic regression beside that of a model ----

awk -F '\t' 'NR > 1 { $1 = $1 (($2 == "pos") == (NR % 5 > 0) ? "good" : "bad") } { print $1 "\t" $2 }' "$tmp/noise.tsv" >"$tmp/partly.tsv"
beside='logistic regression on words: accuracy '
# shellcheck disable=SC2086
small_run() { "$sesame" finetune $small --task classify --train "$tmp/partly.tsv" --eval 40% --epochs 1 -o "$tmp/beside" "$@"; }
ok "the method" exits 0 "$sesame" finetune --task classify --method logreg --ngrams 1 --min-count 2 --train "$tmp/partly.tsv" --eval 40% -o "$tmp/logreg"
ok "its score is not that of a constant" sh -c "! grep -q '\"eval_accuracy\": \(1\|0.5\),' '$tmp/logreg/eval_results.json'"
accuracy=$(printf %.4f "$(score eval_accuracy "$tmp/logreg/eval_results.json")")
ok "a model" exits 0 small_run
ok "tells it" err_has "^$beside$accuracy in [0-9.]*s, the model $(printf %.4f "$(score eval_accuracy "$tmp/beside/eval_results.json")") in [0-9.]*s (--method logreg --ngrams 1 --min-count 2)\$"
lacks "$beside"
cp "$tmp/beside/model.safetensors" "$tmp/beside.safetensors"
ok "nothing to resume" exits 0 small_run --resume
untold() { ! grep -q 'logistic regression' "$tmp/err"; }
ok "nor to compare" untold
ok "JSON" exits 0 small_run --overwrite --json
ok "is that alone" eval "\"$build/json_valid\" <\"$tmp/out\" >/dev/null"
ok "and tells it on stderr" err_has "^$beside$accuracy"
ok "quiet" exits 0 small_run --overwrite -q
ok "is quiet" untold
ok "and has the same model" cmp "$tmp/beside.safetensors" "$tmp/beside/model.safetensors"
# shellcheck disable=SC2086
ok "without evaluation" exits 0 "$sesame" finetune $small --task classify --train "$tmp/partly.tsv" --epochs 1 -o "$tmp/alone"
ok "no score" untold
ok "of a search" exits 0 small_run --overwrite --seeds 2
ok "no line" untold
counted
