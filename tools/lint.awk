# One check over C sources, selected by -v check=NAME. Prints "file:line: finding" for each violation and
# "note: ..." for values near a limit. See tools/lint.

function report(what) { print FILENAME ":" FNR ": " what }

# Returns the code of a line: without comments, with empty strings. in_comment carries over to the next line.
function code_of(s,    out, i, c) {
    out = ""
    for (;;) {
        if (in_comment) {
            i = index(s, "*/")
            if (!i) return out
            s = substr(s, i + 2)
            in_comment = 0
            out = out " "
        }
        if (!match(s, /"|'|\/\*|\/\//)) return out s
        out = out substr(s, 1, RSTART - 1)
        c = substr(s, RSTART, 1)
        s = substr(s, RSTART + 1)
        if (c == "/") {
            if (substr(s, 1, 1) == "/") return out
            s = substr(s, 2)
            in_comment = 1
        } else {
            out = out c c
            while (s != "" && substr(s, 1, 1) != c) s = substr(s, substr(s, 1, 1) == "\\" ? 3 : 2)
            s = substr(s, 2)
        }
    }
}

function layer_of(path,    part) {
    return split(path, part, "/") >= 3 && part[1] == "src" ? part[2] : ""
}

function exists(path,    line, got) {
    if (path in known) return known[path]
    got = (getline line < path) >= 0
    close(path)
    return known[path] = got
}

function check_include(   name, layer, part, dir) {
    if ($0 !~ /^#[ ]*include "/) return
    name = $0
    sub(/^#[ ]*include "/, "", name)
    sub(/".*/, "", name)
    layer = layer_of(FILENAME)
    if (name ~ /^sesame\//) {
        if (!exists("include/" name)) report("no such header: " name)
    } else if (layer == "") {
        report("a public header includes \"" name "\"")
    } else if (name ~ /\.\./) {
        report("included by a relative path: " name)
    } else if (index(name, "/")) {
        split(name, part, "/")
        if (part[1] != layer && !((layer, part[1]) in allowed)) report(layer " may not include " part[1] ": " name)
        used[layer, part[1]] = 1
        if (!exists("src/" name)) report("no such header: " name)
    } else {
        dir = FILENAME
        sub(/[^\/]*$/, "", dir)
        if (!exists(dir name)) report("no such header here: " name)
    }
}

function end_of_file(   limit) {
    if (check == "lengths" && lines > 0 && !generated) {
        if (lines > 800) print file ": " lines " lines; 800 is the limit"
        else if (lines > 600 && file !~ /^tests\//) print "note: " file ": " lines " lines; 600 is the aim"
    }
    if (check == "guards") {
        if (guard == "" || defined != guard) print file ": no include guard"
        else if (guard in owner) print file ": guard " guard " is taken by " owner[guard]
        else owner[guard] = file
        if (last !~ /^#endif/) print file ": the guard's #endif is not the last line"
    }
    if (check == "blanks" && lines > 0 && last == "") print file ": empty lines at the end"
}

BEGIN {
    banned = "(^|[^A-Za-z0-9_.>])(strcpy|strcat|sprintf|vsprintf|gets|atoi|atol|atoll|atof|strtok|alloca)[ ]*[(]"
    outside = "(^|[^A-Za-z0-9_.>])(printf|vprintf|puts|putchar|perror|exit|_exit|_Exit|quick_exit|abort|getenv|" \
              "secure_getenv|setenv|system)[ ]*[(]"
    streams = "(^|[^A-Za-z0-9_])(stdout|stderr|stdin)([^A-Za-z0-9_]|$)"
    if (check == "layers") {
        while ((getline line < "tools/layers.txt") > 0) {
            if (line ~ /^#/ || line !~ /:/) continue
            n = split(line, word, /[: ]+/)
            layers[word[1]] = 1
            for (i = 2; i <= n; i++) if (word[i] != "") allowed[word[1], word[i]] = 1
        }
    }
}

FNR == 1 {
    if (file != "") end_of_file()
    file = FILENAME
    lines = in_comment = in_function = 0
    guard = defined = last = macro = ""
    generated = /generated/
    if (check == "layers" && layer_of(FILENAME) != "" && !(layer_of(FILENAME) in layers))
        report("layer " layer_of(FILENAME) " is not in tools/layers.txt")
}

{ lines++; if ($0 != "" || check == "blanks") last = $0 }

check == "layers" { check_include() }

check == "guards" {
    if (guard == "" && $1 == "#ifndef") guard = $2
    else if (guard != "" && defined == "" && $1 == "#define") defined = $2
}

# A type is defined by its body or by a typedef of a function type; `typedef struct x x;` only declares it. No function
# may have a type's name.
check == "types" {
    name = ""
    if (match($0, /^(typedef )?(struct|union|enum) ses_[a-z0-9_]+ [{]/)) name = $1 == "typedef" ? $3 : $2
    else if (match($0, /^typedef .*[{].*[}] ses_[a-z0-9_]+;/) || /^typedef (struct|union|enum) [{]/) anonymous = 1
    else if (match($0, /^typedef [^(]*[ *]ses_[a-z0-9_]+[(]/)) {
        name = substr($0, 1, RLENGTH - 1)
        sub(/.*[ *]/, "", name)
    }
    if (anonymous && match($0, /[}] ses_[a-z0-9_]+;/)) name = substr($0, RSTART + 2, RLENGTH - 3)
    if (/^}|[}] [a-z0-9_]+;/) anonymous = 0
    if (name != "" && name in defined_in) report(name " is a type of " defined_in[name] ", too")
    else if (name != "") defined_in[name] = FILENAME
}

check == "types" && /^[a-z].*[ *]ses_[a-z0-9_]+[(]/ && !/^typedef/ {
    name = $0
    sub(/[(].*/, "", name)
    sub(/.*[ *]/, "", name)
    if (!(name in function_at)) function_at[name] = FILENAME ":" FNR
}

check == "functions" {
    if ($0 == "{") { in_function = 1; start = FNR }
    else if (in_function && $0 ~ /^}/) {
        in_function = 0
        size = FNR - start - 1
        if (size > 80) report("a function of " size " lines; 80 is the limit")
        else if (size > 60) print "note: " FILENAME ":" start ": a function of " size " lines; 60 is the aim"
    }
}

check == "lines" && length($0) > 110 && !generated {
    text = $0
    gsub(/[\200-\277]/, "", text) # a UTF-8 character is one column
    if (length(text) > 110) report(length(text) " columns; 110 is the limit")
}

check == "blanks" {
    if (/\t/) report("a tab")
    if (/[ \t]$/) report("blanks at the end")
    if (/\r/) report("a carriage return")
}

check == "words" || check == "library" || check == "macros" {
    code = code_of($0)
    if (check == "words") {
        if (match(code, banned)) report("banned: " substr(code, RSTART, RLENGTH) ")")
        if (code ~ /^typedef [^({]*\*[ ]*[A-Za-z_0-9]+;/) report("a typedef of a pointer")
    } else if (check == "library") {
        # The files that read the environment: SESAME_MODELS, HF_HOME and SESAME_CUDA_MODULE, so that programs find models and
        # modules as the command does, and LISTEN_FDS, by which systemd passes sockets.
        if (FILENAME ~ /^src\/(model\/bundled_models|hub\/hub_env|serve\/http\/http_listener|tensor\/cuda_module|comm\/launch)\.c$/) gsub(/(secure_)?getenv[(](""|name)[)]/, "", code)
        if (match(code, outside)) report("not in the library: " substr(code, RSTART, RLENGTH) ")")
        if (match(code, streams)) report("not in the library: a standard stream")
    } else {
        if (code ~ /^#[ ]*define /) { macro = code; macro_lines = 1 }
        else if (macro != "") { macro = macro code; macro_lines++ }
        if (macro != "" && code !~ /\\$/) {
            if (macro ~ /(^|[^A-Za-z0-9_])(return|goto|for|while)([^A-Za-z0-9_]|$)/) report("a macro with control flow")
            if (macro_lines > 10 && layer_of(FILENAME) == "cli") report("a macro of " macro_lines " lines; 10 is the limit")
            macro = ""
        }
    }
}

END {
    if (file != "") end_of_file()
    if (check == "layers")
        for (pair in allowed) {
            split(pair, part, SUBSEP)
            if (!(pair in used)) print "tools/layers.txt: " part[1] " includes nothing of " part[2]
        }
    if (check == "types")
        for (name in function_at)
            if (name in defined_in) print function_at[name] ": function " name " shares its name with a type of " defined_in[name]
}
