/* token-classification: labels each token and groups tokens to entity spans. Long texts are read in
 * overlapping windows. Labels are aggregated as in the transformers pipeline; BIOES labels, which it does not
 * know, by their prefixes. A CRF gives words the labels of the best sequence; scores are marginal
 * probabilities, and the other tokens of a word continue its label. */
#include "base/labels/tag_scheme.h"
#include "nn/crf_decoder.h"
#include "pipeline_impl.h"
#include "task/words/word_stack.h"

#include <stdlib.h>

typedef enum { NONE, SIMPLE, FIRST, AVERAGE, MAX } strategy;

typedef struct args {
    int strategy;
    ses_opt_list ignore;
    int64_t stride;
    const char *delimiter;
} args;

static const ses_opt opt[] = {
    SES_OPT_CHOICE(
        args, strategy, "aggregation-strategy", NULL, "none|simple|first|average|max",
        "none: every token; simple: adjacent tokens of one label; first, average, max: each word has "
        "one label, of its first token, mean scores or highest-scoring token; default: first, with "
        "--json none",
        .letter = 'a'),
    SES_OPT_LIST(args, ignore, "ignore-labels", "A,B", "labels to leave out; default: O"),
    SES_OPT_INT(args, stride, "stride", "-1", -1, 1 << 24,
                "tokens shared by adjacent windows of a long text; -1: a quarter of a window"),
    SES_OPT_TEXT(args, delimiter, "delimiter", "TEXT", "separator of words given as a list", .def = " "),
};

static const ses_result_schema each = { SES_FORM_ROWS,
                                        SES_VIEW_SPANS,
                                        { { "entity", SES_FIELD_LABEL },
                                          { "score", SES_FIELD_SCORE },
                                          { "index", SES_FIELD_INDEX },
                                          { "word", SES_FIELD_WORD },
                                          { "start", SES_FIELD_START },
                                          { "end", SES_FIELD_END } } },
                               grouped = { SES_FORM_ROWS,
                                           SES_VIEW_SPANS,
                                           { { "entity_group", SES_FIELD_LABEL },
                                             { "score", SES_FIELD_SCORE },
                                             { "word", SES_FIELD_WORD },
                                             { "start", SES_FIELD_START },
                                             { "end", SES_FIELD_END } } };

typedef struct task_state {
    ses_string *ignore;
    size_t n_ignore;
    int64_t labels;
    ses_string *label; /* [labels] */
    bool bioes;        /* E- and S- end a span */
    bool has_crf;
    ses_crf_decoder crf;
    ses_word_stack *words; /* a tagger's embeddings; NULL: the model reads tokens */
    int64_t *inside; /* CRF, [labels]: label of a token inside a word whose first token has this label */
} task_state;

typedef struct item_state {
    float **score; /* [sequences][tokens, labels] */
    int64_t stride;
    uint32_t *word_char, *word_byte; /* [words given]: where each begins in the joined text; NULL: a text */
} item_state;

/* A token, or several tokens combined. */
typedef struct piece {
    ses_string word;
    const float *scores; /* [labels], of a token */
    ses_offset char_span, byte_span;
    int64_t index, label;
    float score;
    bool continues_word;
} piece;

/* ---- opening ---- */

static int64_t find_label(const task_state *task, char prefix, const ses_tag *t)
{
    for (int64_t i = 0; i < task->labels; i++) {
        ses_tag other = ses_tag_parse(task->label[i].p, task->label[i].n);
        if (other.prefix == prefix && other.n == t->n && !memcmp(other.type, t->type, t->n)) return i;
    }
    return -1;
}

static bool open_crf(ses_pipeline *p, task_state *task, ses_err *e)
{
    const char **name = ses_arena_array(&p->mem, (size_t)task->labels, sizeof *name, e);
    task->inside = ses_arena_array(&p->mem, (size_t)task->labels, sizeof *task->inside, e);
    if (!name || !task->inside) return false;
    for (int64_t i = 0; i < task->labels; i++) {
        ses_tag t = ses_tag_parse(task->label[i].p, task->label[i].n);
        int64_t in = t.prefix == 'B' || t.prefix == 'S' ? find_label(task, 'I', &t) : -1;
        task->inside[i] = in < 0 ? i : in;
        name[i] = ses_arena_strndup(&p->mem, task->label[i].p, task->label[i].n, e);
        if (!name[i]) return false;
    }
    return ses_crf_decoder_init(&task->crf, p->model->store, p->model->c.crf.scheme, name,
                                (size_t)task->labels, &p->mem, &task->has_crf, e);
}

