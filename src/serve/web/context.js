// What a panel works with: its state (kept in the address), fields bound to it, requests, result and errors.
//
// A panel is {id, title, group, tasks, summary, state, build(ctx), fetch(ctx), render(ctx, data)}. build adds
// fields to the form, fetch asks the server, render turns the answer into nodes. A field changes the state;
// the panel then runs again, or only renders its data again if the field says so.

import { h, replace, debounce, announce, newId, large, count } from './dom.js';
import { post, get, stream, ApiError } from './api.js';
import { writeHash, readState } from './state.js';
import { Details } from './details.js';
import { chips, empty } from './widgets.js';

export class FieldError extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

// One line about a model, below its name in a list of choices.
function aboutModel(model) {
  if (!model) return '\u00a0';
  const parts = [
    model.model_type || model.architecture,
    Number.isFinite(model.parameters) ? `${large(model.parameters)} parameters` : '',
    Number.isFinite(model.max_input_tokens) ? `${count(model.max_input_tokens)} tokens` : '',
  ];
  return parts.filter(Boolean).join(', ') || '\u00a0';
}

export class Context {
  constructor(panel, models, values) {
    this.panel = panel;
    this.models = models;
    this.defaults = { ...panel.state };
    for (const [name, tasks] of Object.entries(panel.models || {})) {
      this.defaults[name] = this.defaultModel(tasks, name);
    }
    if (panel.compare) this.defaults.other = '';
    if (panel.adapt) panel.adapt(this);
    this.state = readState(this.defaults, values);
    this.fields = new Map(); // name -> {element, error, set}
    this.details = new Details();
    this.data = null;
    this.requests = [];
    this.lastMs = 0;
    this.later = debounce(
      () => this.run(),
      () => Math.min(1500, Math.max(300, 1.5 * this.lastMs)),
    );
    this.layout();
    panel.build(this);
    if (panel.compare) this.addOther();
    if (!panel.live) this.addRun();
  }

  layout() {
    const { panel } = this;
    const title = newId('title');
    this.form = h('form', {
      class: 'card input',
      novalidate: true,
      'aria-label': `${panel.title}: input`,
      onsubmit: (event) => {
        event.preventDefault();
        this.run();
      },
    });
    this.result = h('div', { class: 'result' }, empty(panel.placeholder || 'The result appears here.'));
    this.progress = h('div', { class: 'progress', 'aria-hidden': 'true' });
    this.output = h(
      'section',
      { class: 'card output', 'aria-labelledby': title },
      this.progress,
      h('h2', { id: title }, panel.resultTitle || 'Result'),
      this.result,
    );
    this.root = h(
      'article',
      { class: `panel panel-${panel.id}` },
      h(
        'header',
        { class: 'panel-head' },
        h('h1', null, panel.title),
        h('p', { class: 'lead' }, panel.summary),
      ),
      h('div', { class: panel.wide ? 'io wide' : 'io' }, this.form, this.output),
      this.details.element,
    );
  }

  // A second model, whose result is shown beside that of the first.
  addOther() {
    const tasks = this.panel.models.model;
    if (this.modelsFor(tasks).length > 1)
      this.modelField('other', tasks, { label: 'Compare with', none: 'no other model' });
  }

  addRun() {
    this.runButton = h('button', { class: 'primary' }, this.panel.runLabel || 'Run');
    this.form.append(
      h(
        'div',
        { class: 'actions' },
        this.runButton,
        h('span', { class: 'hint keys-hint' }, h('kbd', null, 'Ctrl'), ' ', h('kbd', null, 'Enter')),
      ),
    );
  }

  // ---- models ----

  modelsFor(tasks) {
    return this.models.filter((m) => tasks.length === 0 || tasks.some((t) => (m.tasks || []).includes(t)));
  }

  // First the models whose own task this is: others may do it too, as every encoder gives embeddings.
  modelChoices(tasks) {
    const list = this.modelsFor(tasks);
    const own = list.filter((m) => !m.task || !tasks.length || tasks.includes(m.task));
    return { own, others: list.filter((m) => !own.includes(m)) };
  }

