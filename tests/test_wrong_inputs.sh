#!/bin/sh
# Plausible wrong input of commands that train: evaluation data that are training data, files that fail after hours,
# tables that are read as text, settings without effect.
# Usage: test_wrong_inputs.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh

# 40 training texts, 20 others; `part` has 5 of the training texts.
awk 'BEGIN { for (i = 0; i < 60; i++) printf "the film %d was %s .\t%s\n", i, i % 2 ? "good" : "bad", i % 2 ? "pos" : "neg" }' >"$tmp/r"
table() { { printf 'sentence\tlabel\n'; cat; } >"$tmp/$1"; }
head -40 "$tmp/r" | table train.tsv
tail -20 "$tmp/r" | table new.tsv
tail -25 "$tmp/r" | table part.tsv
sed 's/pos$/great/' "$tmp/new.tsv" >"$tmp/labels.tsv" # a label that the training data lack
# shellcheck disable=SC2086
tune() { "$sesame" finetune $small --task classify --train "$tmp/train.tsv" --overwrite "$@"; }
quick() { tune --steps 1 "$@"; }

# ---- evaluation data that are training data ----

all='train.tsv: 40 of 40 examples are also in the training data: scores on them do not measure generalization'
some='part.tsv: 5 of 25 examples are also in the training data'
ok "finetune" exits 0 quick --eval "$tmp/train.tsv" -o "$tmp/model"
ok "tells" err_has "$all"
ok "in the results" test "$(score eval_samples_in_train "$tmp/model/all_results.json")" = 40
ok "and in the card" grep -q 'On train.tsv, 40 examples, of which 40 are training examples' "$tmp/model/README.md"
ok "a part" exits 0 quick --eval "$tmp/part.tsv" -o "$tmp/f"
ok "is counted" err_has "$some"
ok "new texts" exits 0 quick --eval "$tmp/new.tsv" -o "$tmp/f"
ok "no notice" sh -c "! grep 'training data' '$tmp/err'"
ok "nor in the results" sh -c "! grep in_train '$tmp/f/all_results.json'"
ok "the examples that are drawn" exits 0 quick --eval "$tmp/train.tsv" --train-size 10 -o "$tmp/f"
ok "are compared" err_has 'train.tsv: 10 of 40 examples'
ok "a classifier" exits 0 "$sesame" finetune --method nb --task classify --train "$tmp/train.tsv" --eval "$tmp/part.tsv" -o "$tmp/nb"
ok "tells" err_has "$some"
ok "two tasks" exits 0 quick --eval "$tmp/new.tsv" --train "$tmp/new.tsv" --task classify --eval "$tmp/part.tsv" -o "$tmp/two"
ok "each is compared with its own" err_has 'part.tsv: 20 of 25 examples'
printf 'bob O\nlives O\n\nanna B-PER\nin O\n' >"$tmp/tags"
# shellcheck disable=SC2086
ok "tags" exits 0 "$sesame" finetune $small --task tag --train "$tmp/tags" --eval "$tmp/tags" --steps 1 -o "$tmp/t"
ok "tell" err_has 'tags: 2 of 2 examples are also'

