// Similarity matrix: the cosine of every pair of texts.

import { h, fixed, lines, download } from './dom.js';
import { cli, inferenceClient } from './snippets.js';
import { hasKey } from './api.js';
import { FieldError } from './context.js';
import { cosines, clusterOrder } from './math.js';

const EMBED = ['embed', 'sentence-similarity', 'similarity'];
const texts = [
  'A man is playing a guitar.',
  'Someone plays an instrument.',
  'The cat sleeps on the sofa.',
  'A kitten is resting on a couch.',
  'Prices rose by two percent in March.',
  'Inflation went up this spring.',
].join('\n');

const senses = [
  'She sat on the bank of the river.',
  'The bank raised its interest rates.',
  'He opened an account at the bank.',
  'The boat drifted to the shore.',
  'They borrowed money for a house.',
].join('\n');

const negation = [
  'The film was good.',
  'The film was not good.',
  'The film was bad.',
  'I enjoyed the movie.',
  'The soup was cold.',
].join('\n');

function tsv(list, matrix) {
  const rows = matrix.map((row, i) => [list[i], ...row.map((x) => x.toFixed(6))]);
  return [['', ...list], ...rows].map((row) => `${row.join('\t')}\n`).join('');
}

// How strong the color of a cell is: the range of the values off the diagonal is spread over the scale.
function shade(matrix) {
  const values = matrix.flatMap((row, i) => row.filter((_, j) => i !== j));
  const low = Math.min(...values, 1),
    high = Math.max(...values, -1);
  return (x) => Math.max(0, Math.min(1, (x - low) / (high - low || 1)));
}

function cell(value, same, depth, names) {
  return h(
    'td',
    { class: same ? 'same' : null, vars: { '--v': `${Math.round(4 + 56 * depth)}%` }, title: names },
    fixed(value, 2),
  );
}

export default {
  id: 'similarity',
  title: 'Similarity matrix',
  group: 'Compare',
  tasks: EMBED,
  bundled: 'sesame-embed',
  models: { model: EMBED },
  errorField: 'texts',
  params: { inputs: 'texts' },
  summary: 'How similar texts are in meaning: the cosine of each pair of embeddings.',
  placeholder: 'Enter at least two texts.',
  state: { texts, group: false },
  build(ctx) {
    ctx.textField('texts', 'Texts, one per line', { rows: 9, hint: 'At most 50 texts.' });
    ctx.switchField('group', 'Put similar texts next to each other', { how: 'render' });
    ctx.modelField('model', EMBED);
    ctx.examples([
      ['Paraphrases', { texts }],
      [
        'Senses of “bank”',
        {
          texts: senses,
        },
      ],
      [
        'Negation',
        {
          texts: negation,
        },
      ],
    ]);
  },
  async fetch(ctx) {
    const list = lines(ctx.state.texts);
    if (list.length < 2) throw new FieldError('texts', 'Enter at least two texts, one per line.');
    if (list.length > 50)
      throw new FieldError('texts', `At most 50 texts can be shown; these are ${list.length}.`);
    const path = `/models/${encodeURIComponent(ctx.state.model)}/pipeline/sentence-similarity`;
    const vectors = await ctx.post(
      '/embed',
      { model: ctx.state.model, inputs: list, normalize: true },
      {
        python: inferenceClient(
          path,
          'sentence_similarity',
          [
            ['', list[0]],
            ['other_sentences', list.slice(1)],
          ],
          hasKey(),
        ),
        cli: cli(
          'embed',
          ctx.state.model,
          [
            ['--normalize', true],
            ['--json', true],
          ],
          list,
        ),
      },
    );
    return { list, matrix: cosines(vectors) };
  },
  render(ctx, { list, matrix }) {
    const order = ctx.state.group ? clusterOrder(matrix) : list.map((_, i) => i);
    const depth = shade(matrix);
    const number = (i) => order.indexOf(i) + 1;
    const sorted = order.map((i) => order.map((j) => matrix[i][j]));
    return [
      h(
        'div',
        { class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': 'Similarity matrix' },
        h(
          'table',
          { class: 'matrix' },
          h('caption', { class: 'visually-hidden' }, 'Cosine similarity of each pair of texts'),
          h(
            'thead',
            null,
            h(
              'tr',
              null,
              h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Text')),
              order.map((i) => h('th', { scope: 'col', title: list[i] }, number(i))),
            ),
          ),
          h(
            'tbody',
            null,
            order.map((i) =>
              h(
                'tr',
                null,
                h(
                  'th',
                  { scope: 'row', title: list[i] },
                  h('span', { class: 'matrix-number' }, number(i)),
                  h('span', { class: 'matrix-text' }, list[i]),
                ),
                order.map((j) =>
                  cell(matrix[i][j], i === j, i === j ? 0 : depth(matrix[i][j]), `${list[i]} / ${list[j]}`),
                ),
              ),
            ),
          ),
        ),
      ),
      h(
        'p',
        { class: 'buttons' },
        h(
          'button',
          {
            type: 'button',
            class: 'quiet',
            onclick: () =>
              download(
                'similarity.tsv',
                'text/tab-separated-values',
                tsv(
                  order.map((i) => list[i]),
                  sorted,
                ),
              ),
          },
          'Download TSV',
        ),
      ),
    ];
  },
};