  defaultModel(tasks, name) {
    const { own, others } = this.modelChoices(tasks);
    const list = [...own, ...others];
    const choose = this.panel.prefer?.[name];
    const chosen = choose ? choose(list) : list[0];
    return chosen ? chosen.id : '';
  }

  model(name = 'model') {
    return this.models.find((m) => m.id === this.state[name]) || { id: this.state[name] };
  }

  // ---- state ----

  // how: 'run' (soon), 'now', 'render' or 'none'
  set(name, value, how = 'run') {
    this.state[name] = value;
    this.remember();
    this.clearError(name);
    if (how === 'run') this.later();
    else if (how === 'now') this.run();
    else if (how === 'render') this.redraw();
  }

  // Several values at once, into the fields too.
  assign(values) {
    for (const [name, value] of Object.entries(values)) {
      this.state[name] = value;
      const field = this.fields.get(name);
      if (field?.set) field.set(value);
      this.clearError(name);
    }
    this.remember();
    this.run();
  }

  remember() {
    history.replaceState(null, '', writeHash(this.panel.id, this.defaults, this.state));
  }

  // ---- fields ----

  addField(name, label, control, options = {}) {
    const error = h('p', { class: 'field-error', id: newId('error'), hidden: true });
    const hintId = options.hint ? newId('hint') : '';
    const describe = [hintId, error.id].filter(Boolean).join(' ');
    if (control.matches?.('input, textarea, select')) control.setAttribute('aria-describedby', describe);
    const element = h(
      'div',
      { class: `field ${options.class || ''}` },
      label ? h('label', { for: options.for || control.id }, label) : null,
      control,
      options.hint ? h('p', { class: 'hint', id: hintId }, options.hint) : null,
      error,
    );
    (options.into || this.form).append(element);
    this.fields.set(name, { element, control, error, set: options.set });
    return element;
  }

  textField(name, label, options = {}) {
    const area = h(options.rows === 1 ? 'input' : 'textarea', {
      id: newId(name),
      rows: options.rows > 1 ? options.rows : null,
      type: options.rows === 1 ? 'text' : null,
      placeholder: options.placeholder,
      spellcheck: 'false',
      autocomplete: 'off',
      value: this.state[name],
      oninput: () => this.set(name, area.value, options.how || 'run'),
    });
    this.addField(name, label, area, {
      ...options,
      set: (v) => {
        area.value = v;
      },
    });
    return area;
  }

  modelField(name, tasks, options = {}) {
    const { own, others } = this.modelChoices(tasks);
    const list = [...own, ...others];
    const items = (models) => models.map((m) => h('option', { value: m.id }, m.id));
    const none = options.none ? [h('option', { value: '' }, options.none)] : [];
    const extra = (options.extra || []).map(([value, text]) => h('option', { value }, text));
    const about = h('p', { class: 'hint model-about' });
    let missing = '';
    const show = () => {
      const text = aboutModel(list.find((m) => m.id === select.value));
      about.textContent = missing ? `${missing} is not loaded; ${select.value || 'none'} is used.` : text;
      about.classList.toggle('warning', missing !== '');
      missing = '';
    };
    const select = h(
      'select',
      {
        id: newId(name),
        onchange: () => {
          show();
          this.set(name, select.value, 'now');
        },
      },
      none,
      extra,
      items(own),
      others.length ? h('optgroup', { label: 'Other models' }, items(others)) : null,
    );
    select.value = this.state[name];
    if (select.selectedIndex < 0 && (list.length || none.length || extra.length)) {
      select.selectedIndex = 0;
      missing = this.state[name];
      this.state[name] = select.value;
    }
    const element = this.addField(name, options.label || 'Model', select, {
      ...options,
      set: (v) => {
        select.value = v;
        show();
      },
    });
    element.insertBefore(about, select.nextSibling);
    show();
    return select;
  }

