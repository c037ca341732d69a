/* All stable headers of Sesame. A complete program:
 *
 *     #include <sesame/sesame.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         ses_err e = { 0 };
 *         ses_device *dev = ses_device_open("cpu", NULL, &e);
 *         ses_pipeline *p = dev ? ses_pipeline_open("fill-mask", "sesame-small", dev, NULL, &e) : NULL;
 *         ses_item item = { .text = ses_str("The capital of France is [MASK].") };
 *         const ses_result *r = p ? ses_pipeline_run(p, &item, &e) : NULL;
 *         for (size_t i = 0; r && i < r->n; i++) printf("%s %.3f\n", r->row[i].word.p, r->row[i].score);
 *         if (!r) fprintf(stderr, "%s\n", e.msg);
 *         ses_pipeline_free(p);
 *         ses_device_free(dev);
 *         return !r;
 *     }
 *
 * Conventions of all headers:
 * - Ownership: the caller frees what _new or _open returns with _free, which accepts NULL; values returned by
 *   getters are borrowed; results of ops live until their tape is reset.
 * - Errors: a function that can fail returns bool or a pointer and takes ses_err *e last, which may be NULL.
 *   It returns false or NULL and fills e. The library never prints, exits or aborts on outside input.
 * - Threads: open devices, models and tokenizers are read-only and may be shared. An object that is modified
 *   (tape, cache, pipeline, trainer) belongs to one thread at a time.
 *
 * Each header may also be included alone, from C and from C++. The headers in sesame/unstable (tapes, ops,
 * optimizers, trainers, tables) may change in any release; programs include them by name. docs/API.md lists
 * all headers. */
#ifndef SESAME_SESAME_H
#define SESAME_SESAME_H

#include "sesame/base.h"
#include "sesame/examples.h"
#include "sesame/finetune.h"
#include "sesame/generate.h"
#include "sesame/hooks.h"
#include "sesame/json.h"
#include "sesame/metric.h"
#include "sesame/model.h"
#include "sesame/pipeline.h"
#include "sesame/pretrain.h"
#include "sesame/safetensors.h"
#include "sesame/sentence.h"
#include "sesame/tokenizer.h"
#include "sesame/training.h"
#include "sesame/vectors.h"

#endif
