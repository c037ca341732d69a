#!/bin/sh
# Repeats training runs of transformers; golden-runs' messages about unreadable folders.
# Usage: test_golden_runs.sh BUILD_DIR, from the source folder.
runs=$1/golden-runs
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0

ok() # what, then a command that must succeed
{
    what=$1
    shift
    if "$@"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "failed: $what"
    fi
}

exits() # code, then a command; its output goes to $tmp/out and $tmp/err
{
    want=$1
    shift
    "$@" >"$tmp/out" 2>"$tmp/err"
    code=$?
    [ $code -eq "$want" ] || { echo "exit $code, expected $want:"; cat "$tmp/out" "$tmp/err"; return 1; }
}

shared=${SESAME_SHARED:-../shared}/golden/e2e
if [ -f "$shared/finetune.json" ]; then
    for isa in ref avx2 avx512; do
        ok "the runs at $isa" exits 0 "$runs" --isa $isa --threads 1 -v "$shared"
        ok "both pass" test "$(grep -c ' PASS$' "$tmp/out")" -eq 2
        cp "$tmp/out" "$tmp/$isa"
    done
    ok "three threads" exits 0 "$runs" --threads 3 -v "$shared"
    ok "the same numbers" cmp -s "$tmp/out" "$tmp/avx512"
    mkdir "$tmp/wrong"
    cp -r "$shared/finetune-bert" "$tmp/wrong"
    sed 's/"lr": 0.002/"lr": 0.0021/' "$shared/finetune.json" >"$tmp/wrong/finetune.json"
    ok "another learning rate fails, and a folder is missing" exits 3 "$runs" "$tmp/wrong"
    ok "reports FAIL" grep -q '^finetune-bert loss=.* FAIL$' "$tmp/out"
    ok "names the missing folder" grep -q 'finetune-distilbert' "$tmp/err"
    printf '{"finetune-bert": {"data": [["a", 0]], "losses": [1], "lr": 1, "batch_size": 1, "fog": 2}}' >"$tmp/wrong/finetune.json"
    ok "an unknown setting" exits 0 "$runs" "$tmp/wrong"
    ok "is named" grep -q '^finetune-bert unsupported: .*"fog"' "$tmp/out"
    printf '{"finetune-bert": {"data": [["a"]], "losses": [1], "lr": 1, "batch_size": 1}}' >"$tmp/wrong/finetune.json"
    ok "a row without label" exits 3 "$runs" "$tmp/wrong"
    ok "is named" grep -q 'data, row 1: 1 elements' "$tmp/err"
else
    skipped=$((skipped + 1))
fi
ok "no folder" exits 3 "$runs" "$tmp/nowhere"
ok "nothing given" exits 2 "$runs"
echo '[]' >"$tmp/finetune.json"
ok "no object" exits 3 "$runs" "$tmp"

if [ $skipped -gt 0 ]; then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
[ $failed -eq 0 ]