curve() { "$sesame" curve --task classify --train "$tmp/train.tsv" --methods nb --sizes 8,all --seeds 2 --overwrite "$@"; }
ok "curve" exits 0 curve --eval "$tmp/part.tsv" -o "$tmp/curve"
ok "tells before it runs" sh -c "head -1 '$tmp/err' | grep -q '$some'"
ok "and after it" out_has "$some"
ok "in its file" grep -q '"eval_examples_in_train": 5,' "$tmp/curve/curve.json"
ok "ladder" exits 0 "$sesame" ladder classify "$tmp/train.tsv" "$tmp/part.tsv" --only nb
ok "tells" err_has "$some"
ok "and notes it" out_has "$some"
sort -R --random-source="$tmp/r" "$tmp/r" "$tmp/r" | table twice.tsv
ok "a split of a file with each text twice" exits 0 "$sesame" ladder classify "$tmp/twice.tsv" --only nb
ok "tells" err_has 'twice.tsv: [0-9]* of 24 examples are also'
m=tests/pipelines/bert-mask
ok "probe" exits 0 "$sesame" probe text -m $m "$tmp/train.tsv" "$tmp/part.tsv" --layers 1 --no-random
ok "tells" out_has 'test: 5 of 25 examples are also in the training data'
ok "probe of new texts" exits 0 "$sesame" probe text -m $m "$tmp/train.tsv" "$tmp/new.tsv" --layers 1 --no-random --json
ok "does not" sh -c "! grep in_train '$tmp/out'"
awk 'BEGIN { for (i = 0; i < 20; i++) printf "1\ta%d\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tb\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n", i % 5 }' >"$tmp/x.conllu"
ok "probe of trees" exits 0 "$sesame" probe tree -m $m "$tmp/x.conllu" "$tmp/x.conllu" --layers 1 --no-random --tree-epochs 1
ok "tells" out_has 'test: 20 of 20 examples are also in the training data'
ok "compress" exits 0 "$sesame" compress "$tmp/model" --data "$tmp/train.tsv" --eval "$tmp/part.tsv" --methods int8 --texts 2 --rounds 1 -o "$tmp/z"
ok "tells" err_has "$some"
ok "and notes it" out_has "$some"
ok "in its file" grep -q '"eval_examples_in_train": 5,' "$tmp/z/compress.json"
recipe() { printf '{"runs": {"r": {"model": "%s"}}, "seeds": 1, "tasks": {"films": {"task": "classify", "train": "%s", "eval": "%s", "steps": 1}}}' \
    "$tmp/model" "$tmp/train.tsv" "$1" >"$tmp/recipe.json"; }
recipe "$tmp/part.tsv"
ok "ablate" exits 0 "$sesame" ablate "$tmp/recipe.json" -o "$tmp/study"
ok "tells before it runs" sh -c "head -1 '$tmp/err' | grep -q '^films: 5 of 25 examples are also'"
ok "and notes it" grep -q '^films: 5 of 25 examples are also' "$tmp/study/ablate.md"
ok "in its file" grep -q '"eval_examples_in_train": 5$' "$tmp/study/ablate.json"

# ---- outputs that are inputs ----

cut -f1 "$tmp/r" >"$tmp/read"
cp "$tmp/read" "$tmp/before"
ln -s read "$tmp/link"
for command in "corpus build --tokenizer $m -o $tmp/read" "vectors train --min-count 1 -o $tmp/link" "train-tokenizer --type bpe -o $tmp/read" "clusters -o $tmp/read"; do
    # shellcheck disable=SC2086
    ok "$command" exits 2 "$sesame" $command --overwrite "$tmp/read"
    ok "is refused" err_has '--output .* is also read by this command: name another file'
done
ok "embed -f" exits 2 "$sesame" embed -m $m -f "$tmp/read" --to "$tmp/read" --overwrite
ok "is refused" err_has '--to .*read is also read by this command'
ok "index" exits 2 "$sesame" index -m $m --rebuild -o "$tmp/read" "$tmp/read"
ok "the input is kept" cmp "$tmp/read" "$tmp/before"

# ---- all inputs are checked before anything is made ----

