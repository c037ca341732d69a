#!/bin/sh
# The command from outside: help, usage errors, exit codes, streams, JSON, manual pages, completion.
set -u
. tests/counted.sh
unset NO_COLOR CLICOLOR_FORCE SESAME_ISA SESAME_THREADS
escape=$(printf '\033')

skip() {
    skipped=$((skipped + 1))
    echo "skipped: $1"
}

# gives STATUS ARGS...: run it, keep out and err, compare the exit status
gives() {
    want=$1
    shift
    "$sesame" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    got=$?
    if [ $got -eq "$want" ]; then pass; else fail "sesame $*: exit $got, wanted $want"; fi
}
out_has() { if grep -qF -- "$1" "$tmp/out"; then pass; else fail "stdout lacks \"$1\""; fi; }
err_has() { if grep -qF -- "$1" "$tmp/err"; then pass; else fail "stderr lacks \"$1\""; fi; }
err_empty() { if [ ! -s "$tmp/err" ]; then pass; else fail 'stderr is not empty'; fi; }
out_empty() { if [ ! -s "$tmp/out" ]; then pass; else fail 'stdout is not empty'; fi; }

# usage MESSAGE TRY ARGS...: exit 2, nothing on stdout, the message and where to look
usage() {
    message=$1 try=$2
    shift 2
    gives 2 "$@"
    out_empty
    if [ "$(cat "$tmp/err")" = "sesame: $message
Try 'sesame $try'." ]; then pass; else fail "sesame $*: not \"$message\""; fi
}

commands=$(sed -n 's/^SES_COMMAND(\([a-z0-9_]*\)).*/\1/p' src/cli/commands.def | tr _ -)
that 'there are commands' '[ -n "$commands" ]'
groups='vectors topics' # commands with actions, which are commands of their own

# help
gives 0 --help
err_empty
cp "$tmp/out" "$tmp/top"
gives 0 help
that 'help is --help' 'cmp -s "$tmp/out" "$tmp/top"'
gives 0 -h
gives 0
err_empty
that 'sesame alone fits a screen' '[ "$(wc -l <"$tmp/out")" -le 25 ]'
for command in $commands; do
    group=${command%%-*} action=
    case " $groups " in *" $group "*) [ "$command" = "$group" ] || action=${command#*-} ;; esac
    if [ -n "$action" ]; then
        gives 0 "$group" --help
        that "$group --help lists $action" 'grep -q "^  $action " "$tmp/out"'
        that "--help does not list $command" '! grep -q "^  $command " "$tmp/top"'
    elif [ "$command" != man ]; then
        that "--help lists $command" 'grep -q "^  $command " "$tmp/top"'
    fi
    gives 0 "$command" --help
    err_empty
    out_has "Usage: sesame ${action:+$group }${action:-$command}"
    out_has '--help'
    out_has 'Examples:'
    that "$command --help has at most 60 lines (finetune: 80)" \
        '[ "$(wc -l <"$tmp/out")" -le "$([ "$command" = finetune ] && echo 80 || echo 60)" ]'
    cp "$tmp/out" "$tmp/command"
    gives 0 help "$command"
    that "help $command" 'cmp -s "$tmp/out" "$tmp/command"'
    that "help $command fits 80 columns" '[ -z "$(LC_ALL=C awk "length > 80" "$tmp/out" | grep -v "^  sesame ")" ]'
done
gives 0 --version
that 'the version' 'grep -qE "^sesame [0-9]+\.[0-9]+\.[0-9]+$" "$tmp/out"'
gives 0 --version --verbose
out_has 'compiler: '
out_has 'instruction sets built: ref'
out_has 'CUDA'

# wrong usage
usage "unknown command 'docotr'; did you mean 'doctor'?" '--help' docotr
usage "unknown command 'xyzzy'" '--help' xyzzy
usage "unknown command 'docto'; did you mean 'doctor'?" 'help --help' help docto
usage "unknown command 'classfy'; did you mean 'classify'?" '--help' classfy
usage '--model DIR or --config FILE is required; --model sesame-small is the bundled encoder' 'finetune --help' \
    finetune --task classify --train LICENSE -o "$tmp/none"
for pair in qa:question-answering classify:text-classification sentiment:text-classification generate:text-generation \
    summarize:summarization translate:translation; do
    "$sesame" "${pair#*:}" --help >"$tmp/one"
    that "${pair%:*} is ${pair#*:}" '"$sesame" "${pair%:*}" --help | cmp -s "$tmp/one" -'
    that "help ${pair%:*}" '"$sesame" help "${pair%:*}" | cmp -s "$tmp/one" -'
done
usage "unknown option '--learning-rate'; did you mean '--lr'?" 'finetune --help' finetune --learning-rate 1e-4
usage "unknown option '--learning_rate'; did you mean '--lr'?" 'pretrain --help' pretrain --learning_rate=1e-4
usage "unknown option '--output-dir'; did you mean '--output'?" 'finetune --help' finetune --output-dir x
usage "unknown option '--versoin'; did you mean '--version'?" '--help' --versoin
usage "unknown option '--jsn'; did you mean '--json'?" 'doctor --help' doctor --jsn
usage "unknown option '--frobnicate'" 'doctor --help' doctor --frobnicate
usage "unknown option '-z'" 'doctor --help' doctor -z
usage "unexpected argument 'x'" 'doctor --help' doctor x
usage '--isa: "avx51" is not one of ref|avx2|avx512|avx512bf16|amx; did you mean '"'avx512'?" 'doctor --help' doctor --isa avx51
usage '--threads: "many" is not a whole number' 'doctor --help' doctor --threads many
usage '--threads: "2x" is not a whole number' 'doctor --help' doctor --threads=2x
usage '--threads: -1 is out of range: 0 to 1024' 'doctor --help' doctor --threads -1
usage '--threads: 99999999999999999999 is out of range: 0 to 1024' 'doctor --help' doctor --threads 99999999999999999999
usage '--seconds: "nan" is not a number' 'doctor --help' doctor --seconds nan
usage '--threads needs a value (N)' 'doctor --help' doctor --threads
usage '--json takes no value' 'doctor --help' doctor --json=yes
usage '--color: "sometimes" is not one of auto|always|never' 'doctor --help' doctor --color sometimes
usage '"bsh" is not one of bash|zsh|fish; did you mean '"'bash'?" 'completion --help' completion bsh
usage 'missing argument; usage: sesame completion bash|zsh|fish' 'completion --help' completion
SESAME_ISA=sse gives 2 doctor --quick
err_has 'SESAME_ISA: "sse" is not one of'
gives 2 doctor "--$(printf 'bad\033[31m')"
that 'errors do not pass escapes on' '! grep -q "$escape" "$tmp/err"'

# doctor, JSON
gives 0 doctor --quick
err_empty
out_has 'Cores'
out_has 'gemm'
that 'no color in a pipe' '! grep -q "$escape" "$tmp/out"'
that 'no blanks at the end of lines' '! grep -q " $" "$tmp/out"'
gives 0 doctor --seconds 0.05 --isa ref --threads 2
out_has 'GFLOP/s'
out_has 'GB/s'
that 'ASCII bars without a UTF-8 locale' 'LC_ALL=C "$sesame" doctor --seconds 0.05 | grep -q "###"'
that 'block bars with one' 'LC_ALL=C.UTF-8 "$sesame" doctor --seconds 0.05 | grep -q "██"'
gives 0 doctor --mpi
out_has 'mpirun -n 2 sesame doctor --mpi'
gives 0 doctor --json --seconds 0.05
err_empty
that 'JSON is valid' '"$build/json_valid" <"$tmp/out"'
that 'the checker refuses invalid JSON' '! echo "{\"a\": 1,}" | "$build/json_valid" 2>/dev/null'
out_has '"GFLOP/s"'
SESAME_ISA=ref SESAME_THREADS=1 gives 0 doctor --json --quick
out_has '"isa": "ref"'
out_has '"threads": 1'
SESAME_ISA=ref gives 0 doctor --json --quick --isa avx512
that 'an option beats the environment' '! grep -q "\"isa\": \"ref\"" "$tmp/out" || grep -q "\"isa_best\": \"ref\"" "$tmp/out"'

# color
that '--color always' '"$sesame" --color always --help | grep -q "$escape"'
that '--color before the command' '"$sesame" --color always doctor --help | grep -q "$escape"'
that '--color after the command' '"$sesame" doctor --help --color=always | grep -q "$escape"'
that 'CLICOLOR_FORCE' 'CLICOLOR_FORCE=1 "$sesame" --help | grep -q "$escape"'
that 'NO_COLOR beats CLICOLOR_FORCE' '! NO_COLOR=1 CLICOLOR_FORCE=1 "$sesame" --help | grep -q "$escape"'
that '--color always beats NO_COLOR' 'NO_COLOR=1 "$sesame" --color always --help | grep -q "$escape"'
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    tty() { TERM=xterm script -qec "'$sesame' $1" /dev/null </dev/null; }
    that 'color on a terminal' 'tty --help | grep -q "$escape"'
    that 'NO_COLOR on a terminal' '! NO_COLOR=1 tty --help | grep -q "$escape"'
else
    skip 'script(1) gives no terminal'
fi

# streams
{
    sleep 0.3
    "$sesame" completion bash 2>"$tmp/err"
    echo $? >"$tmp/status"
} | true
while [ ! -s "$tmp/status" ]; do sleep 0.1; done
that 'a closed pipe ends it as any program' '[ "$(cat "$tmp/status")" = 141 ] && [ ! -s "$tmp/err" ]'
if [ -w /dev/full ]; then
    "$sesame" --help >/dev/full 2>"$tmp/err"
    that 'a full disk is exit 1' "[ $? -eq 1 ]"
    err_has 'sesame: standard output: cannot be written: No space left on device; free disk space and run the command again'
    "$sesame" doctr >/dev/full 2>"$tmp/err"
    that 'but a usage error stays one' "[ $? -eq 2 ]"
else
    skip 'no /dev/full'
fi
"$sesame" --version >&- 2>"$tmp/err"
that 'a closed stdout is exit 1' "[ $? -eq 1 ]"
err_has 'sesame: standard output: '
"$sesame" doctr >/dev/null 2>&-
that 'a closed stderr does no harm' "[ $? -eq 2 ]"

# manual pages and completion know every command and option
options() { "$sesame" "$1" --help all | sed -n 's/^  *\(-[a-zA-Z], \)*--\([a-zA-Z0-9-]*\).*/\2/p'; }
for shell in bash zsh fish; do gives 0 completion $shell && cp "$tmp/out" "$tmp/$shell"; done
gives 0 man
out_has '.TH SESAME 1'
cp "$tmp/out" "$tmp/sesame.1"
for command in $commands; do
    gives 0 man "$command"
    that "manual page of $command" '[ "$(grep -c "^.SH" "$tmp/out")" -ge 6 ]'
    for option in $(options "$command"); do
        out_has "\\-\\-$(echo "$option" | sed 's/-/\\-/g')"
        [ "$command" = man ] || for shell in bash zsh fish; do
            that "$shell completion of $command --$option" 'grep -q -e "[ -]$option[ =\[]" "$tmp/$shell"'
        done
    done
    [ "$command" = man ] || for file in sesame.1 bash zsh fish; do
        that "$file knows $command" 'grep -q "$command" "$tmp/$file"'
    done
done
if command -v mandoc >/dev/null 2>&1; then
    for command in '' $commands; do
        # shellcheck disable=SC2086  # nothing for sesame itself
        that "mandoc likes the page $command" '[ -z "$("$sesame" man $command | mandoc -Tlint)" ]'
    done
else
    skip 'no mandoc'
fi
complete_bash() { # WORDS...: what bash offers for the last
    bash -c '. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sesame; echo "${COMPREPLY[*]}"' "$tmp/bash" "$@" 2>&1
}
if command -v bash >/dev/null 2>&1; then
    that 'bash: command' '[ "$(complete_bash sesame doc)" = doctor ]'
    that 'bash: option' '[ "$(complete_bash sesame doctor --js)" = --json ]'
    that 'bash: value' '[ "$(complete_bash sesame doctor --isa avx)" = "avx2 avx512 avx512bf16" ]'
    that 'bash: --option=value' '[ "$(complete_bash sesame doctor --isa = avx2)" = avx2 ]'
    that 'bash: operand' '[ "$(complete_bash sesame completion z)" = zsh ]'
    # Models: bundled, of SESAME_MODELS, and folders; tasks; devices.
    mkdir -p "$tmp/search/my-model" "$tmp/here/my-folder" "$tmp/search/no-model" && echo '{}' >"$tmp/search/my-model/config.json"
    offers() { (cd "$tmp/here" && PATH=$bin:$PATH SESAME_MODELS=$tmp/search complete_bash sesame "$@"); }
    bin=$(dirname "$(command -v "$sesame")") && bin=$(cd "$bin" && pwd)
    that 'bash: models' '[ "$(offers fill-mask -m my)" = "my-model my-folder" ]'
    that 'bash: bundled models' 'offers fill-mask --model "" | grep -q "sesame-small"'
    that 'bash: not other folders' '! offers fill-mask --model "" | grep -q no-model'
    that 'bash: --model=' '[ "$(offers fill-mask --model = my-m)" = my-model ]'
    that 'bash: the model operand' '[ "$(offers info my-m)" = my-model ]'
    that 'bash: tasks' '[ "$(offers finetune --task clas)" = classify ]'
    that 'bash: benchmarks' 'offers eval -T sst | grep -q sst2'
    that 'bash: devices' 'offers finetune --device c | grep -q "^cpu"'
    that 'bash: after a global option' '[ "$(complete_bash sesame --color never doc)" = doctor ]'
else
    skip 'no bash'
fi
for shell in zsh fish; do
    if command -v $shell >/dev/null 2>&1; then
        that "$shell reads its script" '$shell -n "$tmp/$shell"'
    else
        skip "no $shell"
    fi
done

counted
