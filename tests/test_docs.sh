#!/bin/sh
# The outputs in README.md and docs/TOUR.md, the terminal session and the charts are current; the tools that verify them detect changes.
set -u
. tests/counted.sh
run() { "$@" >"$tmp/out" 2>&1; }

that 'charts are up to date' 'run tools/charts --check'
sed 's/27\.6/26.6/g' docs/benchmarks.tsv >"$tmp/wrong.tsv"
that 'a figure that is not in the record' '! run tools/charts --check "$tmp/wrong.tsv" && grep -q "26.6" "$tmp/out"'
awk -F '\t' 'BEGIN { OFS = FS } $6 == "OpenVINO" && !n++ { $9 = "1.51" } { print }' docs/benchmarks.tsv >"$tmp/wrong.tsv"
that 'a figure of another peer' '! run tools/charts --check "$tmp/wrong.tsv" && grep -q "1.51 is not in: OpenVINO" "$tmp/out"'
awk '!/\tGPT-2 124M/' docs/benchmarks.tsv >"$tmp/wrong.tsv"
that 'an image of other data' '! run tools/charts --check "$tmp/wrong.tsv" && grep -q "cpu.svg is out of date" "$tmp/out"'

cat >"$tmp/doc.md" <<'END'
```console
$ printf '%s\n' 'loss 0.25 in 3 ms' 'x ██▌' 'end'
loss 0.5 in 1m04s
...
end
$ cat <<'E'
> one
> E
one
```

```sh
echo 12 >number
cat number
```

```text
99
```

```sh record
exit 1
```
END
cp "$tmp/doc.md" "$tmp/same.md"
that 'equal shapes' 'run tools/doc-run "$build" "$tmp/doc.md" && grep -q "^3 passed, 0 failed" "$tmp/out"'
that 'the document is unchanged' 'cmp -s "$tmp/doc.md" "$tmp/same.md"'
run tools/doc-run --write "$build" "$tmp/doc.md"
that 'written' 'grep -qx "loss 0.25 in 3 ms" "$tmp/doc.md" && grep -qx "\.\.\." "$tmp/doc.md" && grep -qx 12 "$tmp/doc.md"'
that 'nothing else is written' '[ "$(wc -l <"$tmp/doc.md")" -eq "$(wc -l <"$tmp/same.md")" ] && grep -qx "> one" "$tmp/doc.md"'
sed 's/^loss/cost/' "$tmp/same.md" >"$tmp/other.md"
that 'another word' '! run tools/doc-run "$build" "$tmp/other.md" && grep -q "other.md:2: other output" "$tmp/out"'
sed 's/^99$/99\nmore/' "$tmp/same.md" >"$tmp/other.md"
that 'a missing line' '! run tools/doc-run "$build" "$tmp/other.md"'
sed 's/^cat number$/false/' "$tmp/same.md" >"$tmp/other.md"
that 'a script that fails' '! run tools/doc-run "$build" "$tmp/other.md"'

if [ -d models ]; then
    that 'outputs of README.md' 'run tools/doc-run "$build" README.md'
    that 'outputs of docs/TOUR.md' 'run tools/doc-run "$build" docs/TOUR.md'
    if command -v script >/dev/null 2>&1; then
        that 'the terminal session' 'run tools/session-svg --check "$build"'
    else
        skipped=$((skipped + 1))
    fi
else
    skipped=$((skipped + 3))
fi
counted
