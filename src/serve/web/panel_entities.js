// Entities: spans marked in the text, with a filter of labels and a threshold.

import { h, fixed, plural, codePoints } from './dom.js';
import { highlighted, empty, table, palette } from './widgets.js';
import { cli, inferenceClient } from './snippets.js';
import { hasKey } from './api.js';

const labelOf = (e) => e.entity_group || e.entity || '';

function legend(ctx, counts, color) {
  return h(
    'fieldset',
    { class: 'legend' },
    h('legend', { class: 'visually-hidden' }, 'Labels shown'),
    [...counts].map(([label, n]) =>
      h(
        'label',
        { class: `legend-item ${color(label)}` },
        h('input', {
          type: 'checkbox',
          checked: !ctx.state.hidden.includes(label),
          onchange: (event) =>
            ctx.set(
              'hidden',
              event.target.checked
                ? ctx.state.hidden.filter((x) => x !== label)
                : [...ctx.state.hidden, label],
              'render',
            ),
        }),
        h('span', { class: 'legend-name' }, label),
        h('span', { class: 'legend-count' }, n),
      ),
    ),
  );
}

const example = [
  'Ada Lovelace met Charles Babbage in London in 1833. His machine was never finished, but the',
  'British Museum shows parts of it, and IBM named a prize after her.',
].join(' ');

const news = [
  'Germany beat Brazil 7-1 in Belo Horizonte. Toni Kroos of Bayern Munich scored twice;',
  'Reuters called it the worst night of Brazilian football.',
].join(' ');

const business = 'Microsoft said that Satya Nadella will open an office in Nairobi with the Bank of Kenya.';

export default {
  id: 'entities',
  title: 'Entities',
  group: 'Try it',
  tasks: ['token-classification'],
  bundled: 'sesame-ner',
  compare: true,
  models: { model: ['token-classification'] },
  summary: 'Names of people, places and organizations, or whatever the model labels.',
  placeholder: 'Enter a text to see its entities.',
  state: { text: example, threshold: 0.5, hidden: [], strategy: 'first' },
  build(ctx) {
    ctx.textField('text', 'Text', { rows: 7 });
    ctx.rangeField('threshold', 'Least score', {
      min: 0,
      max: 1,
      step: 0.01,
      how: 'render',
      format: (v) => fixed(v, 2),
    });
    const row = ctx.row();
    ctx.modelField('model', ['token-classification'], { into: row });
    ctx.selectField(
      'strategy',
      'Tokens of a word',
      [
        ['first', 'first token'],
        ['average', 'mean score'],
        ['max', 'best token'],
        ['simple', 'separate tokens'],
      ],
      { into: row },
    );
    ctx.examples([
      ['History', { text: example, hidden: [] }],
      [
        'News',
        {
          text: news,
          hidden: [],
        },
      ],
      [
        'Business',
        {
          text: business,
          hidden: [],
        },
      ],
    ]);
  },
  fetch(ctx) {
    const text = ctx.need('text', 'Enter a text.');
    const path = `/models/${encodeURIComponent(ctx.state.model)}/pipeline/token-classification`;
    return ctx
      .pipeline(
        'token-classification',
        text,
        { aggregation_strategy: ctx.state.strategy },
        {
          python: inferenceClient(
            path,
            'token_classification',
            [
              ['', text],
              ['aggregation_strategy', ctx.state.strategy],
            ],
            hasKey(),
          ),
          cli: cli(
            'token-classification',
            ctx.state.model,
            [['--aggregation-strategy', ctx.state.strategy]],
            [text],
          ),
        },
      )
      .then((entities) => ({ text, entities }));
  },
  render(ctx, { text, entities }) {
    const color = palette();
    const sorted = [...entities].sort((a, b) => a.start - b.start);
    const counts = new Map(); // of each label that the model found: entities with the least score
    for (const e of sorted)
      counts.set(labelOf(e), (counts.get(labelOf(e)) || 0) + (e.score >= ctx.state.threshold ? 1 : 0));
    [...counts.keys()].forEach(color);
    const shown = sorted.filter(
      (e) => e.score >= ctx.state.threshold && !ctx.state.hidden.includes(labelOf(e)),
    );
    const points = codePoints(text);
    return [
      counts.size ? legend(ctx, counts, color) : null,
      highlighted(
        text,
        shown.map((e) => ({
          start: e.start,
          end: e.end,
          class: `entity ${color(labelOf(e))}`,
          label: labelOf(e),
          title: `${labelOf(e)}, score ${fixed(e.score, 3)}`,
        })),
      ),
      shown.length
        ? table(
            'Entities',
            [
              { label: 'Text' },
              { label: 'Label' },
              { label: 'Score', class: 'num' },
              { label: 'Characters', class: 'num' },
            ],
            shown.map((e) => [
              points.slice(e.start, e.end).join(''),
              labelOf(e),
              fixed(e.score, 3),
              `${e.start}–${e.end}`,
            ]),
          )
        : empty(
            entities.length
              ? `All ${plural(entities.length, 'entity', 'entities')} are hidden by the filter.`
              : 'The model found no entities in this text.',
          ),
    ];
  },
};