unknown='labels.tsv: line 3: unknown label "great"; expected one of: neg, pos'
none() { # description of the run, its folder
    ok "$1: nothing was made" test ! -e "$2"
}
ok "compress: labels of --eval" exits 3 "$sesame" compress "$tmp/model" --eval "$tmp/labels.tsv" --methods int8 -o "$tmp/z1"
ok "are named" err_has "$unknown"
none compress "$tmp/z1"
ok "compress: labels of --data" exits 3 "$sesame" compress "$tmp/model" --data "$tmp/labels.tsv" --eval "$tmp/new.tsv" --methods student -o "$tmp/z1"
ok "are named" err_has "$unknown"
none compress "$tmp/z1"
ok "compress of an encoder: labels of --eval" exits 3 "$sesame" compress $m --task classify --data "$tmp/train.tsv" --eval "$tmp/labels.tsv" --methods int8 -o "$tmp/z1"
ok "are named" err_has "$unknown"
none compress "$tmp/z1"
recipe "$tmp/labels.tsv"
ok "ablate: labels of a task" exits 3 "$sesame" ablate "$tmp/recipe.json" -o "$tmp/study1"
ok "are named" err_has "r: films, seed 1: .*$unknown"
none ablate "$tmp/study1"
ok "search: labels" exits 3 quick --eval "$tmp/labels.tsv" --grid lr=1e-3,1e-2 -o "$tmp/g"
ok "are named" err_has "$unknown"
ok "search: no run has begun" test ! -e "$tmp/g"
ok "search: a file among the values" exits 3 quick --eval "$tmp/new.tsv" --grid patterns="$tmp/none" -o "$tmp/g"
adapt() { "$sesame" finetune -m $m --task classify --train "$tmp/train.tsv" --adapt "$tmp/r" --adapt-steps 1 --steps 1 -o "$tmp/stages" "$@"; }
ok "adapt: labels" exits 3 adapt --eval "$tmp/labels.tsv"
ok "are named" err_has "$unknown"
ok "adapt: no file" exits 3 adapt --eval "$tmp/none.tsv"
ok "first: labels" exits 3 adapt --first "$tmp/train.tsv" --first-eval "$tmp/labels.tsv"
ok "are named" err_has "--first: .*$unknown"
ok "first: an option" exits 2 adapt --first "$tmp/train.tsv" --first-set lr=fast
none stages "$tmp/stages"
printf '{"patterns": ["{text_a} It was {mask} ."], "verbalizers": [{"neg": ["bad"], "pos": ["good"]}]}' >"$tmp/patterns"
cut -f1 "$tmp/r" >"$tmp/unlabeled.txt"
ok "pet: labels of --eval" exits 3 "$sesame" finetune --method pet -m $m --task classify --train "$tmp/train.tsv" --eval "$tmp/labels.tsv" \
    --patterns "$tmp/patterns" --unlabeled "$tmp/unlabeled.txt" -o "$tmp/pet"
ok "are named" err_has "$unknown"
none pet "$tmp/pet"
ok "curve: an option without effect" exits 2 curve --methods nb,majority --eval "$tmp/new.tsv" --set nb:lr=5 -o "$tmp/c1"
ok "is named" err_has 'nb: --lr has no effect on method nb; its settings: '
ok "curve: no vectors" exits 3 curve --methods nb,vectors --eval "$tmp/new.tsv" --vectors "$tmp/train.tsv" -o "$tmp/c1"
ok "are named" err_has 'vectors: --vectors: .*train.tsv: '
ok "curve: no model" exits 3 curve --methods nb,finetune --eval "$tmp/new.tsv" -m "$tmp/z" -o "$tmp/c1"
none curve "$tmp/c1"
ladder() { "$sesame" ladder classify "$tmp/train.tsv" "$tmp/new.tsv" -o "$tmp/l1" "$@"; }
ok "ladder: no vectors" exits 3 ladder --only nb,bilstm --vectors "$tmp/train.tsv"
ok "are named" err_has '--vectors: .*train.tsv: '
ok "ladder: no model" exits 3 ladder --only nb,finetuned -m "$tmp/z"
ok "ladder: another model" exits 3 ladder --only nb,ulmfit --lm $m
ok "is named" err_has '--lm .*a model of type "bert", expected "awd-lstm"'
ok "ladder: not ELMo" exits 3 ladder --only nb,elmo --elmo $m
ok "is named" err_has '--elmo .*a model of type "bert", expected "elmo"'
none ladder "$tmp/l1"

# ---- tables that are read as text, texts in other columns ----

