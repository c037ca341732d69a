'use strict';
// The view page: state, controls, keyboard, side panel. view_data.js describes the data.

const TABS = [
  { id: 'heads', title: 'Heads', panel: lines, what: 'Lines from each token to the tokens it attends to.' },
  { id: 'model', title: 'Model', panel: model, what: 'Every head of every layer. Select one to enlarge it.' },
  { id: 'matrix', title: 'Matrix', panel: matrix, what: 'Rows attend to columns. Mean of the chosen heads.' },
  { id: 'neuron', title: 'Neuron', panel: neuron, what: 'How a query and the keys make the weights of one head.' },
  {
    id: 'rollout',
    title: 'Rollout',
    panel: rollout,
    what: 'How much of each input reaches a token through all layers up to this one, residual connections included.',
  },
  {
    id: 'flow',
    title: 'Flow',
    panel: flow,
    what: 'Maximum flow from each input to each token of the last layer, with weights as capacities.',
  },
];
// Least weights that are drawn; rows of long texts have smaller weights.
const defaultLeast = () => (colsOf(family()).length <= 64 ? 0.05 : colsOf(family()).length <= 256 ? 0.02 : 0.01);
const LEAST = [0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5];

// family, layer: positions in their lists. heads: chosen ones; empty: all. pin: {side, i} or null.
const state = { tab: data.tab || 'heads', family: 0, layer: 0, heads: [], pin: null, least: 0, find: '' };
let hot = null; // what the pointer or the keyboard is on

const tabNow = () => TABS.find((tab) => tab.id === state.tab);

// Why a tab has nothing to show; '': it has.
function missing(id) {
  if (id === 'neuron' && !family().neuron) return family().neuron_why || '';
  if (id === 'rollout' && !family().rollout) return 'The page was written without rollout.';
  if (id === 'flow' && !family().flow) return family().flow_why || '';
  return '';
}

// ---- state and address ----

function readHash() {
  const from = new URLSearchParams(location.hash.slice(1));
  const number = (key, n) => {
    const x = Number(from.get(key));
    return Number.isInteger(x) && x >= 1 && x <= n ? x - 1 : null;
  };
  if (TABS.some((tab) => tab.id === from.get('tab'))) state.tab = from.get('tab');
  const index = families.findIndex((x) => x.id === from.get('family'));
  if (index >= 0) state.family = index;
  const layer = family().layers.indexOf(Number(from.get('layer')));
  state.layer = layer >= 0 ? layer : Math.min(state.layer, family().layers.length - 1);
  if (from.has('heads'))
    state.heads = from
      .get('heads')
      .split(',')
      .map((x) => Number(x) - 1)
      .filter((x) => Number.isInteger(x) && x >= 0 && x < headCount());
  for (const side of ['row', 'col']) {
    const i = number(side, (side === 'row' ? rowsOf : colsOf)(family()).length);
    if (i !== null) state.pin = { side, i };
  }
  if (from.has('least') && LEAST.includes(Number(from.get('least')))) state.least = Number(from.get('least'));
}

function writeHash() {
  const to = new URLSearchParams({ tab: state.tab });
  if (families.length > 1) to.set('family', family().id);
  to.set('layer', family().layers[state.layer]);
  if (state.heads.length) to.set('heads', state.heads.map((x) => x + 1).join(','));
  if (state.pin) to.set(state.pin.side, state.pin.i + 1);
  if (state.least !== defaultLeast()) to.set('least', state.least);
  history.replaceState(null, '', `#${to.toString().replace(/%2C/g, ',')}`);
}

function set(change) {
  const before = { tab: state.tab, family: state.family };
  Object.assign(state, change);
  if (state.family !== before.family) {
    state.layer = Math.min(state.layer, family().layers.length - 1);
    state.pin = null;
  }
  state.heads = state.heads.filter((x) => x < headCount());
  hot = null;
  writeHash();
  render(state.tab !== before.tab || state.family !== before.family);
}

function pin(at) {
  const same = state.pin && state.pin.side === at.side && state.pin.i === at.i;
  set({ pin: same ? null : { side: at.side, i: at.i } });
}

