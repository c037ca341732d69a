/* Metaspace (SentencePiece): replaces spaces by a visible character, adds one at the start, and splits
 * before each. */
#include "text/stage/shared/metaspace.h"

#include <string.h>

static bool marked(const ses_metaspace *m, const char *p, size_t n)
{
    return n >= m->n_mark && !memcmp(p, m->mark, m->n_mark);
}

/* Append one piece to out->text with spaces replaced. */
static bool put_text(const ses_metaspace *m, const ses_text *in, size_t begin, size_t end, ses_text *out,
                     ses_err *e)
{
    const char *p = in->byte;
    bool starts = p[begin] == ' ' || marked(m, p + begin, end - begin);
    bool wanted =
        m->prepend == SES_PREPEND_ALWAYS || (m->prepend == SES_PREPEND_FIRST && !in->from[begin].begin);
    if (wanted && !starts && !ses_text_put(out, m->mark, m->n_mark, in->from[begin], e)) return false;
    while (begin < end) {
        const char *space = memchr(p + begin, ' ', end - begin);
        size_t stop = space ? (size_t)(space - p) : end;
        if (!ses_text_copy(out, in, begin, stop, e)) return false;
        if (space && !ses_text_put(out, m->mark, m->n_mark, in->from[stop], e)) return false;
        begin = stop + (space != NULL);
    }
    return true;
}

/* Split out->text[start, n) into pieces that start at the replacement character. */
static bool split_piece(const ses_metaspace *m, ses_pieces *out, size_t start, ses_err *e)
{
    const ses_text *t = &out->text;
    size_t at = start + 1; /* pieces are never empty */
    while (m->split && at < t->n) {
        const char *next = memchr(t->byte + at, m->mark[0], t->n - at);
        if (!next) break;
        at = (size_t)(next - t->byte);
        if (marked(m, next, t->n - at)) {
            if (!ses_pieces_put(out, (uint32_t)start, (uint32_t)at, -1, e)) return false;
            start = at;
        }
        at++;
    }
    return ses_pieces_put(out, (uint32_t)start, (uint32_t)t->n, -1, e);
}

static bool split(const void *self, const ses_pieces *in, ses_pieces *out, ses_err *e)
{
    const ses_metaspace *m = self;
    bool ok = true;
    for (size_t i = 0; ok && i < in->n; i++) {
        const ses_piece *p = &in->piece[i];
        size_t start = out->text.n;
        if (p->id >= 0)
            ok = ses_text_copy(&out->text, &in->text, p->begin, p->end, e) &&
                 ses_pieces_put(out, (uint32_t)start, (uint32_t)out->text.n, p->id, e);
        else
            ok = put_text(m, &in->text, p->begin, p->end, &out->text, e) && split_piece(m, out, start, e);
    }
    return ok;
}

const ses_stage ses_stage_pre_metaspace = {
    .type = "Metaspace",
    .kind = SES_PRE_TOKENIZER,
    .open = ses_metaspace_open,
    .save = ses_metaspace_save,
    .split = split,
};
