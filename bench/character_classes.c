/* Times each tokenizer on long texts of a single character class, 4 MB by default:
 *   make ONLY=character-classes && build/character-classes [-s MEGABYTES] TOKENIZER...
 * Prints the slowest classes of each tokenizer (processor time) and a checksum of all results, to compare two
 * versions. Exits with 1 if a class takes more than 2 s. */
#define _POSIX_C_SOURCE 200809L
#include "sesame/sesame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct class
{
    const char *name, *first, *unit; /* the text: first, then unit repeated */
    size_t n;
} class;

#define CLASS(name, first, unit)           \
    {                                      \
        name, first, unit, sizeof unit - 1 \
    }
static const class classes[] = {
    CLASS("letters", "", "abcdefghijklmnopqrstuvwxyz"),
    CLASS("a letter", "", "a"),
    CLASS("a capital", "", "A"),
    CLASS("spaces", "", " "),
    CLASS("line feeds", "", "\n"),
    CLASS("tabs", "", "\t"),
    CLASS("digits", "", "0123456789"),
    CLASS("punctuation", "", "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"),
    CLASS("full stops", "", "."),
    CLASS("CJK", "", "\u4e2d\u6587\u5b57"),
    CLASS("Hangul", "", "\ud55c"),
    CLASS("jamo", "", "\u1100\u1161\u11a8"),
    CLASS("Arabic", "", "\u0627\u0644\u0639"),
    CLASS("Thai", "", "\u0e01\u0e34"),
    CLASS("Devanagari", "", "\u0915\u094d"),
    CLASS("emoji with joiners", "", "\U0001f468\u200d\U0001f469\u200d"),
    CLASS("joiners", "", "\u200d"),
    CLASS("marks", "a", "\u0301"),
    CLASS("marks to sort", "a", "\u0301\u0323"),
    CLASS("U+FDFA", "", "\ufdfa"),
    CLASS("U+FDFB", "", "\ufdfb"),
    CLASS("U+0130", "", "\u0130"),
    CLASS("U+1F80", "", "\u1f80"),
    CLASS("U+FB03", "", "\ufb03"),
    CLASS("invalid bytes", "", "\xff"),
    CLASS("incomplete characters", "", "\xe4\xb8"),
    CLASS("continuation bytes", "", "\x80"),
    CLASS("NUL", "", "\0"),
    CLASS("controls", "", "\x01\x02"),
    CLASS("private use", "", "\ue000"),
    CLASS("unassigned", "", "\u0378"),
    CLASS("U+FFFD", "", "\ufffd"),
    CLASS("U+2581", "", "\u2581"),
    CLASS("no-break spaces", "", "\u00a0"),
    CLASS("ideographic spaces", "", "\u3000"),
    CLASS("soft hyphens", "", "\u00ad"),
    CLASS("short words", "", "a b "),
    CLASS("an added token", "", "[MASK]"),
    CLASS("starts of added tokens", "", "<["),
};
enum { CLASSES = sizeof classes / sizeof *classes };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t add(uint64_t sum, uint32_t x) { return (sum ^ x) * 1099511628211u; }

static uint64_t add_result(uint64_t sum, const ses_encoding *r)
{
    for (size_t i = 0; i < r->n; i++) {
        sum = add(add(sum, (uint32_t)r->id[i]), (uint32_t)r->word_id[i]);
        sum = add(add(sum, r->byte_offset[i].begin), r->byte_offset[i].end);
        sum = add(add(sum, r->char_offset[i].begin), r->char_offset[i].end);
    }
    return sum;
}

/* Seconds of encoding the class in a new workspace; negative: failed. */
static double measure(const ses_tokenizer *t, const class *c, char *text, size_t bytes, uint64_t *sum)
{
    ses_err e = { 0 };
    size_t n = strlen(c->first);
    memcpy(text, c->first, n);
    for (; n + c->n <= bytes; n += c->n) memcpy(text + n, c->unit, c->n);
    double start = seconds();
    ses_encode_ctx *k = ses_encode_ctx_new(t, &e);
    bool ok = k && ses_encode(k, &(ses_input){ .text = { text, n } }, NULL, &e);
    double took = seconds() - start;
    if (ok) *sum = add_result(*sum, ses_encode_ctx_result(k));
    ses_encode_ctx_free(k);
    return ok ? took : -1;
}

/* Returns the number of classes over the limit, or -1 if the tokenizer cannot be opened. */
static int run(const char *path, char *text, size_t bytes)
{
    ses_err e = { 0 };
    ses_tokenizer *t = ses_tokenizer_open(path, &e);
    if (!t) return fprintf(stderr, "%s\n", e.msg), -1;
    double took[CLASSES];
    uint64_t sum = 14695981039346656037u;
    int slow = 0;
    for (size_t i = 0; i < CLASSES; i++) slow += (took[i] = measure(t, &classes[i], text, bytes, &sum)) > 2;
    printf("%-40s %016llx ", path, (unsigned long long)sum);
    for (int shown = 0; shown < 3; shown++) {
        size_t most = 0;
        for (size_t i = 1; i < CLASSES; i++)
            if (took[i] > took[most]) most = i;
        printf(" %.2f s %s%s", took[most], classes[most].name, shown < 2 ? "," : "\n");
        took[most] = -2;
    }
    fflush(stdout);
    ses_tokenizer_free(t);
    return slow;
}

int main(int argc, char **argv)
{
    double megabytes = 4;
    int first = 1, bad = 0;
    if (argc > 2 && !strcmp(argv[1], "-s")) megabytes = strtod(argv[2], NULL), first = 3;
    if (first >= argc || !(megabytes > 0 && megabytes < 100))
        return fputs("usage: character-classes [-s MEGABYTES] TOKENIZER...\n", stderr), 2;
    size_t bytes = (size_t)(megabytes * 1e6);
    char *text = malloc(bytes + 64);
    for (int i = first; text && i < argc; i++) bad |= run(argv[i], text, bytes) != 0;
    free(text);
    return !text || bad;
}
