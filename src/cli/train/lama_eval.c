/* eval --task lama: facts with a masked object, by relation. */
#include "direct_eval.h"

#include "cli/input_size.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "tune/eval_lama.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static const ses_opt lama_opt[] = {
    SES_OPT_TEXT(ses_lama_args, candidates, "candidates", "FILE",
                 "lama: rank these words, one per line; words of several tokens are skipped; default: every "
                 "token of the vocabulary"),
    SES_OPT_TEXT(ses_lama_args, template_text, "template", "TEXT",
                 "lama: text of every fact, as \"[X] was born in [Y] .\"; [X] is the subject (sub_label)"),
    SES_OPT_TEXT(ses_lama_args, relations, "relations", "FILE",
                 "lama: JSON lines with relation and template, which become the texts of its facts"),
};
const ses_opt_table ses_lama_option_table = { lama_opt, SES_LEN(lama_opt), "lama" };

static bool feed_files(const ses_direct_eval_call *d, ses_lama_facts *facts, ses_lama *l, ses_err *e)
{
    ses_progress line = ses_progress_start(stderr, &d->call->err, d->call->quiet, "facts",
                                           ses_input_size((const char *const *)d->file, (size_t)d->n_files));
    int64_t before = 0, read = 0;
    bool ok = true, end = false;
    for (int i = 0; ok && i < d->n_files; i++, before += read) {
        ses_json_lines lines = { 0 };
        ses_lama_fact f;
        ok = ses_json_lines_open(&lines, d->file[i], e);
        while (ok && (ok = ses_lama_facts_next(facts, &lines, &f, &end, e)) && !end) {
            ok = ses_lama_feed(l, &f, e) || ses_json_lines_wrap(&lines, e);
            read = (int64_t)ses_input_stream_consumed(lines.text.in);
            ses_progress_show(&line, before + read);
        }
        ses_json_lines_free(&lines);
        if (!ok) ses_wrap(e, "%s", d->file[i]);
    }
    ses_progress_end(&line);
    return ok && ses_lama_flush(l, e);
}

/* ---- results ---- */

typedef struct totals {
    ses_lama_scores sum;
    double at_1, at_10, reciprocal; /* means over relations */
    size_t relations;               /* with facts */
    int64_t left_out[SES_LAMA_REASONS];
} totals;

/* NaN: of nothing. */
static double mean(double sum, int64_t n) { return n ? sum / (double)n : NAN; }

static totals add_up(const ses_lama_relation *r, size_t n)
{
    totals t = { 0 };
    for (size_t i = 0; i < n; i++) {
        const ses_lama_scores *s = &r[i].scores;
        t.sum.facts += s->facts, t.sum.at_1 += s->at_1, t.sum.at_10 += s->at_10;
        t.sum.reciprocal += s->reciprocal;
        t.relations += s->facts > 0;
        if (s->facts) t.at_1 += mean((double)s->at_1, s->facts);
        if (s->facts) t.at_10 += mean((double)s->at_10, s->facts);
        if (s->facts) t.reciprocal += mean(s->reciprocal, s->facts);
        for (int k = 0; k < SES_LAMA_REASONS; k++) t.left_out[k] += r[i].left_out[k];
    }
    t.at_1 = mean(t.at_1, (int64_t)t.relations);
    t.at_10 = mean(t.at_10, (int64_t)t.relations);
    t.reciprocal = mean(t.reciprocal, (int64_t)t.relations);
    return t;
}

static void put_row(ses_text_table *table, const char *name, double at_1, double at_10, double reciprocal,
                    int64_t facts)
{
    ses_text_table_cell(table, "%s", name);
    ses_text_table_cell(table, "%" PRId64, facts);
    ses_text_table_cell(table, facts ? "%.1f %%" : "-", 100 * at_1);
    ses_text_table_cell(table, facts ? "%.1f %%" : "-", 100 * at_10);
    ses_text_table_cell(table, facts ? "%.3f" : "-", reciprocal);
}

static const char *const reason[SES_LAMA_REASONS] = { "no mask, several, or no text before it",
                                                      "the answer is not one token",
                                                      "the answer is not among the candidates",
                                                      "longer than the model accepts" };

