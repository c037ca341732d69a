'use strict';
// The map page: controls, side panel, pointer, keyboard, address.

const LISTED = 200; // points in the list
const state = { color: data.color, layout: data.layouts.length - 1, find: '', tool: 'pan' };

const $ = (id) => document.getElementById(id);
const number = (x) => x.toLocaleString('en');
const say = (text) => {
  $('m-status').textContent = text;
};

// ---- address ----

function readHash() {
  const from = new URLSearchParams(location.hash.slice(1));
  const color = data.columns.findIndex((c) => c.name === from.get('color'));
  if (color >= 0) state.color = color;
  if (from.get('color') === '') state.color = -1;
  const layout = data.layouts.findIndex((l) => String(l.layer) === from.get('layer'));
  if (layout >= 0) state.layout = layout;
  if (from.has('find')) state.find = from.get('find');
  const at = (from.get('view') || '').split(',').map(Number);
  if (at.length === 3 && at.every(Number.isFinite) && at[2] >= 0.5 && at[2] <= MAX_ZOOM)
    [view.x, view.y, view.zoom] = at;
}

let hashTimer = 0;
function writeHash() {
  clearTimeout(hashTimer);
  hashTimer = setTimeout(() => {
    const to = new URLSearchParams();
    if (state.color !== data.color) to.set('color', state.color < 0 ? '' : data.columns[state.color].name);
    if (data.layouts.length > 1) to.set('layer', data.layouts[state.layout].layer);
    if (state.find) to.set('find', state.find);
    if (view.zoom !== 1 || view.x !== 0.5 || view.y !== 0.5)
      to.set('view', [view.x.toFixed(4), view.y.toFixed(4), view.zoom.toFixed(3)].join(','));
    history.replaceState(null, '', `#${to.toString().replace(/%2C/g, ',')}`);
  }, 150);
}

// ---- side panel ----

function showLegend() {
  const box = $('m-legend');
  box.replaceChildren();
  if (colors.part) {
    box.append(h('div', { class: 'm-bar', role: 'img', 'aria-label': `colors from ${colors.low} to ${colors.high}` }));
    box.append(h('div', { class: 'm-ends' }, h('span', null, String(colors.low)), h('span', null, String(colors.high))));
    return;
  }
  colors.names.forEach((name, k) => {
    const dot = h('span', { class: isHollow(k) ? 'm-dot m-ring' : 'm-dot' });
    dot.style.setProperty('--dot', classColor(k));
    const toggle = () => {
      if (hidden.has(k)) hidden.delete(k);
      else hidden.add(k);
      row.setAttribute('aria-pressed', String(!hidden.has(k)));
      recolor();
    };
    const row = h(
      'button',
      { type: 'button', class: 'm-key', 'aria-pressed': String(!hidden.has(k)), onclick: toggle, title: 'show or hide' },
      dot,
      h('bdi', { class: 'm-name' }, name),
      h('span', { class: 'm-size' }, number(colors.sizes[k])),
    );
    box.append(row);
  });
}

function showFigures() {
  const layout = data.layouts[state.layout];
  const percent = (x) => `${(100 * x).toFixed(1)} %`;
  const rows = [
    ['KL divergence', layout.kl === null ? null : layout.kl.toFixed(3)],
    ['Variance shown', layout.explained === null ? null : percent(layout.explained)],
    ['Trustworthiness', layout.trustworthiness === null ? null : layout.trustworthiness.toFixed(3)],
    [`Recall of ${layout.neighbours} neighbours`, layout.recall === null ? null : percent(layout.recall)],
  ];
  $('m-figures').replaceChildren(
    ...rows.filter((row) => row[1] !== null).map(([name, x]) => h('div', null, h('dt', null, name), h('dd', null, x))),
  );
}

const listed = () => (chosen.size ? chosen : marked);

function showList() {
  const points = [...listed()];
  const what = chosen.size ? 'selected' : 'found';
  $('m-list-title').textContent = points.length ? `${number(points.length)} ${what}` : 'Selection';
  $('m-tsv').disabled = !points.length;
  $('m-clear').disabled = !points.length;
  $('m-hint').hidden = points.length > 0;
  $('m-list').replaceChildren(
    ...points.slice(0, LISTED).map((i) =>
      h(
        'li',
        null,
        h(
          'button',
          { type: 'button', class: 'm-item', onclick: () => centreOn(i), onmouseenter: () => setHot(i), onfocus: () => setHot(i) },
          h('bdi', null, contextOf(i, 36)),
          state.color >= 0 ? h('span', { class: 'm-tag' }, valueOf(data.columns[state.color], i)) : null,
        ),
      ),
    ),
    ...(points.length > LISTED ? [h('li', { class: 'm-more' }, `${number(points.length - LISTED)} more are in the TSV.`)] : []),
  );
}

