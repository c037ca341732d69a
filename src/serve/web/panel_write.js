// Write: an editor whose tokens are tinted by surprisal; Tab offers three continuations.

import { h, replace, fixed, newId, debounce, announce, codePoints, percent } from './dom.js';
import { bars, empty } from './widgets.js';
import { cli, openai } from './snippets.js';
import { hasKey } from './api.js';

const BITS = Math.LOG2E;
const MAX_BITS = 14; // the strongest tint

// Tokens of an echoed text: {text, start, end (code points), bits (NaN: not scored), top}
function tokensOf(choice, prompt) {
  const p = choice.logprobs;
  const length = codePoints(prompt).length;
  return p.tokens.map((text, i) => ({
    text,
    start: p.text_offset[i],
    end: i + 1 < p.tokens.length ? p.text_offset[i + 1] : length,
    bits: p.token_logprobs[i] === null ? NaN : -p.token_logprobs[i] * BITS,
    top: Object.entries(p.top_logprobs?.[i] || {})
      .map(([t, lp]) => [t, Math.exp(lp)])
      .sort((a, b) => b[1] - a[1]),
  }));
}

const tint = (bits) =>
  Number.isFinite(bits) ? `${Math.round((60 * Math.min(bits, MAX_BITS)) / MAX_BITS)}%` : '0%';
const visible = (text) => text.replaceAll(' ', '␣').replaceAll('\n', '↵') || '∅';

class Editor {
  constructor(ctx) {
    this.ctx = ctx;
    this.offers = [];
    this.chosen = 0;
    this.leave = false; // Esc was pressed: the next Tab leaves the editor
    this.tokens = [];
    const id = newId('editor');
    this.listId = newId('offers');
    this.backdrop = h('div', { class: 'backdrop', 'aria-hidden': 'true' });
    this.area = h('textarea', {
      id,
      rows: 5,
      spellcheck: 'false',
      value: ctx.state.text,
      'aria-controls': this.listId,
      'aria-autocomplete': 'list',
      onkeydown: (e) => this.key(e),
      oninput: () => this.typed(),
      onclick: () => this.moved(),
      onkeyup: () => this.moved(),
      onscroll: () => {
        this.backdrop.scrollTop = this.area.scrollTop;
      },
    });
    this.list = h('ul', {
      class: 'offers',
      id: this.listId,
      role: 'listbox',
      'aria-label': 'Continuations',
      hidden: true,
    });
    this.box = h('div', { class: 'editor' }, this.backdrop, this.area);
    this.more = debounce(() => ctx.run(), 500);
  }

  typed() {
    this.close();
    this.leave = false;
    this.ctx.set('text', this.area.value, 'none');
    this.fit();
    this.paint([]);
    this.more();
  }

  fit() {
    this.area.style.height = 'auto';
    this.area.style.height = `${Math.max(140, this.area.scrollHeight + 2)}px`;
  }

  moved() {
    if (this.ctx.data) this.ctx.redraw();
  }

  key(event) {
    const open = !this.list.hidden;
    if (event.key === 'Escape') {
      this.leave = !open;
      if (open) event.stopPropagation();
      this.close();
    } else if (event.key === 'Tab' && !event.shiftKey && !event.altKey && !event.ctrlKey) {
      if (open) this.accept(this.chosen, event);
      else if (!this.leave) {
        event.preventDefault();
        this.ask();
      }
    } else if (open && event.key === 'Enter') {
      this.accept(this.chosen, event);
    } else if (open && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      event.preventDefault();
      this.choose(
        (this.chosen + (event.key === 'ArrowDown' ? 1 : -1) + this.offers.length) % this.offers.length,
      );
    }
  }

  async ask() {
    const { ctx } = this;
    const prompt = this.area.value;
    this.show([], 'Looking for continuations …');
    if (this.asking) this.asking.abort();
    const asking = new AbortController();
    this.asking = asking;
    const body = {
      model: ctx.state.model,
      prompt,
      max_tokens: ctx.state.length,
      n: 3,
      temperature: ctx.state.temperature,
      top_p: 0.95,
      seed: ctx.state.seed,
    };
    try {
      ctx.signal = asking.signal;
      ctx.requests = [];
      const data = await ctx.post('/v1/completions', body, {
        python: openai({ body }, hasKey()),
        cli: cli(
          'text-generation',
          ctx.state.model,
          [
            ['--do-sample', 'true'],
            ['--num-return-sequences', 3],
            ['--temperature', body.temperature],
            ['--top-p', body.top_p],
            ['--seed', body.seed],
            ['--max-new-tokens', body.max_tokens],
          ],
          [prompt],
        ),
      });
      if (asking.signal.aborted) return;
      ctx.details.show(ctx.requests);
      ctx.set('seed', ctx.state.seed + 1, 'none');
      const texts = [...new Set(data.choices.map((c) => c.text))].filter((t) => t !== '');
      this.show(texts, texts.length ? '' : 'The model ends the text here.');
    } catch (error) {
      if (error.name === 'AbortError') return;
      this.close();
      ctx.showError('text', error.message);
    }
  }