static bool show(const ses_lama *l, const ses_term *term, ses_err *e)
{
    size_t n;
    const ses_lama_relation *r = ses_lama_relations(l, &n);
    totals t = add_up(r, n);
    const ses_lama_scores *s = &t.sum;
    ses_text_table *table = ses_text_table_new("Relation|>Facts|>P@1|>P@10|>MRR", e);
    if (!table) return false;
    for (size_t i = 0; n > 1 && i < n; i++) {
        const ses_lama_scores *x = &r[i].scores;
        put_row(table, r[i].name, mean((double)x->at_1, x->facts), mean((double)x->at_10, x->facts),
                mean(x->reciprocal, x->facts), x->facts);
    }
    if (n > 1) put_row(table, "mean of relations", t.at_1, t.at_10, t.reciprocal, s->facts);
    put_row(table, "all facts", mean((double)s->at_1, s->facts), mean((double)s->at_10, s->facts),
            mean(s->reciprocal, s->facts), s->facts);
    bool ok = ses_text_table_print(table, stdout, term, 0, e);
    ses_text_table_free(table);
    puts("");
    ses_show_line(term, "Candidates", "%" PRId64 " tokens", ses_lama_candidate_count(l));
    for (int k = 0; k < SES_LAMA_REASONS; k++)
        if (t.left_out[k])
            ses_show_line(term, "Left out", "%" PRId64 " fact%s: %s", t.left_out[k],
                          t.left_out[k] == 1 ? "" : "s", reason[k]);
    return ok;
}

static void put_left_out(ses_json_writer *w, const int64_t n[SES_LAMA_REASONS])
{
    ses_json_member_object(w, "left_out");
    for (int k = 0; k < SES_LAMA_REASONS; k++) ses_json_member_int(w, ses_lama_reason_name[k], n[k]);
    ses_json_end_object(w);
}

static bool print_json(const ses_lama *l, ses_err *e)
{
    size_t n;
    const ses_lama_relation *r = ses_lama_relations(l, &n);
    totals t = add_up(r, n);
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_real(w, "eval_precision_at_1", mean((double)t.sum.at_1, t.sum.facts));
    ses_json_member_real(w, "eval_precision_at_10", mean((double)t.sum.at_10, t.sum.facts));
    ses_json_member_real(w, "eval_mrr", mean(t.sum.reciprocal, t.sum.facts));
    ses_json_member_real(w, "eval_relations_precision_at_1", t.at_1);
    ses_json_member_real(w, "eval_relations_precision_at_10", t.at_10);
    ses_json_member_real(w, "eval_relations_mrr", t.reciprocal);
    ses_json_member_int(w, "eval_samples", t.sum.facts);
    ses_json_member_int(w, "candidates", ses_lama_candidate_count(l));
    put_left_out(w, t.left_out);
    ses_json_member_array(w, "relations");
    for (size_t i = 0; i < n; i++) {
        const ses_lama_scores *s = &r[i].scores;
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", r[i].name);
        ses_json_member_int(w, "facts", s->facts);
        ses_json_member_real(w, "precision_at_1", mean((double)s->at_1, s->facts));
        ses_json_member_real(w, "precision_at_10", mean((double)s->at_10, s->facts));
        ses_json_member_real(w, "mrr", mean(s->reciprocal, s->facts));
        put_left_out(w, r[i].left_out);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

bool ses_eval_lama(const ses_direct_eval_call *d, ses_err *e)
{
    ses_device_options o = ses_compute_device_options(d->compute);
    size_t n = 0;
    ses_lama_facts *facts = ses_lama_facts_new(d->lama->template_text, d->lama->relations, e);
    ses_device *dev = facts ? ses_device_open(d->compute->device, &o, e) : NULL;
    ses_model *m = dev ? ses_model_open(d->dir, dev, NULL, e) : NULL;
    char *dir = m ? ses_model_resolve(d->dir, NULL, e) : NULL;
    ses_tokenizer *t = dir ? ses_tokenizer_open(dir, e) : NULL;
    ses_lama *l = t ? ses_lama_new(m, t, dir, e) : NULL;
    bool ok = l && (!d->lama->candidates || ses_lama_set_candidates(l, d->lama->candidates, e)) &&
              feed_files(d, facts, l, e);
    if (ok) ses_lama_relations(l, &n);
    if (ok && !n) ok = ses_fail(e, SES_EFORMAT, "%s: no facts", d->file[0]);
    if (ok) ok = d->compute->json ? print_json(l, e) : show(l, &d->call->out, e);
    ses_lama_free(l);
    ses_tokenizer_free(t);
    free(dir);
    ses_model_free(m);
    ses_device_free(dev);
    ses_lama_facts_free(facts);
    return ok;
}
