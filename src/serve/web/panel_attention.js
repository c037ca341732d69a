// Attention: lines from each token to the tokens it attends to, and a picture of every head.

import { h, svg, percent, plural } from './dom.js';
import { post } from './api.js';
import { table } from './widgets.js';
import { cli, shell } from './snippets.js';

const LIMIT = 64; // tokens drawn
const LEAST = 0.03; // weights below are not drawn

function decode(base64) {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

function bodyOf(ctx, layer) {
  const body = { model: ctx.state.model, inputs: ctx.state.text, layer };
  if (ctx.state.pair.trim()) body.pair = ctx.state.pair;
  if (ctx.state.words) body.words = true;
  return body;
}

const keyOf = (ctx) => JSON.stringify([ctx.state.model, ctx.state.text, ctx.state.pair, ctx.state.words]);
const headsOf = (ctx, n) => {
  const chosen = ctx.state.heads.map(Number).filter((i) => i < n);
  return chosen.length ? chosen : Array.from({ length: n }, (_, i) => i);
};

function lineView(ctx, data, layer) {
  const n = Math.min(data.tokens.length, LIMIT),
    all = data.tokens.length;
  const heads = headsOf(ctx, data.n_heads);
  const y = (i) => ((i + 0.5) * 100) / n;
  const paths = [];
  for (const head of heads) {
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < n; j++) {
        const p = layer[head][i * all + j] / 255;
        if (p < LEAST) continue;
        const line = svg('path', {
          class: `attention-line h${(head % 8) + 1}`,
          'data-from': i,
          'data-to': j,
          d: `M0 ${y(i)}C40 ${y(i)} 60 ${y(j)} 100 ${y(j)}`,
        });
        line.style.opacity = Math.min(1, 0.08 + p * (heads.length > 1 ? 0.7 : 0.92));
        paths.push(line);
      }
    }
  }
  const tokens = (side) =>
    h(
      'ol',
      { class: `attention-tokens ${side}`, 'aria-hidden': 'true' },
      data.tokens.slice(0, n).map((t, i) => h('li', { [`data-${side}`]: i, title: t }, t)),
    );
  const root = h(
    'div',
    { class: 'attention-view', vars: { '--rows': n } },
    tokens('from'),
    svg(
      'svg',
      {
        class: 'attention-lines',
        viewBox: '0 0 100 100',
        preserveAspectRatio: 'none',
        role: 'img',
        'aria-label': `Attention of layer ${data.layer + 1}; the table below lists the strongest weights`,
      },
      paths,
    ),
    tokens('to'),
  );
  const hot = (side, index) => {
    root.classList.toggle('filtered', index !== null);
    for (const element of root.querySelectorAll('.attention-line, li')) {
      element.classList.toggle('hot', index !== null && element.dataset[side] === index);
    }
  };
  root.addEventListener('pointerover', (event) => {
    const li = event.target.closest('li');
    if (!li) return hot('from', null);
    return li.dataset.from !== undefined ? hot('from', li.dataset.from) : hot('to', li.dataset.to);
  });
  root.addEventListener('pointerleave', () => hot('from', null));
  return root;
}

// For screen readers and for reading exact values: where each token looks most, mean of the chosen heads.
function strongest(ctx, data, layer) {
  const n = data.tokens.length;
  const heads = headsOf(ctx, data.n_heads);
  const rows = data.tokens.slice(0, LIMIT).map((token, i) => {
    const mean = Array.from(
      { length: n },
      (_, j) => heads.reduce((s, k) => s + layer[k][i * n + j] / 255, 0) / heads.length,
    );
    const best = mean
      .map((p, j) => [p, j])
      .sort((a, b) => b[0] - a[0])
      .slice(0, 3);
    return [
      token,
      ...best.map(([p, j]) => `${data.tokens[j]} ${percent(p)}`),
      ...Array(3 - best.length).fill(''),
    ];
  });
  return h(
    'details',
    null,
    h('summary', null, 'Strongest weights as a table'),
    table(
      'Strongest attention weights',
      [{ label: 'Token' }, { label: 'First' }, { label: 'Second' }, { label: 'Third' }],
      rows,
    ),
  );
}

function paintHead(canvas, weights, n) {
  const context = canvas.getContext('2d');
  const [r, g, b] = getComputedStyle(canvas)
    .color.match(/[\d.]+/g)
    .map(Number);
  const image = context.createImageData(n, n);
  for (let i = 0; i < n * n; i++)
    image.data.set([r, g, b, Math.min(255, 30 * Math.sqrt(weights[i]) * 0.55)], 4 * i);
  context.putImageData(image, 0, 0);
}