function setHot(at) {
  if (JSON.stringify(at) === JSON.stringify(hot)) return;
  hot = at;
  if (missing(state.tab)) return;
  const { panel } = tabNow();
  if (panel === lines) panel.draw();
  else if (panel.show) panel.show();
  describe();
}

// ---- side panel ----

function barList(weights, units, few) {
  const best = [...weights.entries()].sort((a, b) => b[1] - a[1]).slice(0, few).filter((x) => x[1] > 0);
  return h(
    'ol',
    { class: 'v-best' },
    best.map(([i, w]) => {
      const bar = h('span', { class: 'v-bar' });
      bar.style.setProperty('--w', `${100 * w}%`);
      return h('li', { class: units[i].s ? 'v-special' : null }, h('bdi', null, units[i].t), bar, h('b', null, percent(w)));
    }),
  );
}

// Mean weights of the map to the next, the first and other tokens, as `sesame heads` gives them for a corpus.
function habits(dense) {
  const rows = rowsOf(family());
  const cols = colsOf(family());
  const n = cols.length;
  const square = family().rows === family().cols;
  const onlySpecial = rows.every((unit) => unit.s);
  const special = [...cols.keys()].filter((j) => cols[j].s);
  const sum = { 'the same token': 0, 'the next': 0, 'the previous': 0, 'the first': 0, 'special tokens': 0 };
  let entropy = 0;
  let spread = 0;
  let count = 0;
  rows.forEach((unit, i) => {
    if (unit.s && !onlySpecial) return;
    const at = i * n;
    count++;
    spread += Math.log(family().causal ? i + 1 : n);
    for (let j = at; j < at + n; j++) if (dense[j] > 0) entropy -= dense[j] * Math.log(dense[j]);
    for (const j of special) sum['special tokens'] += dense[at + j];
    sum['the first'] += dense[at];
    if (!square) return;
    sum['the same token'] += dense[at + i];
    if (i + 1 < n) sum['the next'] += dense[at + i + 1];
    if (i > 0) sum['the previous'] += dense[at + i - 1];
  });
  const list = Object.entries(sum)
    .filter(([, w]) => w > 0)
    .map(([name, w]) => h('div', null, h('dt', null, `to ${name}`), h('dd', null, percent(w / count))));
  const even = spread > 0 ? `${Math.round((100 * entropy) / spread)} % of the largest` : '';
  list.push(h('div', null, h('dt', null, 'entropy'), h('dd', null, `${(entropy / count).toFixed(2)} nat, ${even}`)));
  return h('dl', { class: 'v-habits' }, list);
}

function describe() {
  const side = document.querySelector('.v-side');
  const only = hot || state.pin;
  if (missing(state.tab)) {
    side.replaceChildren();
    return;
  }
  const dense = denseNow();
  const rows = rowsOf(family());
  const cols = colsOf(family());
  const what = state.tab === 'rollout' ? `rollout to ${layerName()}` : state.tab === 'flow' ? 'flow' : `${layerName()}, ${headNames()}`;
  if (!only) {
    side.replaceChildren(
      h('h2', null, what[0].toUpperCase() + what.slice(1)),
      state.tab === 'model' ? enlarged() : h('p', { class: 'v-note' }, 'Point at a token to see its weights alone; click to keep it.'),
      tabNow().panel.stretches ? rangeNote(dense) : '',
      state.tab === 'flow' ? '' : habits(dense),
    );
    return;
  }
  const unit = (only.side === 'row' ? rows : cols)[only.i];
  const n = cols.length;
  const weights =
    only.side === 'row' ? dense.slice(only.i * n, (only.i + 1) * n) : Float32Array.from(rows, (_, i) => dense[i * n + only.i]);
  const cell =
    only.j === undefined
      ? null
      : h('p', { class: 'v-cell' }, h('bdi', null, cols[only.j].t), ' ', h('b', null, percent(weights[only.j])));
  side.replaceChildren(
    h('h2', null, h('bdi', null, unit.t), only.side === 'row' ? ' attends to' : ' is attended to by'),
    h('p', { class: 'v-note' }, `${what}${!hot && state.pin ? ' (pinned; Esc releases)' : ''}`),
    cell || '',
    barList(weights, only.side === 'row' ? cols : rows, 10),
  );
}

