'use strict';
// The picture of the map page: canvas, view, hits, lasso, SVG.

const MAX_ZOOM = 400;
const PAD = 24; // pixels around the map at zoom 1
const SCALE = ['#440154', '#3b528b', '#21918c', '#5ec962', '#fde725'];

const canvas = h('canvas', {
  class: 'm-canvas',
  tabindex: '0',
  role: 'img',
  'aria-describedby': 'm-status',
});
const view = { x: 0.5, y: 0.5, zoom: 1 };
let size = { width: 1, height: 1, ratio: 1 };
let shown = positions[0]; // positions on the screen, also while they move
let colors = coloring(-1);
let hidden = new Set(); // classes that are not drawn
let marked = new Set(); // search hits
let chosen = new Set(); // the selection
let hot = -1; // the point under the pointer
let lasso = null; // screen positions, while it is drawn

const scaleOf = () => (Math.min(size.width, size.height) - 2 * PAD) * view.zoom;
const screenX = (i) => (shown[2 * i] - view.x) * scaleOf() + size.width / 2;
const screenY = (i) => (view.y - shown[2 * i + 1]) * scaleOf() + size.height / 2;
const radius = () => Math.max(1.3, Math.min(6, (count > 5000 ? 1.6 : count > 1000 ? 2.4 : 3.6) * view.zoom ** 0.35));

function cssColor(name) {
  return getComputedStyle(document.querySelector('.map')).getPropertyValue(name).trim();
}

function mix(part) {
  const at = Math.min(Math.max(part, 0), 1) * (SCALE.length - 1);
  const i = Math.min(Math.floor(at), SCALE.length - 2);
  const from = SCALE[i].match(/\w\w/g).map((x) => parseInt(x, 16));
  const to = SCALE[i + 1].match(/\w\w/g).map((x) => parseInt(x, 16));
  return `rgb(${from.map((v, k) => Math.round(v + (to[k] - v) * (at - i))).join(',')})`;
}

const classOf = (i) => (colors.of ? colors.of[i] : 0);
const isShown = (i) => !hidden.has(classOf(i));
const isRest = (k) => k === colors.rest;
const classColor = (k) => cssColor(isRest(k) ? '--m-rest' : `--m${k % HUES}`);
const isHollow = (k) => !isRest(k) && k >= HUES;

// Groups of points with one color: {color, hollow, points}.
function batches() {
  if (colors.part) {
    const steps = Array.from({ length: 16 }, (_, k) => ({ color: mix(k / 15), hollow: false, points: [] }));
    for (let i = 0; i < count; i++) steps[Math.round(colors.part[i] * 15)].points.push(i);
    return steps;
  }
  const groups = colors.names.map((_, k) => ({ color: classColor(k), hollow: isHollow(k), points: [] }));
  for (let i = 0; i < count; i++) if (isShown(i)) groups[classOf(i)].points.push(i);
  return groups;
}

let cached = null; // batches of the present colors
function recolor() {
  cached = null;
  draw();
}

function drawPoints(g, group, r, dim) {
  g.globalAlpha = dim ? 0.14 : group.hollow ? 0.95 : 0.82;
  g.fillStyle = group.color;
  g.strokeStyle = group.color;
  g.lineWidth = Math.max(1, r * 0.45);
  g.beginPath();
  for (const i of group.points) {
    const x = screenX(i);
    const y = screenY(i);
    if (x < -9 || y < -9 || x > size.width + 9 || y > size.height + 9) continue;
    if (r < 1.8 && !group.hollow) {
      g.rect(x - r, y - r, 2 * r, 2 * r);
    } else {
      g.moveTo(x + r, y);
      g.arc(x, y, r, 0, 2 * Math.PI);
    }
  }
  if (group.hollow) g.stroke();
  else g.fill();
}

// Some labels, where they do not overlap.
function drawLabels(g, list, r) {
  const taken = [];
  g.font = '12px system-ui, sans-serif';
  g.textBaseline = 'middle';
  g.lineWidth = 3;
  g.lineJoin = 'round';
  for (const i of list) {
    const x = screenX(i) + r + 4;
    const y = screenY(i);
    if (x < 0 || y < 8 || x > size.width - 10 || y > size.height - 8) continue;
    const label = data.label[i].length > 28 ? `${data.label[i].slice(0, 27)}…` : data.label[i];
    const box = [x, y - 8, x + g.measureText(label).width, y + 8];
    if (box[2] > size.width || taken.some((b) => b[0] < box[2] && b[2] > box[0] && b[1] < box[3] && b[3] > box[1])) continue;
    taken.push(box);
    g.strokeStyle = cssColor('--m-surface');
    g.fillStyle = cssColor('--m-text');
    g.strokeText(label, x, y);
    g.fillText(label, x, y);
    if (taken.length >= 60) return;
  }
}

function inView() {
  const list = [];
  for (let i = 0; i < count; i++) {
    const x = screenX(i);
    const y = screenY(i);
    if (isShown(i) && x > 0 && y > 0 && x < size.width && y < size.height) list.push(i);
  }
  return list;
}

