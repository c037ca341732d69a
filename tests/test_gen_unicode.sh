#!/bin/sh
# tools/gen_unicode reproduces the tables, if Python and the Unicode character database are installed.
set -u
ucd=/usr/share/unicode
if ! command -v python3 >/dev/null 2>&1 || ! grep -qs 'Version 15\.0\.0' $ucd/ReadMe.txt; then
    echo "skipped: no Unicode 15.0.0 in $ucd (Debian package unicode-data), or no Python"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
if python3 tools/gen_unicode $ucd 2>/dev/null | cmp - src/base/unicode/unicode_tables.c; then
    echo '1 passed, 0 failed'
else
    echo '0 passed, 1 failed'
    exit 1
fi
