#!/bin/sh
# The logreg command from outside: a test part, a grid, a test set of its own, JSON, and what it refuses.
set -u
. tests/counted.sh

gives() {
    want=$1
    shift
    "$sesame" logreg "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame logreg $*: exit $got, wanted $want"; fi
}
out_has() { if grep -qF -- "$1" "$tmp/out"; then pass; else fail "stdout lacks \"$1\""; fi; }
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\""; fi; }

# three classes on a line, apart from each other
awk 'BEGIN { for (i = 0; i < 90; i++) print i % 3 * 10 + i % 7 / 7 "\t" i % 5 }' >"$tmp/x.tsv"
awk 'BEGIN { print "n\tlabel"; for (i = 0; i < 90; i++) print i "\tclass" i % 3 }' >"$tmp/y.tsv"

gives 0 "$tmp/x.tsv" "$tmp/y.tsv" -C 0.001,1
out_has 'Examples      90 with 2 features, 3 classes'
out_has 'for training, 23 for testing'
out_has 'best'
out_has 'accuracy 1.0000'
out_has 'class1'
cp "$tmp/out" "$tmp/first"
gives 0 "$tmp/x.tsv" "$tmp/y.tsv" -C 0.001,1
if cmp -s "$tmp/out" "$tmp/first"; then pass; else fail 'a second run differs'; fi
gives 0 "$tmp/x.tsv" "$tmp/y.tsv" --test-features "$tmp/x.tsv" --test-labels "$tmp/y.tsv" --json -o "$tmp/m.json"
out_has '"test": 90'
out_has '"accuracy": [1.0, 1.0, 1.0]'
if grep -qF '"classes": ["class0", "class1", "class2"], "coef": [[' "$tmp/m.json"; then pass; else fail 'the model'; fi
gives 3 "$tmp/x.tsv" "$tmp/y.tsv" -o "$tmp/m.json"
err_has 'exists already'
gives 2 "$tmp/x.tsv"
gives 2 "$tmp/x.tsv" "$tmp/y.tsv" -C 1,x
err_has "expected positive numbers"
gives 2 "$tmp/x.tsv" "$tmp/y.tsv" -C 1,2 --folds 0
err_has 'need --folds'
gives 3 "$tmp/x.tsv" "$tmp/y.tsv" --label class
err_has 'no column "class"; available: n, label'
head -n 50 "$tmp/y.tsv" >"$tmp/short.tsv"
gives 3 "$tmp/x.tsv" "$tmp/short.tsv"
err_has '49 labels, but 90 rows of features'
printf 'label\na\na\n' >"$tmp/one.tsv"
printf '1\n2\n' >"$tmp/two.tsv"
gives 3 "$tmp/two.tsv" "$tmp/one.tsv" --test-size 0 --folds 0
err_has 'expected at least two classes'
gives 3 "$tmp/y.tsv" "$tmp/y.tsv"
err_has 'is not a finite number'

counted
