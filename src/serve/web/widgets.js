// Parts that several panels show: bars, chips, tabs, examples, highlighted spans.

import { h, svg, newId, percent, replace, append, codePoints } from './dom.js';

// rows: {label, value (0..1), text?, note?, strong?}; a table, so that screen readers have rows and columns.
export function bars(caption, rows, options = {}) {
  const show = options.show || percent;
  const longest = Math.max(4, ...rows.map((r) => codePoints(String(r.label)).length));
  return h(
    'table',
    { class: 'bars', vars: { '--label': `${Math.min(140, 8.4 * longest + 24)}px` } },
    h('caption', { class: options.showCaption ? 'bars-caption' : 'visually-hidden' }, caption),
    h('colgroup', null, h('col', { class: 'bars-label' }), h('col')),
    h(
      'thead',
      { class: 'visually-hidden' },
      h('tr', null, h('th', { scope: 'col' }, options.head || 'Label'), h('th', { scope: 'col' }, 'Score')),
    ),
    h(
      'tbody',
      null,
      rows.map((row) =>
        h(
          'tr',
          { class: row.strong ? 'strong' : null, title: row.note },
          h('th', { scope: 'row' }, row.label),
          h(
            'td',
            null,
            h(
              'span',
              { class: 'track', 'aria-hidden': 'true' },
              h('span', {
                class: 'fill',
                vars: { '--v': `${Math.max(0, Math.min(100, 100 * row.value))}%` },
              }),
            ),
            h('span', { class: 'number' }, row.text || show(row.value)),
          ),
        ),
      ),
    ),
  );
}

// A row of tabs; items: {id, label, content: () => node}. Arrow keys move, as in the ARIA practices.
export function tabs(name, items, options = {}) {
  const prefix = newId('tabs');
  const panel = h('div', { role: 'tabpanel', id: `${prefix}-panel`, tabindex: '0' });
  let current = -1;
  const buttons = items.map((item, i) =>
    h(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: `${prefix}-${item.id}`,
        'aria-controls': panel.id,
        'aria-selected': 'false',
        tabindex: '-1',
        onclick: () => select(i),
        onkeydown: (event) => key(event, i),
      },
      item.label,
    ),
  );
  function select(i) {
    current = i;
    buttons.forEach((button, j) => {
      button.setAttribute('aria-selected', String(i === j));
      button.tabIndex = i === j ? 0 : -1;
    });
    panel.setAttribute('aria-labelledby', buttons[i].id);
    replace(panel, items[i].content());
    if (options.onselect) options.onselect(items[i].id);
  }
  function key(event, i) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (i + step + items.length) % items.length;
    select(next);
    buttons[next].focus();
  }
  const bar = h('div', { role: 'tablist', class: 'tabs', 'aria-label': name }, buttons);
  select(
    Math.max(
      0,
      items.findIndex((item) => item.id === options.selected),
    ),
  );
  return { bar, panel, refresh: () => select(current) };
}

// Labels that can be added and removed. onchange receives the new list.
export function chips(values, onchange, options = {}) {
  const id = options.id || newId('chips');
  const box = h('div', { class: 'chips' });
  const input = h('input', {
    id,
    type: 'text',
    class: 'chip-input',
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: options.placeholder || 'Add a label',
    'aria-describedby': options.describedby,
    onkeydown: keydown,
    onblur: take,
    onpaste: () => setTimeout(take),
  });
  let list = [...values];
  function set(next, focus) {
    list = next;
    draw();
    if (focus) input.focus();
    onchange([...list]);
  }
  function take() {
    const names = input.value
      .split(/[,\n]/)
      .map((s) => s.trim())
      .filter(Boolean);
    const fresh = names.filter((name, i) => !list.includes(name) && names.indexOf(name) === i);
    input.value = '';
    if (fresh.length) set([...list, ...fresh], document.activeElement === input);
  }
  function keydown(event) {
    if (event.key === 'Enter' && !event.ctrlKey && !event.metaKey && input.value.trim()) {
      event.preventDefault();
      take();
    } else if (event.key === ',') {
      event.preventDefault();
      take();
    } else if (event.key === 'Backspace' && !input.value && list.length) {
      set(list.slice(0, -1), true);
    }
  }
  function draw() {
    const items = list.map((name) =>
      h(
        'li',
        { class: 'chip' },
        h('span', null, name),
        h(
          'button',
          {
            type: 'button',
            'aria-label': `Remove ${name}`,
            title: 'Remove',
            onclick: () =>
              set(
                list.filter((x) => x !== name),
                true,
              ),
          },
          '×',
        ),
      ),
    );
    const typed = input.value;
    replace(
      box,
      items.length ? h('ul', { class: 'chip-list', 'aria-label': options.label || 'Labels' }, items) : null,
      input,
    );
    input.value = typed;
  }
  draw();
  return {
    box,
    input,
    set: (next) => {
      list = [...next];
      draw();
    },
  };
}