cut -f1 "$tmp/r" >"$tmp/texts.txt"
corpus() { "$sesame" corpus build --tokenizer "$tmp/vocab.txt" --overwrite -o "$tmp/c.ids" "$@"; }
words='a table, not plain text: its header and labels would be words of the text'
ok "corpus of a table" exits 3 corpus "$tmp/train.tsv"
ok "is refused" err_has "train.tsv: $words; .*; --format text"
gzip -kf "$tmp/train.tsv"
ok "also compressed" exits 3 corpus "$tmp/train.tsv.gz"
ok "also as the last file" exits 3 corpus "$tmp/texts.txt" "$tmp/train.tsv"
ok "is refused" err_has "train.tsv: $words"
ok "no file" exits 3 corpus "$tmp/texts.txt" "$tmp/none.txt"
ok "is named before any is read" err_has 'none.txt: No such file'
ok "as it is" exits 0 corpus --format text "$tmp/train.tsv"
ok "from a pipe" sh -c "'$sesame' corpus build --tokenizer '$tmp/vocab.txt' --overwrite -o '$tmp/c.ids' - <'$tmp/train.tsv' >'$tmp/out'"
awk -F '\t' '{ print $1 }' "$tmp/train.tsv" >"$tmp/one.tsv"
ok "a table of one column" exits 0 corpus "$tmp/one.tsv"
vectors() { "$sesame" vectors train --dim 4 --min-count 1 --overwrite -o "$tmp/v.txt" "$@"; }
for model in skipgram glove pv-dbow; do
    ok "$model of a table" exits 3 vectors --model $model "$tmp/train.tsv"
    ok "is refused" err_has "train.tsv: $words; .*standard input"
done
printf '{"text": "a b"}\n{"text": "c"}\n' >"$tmp/x.jsonl"
ok "vectors of JSON lines" exits 3 vectors "$tmp/x.jsonl"
ok "are refused" err_has 'x.jsonl: JSON lines, not plain text: its keys would be words of the text'
for file in one.json lines.json; do
    if [ $file = one.json ]; then echo '[{"text": "a b"}, {"text": "c"}]'; else printf '[\n  {\n    "text": "a b"\n  }\n]\n'; fi >"$tmp/$file"
    ok "vectors of an array" exits 3 vectors "$tmp/$file"
    ok "is refused" err_has "$file: an array in JSON (JSON lines have an object on each line), not plain text: its keys"
    ok "clusters of an array" exits 3 "$sesame" clusters "$tmp/$file" -o "$tmp/clusters" -c 2
done
echo '[a] b' >"$tmp/text.json"
ok "text with brackets" exits 0 vectors "$tmp/text.json"
tokenizer() { "$sesame" train-tokenizer --type bpe --overwrite -o "$tmp/bpe.json" "$@"; }
for file in train.tsv x.jsonl one.json; do
    ok "tokenizer of a table" exits 3 tokenizer "$tmp/$file"
    ok "is refused" err_has "$file: .*, not plain text: .*standard input (-)"
    ok "tokenizer from a pipe" sh -c "'$sesame' train-tokenizer --type bpe --overwrite -o '$tmp/bpe.json' - <'$tmp/$file' >'$tmp/out'"
    ok "rank of a table" exits 3 "$sesame" rank -m tests/pipelines/bert-label "$tmp/$file"
    ok "is refused" err_has "$file: .*, not plain text: .*standard input (-)"
    ok "perplexity of a table" exits 3 "$sesame" perplexity -m sesame-gpt -f "$tmp/$file"
    ok "is refused" err_has "$file: .*, not plain text: .*standard input (-)"
