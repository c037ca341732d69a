/* Report of a topic model: see topic_report.h. */
#include "topic_report.h"

#include "base/alloc.h"
#include "base/file.h"
#include "cli/standard_output.h"
#include "cli/ui/report_output.h"
#include "figure/report.h"

#include <math.h>
#include <string.h>

enum { TABLE_WORDS = 8 };

static const ses_opt options[] = {
    SES_OPT_TEXT(ses_topic_output, html, "html", "FILE", "write a page with tables and charts",
                 .is_path = true),
    SES_OPT_TEXT(ses_topic_output, svg, "svg", "FILE", "write a picture", .is_path = true),
    SES_OPT_FLAG(ses_topic_output, json, "json", "write JSON instead of text", .letter = 'j'),
    SES_OPT_INT(ses_topic_output, top, "top-words", "10", 1, 1000, "words shown per topic", .value = "N"),
};
const ses_opt_table ses_topic_output_options = { options, SES_LEN(options) };

bool ses_topic_output_check(const ses_topic_output *o, ses_err *e)
{
    const char *path[] = { o->html, o->svg };
    for (size_t i = 0; i < SES_LEN(path); i++)
        if (path[i] && !o->overwrite && ses_path_exists(path[i]))
            return ses_fail(e, SES_EUSAGE, "%s exists: --overwrite replaces it", path[i]);
    return true;
}

static const char *word_of(const ses_topic_model *m, int32_t id) { return m->vocab.ids.entry[id].key; }

/* The top words of all topics, [topics, top]. */
typedef struct top_words {
    int64_t top;
    int32_t *word;
    const char **name; /* [top] scratch */
    double *weight;    /* [top] scratch */
} top_words;

static bool find_top(top_words *t, const ses_topic_model *m, int64_t top, ses_err *e)
{
    int64_t k_n = ses_topic_count(m);
    t->top = top < m->vocab.words ? top : m->vocab.words;
    t->word = ses_alloc_array((size_t)k_n, (size_t)t->top * sizeof *t->word, e);
    t->name = t->word ? ses_alloc_array((size_t)t->top, sizeof *t->name, e) : NULL;
    t->weight = t->name ? ses_alloc_array((size_t)t->top, sizeof *t->weight, e) : NULL;
    bool ok = t->weight != NULL;
    for (int64_t k = 0; ok && k < k_n; k++) ok = ses_topic_top(m, k, t->top, t->word + k * t->top, e);
    return ok;
}

static void free_top(top_words *t) { ses_free(t->word), ses_free((void *)t->name), ses_free(t->weight); }

