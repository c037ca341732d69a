#!/bin/sh
# `sesame vectors info|convert|nearest|analogy|similarity|eval`: output, JSON, errors. bench/peers/vectors_files.py compares with
# gensim, fasttext and compute-accuracy.
set -u
. tests/counted.sh

awk 'NR == 1 { print } NR > 1 { print $0 " " }' >"$tmp/v.txt" <<EOF
7 3
man 1 0 0.1
king 1 1 0.1
woman 0 0.1 1
queen 0.1 1 1
New 0.5 -1 0
York 0.4 -1 0.1
apple -1 0 0.2
EOF
printf ': family\nman king woman queen\nMan Woman King Queen\nman king woman unknown\n: other\nman king woman apple\n' >"$tmp/questions"
mkdir "$tmp/lists"
printf 'man\tking\t7\nman\twoman\t3\nKING\tqueen\t8\nman\tabsent\t1\n' >"$tmp/lists/b.txt"
printf '# blanks\nman king 1\nman woman 2\nbad line here now\n' >"$tmp/lists/a.txt"
echo x >"$tmp/lists/ignored.md"

vectors() { "$sesame" vectors "$@" >"$tmp/out" 2>"$tmp/err"; }
shows() { # shows TEXT ARGUMENT...: succeeds and prints TEXT
    text=$1
    shift
    if vectors "$@" && grep -qF -- "$text" "$tmp/out"; then pass; else fail "$* should print $text"; fi
}
refuses() { # refuses STATUS TEXT ARGUMENT...
    status=$1 text=$2
    shift 2
    vectors "$@"
    if [ $? -eq "$status" ] && grep -qF -- "$text" "$tmp/err"; then pass; else fail "$* should fail with $text"; fi
}

# info
shows 'word2vec text' info "$tmp/v.txt"
shows '"words": 7, "dim": 3' info --json "$tmp/v.txt"
shows '"duplicates": 0, "zero_vectors": 0' info --check --json "$tmp/v.txt"
refuses 3 'No such file' info "$tmp/absent"
refuses 2 'missing argument' info
head -c 60 "$tmp/v.txt" >"$tmp/short.txt"
refuses 3 'the header gives 7 words, the file has 4' info "$tmp/short.txt"
shows '"format": "word2vec"' info --json - <"$tmp/v.txt"

# convert: every format to every other and back
for format in word2vec word2vec-binary vec glove safetensors; do
    that "to $format" 'vectors convert "$tmp/v.txt" --format $format --output "$tmp/c.$format" && grep -q "7 words, 3 dimensions" "$tmp/err"'
    that "from $format" 'vectors convert -q "$tmp/c.$format" --format word2vec --overwrite --output "$tmp/back" && [ ! -s "$tmp/err" ] && tail -n 1 "$tmp/back" | grep -qx "apple -1.000000 0.000000 0.200000 "'
done
printf '2 3\nthe \012A\022=\315\314\314=\315\314L>\nof \232\231\231>\315\314\314>\000\000\000?\n' >"$tmp/feed.bin"
that 'a line feed in a number of a binary file' 'vectors info "$tmp/feed.bin" && grep -q "word2vec binary" "$tmp/out"'
that 'gzip' 'gzip -c "$tmp/v.txt" >"$tmp/v.gz" && vectors nearest "$tmp/v.gz" man'
that 'three words' 'vectors convert "$tmp/v.txt" --format glove --restrict 3 --output "$tmp/three" && [ "$(wc -l <"$tmp/three")" -eq 3 ]'
that 'full precision' 'vectors convert "$tmp/c.word2vec-binary" --format glove --full-precision --output "$tmp/full" && grep -qx "king 1.0 1.0 0.1" "$tmp/full"'
refuses 2 'overwrite' convert "$tmp/v.txt" --to glove --output "$tmp/full"
refuses 2 '--to' convert "$tmp/v.txt" --to nothing --output "$tmp/x"
refuses 3 'is not a folder of word vectors' convert "$tmp/v.txt" --to safetensors --overwrite --output "$tmp/lists"
printf 'the 1 2\nNew York 1 2\n' >"$tmp/blank"
refuses 3 'word 2, "New York": a blank' convert "$tmp/blank" --to word2vec-binary --output "$tmp/x"
that 'nothing was written' '[ ! -e "$tmp/x" ]'