function tsv() {
  const clean = (s) => String(s).replace(/[\t\r\n]+/g, ' ');
  const names = [data.unit, ...(data.text ? ['sentence'] : []), ...data.columns.map((c) => c.name), 'x', 'y'];
  const [x0, y0, side] = data.layouts[state.layout].from;
  const rows = [...listed()].map((i) => {
    const at = positions[state.layout];
    const place = [x0 + at[2 * i] * side, y0 + at[2 * i + 1] * side].map((v) => v.toPrecision(6));
    return [data.label[i], ...(data.text ? [textOf(i)] : []), ...data.columns.map((c) => valueOf(c, i)), ...place];
  });
  return [names, ...rows].map((row) => row.map(clean).join('\t')).join('\n') + '\n';
}

// ---- state ----

function setColor(index) {
  state.color = index;
  hidden = new Set();
  colors = coloring(index);
  showLegend();
  showList();
  recolor();
  writeHash();
}

function setLayout(index) {
  state.layout = Math.min(Math.max(index, 0), data.layouts.length - 1);
  if ($('m-layer')) {
    $('m-layer').value = state.layout;
    $('m-layer-name').textContent = data.layouts[state.layout].layer;
    $('m-layer').setAttribute('aria-valuetext', `layer ${data.layouts[state.layout].layer}`);
  }
  moveTo(state.layout);
  showFigures();
  writeHash();
}

function setFind(text) {
  const word = text.trim().toLowerCase();
  state.find = text;
  marked = new Set();
  for (let i = 0; word && i < count; i++) {
    const column = state.color >= 0 ? valueOf(data.columns[state.color], i) : '';
    if (data.label[i].toLowerCase().includes(word) || column.toLowerCase() === word) marked.add(i);
  }
  $('m-found').textContent = word ? `${number(marked.size)} found` : '';
  if (word) chosen = new Set();
  showList();
  draw();
  writeHash();
}

function setChosen(points) {
  chosen = points;
  say(points.size ? `${number(points.size)} points selected` : 'nothing selected');
  showList();
  draw();
}

function setTool(tool) {
  state.tool = tool;
  for (const id of ['pan', 'lasso']) $(`m-${id}`).setAttribute('aria-pressed', String(tool === id));
  canvas.classList.toggle('m-lassoing', tool === 'lasso');
}

function resetView() {
  Object.assign(view, { x: 0.5, y: 0.5, zoom: 1 });
  draw();
  writeHash();
}

function centreOn(i) {
  view.x = shown[2 * i];
  view.y = shown[2 * i + 1];
  view.zoom = Math.max(view.zoom, 6);
  setHot(i);
  writeHash();
}

function setHot(i) {
  if (i === hot) return;
  hot = i;
  const tip = $('m-tip');
  tip.hidden = i < 0;
  if (i >= 0) {
    tip.replaceChildren(
      h('b', null, h('bdi', null, data.label[i])),
      data.text ? h('p', null, h('bdi', null, contextOf(i, 110))) : null,
      h('dl', null, data.columns.slice(0, 8).filter((c) => valueOf(c, i) !== data.label[i]).map((c) => [h('dt', null, c.name), h('dd', null, valueOf(c, i))])),
    );
    const right = screenX(i) > size.width / 2;
    const below = screenY(i) < size.height / 2;
    tip.style.left = right ? 'auto' : `${screenX(i) + 14}px`;
    tip.style.right = right ? `${size.width - screenX(i) + 14}px` : 'auto';
    tip.style.top = below ? `${screenY(i) + 14}px` : 'auto';
    tip.style.bottom = below ? 'auto' : `${size.height - screenY(i) + 14}px`;
    say(`${data.label[i]}${state.color >= 0 ? `, ${valueOf(data.columns[state.color], i)}` : ''}`);
  }
  draw();
}