// Text with marked parts; spans: {start, end (code points), class, label?, title?}, not overlapping, sorted.
export function highlighted(text, spans) {
  const points = codePoints(text);
  const out = h('p', { class: 'marked' });
  let at = 0;
  for (const span of spans) {
    if (span.start < at) continue;
    append(out, points.slice(at, span.start).join(''));
    append(
      out,
      h(
        'mark',
        { class: span.class, title: span.title },
        points.slice(span.start, span.end).join(''),
        span.label ? h('span', { class: 'mark-label' }, span.label) : null,
      ),
    );
    at = span.end;
  }
  return append(out, points.slice(at).join(''));
}

export function table(caption, head, rows, options = {}) {
  return h(
    'div',
    { class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': caption },
    h(
      'table',
      { class: `plain ${options.class || ''}` },
      h('caption', { class: 'visually-hidden' }, caption),
      h(
        'thead',
        null,
        h(
          'tr',
          null,
          head.map((c) => h('th', { scope: 'col', class: c.class }, c.label ?? c)),
        ),
      ),
      h(
        'tbody',
        null,
        rows.map((cells) =>
          h(
            'tr',
            null,
            cells.map((cell, i) =>
              h(
                i === 0 && !options.noRowHead ? 'th' : 'td',
                { scope: i === 0 && !options.noRowHead ? 'row' : null, class: head[i].class },
                cell,
              ),
            ),
          ),
        ),
      ),
    ),
  );
}

export const empty = (text) => h('p', { class: 'empty' }, text);

export function segmented(label, options, value, onchange) {
  const name = newId('segment');
  return h(
    'fieldset',
    { class: 'segmented' },
    h('legend', { class: 'visually-hidden' }, label),
    options.map(([id, text]) =>
      h(
        'label',
        null,
        h('input', { type: 'radio', name, value: id, checked: id === value, onchange: () => onchange(id) }),
        h('span', null, text),
      ),
    ),
  );
}

// A small line chart of recent values.
export function sparkline(values, options = {}) {
  const width = 240,
    height = 48;
  const max = Math.max(options.min || 0, ...values, 1e-9);
  const n = options.points || 60;
  const x = (i) => width - (values.length - 1 - i) * (width / (n - 1));
  const y = (v) => height - 2 - (height - 6) * (v / max);
  const path = values.map((v, i) => `${i ? 'L' : 'M'}${x(i).toFixed(1)} ${y(v).toFixed(1)}`).join('');
  const area = values.length > 1 ? `${path}L${width} ${height}L${x(0).toFixed(1)} ${height}Z` : '';
  return svg(
    'svg',
    { class: 'spark', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    svg('path', { class: 'spark-area', d: area }),
    svg('path', { class: 'spark-line', d: path }),
  );
}

// Colors of categories: c1..c8 of the style sheet, in the order of first use.
export function palette() {
  const seen = new Map();
  return (name) => {
    if (!seen.has(name)) seen.set(name, (seen.size % 8) + 1);
    return `c${seen.get(name)}`;
  };
}
