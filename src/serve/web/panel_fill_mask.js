// Fill mask: click a word to mask it; the words that the model expects there, for one sentence or two side by side.

import { h, replace, percent } from './dom.js';
import { bars, empty } from './widgets.js';
import { cli, inferenceClient } from './snippets.js';
import { hasKey } from './api.js';
import { FieldError } from './context.js';

const MASK = /\[MASK\]|<mask>/g;

const maskOf = (ctx) => ctx.model().mask_token || '[MASK]';
const targetsOf = (ctx) =>
  ctx.state.targets
    .split(',')
    .map((s) => s.trim())
    .filter(Boolean);

// The words of a text as buttons. A click masks the word and puts the word of an earlier mask back; with
// Shift or Ctrl the masks add up.
function wordButtons(ctx, name, area, hidden) {
  const box = h('p', { class: 'words' });
  const draw = () => {
    const parts = area.value.split(/(\s+|\[MASK\]|<mask>)/).filter((s) => s !== '');
    replace(
      box,
      parts.map((part, i) => {
        if (/^\s+$/.test(part)) return ' ';
        const masked = part.match(MASK) !== null;
        const core = masked ? part : part.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, '');
        if (!core) return part;
        const at = part.indexOf(core);
        return h(
          'span',
          { class: 'word' },
          part.slice(0, at),
          h(
            'button',
            {
              type: 'button',
              class: masked ? 'masked' : null,
              'aria-pressed': String(masked),
              'aria-label': masked ? 'Mask: put the word back' : `Mask “${core}”`,
              onclick: (event) => toggle(parts, i, core, event.shiftKey || event.ctrlKey || event.metaKey),
            },
            masked ? '[MASK]' : core,
          ),
          part.slice(at + core.length),
        );
      }),
    );
  };
  function toggle(parts, target, core, add) {
    let n = 0;
    const words = parts.map((text) =>
      text.match(MASK) ? { text, word: hidden[n++] || '', masked: true } : { text },
    );
    const chosen = words[target];
    const put = (w) => {
      w.text = w.word || '…';
      w.masked = false;
    };
    if (chosen.masked) {
      put(chosen);
    } else {
      if (!add) words.filter((w) => w.masked && w.word).forEach(put);
      const at = chosen.text.indexOf(core);
      chosen.text = chosen.text.slice(0, at) + maskOf(ctx) + chosen.text.slice(at + core.length);
      Object.assign(chosen, { word: core, masked: true });
    }
    hidden.splice(0, hidden.length, ...words.filter((w) => w.masked).map((w) => w.word));
    const next = words.map((w) => w.text);
    area.value = next.join('');
    ctx.set(name, area.value, 'now');
    draw();
    const buttons = box.querySelectorAll('button');
    const again = [...buttons].find((b) => b.classList.contains('masked'));
    (again || buttons[0]).focus();
  }
  area.addEventListener('input', draw);
  return { box, draw };
}

async function ask(ctx, name) {
  const text = ctx.need(name, 'Enter a sentence.').replace(MASK, maskOf(ctx));
  if (!text.includes(maskOf(ctx)))
    throw new FieldError(name, `Click a word to mask it, or write ${maskOf(ctx)}.`);
  const targets = targetsOf(ctx);
  const parameters = { top_k: targets.length || ctx.state.top };
  if (targets.length) parameters.targets = targets;
  const path = `/models/${encodeURIComponent(ctx.state.model)}/pipeline/fill-mask`;
  const args = [['', text], targets.length ? ['targets', targets] : ['top_k', ctx.state.top]];
  const data = await ctx.pipeline('fill-mask', text, parameters, {
    label: name === 'text' ? 'First sentence' : 'Second sentence',
    python: inferenceClient(path, 'fill_mask', args, hasKey()),
    cli: cli(
      'fill-mask',
      ctx.state.model,
      [
        ['--top-k', targets.length ? undefined : ctx.state.top],
        ['--targets', targets.join(',')],
      ],
      [text],
    ),
  });
  return Array.isArray(data[0]) ? data : [data];
}

function showSentence(title, lists) {
  return h(
    'section',
    { class: 'sentence-result', 'aria-label': title },
    lists.map((list, i) =>
      bars(
        lists.length > 1 ? `${title}, mask ${i + 1}` : title,
        list.map((r, j) => ({ label: r.token_str, value: r.score, note: r.sequence, strong: j === 0 })),
        { head: 'Word', showCaption: true },
      ),
    ),
  );
}

export default {
  id: 'fill-mask',
  title: 'Fill mask',
  group: 'Try it',
  tasks: ['fill-mask'],
  bundled: 'sesame-small',
  compare: true,
  models: { model: ['fill-mask'] },
  summary: 'The words that a masked language model expects at a masked position.',
  placeholder: 'Mask a word to see which words the model expects at its position.',
  state: {
    text: 'The capital of France is [MASK].',
    text2: 'The largest city of Germany is [MASK].',
    compare: false,
    top: 8,
    targets: '',
  },
  build(ctx) {
    const first = ctx.textField('text', 'Sentence', { rows: 2 });
    const words = wordButtons(ctx, 'text', first, []);
    const help = h('p', { class: 'hint' }, 'Click a word to mask it; with Shift, several.');
    ctx.fields.get('text').element.append(words.box, help);
    const second = h('div', { class: 'second' });
    ctx.switchField('compare', 'Compare with a second sentence', {
      onchange: (on) => {
        second.hidden = !on;
      },
    });
    ctx.form.append(second);
    second.hidden = !ctx.state.compare;
    const other = ctx.textField('text2', 'Second sentence', { rows: 2, into: second });
    const words2 = wordButtons(ctx, 'text2', other, []);
    ctx.fields.get('text2').element.append(words2.box);
    for (const [name, w] of [
      ['text', words],
      ['text2', words2],
    ]) {
      const set = ctx.fields.get(name).set;
      ctx.fields.get(name).set = (v) => {
        set(v);
        w.draw();
      };
      w.draw();
    }
    ctx.textField('targets', 'Only these words (optional)', { rows: 1, placeholder: 'he, she' });
    const row = ctx.row();
    ctx.modelField('model', ['fill-mask'], { into: row });
    ctx.rangeField('top', 'Words shown', { min: 3, max: 20, step: 1, into: row });
    ctx.examples([
      ['Capital', { text: 'The capital of France is [MASK].', compare: false, targets: '' }],
      [
        'Two sentences',
        {
          text: 'She works as a [MASK] in a hospital.',
          text2: 'He works as a [MASK] in a hospital.',
          compare: true,
          targets: '',
        },
      ],
      [
        'Pronouns',
        {
          text: 'The nurse said that [MASK] was tired.',
          text2: 'The engineer said that [MASK] was tired.',
          compare: true,
          targets: 'he, she',
        },
      ],
    ]);
  },
  async fetch(ctx) {
    const result = [await ask(ctx, 'text')];
    if (ctx.state.compare) result.push(await ask(ctx, 'text2'));
    return result;
  },
  render(_ctx, data) {
    const best = data[0][0][0];
    if (!best) return empty('No word was returned.');
    return [
      data.length === 1 && data[0].length === 1
        ? h(
            'p',
            { class: 'headline' },
            best.token_str,
            h('span', { class: 'headline-score' }, percent(best.score)),
          )
        : null,
      h(
        'div',
        { class: data.length > 1 ? 'side-by-side' : null },
        data.map((lists, i) =>
          showSentence(i ? 'Second sentence' : data.length > 1 ? 'First sentence' : 'Words', lists),
        ),
      ),
    ];
  },
};
