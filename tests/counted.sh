# shellcheck shell=sh disable=SC2034  # used by the including script
# Included by tests of the commands, with BUILD_DIR in $1: a temporary folder $tmp, removed at the end, and counted checks.
build=${1-build}
sesame=$build/sesame
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0

pass() { passed=$((passed + 1)); }
fail() # MESSAGE: prints it with the end of the last output
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
