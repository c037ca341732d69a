/* Prints results as text: bars for probabilities, marked spans of the text, vector values. */
#include "cli/ui/text_table.h"
#include "pipeline_command.h"
#include "task/task.h"

#include <inttypes.h>
#include <math.h>

enum { MAX_WIDTH = 100, BAR = 30, MAX_VALUES = 6 };

/* Escapes control characters. */
static void put_bytes(const char *p, size_t n)
{
    char piece[256];
    while (n) {
        size_t k = n < sizeof piece - 1 ? n : sizeof piece - 1;
        while (k > 1 && k < n && ((unsigned char)p[k] & 0xC0) == 0x80) k--; /* do not split a character */
        memcpy(piece, p, k);
        piece[k] = 0;
        for (size_t i = 0; i < k; i++)
            if (!piece[i] || piece[i] == '\n' || piece[i] == '\t') piece[i] = ' ';
        ses_put_escaped(stdout, piece);
        p += k, n -= k;
    }
}

static void put_styled(const ses_term *t, ses_style s, ses_string text)
{
    fputs(ses_style_on(t, s), stdout);
    put_bytes(text.p, text.n);
    fputs(ses_style_on(t, SES_PLAIN), stdout);
}

static bool has_field(const ses_result_schema *s, ses_result_field_kind kind)
{
    for (const ses_result_field *f = s->field; f->key; f++)
        if (f->kind == kind) return true;
    return false;
}

/* The label, word or text of a row. */
static ses_string row_name(const ses_result_row *row)
{
    if (row->label.p) return row->label;
    return row->word.p ? row->word : row->text.p ? row->text : ses_str("");
}

static bool show_bars(const ses_result *r, const ses_term *t, ses_err *e)
{
    if (!r->n && r->schema->none) printf("  %s\n", r->schema->none);
    bool token = has_field(r->schema, SES_FIELD_TOKEN), text = token && has_field(r->schema, SES_FIELD_TEXT);
    for (size_t g = 0, i = 0; g < r->groups; g++) {
        if (r->groups > 1) printf("  mask %zu\n", g + 1);
        ses_text_table *table = ses_text_table_new(text ? "|>||" : "|>|", e);
        if (!table) return false;
        for (; i < r->n && r->row[i].group == g; i++) {
            const ses_result_row *row = &r->row[i];
            char bar[SES_BAR_SIZE], name[100], sentence[200];
            ses_escape_controls(name, sizeof name, row_name(row).p);
            ses_text_table_cell(table, "%s", name);
            ses_text_table_style(table, SES_BOLD);
            ses_text_table_cell(table, "%.4f", row->score);
            ses_text_table_cell(table, "%s", ses_bar_text(t, bar, row->score, BAR));
            ses_text_table_style(table, SES_GREEN);
            if (!text) continue;
            ses_escape_controls(sentence, sizeof sentence, row->text.p);
            ses_text_table_cell(table, "%s", sentence);
            ses_text_table_style(table, SES_DIM);
        }
        bool ok = ses_text_table_print(table, stdout, t, 2, e);
        ses_text_table_free(table);
        if (!ok) return false;
    }
    return true;
}

/* Prints the text with its labeled spans in color, or in brackets without color. */
static bool show_spans(const ses_result *r, const ses_term *t)
{
    static const ses_style cycle[] = { SES_GREEN, SES_BLUE, SES_YELLOW, SES_RED };
    ses_string text = r->item->text;
    size_t at = 0;
    fputs("  ", stdout);
    for (size_t i = 0; i < r->n; i++) {
        const ses_result_row *row = &r->row[i];
        if (row->byte_span.begin < at || row->byte_span.end > text.n) continue;
        uint32_t hash = 0;
        const char *tag = row->label.p;
        if (tag[0] && tag[1] == '-') tag += 2; /* B-PER and I-PER share a color */
        for (; *tag; tag++) hash = hash * 31 + (unsigned char)*tag;
        ses_style s = cycle[hash % SES_LEN(cycle)];
        put_bytes(text.p + at, row->byte_span.begin - at);
        if (!t->color) putchar('[');
        put_styled(t, s,
                   (ses_string){ text.p + row->byte_span.begin, row->byte_span.end - row->byte_span.begin });
        putchar(' ');
        put_styled(t, SES_DIM, row->label);
        if (!t->color) putchar(']');
        at = row->byte_span.end;
    }
    put_bytes(text.p + at, text.n - at);
    putchar('\n');
    return true;
}

