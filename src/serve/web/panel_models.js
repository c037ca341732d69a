// The loaded models: a card for each, with its tasks as links to the panels.

import { h, large, count } from './dom.js';
import { empty } from './widgets.js';
import { cli } from './snippets.js';

// Which panel shows a task.
const panelOf = {
  'fill-mask': 'fill-mask',
  'text-classification': 'classify',
  'zero-shot-classification': 'zero-shot',
  'token-classification': 'entities',
  'question-answering': 'answer',
  embed: 'similarity',
  'sentence-similarity': 'similarity',
  similarity: 'similarity',
  rerank: 'search',
  'text-generation': 'write',
  summarization: 'summarize',
  translation: 'translate',
};

// Types as the command names them.
const typeName = (type) => (type === 'I8' ? 'int8' : type?.toLowerCase());

function fact(name, value) {
  return value === undefined || value === null || value === ''
    ? null
    : h('div', null, h('dt', null, name), h('dd', null, value));
}

function card(model) {
  const tasks = [...new Set([model.task, ...(model.tasks || [])])].filter(Boolean);
  return h(
    'li',
    { class: 'model-card' },
    h('h3', null, model.id),
    h(
      'ul',
      { class: 'tags', 'aria-label': `Tasks of ${model.id}` },
      tasks.map((task) =>
        h(
          'li',
          null,
          panelOf[task]
            ? h(
                'a',
                {
                  class: task === model.task || !model.task ? 'tag own' : 'tag',
                  href: `#/${panelOf[task]}?model=${encodeURIComponent(model.id)}`,
                },
                task,
              )
            : h('span', { class: 'tag' }, task),
        ),
      ),
    ),
    h(
      'dl',
      { class: 'facts' },
      fact('Architecture', model.model_type || model.architecture),
      fact(
        'Parameters',
        Number.isFinite(model.parameters)
          ? h('span', { title: count(model.parameters) }, large(model.parameters))
          : null,
      ),
      fact('Weights', typeName(model.dtype)),
      fact(
        'Longest input',
        Number.isFinite(model.max_input_tokens) ? `${count(model.max_input_tokens)} tokens` : null,
      ),
      fact('Dimensions', model.dimensions ? count(model.dimensions) : null),
      fact('Vocabulary', model.vocab_size ? `${count(model.vocab_size)} tokens` : null),
      fact(
        'Labels',
        model.labels?.length
          ? model.labels.slice(0, 12).join(', ') + (model.labels.length > 12 ? ', …' : '')
          : null,
      ),
    ),
    h(
      'p',
      { class: 'card-links' },
      h('a', { href: `#/tokenizer?model=${encodeURIComponent(model.id)}` }, 'Tokenizer'),
      h('a', { href: `#/attention?model=${encodeURIComponent(model.id)}` }, 'Attention'),
    ),
  );
}

export default {
  id: 'models',
  title: 'Models',
  group: 'Overview',
  tasks: [],
  wide: true,
  live: true,
  summary: 'The models this server has loaded, and what each can do.',
  resultTitle: 'Loaded models',
  state: { filter: '' },
  build(ctx) {
    ctx.textField('filter', 'Filter by name, task or architecture', {
      rows: 1,
      how: 'render',
      placeholder: 'for example classification',
    });
  },
  async fetch(ctx) {
    const data = await ctx.request('GET', '/v1/models', undefined, {
      cli: cli('models', '', [['--json', true]]),
    });
    document.dispatchEvent(new CustomEvent('models', { detail: data.data })); // the list of panels may change
    return data;
  },
  render(ctx, data) {
    const words = ctx.state.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const list = data.data.filter((m) => {
      const text = [m.id, m.architecture, ...(m.tasks || [])].join(' ').toLowerCase();
      return words.every((word) => text.includes(word));
    });
    return list.length
      ? h('ul', { class: 'model-cards' }, list.map(card))
      : empty('No model matches the filter.');
  },
};
