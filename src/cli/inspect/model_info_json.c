/* Prints the facts about a model as JSON. */
#include "cli/ui/show_values.h"
#include "flops_info.h"
#include "model/model_desc.h"
#include "model_info.h"

static void put_config(ses_json_writer *w, const ses_model *m)
{
    const ses_config *c = &m->c;
    ses_json_member_object(w, "sizes");
    ses_json_member_int(w, "vocabulary", c->vocab);
    ses_json_member_int(w, "hidden", c->hidden);
    ses_json_member_int(w, "layers", m->stack[0].depth);
    ses_json_member_int(w, "heads", m->stack[0].heads);
    ses_json_member_int(w, "feed_forward", m->stack[0].ffn);
    if (m->stack[1].layer) ses_json_member_int(w, "decoder_layers", m->stack[1].depth);
    ses_json_member_int(w, "longest", ses_model_max_tokens(m));
    ses_json_member_int(w, "segments", c->embed.segments);
    ses_json_member_string(w, "activation", ses_act_name(c->ffn.act));
    ses_json_end_object(w);
    ses_json_member_array(w, "labels");
    for (int64_t k = 0; k < c->labels && ses_model_label_name(m, k); k++)
        ses_json_put_string(w, ses_model_label_name(m, k));
    ses_json_end_array(w);
}

static void put_heads(ses_json_writer *w, const ses_class *k)
{
    ses_json_member_array(w, "heads");
    for (size_t h = 0; h < SES_LEN(k->head) && k->head[h].head; h++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", k->head[h].head->name);
        ses_json_member_string(w, "does", k->head[h].head->description);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

static void put_sentence(ses_json_writer *w, const ses_sentence *s)
{
    char one[160];
    ses_json_member_object(w, "sentence");
    ses_json_member_array(w, "modules");
    for (size_t k = 0; k < ses_sentence_module_count(s); k++)
        ses_json_put_string(w, ses_sentence_describe(s, k, one, sizeof one));
    ses_json_end_array(w);
    ses_json_member_int(w, "width", ses_sentence_width(s));
    ses_json_member_int(w, "longest", ses_sentence_max_tokens(s));
    ses_json_member_string(w, "similarity", ses_sentence_similarity(s));
    ses_json_member_object(w, "prompts");
    for (size_t k = 0; k < ses_sentence_prompt_count(s); k++) {
        const char *name = ses_sentence_prompt_name(s, k);
        ses_json_member_string(w, name, ses_sentence_prompt(s, name));
    }
    ses_json_end_object(w);
    ses_json_end_object(w);
}

static void put_parts(ses_json_writer *w, const ses_model_info *i)
{
    int64_t total = i->parameters;
    ses_json_member_object(w, "parameters");
    ses_json_member_int(w, "total", total);
    ses_json_member_array(w, "parts");
    for (size_t p = 0; p < i->n_parts; p++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", i->part[p].name);
        ses_json_member_int(w, "count", i->part[p].elements);
        ses_json_member_real(w, "share", (double)i->part[p].elements / (double)total);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_end_object(w);
}

static void put_memory(ses_json_writer *w, const ses_model_info *i)
{
    const ses_model_info_memory *m = &i->memory;
    ses_json_member_object(w, "memory");
    ses_json_member_int(w, "tokens", i->tokens);
    ses_json_member_int(w, "mapped_bytes", (int64_t)m->mapped);
    ses_json_member_int(w, "converted_bytes", (int64_t)m->copied);
    ses_json_member_int(w, "packed_bytes", (int64_t)m->packed);
    ses_json_member_int(w, "activation_bytes", (int64_t)m->activations);
    ses_json_member_int(w, "training_bytes", (int64_t)m->training);
    ses_json_end_object(w);
}

static void put_files(ses_json_writer *w, const ses_model_info *i)
{
    if (i->model) ses_json_member_string(w, "dtype", ses_dtype_name(ses_model_dtype(i->model)));
    ses_json_member_object(w, "dtypes");
    for (int d = 0; d < SES_DTYPE_COUNT; d++)
        if (i->elements[d]) ses_json_member_int(w, ses_dtype_name((ses_dtype)d), i->elements[d]);
    ses_json_end_object(w);
    ses_json_member_array(w, "files");
    for (size_t f = 0; f < i->n_files; f++) {
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", i->file[f].name);
        ses_json_member_int(w, "bytes", (int64_t)i->file[f].bytes);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
    ses_json_member_array(w, "tokenizer_files");
    for (size_t k = 0; k < i->n_tokenizer; k++) ses_json_put_string(w, i->tokenizer[k]);
    ses_json_end_array(w);
    ses_json_member_int(w, "tokenizer_size", i->tokenizer_size);
}

static void put_tensors(ses_json_writer *w, const ses_model_info *i)
{
    ses_json_member_array(w, "tensors");
    for (size_t k = 0; k < ses_safetensors_count(i->weights); k++) {
        const ses_tensor_entry *x = ses_safetensors_at(i->weights, k);
        const ses_tensor_stats *s = &i->stats[k];
        ses_json_begin_object(w);
        ses_json_member_string(w, "name", x->name);
        ses_json_member_string(w, "dtype", ses_dtype_name(x->dtype));
        ses_json_member_array(w, "shape");
        for (int d = 0; d < x->rank; d++) ses_json_put_int(w, x->dim[d]);
        ses_json_end_array(w);
        ses_json_member_string(w, "file", x->file);
        ses_json_member_real(w, "min", s->min); /* infinite without a finite value: written as null */
        ses_json_member_real(w, "max", s->max);
        ses_json_member_real(w, "norm", s->norm);
        ses_json_member_int(w, "nan", s->nan);
        ses_json_member_int(w, "inf", s->infinite);
        ses_json_end_object(w);
    }
    ses_json_end_array(w);
}

bool ses_model_info_print_json(const ses_model_info *i, bool tensors, ses_err *e)
{
    ses_json_writer *w = ses_json_writer_new(2, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "path", i->path);
    ses_json_member_bool(w, "supported", i->model != NULL);
    if (i->model) {
        ses_json_member_string(w, "model_type", ses_model_type(i->model));
        ses_json_member_string(w, "class", ses_model_class_name(i->model));
        put_heads(w, i->model->class);
        if (i->sentence) put_sentence(w, i->sentence);
        put_config(w, i->model);
        ses_model_info_put_forms(i->model, w);
        put_parts(w, i);
        put_memory(w, i);
        ses_json_member_real(w, "flops_per_token", ses_flops_per_token(i->model, i->tokens));
        ses_json_member_list(w, "not_used", ses_model_unexpected_keys(i->model));
    } else {
        ses_json_member_string(w, "problem", i->problem.msg);
    }
    put_files(w, i);
    if (tensors) put_tensors(w, i);
    if (i->base) ses_json_member_string(w, "base", i->base);
    ses_json_member_bool(w, "finite", ses_tensor_stats_check_finite(i->weights, i->stats, NULL));
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}
