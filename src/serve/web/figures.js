// Figures that the server draws: SVG without scripts, colored by classes of inside.css.

import { h } from './dom.js';

// Inserts the elements of a drawing: nothing in it is parsed as HTML, and it has no style or script.
export function figure({ title, svg }) {
  const root = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  for (const bad of root.querySelectorAll('script, style, foreignObject')) bad.remove();
  return h(
    'figure',
    { class: 'drawing', tabindex: '0', 'aria-label': title || 'Figure' },
    title ? h('figcaption', null, title) : null,
    document.importNode(root, true),
  );
}

export const notes = (text) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => h('p', { class: 'note' }, line));
