/* eval --task checklist: failure rates of behavioral tests. */
#include "direct_eval.h"

#include "cli/input_size.h"
#include "cli/ui/show_values.h"
#include "cli/ui/text_table.h"
#include "tune/eval_checklist.h"

#include <inttypes.h>

static bool feed_file(const char *path, ses_checklist *k, ses_progress *line, int64_t *read, ses_err *e)
{
    ses_json_lines lines = { 0 };
    ses_arena mem = { 0 };
    const ses_json *v = NULL;
    ses_checklist_case c;
    int64_t before = *read;
    bool ok = ses_json_lines_open(&lines, path, e);
    while (ok && (ok = ses_json_lines_next(&lines, &v, e)) && v) {
        ses_arena_reset(&mem);
        ok = (ses_checklist_case_read(v, &mem, &c, e) && ses_checklist_feed(k, &c, lines.text.line, e)) ||
             ses_json_lines_wrap(&lines, e);
        *read = before + (int64_t)ses_input_stream_consumed(lines.text.in);
        ses_progress_show(line, *read);
    }
    ses_arena_free(&mem);
    ses_json_lines_free(&lines);
    return ok || ses_wrap(e, "%s", path);
}

static bool feed_files(const ses_direct_eval_call *d, ses_pipeline *p, ses_checklist *k, ses_err *e)
{
    ses_progress line = ses_progress_start(stderr, &d->call->err, d->call->quiet, "cases",
                                           ses_input_size((const char *const *)d->file, (size_t)d->n_files));
    int64_t read = 0;
    bool ok = true;
    for (int i = 0; ok && i < d->n_files; i++) ok = feed_file(d->file[i], k, &line, &read, e);
    ok = ok && ses_pipeline_flush(p, e);
    ses_progress_end(&line);
    return ok;
}

static double rate(int64_t failed, int64_t n) { return n ? (double)failed / (double)n : 0; }

/* The cases of all tests of a type, or of all types. */
static ses_checklist_test sum_of(const ses_checklist_test *t, size_t n, int type)
{
    ses_checklist_test sum = { 0 };
    for (size_t i = 0; i < n; i++)
        if (type == SES_CHECKLIST_TYPES || (int)t[i].type == type)
            sum.cases += t[i].cases, sum.failed += t[i].failed, sum.left_out += t[i].left_out;
    return sum;
}

static bool show(const ses_checklist_test *t, size_t n, const ses_term *term, ses_err *e)
{
    enum { MAX_BAR = 20 };
    char bar[SES_BAR_SIZE];
    ses_text_table *table = ses_text_table_new("Capability|Test|Type|>Cases|>Failed|>Rate|", e);
    if (!table) return false;
    for (size_t i = 0; i < n; i++) {
        ses_text_table_cell(table, "%s", t[i].capability);
        ses_text_table_cell(table, "%s", t[i].name);
        ses_text_table_cell(table, "%s", ses_checklist_type_name[t[i].type]);
        ses_text_table_cell(table, "%" PRId64, t[i].cases);
        ses_text_table_cell(table, "%" PRId64, t[i].failed);
        ses_text_table_cell(table, "%.1f %%", 100 * rate(t[i].failed, t[i].cases));
        ses_text_table_cell(table, "%s", ses_bar_text(term, bar, rate(t[i].failed, t[i].cases), MAX_BAR));
    }
    ses_text_table_fit(table, term->width, (const int[]){ 2, 0, 0, 0, 0, 0, 1 });
    bool ok = ses_text_table_print(table, stdout, term, 0, e);
    ses_text_table_free(table);
    puts("");
    for (int k = 0; k <= SES_CHECKLIST_TYPES; k++) {
        ses_checklist_test sum = sum_of(t, n, k);
        const char *name = k < SES_CHECKLIST_TYPES ? ses_checklist_type_name[k] : "All";
        if (!sum.cases && !sum.left_out) continue;
        ses_show_line(term, name, "%.1f %% of %" PRId64 " cases fail", 100 * rate(sum.failed, sum.cases),
                      sum.cases);
        if (k == SES_CHECKLIST_TYPES && sum.left_out)
            ses_show_line(term, "Left out", "%" PRId64 " cases that cannot fail", sum.left_out);
    }
    return ok;
}

static void put_counts(ses_json_writer *w, const ses_checklist_test *t)
{
    ses_json_member_int(w, "cases", t->cases);
    ses_json_member_int(w, "failed", t->failed);
    ses_json_member_real(w, "failure_rate", rate(t->failed, t->cases));
    ses_json_member_int(w, "left_out", t->left_out);
}

static bool print_json(const ses_checklist_test *t, size_t n, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_checklist_test all = sum_of(t, n, SES_CHECKLIST_TYPES);
    ses_json_begin_object(w);
    ses_json_member_real(w, "eval_failure_rate", rate(all.failed, all.cases));
    ses_json_member_int(w, "eval_samples", all.cases);
    ses_json_member_object(w, "types");
    for (int k = 0; k < SES_CHECKLIST_TYPES; k++) {
        ses_checklist_test sum = sum_of(t, n, k);
        ses_json_member_object(w, ses_checklist_type_name[k]);
        put_counts(w, &sum);
        ses_json_end_object(w);
    }
    ses_json_end_object(w);
    ses_json_member_array(w, "tests");
    for (size_t i = 0; i < n; i++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "capability", t[i].capability);
        ses_json_member_string(w, "name", t[i].name);
        ses_json_member_string(w, "type", ses_checklist_type_name[t[i].type]);
        put_counts(w, &t[i]);
        if (t[i].first_failed_line) ses_json_member_uint(w, "first_failed_line", t[i].first_failed_line);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

bool ses_eval_checklist(const ses_direct_eval_call *d, ses_err *e)
{
    static const ses_setting all_labels[] = { { "top_k", "all" }, { 0 } };
    ses_device_options o = ses_compute_device_options(d->compute);
    ses_device *dev = ses_device_open(d->compute->device, &o, e);
    ses_pipeline *p = dev ? ses_pipeline_open("text-classification", d->dir, dev, all_labels, e) : NULL;
    ses_checklist *k = p ? ses_checklist_new(p, e) : NULL;
    bool ok = k && feed_files(d, p, k, e);
    if (ok) {
        size_t n;
        const ses_checklist_test *t = ses_checklist_tests(k, &n);
        if (!n) ok = ses_fail(e, SES_EFORMAT, "%s: no cases", d->file[0]);
        if (ok) ok = d->compute->json ? print_json(t, n, e) : show(t, n, &d->call->out, e);
        int64_t truncated = ses_pipeline_get_stats(p).truncated;
        if (truncated)
            fprintf(stderr,
                    "sesame: %" PRId64 " texts are longer than the model accepts and were truncated\n",
                    truncated);
    }
    ses_checklist_free(k);
    ses_pipeline_free(p);
    ses_device_free(dev);
    return ok;
}
