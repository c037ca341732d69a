// Elements. h('p', {class: 'x', onclick: f}, child, ...): text is never parsed as HTML.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'vars') for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v);
    else if (name === 'value') element.value = value;
    else if (name === 'checked' || name === 'disabled' || name === 'hidden') element[name] = Boolean(value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export const h = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes, ...children) =>
  fill(document.createElementNS(SVG, name), attributes, children);

export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

let ids = 0;
export const newId = (prefix) => `${prefix}-${++ids}`;

// ---- numbers and strings ----

const format = (digits) =>
  new Intl.NumberFormat('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
const formats = [0, 1, 2, 3, 4].map(format);
export const fixed = (x, digits) => (Number.isFinite(x) ? formats[digits].format(x) : '–');
export const count = (x) => fixed(x, 0);
export const percent = (x) => `${fixed(100 * x, 1)}\u2009%`;

export function milliseconds(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms >= 1000) return `${fixed(ms / 1000, 2)} s`;
  return `${fixed(ms, ms < 10 ? 2 : 1)} ms`;
}

export function bytes(n) {
  if (!Number.isFinite(n)) return '–';
  for (const [unit, size] of [
    ['GiB', 2 ** 30],
    ['MiB', 2 ** 20],
    ['KiB', 1024],
  ]) {
    if (n >= size) return `${fixed(n / size, 1)} ${unit}`;
  }
  return `${count(n)} bytes`;
}

export function large(n) {
  if (!Number.isFinite(n)) return '–';
  if (n >= 1e9) return `${fixed(n / 1e9, 2)} B`;
  if (n >= 1e6) return `${fixed(n / 1e6, 1)} M`;
  return count(n);
}

// The server counts code points; JavaScript strings count UTF-16 units.
export const codePoints = (text) => Array.from(text);
export const utf8 = (text) => new TextEncoder().encode(text);
export const lines = (text) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

export function plural(n, one, many) {
  return `${count(n)} ${n === 1 ? one : many || `${one}s`}`;
}

export function announce(text) {
  document.getElementById('announce').textContent = text;
}

// Saves text as a file.
export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h('a', { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // not a secure origin (plain HTTP on another host): the older way
    const area = h('textarea', { class: 'visually-hidden', value: text });
    document.body.append(area);
    area.select();
    const ok = document.execCommand('copy');
    area.remove();
    return ok;
  }
}

// Waits for a pause in a series of calls.
export function debounce(f, ms) {
  let timer = 0;
  const later = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...args), typeof ms === 'function' ? ms() : ms);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}
