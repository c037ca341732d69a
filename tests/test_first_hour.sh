#!/bin/sh
# Every command of docs/FIRST_HOUR.md runs and prints output of the documented shape.
set -u
. tests/counted.sh
if [ ! -d models ]; then
    echo 'skipped: no bundled models'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
tools/doc-run "$build" docs/FIRST_HOUR.md | tee "$tmp/out"
that 'every command is run' '[ "$(awk "/passed, / { print \$1 + \$3 }" "$tmp/out")" -ge "$(grep -c "^\`\`\`sh$" docs/FIRST_HOUR.md)" ]'
that 'every output has its shape' 'grep -q ", 0 failed$" "$tmp/out"'
counted