static bool open_task(ses_pipeline *p, ses_err *e)
{
    const args *a = p->settings.args;
    task_state *task = p->state;
    task->labels = ses_model_label_count(p->model);
    task->label = ses_arena_array(&p->mem, (size_t)task->labels, sizeof *task->label, e);
    for (int64_t i = 0; task->label && i < task->labels; i++) {
        task->label[i] = ses_pipeline_label(p, &p->mem, i, e);
        if (!task->label[i].p) return false;
        ses_tag t = ses_tag_parse(task->label[i].p, task->label[i].n);
        task->bioes |= t.prefix == 'E' || t.prefix == 'S';
    }
    if (task->label && p->model->c.crf.enabled && !open_crf(p, task, e)) return false;
    bool is_tagger;
    task->words = ses_word_stack_open(p->dir, p->model->config, p->dev, &is_tagger, e);
    if (is_tagger && !task->words) return false;
    if (is_tagger) p->stats.max_word_bytes = ses_word_stack_max_bytes(task->words);
    if (!task->label || !ses_pipeline_split_list(p, &a->ignore, true, &task->ignore, &task->n_ignore, e))
        return false;
    if (a->ignore.n) return true;
    task->ignore[0] = ses_str("O");
    task->n_ignore = 1;
    return true;
}

static void close_task(ses_pipeline *p)
{
    task_state *task = p->state;
    if (task) ses_word_stack_free(task->words);
}

/* ---- tokens ---- */

/* A tagger reads words: splits the text. */
static bool split_words(ses_request *r, ses_input *in, ses_err *e)
{
    item_state *s = r->state;
    ses_string *word;
    size_t n, at = 0;
    uint32_t chars = 0;
    if (!ses_split_words(r->item.text, &r->mem, &word, &s->word_byte, &n, e)) return false;
    s->word_char = ses_arena_array(&r->mem, n + 1, sizeof *s->word_char, e);
    for (size_t i = 0; s->word_char && i < n; i++) {
        for (; at < s->word_byte[i]; at++) chars += ((unsigned char)r->item.text.p[at] & 0xC0) != 0x80;
        s->word_char[i] = chars;
    }
    *in = (ses_input){ .words = word, .n_words = n };
    return s->word_char != NULL;
}

/* The vectors and characters of a sequence's words. */
static bool add_words(const task_state *task, ses_request *r, const ses_input *in, ses_seq *q, ses_err *e)
{
    ses_word_features f;
    ses_string *word = ses_arena_array(&r->mem, q->n + 1, sizeof *word, e);
    int32_t *row = ses_arena_array(&r->mem, 2 * q->n + 1, sizeof *row, e);
    if (!word || !row) return false;
    for (size_t i = 0; i < q->n; i++) {
        word[i] = q->word_id[i] < 0 ? (ses_string){ "", 0 } : in->words[q->word_id[i]];
        row[i] = (int32_t)i, row[q->n + i] = 0;
    }
    ses_sentences one = { word, (const size_t[]){ 0, q->n }, 1 };
    if (!ses_word_stack_embed(task->words, &one, &r->mem, &f, e)) return false;
    r->shortened_words += f.n_shortened;
    if (f.vectors) {
        q->modal_rows = row, q->positions = row + q->n;
        q->modal_vectors = f.vectors, q->n_modal = (int64_t)q->n;
    }
    q->chars = f.chars, q->char_cu = f.char_cu;
    return true;
}

