/* Parts common to all analyses. */
#include "analysis.h"

#include "page_file.h"

#include <string.h>

void ses_analysis_progress(const ses_analysis_call *call, const char *label, int64_t done, int64_t total)
{
    if (call->progress) call->progress(call->progress_ctx, label, done, total);
}

const ses_page_file *ses_page_file_find(const char *name)
{
    for (const ses_page_file *f = ses_page_files; f->name; f++)
        if (!strcmp(f->name, name)) return f;
    return NULL;
}
