'use strict';
// Drawing of lines and matrices, on a canvas or, with SvgContext, as SVG.

const SVG_NS = 'http://www.w3.org/2000/svg';

// The part of a canvas context that the drawings use; collects SVG elements.
class SvgContext {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.parts = [];
    this.path = '';
    this.offset = [0, 0];
    this.globalAlpha = 1;
    this.lineWidth = 1;
    this.fillStyle = this.strokeStyle = '#000';
    this.textAlign = 'start';
    this.size = 13;
    this.turn = 0;
  }

  static escape(text) {
    return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  }

  static number(x) {
    return String(Math.round(x * 100) / 100);
  }

  beginPath() {
    this.path = '';
  }

  moveTo(x, y) {
    this.path += `M${SvgContext.number(x)} ${SvgContext.number(y)}`;
  }

  lineTo(x, y) {
    this.path += `L${SvgContext.number(x)} ${SvgContext.number(y)}`;
  }

  bezierCurveTo(...at) {
    this.path += `C${at.map(SvgContext.number).join(' ')}`;
  }

  stroke() {
    const opacity = this.globalAlpha < 1 ? ` stroke-opacity="${SvgContext.number(this.globalAlpha)}"` : '';
    this.parts.push(
      `<path d="${this.path}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${opacity}/>`,
    );
  }

  fillRect(x, y, w, h) {
    const opacity = this.globalAlpha < 1 ? ` fill-opacity="${SvgContext.number(this.globalAlpha)}"` : '';
    const [a, b, c, d] = [x, y, w, h].map(SvgContext.number);
    this.parts.push(`<rect x="${a}" y="${b}" width="${c}" height="${d}" fill="${this.fillStyle}"${opacity}/>`);
  }

  strokeRect(x, y, w, h) {
    const [a, b, c, d] = [x, y, w, h].map(SvgContext.number);
    this.parts.push(`<rect x="${a}" y="${b}" width="${c}" height="${d}" fill="none" stroke="${this.strokeStyle}"/>`);
  }

  fillText(text, x, y) {
    const anchor = { start: 'start', left: 'start', center: 'middle', right: 'end', end: 'end' }[this.textAlign];
    const [a, b] = [SvgContext.number(x), SvgContext.number(y)];
    const turn = this.turn ? ` transform="rotate(${this.turn} ${a} ${b})"` : '';
    this.parts.push(
      `<text x="${a}" y="${b}" text-anchor="${anchor}" font-size="${this.size}" fill="${this.fillStyle}"${turn}>` +
        `${SvgContext.escape(text)}</text>`,
    );
  }

  text(title, background) {
    const size = `width="${Math.ceil(this.width)}" height="${Math.ceil(this.height)}"`;
    return (
      `<svg xmlns="${SVG_NS}" ${size} viewBox="0 0 ${Math.ceil(this.width)} ${Math.ceil(this.height)}" ` +
      `font-family="system-ui, sans-serif"><title>${SvgContext.escape(title)}</title>` +
      `<rect width="100%" height="100%" fill="${background}"/>${this.parts.join('\n')}</svg>\n`
    );
  }
}

