// The API: the routes of /openapi.json by group, each with a form that sends a request.

import { h, replace, milliseconds, newId, announce } from './dom.js';
import { get, raw } from './api.js';
import { curl } from './snippets.js';
import { hasKey } from './api.js';
import { empty, table } from './widgets.js';
import { exampleOf, membersOf } from './schema.js';

const SHOWN = 20000; // characters of a response

const $ = (id) => document.getElementById(id);
const groupId = (tag) => `group-${tag.toLowerCase().replace(/[^a-z]+/g, '-')}`;

function readable(text, type) {
  let shown = text;
  if (/json/.test(type) && !/ndjson/.test(type)) {
    try {
      shown = JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      // shown as it is
    }
  }
  return shown.length > SHOWN ? `${shown.slice(0, SHOWN)}\n… ${shown.length - SHOWN} more characters` : shown;
}

// Path parameters are written as {name}.
const filled = (path, fields) =>
  path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(fields.get(name).value));

function formOf(doc, path, method, operation) {
  const fields = new Map();
  const result = h('div', { class: 'response' });
  const body = operation.requestBody?.content?.['application/json']?.schema;
  const area = body
    ? h('textarea', {
        id: newId('body'),
        rows: 6,
        spellcheck: 'false',
        class: 'code-area',
        value: JSON.stringify(exampleOf(doc, body), null, 2),
      })
    : null;
  const inputs = (operation.parameters || []).map((p) => {
    const values = p.schema?.enum;
    const id = newId(p.name);
    const field = values
      ? h('select', { id }, values.map((v) => h('option', { value: v }, v)))
      : h('input', { id, type: 'text', required: true });
    fields.set(p.name, field);
    return h('div', { class: 'field' }, h('label', { for: id }, p.name), field);
  });
  const request = () => {
    const value = area ? JSON.parse(area.value) : undefined;
    return { method: method.toUpperCase(), path: filled(path, fields), body: value };
  };
  const send = async (event) => {
    event.preventDefault();
    let r;
    try {
      r = request();
    } catch (error) {
      replace(result, h('p', { class: 'field-error', role: 'alert' }, `The body is not valid JSON: ${error.message}`));
      return;
    }
    replace(result, h('p', { class: 'note' }, 'Waiting for the answer …'));
    try {
      const answer = await raw(r.method, r.path, r.body);
      replace(
        result,
        h('p', { class: `status ${answer.status < 400 ? 'good' : 'bad'}` }, `Status ${answer.status}, ${milliseconds(answer.ms)}, ${answer.type}`),
        h('div', { class: 'code' }, h('pre', { tabindex: '0', 'aria-label': 'Response' }, readable(answer.text, answer.type))),
        h('details', null, h('summary', null, 'curl'), h('div', { class: 'code' }, h('pre', { tabindex: '0' }, curl(r, hasKey())))),
      );
      announce(`${r.path}: status ${answer.status}`);
    } catch (error) {
      replace(result, h('p', { class: 'field-error', role: 'alert' }, error.message));
    }
  };
  const members = body ? membersOf(doc, body) : [];
  return h(
    'form',
    { class: 'try', novalidate: true, onsubmit: send },
    inputs,
    area ? h('div', { class: 'field' }, h('label', { for: area.id }, 'Body'), area) : null,
    members.length
      ? h(
          'details',
          null,
          h('summary', null, 'Members of the body'),
          table(
            `Members of the body of ${path}`,
            ['Name', 'Needed', 'Values'],
            members.map((m) => [m.name, m.required ? 'yes' : '', m.values]),
          ),
        )
      : null,
    h('p', { class: 'buttons' }, h('button', { class: 'primary' }, 'Send')),
    result,
  );
}

function routeOf(doc, path, method, operation) {
  const details = h(
    'details',
    { class: 'card route', id: operation.operationId },
    h(
      'summary',
      null,
      h('span', { class: `method ${method}` }, method.toUpperCase()),
      h('code', null, path),
      h('span', { class: 'route-summary' }, operation.summary || ''),
    ),
  );
  details.addEventListener('toggle', () => {
    if (details.open && details.children.length === 1) details.append(formOf(doc, path, method, operation));
  });
  return details;
}

function draw(doc, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map();
  for (const [path, item] of Object.entries(doc.paths))
    for (const [method, operation] of Object.entries(item)) {
      const text = `${path} ${operation.summary || ''}`.toLowerCase();
      const tag = operation.tags?.[0] || 'Other';
      if (!words.every((word) => text.includes(word))) continue;
      groups.set(tag, [...(groups.get(tag) || []), routeOf(doc, path, method, operation)]);
    }
  replace(
    $('routes'),
    [...groups].map(([tag, routes]) =>
      h('section', { id: groupId(tag), 'aria-label': tag }, h('h2', null, tag), routes),
    ),
    groups.size ? null : empty('No route matches the filter.'),
  );
  replace(
    $('nav'),
    h(
      'div',
      { class: 'nav-group' },
      h('h2', null, 'Routes'),
      h('ul', null, [...groups.keys()].map((tag) => h('li', null, h('a', { href: `#${groupId(tag)}` }, tag)))),
    ),
  );
}

async function start() {
  try {
    const doc = (await get('/openapi.json')).data;
    draw(doc, '');
    $('filter').addEventListener('input', () => draw(doc, $('filter').value));
    const open = location.hash && document.getElementById(location.hash.slice(1));
    if (open) {
      if (open.matches('details')) open.open = true;
      open.scrollIntoView();
    }
  } catch (error) {
    replace($('routes'), h('p', { class: 'field-error', role: 'alert' }, error.message));
  }
}

start();