  selectField(name, label, choices, options = {}) {
    const select = h(
      'select',
      { id: newId(name), onchange: () => this.set(name, select.value, options.how || 'now') },
      choices.map(([value, text]) => h('option', { value }, text)),
    );
    select.value = this.state[name];
    this.addField(name, label, select, {
      ...options,
      set: (v) => {
        select.value = v;
      },
    });
    return select;
  }

  switchField(name, label, options = {}) {
    const box = h('input', {
      id: newId(name),
      type: 'checkbox',
      role: 'switch',
      checked: this.state[name],
      onchange: () => {
        this.set(name, box.checked, options.how || 'now');
        if (options.onchange) options.onchange(box.checked);
      },
    });
    const element = h('div', { class: 'field switch' }, box, h('label', { for: box.id }, label));
    (options.into || this.form).append(element);
    this.fields.set(name, {
      element,
      control: box,
      set: (v) => {
        box.checked = v;
        if (options.onchange) options.onchange(v);
      },
    });
    return box;
  }

  rangeField(name, label, options) {
    const show = options.format || String;
    const out = h('output', null, show(this.state[name]));
    const range = h('input', {
      id: newId(name),
      type: 'range',
      min: options.min,
      max: options.max,
      step: options.step,
      value: this.state[name],
      oninput: () => {
        out.textContent = show(Number(range.value));
        this.set(name, Number(range.value), options.how || 'run');
      },
    });
    range.value = this.state[name];
    const element = h(
      'div',
      { class: 'field range' },
      h('div', { class: 'range-label' }, h('label', { for: range.id }, label), out),
      range,
    );
    (options.into || this.form).append(element);
    this.fields.set(name, {
      element,
      control: range,
      set: (v) => {
        range.value = v;
        out.textContent = show(v);
      },
    });
    return range;
  }

  chipsField(name, label, options = {}) {
    const id = newId(name);
    const c = chips(this.state[name], (list) => this.set(name, list, 'now'), {
      id,
      label,
      placeholder: options.placeholder,
    });
    this.addField(name, label, c.box, { ...options, for: id, set: c.set });
    return c;
  }

  row(...classes) {
    const row = h('div', { class: `row ${classes.join(' ')}` });
    this.form.append(row);
    return row;
  }

  // list: [name, values]
  examples(list) {
    this.form.append(
      h(
        'div',
        { class: 'examples', role: 'group', 'aria-label': 'Examples' },
        h('span', { class: 'examples-label' }, 'Examples'),
        list.map(([name, values]) =>
          h('button', { type: 'button', class: 'quiet', onclick: () => this.assign(values) }, name),
        ),
      ),
    );
  }

  // ---- requests ----

  async request(method, path, body, options) {
    const sent = performance.now();
    const { data, timings } =
      method === 'GET' ? await get(path, this.signal) : await post(path, body, this.signal);
    this.lastMs = performance.now() - sent;
    this.requests.push({ method, path, body, data, timings, ...options });
    return data;
  }

  post(path, body, options) {
    return this.request('POST', path, body, options);
  }

  pipeline(task, inputs, parameters, options) {
    const path = `/models/${encodeURIComponent(this.state.model)}/pipeline/${task}`;
    return this.post(path, { inputs, parameters }, options);
  }

  async stream(path, body, options, onEvent) {
    const events = [];
    const timings = await stream(path, body, this.signal, (event) => {
      events.push(event);
      onEvent(event);
    });
    this.requests.push({ method: 'POST', path, body, data: events, timings, ...options });
  }

  // The data of the panel: of both models if a second one is chosen.
  async fetch() {
    if (!this.panel.compare || !this.state.other) return this.panel.fetch(this);
    const other = Object.create(this, { state: { value: { ...this.state, model: this.state.other } } });
    const contexts = [this, other];
    const both = [];
    for (const ctx of contexts) {
      const from = this.requests.length;
      both.push({ ctx, model: ctx.state.model, data: await this.panel.fetch(ctx) });
      for (const request of this.requests.slice(from))
        request.label = `${ctx.state.model}: ${request.label || request.path}`;
    }
    return { both };
  }