done
ok "tokenizer of one column" exits 0 tokenizer "$tmp/one.tsv"
ok "perplexity of one column" exits 0 "$sesame" perplexity -m sesame-gpt -f "$tmp/one.tsv"
ok "rank of one column" exits 0 "$sesame" rank -m tests/pipelines/bert-label "$tmp/one.tsv"
ok "vectors: no file" exits 3 vectors "$tmp/texts.txt" "$tmp/none.txt"
ok "is named" err_has '^sesame: .*none.txt: No such file'
ok "clusters of a table" exits 3 "$sesame" clusters "$tmp/train.tsv" -o "$tmp/clusters" -c 2
ok "are refused" err_has "train.tsv: $words"
printf 'sentence,label\n' >"$tmp/comma.tsv"
sed 's/\t/,/' "$tmp/r" >>"$tmp/comma.tsv"
topics() { "$sesame" topics train -k 2 --min-df 1 --overwrite -o "$tmp/topics" "$@"; }
ok "topics of a table with commas" exits 0 topics "$tmp/comma.tsv"
ok "as .csv" sh -c "cp '$tmp/comma.tsv' '$tmp/comma.csv'; '$sesame' topics train -k 2 --overwrite -o '$tmp/topics' '$tmp/comma.csv' >'$tmp/out' && ! grep pos '$tmp/out'"
sed 's/,/;/' "$tmp/comma.csv" >"$tmp/semicolon.csv"
ok "with semicolons" exits 0 topics "$tmp/semicolon.csv"
sed '2s/;/; ;/' "$tmp/semicolon.csv" >"$tmp/doubt.csv" # fields of another number
ok "finetune, in doubt" exits 3 "$sesame" finetune --method nb --task classify --train "$tmp/doubt.csv" -o "$tmp/nb1"
ok "names the character" err_has "available: sentence;label .*are the fields separated otherwise? Set --delimiter ';', or name the file"

# ---- tables that are read line by line ----

line='train.tsv: a table, but each line is read as a text, with all columns and the header; --column NAME reads one column'
for command in "text-classification -m tests/pipelines/bert-label -f" "embed -m $m -f" "index -m $m --rebuild -o $tmp/ix" "search -m $m -o $tmp/ix2 film -f"; do
    # shellcheck disable=SC2086
    ok "$command" exits 0 "$sesame" $command "$tmp/train.tsv"
    ok "tells" err_has "$line"
    # shellcheck disable=SC2086
    ok "its texts" exits 0 "$sesame" $command "$tmp/texts.txt"
    ok "no notice" sh -c "! grep 'a table' '$tmp/err'"
done
ok "a column" exits 0 "$sesame" embed -m $m --column sentence "$tmp/train.tsv"
ok "no notice" sh -c "! grep 'a table' '$tmp/err'"
printf 'Who rings?\tThe keeper rings.\n' >"$tmp/qa.tsv"
ok "two texts of a line" exits 0 "$sesame" question-answering -m tests/pipelines/bert-qa -f "$tmp/qa.tsv"
ok "no notice" sh -c "! grep 'a table' '$tmp/err'"

# ---- one text where two are compared ----

predict() { "$sesame" predict sesame-embed "$@"; }
printf 'text\nhello\nbye\n' >"$tmp/single.tsv"
printf '{"text": "hello"}\n' >"$tmp/single.jsonl"
printf 'text\tscore\nhello\t1\nbye\t0\n' >"$tmp/scored.tsv"
for file in single.tsv single.jsonl scored.tsv; do
    ok "similarity of one text" exits 3 predict "$tmp/$file"
    ok "asks for the second" err_has "$file: a similarity is that of two texts.*--pair"
