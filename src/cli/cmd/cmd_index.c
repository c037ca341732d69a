/* index: builds or updates the search index of a text file. */
#include "cli/pipeline/index_shards.h"
#include "cli/ui/show_values.h"

static const ses_opt opt[] = {
    SES_OPT_TEXT(ses_text_index_args, file, "file", "FILE", "file of texts, instead of the argument",
                 .letter = 'f'),
    SES_OPT_INCLUDE(ses_text_index_args, threads, ses_text_index_options),
    SES_OPT_SHARD(ses_text_index_args, shard),
    SES_OPT_FLAG(ses_text_index_args, merge, "merge",
                 "the arguments are the indexes of all shards, in order: merge them to -o INDEX"),
};
_Static_assert(offsetof(ses_text_index_args, threads) == 0, "the options fill the whole struct");

static bool print_json(const ses_text_index *t, ses_err *e)
{
    const ses_vector_index_info *info = ses_vector_index_info_of(t->index);
    ses_json_writer *w = ses_json_writer_new(0, e);
    ses_json_begin_object(w);
    ses_json_member_string(w, "index", t->path);
    ses_json_member_int(w, "texts", info->count);
    ses_json_member_int(w, "dim", info->dim);
    ses_json_member_string(w, "dtype", info->dtype == SES_I8 ? "int8" : "f16");
    ses_json_member_int(w, "embedded", t->embedded);
    ses_json_member_int(w, "reused", t->reused);
    ses_json_member_bool(w, "written", t->is_written);
    ses_json_end_object(w);
    return ses_json_writer_print(w, e);
}

static void show(const ses_call *c, const ses_text_index *t)
{
    const ses_vector_index_info *info = ses_vector_index_info_of(t->index);
    char a[SES_NUMBER_TEXT], b[SES_NUMBER_TEXT];
    ses_put_escaped(stdout, t->path);
    printf(": %s texts, %lld numbers each, %s", ses_grouped_text(a, info->count), (long long)info->dim,
           info->dtype == SES_I8 ? "int8" : "f16");
    if (t->is_written)
        printf("; %s embedded, %s reused\n", ses_grouped_text(a, t->embedded),
               ses_grouped_text(b, t->reused));
    else
        printf("; up to date\n");
    if (t->truncated && !c->quiet)
        fprintf(stderr, "sesame: %s texts were truncated to %lld tokens\n", ses_grouped_text(a, t->truncated),
                (long long)ses_pipeline_max_seq_len(t->embed));
}

static bool run(ses_call *c, ses_err *e)
{
    const ses_text_index_args *a = c->args;
    ses_text_index t = { 0 };
    bool complete = false, ok;
    if (a->shard && a->encoding)
        return ses_fail(e, SES_EUSAGE,
                        "--shard divides the file by bytes: convert it to UTF-8 first, without --encoding");
    if (a->merge && a->shard) return ses_fail(e, SES_EUSAGE, "--merge and --shard exclude each other");
    int n_files = c->n_operands + (a->file != NULL);
    const char *file = a->file ? a->file : c->operands[0];
    if (a->merge ? a->file || !n_files : n_files != 1)
        return ses_fail(e, SES_EUSAGE, "expected %s, not %d",
                        a->merge ? "the indexes of the shards as arguments" : "one FILE", n_files);
    if (a->merge)
        ok = ses_index_merge(&t, a, c->operands, (size_t)c->n_operands, e);
    else if (a->shard)
        ok = ses_index_build_shard(&t, c, a, file, &complete, e);
    else
        ok = ses_text_index_open(&t, c, a, file, e);
    if (complete) return ok;
    if (ok && a->json) ok = print_json(&t, e);
    if (ok && !a->json) show(c, &t);
    ses_text_index_close(&t);
    return ok;
}

static const ses_usage_example examples[] = {
    { "sesame index notes.txt", "write notes.txt.sesame-index, one vector per line" },
    { "sesame index --shard 0/4 -o part0 notes.txt", "the first quarter of the lines" },
    { "sesame index --merge -o notes.txt.sesame-index part0 part1 part2 part3", "all four" },
    { "sesame index --column abstract --dtype int8 -o papers.index papers.csv", "a column, in 8 bits" },
    { 0 },
};

const ses_command ses_command_index = {
    .name = "index",
    .usage = "FILE | --merge PART...",
    .summary = "build a search index of texts",
    .description =
        "Builds or updates the index of a file of texts for 'sesame search': the embeddings of its lines, of "
        "a "
        "column, or of a key of JSON lines. Blank texts are left out. Vectors of unchanged texts are reused. "
        "The index is replaced when it is complete; an interrupted command leaves the old one.\n\n"
        "--shard I/N indexes a part of the file; --merge joins all N parts to the index that one process "
        "builds.",
    .examples = examples,
    .opt = opt,
    .n_opt = SES_LEN(opt),
    .args_size = sizeof(ses_text_index_args),
    .max_operands = -1,
    .default_model_of = "embed",
    .run = run,
};