static void put_json(ses_json_writer *w, const ses_topic_model *m, const top_words *t)
{
    bool lda = m->s.method == SES_TOPICS_LDA;
    ses_json_begin_object(w);
    ses_json_member_string(w, "method", lda ? "lda" : "lsa");
    ses_json_member_int(w, "texts", m->vocab.all_texts);
    ses_json_member_int(w, "words", m->vocab.words);
    ses_json_member_array(w, "perplexity");
    for (size_t i = 0; i < m->n_perplexity; i++) ses_json_put_real(w, m->perplexity[i]);
    ses_json_end_array(w);
    ses_json_member_array(w, "topics");
    for (int64_t k = 0; k < ses_topic_count(m); k++) {
        ses_json_begin_object(w);
        ses_json_member_int(w, "topic", k + 1);
        if (!lda) ses_json_member_real(w, "singular_value", m->lsa.value[k]);
        ses_json_member_real(w, "share", ses_topic_share(m, k));
        ses_json_member_real(w, "umass", m->umass[k]);
        ses_json_member_real(w, "npmi", m->npmi[k]);
        ses_json_member_array(w, "words");
        for (int64_t i = 0; i < t->top; i++) {
            int32_t id = t->word[k * t->top + i];
            ses_json_begin_object(w);
            ses_json_member_stringn(w, "word", word_of(m, id), m->vocab.ids.entry[id].len);
            ses_json_member_real(w, "weight", ses_topic_weight(m, k, id));
            ses_json_end_object(w);
        }
        ses_json_end_array(w);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static void put_table(ses_report *r, const ses_topic_model *m, const top_words *t, int width)
{
    bool lda = m->s.method == SES_TOPICS_LDA;
    ses_figure *f = ses_report_table(
        r, "Topics", lda ? ">topic|>share|>UMass|>NPMI|words" : ">topic|>singular value|>UMass|>NPMI|words");
    double umass = 0, npmi = 0;
    for (int64_t k = 0; k < ses_topic_count(m); k++) {
        ses_buf words = { 0 };
        for (int64_t i = 0; i < t->top && i < TABLE_WORDS; i++) {
            int32_t id = t->word[k * t->top + i];
            ses_quoted word = ses_quoted_of(word_of(m, id), m->vocab.ids.entry[id].len);
            bool minus = ses_topic_weight(m, k, id) < 0;
            if (i && ses_text_width(words.data) + ses_text_width(word.s) + 38 > (size_t)width) break;
            ses_buf_appendf(&words, "%s%s%s", i ? " " : "", minus ? "-" : "", word.s);
        }
        ses_figure_cell(f, "%lld", (long long)k + 1);
        if (lda)
            ses_figure_cell(f, "%.1f %%", 100 * ses_topic_share(m, k));
        else
            ses_figure_cell(f, "%.6g", m->lsa.value[k]);
        ses_figure_cell(f, "%.2f", m->umass[k]);
        ses_figure_cell(f, "%.3f", m->npmi[k]);
        ses_figure_cell(f, "%s", words.data ? words.data : "");
        ses_buf_free(&words);
        umass += m->umass[k], npmi += m->npmi[k];
    }
    ses_report_note(r, "Coherence, mean over the topics: UMass %.4f, NPMI %.4f.",
                    umass / (double)ses_topic_count(m), npmi / (double)ses_topic_count(m));
}

static void put_bars(ses_report *r, const ses_topic_model *m, top_words *t)
{
    char title[64];
    for (int64_t k = 0; k < ses_topic_count(m); k++) {
        for (int64_t i = 0; i < t->top; i++) {
            t->name[i] = word_of(m, t->word[k * t->top + i]);
            t->weight[i] = ses_topic_weight(m, k, t->word[k * t->top + i]);
        }
        snprintf(title, sizeof title, "Topic %lld", (long long)k + 1);
        ses_report_bars(r, title, t->top, t->name, t->weight);
    }
}

static bool put_passes(ses_report *r, const ses_topic_model *m, ses_err *e)
{
    size_t n = m->n_perplexity;
    double *x = ses_alloc_array(n + 1, sizeof *x, e);
    if (!x) return false;
    for (size_t i = 0; i < n; i++) x[i] = (double)(i + 1);
    if (n > 1) {
        ses_figure *f = ses_report_lines(r, "Perplexity", "pass", "perplexity");
        ses_figure_line(
            f, &(ses_figure_series){ .name = "perplexity", .n = (int64_t)n, .x = x, .y = m->perplexity });
    }
    double last = n ? m->perplexity[n - 1] : 0;
    if (n)
        ses_report_note(r,
                        last < 1e6 ? "Perplexity of the last pass, before its updates: %.2f."
                                   : "Perplexity of the last pass, before its updates: %.3g.",
                        last);
    if (n && !(last <= (double)m->vocab.words))
        ses_report_note(r,
                        "That bound is worse than equal probabilities of all %lld words: the texts are few "
                        "for %lld topics.",
                        (long long)m->vocab.words, (long long)ses_topic_count(m));
    ses_free(x);
    return true;
}

static ses_report *make(const ses_topic_model *m, top_words *t, bool bars, int width, ses_err *e)
{
    ses_report *r = ses_report_new(e);
    if (!r) return NULL;
    put_json(ses_report_json(r), m, t);
    put_table(r, m, t, width);
    if (bars) put_bars(r, m, t);
    if (!put_passes(r, m, e) || !ses_report_ok(r, e)) {
        ses_report_free(r);
        return NULL;
    }
    return r;
}

bool ses_topic_report(const ses_call *c, const ses_topic_model *m, const char *name,
                      const ses_topic_output *o, ses_err *e)
{
    top_words t = { 0 };
    ses_buf out = { 0 };
    char called[64];
    ses_command_called_name(c->command, called, sizeof called);
    ses_report_head h = { .analysis = called,
                          .title = m->s.method == SES_TOPICS_LDA ? "Topics: latent Dirichlet allocation"
                                                                 : "Topics: latent semantic analysis",
                          .model = name,
                          .command = called,
                          .seed = m->s.method == SES_TOPICS_LDA ? m->lda.s.seed : m->s.lsa.seed };
    bool files = o->html || o->svg, ok = find_top(&t, m, o->top, e);
    ses_report *r = ok ? make(m, &t, o->bars, c->out.width, e) : NULL;
    ses_report *full = r && files && !o->bars ? make(m, &t, true, 120, e) : NULL;
    ok = r && (!files || o->bars || full) &&
         (!files || ses_report_write_files(full ? full : r, &h, o->svg, o->html, o->overwrite, e));
    if (ok && o->json) ok = ses_report_envelope(r, &h, &out, e);
    if (ok && !o->json) ses_report_draw(r, &(ses_draw){ c->out.width, c->out.color, c->out.unicode }, &out);
    ok = ok && ses_buf_ok(&out, e) && ses_stdout_write(out.data, out.len, e);
    ses_report_free(r), ses_report_free(full);
    ses_buf_free(&out);
    free_top(&t);
    return ok;
}
