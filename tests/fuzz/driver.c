/* Runs a fuzz target without libFuzzer: every seed, then mutations of seeds that depend on their number only,
 * so that a failure is reproducible: fuzz_X CORPUS [COUNT [FIRST]] */
#include "base/alloc.h"
#include "base/file.h"
#include "base/rng.h"
#include "fuzz.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SEEDS = 256, MAX_INPUT = 1 << 16, COUNT = 100000, MUTATIONS = 6 };

typedef struct seed {
    char *data;
    size_t n;
} seed;

static struct {
    const char *dir;
    char *name[MAX_SEEDS];
    seed seed[MAX_SEEDS];
    size_t n;
} corpus;

static volatile uint64_t current; /* number of the execution, for the message on a crash */

static void tell(void)
{
    char text[64];
    int n = snprintf(text, sizeof text, "in execution %llu\n", (unsigned long long)current);
    if (write(2, text, (size_t)n) < 0) _exit(2);
}

static void died(int sig)
{
    tell();
    signal(sig, SIG_DFL);
    raise(sig);
}

/* Defined in sanitizer builds only. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

/* ---- the n-th random number of execution `current` ---- */

typedef struct dice {
    uint64_t execution, next;
} dice;

static uint32_t roll(dice *d, uint32_t below)
{
    ses_rng_key key = { d->execution, 0, 0 };
    return below ? ses_rand32(key, d->next++) % below : 0;
}

/* ---- mutations of a buffer with room for MAX_INPUT bytes ---- */

typedef struct input {
    uint8_t data[MAX_INPUT];
    size_t n;
} input;

static void replace(input *x, size_t at, size_t old, const void *with, size_t n)
{
    if (at > x->n) at = x->n;
    if (old > x->n - at) old = x->n - at;
    if (n > MAX_INPUT - (x->n - old)) return;
    memmove(x->data + at + n, x->data + at + old, x->n - at - old);
    if (n) memcpy(x->data + at, with, n);
    x->n = x->n - old + n;
}

static const char *const tokens[] = {
    "0",
    "1",
    "-1",
    "-0",
    "2",
    "8",
    "127",
    "128",
    "255",
    "256",
    "32767",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e999",
    "1e-999",
    "0.1",
    "1.0",
    "1e308",
    "5e-324",
    "null",
    "true",
    "false",
    "\"\"",
    "[]",
    "{}",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\ud83d\\ude00",
    "\xc3\xa9",
    "\xed\xa0\x80",
    "\xf4\x90\x80\x80",
    "\xff",
    "..",
    "/",
    " ",
    "\n",
};

/* Replaces a number. */
static void change_number(input *x, dice *d, const char *with)
{
    size_t from = roll(d, (uint32_t)x->n + 1);
    while (from < x->n && (x->data[from] < '0' || x->data[from] > '9')) from++;
    size_t n = 0;
    while (from + n < x->n && x->data[from + n] >= '0' && x->data[from + n] <= '9') n++;
    replace(x, from, n, with, strlen(with));
}

static void change_word(input *x, dice *d)
{
    static const uint64_t words[] = { 0,         1,         7,          8,         255,       65535,
                                      100000000, 100000001, UINT32_MAX, INT64_MAX, UINT64_MAX };
    uint64_t w = words[roll(d, SES_LEN(words))];
    size_t at = roll(d, 2) ? 0 : roll(d, (uint32_t)x->n + 1), n = (size_t)1 << roll(d, 4);
    replace(x, at, n, &w, n);
}

