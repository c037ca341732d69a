/* Statistics of a corpus, as text and JSON. */
#include "corpus_show.h"

#include "base/alloc.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "data/token_counts.h"

#include <inttypes.h>
#include <math.h>

enum { BINS = 40, MAX_BAR = 40 };

/* Lengths in bins of powers of two: bin b holds 2^b to 2^(b+1) - 1. */
typedef struct lengths {
    int64_t count[BINS], tokens[BINS], max;
} lengths;

static void add_length(lengths *l, int64_t n)
{
    int b = 0;
    while (b + 1 < BINS && n >> (b + 1)) b++;
    l->count[b]++;
    l->tokens[b] += n;
    if (n > l->max) l->max = n;
}

static double entropy_of(const ses_corpus *c, ses_err *e)
{
    int64_t vocab = ses_corpus_info_of(c)->vocab_size,
            *count = ses_alloc_array((size_t)vocab, sizeof *count, e);
    if (!count) return NAN;
    ses_unigram_count(c, SES_COUNT_ALL, count);
    double h = ses_unigram_entropy(count, vocab);
    ses_free(count);
    return h;
}

static void measure(const ses_corpus *c, lengths *documents, lengths *sentences)
{
    int64_t n = ses_corpus_info_of(c)->documents;
    for (int64_t i = 0; i < n; i++) {
        ses_document d = ses_corpus_document(c, i);
        add_length(documents, d.n_tokens);
        for (int64_t s = 0; s < d.n_sentences; s++)
            add_length(sentences,
                       ses_corpus_sentence_start(c, &d, s + 1) - ses_corpus_sentence_start(c, &d, s));
    }
}

static bool show_lengths(const ses_term *t, const char *what, const lengths *l, ses_err *e)
{
    char head[64], bar[SES_BAR_SIZE], n[SES_NUMBER_TEXT], m[SES_NUMBER_TEXT];
    int64_t top = 1;
    int first = -1, last = 0;
    for (int b = 0; b < BINS; b++) {
        if (l->count[b] && first < 0) first = b;
        if (l->count[b]) last = b;
        if (l->count[b] > top) top = l->count[b];
    }
    snprintf(head, sizeof head, "Tokens|>%s|>Fraction of tokens|", what);
    ses_text_table *table = ses_text_table_new(head, e);
    if (!table) return false;
    double all = 0;
    for (int b = 0; b < BINS; b++) all += (double)l->tokens[b];
    for (int b = first < 0 ? 0 : first; b <= last; b++) {
        snprintf(n, sizeof n, "%lld", 1LL << b);
        if (b)
            ses_text_table_cell(table, "%s to %lld", n, (2LL << b) - 1);
        else
            ses_text_table_cell(table, "1");
        ses_text_table_cell(table, "%s", ses_grouped_text(m, l->count[b]));
        ses_text_table_cell(table, "%.1f %%", all > 0 ? 100 * (double)l->tokens[b] / all : 0.0);
        int width = t->width - 50 < MAX_BAR ? t->width - 50 : MAX_BAR;
        ses_text_table_cell(table, "%s",
                            ses_bar_text(t, bar, (double)l->count[b] / (double)top, width < 8 ? 8 : width));
    }
    puts("");
    bool ok = ses_text_table_print(table, stdout, t, 0, e);
    ses_text_table_free(table);
    return ok;
}

static double percent(int64_t a, int64_t b) { return b ? 100 * (double)a / (double)b : 0; }