// A canvas in CSS pixels, sharp on any screen.
function prepare(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const w = Math.round(width * ratio);
  const h = Math.round(height * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// The page's colors, read again when the theme changes.
let colors;
function readColors() {
  const style = getComputedStyle(document.querySelector('.view'));
  const get = (name) => style.getPropertyValue(name).trim();
  colors = {
    text: get('--v-text'),
    muted: get('--v-muted'),
    surface: get('--v-surface'),
    line: get('--v-line'),
    heat: get('--v-heat'),
    minus: get('--v-minus'),
    plus: get('--v-plus'),
    head: Array.from({ length: 8 }, (_, i) => get(`--v-h${i + 1}`)),
  };
}

const rgbOf = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
const headColor = (head) => colors.head[head % colors.head.length];

const STEPS = 24; // of opacity: the lines of a step are one path

// Lines of maps [{map, color}] from (x0, rowY(i)) to (x1, colY(j)); only: {side, i} or null.
function drawLines(context, maps, shape) {
  const { x0, x1, rowY, colY, only, least, isVisible } = shape;
  const bend = (x1 - x0) * 0.45;
  const strongest = maps.length > 1 ? 0.85 : 1;
  for (const { map, color } of maps) {
    const steps = Array.from({ length: STEPS }, () => []);
    for (let i = 0; i < map.rows; i++) {
      if ((only && only.side === 'row' && only.i !== i) || !isVisible(i)) continue;
      map.eachOf(i, (j, u) => {
        const w = weightOf[u];
        if (w < least || (only && only.side === 'col' && only.i !== j)) return;
        steps[Math.min(STEPS - 1, Math.floor(w * STEPS))].push(rowY(i), colY(j));
      });
    }
    context.strokeStyle = color;
    steps.forEach((lines, step) => {
      if (!lines.length) return;
      const w = (step + 0.5) / STEPS;
      context.globalAlpha = Math.min(1, (0.1 + 0.9 * Math.sqrt(w)) * (only ? 1 : strongest * 0.9));
      context.lineWidth = (only ? 1.25 : 1) + 1.5 * w;
      context.beginPath();
      for (let k = 0; k < lines.length; k += 2) {
        context.moveTo(x0, lines[k]);
        context.bezierCurveTo(x0 + bend, lines[k], x1 - bend, lines[k + 1], x1, lines[k + 1]);
      }
      context.stroke();
    });
  }
  context.globalAlpha = 1;
}

// Opacity of a weight in a heat map: even small weights are seen.
const heatAlpha = (w) => Math.min(1, Math.sqrt(w));

// Cells of dense [rows][cols] at (x, y); cell: their size. right: columns run from right to left.
function drawCells(context, dense, rows, cols, shape) {
  const { x, y, cell, color, right } = shape;
  const gap = cell >= 10 ? 1 : 0;
  context.fillStyle = color;
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) {
      const alpha = heatAlpha(dense[i * cols + j]);
      if (alpha < 0.03) continue;
      context.globalAlpha = alpha;
      context.fillRect(x + (right ? cols - 1 - j : j) * cell, y + i * cell, cell - gap, cell - gap);
    }
  }
  context.globalAlpha = 1;
}

// dense with at most `limit` rows and columns, by the maximum.
function shrink(dense, rows, cols, limit) {
  if (rows <= limit && cols <= limit) return { dense, rows, cols };
  const r = Math.min(rows, limit);
  const c = Math.min(cols, limit);
  const small = new Float32Array(r * c);
  const column = Array.from({ length: cols }, (_, j) => Math.floor((j * c) / cols));
  for (let i = 0; i < rows; i++) {
    const at = Math.floor((i * r) / rows) * c;
    for (let j = 0; j < cols; j++) {
      const x = dense[i * cols + j];
      if (x > small[at + column[j]]) small[at + column[j]] = x;
    }
  }
  return { dense: small, rows: r, cols: c };
}

// A picture of dense with one pixel per cell; larger ones shrink to `limit` pixels.
function paintPixels(canvas, dense, rows, cols, color, limit) {
  const small = shrink(dense, rows, cols, limit);
  canvas.width = small.cols;
  canvas.height = small.rows;
  const context = canvas.getContext('2d');
  const image = context.createImageData(small.cols, small.rows);
  const pixels = new Uint32Array(image.data.buffer); // little-endian: alpha is the highest byte
  const [r, g, b] = rgbOf(color);
  const rgb = r | (g << 8) | (b << 16);
  for (let i = 0; i < small.rows; i++) {
    const at = i * small.cols;
    const end = at + small.cols - 1;
    for (let j = 0; j < small.cols; j++) {
      const x = small.dense[at + j];
      if (x > 0) pixels[rightToLeft ? end - j : at + j] = rgb | ((255 * heatAlpha(x)) << 24);
    }
  }
  context.putImageData(image, 0, 0);
}

// Signed numbers as cells of two hues; full: the number of full color.
function drawSigned(context, numbers, full, x, y, cell, height) {
  for (let i = 0; i < numbers.length; i++) {
    const v = full ? numbers[i] / full : 0;
    context.fillStyle = v < 0 ? colors.minus : colors.plus;
    context.globalAlpha = Math.min(1, Math.abs(v));
    context.fillRect(x + i * cell, y, cell, height);
  }
  context.globalAlpha = 1;
}
