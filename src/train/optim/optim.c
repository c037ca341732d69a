/* Common part of all optimizers: parameter groups, state buffers, moving average, steps. */
#include "base/alloc.h"
#include "base/str.h"
#include "base/suggest.h"
#include "nn/store_impl.h"
#include "optim_kind.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const ses_optim_kind *const kinds[] = {
#define SES_OPTIM(name) &ses_optim_##name,
#include "optims.def"
#undef SES_OPTIM
};

/* Elements from .. from + n - 1 of a parameter. */
typedef struct slice {
    ses_tensor w;
    int64_t from, n;
} slice;

struct ses_optim {
    ses_store *store;
    ses_device *dev;
    const ses_optim_kind *kind;
    ses_optim_options opt;
    int64_t begin, end; /* elements of the store's flat buffers that this optimizer updates */
    ses_real **state;   /* [parameters, SES_OPTIM_BUFFERS]; NULL: not used, or of other elements */
    int64_t *total;     /* [parameters, SES_OPTIM_BUFFERS]: elements of the buffer on all ranks; 0: unused */
    int *group;
    int64_t *first_step; /* steps done when a parameter was first trained; its own steps count from there */
    ses_real *scratch;
    int64_t scratch_len;
    int64_t steps;
    int64_t average_from; /* steps before the average of the kind starts; < 0: not yet */
    ses_optim_call *call; /* [parameters]: arguments of the current step */
    slice *part;          /* [parameters]: what this optimizer updates of them */
};

const char *ses_optim_name(size_t i, const char **description)
{
    if (i >= SES_LEN(kinds)) return NULL;
    if (description) *description = kinds[i]->description;
    return kinds[i]->name;
}

static const char *name_at(const void *ctx, size_t i)
{
    (void)ctx;
    return ses_optim_name(i, NULL);
}

static const ses_optim_kind *find(const char *name, ses_err *e)
{
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (!name || !strcmp(kinds[i]->name, name)) return kinds[i];
    ses_fail_unknown(e, SES_EARG, "optimizer", (ses_string){ name, strlen(name) }, name_at, NULL);
    return NULL;
}

const ses_optim_kind *ses_optim_find(const char *name) { return find(name, NULL); }

bool ses_optim_defaults(const char *name, ses_optim_options *out, ses_err *e)
{
    const ses_optim_kind *k = find(name, e);
    if (!k) return false;
    *out = k->defaults;
    out->name = k->name;
    out->group[0].lr_scale = 1;
    return true;
}

/* ---- groups ---- */

int ses_group_by_decay(void *ctx, const ses_param *p)
{
    (void)ctx;
    return p->decay ? 0 : 1;
}

static bool begins(const char *name, const char *with) { return !strncmp(name, with, strlen(with)); }

/* The number of a layer in its parameter's name, as "3" in "layer.3.ffn" and "rnn.weight_ih_l3_reverse";
 * NULL: not part of a layer. */
static const char *layer_number(const char *name)
{
    if (begins(name, "layer.")) return name + strlen("layer.");
    if (!begins(name, "rnn.") && !begins(name, "forward.") && !begins(name, "backward.")) return NULL;
    const char *number = strstr(name, "_l");
    return number ? number + strlen("_l") : NULL;
}

/* The name without the prefix of a decoder. */
static const char *name_in_stack(const ses_param *p)
{
    const char *decoder = "decoder.";
    return begins(p->name, decoder) ? p->name + strlen(decoder) : p->name;
}

bool ses_param_in_layer(const ses_param *p) { return layer_number(name_in_stack(p)) != NULL; }

int64_t ses_param_level(const ses_param *p, int64_t layers)
{
    const char *name = name_in_stack(p);
    if (begins(name, "embed") || begins(name, "chars.")) return 0;
    const char *number = layer_number(name);
    if (!number) return layers + 1;
    int64_t i = strtoll(number, NULL, 10) + 1;
    return i < layers ? i : layers;
}

int64_t ses_layer_groups_frozen_at(const ses_layer_groups *l, int64_t epoch)
{
    int64_t frozen = l->layers + 1 - epoch;
    return frozen > l->min_frozen ? frozen : l->min_frozen;
}

int ses_group_by_layer(void *ctx, const ses_param *p)
{
    const ses_layer_groups *c = ctx;
    int64_t level = ses_param_level(p, c->layers);
    return level < c->frozen ? -1 : (int)(2 * level + (p->decay ? 0 : 1));
}

