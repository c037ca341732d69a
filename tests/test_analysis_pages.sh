#!/bin/sh
# One page of every analysis, of compress and of training runs in a real browser (tests/test_analysis_pages.py); skipped without chromium, its
# driver, python3-selenium or the bundled models. axe-core as in tests/test_web.sh.
# Usage: test_analysis_pages.sh BUILD_DIR, from the source folder.
set -u
. tests/counted.sh
python=
for candidate in /usr/bin/python3 python3; do
    "$candidate" -c 'import selenium' 2>/dev/null && python=$candidate && break
done
if [ -z "$python" ] || ! command -v chromedriver >/dev/null 2>&1 || [ ! -f models/sesame-small/config.json ]; then
    skipped=$((skipped + 1))
    echo 'skipped: chromium, its driver, python3-selenium or the bundled models are missing'
    counted
    exit 0
fi
awk 'BEGIN { split("dogs run|cats sleep|birds fly|men work|children play|horses jump", s, "|")
    for (i = 1; i <= 12; i++) { split(s[(i - 1) % 6 + 1], w, " ")
        printf "1\tThe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2\t%s\t_\tNOUN\tNNS\t_\t3\tnsubj\t_\t_\n", w[1]
        printf "3\t%s\t_\tVERB\tVBP\t_\t0\troot\t_\t_\n4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_\n\n", w[2] } }' >"$tmp/s.conllu"
awk 'BEGIN { print "sentence\tlabel"; for (i = 0; i < 8; i++) print (i % 2 ? "A wonderful film ." : "A terrible film .") "\t" i % 2 }' >"$tmp/t.tsv"
bert=tests/fixtures/attention/bert pages=$tmp/pages
mkdir "$pages"
make() { # make NAME ARGUMENT...: NAME.html
    name=$1
    shift
    "$sesame" "$@" --html "$pages/$name.html" >"$tmp/out" 2>"$tmp/err"
    status=$?
    that "the page of $name" '[ $status -eq 0 ]'
}
make view view -m $bert 'the cat sat on the mat .'
make heads heads -m $bert "$tmp/s.conllu" --min-cases 5
make geometry geometry -m $bert "$tmp/s.conllu" --nearest The
make neurons neurons -m $bert "$tmp/s.conllu" --positive NOUN --rank-by l1
make map map -m $bert "$tmp/s.conllu" --method pca
make lens lens 'Paris is in [MASK].' --layers 0,6,12
make explain explain 'A warm film.' --method gradient
make prune prune sesame-sentiment "$tmp/t.tsv" --heads --step 0.4
make probe probe tag -m $bert "$tmp/s.conllu" "$tmp/s.conllu" "$tmp/s.conllu"
make tree probe tree -m $bert "$tmp/s.conllu" "$tmp/s.conllu" --rank 4 --tree-epochs 1 --layers 1
for name in $(sed -n 's/^SES_ANALYSIS([a-z]*, "\([a-z]*\)".*/\1/p' src/analysis/analyses.def); do
    that "a page of $name" '[ -s "$pages/$name.html" ]'
done
"$sesame" compress sesame-sentiment --task classify --eval "$tmp/t.tsv" --labels 0=negative,1=positive --methods int8 \
    --rounds 1 --bootstrap 50 -o "$tmp/compress" >"$tmp/out" 2>"$tmp/err" && cp "$tmp/compress/compress.html" "$pages/compress.html"
that "the page of compress" '[ -s "$pages/compress.html" ]'
"$sesame" finetune -m sesame-small --task classify --train "$tmp/t.tsv" --eval "$tmp/t.tsv" --epochs 2 --batch-size 4 \
    --bootstrap 20 -o "$tmp/run" >"$tmp/out" 2>"$tmp/err" && cp "$tmp/run/report.html" "$pages/run.html" && cp -r "$tmp/run" "$tmp/two"
that "the report of a run" '[ -s "$pages/run.html" ]'
"$sesame" report "$tmp/run" "$tmp/two" -o "$pages/runs.html" >"$tmp/out" 2>"$tmp/err"
that "the report of two runs" '[ -s "$pages/runs.html" ]'
axe=$tmp/axe.min.js
"$python" - "$axe" "$build"/axe/*.whl <<'EOF' || axe=-
import importlib.util, pathlib, sys, zipfile
spec = importlib.util.find_spec("axe_playwright_python")
if spec:
    data = (pathlib.Path(spec.origin).parent / "axe.min.js").read_bytes()
elif pathlib.Path(sys.argv[2]).is_file():
    data = zipfile.ZipFile(sys.argv[2]).read("axe_playwright_python/axe.min.js")
else:
    sys.exit(1)
pathlib.Path(sys.argv[1]).write_bytes(data)
EOF
[ "$axe" != - ] || { skipped=$((skipped + 1)) && echo 'skipped: axe-core is missing'; }
"$python" tests/test_analysis_pages.py "$pages" "$axe" >"$tmp/report"
cat "$tmp/report"
eval "$(tail -n 1 "$tmp/report" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/n=\1 bad=\2/p')"
passed=$((passed + ${n:-0})) failed=$((failed + ${bad:-1}))
counted