  render(data) {
    if (!data.both) return this.panel.render(this, data);
    return h(
      'div',
      { class: 'side-by-side' },
      data.both.map((x) =>
        h('section', { 'aria-label': x.model }, h('h3', null, x.model), this.panel.render(x.ctx, x.data)),
      ),
    );
  }

  async run() {
    this.later.cancel();
    if (this.abort) this.abort.abort();
    const abort = new AbortController();
    this.abort = abort;
    this.signal = abort.signal;
    this.requests = [];
    this.clearErrors();
    this.busy(true);
    try {
      const data = await this.fetch();
      if (abort.signal.aborted) return;
      this.data = data;
      this.details.show(this.requests);
      this.redraw();
      const ms = this.requests.reduce((sum, r) => sum + r.timings.roundTrip, 0);
      if (this.requests.length) announce(`${this.panel.title}: done in ${Math.round(ms)} milliseconds`);
    } catch (error) {
      if (error.name === 'AbortError' || abort.signal.aborted) return;
      this.failed(error);
    } finally {
      if (this.abort === abort) this.busy(false);
    }
  }

  redraw() {
    if (this.data === null || this.data === undefined) return;
    // What was opened or focused before stays so.
    const focusable = () => [
      ...this.result.querySelectorAll('button, input, select, summary, a[href], [tabindex="0"]'),
    ];
    const focused = focusable().indexOf(document.activeElement);
    const open = [...this.result.querySelectorAll('details')].map((details) => details.open);
    replace(this.result, this.render(this.data));
    for (const [i, details] of this.result.querySelectorAll('details').entries())
      details.open = open[i] || false;
    if (focused >= 0) focusable()[focused]?.focus({ preventScroll: true });
  }

  busy(on) {
    this.output.setAttribute('aria-busy', String(on));
  }

  // ---- errors ----

  failed(error) {
    if (!(error instanceof FieldError) && !(error instanceof ApiError)) console.error(error);
    const names = {
      inputs: 'text',
      input: 'text',
      prompt: 'text',
      query: 'query',
      texts: 'texts',
      model: 'model',
      candidate_labels: 'labels',
      question: 'question',
      context: 'context',
      ...(this.panel.params || {}),
    };
    const field = error.field || (error.param && names[error.param]) || this.panel.errorField || 'text';
    const target = this.fields.has(field) ? field : this.fields.keys().next().value;
    const status = error.status ? `${error.status}: ` : '';
    this.data = null;
    if (error.status !== undefined || !this.showError(target, error.message)) {
      if (target) this.showError(target, status + error.message);
    }
    replace(
      this.result,
      empty(
        error instanceof FieldError
          ? this.panel.placeholder || 'The result appears here.'
          : 'No result: see the message next to the field.',
      ),
    );
    announce(`Error: ${error.message}`);
  }

  showError(name, message) {
    const field = this.fields.get(name);
    if (!field || !field.error) return false;
    field.error.textContent = message;
    field.error.hidden = false;
    field.element.classList.add('invalid');
    const control = field.element.querySelector('textarea, input, select');
    if (control) control.setAttribute('aria-invalid', 'true');
    return true;
  }

  clearError(name) {
    const field = this.fields.get(name);
    if (!field || !field.error || field.error.hidden) return;
    field.error.hidden = true;
    field.error.textContent = '';
    field.element.classList.remove('invalid');
    const control = field.element.querySelector('[aria-invalid]');
    if (control) control.removeAttribute('aria-invalid');
  }

  clearErrors() {
    for (const name of this.fields.keys()) this.clearError(name);
  }

  need(name, message) {
    if (!String(this.state[name]).trim()) throw new FieldError(name, message);
    return this.state[name];
  }

  destroy() {
    this.later.cancel();
    if (this.abort) this.abort.abort();
    if (this.panel.destroy) this.panel.destroy(this);
  }
}