/* Joins words given as a list to the item's text. */
static bool join_words(ses_request *r, ses_err *e)
{
    const args *a = r->args;
    item_state *s = r->state;
    size_t n = r->item.n_list, between = strlen(a->delimiter), len = 0, at = 0;
    uint32_t chars = 0;
    for (size_t i = 0; i < n; i++) len += r->item.list[i].n + between;
    char *text = ses_arena_alloc(&r->mem, len + 1, e);
    s->word_char = ses_arena_array(&r->mem, n + 1, sizeof *s->word_char, e);
    s->word_byte = ses_arena_array(&r->mem, n + 1, sizeof *s->word_byte, e);
    if (!text || !s->word_char || !s->word_byte) return false;
    for (size_t i = 0; i < n; i++) {
        s->word_byte[i] = (uint32_t)at;
        s->word_char[i] = chars;
        memcpy(text + at, r->item.list[i].p, r->item.list[i].n);
        at += r->item.list[i].n;
        if (i + 1 < n) memcpy(text + at, a->delimiter, between), at += between;
        for (size_t b = s->word_byte[i]; b < at; b++) chars += ((unsigned char)text[b] & 0xC0) != 0x80;
    }
    text[at] = 0;
    r->item.text = (ses_string){ text, at };
    return true;
}

/* Offsets of tokens count from the start of their word; make them count from the start of the joined text. */
static void move_offsets(ses_request *r)
{
    const item_state *s = r->state;
    for (size_t w = 0; s->word_byte && w < r->n_seqs; w++)
        for (size_t i = 0; i < r->seq[w].n; i++) {
            ses_seq *q = &r->seq[w];
            if (q->special_mask[i] || q->word_id[i] < 0) continue;
            uint32_t byte = s->word_byte[q->word_id[i]], ch = s->word_char[q->word_id[i]];
            q->byte_offset[i].begin += byte, q->byte_offset[i].end += byte;
            q->char_offset[i].begin += ch, q->char_offset[i].end += ch;
        }
}

static bool encode(ses_pipeline *p, ses_request *r, ses_err *e)
{
    const args *a = r->args;
    const task_state *task = p->state;
    item_state *s = r->state;
    ses_input in = { .text = r->item.text };
    s->stride = a->stride >= 0 ? a->stride : p->settings.max_seq_len / 4;
    if (r->item.list) {
        if (!join_words(r, e)) return false;
        in = (ses_input){ .words = r->item.list, .n_words = r->item.n_list };
    } else if (task->words && !split_words(r, &in, e))
        return false;
    if (task->words && !in.n_words) return true; /* no words, no sequence */
    if (!ses_request_encode_windows(p, r, &in, SES_TRUNCATE_ONLY_FIRST, s->stride, e)) return false;
    move_offsets(r);
    for (size_t i = 0; task->words && i < r->n_seqs; i++)
        if (!add_words(task, r, &in, &r->seq[i], e)) return false;
    s->score = ses_arena_array(&r->mem, r->n_seqs, sizeof *s->score, e);
    return s->score != NULL;
}

static bool collect(ses_pipeline *p, ses_request *r, ses_seq *q, ses_err *e)
{
    item_state *s = r->state;
    const task_state *task = p->state;
    ses_output_rows rows = ses_request_output_rows(p, q, p->head->output, e);
    float *y = rows.x ? ses_arena_array(&r->mem, (size_t)(rows.n * rows.cols), sizeof *y, e) : NULL;
    if (!y) return false;
    if (task->has_crf) memcpy(y, rows.x, (size_t)(rows.n * rows.cols) * sizeof *y);
    for (int64_t i = 0; i < rows.n && !task->has_crf; i++)
        ses_softmax_row(y + i * rows.cols, rows.x + i * rows.cols, rows.cols);
    s->score[q - r->seq] = y;
    return true;
}

static int64_t char_count(ses_string s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++) n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

/* Does the token continue a word? A subword prefix makes it longer than its text; without prefixes, a token
 * continues a word unless a space precedes or starts it. */
static bool continues_word(const ses_pipeline *p, ses_string text, ses_string token, ses_offset at)
{
    ses_string here = { text.p + at.begin, at.end - at.begin };
    if (p->tokenizer_config.has_subword_prefix) return char_count(token) != char_count(here);
    return at.begin > 0 && text.p[at.begin - 1] != ' ' && !(at.begin < text.n && text.p[at.begin] == ' ');
}