static void mutate(input *x, dice *d)
{
    uint32_t n = (uint32_t)x->n;
    size_t at = roll(d, n + 1), len = roll(d, 1 + (roll(d, 4) ? 8 : n));
    const char *token = tokens[roll(d, SES_LEN(tokens))];
    const seed *other = &corpus.seed[roll(d, (uint32_t)corpus.n)];
    size_t from = roll(d, (uint32_t)other->n + 1), take = roll(d, (uint32_t)(other->n - from) + 1);
    uint8_t byte = (uint8_t)roll(d, 256);
    switch (roll(d, 12)) {
    case 0: /* flip a bit */
        if (at < n) x->data[at] ^= (uint8_t)(1u << roll(d, 8));
        break;
    case 1: /* replace a byte */
        if (at < n) x->data[at] = byte;
        break;
    case 2: replace(x, at, 0, &byte, 1); break;
    case 3: replace(x, at, len, NULL, 0); break; /* delete a range */
    case 4: x->n = at; break;                    /* truncate */
    case 5: replace(x, at, 0, token, strlen(token)); break;
    case 6: replace(x, at, len, token, strlen(token)); break;
    case 7:
    case 8: change_number(x, d, token); break;
    case 9: change_word(x, d); break;
    case 10:
        replace(x, at, roll(d, 2) ? 0 : len, other->data + from, take);
        break; /* insert a range of another seed */
    default: { /* repeat a range */
        uint8_t piece[64];
        size_t k = n - at < sizeof piece ? n - at : sizeof piece;
        memcpy(piece, x->data + at, k);
        replace(x, roll(d, n + 1), 0, piece, k);
    }
    }
}

/* Copies the input to a block of its exact size, so that a read past the end is detected. */
static void execute(const uint8_t *data, size_t n)
{
    uint8_t *exact = malloc(n ? n : 1);
    if (!exact) abort();
    memcpy(exact, data, n);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
}

/* ---- seeds ---- */

static bool note_name(void *ctx, const char *name)
{
    (void)ctx;
    if (corpus.n < MAX_SEEDS) corpus.name[corpus.n++] = ses_strdup(name, NULL);
    return true;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool load_corpus(const char *dir, ses_err *e)
{
    if (!ses_dir_each(dir, note_name, NULL, e)) return false;
    if (!corpus.n) return ses_fail(e, SES_EIO, "%s: no seeds", dir);
    qsort(corpus.name, corpus.n, sizeof *corpus.name, by_name);
    for (size_t i = 0; i < corpus.n; i++) {
        char *path = ses_path_join(dir, corpus.name[i], e);
        corpus.seed[i].data = path ? ses_file_read(path, MAX_INPUT, &corpus.seed[i].n, e) : NULL;
        ses_free(path);
        if (!corpus.seed[i].data) return false;
    }
    return true;
}

static input work; /* too large for a small stack */

int main(int argc, char **argv)
{
    ses_err e = { 0 };
    if (argc < 2) return fprintf(stderr, "usage: %s CORPUS [COUNT [FIRST]]\n", argv[0]), 2;
    if (!load_corpus(argv[1], &e)) return fprintf(stderr, "%s\n", e.msg), 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : COUNT,
             first = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL };
    for (size_t i = 0; i < SES_LEN(signals); i++) signal(signals[i], died);
    if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(tell);
    long slow = 0;
    for (uint64_t k = first; k < first + count; k++) {
        dice d = { k, 0 };
        const seed *s = &corpus.seed[k < corpus.n ? k : roll(&d, (uint32_t)corpus.n)];
        memcpy(work.data, s->data, s->n);
        work.n = s->n;
        current = k;
        if (k >= corpus.n)
            for (uint32_t i = 0, n = 1 + roll(&d, MUTATIONS); i < n; i++) mutate(&work, &d);
        clock_t start = clock();
        execute(work.data, work.n);
        if (clock() - start > CLOCKS_PER_SEC)
            slow++, printf("execution %llu takes long\n", (unsigned long long)k);
    }
    for (size_t i = 0; i < corpus.n; i++) ses_free(corpus.seed[i].data), ses_free(corpus.name[i]);
    printf("%lld passed, %ld failed\n", (long long)count - slow, slow);
    return slow != 0;
}
