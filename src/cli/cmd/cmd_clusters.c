/* clusters: Brown clusters of words. */
#include "cli/command.h"
#include "cli/compute_args.h"
#include "cli/standard_output.h"
#include "cli/train/train_monitor.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "io/text_decoder.h"
#include "vectors/cluster/brown.h"
#include "vectors/word_corpus.h"

#include <inttypes.h>
#include <string.h>

typedef struct args {
    int64_t clusters, min_count, max_vocab, threads, top;
    const char *output;
    int encoding;
    bool overwrite, tree, json;
} args;

static const ses_opt opt[] = {
    SES_OPT_INT(args, clusters, "clusters", "100", 1, SES_BROWN_MAX_CLUSTERS, "number of clusters",
                .letter = 'c', .value = "C"),
    SES_OPT_INT(args, min_count, "min-count", "1", 1, 1e15, "drop words that occur less often", .value = "N"),
    SES_OPT_INT(args, max_vocab, "max-vocab", "0", 0, 1e9, "keep the N most frequent words; 0: all",
                .value = "N"),
    SES_OPT_TEXT(args, output, "output", "FILE",
                 "file to write: PATH, word and count of each word, separated by tabs", .letter = 'o',
                 .is_path = true, .alias = "to"),
    SES_OPT_FLAG(args, overwrite, "overwrite", "replace FILE"),
    SES_OPT_INT(args, top, "top", "8", 1, 1000, "words shown per cluster", .value = "N"),
    SES_OPT_FLAG(args, tree, "tree", "draw the tree"),
    SES_OPT_ENCODING(args, encoding),
    SES_OPT_THREADS(args, threads),
    SES_OPT_JSON(args, json),
};

/* ---- lists of the clusters ---- */

typedef struct word_row {
    size_t path; /* offset in paths */
    int64_t rank;
} word_row;

typedef struct listing {
    const ses_brown_words *w;
    ses_buf paths, file;
    word_row *row; /* [words], clusters adjacent */
    size_t n;
} listing;

static bool add_row(void *ctx, const char *path, int64_t rank, ses_err *e)
{
    listing *l = ctx;
    const ses_vocab_word *word = &l->w->vocab.word[l->w->id[rank]];
    const char *last = l->n ? l->paths.data + l->row[l->n - 1].path : NULL;
    bool same = last && !strcmp(last, path);
    l->row[l->n] = (word_row){ same ? l->row[l->n - 1].path : l->paths.len, rank };
    l->n++;
    if (!same) ses_buf_append(&l->paths, path, strlen(path) + 1);
    ses_buf_puts(&l->file, path);
    ses_buf_put(&l->file, '\t');
    ses_buf_append(&l->file, word->text, word->len);
    ses_buf_appendf(&l->file, "\t%" PRId64 "\n", word->count);
    return ses_buf_ok(&l->paths, e) && ses_buf_ok(&l->file, e);
}

static bool list(listing *l, const ses_brown *b, ses_err *e)
{
    l->row = ses_alloc_array((size_t)b->n + 1, sizeof *l->row, e);
    return l->row && ses_brown_each(b, add_row, l, e);
}

static void free_listing(listing *l)
{
    ses_buf_free(&l->paths), ses_buf_free(&l->file);
    ses_free(l->row);
}

/* The cluster that begins at row i: the end of its rows, its occurrences and its most frequent words. */
typedef struct cluster {
    const char *path;
    size_t end;
    int64_t count;
    int64_t *top; /* ranks by rising number: the order of frequency */
    size_t n_top;
} cluster;

static cluster cluster_at(const listing *l, size_t i, int64_t *top, size_t most)
{
    cluster c = { .path = l->paths.data + l->row[i].path, .end = i, .top = top };
    for (; c.end < l->n && l->row[c.end].path == l->row[i].path; c.end++) {
        int64_t rank = l->row[c.end].rank;
        c.count += l->w->vocab.word[l->w->id[rank]].count;
        if (c.n_top == most && rank > top[most - 1]) continue;
        size_t at = c.n_top < most ? c.n_top++ : most - 1;
        for (; at && top[at - 1] > rank; at--) top[at] = top[at - 1];
        top[at] = rank;
    }
    return c;
}

