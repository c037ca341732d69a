/* Precompiled: SentencePiece's character map as HF Tokenizers applies it. A grapheme cluster of at most 5
 * bytes is replaced as a whole by the shortest key that it starts with; the rest of the cluster is
 * dropped. Otherwise the characters of the cluster are mapped one by one. */
#include "base/base64.h"
#include "base/unicode/utf8.h"
#include "text/spm/charsmap.h"
#include "text/stage/shared/transform.h"

#include <string.h>

typedef struct precompiled {
    ses_charsmap map;
    ses_string base64; /* as in the file */
    bool mapped[128];  /* ASCII characters that are keys of the map */
} precompiled;

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    precompiled *p = ses_arena_array(mem, 1, sizeof *p, e);
    if (!p || !ses_setting_string(settings, "precompiled_charsmap", NULL, mem, &p->base64, e)) return NULL;
    size_t n;
    char *bytes = ses_arena_alloc(mem, ses_base64_max_decoded_size(p->base64.n) + 1, e);
    if (!bytes) return NULL;
    if (!ses_base64_decode(p->base64.p, p->base64.n, bytes, &n, e) ||
        !ses_charsmap_open(&p->map, bytes, n, e)) {
        ses_wrap(e, "key \"precompiled_charsmap\"");
        return NULL;
    }
    for (int c = 0; c < 128; c++) {
        ses_string to;
        p->mapped[c] = ses_charsmap_shortest(&p->map, &(char){ (char)c }, 1, &to, NULL) != SES_CHARSMAP_NONE;
    }
    return p;
}

static void save(const void *self, ses_json_writer *w)
{
    const precompiled *p = self;
    ses_json_member_stringn(w, "precompiled_charsmap", p->base64.p, p->base64.n);
}

/* The last character is held back, because a removal after it changes its source range. A removal before
 * the first character is not counted, as in HF Tokenizers: all later characters then have the range of
 * their predecessor. */
typedef struct work {
    const precompiled *p;
    ses_transform t;
    ses_change held;
    bool holds;
} work;

static bool flush(work *w, ses_err *e)
{
    bool ok = !w->holds || ses_transform_put(&w->t, w->held.cp, w->held.change, e);
    w->holds = false;
    return ok;
}

static bool push(work *w, uint32_t cp, int32_t change, ses_err *e)
{
    bool ok = flush(w, e);
    w->held = (ses_change){ cp, change };
    w->holds = true;
    return ok;
}

static bool replace(work *w, size_t consumed, const ses_string *to, ses_err *e)
{
    size_t given = 0;
    for (size_t i = 0; i < to->n; given++) {
        uint32_t cp;
        i += ses_utf8_next(to->p + i, &cp);
        if (!push(w, cp, given >= consumed, e)) return false;
    }
    if (given < consumed && w->holds) w->held.change -= (int32_t)(consumed - given);
    return true;
}

static bool cluster(work *w, const char *p, size_t n, ses_err *e)
{
    ses_string to;
    if (n < 6) {
        ses_charsmap_result r = ses_charsmap_shortest(&w->p->map, p, n, &to, e);
        if (r == SES_CHARSMAP_BROKEN) return false;
        if (r == SES_CHARSMAP_FOUND) return replace(w, ses_utf8_count(p, n), &to, e);
    }
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t cp;
        k = ses_utf8_next(p + i, &cp);
        ses_charsmap_result r = ses_charsmap_shortest(&w->p->map, p + i, k, &to, e);
        if (r == SES_CHARSMAP_BROKEN) return false;
        if (!(r == SES_CHARSMAP_FOUND ? replace(w, 1, &to, e) : push(w, cp, 0, e))) return false;
    }
    return true;
}

/* Length of the ASCII prefix that consists of single-character clusters and is not changed. */
static size_t plain(const precompiled *m, const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && (unsigned char)p[i] < 0x80 && !m->mapped[(unsigned char)p[i]] && p[i] != '\r') i++;
    /* combining marks may follow the last one */
    return i && i < n && (unsigned char)p[i] >= 0x80 ? i - 1 : i;
}

static bool normalize(const void *self, const ses_text *in, size_t begin, size_t end, ses_text *out,
                      ses_err *e)
{
    work w = { .p = self, .t = { in, begin, end, begin, out } };
    for (size_t i = begin; i < end;) {
        const char *p = in->byte + i;
        size_t n = plain(w.p, p, end - i);
        if (n > 1 && !flush(&w, e)) return false;
        if (n > 1 && w.t.at == i) {
            if (!ses_transform_copy(&w.t, n - 1, e)) return false;
            i += n - 1;
        } else if (n) {
            if (!push(&w, (unsigned char)*p, 0, e)) return false;
            i++;
        } else {
            n = ses_grapheme_len(p, end - i);
            if (!cluster(&w, p, n, e)) return false;
            i += n;
        }
    }
    return flush(&w, e);
}

const ses_stage ses_stage_norm_precompiled = {
    .type = "Precompiled", .kind = SES_NORMALIZER, .open = open, .save = save, .normalize = normalize
};
