// Embedding map: texts as points, by PCA, t-SNE or UMAP of the server; a selected text shows its neighbors.

import { h, svg, count, fixed, lines, download, replace, percent, plural } from './dom.js';
import { cli } from './snippets.js';
import { FieldError } from './context.js';
import { floats, post } from './api.js';
import { palette, segmented } from './widgets.js';

const EMBED = ['embed', 'sentence-similarity', 'similarity'];
const W = 640,
  H = 440,
  PAD = 28;

const texts = `animals	The cat sleeps on the sofa.
animals	A dog chases a ball in the park.
animals	The horse ran across the field.
animals	Birds fly south in the winter.
animals	A small fish swims in the pond.
food	She baked a loaf of bread.
food	The soup needs more salt.
food	He fried two eggs for breakfast.
food	They ate rice with vegetables.
food	A ripe apple fell from the tree.
music	A man is playing a guitar.
music	The orchestra rehearsed a symphony.
music	She sings in a choir.
music	The drummer lost his sticks.
music	He plays the piano every night.
travel	The train to Paris was late.
travel	We booked a flight to Rome.
travel	The bus stops near the station.
travel	They drove along the coast.
travel	Her passport expired in May.`;

// "label TAB text" or "text".
function parse(text) {
  return lines(text).map((line) => {
    const at = line.indexOf('\t');
    return at < 0
      ? { text: line, label: '' }
      : { text: line.slice(at + 1).trim(), label: line.slice(0, at).trim() };
  });
}

function scaled(points) {
  const [xs, ys] = [0, 1].map((c) => points.map((p) => p[c]));
  const range = (v) => v.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
  const [x0, x1] = range(xs),
    [y0, y1] = range(ys);
  return points.map(([x, y]) => [
    PAD + ((x - x0) / (x1 - x0 || 1)) * (W - 2 * PAD),
    PAD + ((y1 - y) / (y1 - y0 || 1)) * (H - 2 * PAD),
  ]);
}

const neighbors = (data, i) => data.nearest[i].map((x) => [x.index, x.similarity]);

function tsv({ items, points }, indices) {
  const rows = indices.map((i) => [items[i].label, items[i].text, ...points[i]]);
  return [['label', 'text', 'x', 'y'], ...rows].map((row) => `${row.join('\t')}\n`).join('');
}

const short = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);

// Short labels beside points, where they cover no other label or point.
function pointLabels(items, positions) {
  const boxes = positions.map(([x, y]) => [x - 8, y - 8, x + 8, y + 8]);
  return items.map((item, i) => {
    const text = short(item.text, 26);
    const width = 6.2 * text.length,
      [px, py] = positions[i];
    const candidates = [
      [px + 10, py],
      [px - 10 - width, py],
      [px - width / 2, py - 16],
      [px - width / 2, py + 16],
    ];
    const free = ([x, y]) =>
      x > 0 &&
      x + width < W &&
      y > 8 &&
      y < H - 8 &&
      !boxes.some((b) => x < b[2] && b[0] < x + width && y - 7 < b[3] && b[1] < y + 7);
    const at = candidates.find(free);
    if (!at) return null;
    boxes.push([at[0], at[1] - 8, at[0] + width, at[1] + 8]);
    return svg('text', { x: at[0], y: at[1] + 4, class: 'point-label', 'data-index': i }, text);
  });
}

function legend(items, color) {
  const labels = [...new Set(items.map((item) => item.label))].filter(Boolean);
  return labels.length
    ? h(
        'ul',
        { class: 'map-legend', 'aria-label': 'Colors' },
        labels.map((label) =>
          h('li', null, h('span', { class: `dot ${color(label)}`, 'aria-hidden': 'true' }), label),
        ),
      )
    : null;
}

