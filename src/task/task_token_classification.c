/* token-classification: names and other stretches of a text, by a label for each token; long texts in windows
 * that overlap. Labels are put together as the reference does it. */
#include "task.h"

#include <stdlib.h>

typedef enum { NONE, SIMPLE, FIRST, AVERAGE, MAX } strategy;

typedef struct args {
    int strategy;
    ses_opt_list ignore;
    int64_t stride;
    const char *delimiter;
} args;

static const ses_opt opt[] = {
    { .name = "aggregation-strategy",
      .letter = 'a',
      .type = SES_OPT_CHOICE,
      .offset = offsetof(args, strategy),
      .def = "none",
      .choices = "none|simple|first|average|max",
      .help = "none: every token; simple: neighbors of one label together; the others: words have one "
              "label, that of their first token, of their mean scores, of their surest token" },
    { .name = "ignore-labels",
      .type = SES_OPT_LIST,
      .offset = offsetof(args, ignore),
      .value = "A,B",
      .help = "labels to leave out; without it O" },
    { .name = "stride",
      .type = SES_OPT_INT,
      .offset = offsetof(args, stride),
      .def = "-1",
      .min = -1,
      .max = 1 << 24,
      .help = "tokens that windows of a long text share; -1: a quarter of a window" },
    { .name = "delimiter",
      .type = SES_OPT_TEXT,
      .offset = offsetof(args, delimiter),
      .value = "TEXT",
      .def = " ",
      .help = "what stands between words that were given one by one" },
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

typedef struct self {
    ses_string *ignore;
    size_t n_ignore;
    int64_t labels;
    ses_string *label; /* [labels] */
    ses_offset *word;  /* unused without words */
} self;

typedef struct state {
    float **score; /* [sequences][tokens, labels] */
    int64_t stride;
    ses_offset *word_point, *word_byte; /* of words given: where each begins in the text */
} state;

typedef struct piece { /* a token, or tokens put together */
    ses_string word;
    const float *scores;
    ses_offset point, byte;
    int64_t index, label;
    float score;
    bool sub;
} piece;

/* ---- opening ---- */

static bool begin(ses_pipeline *p, ses_err *e)
{
    const args *a = p->args;
    self *my = p->self;
    my->labels = ses_model_label_count(p->model);
    my->label = ses_arena_array(&p->mem, (size_t)my->labels, sizeof *my->label, e);
    for (int64_t i = 0; my->label && i < my->labels; i++) {
        ses_request here = { .mem = p->mem };
        my->label[i] = ses_request_label(p, &here, i, e);
        p->mem = here.mem;
        if (!my->label[i].p) return false;
    }
    if (!my->label || !ses_pipeline_split_list(p, &a->ignore, true, &my->ignore, &my->n_ignore, e))
        return false;
    if (a->ignore.n) return true;
    my->ignore[0] = ses_str("O");
    my->n_ignore = 1;
    return true;
}

/* ---- tokens ---- */

/* Words given one by one: the text is made of them, and offsets count in it. */
static bool join_words(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const args *a = p->args;
    state *s = j->state;
    size_t n = j->item.n_list, between = strlen(a->delimiter), len = 0, at = 0;
    uint32_t points = 0;
    for (size_t i = 0; i < n; i++) len += j->item.list[i].n + between;
    char *text = ses_arena_alloc(&j->mem, len + 1, e);
    s->word_point = ses_arena_array(&j->mem, n + 1, sizeof *s->word_point, e);
    s->word_byte = ses_arena_array(&j->mem, n + 1, sizeof *s->word_byte, e);
    if (!text || !s->word_point || !s->word_byte) return false;
    for (size_t i = 0; i < n; i++) {
        s->word_byte[i].begin = (uint32_t)at;
        s->word_point[i].begin = points;
        memcpy(text + at, j->item.list[i].p, j->item.list[i].n);
        at += j->item.list[i].n;
        if (i + 1 < n) memcpy(text + at, a->delimiter, between), at += between;
        for (size_t b = s->word_byte[i].begin; b < at; b++) points += ((unsigned char)text[b] & 0xC0) != 0x80;
    }
    text[at] = 0;
    j->item.text = (ses_string){ text, at };
    return true;
}

static void move_offsets(ses_request *j)
{
    const state *s = j->state;
    for (size_t q = 0; s->word_byte && q < j->n_seqs; q++)
        for (size_t i = 0; i < j->seq[q].n; i++) {
            ses_seq *x = &j->seq[q];
            if (x->special[i] || x->word[i] < 0) continue;
            uint32_t byte = s->word_byte[x->word[i]].begin, point = s->word_point[x->word[i]].begin;
            x->byte[i].begin += byte, x->byte[i].end += byte;
            x->point[i].begin += point, x->point[i].end += point;
        }
}

static bool encode(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const args *a = p->args;
    state *s = j->state;
    ses_input in = { .text = j->item.text };
    s->stride = a->stride >= 0 ? a->stride : p->limit / 4;
    if (j->item.list) {
        if (!join_words(p, j, e)) return false;
        in = (ses_input){ .words = j->item.list, .n_words = j->item.n_list };
    }
    if (!ses_request_encode_windows(p, j, &in, SES_TRUNCATE_ONLY_FIRST, s->stride, e)) return false;
    move_offsets(j);
    s->score = ses_arena_array(&j->mem, j->n_seqs, sizeof *s->score, e);
    return s->score != NULL;
}

static bool take(ses_pipeline *p, ses_request *j, ses_seq *q, ses_err *e)
{
    state *s = j->state;
    ses_output_rows r = ses_request_output_rows(p, q, p->use->output, e);
    float *y = r.x ? ses_arena_array(&j->mem, (size_t)(r.n * r.cols), sizeof *y, e) : NULL;
    if (!y) return false;
    for (int64_t i = 0; i < r.n; i++) ses_softmax_row(y + i * r.cols, r.x + i * r.cols, r.cols);
    s->score[q - j->seq] = y;
    return true;
}

static int64_t points_of(ses_string s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s.n; i++) n += ((unsigned char)s.p[i] & 0xC0) != 0x80;
    return n;
}

