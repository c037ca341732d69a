#!/bin/sh
# tools/ci-parts: which parts of continuous integration a change needs.
set -u
. tests/counted.sh

parts() { printf '%s\n' "$@" | tools/ci-parts; }
all='aarch64 abi adding clang'
that 'a document needs none' '[ -z "$(parts README.md docs/TOUR.md docs/images/cpu.svg)" ]'
that 'the recipes are documents that are executed' '[ "$(parts README.md docs/ADDING.md)" = adding ]'
that 'a public header needs all' '[ "$(parts include/sesame/model.h)" = "$all" ]'
that 'a kernel' '[ "$(parts src/kernel/simd/norm_simd.c)" = "aarch64 adding clang" ]'
that 'a GPU kernel is not compiled here' '[ -z "$(parts src/kernel/cuda/norm_cuda.cu src/tensor/cuda/gpu_device.c)" ]'
that 'a route' '[ "$(parts src/serve/route/route_similarity.c)" = "adding clang" ]'
that 'a fuzz target' '[ "$(parts tests/fuzz/fuzz_json.c)" = clang ]'
that 'parts of several paths are united' '[ "$(parts tests/fuzz/fuzz_json.c docs/ADDING.md src/cli/main.c)" = "adding clang" ]'
that 'the build needs all' '[ "$(parts CMakeLists.txt)" = "$all" ] && [ "$(parts cmake/levels.cmake)" = "$all" ] && [ "$(parts .ci/run)" = "$all" ]'
that 'an unknown path needs all' '[ "$(parts docs/TOUR.md new/file)" = "$all" ]'
that 'no change needs none' '[ -z "$(printf "" | tools/ci-parts)" ]'

root=$PWD
mkdir -p "$tmp/tree/src/op" "$tmp/tree/docs"
cd "$tmp/tree" || exit 1
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
seq 20 >src/op/sum.c
git init -q && git add . && git -c user.name=a -c user.email=a@b.c commit -q -m one
since() { "$root/tools/ci-parts" HEAD; }
that 'no change since a commit' '[ -z "$(since)" ]'
git mv src/op/sum.c docs/sum.txt
that 'the old path of a moved file counts' '[ "$(since)" = "aarch64 adding clang" ]'
git reset -q --hard && mkdir -p tests/fuzz && : >tests/fuzz/new.c
that 'a new file counts' '[ "$(since)" = clang ]'
that 'an unknown commit fails' '! "$root/tools/ci-parts" none 2>/dev/null'
cd "$root" || exit 1
counted
