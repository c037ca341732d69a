// Zero-shot classification: labels written by the user.

import { h, percent } from './dom.js';
import { bars } from './widgets.js';
import { cli, inferenceClient } from './snippets.js';
import { hasKey } from './api.js';
import { FieldError } from './context.js';

export default {
  id: 'zero-shot',
  title: 'Zero-shot',
  group: 'Try it',
  tasks: ['zero-shot-classification'],
  bundled: 'sesame-nli',
  compare: true,
  models: { model: ['zero-shot-classification'] },
  summary: 'Classify with any labels: a model of inference judges “This example is LABEL.”',
  placeholder: 'Enter a text and at least one label.',
  state: {
    text: 'The team scored twice in the last ten minutes and won the cup.',
    labels: ['sports', 'politics', 'cooking'],
    multi: false,
    template: 'This example is {}.',
  },
  build(ctx) {
    ctx.textField('text', 'Text', { rows: 4 });
    ctx.chipsField('labels', 'Labels', {
      hint: 'Enter or a comma adds a label; Backspace removes the last one.',
    });
    ctx.switchField('multi', 'Several labels may be true');
    ctx.textField('template', 'Hypothesis', { rows: 1, hint: '{} stands for the label.' });
    ctx.modelField('model', ['zero-shot-classification']);
    ctx.examples([
      [
        'Sports',
        {
          text: 'The team scored twice in the last ten minutes and won the cup.',
          labels: ['sports', 'politics', 'cooking'],
          multi: false,
        },
      ],
      [
        'Mood',
        {
          text: 'A woman laughs while she dances with her friends.',
          labels: ['happy', 'sad', 'angry'],
          multi: false,
        },
      ],
      [
        'Scene',
        {
          text: 'Two boys kick a ball on the beach while a dog runs after them.',
          labels: ['outdoors', 'animals', 'children', 'work'],
          multi: true,
        },
      ],
    ]);
  },
  fetch(ctx) {
    const text = ctx.need('text', 'Enter a text.');
    const { labels, multi, template } = ctx.state;
    if (!labels.length) throw new FieldError('labels', 'Add at least one label.');
    if (!template.includes('{}'))
      throw new FieldError('template', 'The hypothesis needs {} at the position of the label.');
    const parameters = { candidate_labels: labels, multi_label: multi, hypothesis_template: template };
    const path = `/models/${encodeURIComponent(ctx.state.model)}/pipeline/zero-shot-classification`;
    return ctx.pipeline('zero-shot-classification', text, parameters, {
      python: inferenceClient(
        path,
        'zero_shot_classification',
        [
          ['', text],
          ['candidate_labels', labels],
          ['multi_label', multi],
          ['hypothesis_template', template],
        ],
        hasKey(),
      ),
      cli: cli(
        'zero-shot-classification',
        ctx.state.model,
        [
          ['--candidate-labels', labels.join(',')],
          ['--multi-label', multi],
          ['--hypothesis-template', template],
        ],
        [text],
      ),
    });
  },
  render(ctx, data) {
    const rows = Array.isArray(data)
      ? data
      : data.labels.map((label, i) => ({ label, score: data.scores[i] }));
    const sorted = [...rows].sort((a, b) => b.score - a.score);
    const yes = sorted.filter((r) => r.score >= 0.5);
    return [
      ctx.state.multi
        ? h(
            'p',
            { class: 'headline' },
            yes.length ? yes.map((r) => r.label).join(', ') : 'none of the labels',
          )
        : h(
            'p',
            { class: 'headline' },
            sorted[0].label,
            h('span', { class: 'headline-score' }, percent(sorted[0].score)),
          ),
      bars(
        'Labels',
        sorted.map((r, i) => ({
          label: r.label,
          value: r.score,
          strong: ctx.state.multi ? r.score >= 0.5 : i === 0,
        })),
      ),
    ];
  },
};