done
ok "its evaluation" exits 3 "$sesame" eval sesame-embed "$tmp/scored.tsv" --task embed
ok "asks for the second" err_has "scored.tsv: a similarity is that of two texts.*--pair"
ok "a second column by its number" exits 0 predict --pair 2 "$tmp/scored.tsv"
ok "the same column twice" exits 3 predict --text 1 --pair 1 --no-header "$tmp/scored.tsv"
ok "is refused" err_has 'column 1 is both texts of a row: name another one with --pair'
two='the model compares two texts, but'
ok "inference of one text" exits 0 "$sesame" text-classification -m sesame-nli "It rains."
ok "tells" err_has "$two a text was given alone"
ok "of two" exits 0 "$sesame" text-classification -m sesame-nli --text-pair "The street is wet." "It rains."
ok "no notice" sh -c "! grep '$two' '$tmp/err'"
ok "predicted of one column" exits 0 "$sesame" predict sesame-nli "$tmp/single.tsv"
ok "tells" err_has "single.tsv: $two one column is read: name the column of the second texts with --pair"
printf 'premise\thypothesis\na\tb\n' >"$tmp/nli.tsv"
ok "of two columns" exits 0 "$sesame" predict sesame-nli "$tmp/nli.tsv"
ok "no notice" sh -c "! grep '$two' '$tmp/err'"

printf 'sentence1\tsentence2\na\t\n\tb\nc\t\nd\te\n' >"$tmp/empty.tsv"
ok "empty texts of both columns" exits 0 predict "$tmp/empty.tsv"
ok "first column" err_has 'empty.tsv: 1 of 4 texts of column sentence1 are empty'
ok "second column" err_has 'empty.tsv: 2 of 4 texts of column sentence2 are empty'

# ---- columns of another kind ----

awk -F '\t' -v OFS='\t' 'NR == 1 { print; next } { print $2, $1 }' "$tmp/train.tsv" >"$tmp/swapped.tsv"
awk -F '\t' -v OFS='\t' 'NR == 1 { print; next } { print $1, NR / 7 }' "$tmp/train.tsv" >"$tmp/numbers.tsv"
classify() { "$sesame" finetune --method nb --task classify --overwrite -o "$tmp/nb1" --train "$@"; }
sed 's/neg$/0/; s/pos$/1/' "$tmp/train.tsv" >"$tmp/ints.tsv"
swapped='2 different texts have 40 different labels: are the columns of texts and labels swapped?'
ok "swapped columns" exits 3 classify "$tmp/swapped.tsv"
ok "are refused" err_has "swapped.tsv: $swapped"
ok "by curve" exits 3 "$sesame" curve --task classify --train "$tmp/swapped.tsv" --eval "$tmp/swapped.tsv" --methods nb --sizes all -o "$tmp/c1"
ok "too" err_has "$swapped"
ok "by ladder" exits 3 "$sesame" ladder classify "$tmp/swapped.tsv" "$tmp/swapped.tsv" --only nb
ok "too" err_has "$swapped"
ok "by probe" exits 3 "$sesame" probe text -m $m "$tmp/swapped.tsv" --layers 1 --no-random
ok "too" err_has '2 different texts have 32 different labels: are the columns'
ok "probe with a test file of other labels" exits 3 "$sesame" probe text -m $m "$tmp/train.tsv" "$tmp/ints.tsv" --layers 1 --no-random
ok "is refused" err_has 'none of the labels of the development data occurs in the training data'
ok "the text as label" exits 3 classify "$tmp/train.tsv" --label sentence
ok "is refused" err_has 'the label of every example is its text'
ok "numbers as labels" exits 3 classify "$tmp/numbers.tsv"
ok "are refused" err_has '40 examples have 40 different numbers as labels: the task regress learns numbers'
fasttext() { "$sesame" vectors supervised --text-column sentence --epoch 1 --dim 4 --overwrite -o "$tmp/ft" "$@"; }
ok "by vectors supervised" exits 3 fasttext "$tmp/swapped.tsv"
ok "too" err_has "swapped.tsv: $swapped"
sed '2,$s/.*\t/\t/' "$tmp/train.tsv" >"$tmp/blank.tsv"
ok "vectors supervised of empty texts" exits 3 fasttext "$tmp/blank.tsv"
ok "is refused" err_has 'the texts of all 40 examples are empty'
awk 'NF { print $2, $1; next } { print }' "$tmp/tags" >"$tmp/swapped.tags"
# shellcheck disable=SC2086
ok "tags before words" exits 3 "$sesame" finetune $small --task tag --train "$tmp/swapped.tags" --steps 1 -o "$tmp/f2"
ok "are refused" err_has '2 different words have 4 different tags: are the columns swapped (--token-column, --tag-column)?'
ok "labels as texts" exits 0 "$sesame" predict "$tmp/model" --text label "$tmp/train.tsv"
ok "tells" err_has 'train.tsv: all 40 texts of column label are labels of the model: name the column of the texts with --text'
ok "texts" exits 0 "$sesame" predict "$tmp/model" "$tmp/train.tsv"
ok "no notice" sh -c "! grep 'labels of the model' '$tmp/err'"
sed 's/pos$/NaN/' "$tmp/train.tsv" >"$tmp/nan.tsv"
for command in "finetune --method nb --task classify -o $tmp/nb1 --overwrite --train" "curve --task classify --methods nb --sizes all --seeds 1 -o $tmp/c2 --eval $tmp/nan.tsv --train" \
    "ladder classify --only nb" "data --task classify" "vectors supervised --text-column sentence --epoch 1 --dim 4 --overwrite -o $tmp/ft"; do
    # shellcheck disable=SC2086
    ok "missing labels: $command" exits 0 "$sesame" $command "$tmp/nan.tsv"
    ok "are named" err_has 'nan.tsv: "NaN" is learned as a label: if it means that the label is missing, remove these rows'
