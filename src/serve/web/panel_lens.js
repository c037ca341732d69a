// Lens: the word that each layer would predict.

import { cli } from './snippets.js';
import { figure, notes } from './figures.js';

const tasks = ['fill-mask', 'text-generation'];

export default {
  id: 'lens',
  title: 'Lens',
  group: 'Look inside',
  tasks,
  bundled: 'sesame-small',
  models: { model: tasks },
  summary: 'The prediction of every layer: the head of the model reads the hidden states on their way.',
  placeholder: 'Enter a text with [MASK], or the beginning of a text.',
  state: { text: 'The capital of France is [MASK].' },
  build(ctx) {
    ctx.textField('text', 'Text', { rows: 3, hint: 'With [MASK] for a masked language model.' });
    ctx.modelField('model', tasks);
  },
  async fetch(ctx) {
    const text = ctx.need('text', 'Enter a text.');
    return ctx.post(
      '/analyze',
      { analysis: 'lens', model: ctx.state.model, inputs: text },
      { cli: cli('lens', ctx.state.model, [], [text]) },
    );
  },
  render: (_ctx, data) => [...data.figures.map(figure), ...notes(data.notes)],
};