bool ses_optim_set_layer_groups(ses_optim_options *o, ses_layer_groups *ctx, double weight_decay,
                                double layer_decay, ses_err *e)
{
    if (ctx->layers < 0 || 2 * (ctx->layers + 2) > SES_MAX_GROUPS)
        return ses_fail(e, SES_EARG, "layer-wise learning rates: %lld layers, expected at most %d",
                        (long long)ctx->layers, SES_MAX_GROUPS / 2 - 2);
    for (int64_t l = 0; l < ctx->layers + 2; l++) {
        double scale = pow(layer_decay, (double)(ctx->layers + 1 - l));
        o->group[2 * l] = (ses_param_group){ scale, weight_decay };
        o->group[2 * l + 1] = (ses_param_group){ scale, 0 };
    }
    o->group_of = ses_group_by_layer;
    o->ctx = ctx;
    return true;
}

double ses_clip_scale(double norm, double max_norm)
{
    return max_norm > 0 ? fmin(1, max_norm / (norm + 1e-6)) : 1;
}

/* ---- state ---- */

static void state_layout(const ses_optim *o, const ses_param *p, const ses_tensor *w,
                         ses_optim_buffer b[SES_OPTIM_BUFFERS])
{
    o->kind->state_layout(&o->opt, p, w, b);
    if (o->kind->average_weight)
        b[SES_OPTIM_MAX_STATE] = (ses_optim_buffer){ "ax", ses_count(w) };
    else
        b[SES_OPTIM_MAX_STATE] = (ses_optim_buffer){ "ema", o->opt.ema_decay > 0 ? ses_count(w) : 0 };
}

static bool has_average(const ses_optim *o) { return o->kind->average_weight || o->opt.ema_decay > 0; }

/* The elements of parameter i that this optimizer updates: it all, a slice with one axis, or none. */
static slice slice_of(const ses_optim *o, size_t i)
{
    slice s = { .w = *ses_store_at(o->store, i)->tensor };
    int64_t at = ses_store_flat_offset(o->store, i), n = ses_count(&s.w);
    int64_t from = o->begin > at ? o->begin - at : 0, to = o->end < at + n ? o->end - at : n;
    if (to <= from) return (slice){ .n = 0 };
    s.from = from;
    s.n = to - from;
    if (s.n == n) return s;
    memset(s.w.dim, 0, sizeof s.w.dim);
    s.w.dim[0] = s.n;
    s.w.grad += from;
    if (s.w.master) s.w.master += from;
    s.w.data = (char *)s.w.data + (size_t)from * ses_dtype_size(s.w.dtype);
    return s;
}

/* Allocates the state of the slice of parameter i. */
static bool alloc_state(ses_optim *o, size_t i, ses_err *e)
{
    slice s = slice_of(o, i);
    ses_optim_buffer all[SES_OPTIM_BUFFERS] = { { 0 } }, here[SES_OPTIM_BUFFERS] = { { 0 } };
    const ses_param *p = ses_store_at(o->store, i);
    state_layout(o, p, p->tensor, all);
    if (s.n) state_layout(o, p, &s.w, here);
    for (size_t j = 0; j < SES_OPTIM_BUFFERS; j++) {
        size_t bytes = (size_t)here[j].n * sizeof(ses_real);
        ses_real **at = &o->state[SES_OPTIM_BUFFERS * i + j];
        o->total[SES_OPTIM_BUFFERS * i + j] = all[j].n;
        if (!bytes || *at) continue;
        if (!(*at = o->dev->mem->alloc(o->dev, bytes, e))) return false;
        o->dev->mem->zero(o->dev, *at, bytes);
    }
    return true;
}

/* Assigns parameter i to its group and allocates its state. */
static bool prepare(ses_optim *o, size_t i, int64_t *largest, int64_t *all, ses_err *e)
{
    const ses_param *p = ses_store_at(o->store, i);
    o->group[i] = p->role != SES_PARAM_TRAINED ? -1 : o->opt.group_of ? o->opt.group_of(o->opt.ctx, p) : 0;
    if (o->group[i] >= SES_MAX_GROUPS)
        return ses_fail(e, SES_EARG, "parameter \"%s\": group %d; expected less than %d", p->name,
                        o->group[i], SES_MAX_GROUPS);
    if (p->role != SES_PARAM_SHARED) p->tensor->requires_grad = o->group[i] >= 0;
    if (o->group[i] < 0) return true;
    int64_t n = slice_of(o, i).n;
    if (n > *largest) *largest = n;
    *all += n;
    if (o->first_step[i] < 0) o->first_step[i] = o->steps;
    return alloc_state(o, i, e);
}