function draw() {
  const g = canvas.getContext('2d');
  const r = radius();
  g.setTransform(size.ratio, 0, 0, size.ratio, 0, 0);
  g.clearRect(0, 0, size.width, size.height);
  cached = cached || batches();
  const bright = chosen.size ? chosen : marked;
  for (const group of cached) drawPoints(g, group, r, bright.size > 0);
  if (bright.size)
    for (const group of cached)
      drawPoints(g, { ...group, points: group.points.filter((i) => bright.has(i)) }, r * 1.15, false);
  g.globalAlpha = 1;
  const visible = bright.size ? [...bright].filter(isShown) : inView();
  if (bright.size || visible.length <= 150) drawLabels(g, visible, r);
  if (hot >= 0) {
    g.strokeStyle = cssColor('--m-text');
    g.lineWidth = 2;
    g.beginPath();
    g.arc(screenX(hot), screenY(hot), r + 3, 0, 2 * Math.PI);
    g.stroke();
  }
  if (lasso) {
    g.beginPath();
    lasso.forEach(([x, y], k) => (k ? g.lineTo(x, y) : g.moveTo(x, y)));
    g.closePath();
    g.fillStyle = cssColor('--m-accent');
    g.strokeStyle = g.fillStyle;
    g.globalAlpha = 0.12;
    g.fill();
    g.globalAlpha = 1;
    g.lineWidth = 1.5;
    g.stroke();
  }
}

function resize() {
  const box = canvas.getBoundingClientRect();
  size = { width: Math.max(box.width, 1), height: Math.max(box.height, 1), ratio: window.devicePixelRatio || 1 };
  canvas.width = Math.round(size.width * size.ratio);
  canvas.height = Math.round(size.height * size.ratio);
  draw();
}

// Moves the points to another layout.
let motion = 0;
function moveTo(layout) {
  const from = shown;
  const to = positions[layout];
  const start = performance.now();
  cancelAnimationFrame(motion);
  if (from === to || count > 20000 || matchMedia('(prefers-reduced-motion: reduce)').matches) {
    shown = to;
    draw();
    return;
  }
  const step = (now) => {
    const t = Math.min((now - start) / 350, 1);
    const part = t * t * (3 - 2 * t);
    shown = t < 1 ? from.map((v, i) => v + (to[i] - v) * part) : to;
    draw();
    if (t < 1) motion = requestAnimationFrame(step);
  };
  motion = requestAnimationFrame(step);
}

function zoomBy(factor, x = size.width / 2, y = size.height / 2) {
  const before = scaleOf();
  view.zoom = Math.min(Math.max(view.zoom * factor, 0.5), MAX_ZOOM);
  const after = scaleOf();
  view.x += (x - size.width / 2) * (1 / before - 1 / after);
  view.y -= (y - size.height / 2) * (1 / before - 1 / after);
  draw();
}

function panBy(dx, dy) {
  view.x -= dx / scaleOf();
  view.y += dy / scaleOf();
  draw();
}

// The nearest point within reach; -1: none.
function pointAt(x, y) {
  let best = -1;
  let least = (radius() + 8) ** 2;
  for (let i = 0; i < count; i++) {
    const d = (screenX(i) - x) ** 2 + (screenY(i) - y) ** 2;
    if (d < least && isShown(i)) {
      best = i;
      least = d;
    }
  }
  return best;
}

function insideLasso(x, y) {
  let inside = false;
  for (let i = 0, j = lasso.length - 1; i < lasso.length; j = i++) {
    const [xi, yi] = lasso[i];
    const [xj, yj] = lasso[j];
    if (yi > y !== yj > y && x < ((xj - xi) * (y - yi)) / (yj - yi) + xi) inside = !inside;
  }
  return inside;
}

function pointsInLasso() {
  const found = new Set();
  for (let i = 0; i < count; i++) if (isShown(i) && insideLasso(screenX(i), screenY(i))) found.add(i);
  return found;
}

const escapeXml = (s) => s.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

// The view as SVG, with the key of its colors.
function svgText(title) {
  const r = radius();
  const ink = cssColor('--m-text');
  const out = [];
  for (const group of cached || batches()) {
    const style = group.hollow ? `fill="none" stroke="${group.color}" stroke-width="1.2"` : `fill="${group.color}"`;
    out.push(`<g ${style} fill-opacity=".85">`);
    for (const i of group.points) {
      const x = screenX(i);
      const y = screenY(i);
      if (x < 0 || y < 0 || x > size.width || y > size.height) continue;
      const name = escapeXml(data.label[i]);
      out.push(`<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${r.toFixed(1)}"><title>${name}</title></circle>`);
    }
    out.push('</g>');
  }
  let x = 16;
  let y = size.height + 20;
  const key = colors.part ? [`${colors.low} (dark) to ${colors.high} (light)`] : colors.names;
  key.forEach((name, k) => {
    const width = 30 + 7 * name.length;
    if (x + width > size.width && x > 16) {
      x = 16;
      y += 20;
    }
    const color = colors.part ? mix(0.5) : classColor(k);
    const fill = isHollow(k) ? `fill="none" stroke="${color}"` : `fill="${color}"`;
    out.push(`<circle cx="${x}" cy="${y - 4}" r="4" ${fill}/><text x="${x + 10}" y="${y}" fill="${ink}">${escapeXml(name)}</text>`);
    x += width;
  });
  const height = Math.ceil(y + 14);
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${height}" font-family="system-ui,sans-serif" ` +
    `font-size="12"><title>${escapeXml(title)}</title><rect width="100%" height="100%" fill="${cssColor('--m-surface')}"/>` +
    `${out.join('')}</svg>\n`
  );
}
