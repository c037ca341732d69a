/* Evaluation without --eval: a random part of --data is held out.
 *
 * OUTPUT/data has two files in the format of --data: the held-out records, and the others, for training. The
 * same file, seed and task give the same parts. A record is what can be moved whole: a row, a sentence, a
 * line with several examples, a paragraph of SQuAD with its questions. */
#include "compress.h"

#include "base/alloc.h"
#include "base/dir.h"
#include "base/file.h"
#include "base/json/json_helpers.h"
#include "base/rng.h"
#include "io/text_reader.h"

#include <stdlib.h>
#include <string.h>

enum { SITE = 0x68656c64, LEAST_RECORDS = 20, MOST_EXAMPLES = 2000, PART = 10, LINE_MAX_BYTES = 1 << 28 };
static const size_t MAX_JSON = (size_t)1 << 30;

typedef struct record {
    uint64_t line; /* its first line; unused for SQuAD */
    uint32_t key;
    bool stays; /* in training: it has the first example of a label */
    bool is_held_out;
} record;

typedef struct parts {
    record *record;
    size_t n, n_examples, n_held_out;
} parts;

/* ---- records ---- */

/* Whether an example has a label that no example before it has. */
static bool brings_label(const ses_labeled_example *x, bool *seen)
{
    bool is_new = false;
    for (size_t k = 0; k <= x->n_labels; k++) {
        int32_t at = k ? (x->labels ? x->labels[k - 1] : -1) : x->label;
        if (at < 0) continue;
        is_new |= !seen[at];
        seen[at] = true;
    }
    return is_new;
}

/* Records of examples with line numbers. */
static bool find_records(const ses_examples *d, uint64_t seed, parts *p, ses_err *e)
{
    size_t n = ses_examples_count(d);
    bool *seen = ses_alloc_array(ses_examples_label_count(d) + 64, sizeof *seen, e); /* choices: up to 64 */
    p->record = seen ? ses_alloc_array(n + 1, sizeof *p->record, e) : NULL;
    p->n_examples = n;
    for (size_t i = 0; p->record && i < n; i++) {
        const ses_labeled_example *x = ses_examples_at(d, i);
        record *last = p->n ? &p->record[p->n - 1] : NULL;
        if (!last || x->line != last->line) {
            last = &p->record[p->n];
            *last = (record){ .line = x->line, .key = ses_rand32((ses_rng_key){ seed, 0, SITE }, p->n) };
            p->n++;
        }
        last->stays |= brings_label(x, seen);
    }
    ses_free(seen);
    return p->record != NULL;
}

static size_t count_paragraphs(const ses_json *data)
{
    size_t n = 0;
    for (size_t i = 0; i < ses_json_len(data); i++)
        n += ses_json_len(ses_json_get(ses_json_at(data, i), "paragraphs"));
    return n;
}

static bool find_paragraphs(const ses_json *data, uint64_t seed, parts *p, ses_err *e)
{
    p->n = count_paragraphs(data);
    p->record = ses_alloc_array(p->n + 1, sizeof *p->record, e);
    for (size_t i = 0; p->record && i < p->n; i++)
        p->record[i] = (record){ .key = ses_rand32((ses_rng_key){ seed, 0, SITE }, i) };
    return p->record != NULL;
}

