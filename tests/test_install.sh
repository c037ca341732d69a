#!/bin/sh
# `make install` gives a tree that a program can be built and linked against, and that reads well.
set -u
. tests/counted.sh

cmake --install "$build" --prefix "$tmp/usr" >"$tmp/log" 2>&1 || cat "$tmp/log"
lib=$(find "$tmp/usr" -name libsesame.a)
pc=$(find "$tmp/usr" -name sesame.pc)
that 'the command runs' '"$tmp/usr/bin/sesame" --version | grep -q "^sesame "'
that 'libraries' '[ -n "$lib" ] && [ -e "$(dirname "$lib")/libsesame.so.0" ]'
that 'pkg-config file' '[ -n "$pc" ]'
for header in include/sesame/*.h include/sesame/unstable/*; do
    that "$header" '[ -f "$tmp/usr/$header" ]'
done
that 'manual' '[ -s "$tmp/usr/share/man/man1/sesame.1" ] && [ -s "$tmp/usr/share/man/man1/sesame-doctor.1" ]'
"$tmp/usr/bin/sesame" --help | sed -n 's/^  \([a-z0-9][a-z0-9-]*\)  .*/\1/p' >"$tmp/commands"
that 'help lists commands, pipelines and analyses' 'grep -qx info "$tmp/commands" && grep -qx embed "$tmp/commands" && grep -qx view "$tmp/commands"'
for name in $(grep -vx help "$tmp/commands") ner; do
    that "manual page of $name" '[ -s "$tmp/usr/share/man/man1/sesame-$name.1" ]'
done
that 'bash completion' '[ -s "$tmp/usr/share/bash-completion/completions/sesame" ]'
that 'zsh completion' '[ -s "$tmp/usr/share/zsh/site-functions/_sesame" ]'
that 'fish completion' '[ -s "$tmp/usr/share/fish/vendor_completions.d/sesame.fish" ]'
if [ -d models ]; then
    that 'models' '[ "$("$tmp/usr/bin/sesame" models | wc -l)" -gt 1 ] && [ -s "$tmp/usr/share/sesame/models/sesame-small/config.json" ]'
else
    skipped=$((skipped + 1))
fi
that 'nothing is outside the prefix' '! grep -q "Installing: /usr" "$tmp/log"'

for target in $(sed -n 's/^install(TARGETS \([a-z -]*\) [A-Z].*/\1/p' cmake/install.cmake) share; do
    that "make install builds $target" 'sed -n "s/.*release ONLY=//p" Makefile | grep -qw -e "$target"'
done

# Every public header compiles alone, as C and as C++. sesame.h includes the stable ones. docs/API.md names all.
cc=$(command -v cc || command -v gcc || command -v clang)
cxx=$(command -v c++ || command -v clang++)
for header in include/sesame/*.h include/sesame/unstable/*.h; do
    name=${header#include/sesame/}
    printf '#include <sesame/%s>\ntypedef int not_empty;\n' "$name" >"$tmp/one.c"
    that "$name alone" '"$cc" -std=c11 -Wall -Wextra -Wpedantic -Werror -I"$tmp/usr/include" -fsyntax-only "$tmp/one.c"'
    if [ -n "$cxx" ]; then
        that "$name in C++" '"$cxx" -xc++ -std=c++17 -Wall -Werror -I"$tmp/usr/include" -fsyntax-only "$tmp/one.c"'
    else
        skipped=$((skipped + 1))
    fi
    case $name in
    sesame.h) ;;
    unstable/*) that "sesame.h does not include $name" '! grep -q "\"sesame/$name\"" include/sesame/sesame.h' ;;
    *) that "$name is in sesame.h" 'grep -q "\"sesame/$name\"" include/sesame/sesame.h' ;;
    esac
    that "$name is in docs/API.md" 'grep -q "^| \`$name\` " docs/API.md'
done

cat >"$tmp/use.c" <<'C'
#include <sesame/sesame.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    ses_err e = { 0 };
    ses_fail(&e, SES_EARG, "works");
    bool same = !strcmp(ses_version(), SES_VERSION) && ses_version_number() == SES_VERSION_NUMBER;
    return !same || puts(e.msg) < 0;
}
C
if [ -n "$cxx" ]; then
    that 'the program is C++ too' '"$cxx" -xc++ -std=c++17 -Wall -Werror -Wno-missing-braces -I"$tmp/usr/include" -fsyntax-only "$tmp/use.c"'
else
    skipped=$((skipped + 1))
fi
libdir=$(dirname "$lib")
if grep -qs '^SESAME_SANITIZE:.*=.' "$build/CMakeCache.txt"; then
    skipped=$((skipped + 6))
else
    # The shared library exports exactly the functions that the public headers declare.
    that 'soname' 'readelf -d "$libdir/libsesame.so" | grep -q "SONAME.*libsesame.so.0\]"'
    (cd include && printf '#include <%s>\n' sesame/sesame.h sesame/unstable/*.h) >"$tmp/all.c"
    gcc -std=c11 -I"$tmp/usr/include" -fsyntax-only -aux-info "$tmp/declared.txt" "$tmp/all.c"
    grep include/sesame/ "$tmp/declared.txt" | grep -v ' static ' | sed "s/^[^(]*[ *]\(ses_[a-z0-9_]*\) (.*/\1/" | sort -u >"$tmp/declared"
    nm -D --defined-only "$libdir/libsesame.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u >"$tmp/exported"
    that 'exports the public functions, no others' 'diff "$tmp/declared" "$tmp/exported"'

    flags="-I$tmp/usr/include -L$libdir -lsesame"
    if command -v pkg-config >/dev/null 2>&1; then
        flags=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --define-variable=pcfiledir="$(dirname "$pc")" --cflags --libs sesame)
        static=$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --static --define-variable=pcfiledir="$(dirname "$pc")" --cflags --libs sesame)
        # shellcheck disable=SC2086  # several flags
        that 'a program links statically' \
            '"$cc" "$tmp/use.c" -o "$tmp/use" $(echo "$static" | sed "s/-lsesame/-l:libsesame.a/") && [ "$("$tmp/use")" = works ]'
    else
        skipped=$((skipped + 1))
    fi
    # shellcheck disable=SC2086
    that 'a program links' '"$cc" "$tmp/use.c" -o "$tmp/use" $flags && [ "$(LD_LIBRARY_PATH=$libdir "$tmp/use")" = works ]'

    # find_package(sesame) from another project, shared and static.
    mkdir "$tmp/consumer"
    cat >"$tmp/consumer/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES C)
find_package(sesame 0.1 REQUIRED)
add_executable(shared ../use.c)
target_link_libraries(shared PRIVATE sesame::sesame)
add_executable(static ../use.c)
target_link_libraries(static PRIVATE sesame::static)
CMAKE
    that 'a CMake project finds the package' \
        'cmake -S "$tmp/consumer" -B "$tmp/consumer/build" -DCMAKE_PREFIX_PATH="$tmp/usr" >"$tmp/log" 2>&1 &&
        cmake --build "$tmp/consumer/build" >"$tmp/log" 2>&1 || { cat "$tmp/log"; false; }'
    that 'its programs run' '[ "$("$tmp/consumer/build/shared")$("$tmp/consumer/build/static")" = worksworks ]'
fi

counted