  show(texts, message) {
    this.offers = texts;
    this.chosen = 0;
    this.list.hidden = !texts.length && !message;
    replace(
      this.list,
      message ? h('li', { class: 'offer message', role: 'option', 'aria-disabled': 'true' }, message) : null,
      texts.map((text, i) =>
        h(
          'li',
          {
            class: 'offer',
            role: 'option',
            id: `${this.listId}-${i}`,
            'aria-selected': 'false',
            onclick: (event) => this.accept(i, event),
            onpointerenter: () => this.choose(i),
          },
          text,
        ),
      ),
    );
    if (texts.length) {
      this.choose(0);
      announce(`${texts.length} continuations. Arrow keys choose, Enter accepts, Escape rejects.`);
    }
  }

  choose(i) {
    this.chosen = i;
    for (const [j, item] of this.list.querySelectorAll('[role=option]').entries()) {
      item.setAttribute('aria-selected', String(i === j));
    }
    this.area.setAttribute('aria-activedescendant', `${this.listId}-${i}`);
  }

  accept(i, event) {
    event.preventDefault();
    if (!this.offers.length) return;
    this.insert(this.offers[i]);
    this.close();
  }

  insert(text) {
    this.area.value += text;
    this.area.setSelectionRange(this.area.value.length, this.area.value.length);
    this.area.focus({ preventScroll: true });
    this.typed();
  }

  close() {
    if (this.asking) this.asking.abort();
    this.list.hidden = true;
    this.offers = [];
    this.area.removeAttribute('aria-activedescendant');
  }

  // Behind the transparent text area: the same text, with a tint for each token.
  paint(tokens) {
    this.tokens = tokens;
    const points = codePoints(this.area.value);
    replace(
      this.backdrop,
      tokens.length
        ? tokens.map((t) =>
            h('span', { vars: { '--v': tint(t.bits) } }, points.slice(t.start, t.end).join('')),
          )
        : this.area.value,
      '\u200b',
    );
    this.backdrop.scrollTop = this.area.scrollTop;
  }

  // The token before the caret.
  atCaret() {
    const at = codePoints(this.area.value.slice(0, this.area.selectionEnd)).length;
    return this.tokens.findIndex((t) => t.start < at && at <= t.end);
  }
}

async function writeOn(ctx, editor, button) {
  if (ctx.writing) {
    ctx.writing.abort();
    return;
  }
  editor.close();
  ctx.writing = new AbortController();
  button.textContent = 'Stop';
  const prompt = editor.area.value;
  const body = {
    model: ctx.state.model,
    prompt,
    max_tokens: 60,
    temperature: ctx.state.temperature,
    top_p: 0.95,
    seed: ctx.state.seed,
    stream: true,
  };
  try {
    ctx.signal = ctx.writing.signal;
    ctx.requests = [];
    await ctx.stream(
      '/v1/completions',
      body,
      {
        python: openai({ body }, hasKey()),
        cli: cli(
          'text-generation',
          ctx.state.model,
          [
            ['--do-sample', 'true'],
            ['--temperature', body.temperature],
            ['--max-new-tokens', 60],
          ],
          [prompt],
        ),
      },
      (event) => {
        const choice = event.choices?.[0];
        if (!choice || !choice.text) return;
        editor.area.value += choice.text;
        editor.paint([]);
        editor.fit();
      },
    );
    ctx.details.show(ctx.requests);
  } catch (error) {
    if (error.name !== 'AbortError') ctx.showError('text', error.message);
  }
  ctx.writing = null;
  button.textContent = 'Write on';
  ctx.set('seed', ctx.state.seed + 1, 'none');
  ctx.set('text', editor.area.value, 'run');
}

function caretView(editor) {
  const token = editor.tokens[editor.atCaret()];
  if (!token)
    return h('p', { class: 'note' }, 'Move the caret to a token to see what the model expected there.');
  if (!Number.isFinite(token.bits))
    return h('p', { class: 'note' }, `“${visible(token.text)}” is the first token: nothing precedes it.`);
  return [
    h(
      'p',
      { class: 'note' },
      'At the caret: ',
      h('strong', null, `“${visible(token.text)}”`),
      `, ${fixed(token.bits, 1)} bits. The model expected:`,
    ),
    token.top.length
      ? bars(
          'Expected at the caret',
          token.top.map(([t, p]) => ({ label: visible(t), value: p, strong: t === token.text })),
          { head: 'Token' },
        )
      : null,
  ];
}

