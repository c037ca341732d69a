# shellcheck shell=sh disable=SC2034  # what follows uses them
# For tests of the commands from outside, read by them with BUILD_DIR in $1: a folder $tmp that goes when they end, and
# checks that are counted.
build=${1-build}
sesame=$build/sesame
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0

pass() { passed=$((passed + 1)); }
fail() # what; with the end of what was printed last
{
    failed=$((failed + 1))
    echo "failed: $1"
    tail -n 8 "$tmp/out" "$tmp/err" 2>/dev/null
}
that() { if eval "$2"; then pass; else fail "$1"; fi; } # what, a condition
counted() # the last line of a test, and its exit status
{
    printf '%d passed, %d failed' $passed $failed
    [ $skipped -eq 0 ] || printf ', %d skipped' $skipped
    echo
    [ $failed -eq 0 ]
}
