#!/bin/sh
# ./demo with the models that are here, and without any: every step ends well, and what is missing is said.
set -u
. tests/counted.sh
case $build in /*) ;; *) build=$PWD/$build ;; esac

# A source folder whose program is built already, with these models or none.
tree() {
    mkdir -p "$tmp/$1/build" "$tmp/$1/tools"
    cp demo "$tmp/$1/"
    cp "$build/sesame" "$build/golden" "$tmp/$1/build/" # copies: a program finds models beside itself
    printf 'install() { :; }\n' >"$tmp/$1/tools/setup.sh"
    printf 'all:\n\t@:\n' >"$tmp/$1/Makefile"
    ln -s "$PWD/tests" "$tmp/$1/tests"
}
unset SESAME_MODELS
tree without
that 'without models' '(cd "$tmp/without" && sh ./demo) >"$tmp/out" 2>&1'
that 'it says so' 'grep -q "^Not here, and so not shown: sesame-small" "$tmp/out"'
that 'and shows what it can' 'grep -q "PASS" "$tmp/out" && grep -q "rings at noon" "$tmp/out"'
if [ -d models ]; then
    tree with
    ln -s "$PWD/models" "$tmp/with/models"
    that 'with models' '(cd "$tmp/with" && sh ./demo) >"$tmp/out" 2>&1'
    that 'nothing is missing' '! grep -q "^Not here" "$tmp/out" && grep -q "^# Which token looks" "$tmp/out"'
fi
counted
