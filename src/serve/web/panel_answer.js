// Question answering: the answer marked in its context, alternatives, and the chance that there is none.

import { h, percent, fixed } from './dom.js';
import { bars, highlighted, table } from './widgets.js';
import { cli, inferenceClient } from './snippets.js';
import { hasKey } from './api.js';

const context = [
  'The Amazon rainforest covers most of the Amazon basin of South America. The basin spans seven',
  'million square kilometers, of which the forest covers five and a half million. It includes',
  'territory of nine nations, and Brazil holds sixty percent of it. About 390 billion trees grow',
  'there, of 16,000 species.',
].join(' ');

// Spans that do not overlap a better one.
function spansOf(answers) {
  const taken = [];
  answers.forEach((a, rank) => {
    if (taken.some((b) => a.start < b.end && b.start < a.end)) return;
    taken.push({
      start: a.start,
      end: a.end,
      class: rank ? 'answer other' : 'answer best',
      title: `score ${fixed(a.score, 3)}`,
    });
  });
  return taken.sort((a, b) => a.start - b.start);
}

export default {
  id: 'answer',
  title: 'Question answering',
  group: 'Try it',
  tasks: ['question-answering'],
  bundled: 'sesame-qa',
  compare: true,
  models: { model: ['question-answering'] },
  errorField: 'context',
  summary: 'The answer to a question, taken from a text of any length.',
  placeholder: 'Enter a question and a text.',
  state: { question: 'How many species of trees grow there?', context, top: 3 },
  build(ctx) {
    ctx.textField('question', 'Question', { rows: 1 });
    ctx.textField('context', 'Text', { rows: 8 });
    const row = ctx.row();
    ctx.modelField('model', ['question-answering'], { into: row });
    ctx.rangeField('top', 'Answers', { min: 1, max: 10, step: 1, into: row });
    ctx.examples([
      ['Trees', { question: 'How many species of trees grow there?', context }],
      ['Nation', { question: 'Which nation holds most of the forest?', context }],
      ['No answer', { question: 'Who painted the ceiling?', context }],
    ]);
  },
  async fetch(ctx) {
    const question = ctx.need('question', 'Enter a question.');
    const text = ctx.need('context', 'Enter the text that contains the answer.');
    const parameters = { top_k: ctx.state.top + 1, handle_impossible_answer: true };
    const path = `/models/${encodeURIComponent(ctx.state.model)}/pipeline/question-answering`;
    const data = await ctx.pipeline('question-answering', { question, context: text }, parameters, {
      python: inferenceClient(
        path,
        'question_answering',
        [
          ['question', question],
          ['context', text],
          ['top_k', parameters.top_k],
          ['handle_impossible_answer', true],
        ],
        hasKey(),
      ),
      cli: cli(
        'question-answering',
        ctx.state.model,
        [
          ['--top-k', parameters.top_k],
          ['--handle-impossible-answer', true],
        ],
        [question, text],
      ),
    });
    return { text, list: Array.isArray(data) ? data : [data] };
  },
  render(ctx, { text, list }) {
    const none = list.find((a) => a.answer === '');
    const answers = list.filter((a) => a.answer !== '').slice(0, ctx.state.top);
    const best = answers[0];
    const isNone = !best || (none && none.score > best.score);
    return [
      isNone
        ? h(
            'p',
            { class: 'headline none' },
            'no answer in this text',
            none ? h('span', { class: 'headline-score' }, percent(none.score)) : null,
          )
        : h(
            'p',
            { class: 'headline' },
            best.answer,
            h('span', { class: 'headline-score' }, percent(best.score)),
          ),
      bars('Answer or none', [
        { label: 'Best answer', value: best ? best.score : 0, strong: !isNone },
        {
          label: 'No answer',
          value: none ? none.score : 0,
          text: none ? null : `below ${percent(list.length ? list[list.length - 1].score : 0)}`,
          strong: isNone,
        },
      ]),
      highlighted(text, spansOf(answers)),
      answers.length > 1
        ? table(
            'Answers',
            [{ label: 'Answer' }, { label: 'Score', class: 'num' }, { label: 'Characters', class: 'num' }],
            answers.map((a) => [a.answer, fixed(a.score, 4), `${a.start}–${a.end}`]),
          )
        : null,
    ];
  },
};