/* Decodes the first tokens of the words among x [n], whose index is a row of `scores`. */
static bool decode(const task_state *task, ses_request *r, piece *x, size_t n, const float *scores,
                   ses_err *e)
{
    int32_t *row = ses_arena_array(&r->mem, n + 1, sizeof *row, e),
            *best = ses_arena_array(&r->mem, n + 1, sizeof *best, e), words = 0;
    float *marginal = ses_arena_array(&r->mem, n * (size_t)task->labels + 1, sizeof *marginal, e);
    if (!row || !best || !marginal) return false;
    for (size_t i = 0; i < n; i++)
        if (!i || !x[i].continues_word) row[words++] = (int32_t)x[i].index;
    if (!ses_crf_decode(&task->crf, scores, row, words, best, marginal, e)) return false;
    words = -1;
    for (size_t i = 0; i < n; i++) {
        bool first = !i || !x[i].continues_word;
        words += first;
        x[i].scores = marginal + words * task->labels;
        x[i].label = first ? best[words] : task->inside[best[words]];
        x[i].score = x[i].scores[best[words]];
    }
    return true;
}

/* The tokens of a window without special ones; *n of them. */
static piece *window_tokens(ses_pipeline *p, ses_request *r, size_t window, size_t *n, ses_err *e)
{
    const task_state *task = p->state;
    const item_state *s = r->state;
    const ses_seq *q = &r->seq[window];
    ses_string text = r->item.text;
    piece *out = ses_arena_array(&r->mem, q->n, sizeof *out, e);
    *n = 0;
    for (size_t i = 0; out && i < q->n; i++) {
        if (q->special_mask[i]) continue;
        piece *x = &out[(*n)++];
        *x = (piece){ .scores = s->score[window] + (int64_t)i * task->labels,
                      .char_span = q->char_offset[i],
                      .byte_span = q->byte_offset[i],
                      .index = (int64_t)i };
        x->word.p = ses_tokenizer_id_to_token(p->tokenizer, q->id[i], &x->word.n);
        x->continues_word = continues_word(p, text, x->word, x->byte_span);
        if (q->id[i] == p->tokenizer_config.role[SES_ROLE_UNK]) {
            x->word = (ses_string){ text.p + x->byte_span.begin, x->byte_span.end - x->byte_span.begin };
            x->continues_word = false;
        }
        if ((task->has_crf || task->words) && s->word_byte) /* words given as a list */
            x->continues_word = i && !q->special_mask[i - 1] && q->word_id[i] == q->word_id[i - 1];
        x->label = ses_argmax(x->scores, task->labels);
        x->score = x->scores[x->label];
    }
    if (out && task->has_crf && !decode(task, r, out, *n, s->score[window], e)) return NULL;
    return out;
}

/* ---- aggregation ---- */

/* The words of pieces as one text, by the tokenizer's decoder. */
static bool join(ses_pipeline *p, ses_request *r, const piece *x, size_t n, ses_string *out, ses_err *e)
{
    ses_string *word = ses_arena_array(&r->mem, n, sizeof *word, e);
    const char *text;
    size_t len;
    for (size_t i = 0; word && i < n; i++) word[i] = x[i].word;
    if (!word || !ses_decode_strings(p->tokens, word, n, &text, &len, e)) return false;
    *out = ses_request_copy_string(r, text, len, e);
    return out->p != NULL;
}

/* Combines n tokens to a word: mean scores, or the label of its first or highest-scoring token. */
static bool combine_word(ses_pipeline *p, ses_request *r, const piece *x, size_t n, strategy how, piece *out,
                         ses_err *e)
{
    const task_state *task = p->state;
    size_t from = 0;
    *out = (piece){ .char_span = { x[0].char_span.begin, x[n - 1].char_span.end },
                    .byte_span = { x[0].byte_span.begin, x[n - 1].byte_span.end },
                    .index = x[0].index };
    if (how == AVERAGE) {
        for (int64_t l = 0; l < task->labels; l++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++) sum += (double)x[i].scores[l];
            float mean = (float)(sum / (double)n);
            if (!l || mean > out->score) out->label = l, out->score = mean;
        }
    } else {
        for (size_t i = 1; how == MAX && i < n; i++)
            if (x[i].score > x[from].score) from = i;
        out->label = x[from].label;
        out->score = x[from].score;
    }
    return join(p, r, x, n, &out->word, e);
}

