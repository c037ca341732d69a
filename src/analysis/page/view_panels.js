'use strict';
// The panels of the view page. A panel: build(root) makes its elements, draw() its pictures for the current
// state, svg() the same picture as SvgContext, summary() what it shows in words.

const family = () => families[state.family];
const layerName = () => `layer ${family().layers[state.layer]}`;
const headCount = () => family().heads[state.layer];
const chosenHeads = () => {
  const some = state.heads.filter((x) => x < headCount());
  return some.length ? some : Array.from({ length: headCount() }, (_, i) => i);
};
const headMaps = () => chosenHeads().map((x) => ({ map: mapOf(family(), state.layer, x), color: headColor(x) }));
const headNames = () => {
  const chosen = chosenHeads();
  if (chosen.length === headCount()) return headCount() > 1 ? `mean of ${headCount()} heads` : 'head 1';
  return `${chosen.length > 1 ? 'mean of heads' : 'head'} ${chosen.map((x) => x + 1).join(', ')}`;
};

// Dense weights that the side panel describes and matrices show.
const denseCache = { key: '', dense: null };
function denseNow() {
  const key = [state.tab, state.family, state.layer, chosenHeads().join(' ')].join('|');
  if (denseCache.key !== key) {
    let maps = headMaps().map((x) => x.map);
    if (state.tab === 'rollout') maps = [rolloutOf(family(), state.layer)];
    if (state.tab === 'flow') maps = [flowOf(family())];
    denseCache.dense = meanOf(maps);
    denseCache.key = key;
  }
  return denseCache.dense;
}

// ---- lines ----

const lines = {
  ROW: 22,
  build(root) {
    const side = (name, units, label) => {
      const list = h('ol', { class: `v-tokens v-of-${name}`, role: 'listbox', 'aria-label': label, tabindex: '0' });
      units.forEach((unit, i) => {
        list.append(
          h(
            'li',
            {
              role: 'option',
              'aria-selected': 'false',
              'data-i': i,
              class: unit.s ? 'v-special' : unit.p ? 'v-pair' : null,
              title: unit.t,
              id: `v-${name}-${i}`,
            },
            h('bdi', null, unit.t),
          ),
        );
      });
      return list;
    };
    this.root = root;
    this.from = side('row', rowsOf(family()), 'Tokens that attend');
    this.to = side('col', colsOf(family()), 'Tokens that are attended to');
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.wires = h('div', { class: 'v-wires' }, this.canvas);
    this.scroller = h(
      'div',
      { class: 'v-lines', dir: rightToLeft ? 'rtl' : 'ltr' },
      this.from,
      this.wires,
      this.to,
    );
    root.append(this.scroller);
    this.scroller.addEventListener('scroll', () => this.draw(), { passive: true });
    for (const [list, name] of [
      [this.from, 'row'],
      [this.to, 'col'],
    ])
      this.listen(list, name);
  },
  listen(list, side) {
    const at = (event) => {
      const li = event.target.closest('li');
      return li && { side, i: Number(li.dataset.i) };
    };
    list.addEventListener('pointermove', (event) => event.pointerType === 'mouse' && setHot(at(event)));
    list.addEventListener('pointerleave', () => setHot(null));
    list.addEventListener('click', (event) => at(event) && pin(at(event)));
    list.addEventListener('focus', () => list.matches(':focus-visible') && !hot && setHot({ side, i: 0 }));
    list.addEventListener('blur', () => setHot(null));
    list.addEventListener('keydown', (event) => {
      const n = list.children.length;
      const now = hot && hot.side === side ? hot.i : -1;
      const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: n - 1 }[event.key];
      if (next !== undefined) {
        setHot({ side, i: Math.max(0, Math.min(n - 1, next)) });
        list.children[hot.i].scrollIntoView({ block: 'nearest' });
      } else if ((event.key === 'Enter' || event.key === ' ') && now >= 0) {
        pin({ side, i: now });
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    });
  },
  // Weights of the other side's tokens for one token: mean over the chosen heads.
  weightsFor(only) {
    const dense = denseNow();
    const n = colsOf(family()).length;
    if (only.side === 'row') return dense.subarray(only.i * n, (only.i + 1) * n);
    return Float32Array.from(rowsOf(family()), (_, i) => dense[i * n + only.i]);
  },
  mark(only) {
    const other = only && (only.side === 'row' ? this.to : this.from);
    const weights = only && this.weightsFor(only);
    for (const list of [this.from, this.to]) {
      const side = list === this.from ? 'row' : 'col';
      list.classList.toggle('v-dim', Boolean(only) && list !== other);
      for (const [i, li] of [...list.children].entries()) {
        const self = Boolean(only) && only.side === side && only.i === i;
        li.classList.toggle('v-hot', self);
        li.setAttribute('aria-selected', String(Boolean(state.pin) && state.pin.side === side && state.pin.i === i));
        li.style.setProperty('--w', list === other ? `${Math.round(100 * heatAlpha(weights[i]))}%` : '0%');
      }
      if (only && only.side === side) list.setAttribute('aria-activedescendant', `v-${side}-${only.i}`);
      else list.removeAttribute('aria-activedescendant');
    }
  },
  draw() {
    const only = hot || state.pin;
    const height = Math.min(this.scroller.clientHeight, Math.max(this.from.offsetHeight, this.to.offsetHeight), 4096);
    const width = this.wires.clientWidth;
    const rtl = rightToLeft;
    const first = this.scroller.scrollTop;
    const context = prepare(this.canvas, width, height);
    drawLines(context, headMaps(), {
      x0: rtl ? width : 0,
      x1: rtl ? 0 : width,
      rowY: (i) => (i + 0.5) * this.ROW - first,
      colY: (j) => (j + 0.5) * this.ROW - first,
      only,
      least: state.least,
      isVisible: (i) => Boolean(only) || ((i + 1) * this.ROW > first && i * this.ROW < first + height),
    });
    this.mark(only);
  },
  svg() {
    const rows = rowsOf(family());
    const cols = colsOf(family());
    const [edge, width] = [150, 560];
    const context = new SvgContext(width, Math.max(rows.length, cols.length) * this.ROW + 44);
    const y = (i) => 40 + (i + 0.5) * this.ROW;
    context.fillStyle = colors.text;
    context.fillText(`${family().title}, ${layerName()}, ${headNames()}`, 12, 22);
    drawLines(context, headMaps(), {
      x0: rightToLeft ? width - edge : edge,
      x1: rightToLeft ? edge : width - edge,
      rowY: y,
      colY: y,
      only: state.pin,
      least: state.least,
      isVisible: () => true,
    });
    const put = (units, left) => {
      context.textAlign = left ? 'end' : 'start';
      units.forEach((unit, i) => context.fillText(unit.t, left ? edge - 6 : width - edge + 6, y(i) + 4));
    };
    put(rows, !rightToLeft);
    put(cols, rightToLeft);
    return context;
  },
};

