/* Parts common to all analyses. */
#include "analysis.h"

#include "figure/page_file.h"
#include "model/model_desc.h"
#include "word_states.h"

#include <string.h>

void ses_analysis_progress(const ses_analysis_call *call, const char *label, int64_t done, int64_t total)
{
    if (call->progress) call->progress(call->progress_ctx, label, done, total);
}

bool ses_analysis_asks_decoder(const ses_analysis *a, const void *args)
{
    return a->reads_decoder || (a->asks_decoder && a->asks_decoder(args));
}

bool ses_analysis_may_continue(const ses_analysis_call *call, ses_err *e)
{
    return !call->may_continue || call->may_continue(call->may_continue_ctx, e);
}

int64_t ses_analysis_last_layer(const ses_analysis *a, const void *args, const ses_model *m)
{
    int64_t decoder = ses_analysis_asks_decoder(a, args) ? ses_word_states_depth(m, true) : -1;
    return decoder >= 0 ? decoder : ses_model_layer_count(m);
}

ses_model *ses_analysis_part(const ses_model *m, bool decoder, ses_err *e)
{
    if (decoder && (!m->desc->encoder_decoder || !m->stack[1].layer)) {
        ses_fail(e, SES_EUNSUPPORTED, "--decoder: %s has no decoder with an input of its own",
                 ses_model_class_name(m));
        return NULL;
    }
    ses_model *part = decoder ? NULL : ses_model_hidden_view(m, true, NULL);
    return part ? part : ses_model_hidden_view(m, false, e); /* the encoder cannot run alone */
}

const ses_analysis_entry *ses_analysis_entries(void)
{
    static const ses_analysis_entry list[] = {
#define SES_ANALYSIS(id, name, summary) { name, summary, &ses_analysis_##id },
#include "analyses.def"
#undef SES_ANALYSIS
        { 0 },
    };
    return list;
}

const ses_analysis_entry *ses_analysis_find(const char *name)
{
    const ses_analysis_entry *x = ses_analysis_entries();
    while (x->name && strcmp(x->name, name) != 0) x++;
    return x->name ? x : NULL;
}

const ses_page_file *ses_page_file_find(const char *name)
{
    for (const ses_page_file *f = ses_page_files; f->name; f++)
        if (!strcmp(f->name, name)) return f;
    return NULL;
}
