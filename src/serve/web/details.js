// Below every panel: timings, a link to this state, the JSON, and the request as curl, Python and a command.

import { h, replace, milliseconds, copyText, count, plural, announce } from './dom.js';
import { tabs } from './widgets.js';
import { curl, urllib } from './snippets.js';
import { hasKey } from './api.js';

// JSON for reading: vectors and long lists are cut.
function readable(value, indent = '') {
  if (Array.isArray(value)) {
    const numbers = value.every((v) => typeof v === 'number');
    if (numbers && value.length > 8) {
      return `[${value
        .slice(0, 6)
        .map((v) => +v.toPrecision(6))
        .join(', ')}, … ${count(value.length - 6)} more]`;
    }
    const shown = value.slice(0, 50).map((v) => `${indent}  ${readable(v, `${indent}  `)}`);
    if (value.length > 50) shown.push(`${indent}  … ${count(value.length - 50)} more`);
    return value.length ? `[\n${shown.join(',\n')}\n${indent}]` : '[]';
  }
  if (value && typeof value === 'object') {
    const items = Object.entries(value);
    const line = `{${items.map(([k, v]) => `${JSON.stringify(k)}: ${JSON.stringify(v)}`).join(', ')}}`;
    if (line.length <= 108) return line;
    const inner = `${indent}  `;
    const members = items.map(([k, v]) => `${inner}${JSON.stringify(k)}: ${readable(v, inner)}`);
    return `{\n${members.join(',\n')}\n${indent}}`;
  }
  if (typeof value === 'string' && value.length > 2000) return `${JSON.stringify(value.slice(0, 2000))} …`;
  return JSON.stringify(value);
}

function timingText(t) {
  const parts = [];
  if (Number.isFinite(t.tokenization)) parts.push(`tokenization ${milliseconds(t.tokenization)}`);
  if (Number.isFinite(t.queue)) parts.push(`queue ${milliseconds(t.queue)}`);
  if (Number.isFinite(t.inference)) parts.push(`inference ${milliseconds(t.inference)}`);
  const server = Number.isFinite(t.total) ? `server ${milliseconds(t.total)}` : '';
  return [`Round trip ${milliseconds(t.roundTrip)}`, server, ...parts].filter(Boolean);
}

function codeBlock(text, full, label) {
  const button = h(
    'button',
    {
      type: 'button',
      class: 'copy',
      onclick: async () => {
        const ok = await copyText(full || text);
        button.textContent = ok ? 'Copied' : 'Not copied';
        announce(ok ? `${label} copied` : 'Copying failed');
        setTimeout(() => {
          button.textContent = 'Copy';
        }, 1500);
      },
    },
    'Copy',
  );
  return h('div', { class: 'code' }, button, h('pre', { tabindex: '0', 'aria-label': label }, text));
}

export class Details {
  constructor() {
    this.requests = [];
    this.current = 0;
    this.tab = 'json';
    this.timing = h('ul', { class: 'timing', 'aria-label': 'Timings' });
    this.warning = h('p', { class: 'warning', role: 'status', hidden: true });
    this.picker = h('div', { class: 'request-picker' });
    this.body = h('div', { class: 'details-body' });
    const link = h(
      'button',
      {
        type: 'button',
        class: 'quiet',
        onclick: async () => {
          const ok = await copyText(location.href);
          link.textContent = ok ? 'Link copied' : 'Copy the address of this page';
          announce(link.textContent);
          setTimeout(() => {
            link.textContent = 'Copy link';
          }, 1500);
        },
      },
      'Copy link',
    );
    this.element = h(
      'section',
      { class: 'card details', 'aria-label': 'Request and response' },
      h('div', { class: 'details-head' }, this.timing, link),
      this.warning,
      this.picker,
      this.body,
    );
    this.show([]);
  }

  // requests: {label, method, path, body, data, timings, python, cli}
  show(requests) {
    this.requests = requests;
    this.current = Math.min(this.current, Math.max(0, requests.length - 1));
    this.draw();
  }

  draw() {
    const request = this.requests[this.current];
    const t = request?.timings;
    replace(
      this.timing,
      (t ? timingText(t) : ['No request yet']).map((text) => h('li', null, text)),
    );
    const cut = this.requests.reduce((n, r) => n + (r.timings?.truncated || 0), 0);
    this.warning.hidden = !cut;
    this.warning.textContent = cut
      ? `The text is longer than the model accepts: ${plural(cut, 'token')} truncated.`
      : '';
    this.drawPicker();
    this.drawBody(request);
  }

  drawPicker() {
    if (this.requests.length < 2) return replace(this.picker);
    const select = h(
      'select',
      {
        'aria-label': 'Request',
        onchange: () => {
          this.current = select.selectedIndex;
          this.draw();
        },
      },
      this.requests.map((r, i) => h('option', { selected: i === this.current }, r.label || r.path)),
    );
    return replace(this.picker, select);
  }

  drawBody(request) {
    if (!request)
      return replace(this.body, h('p', { class: 'empty' }, 'The request and its response appear here.'));
    const python = request.python || urllib(request, hasKey());
    const items = [
      {
        id: 'json',
        label: 'JSON',
        content: () =>
          codeBlock(readable(request.data), JSON.stringify(request.data), 'JSON of the response'),
      },
      { id: 'curl', label: 'curl', content: () => codeBlock(curl(request, hasKey()), null, 'curl command') },
      { id: 'python', label: 'Python', content: () => codeBlock(python, null, 'Python program') },
      {
        id: 'cli',
        label: 'CLI',
        content: () => codeBlock(request.cli || '# only over HTTP', null, 'sesame command'),
      },
    ];
    const t = tabs('Copy as', items, {
      selected: this.tab,
      onselect: (id) => {
        this.tab = id;
      },
    });
    return replace(this.body, t.bar, t.panel);
  }
}
