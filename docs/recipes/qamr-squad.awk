# QAMR's questions as paragraphs of SQuAD's format; most: the number of questions to read (0: all).
#     LC_ALL=C awk -v most=8000 -f docs/recipes/qamr-squad.awk dev.tsv
# Offsets are code points but awk may count bytes, so sentences with non-ASCII characters are skipped.
BEGIN { FS = "\t" }
function quoted(s) { gsub(/\\/, "\\\\", s); gsub(/"/, "\\\"", s); return "\"" s "\"" }
function plain(s) { gsub(/-LRB-/, "(", s); gsub(/-RRB-/, ")", s); gsub(/``|\047\047/, "\"", s); return s }
NR == 1 || (most && NR > most + 1) || /[\200-\377\001-\010]/ { next }
{
    n = split(plain($2), word, " "); context = ""; begin = 0; answer = ""
    for (i = 1; i <= n; i++) {
        if (i - 1 == $4) begin = length(context) + (i > 1)
        context = context (i > 1 ? " " : "") word[i]
        if (i - 1 >= $4 && i - 1 <= $5) answer = answer (i - 1 > $4 ? " " : "") word[i]
    }
    if (answer == "") next
    if (context != last) printf "%s{\"context\":%s,\"qas\":[", last == "" ? "" : "]},", quoted(context)
    else printf ","
    last = context
    printf "{\"id\":\"qamr%d\",\"question\":%s,\"answers\":[{\"text\":%s,\"answer_start\":%d}]}", NR, quoted($3), quoted(answer), begin
}
END { print "]}" }