// Lines to the neighbors of a text; the others fade.
function showNeighbors(box, data, positions, i) {
  const near = i >= 0 && i < positions.length ? neighbors(data, i) : [];
  const close = new Set(near.map(([j]) => j));
  replace(
    box.querySelector('.neighbor-lines'),
    near.map(([j]) =>
      svg('line', {
        class: 'neighbor-line',
        x1: positions[i][0],
        y1: positions[i][1],
        x2: positions[j][0],
        y2: positions[j][1],
      }),
    ),
  );
  const map = box.querySelector('.map');
  map.classList.toggle('fades', near.length > 0);
  for (const circle of map.querySelectorAll('.selected, .close')) circle.classList.remove('selected', 'close');
  const circles = map.querySelectorAll('circle');
  circles[i]?.classList.add('selected');
  for (const j of close) circles[j].classList.add('close');
  replace(box.querySelector('.hover-label'), near.length ? hoverLabel(data.items[i].text, positions[i], map) : null);
  return near;
}

// The text of the point under the pointer, inside the map.
function hoverLabel(text, [x, y], map) {
  const k = Math.max(1, W / (map.clientWidth || W)); // 14 pixels on the screen
  const shown = short(text, Math.floor((W - 24) / (7.2 * k)));
  const width = 7.2 * k * shown.length + 16 * k;
  const left = Math.max(4, Math.min(W - width - 4, x - width / 2));
  const top = y > 44 * k ? y - 38 * k : y + 14 * k;
  return [
    svg('rect', { x: left, y: top, width, height: 26 * k, rx: 6 }),
    svg('text', { x: left + 8 * k, y: top + 17.5 * k, 'font-size': 14 * k }, shown),
  ];
}

// Whether a point is inside a polygon: a ray to the right crosses its border an odd number of times.
function isInside([x, y], polygon) {
  let inside = false;
  polygon.forEach(([x1, y1], i) => {
    const [x2, y2] = polygon[(i + 1) % polygon.length];
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) inside = !inside;
  });
  return inside;
}

// Drawing a line around points with a mouse or pen selects them.
function addLasso(ctx, map, positions) {
  const line = map.querySelector('.lasso');
  let path = null;
  const at = (event) => {
    const box = map.getBoundingClientRect();
    return [((event.clientX - box.left) * W) / box.width, ((event.clientY - box.top) * H) / box.height];
  };
  map.addEventListener('pointerdown', (event) => {
    if (event.pointerType === 'touch' || event.button !== 0 || event.target.closest('[data-index]')) return;
    path = [at(event)];
    map.setPointerCapture(event.pointerId);
  });
  map.addEventListener('pointermove', (event) => {
    if (!path) return;
    path.push(at(event));
    line.setAttribute('points', path.map((p) => p.join(',')).join(' '));
  });
  map.addEventListener('pointerup', () => {
    if (!path) return;
    const picked = path.length > 3 ? positions.flatMap((p, i) => (isInside(p, path) ? [String(i)] : [])) : [];
    path = null;
    ctx.state.selected = -1;
    ctx.set('picked', picked, 'render');
  });
}

const LISTED = 200;

function textList(ctx, data, color, indices) {
  return h(
    'ul',
    { class: 'near-list all' },
    indices.length > LISTED ? h('li', { class: 'note' }, `The first ${LISTED} of ${count(indices.length)}`) : null,
    indices.slice(0, LISTED).map((i) =>
      h(
        'li',
        null,
        h('span', { class: `dot ${color(data.items[i].label)}`, 'aria-hidden': 'true' }),
        h('button', { type: 'button', onclick: () => select(ctx, i) }, data.items[i].text),
      ),
    ),
  );
}

function select(ctx, i) {
  ctx.state.picked = [];
  ctx.set('selected', i, 'render');
}

// The texts of the lasso; empty: all.
const pickedOf = (ctx, data) => ctx.state.picked.map(Number).filter((i) => i < data.items.length);

