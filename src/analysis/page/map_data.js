'use strict';
// Points of the map page, decoded from its inert block "map", JSON:
//   method, unit   "t-SNE"; "word" or "text"
//   color          index of the column that colors the points at first; -1: none
//   label          [n] word or text of each point
//   text, of, begin  of words: the sentences; the sentence of each point, and where the word begins in it
//   columns        [{name, values: distinct ones, of: [n] index of each point's value}]
//   layouts        [{layer, kl, explained, trustworthiness, recall, neighbours, at, from}]; at is base64 of
//                  little-endian u16 x, y; from: [x, y, side] of the square that they divide

const data = JSON.parse(document.getElementById('map').textContent);
const count = data.label.length;
const HUES = 12;
const CLASSES = 2 * HUES; // filled and hollow points
const NUMERIC_FROM = 13; // distinct numbers that make a column a scale

// Positions of each layout in [0, 1], y upwards.
const positions = data.layouts.map((layout) => {
  const bytes = atob(layout.at);
  const at = new Float32Array(2 * count);
  for (let i = 0; i < 2 * count; i++) at[i] = (bytes.charCodeAt(2 * i) | (bytes.charCodeAt(2 * i + 1) << 8)) / 65535;
  let width = 0;
  let height = 0;
  for (let i = 0; i < count; i++) {
    width = Math.max(width, at[2 * i]);
    height = Math.max(height, at[2 * i + 1]);
  }
  for (let i = 0; i < count; i++) {
    at[2 * i] += (1 - width) / 2; // centred in the square
    at[2 * i + 1] += (1 - height) / 2;
  }
  return at;
});

const textOf = (i) => (data.text ? data.text[data.of[i]] : data.label[i]);

// The text around a word, with the word marked; or the text.
function contextOf(i, around) {
  if (!data.text) return data.label[i];
  const text = textOf(i);
  const begin = data.begin[i];
  const end = begin + data.label[i].length;
  if (end > text.length) return text;
  const from = Math.max(0, begin - around);
  const to = Math.min(text.length, end + around);
  const mark = h('mark', null, text.slice(begin, end));
  return [from ? '…' : '', text.slice(from, begin), mark, text.slice(end, to), to < text.length ? '…' : ''];
}
const valueOf = (column, i) => column.values[column.of[i]];

function numbersOf(column) {
  if (column.values.length < NUMERIC_FROM) return null;
  const numbers = column.values.map((v) => (v.trim() === '' ? NaN : Number(v)));
  return numbers.every((v) => Number.isFinite(v)) ? numbers : null;
}

// Classes of a column by size: {names, sizes, of: [n]}; the last one may be "other". Or a scale: {low, high, part}.
function coloring(index) {
  if (index < 0) return { names: ['all points'], sizes: [count], of: new Uint8Array(count), rest: -1 };
  const column = data.columns[index];
  const numbers = numbersOf(column);
  if (numbers) {
    const low = numbers.reduce((a, b) => Math.min(a, b));
    const high = numbers.reduce((a, b) => Math.max(a, b));
    return { low, high, part: Float32Array.from(column.of, (v) => (numbers[v] - low) / (high - low || 1)) };
  }
  const sizes = new Array(column.values.length).fill(0);
  for (const v of column.of) sizes[v]++;
  const order = sizes.map((_, v) => v).sort((a, b) => sizes[b] - sizes[a] || a - b);
  const rest = order.length > CLASSES ? CLASSES - 1 : -1;
  const classOf = new Uint8Array(order.length);
  order.forEach((v, k) => {
    classOf[v] = rest >= 0 && k >= rest ? rest : k;
  });
  const names = order.slice(0, rest >= 0 ? rest : order.length).map((v) => column.values[v] || '(empty)');
  const sizesOf = order.slice(0, names.length).map((v) => sizes[v]);
  if (rest >= 0) {
    names.push(`other (${order.length - rest})`);
    sizesOf.push(order.slice(rest).reduce((sum, v) => sum + sizes[v], 0));
  }
  return { names, sizes: sizesOf, of: Uint8Array.from(column.of, (v) => classOf[v]), rest };
}

function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
