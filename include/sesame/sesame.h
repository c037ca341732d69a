/* All of Sesame. C++ programs include this one: the others declare plain C. */
#ifndef SESAME_SESAME_H
#define SESAME_SESAME_H

#ifdef __cplusplus
extern "C" {
#endif

#include "sesame/batch.h"
#include "sesame/batch_source.h"
#include "sesame/cache.h"
#include "sesame/corpus.h"
#include "sesame/dataset.h"
#include "sesame/device.h"
#include "sesame/err.h"
#include "sesame/examples.h"
#include "sesame/generate.h"
#include "sesame/json.h"
#include "sesame/logreg.h"
#include "sesame/metric.h"
#include "sesame/model.h"
#include "sesame/ops.h"
#include "sesame/optim.h"
#include "sesame/passages.h"
#include "sesame/pipeline.h"
#include "sesame/safetensors.h"
#include "sesame/schedule.h"
#include "sesame/scorer.h"
#include "sesame/sentence.h"
#include "sesame/store.h"
#include "sesame/table.h"
#include "sesame/tape.h"
#include "sesame/tensor.h"
#include "sesame/tokenizer.h"
#include "sesame/trainer.h"
#include "sesame/training.h"
#include "sesame/types.h"

#ifdef __cplusplus
}
#endif

#endif