/* Combines the tokens in x to words with one label each. */
static bool combine_words(ses_pipeline *p, ses_request *r, piece *x, size_t *n, strategy how, ses_err *e)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n;) {
        size_t end = i + 1;
        while (end < *n && x[end].continues_word) end++;
        piece word;
        if (!combine_word(p, r, x + i, end - i, how, &word, e)) return false;
        x[kept++] = word;
        i = end;
    }
    *n = kept;
    return true;
}

/* The entity type of a label: PER of "B-PER". *begins: the label starts a new entity. */
static ses_string entity_type(const task_state *task, ses_string label, bool *begins)
{
    ses_tag t = ses_tag_parse(label.p, label.n);
    if (task->bioes && t.prefix && t.prefix != 'O') {
        *begins = t.prefix == 'B' || t.prefix == 'S';
        return (ses_string){ t.type, t.n };
    }
    bool has_prefix = label.n >= 2 && (label.p[0] == 'B' || label.p[0] == 'I') && label.p[1] == '-';
    *begins = has_prefix && label.p[0] == 'B';
    return has_prefix ? (ses_string){ label.p + 2, label.n - 2 } : label;
}

static bool same(ses_string a, ses_string b) { return a.n == b.n && !memcmp(a.p, b.p, a.n); }

static bool ignored(const task_state *task, ses_string label)
{
    for (size_t i = 0; i < task->n_ignore; i++)
        if (same(task->ignore[i], label)) return true;
    return false;
}

static bool add_row(ses_request *r, const piece *x, ses_string label, double score, ses_err *e)
{
    ses_result_row *row = ses_request_add_row(r, e);
    if (!row) return false;
    *row = (ses_result_row){ .label = label,
                             .word = ses_request_copy_string(r, x->word.p, x->word.n, e),
                             .score = score,
                             .index = x->index,
                             .char_span = x->char_span,
                             .byte_span = x->byte_span };
    return row->word.p != NULL;
}

/* The name of a group: the label after its first "-", as in transformers. */
static ses_string group_name(ses_string label)
{
    const char *dash = memchr(label.p, '-', label.n);
    return dash ? (ses_string){ dash + 1, label.n - (size_t)(dash + 1 - label.p) } : label;
}

static bool add_group(ses_pipeline *p, ses_request *r, const piece *x, size_t n, ses_err *e)
{
    const task_state *task = p->state;
    ses_string name = group_name(task->label[x[0].label]);
    if (ignored(task, name)) return true;
    piece all = { .char_span = { x[0].char_span.begin, x[n - 1].char_span.end },
                  .byte_span = { x[0].byte_span.begin, x[n - 1].byte_span.end },
                  .index = x[0].index };
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i].score;
    return join(p, r, x, n, &all.word, e) && add_row(r, &all, name, (double)(float)(sum / (double)n), e);
}

/* Groups adjacent tokens or words of one entity type. */
static bool group_tokens(ses_pipeline *p, ses_request *r, const piece *x, size_t n, ses_err *e)
{
    const task_state *task = p->state;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        for (; end < n; end++) {
            bool begins, ignore;
            ses_string tag = entity_type(task, task->label[x[end].label], &begins);
            if (begins || !same(tag, entity_type(task, task->label[x[end - 1].label], &ignore))) break;
        }
        if (!add_group(p, r, x + i, end - i, e)) return false;
        i = end;
    }
    return true;
}

/* ---- windows ---- */

static int by_start(const void *a, const void *b)
{
    const ses_result_row *x = a, *y = b;
    if (x->char_span.begin != y->char_span.begin) return x->char_span.begin < y->char_span.begin ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group); /* the earlier one first */
}

/* Merges groups of all windows: the longer of two overlapping groups stays, or the one with the higher
 * score. */
static void merge_windows(ses_request *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n_rows; i++) r->row[i].group = i;
    qsort(r->row, r->n_rows, sizeof *r->row, by_start);
    for (size_t i = 0; i < r->n_rows; i++) {
        ses_result_row *x = &r->row[i], *last = kept ? &r->row[kept - 1] : NULL;
        x->group = 0;
        if (!last || x->char_span.begin >= last->char_span.end) { /* sorted: no overlap with earlier ones */
            r->row[kept++] = *x;
            continue;
        }
        uint32_t a = x->char_span.end - x->char_span.begin, b = last->char_span.end - last->char_span.begin;
        if (a > b || (a == b && x->score > last->score)) *last = *x;
    }
    r->n_rows = kept;
}