function rangeNote(dense) {
  const { low, high } = rangeOf(dense);
  return h('p', { class: 'v-note' }, `The colors run from ${percent(low)} to ${percent(high)}.`);
}

// The selected thumbnail, large.
function enlarged() {
  const canvas = h('canvas', { class: 'v-large', role: 'img', 'aria-label': `${layerName()}, ${headNames()}` });
  const dense = denseNow();
  paintPixels(canvas, dense, rowsOf(family()).length, colsOf(family()).length, oneColor(), 256);
  const go = (id, text) => h('button', { type: 'button', onclick: () => set({ tab: id }) }, text);
  return h('div', { class: 'v-enlarged' }, canvas, h('div', { class: 'v-row' }, go('heads', 'Lines'), go('matrix', 'Matrix'), go('neuron', 'Neuron')));
}

// ---- controls ----

const chip = (text, on, onclick, more) =>
  h('button', { type: 'button', class: 'v-chip', 'aria-pressed': String(on), onclick, ...more }, text);

function group(name, ...children) {
  return h('div', { class: 'v-group', role: 'group', 'aria-label': name }, h('span', { class: 'v-name' }, name), children);
}

function headChip(k) {
  const on = state.heads.includes(k) || !state.heads.length;
  const toggle = (event) => {
    if (event.shiftKey || event.ctrlKey || event.metaKey || (state.heads.length && !state.heads.includes(k))) {
      const next = state.heads.includes(k) ? state.heads.filter((x) => x !== k) : [...state.heads, k];
      set({ heads: next.length === headCount() ? [] : next.sort((a, b) => a - b) });
    } else if (!state.heads.length) {
      set({ heads: [k] });
    } else {
      set({ heads: state.heads.filter((x) => x !== k) });
    }
  };
  const button = chip(`${k + 1}`, on, toggle, { 'aria-label': `Head ${k + 1}`, id: `v-head-${k}` });
  button.classList.add('v-head');
  button.style.setProperty('--head', `var(--v-h${(k % 8) + 1})`);
  return button;
}

function leastControl() {
  const output = h('output', { for: 'v-least' }, percent(state.least));
  const range = h('input', {
    id: 'v-least',
    type: 'range',
    min: 0,
    max: LEAST.length - 1,
    value: LEAST.indexOf(state.least),
    'aria-label': 'Least weight drawn',
    'aria-valuetext': percent(state.least),
    oninput: (event) => set({ least: LEAST[Number(event.target.value)] }),
  });
  return group('Weights from', range, output);
}

