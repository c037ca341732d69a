/* The result of pruning: see prune_report.h. */
#include "prune_report.h"

#include "base/alloc.h"
#include "pruner.h"
#include "sesame/hooks.h"

#include <stdio.h>
#include <string.h>

/* "attn.query" of "layer.0.attn.query.weight". */
static void kind_of(const char *name, char kind[48])
{
    const char *at = strstr(name, "layer."), *from = at ? strchr(at + strlen("layer."), '.') : NULL;
    const char *end = strstr(name, ".weight");
    from = from ? from + 1 : name;
    size_t n = end && end > from ? (size_t)(end - from) : strlen(from);
    snprintf(kind, 48, "%s%.*s", strncmp(name, "decoder.", 8) ? "" : "decoder.", (int)n, from);
}

static ses_pruned_kind *find_kind(ses_pruning_report *r, const char *name)
{
    char kind[48];
    kind_of(name, kind);
    for (size_t i = 0; i < r->n_kinds; i++)
        if (!strcmp(r->kind[i].name, kind)) return &r->kind[i];
    if (r->n_kinds == SES_LEN(r->kind)) return NULL;
    ses_pruned_kind *k = &r->kind[r->n_kinds++];
    snprintf(k->name, sizeof k->name, "%s", kind);
    return k;
}

/* Adds the numbers of a weight to its kind. */
static bool count_weight(ses_pruning_report *r, ses_device *dev, const ses_pruned_weight *w, ses_err *e)
{
    ses_pruned_kind *k = find_kind(r, w->param->name);
    ses_real *x = k ? ses_alloc_array((size_t)w->n, sizeof *x, e) : NULL;
    bool ok = !k || (x && ses_device_read(dev, w->param->tensor, 0, w->n, x, e));
    for (int64_t i = 0; k && ok && i < w->n; i++) k->kept += x[i] != 0;
    if (k) k->weights += w->n;
    ses_free(x);
    return ok;
}

static void count_units(const ses_model *m, int64_t *heads, int64_t *rows)
{
    for (ses_part part = SES_PART_MAIN; part <= SES_PART_CROSS; part++)
        for (int64_t l = 0; l < ses_model_part_layers(m, part); l++) {
            *heads += ses_model_part_heads(m, part, l);
            if (part != SES_PART_CROSS) *rows += ses_model_layer_neurons(m, part, l);
        }
}

bool ses_pruning_report_make(ses_pruning_report *r, const ses_pruner *p, const ses_model *full,
                             const ses_model *left, ses_err *e)
{
    *r = (ses_pruning_report){ .kept = ses_pruner_kept(p) };
    for (size_t i = 0; i < p->n_weights; i++)
        if (!count_weight(r, p->dev, &p->weight[i], e)) return false;
    count_units(full, &r->heads, &r->rows);
    count_units(left, &r->heads_left, &r->rows_left);
    r->parameters = ses_store_element_count(ses_model_store(full));
    r->parameters_left = ses_store_element_count(ses_model_store(left));
    return true;
}

void ses_pruning_report_put(const ses_pruning_report *r, ses_json_writer *w)
{
    ses_json_put_key(w, "pruning");
    ses_json_begin_object(w);
    ses_json_member_real(w, "kept", r->kept);
    ses_json_put_key(w, "density");
    ses_json_begin_object(w);
    for (size_t i = 0; i < r->n_kinds; i++)
        ses_json_member_real(w, r->kind[i].name, (double)r->kind[i].kept / (double)r->kind[i].weights);
    ses_json_end_object(w);
    ses_json_member_int(w, "heads", r->heads);
    ses_json_member_int(w, "heads_left", r->heads_left);
    ses_json_member_int(w, "ffn_rows", r->rows);
    ses_json_member_int(w, "ffn_rows_left", r->rows_left);
    ses_json_member_int(w, "parameters", r->parameters);
    ses_json_member_int(w, "parameters_left", r->parameters_left);
    ses_json_end_object(w);
}
