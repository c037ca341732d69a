/* Continue a conversation: complete MODEL_DIR. Each input line is appended to the text so far; the
 * model's continuation appears token by token. Ctrl-D ends. */
#include "sesame/sesame.h"

#include <stdio.h>

typedef struct conversation {
    char text[8192]; /* all of it */
    size_t n;
} conversation;

static void append(conversation *t, const char *piece, size_t n)
{
    if (n > sizeof t->text - 1 - t->n) n = sizeof t->text - 1 - t->n;
    memcpy(t->text + t->n, piece, n);
    t->text[t->n += n] = 0;
}

static bool print_piece(void *ctx, const char *piece, size_t n)
{
    (void)ctx;
    fwrite(piece, 1, n, stdout);
    return fflush(stdout) == 0;
}

static bool reply(ses_pipeline *p, conversation *t, const char *line, ses_err *e)
{
    append(t, line, strlen(line));
    const ses_result *r = ses_pipeline_run(p, &(ses_item){ .text = { t->text, t->n } }, e);
    if (!r) return false;
    append(t, r->row[0].text.p, r->row[0].text.n);
    puts("");
    return true;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL_DIR\n", argv[0]);
        return 2;
    }
    const ses_setting settings[] = { { "do_sample", "true" },
                                     { "top_p", "0.9" },
                                     { "max_new_tokens", "40" },
                                     { "return_full_text", "false" },
                                     { 0 } };
    ses_err e = { 0 };
    conversation t = { 0 };
    char line[2048];
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_pipeline *p = dev ? ses_pipeline_open("text-generation", argv[1], dev, settings, &e) : NULL;
    bool ok = p != NULL;
    if (ok) ses_pipeline_set_stream(p, print_piece, NULL);
    while (ok && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\r\n")] = 0;
        ok = reply(p, &t, line, &e);
    }
    if (!ok) fprintf(stderr, "%s\n", e.msg);
    ses_pipeline_free(p);
    ses_device_free(dev);
    return ok ? 0 : 1;
}
