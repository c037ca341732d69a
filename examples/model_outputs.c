/* Run a model on a text and print its outputs by name: model_outputs MODEL TEXT [OUTPUT]. MODEL is a folder
 * or the name of a bundled model; OUTPUT ("logits", "hidden_states.1") is printed per token, the default
 * lists all. */
#include "sesame/sesame.h"

#include <stdio.h>
#include <stdlib.h>

static void list(const ses_outputs *out)
{
    for (size_t i = 0; i < out->n; i++)
        printf("%-20s [%lld, %lld]\n", out->item[i].name, (long long)ses_rows(out->item[i].tensor),
               (long long)ses_cols(out->item[i].tensor));
}

/* The first four columns of each row. */
static bool print(const ses_output *o, ses_tape *t)
{
    int64_t rows = ses_rows(o->tensor), cols = ses_cols(o->tensor);
    float *x = malloc((size_t)(rows * cols) * sizeof *x);
    bool ok = x && ses_tape_read(t, o->tensor, x); /* waits for the device */
    for (int64_t i = 0; ok && i < rows; i++) {
        for (int64_t j = 0; j < cols && j < 4; j++) printf(" %8.4f", x[i * cols + j]);
        puts(cols > 4 ? " ..." : "");
    }
    free(x);
    return ok;
}

static bool run(const ses_model *m, const ses_encoding *text, const char *name, ses_tape *t, ses_err *e)
{
    int32_t cu_seqlens[] = { 0, (int32_t)text->n }; /* a batch of one sequence */
    ses_batch b = { .seqs = 1, .tokens = (int64_t)text->n, .cu_seqlens = cu_seqlens, .ids = text->id };
    ses_output_request request = { .logits = true, .hidden_states = true };
    ses_outputs out;
    if (!ses_model_forward(m, t, &b, &request, &out, e)) return false;
    if (!name) return list(&out), true;
    const ses_output *o = ses_outputs_find(&out, name);
    if (!o) return ses_fail(e, SES_EARG, "no output \"%s\"", name);
    return print(o, t) || ses_tape_ok(t, e);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: %s MODEL TEXT [OUTPUT]\n", argv[0]);
        return 2;
    }
    ses_err e = { 0 };
    char *dir = ses_model_resolve(argv[1], NULL, &e);
    ses_device *dev = dir ? ses_device_open("cpu", NULL, &e) : NULL;
    ses_model *m = dev ? ses_model_open(dir, dev, NULL, &e) : NULL;
    ses_tokenizer *tokenizer = m ? ses_tokenizer_open(dir, &e) : NULL;
    ses_encode_ctx *tokens = tokenizer ? ses_encode_ctx_new(tokenizer, &e) : NULL;
    ses_tape *t = tokens ? ses_tape_new(dev, NULL, &e) : NULL;
    bool ok = t && ses_encode(tokens, &(ses_input){ .text = ses_str(argv[2]) }, NULL, &e) &&
              run(m, ses_encode_ctx_result(tokens), argv[3], t, &e);
    if (!ok) fprintf(stderr, "%s\n", e.msg);
    ses_tape_free(t);
    ses_encode_ctx_free(tokens);
    ses_tokenizer_free(tokenizer);
    ses_model_free(m);
    ses_device_free(dev);
    free(dir);
    return ok ? 0 : 1;
}