/* Does the token go on with a word? By its mark where the tokenizer has such; else where no blank is near. */
static bool inside_word(const ses_pipeline *p, ses_string text, ses_string token, ses_offset at)
{
    ses_string here = { text.p + at.begin, at.end - at.begin };
    if (p->facts.has_subword_prefix) return points_of(token) != points_of(here);
    return at.begin > 0 && text.p[at.begin - 1] != ' ' && !(at.begin < text.n && text.p[at.begin] == ' ');
}

/* The tokens of a window that are no special ones; *n of them. */
static piece *gather(ses_pipeline *p, ses_request *j, size_t window, size_t *n, ses_err *e)
{
    const self *my = p->self;
    const state *s = j->state;
    const ses_seq *q = &j->seq[window];
    ses_string text = j->item.text;
    piece *out = ses_arena_array(&j->mem, q->n, sizeof *out, e);
    *n = 0;
    for (size_t i = 0; out && i < q->n; i++) {
        if (q->special[i]) continue;
        piece *x = &out[(*n)++];
        *x = (piece){ .scores = s->score[window] + (int64_t)i * my->labels,
                      .point = q->point[i],
                      .byte = q->byte[i],
                      .index = (int64_t)i };
        x->word.p = ses_tokenizer_id_to_token(p->tokenizer, q->id[i], &x->word.n);
        x->sub = inside_word(p, text, x->word, x->byte);
        if (q->id[i] == p->facts.role[SES_ROLE_UNK]) {
            x->word = (ses_string){ text.p + x->byte.begin, x->byte.end - x->byte.begin };
            x->sub = false;
        }
        x->label = ses_argmax(x->scores, my->labels);
        x->score = x->scores[x->label];
    }
    return out;
}

/* ---- putting together ---- */

