// Embedding map: texts as points, by principal components or t-SNE; a selected text shows its neighbors.

import { h, svg, fixed, lines, download, replace, percent, plural } from './dom.js';
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

function neighbors(data, i, n = 5) {
  return data.similar[i]
    .map((s, j) => [j, s])
    .filter(([j]) => j !== i)
    .sort((a, b) => b[1] - a[1])
    .slice(0, n);
}

function tsv({ items, vectors, points }, indices) {
  const head = ['label', 'text', 'x', 'y', ...vectors[0].map((_, i) => `v${i}`)];
  const rows = indices.map((i) => [items[i].label, items[i].text, ...points[i], ...vectors[i]]);
  return [head, ...rows].map((row) => `${row.join('\t')}\n`).join('');
}

// Short labels beside points, where they cover no other label or point.
function pointLabels(items, positions) {
  const boxes = positions.map(([x, y]) => [x - 8, y - 8, x + 8, y + 8]);
  return items.map((item, i) => {
    const text = item.text.length > 26 ? `${item.text.slice(0, 25)}…` : item.text;
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
  box.querySelectorAll('circle').forEach((circle, j) => {
    circle.classList.toggle('selected', j === i);
    circle.classList.toggle('far', near.length > 0 && j !== i && !close.has(j));
  });
  return near;
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

function textList(ctx, data, color, indices) {
  return h(
    'ul',
    { class: 'near-list all' },
    indices.map((i) =>
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
        svg(
          'circle',
          { cx: positions[i][0], cy: positions[i][1], r: 6, 'data-index': i, class: `point ${color(item.label)}` },
          svg('title', null, item.text),
        ),
      ),
      pointLabels(data.items, positions),
    ),
    legend(data.items, color),
  );
  const near = showNeighbors(box, data, positions, selected);
  if (ctx.state.picked.length) {
    const picked = new Set(pickedOf(ctx, data));
    for (const [i, circle] of box.querySelectorAll('circle').entries())
      circle.classList.toggle('far', !picked.has(i));
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
  state: { texts, method: 'pca', perplexity: 5, selected: -1, picked: [] },
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
      if (point) select(ctx, Number(point.dataset.index));
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
            ? `The components explain ${percent(a + b)} of the variance. Draw around points to select them.`
            : 't-SNE keeps neighbors; distances between groups mean little.',
        ),
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