bool ses_optim_regroup(ses_optim *o, ses_err *e)
{
    int64_t largest = 0, all = 0;
    for (size_t i = 0; i < ses_store_count(o->store); i++)
        if (!prepare(o, i, &largest, &all, e)) return false;
    if (o->kind->scratch_size) largest = o->kind->scratch_size(largest, all);
    if ((!o->kind->needs_scratch && !has_average(o)) || largest <= o->scratch_len) return true;
    ses_real *scratch = o->dev->mem->alloc(o->dev, (size_t)largest * sizeof *scratch, e);
    if (!scratch) return false;
    if (o->scratch) o->dev->mem->free(o->dev, o->scratch);
    o->scratch = scratch;
    o->scratch_len = largest;
    return true;
}

ses_optim *ses_optim_new(ses_store *s, const ses_optim_options *options, ses_err *e)
{
    return ses_optim_new_slice(s, options, 0, INT64_MAX, e);
}

ses_optim *ses_optim_new_slice(ses_store *s, const ses_optim_options *options, int64_t begin, int64_t end,
                               ses_err *e)
{
    size_t n = ses_store_count(s);
    const ses_optim_kind *kind = find(options->name, e);
    ses_optim *o = kind ? ses_alloc(sizeof *o, e) : NULL;
    if (!o) return NULL;
    o->store = s;
    o->dev = ses_store_device(s);
    o->kind = kind;
    o->opt = *options;
    o->begin = begin;
    o->end = end < ses_store_flat(s).n ? end : ses_store_flat(s).n;
    o->average_from = kind->average_weight && options->average_trigger > 0 ? -1 : 0;
    o->state = ses_alloc_array(SES_OPTIM_BUFFERS * n, sizeof *o->state, e);
    o->total = o->state ? ses_alloc_array(SES_OPTIM_BUFFERS * n, sizeof *o->total, e) : NULL;
    o->group = o->total ? ses_alloc_array(n, sizeof *o->group, e) : NULL;
    o->first_step = o->group ? ses_alloc_array(n, sizeof *o->first_step, e) : NULL;
    o->call = o->first_step ? ses_alloc_array(n, sizeof *o->call, e) : NULL;
    o->part = o->call ? ses_alloc_array(n, sizeof *o->part, e) : NULL;
    for (size_t i = 0; o->part && i < n; i++) o->first_step[i] = -1;
    if (o->part && ses_optim_regroup(o, e)) return o;
    ses_optim_free(o);
    return NULL;
}

void ses_optim_free(ses_optim *o)
{
    if (!o) return;
    for (size_t j = 0; o->state && j < SES_OPTIM_BUFFERS * ses_store_count(o->store); j++)
        if (o->state[j]) o->dev->mem->free(o->dev, o->state[j]);
    if (o->scratch) o->dev->mem->free(o->dev, o->scratch);
    ses_free(o->state);
    ses_free(o->total);
    ses_free(o->part);
    ses_free(o->group);
    ses_free(o->first_step);
    ses_free(o->call);
    ses_free(o);
}

/* Decay of an EMA: min(ema_decay, (1 + t) / (10 + t)), lower at first. */
static double ema_decay(const ses_optim_call *c)
{
    double t = (double)c->step;
    return c->step == 1 ? 0 : fmin(c->opt->ema_decay, (1 + t) / (10 + t));
}

/* average = d average + (1 - d) w */
static void update_average(const ses_optim *o, const ses_optim_call *c)
{
    ses_real *average = c->state[SES_OPTIM_MAX_STATE];
    int64_t n = ses_count(c->w);
    if (!average || (o->kind->average_weight && c->average_step < 1)) return;
    double d = o->kind->average_weight ? 1 - o->kind->average_weight(c) : ema_decay(c);
    o->dev->k_f32.scale(&o->dev->exec, (ses_dst){ average, false }, average, (ses_real)d, n);
    o->dev->k_f32.scale(&o->dev->exec, (ses_dst){ average, true }, ses_master_data(c->w), (ses_real)(1 - d),
                        n);
}