/* ---- output ---- */

static bool print_json(const listing *l, const ses_brown *b, int64_t *top, size_t most, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    if (!w) return false;
    ses_json_begin_object(w);
    ses_json_member_int(w, "tokens", l->w->tokens);
    ses_json_member_int(w, "words", b->n);
    ses_json_member_real(w, "mutual_information", b->information);
    ses_json_member_array(w, "clusters");
    for (size_t i = 0; i < l->n;) {
        cluster c = cluster_at(l, i, top, most);
        ses_json_begin_object(w);
        ses_json_member_string(w, "path", c.path);
        ses_json_member_uint(w, "words", c.end - i);
        ses_json_member_int(w, "count", c.count);
        ses_json_member_array(w, "top");
        for (size_t k = 0; k < c.n_top; k++)
            ses_json_put_string(w, l->w->vocab.word[l->w->id[c.top[k]]].text);
        ses_json_end_array(w);
        ses_json_end_object(w);
        i = c.end;
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static void put_words(ses_buf *out, const listing *l, const cluster *c)
{
    out->len = 0;
    for (size_t k = 0; k < c->n_top; k++) {
        const ses_vocab_word *word = &l->w->vocab.word[l->w->id[c->top[k]]];
        ses_buf_appendf(out, "%s%s", k ? " " : "", ses_quoted_of(word->text, word->len).s);
    }
}

static bool print_table(const listing *l, const ses_term *term, int64_t *top, size_t most, ses_err *e)
{
    ses_buf words = { 0 };
    ses_text_table *t = ses_text_table_new("path|>words|>count|most frequent", e);
    if (!t) return false;
    for (size_t i = 0; i < l->n;) {
        cluster c = cluster_at(l, i, top, most);
        put_words(&words, l, &c);
        ses_text_table_cell(t, "%s", c.path);
        ses_text_table_cell(t, "%zu", c.end - i);
        ses_text_table_cell(t, "%" PRId64, c.count);
        ses_text_table_cell(t, "%s", words.data ? words.data : "");
        i = c.end;
    }
    ses_text_table_fit(t, term->width, (const int[]){ 0, 2, 1, 0 });
    bool ok = ses_buf_ok(&words, e) && ses_text_table_print(t, stdout, term, 0, e);
    ses_text_table_free(t);
    ses_buf_free(&words);
    return ok;
}

/* A line per cluster; the branches from the first bit in which a path differs from the one before. */
static bool print_tree(const listing *l, const ses_term *term, int64_t *top, size_t most, ses_err *e)
{
    ses_buf words = { 0 }, out = { 0 };
    const char *before = NULL;
    for (size_t i = 0; i < l->n;) {
        cluster c = cluster_at(l, i, top, most);
        size_t same = 0, len = strlen(c.path);
        while (before && before[same] && before[same] == c.path[same]) same++;
        for (size_t k = 0; k < len; k++) { /* 0 comes first: below it a line leads to its sibling */
            bool zero = c.path[k] == '0', fresh = !before || k >= same;
            const char *mark = term->unicode ? fresh && zero ? before && k == same ? "├" : "┬"
                                               : fresh       ? "└"
                                               : zero        ? "│"
                                                             : " "
                               : fresh       ? zero ? "+" : "`"
                               : zero        ? "|"
                                             : " ";
            ses_buf_puts(&out, mark);
        }
        put_words(&words, l, &c);
        ses_buf_appendf(&out, "%s %s\n", term->unicode ? "─" : "-", words.data ? words.data : "");
        before = c.path;
        i = c.end;
    }
    bool ok = ses_buf_ok(&words, e) && ses_buf_ok(&out, e) && ses_stdout_write(out.data, out.len, e);
    ses_buf_free(&words), ses_buf_free(&out);
    return ok;
}

static bool show(const ses_call *c, const listing *l, const ses_brown *b, ses_err *e)
{
    const args *a = c->args;
    int64_t *top = ses_alloc_array((size_t)a->top, sizeof *top, e);
    bool ok = top != NULL;
    if (ok && a->json)
        ok = print_json(l, b, top, (size_t)a->top, e);
    else if (ok)
        ok = a->tree ? print_tree(l, &c->out, top, (size_t)a->top, e)
                     : print_table(l, &c->out, top, (size_t)a->top, e);
    ses_free(top);
    return ok;
}

static bool show_progress(void *ctx, int64_t done, int64_t total)
{
    ses_progress *line = ctx;
    line->total = total;
    ses_progress_show(line, done);
    return !ses_train_monitor_should_stop();
}

static bool fit(ses_call *c, ses_brown_words *w, ses_brown *b, ses_err *e)
{
    const args *a = c->args;
    ses_progress line = ses_progress_start(stderr, &c->err, c->quiet, "clustering", 0);
    ses_brown_options o = { .min_count = a->min_count,
                            .max_words = a->max_vocab,
                            .encoding = (ses_text_encoding)a->encoding,
                            .progress = show_progress,
                            .ctx = &line };
    ses_thread_pool *pool = ses_thread_pool_new(a->threads ? (int)a->threads : ses_cpu_count(), e);
    bool ok = pool && ses_brown_words_read(w, c->operands[0], &o, e) &&
              ses_brown_fit(b, w, a->clusters, &o, pool, e);
    ses_progress_end(&line);
    ses_thread_pool_free(pool);
    ses_buf text = { 0 };
    if (ok && !c->quiet && ses_words_skipped_text(&w->skipped, &text))
        fprintf(stderr, "sesame: warning: %s\n", text.data);
    ses_buf_free(&text);
    return ok;
}

static bool run(ses_call *c, ses_err *e)
{
    const args *a = c->args;
    ses_brown_words w = { 0 };
    ses_brown b = { 0 };
    listing l = { .w = &w };
    if (a->json && a->tree) return ses_fail(e, SES_EUSAGE, "--tree has no effect with --json");
    if (a->output && ses_path_is_dir(a->output))
        return ses_fail(e, SES_EUSAGE, "%s is a folder; expected a file", a->output);
    if (a->output && !a->overwrite && ses_path_exists(a->output))
        return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", a->output);
    ses_train_monitor_catch_signals();
    double start = ses_seconds();
    bool ok = fit(c, &w, &b, e) && list(&l, &b, e) &&
              (!a->output || ses_file_write(a->output, l.file.data, l.file.len, a->overwrite, e));
    if (!ok && ses_train_monitor_should_stop()) { /* main exits with the code of the signal */
        fprintf(stderr, "sesame: %s\n", e->msg);
        *e = (ses_err){ 0 };
    }
    ok = ok && show(c, &l, &b, e);
    if (ok && !c->quiet)
        fprintf(stderr, "%" PRId64 " clusters of %" PRId64 " words, mutual information %.4f bits, %.1f s\n",
                b.clusters, b.n, b.information, ses_seconds() - start);
    free_listing(&l);
    ses_brown_free(&b);
    ses_brown_words_free(&w);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame clusters -c 200 --min-count 3 --output paths corpus.txt",
      "200 clusters, as wcluster writes them" },
    { "sesame clusters -c 50 --tree corpus.txt", "draw the tree of the clusters" },
    { 0 },
};

const ses_command ses_command_clusters = {
    .name = "clusters",
    .usage = "CORPUS",
    .summary = "group words into a tree of Brown clusters",
    .description =
        "Groups the words of a text by their neighbours (Brown et al. 1992, Liang 2005): the mutual "
        "information "
        "of neighbouring clusters is kept as large as possible. The clusters are the leaves of a binary "
        "tree, so "
        "that prefixes of their paths are larger clusters. Words are separated by white space; lines do not "
        "matter. The file has the format and the order of wcluster. Time grows with the number of words "
        "times "
        "the square of the number of clusters; the result does not depend on --threads.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(args),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