// ---- every head ----

const THUMB = 64; // pixels of a thumbnail at most

const model = {
  build(root) {
    this.grid = h('div', { class: 'v-grid', role: 'group', 'aria-label': 'Layers down, heads across' });
    const heads = Math.max(...family().heads);
    this.grid.style.setProperty('--columns', heads);
    this.grid.append(h('span', { class: 'v-corner' }, 'layer'));
    for (let k = 0; k < heads; k++) this.grid.append(h('span', { class: 'v-colname' }, `${k + 1}`));
    this.cells = family().layers.map((name, l) => {
      this.grid.append(h('span', { class: 'v-rowname' }, `${name}`));
      return Array.from({ length: heads }, (_, k) => this.cell(l, k));
    });
    root.append(h('div', { class: 'v-scroll', tabindex: '0', role: 'region', 'aria-label': 'Every head' }, this.grid));
    this.painted = '';
  },
  cell(l, k) {
    if (k >= family().heads[l]) {
      this.grid.append(h('span', { class: 'v-pruned', title: 'no such head' }));
      return null;
    }
    const name = `Layer ${family().layers[l]}, head ${k + 1}`;
    const button = h(
      'button',
      {
        type: 'button',
        class: 'v-thumb',
        'aria-label': name,
        title: name,
        onclick: () => set({ layer: l, heads: [k] }),
      },
      h('canvas', { width: 1, height: 1, 'aria-hidden': 'true' }),
    );
    button.style.setProperty('--head', `var(--v-h${(k % 8) + 1})`);
    this.grid.append(button);
    return button;
  },
  draw() {
    for (const [l, row] of this.cells.entries())
      row.forEach((button, k) => {
        const on = state.layer === l && state.heads.length === 1 && state.heads[0] === k;
        if (button) button.setAttribute('aria-pressed', String(on));
      });
    const key = `${state.family}|${colors.surface}`;
    if (this.painted === key) return;
    this.painted = key;
    const paint = (l) => {
      if (this.painted !== key || l === this.cells.length) return;
      this.cells[l].forEach((button, k) => {
        if (!button) return;
        const map = mapOf(family(), l, k);
        paintPixels(button.firstChild, meanOf([map]), map.rows, map.cols, headColor(k), THUMB);
      });
      setTimeout(paint, 0, l + 1); // the page stays responsive
    };
    setTimeout(paint, 0, 0);
  },
  svg() {
    const heads = Math.max(...family().heads);
    const size = 56;
    const context = new SvgContext(40 + heads * (size + 6), 60 + this.cells.length * (size + 6));
    context.fillStyle = colors.text;
    context.fillText(`${family().title}: layers down, heads across`, 12, 22);
    for (let k = 0; k < heads; k++) context.fillText(`${k + 1}`, 40 + k * (size + 6) + size / 2, 44);
    this.cells.forEach((row, l) => {
      context.fillStyle = colors.text;
      context.fillText(`${family().layers[l]}`, 14, 56 + l * (size + 6) + size / 2);
      row.forEach((button, k) => {
        if (!button) return;
        const map = mapOf(family(), l, k);
        const shape = { x: 40 + k * (size + 6), y: 52 + l * (size + 6), right: rightToLeft };
        const { dense, rows, cols } = shrink(meanOf([map]), map.rows, map.cols, 32);
        context.strokeStyle = colors.line;
        context.strokeRect(shape.x, shape.y, size, size);
        drawCells(context, dense, rows, cols, { ...shape, cell: size / Math.max(rows, cols), color: headColor(k) });
      });
    });
    return context;
  },
};

