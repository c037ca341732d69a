// Tokenizers: pieces, ids and bytes of a text, two models side by side.

import { h, count, fixed, plural, codePoints, utf8 } from './dom.js';
import { table } from './widgets.js';
import { cli } from './snippets.js';

const english = 'Unbelievable! Tokenizers split “naïve” words and 1,234.5 numbers in their own ways. 🌱';

const pieceOf = (t) => t.token ?? t.text; // as in the vocabulary
const hex = (text) => [...utf8(text)].map((b) => b.toString(16).padStart(2, '0')).join(' ');
const visible = (text) => text.replaceAll(' ', '␣').replaceAll('\n', '↵').replaceAll('\t', '⇥') || '∅';

function show(ctx, id, tokens, text) {
  const points = codePoints(text);
  const covered = (t) =>
    t.special || t.start === undefined || t.start === null ? '' : points.slice(t.start, t.stop).join('');
  const own = tokens.filter((t) => !t.special);
  let n = 0;
  return h(
    'section',
    { class: 'tokens-of', 'aria-label': `Tokens of ${id}` },
    h('h3', null, id),
    h(
      'dl',
      { class: 'stats' },
      h('div', null, h('dt', null, 'Tokens'), h('dd', null, count(tokens.length))),
      h(
        'div',
        null,
        h('dt', null, 'Characters per token'),
        h('dd', null, fixed(points.length / (own.length || 1), 2)),
      ),
      h(
        'div',
        null,
        h('dt', null, 'Bytes per token'),
        h('dd', null, fixed(utf8(text).length / (own.length || 1), 2)),
      ),
    ),
    h(
      'ol',
      { class: 'pieces', 'aria-label': 'Pieces' },
      tokens.map((t) =>
        h(
          'li',
          {
            class: t.special ? 'piece special' : `piece tone${n++ % 4}`,
            title: `id ${t.id}`,
          },
          h('span', { class: 'piece-text' }, visible(pieceOf(t))),
          ctx.state.ids ? h('span', { class: 'piece-id' }, t.id) : null,
        ),
      ),
    ),
    h(
      'details',
      null,
      h('summary', null, 'Table with bytes'),
      table(
        `Tokens of ${id}`,
        [
          { label: 'Piece' },
          { label: 'Id', class: 'num' },
          { label: 'Characters', class: 'num' },
          { label: 'Bytes' },
        ],
        tokens.map((t) => [
          visible(pieceOf(t)),
          t.id,
          covered(t) ? `${t.start}–${t.stop}` : '',
          h('code', null, hex(covered(t))),
        ]),
      ),
    ),
  );
}

export default {
  id: 'tokenizer',
  title: 'Tokenizer',
  group: 'Look inside',
  tasks: [],
  models: { model: [], other: [] },
  prefer: {
    other: (list) =>
      list.find((m) => m.model_type !== list[0].model_type || m.vocab_size !== list[0].vocab_size) ||
      list[1] ||
      list[0],
  },
  wide: true,
  summary: 'How models split a text into tokens: pieces, ids and bytes, two models side by side.',
  placeholder: 'Enter a text to see its tokens.',
  resultTitle: 'Tokens',
  state: {
    text: english,
    special: true,
    ids: true,
  },
  build(ctx) {
    ctx.textField('text', 'Text', { rows: 3 });
    const row = ctx.row('wrap');
    ctx.modelField('model', [], { label: 'First model', into: row });
    ctx.modelField('other', [], { label: 'Second model', none: 'None', into: row });
    const switches = ctx.row('wrap');
    ctx.switchField('special', 'Special tokens', { into: switches });
    ctx.switchField('ids', 'Show ids', { how: 'render', into: switches });
    ctx.examples([
      ['English', { text: english }],
      ['German', { text: 'Donaudampfschifffahrtsgesellschaft' }],
      ['Code', { text: 'for (int i = 0; i < n; i++) sum += x[i];' }],
      ['Chinese', { text: '今天天气很好,我们去湖边散步。' }],
    ]);
  },
  async fetch(ctx) {
    const text = ctx.need('text', 'Enter a text.');
    const ids = [ctx.state.model, ctx.state.other].filter((id, i, all) => id && all.indexOf(id) === i);
    const result = [];
    for (const model of ids) {
      const body = { model, inputs: [text], add_special_tokens: ctx.state.special };
      const data = await ctx.post('/tokenize', body, {
        label: model,
        cli: cli(
          'tokenize',
          model,
          [
            ['--json', true],
            ['--no-special', !ctx.state.special],
          ],
          [text],
        ),
      });
      result.push({ model, tokens: data[0] });
    }
    return { text, result };
  },
  render(ctx, { text, result }) {
    const [a, b] = result;
    return [
      b
        ? h(
            'p',
            { class: 'note' },
            a.tokens.length === b.tokens.length
              ? `Both need ${plural(a.tokens.length, 'token')}.`
              : `${a.model} needs ${plural(a.tokens.length, 'token')}, ${b.model} ${count(b.tokens.length)}.`,
          )
        : null,
      h(
        'div',
        { class: b ? 'side-by-side' : null },
        result.map((r) => show(ctx, r.model, r.tokens, text)),
      ),
    ];
  },
};