void ses_optim_swap_ema(ses_optim *o)
{
    if (!has_average(o) || o->average_from < 0 || o->steps <= o->average_from) return;
    for (size_t i = 0; i < ses_store_count(o->store); i++) {
        ses_real *average = o->state[SES_OPTIM_BUFFERS * i + SES_OPTIM_MAX_STATE];
        if (!average || o->group[i] < 0) continue;
        slice s = slice_of(o, i);
        size_t bytes = (size_t)s.n * sizeof *average;
        o->dev->mem->move(o->dev, o->scratch, ses_master_data(&s.w), bytes);
        o->dev->mem->move(o->dev, ses_master_data(&s.w), average, bytes);
        o->dev->mem->move(o->dev, average, o->scratch, bytes);
    }
    ses_store_sync_bf16_range(o->store, o->begin, o->end);
}

void ses_optim_average_from(ses_optim *o, int64_t steps)
{
    if (o->kind->average_weight) o->average_from = steps;
}

/* Steps of a parameter's average, the next one included; 0: it has not started. */
static int64_t average_step(const ses_optim *o, size_t i)
{
    int64_t from = o->average_from > o->first_step[i] ? o->average_from : o->first_step[i];
    return o->average_from < 0 ? 0 : o->steps - from;
}

void ses_optim_step(ses_optim *o, double lr, double grad_scale)
{
    size_t n = 0;
    o->steps++;
    for (size_t i = 0; i < ses_store_count(o->store); i++) {
        if (o->group[i] < 0) continue;
        o->part[i] = slice_of(o, i);
        if (!o->part[i].n) continue;
        o->call[n++] = (ses_optim_call){ .dev = o->dev,
                                         .opt = &o->opt,
                                         .scratch = o->scratch,
                                         .scratch_len = o->scratch_len,
                                         .param = ses_store_at(o->store, i),
                                         .w = &o->part[i].w,
                                         .state = &o->state[SES_OPTIM_BUFFERS * i],
                                         .lr = (lr < 0 ? o->opt.lr : lr) * o->opt.group[o->group[i]].lr_scale,
                                         .decay = o->opt.group[o->group[i]].weight_decay,
                                         .scale = grad_scale,
                                         .step = o->steps - o->first_step[i],
                                         .average_step = average_step(o, i) };
    }
    for (size_t i = 0; i < n && !o->kind->step_all; i++) o->kind->step(&o->call[i]);
    if (n && o->kind->step_all) o->kind->step_all(o->call, n);
    for (size_t i = 0; i < n; i++) update_average(o, &o->call[i]);
    if (!o->kind->step_all) ses_store_sync_bf16_range(o->store, o->begin, o->end);
}

void ses_optim_set_momentum(ses_optim *o, double momentum)
{
    double *field = (double *)(void *)((char *)&o->opt + o->kind->momentum);
    if (o->kind->momentum && *field != 0) *field = momentum;
}

int64_t ses_optim_steps(const ses_optim *o) { return o->steps; }
void ses_optim_set_steps(ses_optim *o, int64_t steps) { o->steps = steps; }

size_t ses_optim_state_count(const ses_optim *o)
{
    size_t n = 0;
    for (size_t j = 0; j < SES_OPTIM_BUFFERS * ses_store_count(o->store); j++) n += o->total[j] > 0;
    return n;
}

ses_optim_state ses_optim_state_at(const ses_optim *o, size_t i)
{
    size_t j = 0;
    for (;; j++) /* the i-th used buffer */
        if (o->total[j] && i-- == 0) break;
    const ses_param *p = ses_store_at(o->store, j / SES_OPTIM_BUFFERS);
    slice s = slice_of(o, j / SES_OPTIM_BUFFERS);
    ses_optim_buffer b[SES_OPTIM_BUFFERS] = { { 0 } };
    state_layout(o, p, o->state[j] ? &s.w : p->tensor, b);
    size_t which = j % SES_OPTIM_BUFFERS;
    return (ses_optim_state){ .param = p->name,
                              .kind = b[which].kind,
                              .data = o->state[j],
                              .n = o->state[j] ? b[which].n : 0,
                              .offset = o->state[j] ? s.from : 0,
                              .total = o->total[j] };
}
