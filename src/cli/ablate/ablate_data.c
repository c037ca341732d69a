/* Data of fine-tuning tasks, read before the first job starts. */
#include "ablate.h"

#include "base/str.h"
#include "cli/train/finetune_inputs.h"

/* The options that decide how data are read, as text on the arena: without model, seed and folder. */
static const char *key_of(ses_ablate *s, const ses_finetune_args *a, size_t task, size_t *n, ses_err *e)
{
    ses_finetune_args x = *a;
    ses_buf b = { 0 };
    x.s.o.model = x.s.o.config = x.s.train.run.output = NULL;
    x.s.train.run.seed = 0;
    ses_buf_appendf(&b, "%zu", task);
    ses_options_put_command_line(ses_command_finetune.opt, ses_command_finetune.n_opt, &x, &b);
    bool ok = ses_buf_ok(&b, e);
    *n = b.len;
    char *key = ok ? ses_arena_strndup(&s->mem, b.data, b.len, e) : NULL;
    ses_buf_free(&b);
    return key;
}

bool ses_ablate_check_data(void *ctx, const void *args, ses_err *e)
{
    const ses_ablate_data *d = ctx;
    ses_ablate *s = d->study;
    ses_row_overlap o = { 0 }, *most = &s->task[d->task].overlap;
    bool fresh;
    size_t n;
    const char *key = key_of(s, args, d->task, &n, e);
    if (!key || !ses_strmap_insert(&s->checked, key, n, 0, &fresh, e)) return false;
    if (fresh && !ses_finetune_check_inputs(args, &o, e)) return false;
    if (o.shared > most->shared) *most = o;
    return true;
}

const char *ses_ablate_overlap_text(const ses_ablate *s, size_t i, char *buf, size_t size)
{
    return ses_row_overlap_text(&s->task[i].overlap, s->task[i].name, buf, size);
}

void ses_ablate_show_overlap(const ses_ablate *s)
{
    char text[400];
    for (size_t i = 0; i < s->n_tasks; i++)
        if (*ses_ablate_overlap_text(s, i, text, sizeof text)) fprintf(stderr, "%s\n", text);
}