done
ok "a header as an example" exits 3 classify "$tmp/train.tsv" --no-header
ok "is refused" err_has 'train.tsv: the first row, "sentence" and "label", is a header: leave out --no-header'
cp "$tmp/r" "$tmp/r.tsv"
ok "no header" exits 0 classify "$tmp/r.tsv" --no-header
awk -F '\t' -v OFS='\t' 'NR == 5 { $2 = "1e39" } 1' "$tmp/numbers.tsv" >"$tmp/large.tsv"
# shellcheck disable=SC2086
ok "a number that weights cannot hold" exits 3 "$sesame" finetune $small --task regress --train "$tmp/large.tsv" --steps 1 -o "$tmp/f2"
ok "is refused" err_has 'line 5: "1e39" is not a finite number'
ok "whole numbers are labels" exits 0 classify "$tmp/ints.tsv"
awk -F '\t' -v OFS='\t' 'NR == 1 { print "id", "body", "kind"; next } { print NR, $1, $2 }' "$tmp/train.tsv" >"$tmp/names.tsv"
ok "topics of unknown columns" exits 3 topics "$tmp/names.tsv"
ok "ask for one" err_has 'no column "sentence" or "text": name the column of the texts, one of id, body, kind'
ok "the named one" exits 0 topics --text-column body "$tmp/names.tsv"
ok "probe of unknown columns" exits 3 "$sesame" probe text -m $m "$tmp/names.tsv" --layers 1 --no-random
ok "asks for one" err_has 'no column "text"; available: id, body, kind'
sed 1d "$tmp/train.tsv" >"$tmp/headless.tsv"
ok "probe without a header" exits 0 "$sesame" probe text -m $m "$tmp/headless.tsv" --layers 1 --no-random
ok "has all rows" out_has '32 training and 4 test examples'

# ---- words that the model does not know ----

awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 6; i++) printf "%s\t%s\n", i < 4 ? "qqzz xxyy" i : "film was good", i % 2 ? "pos" : "neg" }' >"$tmp/unknown.tsv"
ok "a classifier" exits 0 classify "$tmp/train.tsv"
ok "of unknown words" exits 0 "$sesame" eval "$tmp/nb1" "$tmp/unknown.tsv"
ok "tells" err_has 'unknown.tsv: 4 of 6 texts have no word of the model: they get the label of an empty text'
ok "of known words" exits 0 "$sesame" eval "$tmp/nb1" "$tmp/new.tsv"
ok "no notice" sh -c "! grep 'no word' '$tmp/err'"
ok "topics" exits 0 topics "$tmp/texts.txt"
ok "of unknown words" exits 0 "$sesame" topics infer "$tmp/topics" "$tmp/unknown.tsv"
ok "tell" err_has 'unknown.tsv: 4 of 6 texts have no word of the model: their topics are meaningless'

