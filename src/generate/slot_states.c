/* The states of all slots: reference counts, copies, passes. */
#include "slot_states.h"

#include "base/alloc.h"

const ses_slot_kind *ses_slot_kind_of(const ses_model *m)
{
    static const ses_slot_kind *const kinds[] = {
#define SES_SLOT_KIND(name) &ses_slot_kind_##name,
#include "slot_kinds.def"
#undef SES_SLOT_KIND
    };
    for (size_t i = 0; i < SES_LEN(kinds); i++)
        if (kinds[i]->applies(m)) return kinds[i];
    return NULL;
}

ses_slot_states *ses_slot_states_new(const ses_model *m, int64_t slots, ses_err *e)
{
    const ses_slot_kind *kind = ses_slot_kind_of(m);
    if (!kind) {
        ses_fail(e, SES_EUNSUPPORTED, "%s keeps no states of earlier tokens", ses_model_class_name(m));
        return NULL;
    }
    ses_slot_states *s = !kind->check || kind->check(m, e) ? ses_alloc(sizeof *s, e) : NULL;
    if (!s) return NULL;
    *s = (ses_slot_states){ .kind = kind, .model = m, .slots = slots };
    s->state = ses_alloc_array((size_t)slots, sizeof(ses_slot_state *), e);
    if (s->state) return s;
    ses_slot_states_free(s);
    return NULL;
}

void *ses_slot_state_new(size_t size, size_t n, ses_err *e)
{
    size_t bytes;
    if (!ses_mul_size(n, sizeof(ses_real), &bytes) || !ses_add_size(bytes, size, &bytes)) {
        ses_fail(e, SES_ENOMEM, "a state of %zu numbers is too large", n);
        return NULL;
    }
    ses_slot_state *t = ses_alloc(bytes, e);
    if (t) t->refcount = 1;
    return t;
}

ses_slot_state *ses_slot_state_ref(ses_slot_state *t)
{
    if (t) t->refcount++;
    return t;
}

void ses_slot_state_release(ses_slot_state *t)
{
    while (t && !--t->refcount) {
        ses_slot_state *shared = t->shared;
        ses_free(t);
        t = shared;
    }
}

void ses_slot_states_put(ses_slot_states *s, int64_t slot, ses_slot_state *t)
{
    ses_slot_state_release(s->state[slot]);
    s->state[slot] = t;
}

void ses_slot_states_clear(ses_slot_states *s, int64_t slot) { ses_slot_states_put(s, slot, NULL); }

void ses_slot_states_free(ses_slot_states *s)
{
    if (!s) return;
    for (int64_t i = 0; s->state && i < s->slots; i++) ses_slot_states_clear(s, i);
    ses_free(s->state);
    ses_arena_free(&s->work);
    ses_batch_builder_free(&s->in);
    ses_free(s);
}

bool ses_slot_states_reorder(ses_slot_states *s, int64_t n, const int32_t *to, const int32_t *from,
                             ses_err *e)
{
    ses_slot_state **moved = ses_alloc_array((size_t)n, sizeof(ses_slot_state *), e);
    if (!moved) return false;
    for (int64_t i = 0; i < n; i++) moved[i] = ses_slot_state_ref(s->state[from[i]]);
    for (int64_t i = 0; i < n; i++) ses_slot_states_put(s, to[i], moved[i]);
    ses_free(moved);
    return true;
}

const ses_batch *ses_slot_states_begin_pass(ses_slot_states *s, const ses_batch *new_tokens, ses_err *e)
{
    ses_arena_reset(&s->work);
    return s->kind->begin_pass(s, new_tokens, e) ? &s->batch : NULL;
}

bool ses_slot_states_end_pass(ses_slot_states *s, ses_tape *tape, const ses_outputs *out, ses_err *e)
{
    return s->kind->end_pass(s, tape, out, e);
}

const ses_real *ses_slot_states_read(ses_slot_states *s, ses_tape *tape, const ses_outputs *out,
                                     const char *name, int64_t n, ses_err *e)
{
    const ses_output *found = ses_outputs_find(out, name);
    if (!found || ses_count(found->tensor) != n) {
        ses_fail(e, SES_EARG, "the model has no output %s of %lld numbers", name, (long long)n);
        return NULL;
    }
    ses_real *x = ses_arena_array(&s->work, (size_t)n, sizeof *x, e);
    return x && (ses_tape_read(tape, found->tensor, x) || ses_tape_ok(tape, e)) ? x : NULL;
}
