#!/bin/sh
# The packages fit the sources: versions agree, and the lists of files name files that `make install` installs. packaging/test-deb tests the
# built packages.
set -u
. tests/counted.sh

version=$(sed -n 's/^#define SES_VERSION "\(.*\)"/\1/p' include/sesame/base.h)
that 'version of the Debian packages' 'head -n 1 packaging/debian/changelog | grep -qF "sesame ($version-"'
that 'version of the symbols' 'grep -q "^ (symver)SESAME_0 " packaging/debian/libsesame0.symbols && grep -q "^SESAME_0 {" cmake/sesame.map'
for script in packaging/*-* packaging/debian/rules packaging/debian/tests/command packaging/debian/tests/library; do
    that "$script is executable" '[ -x "$script" ]'
done

cmake --install "$build" --prefix "$tmp/usr" >"$tmp/out" 2>&1 || cat "$tmp/out"
lib=$(dirname "$(find "$tmp/usr" -name libsesame.a)")
mkdir -p "$tmp/lib/systemd" "$tmp/usr/lib/triplet" # as packaging/debian/rules does, and below the folder of an architecture
mv "$tmp/usr/lib/systemd/system" "$tmp/lib/systemd/"
[ "$lib" = "$tmp/usr/lib" ] || cp -R "$lib/." "$tmp/usr/lib/triplet/"
[ "$lib" != "$tmp/usr/lib" ] || cp -R "$lib"/libsesame* "$lib/cmake" "$lib/pkgconfig" "$tmp/usr/lib/triplet/"
for list in packaging/debian/libsesame0.install packaging/debian/libsesame-dev.install packaging/debian/sesame.install \
    packaging/debian/sesame-models.install; do
    while read -r pattern _; do
        if [ "$pattern" = usr/share/sesame/models ] && [ ! -d models ]; then continue; fi
        # shellcheck disable=SC2086  # a pattern
        that "$list: $pattern" 'ls -d "$tmp"/'"$pattern"' >/dev/null 2>&1'
    done <"$list"
done

# Every installed file is in a package.
find "$tmp/lib" "$tmp/usr" -type f ! -path "$tmp/usr/lib/triplet/*" ! -path "$lib/*" | sed "s,^$tmp/,," >"$tmp/files"
sed 's/ .*//' packaging/debian/*.install >"$tmp/patterns"
while read -r file; do
    that "$file is in a package" 'grep -qxF "$file" "$tmp/patterns" || while read -r pattern; do case $file in "$pattern"/*) echo found ;; esac; done <"$tmp/patterns" | grep -q found'
done <"$tmp/files"

# packaging/test-container executes every instruction of the container file.
grep -v '^ *#' packaging/Containerfile | grep . | sed 's/ .*//' | sort -u >"$tmp/used"
while read -r name; do
    that "test-container executes $name" 'grep -qE "^    $name\)" packaging/test-container'
done <"$tmp/used"
counted