function findControl() {
  return h('input', {
    id: 'v-find',
    type: 'search',
    placeholder: 'Find a token  /',
    'aria-label': 'Find a token',
    value: state.find,
    onkeydown: (event) => {
      if (event.key === 'Enter') find(event.target.value, event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') event.target.blur();
    },
    oninput: (event) => {
      state.find = event.target.value;
    },
  });
}

function find(text, step) {
  const rows = rowsOf(family());
  const start = state.pin && state.pin.side === 'row' ? state.pin.i : step > 0 ? -1 : 0;
  for (let k = 1; text && k <= rows.length; k++) {
    const i = (((start + step * k) % rows.length) + rows.length) % rows.length;
    if (!rows[i].t.toLowerCase().includes(text.toLowerCase())) continue;
    set({ pin: { side: 'row', i } });
    const li = document.getElementById(`v-row-${i}`);
    if (li) li.scrollIntoView({ block: 'nearest' });
    return;
  }
  const field = document.getElementById('v-find');
  field.setCustomValidity(text ? 'No token contains this' : '');
  field.reportValidity();
  field.setCustomValidity('');
}

function controls() {
  const id = state.tab;
  const usesHeads = id === 'heads' || id === 'matrix' || id === 'neuron';
  const parts = [];
  if (families.length > 1)
    parts.push(group('Attention', families.map((x, i) => chip(x.short, i === state.family, () => set({ family: i }), { id: `v-family-${i}` }))));
  if (usesHeads || id === 'rollout')
    parts.push(
      group('Layer', family().layers.map((name, l) => chip(`${name}`, l === state.layer, () => set({ layer: l }), { 'aria-label': `Layer ${name}`, id: `v-layer-${l}` }))),
    );
  if (usesHeads)
    parts.push(
      group(
        'Heads',
        Array.from({ length: headCount() }, (_, k) => headChip(k)),
        headCount() > 1 ? chip('all', !state.heads.length, () => set({ heads: [] }), { 'aria-label': 'All heads', id: 'v-head-all' }) : null,
      ),
    );
  if (id === 'heads') parts.push(leastControl());
  if (id !== 'model' && id !== 'flow') parts.push(findControl());
  return parts;
}

// ---- the page ----

// The elements of a panel for the current family: made once.
function panelRoot(panel) {
  if (panel.family !== state.family) {
    panel.family = state.family;
    panel.element = h('div', null);
    panel.build(panel.element);
  }
  return panel.element;
}

function render(rebuild) {
  const root = document.querySelector('.view');
  const focused = document.activeElement && root.contains(document.activeElement) ? document.activeElement.id : '';
  const tab = tabNow();
  for (const button of root.querySelectorAll('[role=tab]')) {
    const on = button.id === `v-tab-${tab.id}`;
    button.setAttribute('aria-selected', String(on));
    button.tabIndex = on ? 0 : -1;
  }
  root.querySelector('.v-controls').replaceChildren(...controls());
  root.querySelector('.v-what').textContent = tab.what;
  const stage = root.querySelector('.v-stage');
  stage.setAttribute('aria-labelledby', `v-tab-${tab.id}`);
  const why = missing(tab.id);
  root.querySelector('.v-main').classList.toggle('v-alone', Boolean(why) || tab.id === 'neuron');
  if (rebuild && !why) stage.replaceChildren(panelRoot(tab.panel));
  if (why) stage.replaceChildren(h('p', { class: 'v-why' }, why));
  else tab.panel.draw();
  describe();
  root.querySelector('#v-save').disabled = Boolean(why);
  if (focused && document.getElementById(focused)) document.getElementById(focused).focus({ preventScroll: true });
}

function saveSvg() {
  const text = tabNow().panel.svg().text(document.title, colors.surface);
  const link = h('a', {
    href: URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' })),
    download: `attention-${state.tab}-${family().id}-layer${family().layers[state.layer]}.svg`,
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const KEYS = [
  ['1 to 6', 'tab'],
  ['↑ ↓', 'layer; in a list of tokens: token'],
  ['← →', 'one head after the other'],
  ['a', 'all heads'],
  ['Enter', 'pin a token'],
  ['Esc', 'release the pinned token'],
  ['/', 'find a token'],
  ['s', 'save the picture as SVG'],
  ['?', 'this list'],
];

function helpDialog() {
  return h(
    'dialog',
    { class: 'v-help', 'aria-labelledby': 'v-help-title' },
    h('h2', { id: 'v-help-title' }, 'Keyboard'),
    h('dl', null, KEYS.map(([key, what]) => h('div', null, h('dt', null, h('kbd', null, key)), h('dd', null, what)))),
    h('p', { class: 'v-note' }, 'A click on a head chooses it alone, further clicks add heads. The address keeps what you see.'),
    h('form', { method: 'dialog' }, h('button', { autofocus: true }, 'Close')),
  );
}

function stepHead(step) {
  const n = headCount();
  const now = state.heads.length === 1 ? state.heads[0] : step > 0 ? -1 : n;
  set({ heads: [(now + step + n) % n] });
}

function stepLayer(step) {
  const l = state.layer + step;
  if (l >= 0 && l < family().layers.length) set({ layer: l });
}

const GLOBAL_KEYS = {
  ArrowUp: () => stepLayer(-1),
  ArrowDown: () => stepLayer(1),
  ArrowLeft: () => stepHead(rightToLeft ? 1 : -1),
  ArrowRight: () => stepHead(rightToLeft ? -1 : 1),
  a: () => set({ heads: [] }),
  s: () => !missing(state.tab) && saveSvg(),
  Escape: () => set({ pin: null }),
  '/': () => document.getElementById('v-find') && document.getElementById('v-find').focus(),
  '?': () => document.querySelector('.v-help').showModal(),
};

function onKey(event) {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('.v-help').open) return;
  if (target.matches('input, select, textarea')) return;
  const inTabs = target.matches('[role=tab]') && /^Arrow(Left|Right)$/.test(event.key);
  if (inTabs) {
    const at = TABS.indexOf(tabNow()) + (event.key === 'ArrowRight' ? 1 : -1);
    const next = TABS[(at + TABS.length) % TABS.length];
    set({ tab: next.id });
    document.getElementById(`v-tab-${next.id}`).focus();
  } else if (TABS[Number(event.key) - 1]) {
    set({ tab: TABS[Number(event.key) - 1].id });
  } else if (GLOBAL_KEYS[event.key] && !(target.closest('.v-scroll') && /^Arrow/.test(event.key))) {
    GLOBAL_KEYS[event.key]();
  } else {
    return;
  }
  event.preventDefault();
}

function frame() {
  const tabs = TABS.map((tab, i) =>
    h(
      'button',
      { type: 'button', role: 'tab', id: `v-tab-${tab.id}`, 'aria-controls': 'v-stage', title: `Key ${i + 1}`, onclick: () => set({ tab: tab.id }) },
      tab.title,
    ),
  );
  return h(
    'div',
    { class: 'view' },
    h(
      'div',
      { class: 'v-top' },
      h('div', { role: 'tablist', 'aria-label': 'Views' }, tabs),
      h(
        'div',
        { class: 'v-row' },
        h('button', { type: 'button', id: 'v-save', onclick: saveSvg }, 'Save SVG'),
        h('button', { type: 'button', id: 'v-keys', 'aria-label': 'Keyboard help', onclick: GLOBAL_KEYS['?'] }, '?'),
      ),
    ),
    h('p', { class: 'v-what v-note' }),
    h('div', { class: 'v-controls' }),
    h(
      'div',
      { class: 'v-main' },
      h('div', { class: 'v-stage', id: 'v-stage', role: 'tabpanel' }),
      h('section', { class: 'v-side', 'aria-live': 'polite', 'aria-label': 'Weights of the token' }),
    ),
    hiddenNote(),
    helpDialog(),
  );
}

// What the page does not contain.
function hiddenNote() {
  const of = families.filter((x) => x.top);
  const text = of.map(
    (x) => `${x.title}: the ${x.top} largest weights of each row are stored; those left out are ${percent(x.hidden)} of a row on average.`,
  );
  text.push('Weights are stored in 8 bits: their error is below 0.4 %.');
  return h('p', { class: 'v-note' }, text.join(' '));
}

function boot() {
  state.layer = Math.max(0, family().layers.length - 1);
  state.least = defaultLeast();
  readHash();
  const tables = document.getElementById('figures');
  const details = h('details', { class: 'v-tables' }, h('summary', null, 'As tables'));
  tables.before(details);
  details.append(tables);
  document.getElementById('app').replaceChildren(frame());
  readColors();
  render(true);
  document.addEventListener('keydown', onKey);
  window.addEventListener('hashchange', () => {
    state.heads = [];
    state.pin = null;
    readHash();
    render(true);
  });
  let width = 0;
  new ResizeObserver(() => {
    const now = document.querySelector('.v-stage').clientWidth;
    if (now === width) return;
    width = now;
    if (!missing(state.tab)) tabNow().panel.draw();
  }).observe(document.querySelector('.v-stage'));
  const recolor = () => {
    readColors();
    render(false);
  };
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', recolor);
  document.documentElement.classList.add('v-ready');
}
boot();