/* Space for the scores of all tokens of the text. */
static float *new_vectors(const ses_pipeline *p, ses_request *r, ses_err *e)
{
    const task_state *task = p->state;
    size_t tokens = 0;
    for (size_t w = 0; w < r->n_seqs; w++) tokens += r->seq[w].n;
    return ses_arena_array(&r->mem, tokens * (size_t)task->labels + 1, sizeof(float), e);
}

/* Every token once, from the window with more context on both sides. Its index counts from the start of
 * the text. The vectors of the result are the scores of the tokens, of ignored ones, too. */
static bool add_tokens(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const task_state *task = p->state;
    const item_state *s = r->state;
    size_t specials = 0, labels = (size_t)task->labels;
    float *scores = new_vectors(p, r, e);
    if (!scores) return false;
    out->vectors = scores;
    out->vector_size = task->labels;
    for (size_t i = 0; i < r->seq[0].n; i++) specials += r->seq[0].special_mask[i];
    int64_t step = (int64_t)(r->seq[0].n - specials) - s->stride, next = 0;
    for (size_t w = 0; w < r->n_seqs; w++) {
        size_t n;
        piece *x = window_tokens(p, r, w, &n, e);
        if (!x) return false;
        int64_t first = (int64_t)w * step; /* index of the window's first token in the text */
        /* half of the tokens shared with the next window have more context there */
        int64_t end = w + 1 < r->n_seqs ? first + (int64_t)n - s->stride / 2 : first + (int64_t)n;
        for (size_t i = 0; i < n; i++) {
            int64_t at = first + (int64_t)i;
            if (at < next || at >= end) continue;
            memcpy(scores + (size_t)out->n_vectors++ * labels, x[i].scores, labels * sizeof *scores);
            if (ignored(task, task->label[x[i].label])) continue;
            x[i].index += first;
            if (!add_row(r, &x[i], task->label[x[i].label], (double)x[i].score, e)) return false;
        }
        next = end;
    }
    return true;
}

static bool finish(ses_pipeline *p, ses_request *r, ses_result *out, ses_err *e)
{
    const args *a = r->args;
    strategy how = a->strategy < 0 ? NONE : (strategy)a->strategy;
    out->schema = how == NONE ? &each : &grouped;
    if (!r->n_seqs) return true;
    if (how == NONE) return add_tokens(p, r, out, e);
    for (size_t w = 0; w < r->n_seqs; w++) {
        size_t n;
        piece *x = window_tokens(p, r, w, &n, e);
        if (!x || (how != SIMPLE && !combine_words(p, r, x, &n, how, e)) || !group_tokens(p, r, x, n, e))
            return false;
    }
    if (r->n_seqs > 1) merge_windows(r);
    return true;
}

static const ses_head *const heads[] = { &ses_head_token_classification, NULL };
/* Whole words read better than tokens; JSON has the default of transformers. */
static const ses_setting shown_settings[] = { { "aggregation-strategy", "first" }, { 0 } };
static const ses_usage_example examples[] = {
    { "sesame ner -m DIR \"My name is Sarah and I live in London.\"", "entities, marked in the text" },
    { "sesame token-classification -m DIR -a first --json -f book.txt",
      "one list of entities for each line" },
    { 0 },
};

const ses_task ses_task_token_classification = {
    .description = "Finds entities and other spans of a text (names, parts of speech) with a model that "
                   "labels every token. Texts of any length are read in overlapping windows. A JSON line is "
                   "{\"text\": ...}, or {\"words\": [...]}; start and end count code points.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .state_size = sizeof(task_state),
    .shown_settings = shown_settings,
    .item_settings = "aggregation-strategy|stride|delimiter",
    .request_size = sizeof(item_state),
    .head = heads,
    .item_schema = { .text = "text", .list = "words|tokens", .list_replaces_text = true },
    .uses_tokenizer_max_length = true,
    .open = open_task,
    .close = close_task,
    .encode = encode,
    .collect = collect,
    .finish = finish,
};