static int by_key(const void *a, const void *b)
{
    const record *const *x = a, *const *y = b;
    if ((*x)->key != (*y)->key) return (*x)->key < (*y)->key ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

/* Marks a tenth of the records, with about MOST_EXAMPLES examples at most. */
static bool choose(parts *p, const char *path, ses_err *e)
{
    size_t most = (size_t)((double)MOST_EXAMPLES * (double)p->n / (double)(p->n_examples + !p->n_examples)),
           want = p->n / PART, n = 0;
    if (p->n < LEAST_RECORDS)
        return ses_fail(e, SES_EARG,
                        "%s: %zu examples are too few to hold out a part for evaluation (at least %d): give "
                        "--eval FILE",
                        path, p->n, LEAST_RECORDS);
    record **order = ses_alloc_array(p->n, sizeof *order, e);
    if (!order) return false;
    if (want > most) want = most ? most : 1;
    for (size_t i = 0; i < p->n; i++)
        if (!p->record[i].stays) order[n++] = &p->record[i];
    qsort(order, n, sizeof *order, by_key);
    for (size_t i = 0; i < n && i < want; i++, p->n_held_out++) order[i]->is_held_out = true;
    ses_free(order);
    return p->n_held_out || ses_fail(e, SES_EARG,
                                     "%s: no example can be held out for evaluation, each has a label of its "
                                     "own: give --eval FILE",
                                     path);
}

/* ---- files ---- */

/* Lines before the first record (a header) go to both files. */
static bool write_lines(const ses_compress *z, const parts *p, ses_err *e)
{
    ses_buf out[2] = { { 0 }, { 0 } };
    ses_text_reader in = { 0 };
    const char *s = NULL;
    size_t n = 0, at = 0;
    bool ok = ses_text_reader_open(&in, z->a->train, LINE_MAX_BYTES, e);
    while (ok && (ok = ses_text_reader_next(&in, &s, &n, e)) && s) {
        while (at < p->n && p->record[at].line <= in.line) at++; /* the record is at - 1 */
        for (size_t k = 0; k < SES_LEN(out); k++) {
            if (at && p->record[at - 1].is_held_out != (k == 1)) continue;
            ses_buf_append(&out[k], s, n);
            ses_buf_put(&out[k], '\n');
        }
    }
    for (size_t k = 0; k < SES_LEN(out); k++) {
        ok = ok && ses_buf_ok(&out[k], e) &&
             ses_file_write(k ? z->eval : z->train, out[k].data, out[k].len, true, e);
        ses_buf_free(&out[k]);
    }
    ses_text_reader_free(&in);
    return ok;
}

static void put_article(const ses_json *article, const parts *p, size_t first, bool held_out,
                        ses_json_writer *w)
{
    const ses_json *list = ses_json_get(article, "paragraphs"), *title = ses_json_get(article, "title");
    ses_json_begin_object(w);
    if (title) ses_json_put_key(w, "title"), ses_json_put_value(w, title);
    ses_json_member_array(w, "paragraphs");
    for (size_t i = 0; i < ses_json_len(list); i++)
        if (p->record[first + i].is_held_out == held_out) ses_json_put_value(w, ses_json_at(list, i));
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static bool write_squad(const char *path, const ses_json *root, const parts *p, bool held_out, ses_err *e)
{
    const ses_json *data = ses_json_get(root, "data"), *version = ses_json_get(root, "version");
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    if (version) ses_json_put_key(w, "version"), ses_json_put_value(w, version);
    ses_json_member_array(w, "data");
    for (size_t i = 0, first = 0; i < ses_json_len(data); i++) {
        const ses_json *article = ses_json_at(data, i);
        put_article(article, p, first, held_out, w);
        first += ses_json_len(ses_json_get(article, "paragraphs"));
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_save(w, NULL, path, true, e);
}

/* Chooses the parts; writes: and writes them. */
static bool split_squad(const ses_compress *z, size_t n_examples, bool writes, ses_err *e)
{
    parts p = { .n_examples = n_examples };
    ses_json_doc *doc = ses_json_load(z->a->train, MAX_JSON, e);
    const ses_json *root = doc ? ses_json_root(doc) : NULL;
    bool ok =
        doc && find_paragraphs(ses_json_get(root, "data"), (uint64_t)z->a->seed, &p, e) &&
        choose(&p, z->a->train, e) &&
        (!writes || (write_squad(z->train, root, &p, false, e) && write_squad(z->eval, root, &p, true, e)));
    ses_free(p.record);
    ses_json_free(doc);
    return ok;
}

static bool split_lines(const ses_compress *z, const ses_examples *all, bool writes, ses_err *e)
{
    parts p = { 0 };
    bool ok = find_records(all, (uint64_t)z->a->seed, &p, e) && choose(&p, z->a->train, e) &&
              (!writes || write_lines(z, &p, e));
    ses_free(p.record);
    return ok;
}

static bool split(const ses_compress *z, bool writes, ses_err *e)
{
    ses_examples *all = ses_data_open(&z->train_spec, z->a->train, NULL, e);
    bool ok =
        all && (z->train_spec.format == SES_DATA_SQUAD ? split_squad(z, ses_examples_count(all), writes, e)
                                                       : split_lines(z, all, writes, e));
    ses_examples_free(all);
    return ok;
}

/* ---- paths ---- */

/* DIR/data/PREFIX-NAME, without an ending of compression: the reader of a table looks at the ending. */
static char *part_path(const char *dir, const char *prefix, const char *path, ses_err *e)
{
    static const char *const compressed[] = { ".gz", ".xz", ".zst" };
    ses_path_name name = ses_path_name_of(path);
    char file[320];
    size_t n = strlen(name.s);
    for (size_t i = 0; i < SES_LEN(compressed); i++) {
        size_t k = strlen(compressed[i]);
        if (n > k && !strcmp(name.s + n - k, compressed[i])) name.s[n - k] = 0;
    }
    snprintf(file, sizeof file, "data/%s-%s", prefix, name.s);
    return ses_path_join(dir, file, e);
}

static char *default_output(const char *model, ses_err *e)
{
    char name[300];
    snprintf(name, sizeof name, "%s-compressed", ses_path_name_of(model).s);
    return ses_strdup(name, e);
}

bool ses_compress_choose_files(ses_compress *z, ses_err *e)
{
    const ses_compress_args *a = z->a;
    if (!a->eval && !a->train)
        return ses_fail(e, SES_EUSAGE,
                        "no labeled examples: give --data FILE (training; a part of it is held out for "
                        "evaluation), --eval FILE, or both");
    z->holds_out = !a->eval;
    z->output = a->output ? ses_strdup(a->output, e) : default_output(z->model, e);
    if (!z->output) return false;
    z->train = !a->train      ? NULL
               : z->holds_out ? part_path(z->output, "train", a->train, e)
                              : ses_strdup(a->train, e);
    z->eval = z->holds_out ? part_path(z->output, "held-out", a->train, e) : ses_strdup(a->eval, e);
    return z->eval && (z->train || !a->train);
}

/* ---- checks ---- */

static bool check_hold_out(const ses_compress *z, ses_err *e)
{
    if (!z->holds_out) return true;
    if (z->eval_spec.kind != z->train_spec.kind)
        return ses_fail(e, SES_EUSAGE,
                        "the task %s is evaluated on other data than it is trained on: give "
                        "--eval FILE",
                        z->task->name);
    return split(z, false, e);
}

/* --eval as the measurement reads it: a fine-tuned model must know its labels. */
static bool check_with_model(const ses_compress *z, const char *path, ses_err *e)
{
    const ses_predictor_args *a = &z->a->tune;
    ses_predictor_options o = { .data = a->data, .task = a->task };
    ses_predictor *p = ses_predictor_open(z->model, &o, NULL, e);
    ses_examples *d = p ? ses_predictor_read(p, path, true, e) : NULL;
    ses_examples_free(d);
    ses_predictor_free(p);
    return d != NULL;
}

static bool check_eval(const ses_compress *z, const ses_examples *train, ses_err *e)
{
    bool same = train && z->eval_spec.kind == z->train_spec.kind;
    ses_examples *d = ses_data_open(&z->eval_spec, z->a->eval, same && z->is_new ? train : NULL, e);
    bool ok = d && (z->is_new || check_with_model(z, z->a->eval, e));
    ses_examples_free(d);
    return ok;
}

bool ses_compress_check_data(const ses_compress *z, ses_err *e)
{
    const char *path = z->a->train;
    ses_examples *train = path ? ses_data_open(&z->train_spec, path, NULL, e) : NULL;
    bool ok = !path || (train && (ses_examples_check_learnable(train, e) || ses_wrap(e, "%s", path)));
    if (ok && path && !z->is_new && z->eval_spec.kind == z->train_spec.kind)
        ok = check_with_model(z, path, e);
    ok = ok && (!z->a->eval || check_eval(z, train, e));
    ses_examples_free(train);
    return ok && check_hold_out(z, e);
}

/* ---- the parts ---- */

static bool write_parts(ses_compress *z, ses_err *e)
{
    char *dir = ses_path_join(z->output, "data", e);
    bool ok = dir && ses_dir_make(dir, e) && split(z, true, e);
    ses_free(dir);
    ses_examples *all = ok ? ses_data_open(&z->train_spec, z->eval, NULL, e) : NULL;
    ok = all != NULL;
    if (ok) z->n_held_out = ses_examples_count(all);
    ses_examples_free(all);
    if (ok && !z->x.c->quiet)
        fprintf(stderr, "%zu example%s of %s %s held out for evaluation: %s\n", z->n_held_out,
                z->n_held_out == 1 ? "" : "s", ses_path_name_of(z->a->train).s,
                z->n_held_out == 1 ? "is" : "are", z->eval);
    return ok;
}

static bool compare(ses_compress *z, ses_err *e)
{
    char text[400];
    ses_examples *train = ses_data_open(&z->train_spec, z->train, NULL, e),
                 *eval = train ? ses_data_open(&z->eval_spec, z->eval, NULL, e) : NULL;
    bool ok = eval && ses_examples_overlap(train, eval, &z->overlap, e);
    if (ok && !z->x.c->quiet && *ses_row_overlap_text(&z->overlap, z->eval, text, sizeof text))
        fprintf(stderr, "%s\n", text);
    ses_examples_free(train);
    ses_examples_free(eval);
    return ok;
}

bool ses_compress_hold_out(ses_compress *z, ses_err *e)
{
    return (!z->holds_out || write_parts(z, e)) && (!z->train || compare(z, e));
}
