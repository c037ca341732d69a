/* Answer a question from a text: answer_question MODEL_DIR QUESTION CONTEXT */
#include "sesame/sesame.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: %s MODEL_DIR QUESTION CONTEXT\n", argv[0]);
        return 2;
    }
    ses_err e = { 0 };
    ses_setting set[] = { { "top_k", "3" }, { "handle_impossible_answer", "true" }, { 0 } };
    ses_device *dev = ses_device_open("cpu", NULL, &e);
    ses_pipeline *p = dev ? ses_pipeline_open("question-answering", argv[1], dev, set, &e) : NULL;
    ses_item item = { .text = ses_str(argv[2]), .pair = ses_str(argv[3]) };
    const ses_result *r = p ? ses_pipeline_run(p, &item, &e) : NULL;
    for (size_t i = 0; r && i < r->n; i++)
        printf("%.4f  %s\n", r->row[i].score, r->row[i].text.n ? r->row[i].text.p : "(no answer)");
    if (!r) fprintf(stderr, "%s\n", e.msg);
    ses_pipeline_free(p);
    ses_device_free(dev);
    return r ? 0 : 1;
}