# nearest
shows 'king' nearest "$tmp/v.txt" man -k 1
that 'the sum of two words' 'vectors nearest --json -k 2 "$tmp/v.txt" "New York" && grep -q "\"words\": \[\"New\", \"York\"\], \"nearest\": \[{\"word\": \"man\"" "$tmp/out"'
that 'two questions' 'vectors nearest --json "$tmp/v.txt" man king && [ "$(wc -l <"$tmp/out")" -eq 2 ]'
that 'a pipe' 'printf "man\n\nking\n" | vectors nearest --json "$tmp/v.txt" && [ "$(wc -l <"$tmp/out")" -eq 2 ]'
that 'an unknown word in a pipe' 'printf "absent\nman\n" | vectors nearest --json "$tmp/v.txt"; [ $? -eq 1 ] && [ "$(wc -l <"$tmp/out")" -eq 1 ] && grep -q "\"absent\" is not in the vocabulary" "$tmp/err"'
refuses 3 '"Queen" is not in the vocabulary; it has "queen"' nearest "$tmp/v.txt" Queen
that 'fewer words than asked for' 'vectors nearest --json -k 100 "$tmp/v.txt" man && [ "$(grep -o cosine "$tmp/out" | wc -l)" -eq 6 ]'
that 'threads' 'vectors nearest --json -t 1 "$tmp/v.txt" man && mv "$tmp/out" "$tmp/one" && vectors nearest --json -t 3 "$tmp/v.txt" man && cmp -s "$tmp/out" "$tmp/one"'
printf 'a 1 2\n\377x 2 1\n' >"$tmp/bytes"
that 'invalid UTF-8 in JSON' 'vectors nearest --json "$tmp/bytes" a && grep -q "$(printf "\357\277\275")x" "$tmp/out"'

# analogy
shows '"nearest": [{"word": "queen", "cosine"' analogy --json "$tmp/v.txt" man king woman
shows '{"word": "queen", "score": 1.24' analogy --json --method 3cosmul "$tmp/v.txt" man king woman
shows 'man : king = woman : ?' analogy "$tmp/v.txt" man king woman
refuses 3 '2 words, expected three' analogy "$tmp/v.txt" man king
that 'lines' 'echo "man king woman" | vectors analogy --json "$tmp/v.txt" && grep -q queen "$tmp/out"'

# similarity
that 'a list with tabs' 'vectors similarity --json "$tmp/v.txt" "$tmp/lists/b.txt" && grep -q "\"pairs\": 4, \"known\": 3, \"invalid_lines\": 0, \"spearman\": 0.4999999" "$tmp/out"'
that 'case' 'vectors similarity --json --case "$tmp/v.txt" "$tmp/lists/b.txt" && grep -q "\"known\": 2" "$tmp/out"'
that 'a folder' 'vectors similarity "$tmp/v.txt" "$tmp/lists" && [ "$(sed 1d "$tmp/out" | cut -c 1-5)" = "$(printf "a.txt\nb.txt")" ] && grep -q "a.txt: 1 lines are not pairs" "$tmp/err"'
refuses 2 'missing argument' similarity "$tmp/v.txt"
refuses 3 'no pairs' similarity "$tmp/v.txt" "$tmp/lists/ignored.md"

# eval
that "rules without analogies" '! vectors eval --rules gensim "$tmp/v.txt" --similarity "$tmp/questions" && grep -q -e "--rules has no effect without --analogies" "$tmp/err"'
that 'analogies' 'vectors eval --json "$tmp/v.txt" --analogies "$tmp/questions" && grep -q "\"total\": {\"questions\": 4, \"scored\": 3, \"correct\": 2, \"accuracy\": 0.6666" "$tmp/out"'
that 'rules of gensim' 'vectors eval --json --rules gensim "$tmp/v.txt" --analogies "$tmp/questions" && grep -q "\"rules\": \"gensim\", \"method\": \"3cosadd\", \"restrict\": 300000" "$tmp/out" && grep -q "\"correct\": 2, \"accuracy\": 0.6666" "$tmp/out"'
that 'restricted' 'vectors eval --json --restrict 3 "$tmp/v.txt" --analogies "$tmp/questions" && grep -q "\"total\": {\"questions\": 4, \"scored\": 0, \"correct\": 0, \"accuracy\": null}" "$tmp/out"'
that 'both tables' 'vectors eval "$tmp/v.txt" --analogies "$tmp/questions" --similarity "$tmp/lists" && grep -q "^total *4 *3 *2 *66.67 %" "$tmp/out" && grep -q "^b.txt" "$tmp/out"'
refuses 2 'nothing to do' eval "$tmp/v.txt"
refuses 3 'a question before the first section' eval "$tmp/v.txt" --analogies "$tmp/lists/b.txt"

# other commands
that 'a map of words' '"$sesame" map --vectors "$tmp/c.word2vec-binary" --method pca --json >"$tmp/out" 2>"$tmp/err" && grep -q "\"rank\": \[\"1-10\"" "$tmp/out" && grep -q apple "$tmp/out"'
that 'a map of the first words' '"$sesame" map --vectors "$tmp/v.txt" --points 3 --method pca --json >"$tmp/out" 2>"$tmp/err" && grep -q woman "$tmp/out" && ! grep -q queen "$tmp/out"'

# lists of commands
that 'help lists the command, not its actions' '"$sesame" --help >"$tmp/out" && grep -q "^  vectors  " "$tmp/out" && ! grep -q "vectors-" "$tmp/out"'
that 'its help lists the actions' '"$sesame" vectors --help >"$tmp/out" && grep -q "^  nearest  " "$tmp/out" && grep -q "^  train  " "$tmp/out"'
that 'help of an action' '"$sesame" vectors nearest --help >"$tmp/out" && grep -q "^Usage: sesame vectors nearest" "$tmp/out"'
counted