// ---- matrix ----

const clip = (text, n) => (text.length > n ? `${text.slice(0, n - 1)}…` : text);

// dense with its range stretched over all colors.
function stretched(dense) {
  const { low, high } = rangeOf(dense);
  return high > low ? dense.map((x) => (x > 0 ? ((x - low) / (high - low)) ** 2 : 0)) : dense;
}

// Least weight that is not 0, and the greatest.
function rangeOf(dense) {
  let low = Infinity;
  let high = 0;
  for (const x of dense) {
    if (x > 0 && x < low) low = x;
    if (x > high) high = x;
  }
  return { low: Math.min(low, high), high };
}

// A matrix of the tab's weights with the tokens of rows and columns. stretches: the colors show its range.
function matrixPanel(titleOf, colorOf, stretches) {
  return {
    stretches,
    build(root) {
      this.canvas = h('canvas', { 'aria-hidden': 'true' });
      this.cross = h('div', { class: 'v-cross', hidden: true });
      this.scroller = h(
        'div',
        {
          class: 'v-scroll v-matrix',
          tabindex: '0',
          role: 'application',
          'aria-label': 'Matrix of weights: the arrow keys move between cells, Enter pins a row',
        },
        this.canvas,
        this.cross,
      );
      root.append(this.scroller);
      this.canvas.addEventListener('pointermove', (event) => this.point(event));
      this.canvas.addEventListener('pointerleave', () => this.move(null));
      this.canvas.addEventListener('click', () => this.at && pin({ side: 'row', i: this.at.i }));
      this.scroller.addEventListener('blur', () => this.move(null));
      this.scroller.addEventListener('keydown', (event) => this.key(event));
      this.at = null;
    },
    layout(width) {
      const rows = rowsOf(family());
      const cols = colsOf(family());
      const longest = (units) => Math.min(16, Math.max(...units.map((unit) => unit.t.length)));
      const left = 14 + 7 * longest(rows);
      const top = 14 + 6.2 * longest(cols);
      const cell = Math.max(3, Math.min(40, Math.floor((width - left - 8) / cols.length)));
      return { rows, cols, left, top, cell, width: left + cols.length * cell + 8, height: top + rows.length * cell + 4 };
    },
    x(shape, j) {
      return shape.left + (rightToLeft ? shape.cols.length - 1 - j : j) * shape.cell;
    },
    paint(context, shape) {
      const { rows, cols, left, top, cell } = shape;
      const every = Math.max(1, Math.ceil(12 / cell));
      const exact = context instanceof SvgContext;
      context.font = '12px system-ui, sans-serif';
      context.size = 12;
      context.fillStyle = colors.text;
      context.textAlign = 'end';
      const label = (unit) => clip(unit.t, 16);
      for (let i = 0; i < rows.length; i += every) context.fillText(label(rows[i]), left - 6, top + (i + 0.5) * cell + 4);
      context.textAlign = 'start';
      for (let j = 0; j < cols.length; j += every) {
        const at = this.x(shape, j) + cell / 2 + 4;
        if (exact) {
          context.turn = -60;
          context.fillText(label(cols[j]), at, top - 6);
          context.turn = 0;
        } else {
          context.save();
          context.translate(at, top - 6);
          context.rotate(-Math.PI / 3);
          context.fillText(label(cols[j]), 0, 0);
          context.restore();
        }
      }
      const dense = stretches ? stretched(denseNow()) : denseNow();
      const area = { x: left, y: top, cell, color: colorOf(), right: rightToLeft };
      if (cell >= 8 || exact) {
        drawCells(context, dense, rows.length, cols.length, area);
      } else {
        const image = h('canvas', null);
        paintPixels(image, dense, rows.length, cols.length, colorOf(), 1 << 14);
        context.imageSmoothingEnabled = false;
        context.drawImage(image, left, top, cols.length * cell, rows.length * cell);
      }
      context.strokeStyle = colors.line;
      context.strokeRect(left - 0.5, top - 0.5, cols.length * cell + 1, rows.length * cell + 1);
    },
    draw() {
      this.shape = this.layout(this.scroller.clientWidth);
      this.paint(prepare(this.canvas, this.shape.width, this.shape.height), this.shape);
      this.show();
    },
    point(event) {
      const box = this.canvas.getBoundingClientRect();
      const { left, top, cell, rows, cols } = this.shape;
      const column = Math.floor((event.clientX - box.left - left) / cell);
      const i = Math.floor((event.clientY - box.top - top) / cell);
      const inside = column >= 0 && column < cols.length && i >= 0 && i < rows.length;
      this.move(inside ? { i, j: rightToLeft ? cols.length - 1 - column : column } : null);
    },
    move(at) {
      this.at = at;
      setHot(at && { side: 'row', i: at.i, j: at.j });
    },
    show() {
      const only = hot || state.pin;
      this.cross.hidden = !only || only.side !== 'row';
      if (this.cross.hidden) return;
      const { left, top, cell, cols } = this.shape;
      const all = only.j === undefined;
      this.cross.style.left = `${all ? left : this.x(this.shape, only.j)}px`;
      this.cross.style.top = `${top + only.i * cell}px`;
      this.cross.style.width = `${all ? cols.length * cell : cell}px`;
      this.cross.style.height = `${cell}px`;
    },
    key(event) {
      const { rows, cols } = this.shape;
      const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
      if (step) {
        const from = this.at || { i: state.pin ? state.pin.i : 0, j: 0 };
        const inside = (x, n) => Math.max(0, Math.min(n - 1, x));
        const along = rightToLeft ? -step[1] : step[1];
        this.move({
          i: inside(from.i + (this.at ? step[0] : 0), rows.length),
          j: inside(from.j + (this.at ? along : 0), cols.length),
        });
      } else if (event.key === 'Enter' && this.at) {
        pin({ side: 'row', i: this.at.i });
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    },
    svg() {
      const shape = this.layout(760);
      const context = new SvgContext(shape.width + 30, shape.height + 32);
      context.fillStyle = colors.text;
      context.fillText(titleOf(), 12, 20);
      this.paint(context, { ...shape, top: shape.top + 24 });
      return context;
    },
  };
}

const oneColor = () => (chosenHeads().length === 1 ? headColor(chosenHeads()[0]) : colors.heat);
const matrix = matrixPanel(() => `${family().title}, ${layerName()}, ${headNames()}`, oneColor);
const rollout = matrixPanel(() => `${family().title}: rollout to ${layerName()}`, () => colors.heat, true);
const flow = matrixPanel(() => `${family().title}: flow`, () => colors.heat, true);