function draw(ctx, data, box, list) {
  const positions = scaled(data.points);
  const color = palette();
  const selected = ctx.state.selected;
  replace(
    box,
    svg(
      'svg',
      {
        viewBox: `0 0 ${W} ${H}`,
        class: 'map',
        role: 'img',
        'aria-label': `Map of ${data.items.length} texts; the list beside it names them`,
      },
      svg('polygon', { class: 'lasso' }),
      svg('g', { class: 'neighbor-lines' }),
      data.items.map((item, i) =>
        svg('circle', {
          cx: positions[i][0].toFixed(1),
          cy: positions[i][1].toFixed(1),
          r: data.items.length > 2000 ? 2.5 : data.items.length > 300 ? 4 : 6,
          'data-index': i,
          class: `point ${color(item.label)}`,
        }),
      ),
      data.items.length <= 300 ? pointLabels(data.items, positions) : null,
      svg('g', { class: 'hover-label', 'aria-hidden': 'true' }),
    ),
    legend(data.items, color),
  );
  const near = showNeighbors(box, data, positions, selected);
  if (ctx.state.picked.length) {
    const picked = new Set(pickedOf(ctx, data));
    box.querySelector('.map').classList.add('fades');
    for (const [i, circle] of box.querySelectorAll('circle').entries())
      circle.classList.toggle('close', picked.has(i));
  }
  addLasso(ctx, box.querySelector('.map'), positions);
  box.onpointerover = (event) => {
    const point = event.target.closest('[data-index]');
    if (point) showNeighbors(box, data, positions, Number(point.dataset.index));
    else if (!ctx.state.picked.length) showNeighbors(box, data, positions, ctx.state.selected);
  };
  const picked = pickedOf(ctx, data);
  const showAll = h('button', { type: 'button', class: 'quiet', onclick: () => select(ctx, -1) }, 'Show all');
  if (selected >= 0 && selected < positions.length) {
    replace(
      list,
      h('h3', null, 'Nearest to'),
      h('p', { class: 'selected-text' }, data.items[selected].text),
      h(
        'ol',
        { class: 'near-list' },
        near.map(([j, s]) =>
          h(
            'li',
            null,
            h('button', { type: 'button', onclick: () => select(ctx, j) }, data.items[j].text),
            h('span', { class: 'number' }, fixed(s, 3)),
          ),
        ),
      ),
      showAll,
    );
  } else if (picked.length) {
    replace(
      list,
      h('h3', null, plural(picked.length, 'selected text')),
      textList(ctx, data, color, picked),
      showAll,
    );
  } else {
    replace(list, h('h3', null, 'Texts'), textList(ctx, data, color, [...data.items.keys()]));
  }
}

const MOST = 10000;
const CHUNK = 256;
const BODY = 30e6; // bytes of base64 in a request

// The vectors of all texts in one buffer; ctx.cached keeps them for other methods.
async function vectorsOf(ctx, inputs) {
  const key = JSON.stringify([ctx.state.model, inputs]);
  if (ctx.cached?.key === key) return ctx.cached;
  let width = 0,
    bytes = null;
  for (let at = 0; at < inputs.length; at += CHUNK) {
    const part = inputs.slice(at, at + CHUNK);
    const body = { model: ctx.state.model, inputs: part, normalize: true };
    const got = await floats('/embed', body, ctx.signal);
    width = got.width;
    if ((4 / 3) * 4 * width * inputs.length > BODY)
      throw new FieldError('texts', `${ctx.state.model} has ${width} dimensions: at most ${count(Math.floor(BODY / (width * 5.4)))} texts.`);
    bytes ??= new Uint8Array(4 * width * inputs.length);
    bytes.set(got.bytes, 4 * width * at);
    if (at === 0)
      ctx.requests.push({
        method: 'POST',
        path: '/embed',
        body,
        data: { shape: [part.length, width] },
        timings: got.timings,
        cli: cli('embed', ctx.state.model, [['--normalize', true], ['--json', true]], part.slice(0, 20)),
      });
    if (inputs.length > CHUNK)
      replace(ctx.result, h('p', { class: 'note', role: 'status' }, `${count(at + part.length)} of ${plural(inputs.length, 'text')} encoded`));
  }
  ctx.cached = { key, width, text: base64(bytes) };
  return ctx.cached;
}