// The nearest point in a direction from the present one, for the keyboard.
function stepTo(dx, dy) {
  const x = hot >= 0 ? screenX(hot) : size.width / 2;
  const y = hot >= 0 ? screenY(hot) : size.height / 2;
  let best = -1;
  let least = Infinity;
  for (const i of inView()) {
    const along = (screenX(i) - x) * dx + (screenY(i) - y) * dy;
    const across = Math.abs((screenX(i) - x) * dy) + Math.abs((screenY(i) - y) * dx);
    if (i !== hot && along > 0.5 && across <= 2 * along && along + 2 * across < least) {
      best = i;
      least = along + 2 * across;
    }
  }
  if (best >= 0) setHot(best);
}

// ---- pointer ----

const pointers = new Map();
let spread = 0; // distance of two fingers

const placeOf = (event) => {
  const box = canvas.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

function fingers() {
  const [a, b] = [...pointers.values()];
  return Math.hypot(a[0] - b[0], a[1] - b[1]);
}

function down(event) {
  const at = placeOf(event);
  canvas.setPointerCapture(event.pointerId);
  pointers.set(event.pointerId, at);
  if (pointers.size === 2) {
    lasso = null;
    spread = fingers();
  } else if (state.tool === 'lasso' || event.shiftKey) {
    lasso = [at];
  }
  canvas.dataset.moved = '';
}

function move(event) {
  const at = placeOf(event);
  const last = pointers.get(event.pointerId);
  if (!last) {
    setHot(pointAt(at[0], at[1]));
    return;
  }
  pointers.set(event.pointerId, at);
  if (Math.hypot(at[0] - last[0], at[1] - last[1]) > 0) canvas.dataset.moved = '1';
  if (pointers.size === 2) {
    const now = fingers();
    zoomBy(now / (spread || now), at[0], at[1]);
    spread = now;
  } else if (lasso) {
    lasso.push(at);
    draw();
  } else {
    setHot(-1);
    panBy(at[0] - last[0], at[1] - last[1]);
  }
}

function up(event) {
  if (!pointers.delete(event.pointerId)) return;
  if (lasso) {
    const found = lasso.length > 2 ? pointsInLasso() : new Set();
    lasso = null;
    setChosen(found);
  } else if (!canvas.dataset.moved) {
    const i = pointAt(...placeOf(event));
    setHot(i);
    setChosen(i >= 0 ? new Set([i]) : new Set());
  }
  writeHash();
}

function clearAll() {
  $('m-find').value = '';
  setChosen(new Set());
  setFind('');
  setHot(-1);
}

// ---- keyboard ----

const KEYS = [
  ['/', 'search', () => $('m-find').focus()],
  ['+', 'zoom in', () => zoomBy(1.4)],
  ['-', 'zoom out', () => zoomBy(1 / 1.4)],
  ['0', 'show everything', resetView],
  ['l', 'lasso or move', () => setTool(state.tool === 'lasso' ? 'pan' : 'lasso')],
  ['[', 'previous layer', () => setLayout(state.layout - 1)],
  [']', 'next layer', () => setLayout(state.layout + 1)],
  ['s', 'save SVG', saveSvg],
  ['?', 'this help', () => $('m-help').showModal()],
];
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function onKey(event) {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== 'range';
  if (event.ctrlKey || event.metaKey || event.altKey || $('m-help').open) return;
  if (event.key === 'Escape') {
    clearAll();
    return;
  }
  const arrow = event.target === canvas && ARROWS[event.key];
  const key = !typing && KEYS.find(([k]) => k === event.key || (k === '+' && event.key === '='));
  if (arrow && event.shiftKey) panBy(-60 * arrow[0], -60 * arrow[1]);
  else if (arrow) stepTo(...arrow);
  else if (event.target === canvas && event.key === 'Enter' && hot >= 0) setChosen(new Set([hot]));
  else if (key) key[2]();
  else return;
  event.preventDefault();
  writeHash();
}

function saveSvg() {
  download('map.svg', 'image/svg+xml', svgText(document.title));
  say('saved as map.svg');
}

// ---- page ----

function toolbar() {
  const color = h('select', { id: 'm-color', onchange: (event) => setColor(Number(event.target.value)) }, [
    h('option', { value: '-1' }, 'nothing'),
    data.columns.map((c, i) => h('option', { value: i }, c.name)),
  ]);
  const find = h('input', {
    id: 'm-find',
    type: 'search',
    placeholder: data.unit === 'word' ? 'a word' : 'part of a text',
    oninput: (event) => setFind(event.target.value),
  });
  const button = (id, text, action, pressed) =>
    h('button', { type: 'button', id, onclick: action, 'aria-pressed': pressed }, text);
  const layer =
    data.layouts.length > 1
      ? h(
          'label',
          { class: 'm-slider' },
          'Layer ',
          h('b', { id: 'm-layer-name' }),
          h('input', {
            id: 'm-layer',
            type: 'range',
            min: 0,
            max: data.layouts.length - 1,
            oninput: (event) => setLayout(Number(event.target.value)),
          }),
        )
      : null;
  return h(
    'div',
    { class: 'm-tools', role: 'toolbar', 'aria-label': 'map' },
    h('label', null, 'Color by', color),
    layer,
    h('label', { class: 'm-search' }, 'Find', find, h('span', { id: 'm-found', role: 'status' })),
    h(
      'div',
      { class: 'm-buttons', role: 'group', 'aria-label': 'tools' },
      button('m-pan', 'Move', () => setTool('pan'), 'true'),
      button('m-lasso', 'Lasso', () => setTool('lasso'), 'false'),
      button('m-reset', 'Reset', resetView),
      button('m-save', 'Save SVG', saveSvg),
      button('m-keys', '?', () => $('m-help').showModal()),
    ),
  );
}

function side() {
  return h(
    'aside',
    { class: 'm-side' },
    h('section', { 'aria-label': 'colors' }, h('div', { id: 'm-legend', class: 'm-legend' })),
    h('dl', { id: 'm-figures', class: 'm-figures' }),
    h(
      'section',
      { class: 'm-picked', 'aria-labelledby': 'm-list-title' },
      h(
        'div',
        { class: 'm-head' },
        h('h2', { id: 'm-list-title' }),
        h('button', { type: 'button', id: 'm-tsv', onclick: () => download('points.tsv', 'text/tab-separated-values', tsv()) }, 'TSV'),
        h('button', { type: 'button', id: 'm-clear', onclick: clearAll }, 'Clear'),
      ),
      h('p', { id: 'm-hint', class: 'm-hint' }, 'Draw around points with the lasso, or search.'),
      h('ol', { id: 'm-list', class: 'm-list' }),
    ),
  );
}

function help() {
  const rows = [...KEYS.map(([key, what]) => [key, what]), ['arrows', 'from point to point'], ['Shift + arrows', 'move the map'], ['Enter', 'select the point'], ['Shift + drag', 'lasso'], ['Esc', 'clear']];
  return h(
    'dialog',
    { id: 'm-help', 'aria-label': 'keys' },
    h('h2', null, 'Keys'),
    h('dl', null, rows.map(([key, what]) => [h('dt', null, h('kbd', null, key)), h('dd', null, what)])),
    h('form', { method: 'dialog' }, h('button', null, 'Close')),
  );
}

function start() {
  const figures = document.getElementById('figures');
  if (figures) for (const card of figures.querySelectorAll('figure')) card.hidden = true; // the script draws them
  readHash();
  canvas.setAttribute('aria-label', `${data.method} map of ${number(count)} points; arrows move from point to point`);
  document.getElementById('app').append(
    h(
      'div',
      { class: 'map' },
      toolbar(),
      h('div', { class: 'm-body' }, h('div', { class: 'm-stage' }, canvas, h('div', { id: 'm-tip', class: 'm-tip', hidden: true })), side()),
      h('p', { id: 'm-status', class: 'm-status', 'aria-live': 'polite' }),
      help(),
    ),
  );
  canvas.addEventListener('pointerdown', down);
  canvas.addEventListener('pointermove', move);
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => !pointers.size && setHot(-1));
  canvas.addEventListener('dblclick', resetView);
  canvas.addEventListener(
    'wheel',
    (event) => {
      event.preventDefault();
      setHot(-1);
      zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), ...placeOf(event));
      writeHash();
    },
    { passive: false },
  );
  document.addEventListener('keydown', onKey);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => setColor(state.color));
  $('m-color').value = state.color;
  $('m-find').value = state.find;
  shown = positions[state.layout];
  setLayout(state.layout);
  setColor(state.color);
  setTool('pan');
  if (state.find) setFind(state.find);
  new ResizeObserver(resize).observe(canvas);
  resize();
}

start();
