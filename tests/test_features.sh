#!/bin/sh
# sesame features: layers and poolings against transformers, columns, output files, and logreg on the result.
# Usage: test_features.sh BUILD_DIR, from the source folder.
. tests/finetune_fixture.sh
m=tests/pipelines/bert-mask

# The first three numbers of the first vector, as transformers 5.17 has them (BertModel, output_hidden_states).
near()
{
    awk -v want="$1" 'NR == 1 { gsub(/[][]/, ""); split($0, x, ", "); n = split(want, y, " ")
        for (i = 1; i <= n; i++) if ((x[i] - y[i]) ^ 2 > 1e-11) exit 1 }' "$tmp/out" || { head -c 200 "$tmp/out"; return 1; }
}
ok "[CLS]" exits 0 "$sesame" features -m $m --format jsonl "a b"
ok "its numbers" near "-0.07587407 -0.00390940 -0.70620364"
ok "mean" exits 0 "$sesame" features -m $m --format jsonl --pool mean "a b"
ok "its numbers" near "0.00208468 0.34623602 -0.69611865"
ok "max" exits 0 "$sesame" features -m $m --format jsonl --pool max "a b"
ok "its numbers" near "0.49496970 1.03551114 -0.49105814"
ok "words" exits 0 "$sesame" features -m $m --format jsonl --pool words "a b"
ok "its numbers" near "-0.37428653 0.71507114 -0.49105814"
ok "a row each" test "$(tr -cd '[' <"$tmp/out" | wc -c)" -eq 3
ok "two layers" exits 0 "$sesame" features -m $m --format jsonl --layer 0,-1 "a b"
ok "their mean" near "0.04991404 -0.58379936 -0.27215612"
ok "beside each other" exits 0 "$sesame" features -m $m --format tsv --layer 0,-1 --combine concat "a b"
ok "twice as wide" test "$(tr '\t' '\n' <"$tmp/out" | wc -l)" -eq 32
ok "a range of layers" exits 0 "$sesame" features -m $m --format jsonl --layers 0-1 "a b"
ok "their mean" near "0.04991404 -0.58379936 -0.27215612"
ok "their sum" exits 0 "$sesame" features -m $m --format jsonl --layers 0,1 --combine sum "a b"
ok "twice as much" near "0.09982808 -1.16759872 -0.54431224"
ok "a range from the end" exits 2 "$sesame" features -m $m --layers -2--1 "a b"
ok "its message" err_has 'expected a list of up to 64 numbers, as 0,4,9-12 or -1'
ok "words in a table" exits 0 "$sesame" features -m $m --format tsv --pool words "a b" "c"
ok "number and word first" test "$(cut -f 1,2 "$tmp/out" | tr '\t\n' ' ;')" = "1 a;1 b;2 c;"
printf '{"words": ["a", "b"]}\n{"text": "c d"}\n' >"$tmp/lines"
ok "JSON lines" exits 0 "$sesame" features -m $m --format tsv --pool words --jsonl -f "$tmp/lines"
ok "words as a list, and a text" test "$(cut -f 1,2 "$tmp/out" | tr '\t\n' ' ;')" = "1 a;1 b;2 c;2 d;"

# A model that reads from left to right: its first token has seen no other.
ok "two texts that begin alike" exits 0 "$sesame" features -m sesame-gpt --format jsonl "the film was great" "the dog died yesterday"
ok "differ" test "$(sort -u "$tmp/out" | wc -l)" -eq 2
cp "$tmp/out" "$tmp/default"
ok "the last token" exits 0 "$sesame" features -m sesame-gpt --format jsonl --pool last "the film was great" "the dog died yesterday"
ok "is the default" cmp -s "$tmp/default" "$tmp/out"
ok "the first token" exits 2 "$sesame" features -m sesame-gpt --pool cls "a"
ok "is refused" err_has 'reads from left to right'
ok "also of embed" exits 2 "$sesame" embed -m sesame-gpt --pooling cls "a"
ok "by name" err_has '\-\-pooling cls: GPT2'
printf 'text\tlabel\na b\t1\nb a\t0\n' >"$tmp/probe.tsv"
ok "and of probes" exits 2 "$sesame" probe text -m sesame-gpt --pool first "$tmp/probe.tsv"
ok "by its option" err_has '\-\-pool first: GPT2'

# Columns, files.
printf 'id\tsentence\n1\ta b\n2\tc d\n3\ta\n' >"$tmp/x.tsv"
ok "a column" exits 0 "$sesame" features -m $m -f "$tmp/x.tsv" --column sentence --format npy --to "$tmp/x.npy"
ok "its shape" grep -q "'shape': (3, 16)" "$tmp/x.npy"
ok "is not replaced" exits 3 "$sesame" features -m $m -f "$tmp/x.tsv" --column sentence --format npy --to "$tmp/x.npy"
ok "unless --overwrite" exits 0 "$sesame" features -m $m -f "$tmp/x.tsv" --column 2 --format npy --to "$tmp/x.npy" --overwrite
ok "a missing column" exits 3 "$sesame" features -m $m -f "$tmp/x.tsv" --column text --format npy --to "$tmp/y.npy"
ok "the existing columns" err_has 'sentence'
ok "no file is left" test ! -e "$tmp/y.npy"
ok "nor half of one" test -z "$(find "$tmp" -name '.sesame*')"
ok "no such layer" exits 2 "$sesame" features -m $m --layer 9 "a"
ok "the existing layers" err_has 'layers 0 to 1'
ok "no list of layers" exits 2 "$sesame" features -m $m --layer one "a"
if command -v script >/dev/null 2>&1; then
    ok "npy on a terminal" sh -c 'script -qec "$1 features -m $2 --format npy a; echo code \$?" /dev/null </dev/null >"$3"' - "$sesame" "$m" "$tmp/tty"
    ok "is refused" grep -q 'npy is binary: write it to a file with --to FILE, or to a pipe' "$tmp/tty"
    ok "as a usage error" grep -q '^code 2' "$tmp/tty"
fi
ok "no such folder" exits 3 "$sesame" features -m $m --format npy --to "$tmp/none/x.npy" "a"

# Vectors, then logistic regression.
awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 80; i++) printf "%s\t%s\n", i % 2 ? "a b" (i % 3 ? " c" : "") : "d e" (i % 3 ? " c" : ""), i % 2 }' >"$tmp/two.tsv"
ok "vectors" exits 0 "$sesame" features -m $m -f "$tmp/two.tsv" --column sentence --format npy --to "$tmp/two.npy"
ok "logreg" exits 0 "$sesame" logreg "$tmp/two.npy" "$tmp/two.tsv" --label label -C 0.1,1,10 --folds 4 --json
ok "learns" out_has '"accuracy": \[1'

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