# ---- files of another model, or of the training ----

"$sesame" train-tokenizer --type wordpiece --vocab-size 60 -q -o "$tmp/other.json" "$tmp/texts.txt"
ok "the tokenizer of another model" exits 3 "$sesame" finetune -m "$tmp/model" --tokenizer "$tmp/other.json" --task classify --train "$tmp/train.tsv" --steps 1 -o "$tmp/f1"
ok "is refused" err_has 'the tokenizer .*other.json belongs to another model: [0-9]* of the [0-9]* tokens of .*model have the same id'
none "another tokenizer" "$tmp/f1"
ok "its own" exits 0 "$sesame" finetune -m "$tmp/model" --tokenizer "$tmp/model" --task classify --train "$tmp/train.tsv" --steps 1 -o "$tmp/f1"
awk '{ print; print "" }' "$tmp/texts.txt" >"$tmp/documents.txt"
head -60 "$tmp/documents.txt" >"$tmp/half.txt"
"$sesame" corpus build -q --tokenizer "$tmp/vocab.txt" -o "$tmp/docs.ids" "$tmp/documents.txt" >"$tmp/out"
"$sesame" corpus build -q --tokenizer "$tmp/vocab.txt" -o "$tmp/half.ids" "$tmp/half.txt" >"$tmp/out"
pretrain() { "$sesame" pretrain --config "$tmp/config.json" --tokenizer "$tmp/vocab.txt" --length 16 --steps 1 --threads 1 --overwrite -o "$tmp/p" "$@"; }
ok "pretrain" exits 0 pretrain --corpus "$tmp/half.ids" --eval "$tmp/docs.ids"
ok "counts documents" err_has 'docs.ids: 30 of 60 documents are also in the training data, .*half.ids: scores on them'

# ---- settings that leave nothing ----

ok "all is held out" exits 3 corpus --held-out 99% "$tmp/texts.txt"
ok "reported" err_has 'all documents (1) are held out, none is left for training: .*blank lines separate them'
ok "the same again" exits 3 corpus --held-out 99% "$tmp/texts.txt"
ok "another part" exits 0 corpus --held-out 0.1% "$tmp/texts.txt"
ok "none is held out" err_has 'no document is held out for evaluation: --held-out 0.001 of 1 documents'
ok "topics than words" exits 3 topics -k 500 "$tmp/texts.txt"
ok "reported" err_has '500 topics of 60 texts with [0-9]* words; expected at most as many topics as words'
awk 'BEGIN { for (i = 0; i < 20; i++) printf "w%d v%d\n", i, i }' >"$tmp/words.txt"
ok "as many topics as words" exits 0 topics -k 40 --words blank "$tmp/words.txt"
ok "are worse than chance" out_has 'worse than equal probabilities of all 40 words: the texts are few'
printf 'film 1 0\nmovie 0 1\nfilm 0 1\n' >"$tmp/again.txt"
for action in "nearest $tmp/again.txt movie" "similarity $tmp/again.txt $tmp/pairs.txt" "convert $tmp/again.txt -o $tmp/again.bin --to word2vec-binary"; do
    printf 'film movie 5\n' >"$tmp/pairs.txt"
    # shellcheck disable=SC2086
    ok "vectors $action" exits 0 "$sesame" vectors $action
    ok "a word occurs again" err_has 'again.txt: 1 word occurred again; the first vector of a word counts'
done
ok "probe with them" exits 0 "$sesame" probe text -m $m "$tmp/train.tsv" --vectors "$tmp/again.txt" --layers 1 --no-random
ok "notes it" out_has 'again.txt: 1 word occurred again'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
