'use strict';
// The neuron view: how query and key of one head make a weight.

const MOST_KEYS = 128; // rows of the table

const neuron = {
  CELL: 5,
  build(root) {
    this.table = h('div', { class: 'v-scroll', tabindex: '0', role: 'region', 'aria-label': 'Query times key' });
    root.append(this.table);
  },
  head: () => chosenHeads()[0],
  query: () => (state.pin && state.pin.side === 'row' ? state.pin.i : Math.min(1, rowsOf(family()).length - 1)),
  strip(numbers, full, label) {
    const canvas = h('canvas', { role: 'img', 'aria-label': label });
    const context = prepare(canvas, numbers.length * this.CELL, 14);
    drawSigned(context, numbers, full, 0, 0, this.CELL, 14);
    return canvas;
  },
  // Everything about one query and head.
  compute() {
    const from = neuronsOf(family(), state.layer);
    const [row, head] = [this.query(), this.head()];
    const weights = mapOf(family(), state.layer, head).row(row);
    const q = from.q(row, head);
    const bias = from.bias(row, head);
    const largest = (numbers) => numbers.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    const keys = [];
    for (let j = 0; j < weights.length && !(family().causal && j > row); j++) {
      const k = from.k(j, head);
      const product = q.map((x, d) => x * k[d]);
      const score = product.reduce((sum, x) => sum + x, 0) * family().neuron.scale[state.layer];
      keys.push({ j, k, product, score, bias: bias ? bias[j] : 0, weight: weights[j] });
    }
    const shown =
      keys.length > MOST_KEYS
        ? [...keys].sort((a, b) => b.weight - a.weight).slice(0, MOST_KEYS).sort((a, b) => a.j - b.j)
        : keys;
    return {
      row,
      head,
      q,
      keys: shown,
      all: keys.length,
      hasBias: Boolean(bias),
      full: { q: largest(q), k: Math.max(...shown.map((x) => largest(x.k))), p: Math.max(...shown.map((x) => largest(x.product))) },
    };
  },
  picker(now) {
    const rows = rowsOf(family());
    const select = h(
      'select',
      { id: 'v-query', onchange: (event) => set({ pin: { side: 'row', i: Number(event.target.value) } }) },
      rows.map((unit, i) => h('option', { value: i, selected: i === now.row }, `${i + 1} ${unit.t}`)),
    );
    const note =
      chosenHeads().length > 1
        ? `The first of the chosen heads, ${now.head + 1}, is shown.`
        : now.all > now.keys.length
          ? `The ${now.keys.length} keys of ${now.all} with the largest weights are shown.`
          : '';
    return h(
      'div',
      { class: 'v-query' },
      h('label', { for: 'v-query' }, 'Query'),
      select,
      this.strip(now.q, now.full.q, 'Query vector'),
      h('span', { class: 'v-note' }, note),
    );
  },
  draw() {
    const now = this.compute();
    const column = (text, title, numeric) => h('th', { scope: 'col', title, class: numeric ? 'v-num' : null }, text);
    const table = h(
      'table',
      { class: 'v-neurons' },
      h('caption', null, `${family().title}, ${layerName()}, head ${now.head + 1}: what “${rowsOf(family())[now.row].t}” attends to`),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          column('Key'),
          column('k', 'key vector'),
          column('q × k', 'products of query and key, number by number'),
          column('q·k·scale', 'their sum, scaled', true),
          now.hasBias ? column('bias', 'relative position, added to the score', true) : null,
          column('softmax', 'the weight'),
        ),
      ),
      h(
        'tbody',
        null,
        now.keys.map((key) => {
          const unit = colsOf(family())[key.j];
          const bar = h('span', { class: 'v-bar' });
          bar.style.setProperty('--w', `${100 * key.weight}%`);
          return h(
            'tr',
            null,
            h('th', { scope: 'row', class: unit.s ? 'v-special' : null }, h('bdi', null, unit.t)),
            h('td', null, this.strip(key.k, now.full.k, `key of ${unit.t}`)),
            h('td', null, this.strip(key.product, now.full.p, `query times key of ${unit.t}`)),
            h('td', { class: 'v-num' }, key.score.toFixed(2)),
            now.hasBias ? h('td', { class: 'v-num' }, key.bias.toFixed(2)) : null,
            h('td', { class: 'v-weight' }, bar, h('span', { class: 'v-num' }, percent(key.weight))),
          );
        }),
      ),
    );
    this.table.replaceChildren(this.picker(now), table);
  },
  svg() {
    const now = this.compute();
    const width = now.q.length * this.CELL;
    const x = [110, 120 + width, 180 + 2 * width];
    const context = new SvgContext(x[2] + 150, 80 + now.keys.length * 20);
    context.fillStyle = colors.text;
    context.fillText(`${family().title}, ${layerName()}, head ${now.head + 1}`, 12, 22);
    context.fillText(`q: ${rowsOf(family())[now.row].t}`, 12, 46);
    drawSigned(context, now.q, now.full.q, x[0], 34, this.CELL, 14);
    context.fillStyle = colors.muted;
    ['k', 'q × k', 'score, weight'].forEach((text, i) => context.fillText(text, x[i], 68));
    now.keys.forEach((key, i) => {
      const y = 76 + i * 20;
      context.fillStyle = colors.text;
      context.fillText(clip(colsOf(family())[key.j].t, 14), 12, y + 12);
      context.fillText(`${(key.score + key.bias).toFixed(2)}   ${percent(key.weight)}`, x[2], y + 12);
      drawSigned(context, key.k, now.full.k, x[0], y, this.CELL, 14);
      drawSigned(context, key.product, now.full.p, x[1], y, this.CELL, 14);
    });
    return context;
  },
};