/* Prints each answer within its context. */
static bool show_answer(const ses_result *r, const ses_term *t)
{
    enum { CONTEXT = 60 };
    for (size_t i = 0; i < r->n; i++) {
        const ses_result_row *row = &r->row[i];
        printf("  %.4f  ", row->score);
        if (!row->text.n) {
            printf("%s(no answer)%s\n", ses_style_on(t, SES_DIM), ses_style_on(t, SES_PLAIN));
            continue;
        }
        ses_string c = r->item->pair;
        size_t begin = row->byte_span.begin, end = row->byte_span.end;
        size_t from = begin > CONTEXT ? begin - CONTEXT : 0, to = end + CONTEXT < c.n ? end + CONTEXT : c.n;
        while (from && ((unsigned char)c.p[from] & 0xC0) == 0x80) from--;
        while (to < c.n && ((unsigned char)c.p[to] & 0xC0) == 0x80) to++;
        if (from) fputs("...", stdout);
        put_bytes(c.p + from, begin - from);
        if (!t->color) putchar('[');
        put_styled(t, SES_GREEN, (ses_string){ c.p + begin, end - begin });
        if (!t->color) putchar(']');
        put_bytes(c.p + end, to - end);
        puts(to < c.n ? "..." : "");
    }
    return true;
}

static bool show_vectors(const ses_result *r, const ses_term *t)
{
    printf("  %" PRId64 " x %" PRId64 "\n", r->n_vectors, r->vector_size);
    for (int64_t i = 0; i < r->n_vectors; i++) {
        fputs("  ", stdout);
        if ((size_t)i < r->n) {
            char name[24];
            ses_escape_controls(name, sizeof name, row_name(&r->row[i]).p);
            printf("%s%-14s%s", ses_style_on(t, SES_BOLD), name, ses_style_on(t, SES_PLAIN));
        }
        for (int64_t k = 0; k < r->vector_size && k < MAX_VALUES; k++)
            printf(" %8.4f", (double)r->vectors[i * r->vector_size + k]);
        puts(r->vector_size > MAX_VALUES ? " ..." : "");
    }
    return true;
}

/* Prints a line per vector, tab-separated; for words and tokens after the text number and the word. */
/* A word in double quotes, which are doubled inside. */
static void put_quoted_word(const char *s)
{
    char quoted[600];
    size_t n = 0;
    for (; *s && n + 3 < sizeof quoted; s++) {
        if (*s == '"') quoted[n++] = '"';
        quoted[n++] = *s;
    }
    quoted[n] = 0;
    putchar('"');
    ses_put_escaped(stdout, quoted);
    putchar('"');
}

static bool show_numbers(const ses_result *r)
{
    char between = r->schema->view == SES_VIEW_COMMAS ? ',' : '\t';
    for (int64_t i = 0; i < r->n_vectors; i++) {
        if (r->n) {
            printf("%lld%c", (long long)r->item->number, between);
            if (between == ',')
                put_quoted_word(r->row[i].word.p);
            else
                ses_put_escaped(stdout, r->row[i].word.p);
            putchar(between);
        }
        for (int64_t k = 0; k < r->vector_size; k++) {
            if (k) putchar(between);
            printf("%.9g", (double)r->vectors[i * r->vector_size + k]);
        }
        putchar('\n');
    }
    return true;
}

/* One line for each token: log-probability, token, and the most likely tokens with theirs. */
static void show_logprobs(const ses_token_logprob *x, size_t n)
{
    for (; n > 0; x++, n--) {
        if (isnan(x->logprob))
            printf("%11s  ", "-"); /* the first token of a prompt */
        else
            printf("%11.4f  ", (double)x->logprob);
        put_bytes(x->token.p ? x->token.p : "", x->token.n);
        for (size_t i = 0; i < x->n_top; i++) {
            printf("\t%.4f ", (double)x->top[i].logprob);
            put_bytes(x->top[i].token.p ? x->top[i].token.p : "", x->top[i].token.n);
        }
        putchar('\n');
    }
}

static bool show_text(const ses_result *r)
{
    bool score = has_field(r->schema, SES_FIELD_SCORE);
    for (size_t i = 0; i < r->n; i++) {
        if (score) printf("%11.4f  ", r->row[i].score);
        put_bytes(r->row[i].text.p, r->row[i].text.n);
        putchar('\n');
        show_logprobs(r->row[i].prompt_logprobs, r->row[i].n_prompt_logprobs);
        show_logprobs(r->row[i].logprobs, r->row[i].n_logprobs);
    }
    return true;
}

/* Views that do not show the input text. */
static bool needs_title(ses_result_view v)
{
    return v == SES_VIEW_BARS || v == SES_VIEW_ANSWER || v == SES_VIEW_VECTORS;
}

bool ses_pipeline_show(const ses_result *r, const ses_term *t, bool has_title, ses_err *e)
{
    if (has_title && needs_title(r->schema->view)) {
        put_styled(t, SES_BOLD, r->item->text);
        putchar('\n');
    }
    switch (r->schema->view) {
    case SES_VIEW_BARS: return show_bars(r, t, e);
    case SES_VIEW_SPANS: return show_spans(r, t);
    case SES_VIEW_ANSWER: return show_answer(r, t);
    case SES_VIEW_VECTORS: return show_vectors(r, t);
    case SES_VIEW_NUMBERS:
    case SES_VIEW_COMMAS: return show_numbers(r);
    case SES_VIEW_TEXT: return show_text(r);
    case SES_VIEW_ARRAY:
    case SES_VIEW_RAW:
    case SES_VIEW_JSON: break; /* written by the command */
    }
    return true;
}
