// Classification: the labels of a text, or of a pair of texts.

import { h, percent } from './dom.js';
import { bars, empty } from './widgets.js';
import { cli, inferenceClient, urllib } from './snippets.js';
import { hasKey } from './api.js';

export const isInference = (model) => (model.labels || []).some((label) => /entail/i.test(label));

// InferenceClient takes one text; a pair is a plain request.
function pythonOf(ctx, path, body, pair) {
  if (pair) return urllib({ method: 'POST', path, body }, hasKey());
  return inferenceClient(
    path,
    'text_classification',
    [
      ['', ctx.state.text],
      ['top_k', body.parameters.top_k],
    ],
    hasKey(),
  );
}

export default {
  id: 'classify',
  title: 'Classify',
  group: 'Try it',
  tasks: ['text-classification'],
  bundled: 'sesame-sentiment',
  compare: true,
  models: { model: ['text-classification'] },
  prefer: { model: (list) => list.find((m) => !isInference(m)) || list[0] },
  summary: 'The labels of a text or of a pair of texts, with their probabilities.',
  placeholder: 'Enter a text to see its labels.',
  state: { text: 'A warm, funny film that never loses its way.', pair: '' },
  build(ctx) {
    ctx.textField('text', 'Text', { rows: 4 });
    ctx.textField('pair', 'Second text (optional)', {
      rows: 2,
      hint: 'For models of pairs: the text is a premise, this a hypothesis.',
    });
    ctx.modelField('model', ['text-classification']);
    const inference = ctx.modelsFor(['text-classification']).find(isInference);
    const plain = ctx.modelsFor(['text-classification']).find((m) => !isInference(m));
    const list = [];
    if (plain) {
      list.push(
        ['Praise', { text: 'A warm, funny film that never loses its way.', pair: '', model: plain.id }],
        [
          'Complaint',
          { text: 'Two hours of my life that I will never get back.', pair: '', model: plain.id },
        ],
      );
    }
    if (inference) {
      list.push(
        [
          'Inference',
          {
            text: 'A man is playing a guitar on a stage.',
            pair: 'Someone is making music.',
            model: inference.id,
          },
        ],
        [
          'Contradiction',
          { text: 'A man is playing a guitar on a stage.', pair: 'The man is asleep.', model: inference.id },
        ],
      );
    }
    ctx.examples(list);
  },
  async fetch(ctx) {
    const text = ctx.need('text', 'Enter a text.');
    const pair = ctx.state.pair.trim();
    const parameters = { top_k: Math.max(2, Math.min(50, (ctx.model().labels || []).length || 10)) };
    const inputs = pair ? { text, text_pair: pair } : text;
    const path = `/models/${encodeURIComponent(ctx.state.model)}/pipeline/text-classification`;
    const data = await ctx.pipeline('text-classification', inputs, parameters, {
      python: pythonOf(ctx, path, { inputs, parameters }, pair),
      cli: cli(
        'text-classification',
        ctx.state.model,
        [
          ['--top-k', 'all'],
          ['--text-pair', pair],
        ],
        [text],
      ),
    });
    return Array.isArray(data[0]) ? data[0] : data;
  },
  render(_ctx, rows) {
    if (!rows.length) return empty('No label was returned.');
    const sorted = [...rows].sort((a, b) => b.score - a.score);
    return [
      h(
        'p',
        { class: 'headline' },
        sorted[0].label,
        h('span', { class: 'headline-score' }, percent(sorted[0].score)),
      ),
      bars(
        'Labels',
        sorted.map((r, i) => ({ label: r.label, value: r.score, strong: i === 0 })),
      ),
    ];
  },
};