/* The words of pieces as one text, as the tokenizer's decoder has it. */
static bool join(ses_pipeline *p, ses_request *j, const piece *x, size_t n, ses_string *out, ses_err *e)
{
    ses_string *word = ses_arena_array(&j->mem, n, sizeof *word, e);
    const char *text;
    size_t len;
    for (size_t i = 0; word && i < n; i++) word[i] = x[i].word;
    if (!word || !ses_decode_strings(p->tokens, word, n, &text, &len, e)) return false;
    *out = ses_request_copy_string(j, text, len, e);
    return out->p != NULL;
}

static bool one_word(ses_pipeline *p, ses_request *j, const piece *x, size_t n, strategy how, piece *out,
                     ses_err *e)
{
    const self *my = p->self;
    size_t from = 0;
    *out = (piece){ .point = { x[0].point.begin, x[n - 1].point.end },
                    .byte = { x[0].byte.begin, x[n - 1].byte.end },
                    .index = x[0].index };
    if (how == AVERAGE) {
        for (int64_t l = 0; l < my->labels; l++) {
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
    return join(p, j, x, n, &out->word, e);
}

/* Tokens to words, in place: of one label each. */
static bool make_words(ses_pipeline *p, ses_request *j, piece *x, size_t *n, strategy how, ses_err *e)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n;) {
        size_t end = i + 1;
        while (end < *n && x[end].sub) end++;
        piece word;
        if (!one_word(p, j, x + i, end - i, how, &word, e)) return false;
        x[kept++] = word;
        i = end;
    }
    *n = kept;
    return true;
}

/* "B-PER" is PER and begins; what has no such mark goes on. */
static ses_string tag_of(ses_string label, bool *begins)
{
    bool marked = label.n >= 2 && (label.p[0] == 'B' || label.p[0] == 'I') && label.p[1] == '-';
    *begins = marked && label.p[0] == 'B';
    return marked ? (ses_string){ label.p + 2, label.n - 2 } : label;
}

static bool same(ses_string a, ses_string b) { return a.n == b.n && !memcmp(a.p, b.p, a.n); }

static bool ignored(const self *my, ses_string label)
{
    for (size_t i = 0; i < my->n_ignore; i++)
        if (same(my->ignore[i], label)) return true;
    return false;
}

static bool put_row(ses_request *j, const piece *x, ses_string label, double score, ses_err *e)
{
    ses_result_row *row = ses_request_add_row(j, e);
    if (!row) return false;
    *row = (ses_result_row){ .label = label,
                             .word = ses_request_copy_string(j, x->word.p, x->word.n, e),
                             .score = score,
                             .index = x->index,
                             .char_span = x->point,
                             .byte_span = x->byte };
    return row->word.p != NULL;
}

/* What follows the first "-" of a label, if any: as the reference names a group. */
static ses_string group_name(ses_string label)
{
    const char *dash = memchr(label.p, '-', label.n);
    return dash ? (ses_string){ dash + 1, label.n - (size_t)(dash + 1 - label.p) } : label;
}

static bool put_group(ses_pipeline *p, ses_request *j, const piece *x, size_t n, ses_err *e)
{
    const self *my = p->self;
    ses_string name = group_name(my->label[x[0].label]);
    if (ignored(my, name)) return true;
    piece all = { .point = { x[0].point.begin, x[n - 1].point.end },
                  .byte = { x[0].byte.begin, x[n - 1].byte.end },
                  .index = x[0].index };
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i].score;
    return join(p, j, x, n, &all.word, e) && put_row(j, &all, name, (double)(float)(sum / (double)n), e);
}

static bool make_groups(ses_pipeline *p, ses_request *j, const piece *x, size_t n, ses_err *e)
{
    const self *my = p->self;
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        for (; end < n; end++) {
            bool begins, ignore;
            ses_string tag = tag_of(my->label[x[end].label], &begins);
            if (begins || !same(tag, tag_of(my->label[x[end - 1].label], &ignore))) break;
        }
        if (!put_group(p, j, x + i, end - i, e)) return false;
        i = end;
    }
    return true;
}

