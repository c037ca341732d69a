// Batch: a CSV file through a classifier or a tagger; the table can be saved with its predictions.

import { h, count, download, fixed, plural, replace } from './dom.js';
import { cli } from './snippets.js';
import { FieldError } from './context.js';
import { isInference } from './panel_classify.js';
import { empty, table } from './widgets.js';
import { parseTable, writeCsv, textColumn } from './csv.js';

const CHUNK = 64;
const MOST = 20000;
const SHOWN = 200;

const example = `id,text
1,"A warm, funny film that never loses its way."
2,Two hours of my life that I will never get back.
3,The plot is thin but the actors are wonderful.
4,Anna Smith met John in Paris.
`;

// What a task adds to a row.
const tasks = {
  'text-classification': {
    name: 'Classify',
    parameters: { top_k: 1 },
    columns: ['prediction', 'score'],
    read: (r) => {
      const best = Array.isArray(r) ? r[0] : r;
      return [best?.label ?? '', best ? fixed(best.score, 4) : ''];
    },
  },
  'token-classification': {
    name: 'Find entities',
    parameters: {},
    columns: ['entities'],
    read: (r) => [r.map((x) => `${x.word} (${x.entity_group || x.entity})`).join('; ')],
  },
};

// The bytes of a file as text: UTF-8, or else Windows-1252, which is said.
async function readText(file) {
  const bytes = await file.arrayBuffer();
  const head = new Uint8Array(bytes.slice(0, 2));
  if ((head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff))
    return [new TextDecoder(head[0] === 0xff ? 'utf-16le' : 'utf-16be').decode(bytes), 'UTF-16'];
  try {
    return [new TextDecoder('utf-8', { fatal: true }).decode(bytes), 'UTF-8'];
  } catch {
    return [new TextDecoder('windows-1252').decode(bytes), 'Windows-1252, as it is not UTF-8'];
  }
}

function load(ctx, name, text, encoding) {
  const t = parseTable(text);
  if (!t.rows.length) {
    ctx.showError('file', `${name}: no rows below a line with names of columns.`);
    return;
  }
  if (t.rows.length > MOST) {
    ctx.showError('file', `${name}: ${count(t.rows.length)} rows; ${count(MOST)} are the limit.`);
    return;
  }
  ctx.clearError('file');
  ctx.file = { name, ...t };
  ctx.state.column = textColumn(t);
  replace(
    ctx.columns,
    t.head.map((c) => h('option', { value: c }, c)),
  );
  ctx.columns.value = ctx.state.column;
  ctx.about.textContent = `${name}: ${plural(t.rows.length, 'row')}, ${plural(t.head.length, 'column')}, ${encoding}.`;
  ctx.run();
}

async function loadFile(ctx, file) {
  const [text, encoding] = await readText(file);
  load(ctx, file.name, text, encoding);
}

// A field to drop a file on, or to choose one by.
function dropField(ctx) {
  const input = h('input', {
    id: 'batch-file',
    type: 'file',
    accept: '.csv,.tsv,.txt,text/csv,text/tab-separated-values',
    class: 'visually-hidden',
    onchange: () => input.files[0] && loadFile(ctx, input.files[0]),
  });
  const zone = h(
    'label',
    { class: 'drop', for: input.id },
    input,
    h('strong', null, 'Drop a CSV file here'),
    h('span', null, 'or choose one'),
  );
  const over = (on) => (event) => {
    event.preventDefault();
    zone.classList.toggle('over', on);
  };
  zone.addEventListener('dragover', over(true));
  zone.addEventListener('dragleave', over(false));
  zone.addEventListener('drop', (event) => {
    over(false)(event);
    const file = event.dataTransfer.files[0];
    if (file) loadFile(ctx, file);
  });
  ctx.addField('file', '', zone, { class: 'drop-field' });
}

function show(ctx, { done, n, results }) {
  const { file } = ctx;
  const added = tasks[ctx.state.task].columns;
  const rows = file.rows.slice(0, Math.min(done, SHOWN)).map((row, i) => [...row, ...results[i]]);
  return [
    h(
      'div',
      { class: 'buttons spread' },
      h(
        'p',
        { class: 'note', role: 'status' },
        `${count(done)} of ${plural(n, 'row')}`,
        done > SHOWN ? `; the first ${SHOWN} are shown` : '',
      ),
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          disabled: done < n,
          onclick: () =>
            download(
              file.name.replace(/\.\w+$/, '') + '-predictions.csv',
              'text/csv',
              writeCsv([...file.head, ...added], file.rows.map((row, i) => [...row, ...results[i]])),
            ),
        },
        'Download predictions',
      ),
    ),
    table(
      'Rows with predictions',
      [...file.head, ...added].map((label) => ({ label, class: added.includes(label) ? 'predicted' : '' })),
      rows,
      { noRowHead: true, class: 'batch' },
    ),
  ];
}

export default {
  id: 'batch',
  title: 'Batch',
  group: 'Try it',
  tasks: Object.keys(tasks),
  bundled: 'sesame-sentiment',
  wide: true,
  errorField: 'file',
  summary: 'A CSV file in, the same table with predictions out.',
  placeholder: 'Drop a CSV file, or take the example.',
  resultTitle: 'Table',
  models: { model: Object.keys(tasks) },
  prefer: { model: (list) => list.find((m) => m.task === 'text-classification' && !isInference(m)) || list[0] },
  state: { task: 'text-classification', column: '' },
  build(ctx) {
    dropField(ctx);
    ctx.about = h('p', { class: 'hint' }, 'CSV with commas, semicolons or tabs; the first line has the names of the columns.');
    ctx.form.append(ctx.about);
    const row = ctx.row('wrap');
    ctx.columns = ctx.selectField('column', 'Column of texts', [], { into: row });
    ctx.selectField(
      'task',
      'Task',
      Object.entries(tasks).map(([id, t]) => [id, t.name]),
      { into: row },
    );
    ctx.modelField('model', Object.keys(tasks), { into: row });
    ctx.form.append(
      h(
        'div',
        { class: 'examples' },
        h(
          'button',
          { type: 'button', class: 'quiet', onclick: () => load(ctx, 'example.csv', example, 'UTF-8') },
          'Example',
        ),
      ),
    );
  },
  async fetch(ctx) {
    if (!ctx.file) return null;
    const { file, state } = ctx;
    const task = tasks[state.task];
    if (!(ctx.model().tasks || []).includes(state.task))
      throw new FieldError('model', `${state.model} does not do this task: choose another model.`);
    const at = file.head.indexOf(state.column);
    const texts = file.rows.map((r) => r[at] ?? '');
    const data = { n: texts.length, done: 0, results: [] };
    const { signal } = ctx;
    const command = { cli: cli(state.task, state.model, [['--csv', file.name]], []) };
    while (data.done < data.n) {
      const part = texts.slice(data.done, data.done + CHUNK);
      const filled = part.map((t) => t.trim()).filter(Boolean);
      const answers = filled.length ? await ctx.pipeline(state.task, filled, task.parameters, command) : [];
      if (signal.aborted) return null;
      let next = 0;
      for (const text of part) {
        const r = text.trim() ? answers[next++] : null;
        data.results.push(r && !r.error ? task.read(r) : task.columns.map((_, k) => (k || !r ? '' : r.error)));
      }
      data.done += part.length;
      ctx.requests.splice(1, ctx.requests.length - 2); // the first and the last are enough to show
      if (data.done < data.n) replace(ctx.result, show(ctx, data));
    }
    return data;
  },
  render: (ctx, data) => (data ? show(ctx, data) : empty('Drop a CSV file, or take the example.')),
};
