#!/bin/sh
# Tests of ./demo with and without the bundled models.
set -u
. tests/counted.sh
case $build in /*) ;; *) build=$PWD/$build ;; esac

# A source folder with a built program, without models.
tree() {
    mkdir -p "$tmp/$1/build" "$tmp/$1/tools"
    cp demo "$tmp/$1/"
    cp "$build/sesame" "$build/golden" "$tmp/$1/build/" # copies: models are searched next to the program
    printf 'install() { :; }\n' >"$tmp/$1/tools/setup.sh"
    printf 'all:\n\t@:\n' >"$tmp/$1/Makefile"
    ln -s "$PWD/tests" "$tmp/$1/tests"
}
unset SESAME_MODELS
tree without
that 'without models' '(cd "$tmp/without" && sh ./demo) >"$tmp/out" 2>&1'
that 'missing models are listed' 'grep -q "^Missing models: sesame-small" "$tmp/out"'
that 'the other steps' 'grep -q "PASS" "$tmp/out" && grep -q "rings at noon" "$tmp/out"'
if [ -d models ]; then
    tree with
    ln -s "$PWD/models" "$tmp/with/models"
    that 'with models' '(cd "$tmp/with" && sh ./demo) >"$tmp/out" 2>&1'
    that 'nothing is missing' '! grep -q "^Missing models" "$tmp/out" && grep -q "^# Attention map" "$tmp/out"'
fi
counted
