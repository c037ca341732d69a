// Embedding map: texts as points, by principal components or t-SNE; a selected text shows its neighbours.

import { h, svg, fixed, lines, download, replace, percent } from './dom.js';
import { cli } from './snippets.js';
import { FieldError } from './context.js';
import { cosines, pca, tsne } from './math.js';
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
  const range = (v) => [Math.min(...v), Math.max(...v)];
  const [x0, x1] = range(xs),
    [y0, y1] = range(ys);
  return points.map(([x, y]) => [
    PAD + ((x - x0) / (x1 - x0 || 1)) * (W - 2 * PAD),
    PAD + ((y1 - y) / (y1 - y0 || 1)) * (H - 2 * PAD),
  ]);
}

function neighbours(data, i, n = 5) {
  return data.similar[i]
    .map((s, j) => [j, s])
    .filter(([j]) => j !== i)
    .sort((a, b) => b[1] - a[1])
    .slice(0, n);
}

function tsv({ items, vectors, points }) {
  const head = ['label', 'text', 'x', 'y', ...vectors[0].map((_, i) => `v${i}`)];
  const rows = items.map((item, i) => [item.label, item.text, ...points[i], ...vectors[i]]);
  return [head, ...rows].map((row) => `${row.join('\t')}\n`).join('');
}

// Short labels beside points, where they cover no other label or point.
function pointLabels(items, place) {
  const boxes = place.map(([x, y]) => [x - 8, y - 8, x + 8, y + 8]);
  return items.map((item, i) => {
    const text = item.text.length > 26 ? `${item.text.slice(0, 25)}…` : item.text;
    const width = 6.2 * text.length,
      [px, py] = place[i];
    const places = [
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
    const at = places.find(free);
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

// Lines to the neighbours of a text; the others fade.
function showNeighbours(box, data, place, i) {
  const near = i >= 0 && i < place.length ? neighbours(data, i) : [];
  const close = new Set(near.map(([j]) => j));
  replace(
    box.querySelector('.neighbour-lines'),
    near.map(([j]) =>
      svg('line', {
        class: 'neighbour-line',
        x1: place[i][0],
        y1: place[i][1],
        x2: place[j][0],
        y2: place[j][1],
      }),
    ),
  );
  box.querySelectorAll('circle').forEach((circle, j) => {
    circle.classList.toggle('selected', j === i);
    circle.classList.toggle('far', near.length > 0 && j !== i && !close.has(j));
  });
  return near;
}

function draw(ctx, data, box, list) {
  const place = scaled(data.points);
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
      svg('g', { class: 'neighbour-lines' }),
      data.items.map((item, i) =>
        svg(
          'circle',
          { cx: place[i][0], cy: place[i][1], r: 6, 'data-index': i, class: `point ${color(item.label)}` },
          svg('title', null, item.text),
        ),
      ),
      pointLabels(data.items, place),
    ),
    legend(data.items, color),
  );
  const near = showNeighbours(box, data, place, selected);
  box.onpointerover = (event) => {
    const point = event.target.closest('[data-index]');
    showNeighbours(box, data, place, point ? Number(point.dataset.index) : ctx.state.selected);
  };
  const rows =
    selected >= 0 && selected < place.length
      ? [
          h('h3', null, 'Nearest to'),
          h('p', { class: 'selected-text' }, data.items[selected].text),
          h(
            'ol',
            { class: 'near-list' },
            near.map(([j, s]) =>
              h(
                'li',
                null,
                h(
                  'button',
                  { type: 'button', onclick: () => ctx.set('selected', j, 'render') },
                  data.items[j].text,
                ),
                h('span', { class: 'number' }, fixed(s, 3)),
              ),
            ),
          ),
          h(
            'button',
            { type: 'button', class: 'quiet', onclick: () => ctx.set('selected', -1, 'render') },
            'Show all',
          ),
        ]
      : [
          h('h3', null, 'Texts'),
          h(
            'ul',
            { class: 'near-list all' },
            data.items.map((item, i) =>
              h(
                'li',
                null,
                h('span', { class: `dot ${color(item.label)}`, 'aria-hidden': 'true' }),
                h('button', { type: 'button', onclick: () => ctx.set('selected', i, 'render') }, item.text),
              ),
            ),
          ),
        ];
  replace(list, rows);
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
  params: { inputs: 'texts' },
  summary: 'Texts as points: what is similar in meaning is close together.',
  placeholder: 'Enter at least three texts.',
  resultTitle: 'Map',
  state: { texts, method: 'pca', perplexity: 5, selected: -1 },
  build(ctx) {
    ctx.textField('texts', 'Texts, one per line', {
      rows: 6,
      hint: 'A label and a tab before a text give it a color. At most 500 texts.',
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
          ],
          ctx.state.method,
          (v) => ctx.set('method', v, 'render'),
        ),
      ),
    );
    ctx.rangeField('perplexity', 'Perplexity (t-SNE)', {
      min: 2,
      max: 50,
      step: 1,
      how: 'render',
      into: row,
    });
  },
  async fetch(ctx) {
    const items = parse(ctx.state.texts);
    if (items.length < 3) throw new FieldError('texts', 'Enter at least three texts, one per line.');
    if (items.length > 500)
      throw new FieldError('texts', `At most 500 texts can be shown; these are ${items.length}.`);
    const inputs = items.map((item) => item.text);
    const vectors = await ctx.post(
      '/embed',
      { model: ctx.state.model, inputs, normalize: true },
      {
        cli: cli(
          'embed',
          ctx.state.model,
          [
            ['--normalize', true],
            ['--json', true],
          ],
          inputs,
        ),
      },
    );
    return { items, vectors, similar: cosines(vectors), pca: pca(vectors) };
  },
  render(ctx, data) {
    if (ctx.state.method === 'tsne') {
      const key = `tsne${ctx.state.perplexity}`;
      data[key] = data[key] || tsne(data.vectors, ctx.state.perplexity, data.pca.points);
      data.points = data[key];
    } else {
      data.points = data.pca.points;
    }
    const box = h('div', { class: 'map-box' });
    const list = h('div', { class: 'map-list' });
    draw(ctx, data, box, list);
    box.addEventListener('click', (event) => {
      const point = event.target.closest('[data-index]');
      ctx.set('selected', point ? Number(point.dataset.index) : -1, 'render');
    });
    const [a, b] = data.pca.explained;
    return [
      h('div', { class: 'map-grid' }, box, list),
      h(
        'div',
        { class: 'buttons spread' },
        h(
          'span',
          { class: 'note' },
          ctx.state.method === 'pca'
            ? `The two components explain ${percent(a + b)} of the variance.`
            : 't-SNE keeps neighbours; distances between groups mean little.',
        ),
        h(
          'button',
          {
            type: 'button',
            class: 'quiet',
            onclick: () => download('map.tsv', 'text/tab-separated-values', tsv(data)),
          },
          'Download TSV',
        ),
      ),
    ];
  },
};
