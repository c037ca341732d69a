// What summarization and translation share: a text in, a text out.

import { h, plural, copyText, announce } from './dom.js';
import { cli, inferenceClient } from './snippets.js';
import { hasKey } from './api.js';

const words = (text) => (text.match(/\S+/g) || []).length;

// options: {task, key, method, parameters(ctx), args(ctx), cliOptions(ctx)}
export async function fetchText(ctx, options) {
  const text = ctx.need('text', 'Enter a text.');
  const parameters = options.parameters(ctx);
  const path = `/models/${encodeURIComponent(ctx.state.model)}/pipeline/${options.task}`;
  const data = await ctx.pipeline(options.task, text, parameters, {
    python: inferenceClient(path, options.method, [['', text], ...options.args(ctx)], hasKey()),
    cli: cli(options.task, ctx.state.model, options.cliOptions(ctx), [text]),
  });
  const first = Array.isArray(data) ? data[0] : data;
  return { source: text, result: first[options.key] };
}

export function renderText({ source, result }) {
  const button = h(
    'button',
    {
      type: 'button',
      class: 'quiet',
      onclick: async () => {
        button.textContent = (await copyText(result)) ? 'Copied' : 'Not copied';
        announce(button.textContent);
        setTimeout(() => {
          button.textContent = 'Copy text';
        }, 1500);
      },
    },
    'Copy text',
  );
  return [
    h('p', { class: 'generated' }, result),
    h(
      'div',
      { class: 'buttons spread' },
      h(
        'span',
        { class: 'note' },
        `${plural(words(source), 'word')} in, ${plural(words(result), 'word')} out`,
      ),
      button,
    ),
  ];
}
