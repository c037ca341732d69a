// The panels, in the order of the list at the left. A new panel is a module and a line here.

import classify from './panel_classify.js';
import fillMask from './panel_fill_mask.js';
import zeroShot from './panel_zero_shot.js';
import entities from './panel_entities.js';
import answer from './panel_answer.js';
import batch from './panel_batch.js';
import models from './panel_models.js';
import server from './panel_server.js';
import search from './panel_search.js';
import similarity from './panel_similarity.js';
import map from './panel_map.js';
import write from './panel_write.js';
import summarize from './panel_summarize.js';
import translate from './panel_translate.js';
import tokenizer from './panel_tokenizer.js';
import attention from './panel_attention.js';
import explain from './panel_explain.js';
import lens from './panel_lens.js';

export const panels = [
  classify,
  fillMask,
  zeroShot,
  entities,
  answer,
  batch,
  models,
  server,
  search,
  similarity,
  map,
  write,
  summarize,
  translate,
  tokenizer,
  attention,
  explain,
  lens,
];