// A picture for each layer and head; layers arrive one by one.
function thumbnails(ctx, data) {
  const n = data.tokens.length;
  const rows = Array.from({ length: data.n_layers }, (_, l) =>
    h(
      'tr',
      null,
      h('th', { scope: 'row' }, l + 1),
      Array.from({ length: data.n_heads }, (_unused, k) => {
        const on = ctx.state.layer === l && ctx.state.heads.length === 1 && ctx.state.heads[0] === String(k);
        return h(
          'td',
          null,
          h(
            'button',
            {
              type: 'button',
              class: `thumb h${(k % 8) + 1}`,
              'aria-pressed': String(on),
              'aria-label': `Layer ${l + 1}, head ${k + 1}`,
              onclick: () => {
                ctx.fields.get('layer').set(l);
                ctx.assign({ layer: l, heads: [String(k)] });
              },
            },
            h('canvas', { width: n, height: n }),
          ),
        );
      }),
    ),
  );
  const element = h(
    'div',
    { class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': 'All heads' },
    h(
      'table',
      { class: 'thumbs' },
      h('caption', null, 'Every head: layers down, heads across; rows look at columns'),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          h('th', { scope: 'col' }, h('span', { class: 'visually-hidden' }, 'Layer')),
          Array.from({ length: data.n_heads }, (_, k) => h('th', { scope: 'col' }, k + 1)),
        ),
      ),
      h('tbody', null, rows),
    ),
  );
  const paint = (l) => {
    const canvases = rows[l].querySelectorAll('canvas');
    for (const [k, weights] of ctx.cache.layers[l].entries()) paintHead(canvases[k], weights, n);
  };
  const key = ctx.cache.key;
  (async () => {
    await null; // the pictures are in the page
    for (const l of Object.keys(ctx.cache.layers)) paint(l);
    for (let l = 0; l < data.n_layers; l++) {
      if (!ctx.cache.layers[l]) {
        const answer = await post('/attention', bodyOf(ctx, l), ctx.signal);
        if (ctx.cache.key !== key) return;
        ctx.cache.layers[l] = answer.data.attention.map(decode);
      }
      if (element.isConnected) paint(l);
    }
  })().catch((error) => {
    if (error.name !== 'AbortError') ctx.showError('text', error.message);
  });
  return element;
}

function headPicker(ctx, data) {
  const chosen = headsOf(ctx, data.n_heads);
  const every = chosen.length === data.n_heads;
  return h(
    'fieldset',
    { class: 'legend heads' },
    h('legend', { class: 'visually-hidden' }, 'Heads'),
    Array.from({ length: data.n_heads }, (_, k) =>
      h(
        'label',
        { class: `legend-item h${(k % 8) + 1}` },
        h('input', {
          type: 'checkbox',
          checked: chosen.includes(k),
          onchange: (event) => {
            const next = event.target.checked ? [...chosen, k] : chosen.filter((x) => x !== k);
            ctx.set(
              'heads',
              next.length === data.n_heads ? [] : next.sort((a, b) => a - b).map(String),
              'render',
            );
          },
        }),
        h('span', { class: 'legend-name' }, k + 1),
      ),
    ),
    every
      ? null
      : h(
          'button',
          { type: 'button', class: 'quiet', onclick: () => ctx.set('heads', [], 'render') },
          'All heads',
        ),
  );
}

export default {
  id: 'attention',
  title: 'Attention',
  group: 'Look inside',
  tasks: [],
  models: { model: [] },
  prefer: { model: (list) => list.find((m) => m.task === 'fill-mask') || list[0] },
  themed: true,
  wide: true,
  params: { layer: 'layer', pair: 'pair' },
  summary: 'Which tokens each token attends to, for every head of every layer.',
  placeholder: 'Enter a text to see its attention.',
  resultTitle: 'Attention',
  state: { text: 'The cat sat on the mat because it was tired.', pair: '', layer: 6, heads: ['1'], words: false },
  build(ctx) {
    const texts = ctx.row('wrap');
    ctx.textField('text', 'Text', { rows: 2, into: texts });
    ctx.textField('pair', 'Second text (optional)', { rows: 2, into: texts });
    const row = ctx.row('wrap');
    ctx.modelField('model', [], { into: row });
    const range = ctx.rangeField('layer', 'Layer', {
      min: 0,
      max: 11,
      step: 1,
      format: (v) => String(v + 1),
      into: row,
    });
    ctx.layerRange = range;
    ctx.switchField('words', 'By word', { into: row });
    ctx.cache = { key: '', layers: [] };
  },
  async fetch(ctx) {
    ctx.need('text', 'Enter a text.');
    const layers = ctx.model().n_layers;
    if (layers && ctx.state.layer >= layers) ctx.state.layer = layers - 1;
    const body = bodyOf(ctx, ctx.state.layer);
    const data = await ctx.post('/attention', body, {
      cli: [
        cli('tokenize', ctx.state.model, [['--json', true]], [ctx.state.text]),
        `  sesame run ${shell(ctx.state.model)} --attentions --layer ${ctx.state.layer}`,
      ].join(' |\n'),
    });
    if (ctx.cache.key !== keyOf(ctx)) ctx.cache = { key: keyOf(ctx), layers: [] };
    ctx.cache.layers[data.layer] = data.attention.map(decode);
    ctx.layerRange.max = data.n_layers - 1;
    ctx.fields.get('layer').set(data.layer);
    return data;
  },
  render(ctx, data) {
    const layer = ctx.cache.layers[data.layer];
    const cut = data.tokens.length > LIMIT;
    return [
      headPicker(ctx, data),
      h(
        'p',
        { class: 'note' },
        `Layer ${data.layer + 1} of ${data.n_layers}. Each token at the left attends to the tokens at the right; `,
        'point at one to see its lines alone.',
        cut ? ` The first ${LIMIT} of ${plural(data.tokens.length, 'token')} are drawn.` : '',
      ),
      h(
        'div',
        { class: 'attention-grid' },
        h('div', null, lineView(ctx, data, layer), strongest(ctx, data, layer)),
        thumbnails(ctx, data),
      ),
    ];
  },
};