function base64(bytes) {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x6000)
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + 0x6000)));
  return text;
}

async function layout(ctx, vectors) {
  const { method, perplexity, neighbors: near } = ctx.state;
  const body = { width: vectors.width, method, nearest: 5 };
  if (method === 'tsne') body.perplexity = perplexity;
  if (method === 'umap') body.neighbors = near;
  const { data, timings } = await post('/map', { vectors: vectors.text, ...body }, ctx.signal);
  const cut = `${vectors.text.slice(0, 60)}…`;
  ctx.requests.push({ method: 'POST', path: '/map', body: { vectors: cut, ...body }, data, timings, cli: cli('map', ctx.state.model, [['--method', method]], ['texts.txt']) });
  return data;
}

function note(data) {
  if (data.method === 'pca')
    return `The components explain ${percent(data.explained ?? 0)} of the variance. Draw around points to select them.`;
  const kept = data.trustworthiness === null ? '' : ` Trustworthiness ${fixed(data.trustworthiness, 3)}.`;
  return `${data.method === 'tsne' ? `t-SNE with perplexity ${fixed(data.perplexity, 1)}` : 'UMAP'} keeps neighbors; distances between groups mean little.${kept}`;
}

export default {
  id: 'map',
  title: 'Embedding map',
  group: 'Compare',
  tasks: EMBED,
  bundled: 'sesame-embed',
  models: { model: EMBED },
  wide: true,
  errorField: 'texts',
  params: { inputs: 'texts', vectors: 'texts' },
  summary: 'Texts as points: what is similar in meaning is close together.',
  placeholder: 'Enter at least four texts.',
  resultTitle: 'Map',
  state: { texts, method: 'pca', perplexity: 5, neighbors: 15, selected: -1, picked: [] },
  build(ctx) {
    ctx.textField('texts', 'Texts, one per line', {
      rows: 6,
      hint: 'A label and a tab before a text give it a color. At most 10,000 texts.',
    });
    const row = ctx.row('wrap');
    ctx.modelField('model', EMBED, { into: row });
    row.append(
      h(
        'div',
        { class: 'field' },
        h('span', { class: 'label' }, 'Method'),
        segmented(
          'Method',
          [
            ['pca', 'PCA'],
            ['tsne', 't-SNE'],
            ['umap', 'UMAP'],
          ],
          ctx.state.method,
          (v) => ctx.set('method', v, 'now'),
        ),
      ),
    );
    ctx.rangeField('perplexity', 'Perplexity (t-SNE)', { min: 2, max: 50, step: 1, into: row });
    ctx.rangeField('neighbors', 'Neighbors (UMAP)', { min: 2, max: 100, step: 1, into: row });
  },
  async fetch(ctx) {
    const items = parse(ctx.state.texts);
    if (items.length < 4) throw new FieldError('texts', 'Enter at least four texts, one per line.');
    if (items.length > MOST)
      throw new FieldError('texts', `At most ${count(MOST)} texts can be shown; these are ${count(items.length)}.`);
    const vectors = await vectorsOf(ctx, items.map((item) => item.text));
    return { items, ...(await layout(ctx, vectors)) };
  },
  render(ctx, data) {
    const box = h('div', { class: 'map-box' });
    const list = h('div', { class: 'map-list' });
    draw(ctx, data, box, list);
    box.addEventListener('click', (event) => {
      const point = event.target.closest('[data-index]');
      if (point) select(ctx, Number(point.dataset.index));
    });
    return [
      h('div', { class: 'map-grid' }, box, list),
      h(
        'div',
        { class: 'buttons spread' },
        h('span', { class: 'note' }, note(data)),
        h(
          'button',
          {
            type: 'button',
            class: 'quiet',
            onclick: () => {
              const picked = pickedOf(ctx, data);
              const all = [...data.items.keys()];
              download('map.tsv', 'text/tab-separated-values', tsv(data, picked.length ? picked : all));
            },
          },
          'Download TSV',
        ),
      ),
    ];
  },
};
