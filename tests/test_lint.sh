#!/bin/sh
# tools/lint finds each kind of violation: first a small clean tree, then one violation at a time.
set -u
root=$PWD
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
passed=0 failed=0 skipped=0
cc=$(command -v cc || command -v gcc || command -v clang)

fresh() {
    rm -rf "$tmp/tree"
    mkdir -p "$tmp/tree/tools" "$tmp/tree/src/base" "$tmp/tree/src/op" "$tmp/tree/src/cli/cmd" "$tmp/tree/include/sesame/unstable" \
        "$tmp/tree/tests" "$tmp/tree/build"
    cd "$tmp/tree" || exit 1
    cp "$root/tools/lint" "$root/tools/lint.awk" tools/
    cp "$root/.clang-format" .
    printf '# comment\nbase:\nop: base\ncli: base op\n' >tools/layers.txt
    printf '# comment\n\\bso many\\b => N\n' >tools/prose.txt
    printf '# comment\n^src/op/quoted\\.c:\n' >tools/prose-exceptions.txt
    cat >include/sesame/base.h <<'C'
/* A header. */
#ifndef SESAME_ERR_H
#define SESAME_ERR_H

int ses_add(int a, int b);

#endif
C
    cat >src/base/thread_pool.h <<'C'
/* Another. */
#ifndef SES_BASE_POOL_H
#define SES_BASE_POOL_H

#include "sesame/base.h"

#endif
C
    cat >src/op/add.c <<'C'
#include "base/thread_pool.h"

/* printf("x") and exit(1) and strcpy() here are words, "don't" is one too. */
static const char *const name[] = { "getenv(", "stderr", "'" };

int ses_add(int a, int b) { return a + b + (name[0][0] == '"'); /* atoi( */ }
C
    printf 'SES_OP(add, (int a, int b))\n' >include/sesame/unstable/ops.def
    printf 'SES_COMMAND(go)\n' >src/cli/commands.def
    printf '#include "base/thread_pool.h"\n#include "op/x.h"\n\nint main(void) { return 0; }\n' >src/cli/cmd/cmd_go.c
    printf '/* x */\n#ifndef SES_X_H\n#define SES_X_H\n#endif\n' >src/op/x.h
    printf '#!/bin/sh\necho fine\n' >demo
}

library() {
    "$cc" -fPIC -Iinclude -Isrc -c src/op/add.c -o build/add.c.o && ar rcs build/libsesame.a build/add.c.o
}

# finds CHECK TEXT: lint fails in this check and prints TEXT.
finds() {
    out=$(tools/lint --only "$1" 2>&1)
    if [ $? -ne 0 ] && echo "$out" | grep -q "FAILED  $1" && echo "$out" | grep -qF -- "$2"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "lint did not say \"$2\" in $1:"
        echo "$out"
    fi
    fresh
}

clean() {
    out=$(tools/lint 2>&1)
    if [ $? -eq 0 ] && echo "$out" | grep -q ' passed, 0 failed'; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "the clean tree is refused:"
        echo "$out"
    fi
}

many() { awk -v n="$1" -v text="$2" 'BEGIN { for (i = 0; i < n; i++) print text }'; }

fresh
clean
library || failed=$((failed + 1))
clean

echo '#include "op/x.h"' >>src/base/thread_pool.h
finds layers 'base may not include op'
echo '#include "op/none.h"' >>src/op/add.c
finds layers 'no such header: op/none.h'
echo '#include "../base/pool.h"' >>src/op/add.c
finds layers 'relative path'
echo '#include "base/thread_pool.h"' >>include/sesame/base.h
finds layers 'a public header includes "base/thread_pool.h"'
mkdir src/rogue && echo 'int x;' >src/rogue/a.c
finds layers 'layer rogue is not in tools/layers.txt'
sed -i 's/^base:/base: op/' tools/layers.txt
finds layers 'base includes nothing of op'

echo 'int x;' >src/op/y.h
finds guards 'src/op/y.h: no include guard'
cp src/op/x.h src/op/y.h
finds guards 'is taken by'
echo 'int x;' >>src/op/x.h
finds guards 'not the last line'

echo 'typedef struct ses_twin { int x; } ses_twin;' >>src/op/add.c
echo 'struct ses_twin { int y; };' >>src/base/thread_pool.h
finds types 'ses_twin is a type of src/base/thread_pool.h, too'
printf 'typedef enum {\n    SES_A\n} ses_twin;\n' >>src/op/add.c
echo 'typedef enum { SES_B } ses_twin;' >>src/base/thread_pool.h
finds types 'ses_twin is a type of'
echo 'typedef int ses_twin(int x);' >>src/op/add.c
echo 'typedef void *ses_twin(void);' >>src/base/thread_pool.h
finds types 'ses_twin is a type of'
echo 'typedef struct ses_twin { int x; } ses_twin;' >>src/op/add.c
echo 'int ses_twin(int x);' >>src/base/thread_pool.h
finds types 'function ses_twin shares its name with a type of src/op/add.c'

