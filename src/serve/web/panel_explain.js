// Explain: how much each word contributes to a label, by one method or by two beside each other.

import { h, fixed, percent } from './dom.js';
import { cli } from './snippets.js';
import { notes } from './figures.js';
import { highlighted } from './widgets.js';

const methods = [
  ['ig', 'Integrated gradients'],
  ['input-gradient', 'Gradient times input'],
  ['gradient', 'Gradient'],
  ['occlude', 'Occlusion: each word hidden'],
  ['value-zero', 'Value zeroing'],
  ['value-zero-score', 'Value zeroing of the score'],
];
const nameOf = (method) => methods.find(([id]) => id === method)[1];

// Five steps of color for and against the label.
const tone = (x) => (x === 0 ? 'even' : `${x > 0 ? 'for' : 'against'}${Math.min(5, Math.ceil(5 * Math.abs(x)))}`);

function contributions(words, most) {
  return h(
    'table',
    { class: 'contributions' },
    h('caption', { class: 'visually-hidden' }, 'Words with their contributions'),
    h(
      'thead',
      { class: 'visually-hidden' },
      h('tr', null, h('th', { scope: 'col' }, 'Word'), h('th', { scope: 'col' }, 'Contribution')),
    ),
    h(
      'tbody',
      null,
      words.map(({ word, value }) =>
        h(
          'tr',
          null,
          h('th', { scope: 'row' }, word),
          h(
            'td',
            null,
            h(
              'span',
              { class: 'two-way', 'aria-hidden': 'true' },
              h('span', { class: value < 0 ? 'against' : 'for', vars: { '--v': `${(50 * Math.abs(value)) / most}%` } }),
            ),
            h('span', { class: 'number' }, fixed(value, 3)),
          ),
        ),
      ),
    ),
  );
}

function explained(data, text) {
  const { result } = data;
  const words = result.words.filter((w) => w.end > w.start && Number.isFinite(w.value));
  const most = Math.max(1e-12, ...words.map((w) => Math.abs(w.value)));
  return h(
    'section',
    { class: 'explained', 'aria-label': nameOf(result.method) },
    h('h3', null, nameOf(result.method)),
    h(
      'p',
      { class: 'headline' },
      result.target.label,
      Number.isFinite(result.probability)
        ? h('span', { class: 'headline-score' }, percent(result.probability))
        : null,
    ),
    highlighted(
      text,
      words.map((w) => ({ start: w.start, end: w.end, class: tone(w.value / most), title: fixed(w.value, 4) })),
    ),
    contributions(words, most),
    notes(data.notes),
  );
}

export default {
  id: 'explain',
  title: 'Explain',
  group: 'Look inside',
  tasks: ['text-classification'],
  bundled: 'sesame-sentiment',
  models: { model: ['text-classification'] },
  wide: true,
  summary: 'How much each word contributes to a label. Blue words speak for it, orange words against it.',
  placeholder: 'Enter a text to see which words matter.',
  state: {
    text: 'A warm, funny film, even if the end is a little dull.',
    label: '',
    method: 'ig',
    second: 'occlude',
  },
  build(ctx) {
    ctx.textField('text', 'Text', { rows: 2 });
    const row = ctx.row('wrap');
    ctx.selectField('method', 'Method', methods, { into: row });
    ctx.selectField('second', 'Second method', [['', 'none'], ...methods], { into: row });
    ctx.textField('label', 'Label (default: the likeliest)', { rows: 1, into: row });
    ctx.modelField('model', ['text-classification'], { into: row });
  },
  async fetch(ctx) {
    const text = ctx.need('text', 'Enter a text.');
    const label = ctx.state.label.trim();
    const list = [];
    for (const method of [ctx.state.method, ctx.state.second]) {
      if (!method || (list.length && method === ctx.state.method)) continue;
      const parameters = label ? { method, label } : { method };
      const options = [['--method', method]];
      if (label) options.push(['--label', label]);
      list.push(
        await ctx.post(
          '/analyze',
          { analysis: 'explain', model: ctx.state.model, inputs: text, parameters },
          { label: nameOf(method), cli: cli('explain', ctx.state.model, options, [text]) },
        ),
      );
    }
    return { text, list };
  },
  render: (_ctx, { text, list }) =>
    h('div', { class: list.length > 1 ? 'side-by-side' : '' }, list.map((data) => explained(data, text))),
};
