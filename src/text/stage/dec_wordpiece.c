/* WordPiece decoder: joins the pieces of a word, separates words by spaces, optionally cleans up English
 * spacing. */
#include "text/stage.h"

#include <string.h>

typedef struct wordpiece {
    ses_string prefix;
    bool cleanup;
} wordpiece;

static void *open(const ses_json *settings, ses_arena *mem, ses_err *e)
{
    wordpiece *w = ses_arena_array(mem, 1, sizeof *w, e);
    if (!w || !ses_setting_string(settings, "prefix", "##", mem, &w->prefix, e) ||
        !ses_setting_bool(settings, "cleanup", true, &w->cleanup, e))
        return NULL;
    return w;
}

static void save(const void *self, ses_json_writer *out)
{
    const wordpiece *w = self;
    ses_json_member_stringn(out, "prefix", w->prefix.p, w->prefix.n);
    ses_json_member_bool(out, "cleanup", w->cleanup);
}

/* Replace every occurrence of `from` by `to`, which must not be longer. */
static size_t replace(char *s, size_t n, const char *from, const char *to)
{
    size_t f = strlen(from), t = strlen(to), out = 0, i = 0;
    if (n < f) return n;
    while (i < n) {
        if (n - i >= f && !memcmp(s + i, from, f)) {
            memcpy(s + out, to, t);
            out += t;
            i += f;
        } else {
            s[out++] = s[i++];
        }
    }
    return out;
}

enum { DO_NOT = 7 };

static const char *const clean[][2] = {
    { " .", "." },   { " ?", "?" },     { " !", "!" },     { " ,", "," },
    { " ' ", "'" },  { " n't", "n't" }, { " 'm", "'m" },   { " do not", " don't" },
    { " 's", "'s" }, { " 've", "'ve" }, { " 're", "'re" },
};

size_t ses_clean_up_tokenization(char *text, size_t n)
{
    for (size_t i = 0; i < SES_LEN(clean); i++)
        if (i != DO_NOT)
            n = replace(text, n, clean[i][0], clean[i][1]); /* this rule belongs to the decoder only */
    return n;
}

static bool decode(const void *self, ses_strings *s, ses_err *e)
{
    const wordpiece *w = self;
    for (size_t i = 0; i < s->n; i++) {
        ses_string *x = &s->string[i];
        bool inside = i && x->n >= w->prefix.n && !memcmp(x->p, w->prefix.p, w->prefix.n);
        if (inside) {
            x->p += w->prefix.n;
            x->n -= w->prefix.n;
        }
        bool space = i && !inside;
        if (!space && !(w->cleanup && memchr(x->p, ' ', x->n))) continue;
        char *p = ses_arena_alloc(&s->mem, x->n + 1, e);
        if (!p) return false;
        p[0] = ' ';
        memcpy(p + space, x->p, x->n);
        size_t n = x->n + space;
        for (size_t j = 0; w->cleanup && j < SES_LEN(clean); j++) n = replace(p, n, clean[j][0], clean[j][1]);
        *x = (ses_string){ p, n };
    }
    return true;
}

const ses_stage ses_stage_dec_wordpiece = {
    .type = "WordPiece",
    .kind = SES_DECODER,
    .open = open,
    .save = save,
    .decode = decode,
};
