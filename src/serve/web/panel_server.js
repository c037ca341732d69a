// Live statistics of the server: rates, latency, queues, batches, memory.

import { h, fixed, count, bytes, milliseconds, plural } from './dom.js';
import { sparkline, bars, table } from './widgets.js';
import { get } from './api.js';

const KEEP = 60; // seconds of history

function duration(s) {
  const parts = [
    [Math.floor(s / 86400), 'd'],
    [Math.floor(s / 3600) % 24, 'h'],
    [Math.floor(s / 60) % 60, 'min'],
    [Math.floor(s) % 60, 's'],
  ];
  const first = parts.findIndex(([n]) => n > 0);
  return parts
    .slice(Math.max(0, first < 0 ? 3 : first))
    .slice(0, 2)
    .map(([n, unit]) => `${n} ${unit}`)
    .join(' ');
}

function tile(name, value, history, note) {
  return h(
    'div',
    { class: 'tile' },
    h('dt', null, name),
    h(
      'dd',
      null,
      h('span', { class: 'tile-value' }, value),
      note ? h('small', null, note) : null,
      history ? sparkline(history, { points: KEEP }) : null,
    ),
  );
}

function draw(ctx) {
  const s = ctx.stats;
  const series = (name) => ctx.history.map((x) => x[name]);
  const lanes = Object.entries(s.lanes || {});
  const batch = s.batch || {};
  return [
    h(
      'dl',
      { class: 'tiles' },
      tile('Requests per second', fixed(s.requests_per_second, 1), series('requests')),
      tile('Tokens per second', count(s.tokens_per_second), series('tokens')),
      tile('Latency, median', milliseconds(1000 * s.latency?.p50), series('p50'), 'last minute'),
      tile('Latency, 99th percentile', milliseconds(1000 * s.latency?.p99), series('p99'), 'last minute'),
      tile('Requests', count(s.requests_total), null, 'since the start'),
      tile('Rejected', count(s.rejected_total), null, 'queue was full'),
      tile('Memory', bytes(s.memory_bytes)),
      tile('Up for', duration(s.uptime_seconds)),
    ),
    h(
      'div',
      { class: 'side-by-side' },
      h(
        'section',
        { 'aria-label': 'Queues' },
        h('h3', null, 'Queues'),
        table(
          'Queues',
          [
            { label: 'Queue' },
            { label: 'Requests', class: 'num' },
            { label: 'Tokens', class: 'num' },
            { label: 'Oldest', class: 'num' },
          ],
          lanes.map(([name, lane]) => [
            name,
            count(lane.queued),
            count(lane.tokens),
            milliseconds(1000 * lane.age_seconds),
          ]),
        ),
      ),
      h(
        'section',
        { 'aria-label': 'Last batch' },
        h('h3', null, 'Last batch'),
        bars('Last batch', [{ label: 'Filled', value: batch.fill || 0, strong: true }]),
        h('p', { class: 'note' }, `${plural(batch.sequences, 'sequence')}, ${plural(batch.tokens, 'token')}`),
      ),
    ),
  ];
}

async function poll(ctx) {
  if (document.hidden || ctx.paused) return;
  try {
    const { data, timings } = await get('/stats');
    take(ctx, data);
    ctx.requests = [{ method: 'GET', path: '/stats', data, timings }];
    ctx.clearErrors();
    ctx.data = data;
    ctx.redraw();
  } catch (error) {
    ctx.pauseNote.textContent = `No answer: ${error.message}`;
  }
}

function take(ctx, s) {
  ctx.stats = s;
  const latency = s.latency || {};
  ctx.history.push({
    requests: s.requests_per_second || 0,
    tokens: s.tokens_per_second || 0,
    p50: latency.p50 || 0,
    p99: latency.p99 || 0,
  });
  if (ctx.history.length > KEEP) ctx.history.shift();
  ctx.pauseNote.textContent = ctx.paused ? 'Paused.' : 'Updated every second.';
}

export default {
  id: 'server',
  title: 'Server',
  group: 'Overview',
  tasks: [],
  live: true,
  wide: true,
  summary: 'What the server is doing now.',
  resultTitle: 'Live statistics',
  state: {},
  build(ctx) {
    ctx.history = [];
    ctx.pauseNote = h('span', { class: 'note', role: 'status' }, 'Updated every second.');
    const button = h(
      'button',
      {
        type: 'button',
        onclick: () => {
          ctx.paused = !ctx.paused;
          button.textContent = ctx.paused ? 'Resume' : 'Pause';
          ctx.pauseNote.textContent = ctx.paused ? 'Paused.' : 'Updated every second.';
        },
      },
      'Pause',
    );
    ctx.form.classList.add('slim');
    ctx.form.append(h('div', { class: 'actions' }, button, ctx.pauseNote));
    ctx.timer = setInterval(() => poll(ctx), 1000);
  },
  async fetch(ctx) {
    const data = await ctx.request('GET', '/stats', undefined, {});
    take(ctx, data);
    return data;
  },
  render: (ctx) => draw(ctx),
  destroy: (ctx) => clearInterval(ctx.timer),
};
