// Translation with an encoder-decoder.

import { fetchText, renderText } from './text_to_text.js';

export default {
  id: 'translate',
  title: 'Translate',
  group: 'Generate',
  tasks: ['translation'],
  hint: 'For example a folder of Marian, T5, M2M100 or mBART.',
  models: { model: ['translation'] },
  summary: 'A text in another language, written by an encoder-decoder model.',
  placeholder: 'Enter a text and run.',
  state: {
    text: 'The weather is good today, so we walk to the lake.',
    source: '',
    target: '',
    tokens: 80,
    beams: 4,
  },
  build(ctx) {
    ctx.textField('text', 'Text', { rows: 6, how: 'none' });
    const languages = ctx.row();
    ctx.textField('source', 'From (language code)', {
      rows: 1,
      how: 'none',
      placeholder: 'as the model',
      into: languages,
    });
    ctx.textField('target', 'Into (language code)', {
      rows: 1,
      how: 'none',
      placeholder: 'as the model',
      into: languages,
    });
    const row = ctx.row();
    ctx.rangeField('tokens', 'Tokens at most', { min: 10, max: 300, step: 10, how: 'none', into: row });
    ctx.rangeField('beams', 'Beams', { min: 1, max: 8, step: 1, how: 'none', into: row });
    ctx.modelField('model', ['translation']);
  },
  fetch: (ctx) =>
    fetchText(ctx, {
      task: 'translation',
      key: 'translation_text',
      method: 'translation',
      parameters(c) {
        const p = { max_new_tokens: c.state.tokens, num_beams: c.state.beams };
        if (c.state.source.trim()) p.src_lang = c.state.source.trim();
        if (c.state.target.trim()) p.tgt_lang = c.state.target.trim();
        return p;
      },
      args: (c) =>
        [
          ['src_lang', c.state.source.trim()],
          ['tgt_lang', c.state.target.trim()],
        ].filter(([, v]) => v),
      cliOptions: (c) => [
        ['--src-lang', c.state.source.trim()],
        ['--tgt-lang', c.state.target.trim()],
        ['--max-new-tokens', c.state.tokens],
        ['--num-beams', c.state.beams],
      ],
    }),
  render: (_ctx, data) => renderText(data),
};
