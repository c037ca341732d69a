// Summarization with an encoder-decoder.

import { fetchText, renderText } from './text_to_text.js';

const text = [
  'The council of the town voted on Monday to close the old bridge to cars from May. Engineers had',
  'found cracks in two of its pillars last autumn. Buses, bicycles and people on foot may still use',
  'it. A new bridge, half a kilometer to the north, is planned for the end of the decade; until then',
  'drivers must take the tunnel. Shop owners fear for their business, while people who live next to',
  'the bridge look forward to quiet nights.',
].join(' ');

export default {
  id: 'summarize',
  title: 'Summarize',
  group: 'Generate',
  tasks: ['summarization'],
  hint: 'For example a folder of BART, T5 or Pegasus fine-tuned for summarization.',
  models: { model: ['summarization'] },
  summary: 'A short version of a text, written by an encoder-decoder model.',
  placeholder: 'Enter a text and run.',
  state: { text, tokens: 60, beams: 4 },
  build(ctx) {
    ctx.textField('text', 'Text', { rows: 10, how: 'none' });
    const row = ctx.row();
    ctx.rangeField('tokens', 'Tokens at most', { min: 10, max: 300, step: 10, how: 'none', into: row });
    ctx.rangeField('beams', 'Beams', { min: 1, max: 8, step: 1, how: 'none', into: row });
    ctx.modelField('model', ['summarization']);
  },
  fetch: (ctx) =>
    fetchText(ctx, {
      task: 'summarization',
      key: 'summary_text',
      method: 'summarization',
      parameters: (c) => ({ max_new_tokens: c.state.tokens, num_beams: c.state.beams }),
      args: (c) => [['generate_parameters', { max_new_tokens: c.state.tokens, num_beams: c.state.beams }]],
      cliOptions: (c) => [
        ['--max-new-tokens', c.state.tokens],
        ['--num-beams', c.state.beams],
      ],
    }),
  render: (_ctx, data) => renderText(data),
};