export default {
  id: 'write',
  title: 'Write',
  group: 'Generate',
  tasks: ['text-generation'],
  bundled: 'sesame-gpt',
  models: { model: ['text-generation'] },
  live: true,
  summary: 'Tab offers three continuations of the text; the tint shows how surprising each token is.',
  resultTitle: 'Surprisal',
  state: {
    text: 'The little girl went to the park with her mother. She saw a',
    length: 12,
    temperature: 0.8,
    seed: 1,
  },
  build(ctx) {
    const editor = new Editor(ctx);
    ctx.editor = editor;
    ctx.addField('text', 'Text', editor.box, {
      for: editor.area.id,
      class: 'editor-field',
      set: (v) => {
        editor.area.value = v;
        editor.fit();
        editor.paint([]);
      },
    });
    ctx.fields.get('text').element.insertBefore(editor.list, ctx.fields.get('text').error);
    const on = h('button', { type: 'button', onclick: () => writeOn(ctx, editor, on) }, 'Write on');
    ctx.form.append(
      h(
        'div',
        { class: 'actions' },
        h(
          'button',
          {
            type: 'button',
            class: 'primary',
            onclick: () => {
              editor.area.focus();
              editor.ask();
            },
          },
          'Offer three',
        ),
        on,
      ),
      h(
        'p',
        { class: 'hint' },
        h('kbd', null, 'Tab'),
        ' offers, ',
        h('kbd', null, '↑'),
        ' ',
        h('kbd', null, '↓'),
        ' choose, ',
        h('kbd', null, 'Enter'),
        ' accepts, ',
        h('kbd', null, 'Esc'),
        ' rejects; ',
        h('kbd', null, 'Esc'),
        ' ',
        h('kbd', null, 'Tab'),
        ' leaves the editor.',
      ),
    );
    const row = ctx.row();
    ctx.rangeField('length', 'Tokens offered', { min: 1, max: 40, step: 1, how: 'none', into: row });
    ctx.rangeField('temperature', 'Temperature', {
      min: 0,
      max: 1.5,
      step: 0.05,
      how: 'none',
      format: (v) => fixed(v, 2),
      into: row,
    });
    ctx.modelField('model', ['text-generation']);
    ctx.examples([
      ['Park', { text: 'The little girl went to the park with her mother. She saw a' }],
      ['Surprise', { text: 'The dog ran after the ball and then it solved the quadratic equation.' }],
    ]);
  },
  shown(ctx) {
    ctx.editor.fit();
  },
  async fetch(ctx) {
    const prompt = ctx.state.text;
    if (!prompt) return { tokens: [] };
    const body = { model: ctx.state.model, prompt, max_tokens: 0, echo: true, logprobs: 5 };
    const data = await ctx.post('/v1/completions', body, {
      python: openai({ body }, hasKey()),
      cli: cli(
        'perplexity',
        ctx.state.model,
        [
          ['--json', true],
          ['--tokens', true],
          ['--text', prompt],
        ],
        [],
      ),
    });
    if (!data.choices[0].logprobs) return { tokens: [] };
    return { tokens: tokensOf(data.choices[0], prompt) };
  },
  render(ctx, { tokens }) {
    const { editor } = ctx;
    if (editor.area.value === ctx.state.text && editor.tokens !== tokens) editor.paint(tokens);
    const scored = tokens.filter((t) => Number.isFinite(t.bits));
    if (!scored.length) return empty('Write at least two tokens to see how surprising they are.');
    const mean = scored.reduce((sum, t) => sum + t.bits, 0) / scored.length;
    const most = scored.reduce((a, b) => (b.bits > a.bits ? b : a));
    return [
      h(
        'dl',
        { class: 'stats' },
        h('div', null, h('dt', null, 'Perplexity'), h('dd', null, fixed(2 ** mean, 1))),
        h('div', null, h('dt', null, 'Bits per token'), h('dd', null, fixed(mean, 2))),
        h(
          'div',
          null,
          h('dt', null, 'Most surprising'),
          h('dd', null, visible(most.text.trim()), h('small', null, `${fixed(most.bits, 1)} bits`)),
        ),
      ),
      h(
        'div',
        {
          class: 'scale',
          role: 'img',
          'aria-label': `Tint: from expected, 0 bits, to surprising, ${MAX_BITS} bits or more`,
        },
        h('span', null, 'expected'),
        h('span', { class: 'scale-bar' }),
        h('span', null, `${MAX_BITS} bits`),
      ),
      caretView(editor),
      h(
        'details',
        null,
        h('summary', null, 'All tokens'),
        h(
          'ol',
          { class: 'token-list' },
          tokens.map((t) =>
            h(
              'li',
              { vars: { '--v': tint(t.bits) } },
              visible(t.text),
              h(
                'span',
                { class: 'number' },
                Number.isFinite(t.bits) ? `${fixed(t.bits, 1)} bits, ${percent(2 ** -t.bits)}` : 'first',
              ),
            ),
          ),
        ),
      ),
    ];
  },
  destroy(ctx) {
    if (ctx.writing) ctx.writing.abort();
    ctx.editor.close();
    ctx.editor.more.cancel();
  },
};
