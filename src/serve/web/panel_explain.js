// Explain: how much each word contributes to a label.

import { cli } from './snippets.js';
import { figure, notes } from './figures.js';

const methods = [
  ['ig', 'Integrated gradients'],
  ['input-gradient', 'Gradient times input'],
  ['gradient', 'Gradient'],
  ['occlude', 'Occlusion: each word hidden'],
  ['value-zero', 'Value zeroing'],
  ['value-zero-score', 'Value zeroing of the score'],
];

export default {
  id: 'explain',
  title: 'Explain',
  group: 'Look inside',
  tasks: ['text-classification'],
  bundled: 'sesame-sentiment',
  models: { model: ['text-classification'] },
  summary: 'How much each word contributes to a label. Blue words speak for it, orange words against it.',
  placeholder: 'Enter a text to see which words matter.',
  state: { text: 'A warm, funny film, even if the end is a little dull.', label: '', method: 'ig' },
  build(ctx) {
    ctx.textField('text', 'Text', { rows: 3 });
    const row = ctx.row();
    ctx.selectField('method', 'Method', methods, { into: row });
    ctx.textField('label', 'Label (default: the likeliest)', { rows: 1, into: row });
    ctx.modelField('model', ['text-classification']);
  },
  async fetch(ctx) {
    const text = ctx.need('text', 'Enter a text.');
    const parameters = { method: ctx.state.method };
    const label = ctx.state.label.trim();
    if (label) parameters.label = label;
    const options = [['--method', ctx.state.method]];
    if (label) options.push(['--label', label]);
    return ctx.post(
      '/analyze',
      { analysis: 'explain', model: ctx.state.model, inputs: text, parameters },
      { cli: cli('explain', ctx.state.model, options, [text]) },
    );
  },
  render: (_ctx, data) => [...data.figures.map(figure), ...notes(data.notes)],
};