mkdir src/op/inner && cp src/op/x.h src/op/inner/x.h
finds names 'file name in two folders: src/op/inner/x.h src/op/x.h'
for i in $(seq 50); do : >"src/op/file$i.c"; done
finds names 'src/op: 52 files; 48 is the limit'

echo '/* so many tokens */' >>src/op/add.c
finds prose 'src/op/add.c:7:/* so many tokens */  [write: N]'
echo '[' >>tools/prose-exceptions.txt
finds prose 'tools/prose-exceptions.txt: invalid regular expression'
echo '/* so many tokens */' >src/op/quoted.c
tools/lint --only prose >/dev/null && passed=$((passed + 1)) || { failed=$((failed + 1)); echo 'a prose exception'; }
fresh

many 801 '' >>src/op/add.c
finds lengths 'lines; 800 is the limit'
many 801 'int x;' | sed '1s,^,/* generated */,' >src/op/table.c
out=$(tools/lint --only lengths) && passed=$((passed + 1)) || { failed=$((failed + 1)); echo "$out"; }
many 650 'int x;' >src/op/table.c
tools/lint --only lengths | grep -q '^note: src/op/table.c: 650 lines' && passed=$((passed + 1)) ||
    { failed=$((failed + 1)); echo 'no note at 650 lines'; }
{ echo 'int f(void)'; echo '{'; many 81 '    x();'; echo '}'; } >>src/op/add.c
finds functions 'a function of 81 lines'

echo "/* $(many 1 "$(printf '%0107d' 0)") */" >>src/op/add.c
finds lines '113 columns'
fresh
echo "/* $(printf '%0107d' 0) */" >>include/sesame/unstable/ops.def
finds lines 'ops.def:2: 113 columns'
fresh
echo "/* $(printf '%098d' 0) éééé */" >>src/op/add.c
tools/lint --only lines >/dev/null && passed=$((passed + 1)) || { failed=$((failed + 1)); echo 'bytes for columns'; }
fresh

for name in strcpy strcat sprintf gets atoi atof strtok alloca; do
    echo "void f(void) { $name(x); }" >>src/op/add.c
    finds words "banned:  $name("
done
echo 'typedef struct thing *thing;' >>src/op/add.c
finds words 'a typedef of a pointer'
for name in printf puts exit abort getenv; do
    echo "void f(void) { $name(x); }" >>src/op/add.c
    finds library "$name("
    echo "void f(void) { $name(x); }" >>src/cli/cmd/cmd_go.c
    tools/lint --only library >/dev/null && passed=$((passed + 1)) || { failed=$((failed + 1)); echo "$name in cli"; }
    fresh
done
echo 'void f(void) { fputs("", stderr); }' >>src/op/add.c
finds library 'a standard stream'
printf '#define TRY(x) \\\n    if (!(x)) return 0\n' >>src/op/add.c
finds macros 'a macro with control flow'
{ echo '#define TABLE \'; many 10 '    x, \'; echo '    y'; } >>src/cli/cmd/cmd_go.c
finds macros 'a macro of 12 lines; 10 is the limit'

printf 'int x;\t\n' >>src/op/add.c
finds blanks 'a tab'
printf 'int x; \n' >>src/op/add.c
finds blanks 'blanks at the end'
printf 'int x;\r\n' >>src/op/add.c
finds blanks 'a carriage return'
echo >>src/op/add.c
finds blanks 'empty lines at the end'

echo 'SES_OP(mul, (int a))' >>include/sesame/unstable/ops.def
finds defs 'mul has no src/op/mul.c'
echo 'SES_OP(mul, (int a))' >>include/sesame/unstable/ops.def
echo 'const ses_op ses_op_mul = { 0 };' >>src/op/add.c
tools/lint --only defs >/dev/null && passed=$((passed + 1)) || { failed=$((failed + 1)); echo 'several entries in one file'; }
fresh
echo 'SES_COMMAND(stop)' >>src/cli/commands.def
finds defs 'stop has no src/cli/*/cmd_stop.c'
: >src/cli/cmd/cmd_stop.c
finds defs 'src/cli/cmd/cmd_stop.c: not in commands.def'
mkdir docs && echo 'See `src/op/none.c` and `ses_none`; `src/op/add.c` and `ses_add` exist.' >docs/GLOSSARY.md
finds docs 'docs/GLOSSARY.md: no such path: src/op/none.c'
mkdir docs && echo 'See `ses_none` and `ses_add`.' >docs/GLOSSARY.md
finds docs 'docs/GLOSSARY.md: no such name: ses_none'
echo 'if true' >>demo
finds scripts 'demo'

for what in 'static int n; int f(void) { return n++; }' 'int n = 1;' 'int *f(void) { static int n; return &n; }' \
    '_Thread_local int n;'; do
    echo "$what" >>src/op/add.c
    library
    finds globals 'bytes in .'
done
if command -v clang-format >/dev/null 2>&1; then
    echo 'int   x ;' >>src/op/add.c
    finds format 'add.c'
else
    skipped=$((skipped + 1))
fi

printf '%d passed, %d failed' $passed $failed
[ $skipped -eq 0 ] || printf ', %d skipped' $skipped
echo
[ $failed -eq 0 ]