/* ---- windows ---- */

static int by_start(const void *a, const void *b)
{
    const ses_result_row *x = a, *y = b;
    if (x->char_span.begin != y->char_span.begin) return x->char_span.begin < y->char_span.begin ? -1 : 1;
    return (x->group > y->group) - (x->group < y->group); /* found earlier */
}

/* Of groups that overlap, found in two windows, the longer stays, or the surer. */
static void merge(ses_request *j)
{
    size_t kept = 0;
    for (size_t i = 0; i < j->n_rows; i++) j->row[i].group = i;
    qsort(j->row, j->n_rows, sizeof *j->row, by_start);
    for (size_t i = 0; i < j->n_rows; i++) {
        ses_result_row *x = &j->row[i], *last = kept ? &j->row[kept - 1] : NULL;
        x->group = 0;
        if (!last ||
            x->char_span.begin >= last->char_span.end) { /* those of a start before are not here: sorted */
            j->row[kept++] = *x;
            continue;
        }
        uint32_t a = x->char_span.end - x->char_span.begin, b = last->char_span.end - last->char_span.begin;
        if (a > b || (a == b && x->score > last->score)) *last = *x;
    }
    j->n_rows = kept;
}

/* Every token once, from the window where most is seen around it. Its index is the one it has in the text. */
static bool each_token(ses_pipeline *p, ses_request *j, ses_err *e)
{
    const self *my = p->self;
    const state *s = j->state;
    size_t specials = 0;
    for (size_t i = 0; i < j->seq[0].n; i++) specials += j->seq[0].special[i];
    int64_t step = (int64_t)(j->seq[0].n - specials) - s->stride, next = 0;
    for (size_t w = 0; w < j->n_seqs; w++) {
        size_t n;
        piece *x = gather(p, j, w, &n, e);
        if (!x) return false;
        int64_t first = (int64_t)w * step; /* of the text's tokens, the window's first */
        /* half of what is shared with the next window is better seen there */
        int64_t end = w + 1 < j->n_seqs ? first + (int64_t)n - s->stride / 2 : first + (int64_t)n;
        for (size_t i = 0; i < n; i++) {
            int64_t at = first + (int64_t)i;
            if (at < next || at >= end || ignored(my, my->label[x[i].label])) continue;
            x[i].index += first;
            if (!put_row(j, &x[i], my->label[x[i].label], (double)x[i].score, e)) return false;
        }
        next = end;
    }
    return true;
}

static bool finish(ses_pipeline *p, ses_request *j, ses_result *r, ses_err *e)
{
    const args *a = p->args;
    strategy how = (strategy)a->strategy;
    r->schema = how == NONE ? &each : &grouped;
    if (how == NONE) return each_token(p, j, e);
    for (size_t w = 0; w < j->n_seqs; w++) {
        size_t n;
        piece *x = gather(p, j, w, &n, e);
        if (!x || (how != SIMPLE && !make_words(p, j, x, &n, how, e)) || !make_groups(p, j, x, n, e))
            return false;
    }
    if (j->n_seqs > 1) merge(j);
    return true;
}

static const ses_head *const heads[] = { &ses_head_tag, NULL };
static const ses_usage_example examples[] = {
    { "sesame ner -m DIR -a simple \"My name is Sarah and I live in London.\"", "names, marked in the text" },
    { "sesame token-classification -m DIR -a first --json -f book.txt", "one list of names for each line" },
    { 0 },
};

const ses_task ses_task_token_classification = {
    .description =
        "Finds stretches of a text (names of people and places, parts of speech) by a model that labels "
        "every token. Texts of any length are read in windows that overlap. A JSON line is {\"text\": ...}, "
        "or {\"words\": [...]}; start and end count code points.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .self_size = sizeof(self),
    .job_size = sizeof(state),
    .head = heads,
    .item_schema = { .text = "text", .list = "words|tokens", .list_replaces_text = true },
    .tokenizer_limit = true,
    .open = begin,
    .encode = encode,
    .take = take,
    .finish = finish,
};
