// Search: the rankings of an embedder and of a reranker, joined by lines.

import { h, svg, fixed, lines, plural } from './dom.js';
import { cli } from './snippets.js';
import { FieldError } from './context.js';
import { bm25 } from './math.js';

const EMBED = ['embed', 'sentence-similarity', 'similarity'];
const texts = [
  'The committee meets every second Monday at nine.',
  'Cats sleep between twelve and sixteen hours a day.',
  'A kitten needs more food for its weight than a grown cat.',
  'You can pay with a credit card or in cash.',
  'The train to the airport leaves every twenty minutes.',
  'Dogs sleep about half of the day.',
  'Visitors may leave their bags at the entrance.',
  'Newborn babies sleep most of the day and night.',
].join('\n');

function ranking(scores) {
  return scores
    .map((score, index) => ({ score, index }))
    .sort((a, b) => b.score - a.score || a.index - b.index);
}

function column(title, rows, all, side, options) {
  return h(
    'section',
    { class: `rank-column ${side}`, 'aria-label': title },
    h('h3', null, title),
    h(
      'ol',
      null,
      rows.map((row, rank) =>
        h(
          'li',
          { 'data-index': row.index, class: rank === 0 ? 'first' : null },
          h('span', { class: 'rank', 'aria-hidden': 'true' }, rank + 1),
          h('span', { class: 'rank-text', title: all[row.index] }, all[row.index]),
          h('span', { class: 'rank-move' }, options.moves ? options.moves[row.index] : ''),
          h('span', { class: 'number' }, fixed(row.score, 3)),
        ),
      ),
    ),
  );
}

// Lines from the place of a text at the left to its place at the right. Rows have one height.
function slopes(left, right) {
  const n = left.length;
  const place = new Map(right.map((row, i) => [row.index, i]));
  const y = (i) => ((i + 0.5) * 100) / n;
  return svg(
    'svg',
    { class: 'slopes', viewBox: '0 0 100 100', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    left.map((row, i) => {
      const j = place.get(row.index);
      const kind = j < i ? 'up' : j > i ? 'down' : 'same';
      return svg('path', {
        class: `slope ${kind}`,
        'data-index': row.index,
        d: `M0 ${y(i)}C50 ${y(i)} 50 ${y(j)} 100 ${y(j)}`,
      });
    }),
  );
}

function mark(root, index) {
  for (const e of root.querySelectorAll('[data-index]')) e.classList.toggle('hot', e.dataset.index === index);
}

export default {
  id: 'search',
  title: 'Search',
  group: 'Compare',
  tasks: [...EMBED, 'rerank'],
  bundled: 'sesame-embed',
  models: { model: EMBED, second: ['rerank'] },
  wide: true,
  errorField: 'texts',
  params: { source_sentence: 'query', sentences: 'texts', documents: 'texts' },
  summary: 'Rank texts by their similarity to a query, and compare with a second ranking.',
  placeholder: 'Enter a query and some texts.',
  resultTitle: 'Rankings',
  state: { query: 'How long does a cat rest?', texts },
  adapt(ctx) {
    if (!ctx.defaults.second) ctx.defaults.second = ':bm25';
  },
  build(ctx) {
    ctx.textField('query', 'Query', { rows: 1 });
    ctx.textField('texts', 'Texts, one per line', { rows: 8 });
    const row = ctx.row();
    ctx.modelField('model', EMBED, {
      label: 'Ranking',
      into: row,
      extra: ctx.modelsFor(EMBED).length ? [] : [[':bm25', 'Word overlap (BM25)']],
    });
    ctx.modelField('second', ['rerank'], {
      label: 'Second ranking',
      into: row,
      none: 'None',
      extra: [[':bm25', 'Word overlap (BM25)']],
      hint: ctx.modelsFor(['rerank']).length
        ? ''
        : 'No reranker is loaded: sesame serve -m DIR of a cross-encoder.',
    });
    ctx.examples([
      ['Cats', { query: 'How long does a cat rest?', texts }],
      ['Airport', { query: 'How do I get to my flight?', texts }],
      ['Money', { query: 'What ways are there to pay?', texts }],
    ]);
  },
  async fetch(ctx) {
    const query = ctx.need('query', 'Enter a query.');
    const list = lines(ctx.state.texts);
    if (!list.length) throw new FieldError('texts', 'Enter at least one text.');
    if (list.length > 100)
      throw new FieldError('texts', `At most 100 texts can be shown; these are ${list.length}.`);
    const rank = async (name, model) => {
      if (model === ':bm25') return ranking(bm25(query, list));
      if (name === 'model') {
        return ranking(
          await ctx.post(
            '/similarity',
            { model, inputs: { source_sentence: query, sentences: list } },
            {
              label: '/similarity',
              cli: cli('similarity', model, [], [query, ...list]),
            },
          ),
        );
      }
      const rows = await ctx.post(
        '/rerank',
        { model, query, texts: list },
        { label: '/rerank', cli: cli('rerank', model, [], [query, ...list]) },
      );
      return rows.map((r) => ({ index: r.index, score: r.score })).sort((a, b) => b.score - a.score);
    };
    const result = { list, left: await rank('model', ctx.state.model), right: null };
    if (ctx.state.second) result.right = await rank('second', ctx.state.second);
    return result;
  },
  render(ctx, { list, left, right }) {
    const name = (id) => (id === ':bm25' ? 'Word overlap (BM25)' : id);
    if (!right)
      return h('div', { class: 'ranks one' }, column(name(ctx.state.model), left, list, 'left', {}));
    const at = new Map(left.map((row, i) => [row.index, i]));
    const moves = {};
    right.forEach((row, i) => {
      const d = at.get(row.index) - i;
      moves[row.index] =
        d > 0
          ? h('span', { class: 'up' }, `▲${d}`, h('span', { class: 'visually-hidden' }, ' places up'))
          : d < 0
            ? h('span', { class: 'down' }, `▼${-d}`, h('span', { class: 'visually-hidden' }, ' places down'))
            : '';
    });
    const root = h(
      'div',
      { class: 'ranks' },
      column(name(ctx.state.model), left, list, 'left', {}),
      slopes(left, right),
      column(name(ctx.state.second), right, list, 'right', { moves }),
    );
    root.addEventListener('pointerover', (event) => {
      const item = event.target.closest('[data-index]');
      mark(root, item ? item.dataset.index : null);
    });
    root.addEventListener('pointerleave', () => mark(root, null));
    const best = right[0].index === left[0].index;
    return [
      h(
        'p',
        { class: 'note' },
        best
          ? `Both rank the same text first, of ${plural(list.length, 'text')}.`
          : 'The rankings differ in the first place.',
      ),
      root,
    ];
  },
};