static void show_facts(const char *path, const ses_corpus_info *f, double entropy, const ses_corpus_view *v)
{
    const ses_term *t = v->term;
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    ses_show_line(t, "Corpus", "%s%s%s%s", path, *f->label ? " (" : "", f->label, *f->label ? ")" : "");
    ses_show_line(t, "Tokens", "%s of %s of text: %.2f bytes per token", ses_grouped_text(a, f->tokens),
                  ses_bytes_text(b, (uint64_t)f->bytes), (double)f->bytes / fmax(1, (double)f->tokens));
    ses_show_line(t, "Documents", "%s, %.1f tokens on average", ses_grouped_text(a, f->documents),
                  (double)f->tokens / fmax(1, (double)f->documents));
    ses_show_line(t, "Sentences", "%s, %.1f tokens on average", ses_grouped_text(a, f->sentences),
                  (double)f->tokens / fmax(1, (double)f->sentences));
    ses_show_line(t, "Held out", "%s documents, %s tokens (%.3f %%)", ses_grouped_text(a, f->held_out),
                  ses_grouped_text(b, f->held_out_tokens), percent(f->held_out_tokens, f->tokens));
    ses_show_line(t, "Unknown", "%s tokens (%.4f %%)", ses_grouped_text(a, f->unknown_tokens),
                  percent(f->unknown_tokens, f->tokens));
    ses_show_line(t, "Entropy", "%.4f nats per token (unigram)", entropy);
    ses_show_line(t, "Dropped", "%s duplicate, %s empty documents", ses_grouped_text(a, f->duplicates),
                  ses_grouped_text(b, f->empty));
    if (f->split_documents)
        ses_show_line(t, "Split", "%s times: a document of more than 16 MiB without a blank line",
                      ses_grouped_text(a, f->split_documents));
    if (f->invalid_lines)
        ses_show_line(t, "Not UTF-8", "%s lines; invalid bytes count as U+FFFD",
                      ses_grouped_text(a, f->invalid_lines));
    ses_show_line(t, "Tokenizer", "%s tokens, fingerprint %016" PRIx64, ses_grouped_text(a, f->vocab_size),
                  f->tokenizer_fingerprint);
    if (v->seconds > 0)
        ses_show_line(t, "Time", "%.1f s: %s/s", v->seconds,
                      ses_bytes_text(a, (uint64_t)((double)f->bytes / v->seconds)));
}

static void put_lengths(ses_json_writer *w, const char *key, const lengths *l)
{
    ses_json_member_array(w, key);
    for (int b = 0; b < BINS; b++) {
        if (!l->count[b]) continue;
        ses_json_begin_object(w);
        ses_json_member_int(w, "from", (int64_t)1 << b);
        ses_json_member_int(w, "to", ((int64_t)2 << b) - 1);
        ses_json_member_int(w, "count", l->count[b]);
        ses_json_member_int(w, "tokens", l->tokens[b]);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static bool print_json(const char *path, const ses_corpus_info *f, const lengths *documents,
                       const lengths *sentences, double entropy, ses_err *e)
{
    char hex[24];
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "file", path);
    ses_json_member_string(w, "label", f->label);
    ses_json_member_int(w, "tokens", f->tokens);
    ses_json_member_int(w, "documents", f->documents);
    ses_json_member_int(w, "sentences", f->sentences);
    ses_json_member_int(w, "bytes", f->bytes);
    ses_json_member_int(w, "unknown", f->unknown_tokens);
    ses_json_member_real(w, "unigram_entropy", entropy);
    ses_json_member_int(w, "duplicates", f->duplicates);
    ses_json_member_int(w, "empty", f->empty);
    ses_json_member_int(w, "cut", f->split_documents);
    ses_json_member_int(w, "bad_lines", f->invalid_lines);
    ses_json_member_int(w, "held_out", f->held_out);
    ses_json_member_int(w, "held_out_tokens", f->held_out_tokens);
    ses_json_member_int(w, "vocab_size", f->vocab_size);
    snprintf(hex, sizeof hex, "%016" PRIx64, f->tokenizer_fingerprint);
    ses_json_member_string(w, "tokenizer", hex);
    snprintf(hex, sizeof hex, "%016" PRIx64, f->content_hash);
    ses_json_member_string(w, "content", hex);
    put_lengths(w, "document_lengths", documents);
    put_lengths(w, "sentence_lengths", sentences);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

bool ses_corpus_show(const char *path, const ses_corpus_view *v, ses_err *e)
{
    ses_corpus *c = ses_corpus_open(path, e);
    lengths documents = { 0 }, sentences = { 0 };
    bool ok = c && (ses_corpus_verify(c, e) || ses_wrap(e, "%s", path));
    if (ok) measure(c, &documents, &sentences);
    double entropy = ok ? entropy_of(c, e) : 0;
    ok = ok && !isnan(entropy);
    if (ok && v->json) ok = print_json(path, ses_corpus_info_of(c), &documents, &sentences, entropy, e);
    if (ok && !v->json) {
        show_facts(path, ses_corpus_info_of(c), entropy, v);
        ok = show_lengths(v->term, "Documents", &documents, e) &&
             show_lengths(v->term, "Sentences", &sentences, e);
    }
    ses_corpus_free(c);
    return ok;
}
