'use strict';
// Attention weights of the view page, decoded from its inert blocks.
//
// Block "view", JSON:
//   unit      "token" or "word": what rows and columns are
//   source    [{t, s, p}]: text of each token or word; s 1: special token; p 1: of the second text
//   target    the same for the decoder of an encoder-decoder, or absent
//   families  [{id, title, short, rows, cols, causal, layers, heads, layer, top, hidden, rollout, rollout_top,
//              flow, neuron}]
//     rows, cols  "source" or "target"
//     causal      a row i has the columns 0 .. i only
//     layers      their numbers, as shown; heads: the number of heads of each
//     layer       ids of the blocks with the weights of each layer, a map for each head
//     top         weights kept of each row, the largest; 0: all. hidden: mean weight of a row that is not kept
//     rollout     ids of the blocks with the rollout of each layer, one map; absent: none. rollout_top: as top
//     flow        id of a block with one map, the flow to the last layer; absent: flow_why gives the reason
//     neuron      {dim, scale, blocks: [id], q: [x], k: [x], bias: [x]}: steps of the numbers of a layer;
//                 absent: neuron_why gives the reason. bias is 0 if a layer adds no bias to its scores
//
// A block of weights is a JSON string of numbers, a character each: those below 90 are the characters from #
// to ~ without < and \, number n above is the character n + 71. A weight is the number round(255 sqrt(weight)).
// With all weights a block is [map][row][column]; with the top ones [map][row][top] pairs of a weight and its
// column. A block of neurons is base64 of little-endian int16: q [rows][heads dim], k [cols][heads dim], then
// bias [heads][rows][cols] if the layer has one.

const data = JSON.parse(document.getElementById('view').textContent);
const families = data.families;

// Weight of a byte.
const weightOf = Float32Array.from({ length: 256 }, (_, u) => (u / 255) * (u / 255));

const blockText = (id) => JSON.parse(document.getElementById(id).textContent);

// Numbers of the characters; see above.
const numberOf = new Uint16Array(0xffff).map((_, c) => (c > 126 ? c - 71 : c > 92 ? c - 37 : c > 60 ? c - 36 : c - 35));

function blockNumbers(id) {
  const text = blockText(id);
  const numbers = new Uint16Array(text.length);
  for (let i = 0; i < text.length; i++) numbers[i] = numberOf[text.charCodeAt(i)];
  return numbers;
}

function blockBytes(id) {
  const text = atob(blockText(id));
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const decoded = new Map();
function block(id, decode) {
  if (!decoded.has(id)) decoded.set(id, decode(id));
  return decoded.get(id);
}

const unitsOf = (side) => (side === 'target' ? data.target : data.source);
const rowsOf = (family) => unitsOf(family.rows);
const colsOf = (family) => unitsOf(family.cols);

const pairsOf = (n) => (n * (n + 1)) / 2;

// One map: weights from rows to columns, as numbers from 0 to 255.
class WeightMap {
  constructor(family, id, index, top) {
    this.rows = rowsOf(family).length;
    this.cols = colsOf(family).length;
    this.causal = family.causal;
    this.top = top;
    this.numbers = block(id, blockNumbers);
    this.index = index;
  }

  // Index of a row's first number; weights of a row.
  firstOf(row) {
    if (this.top) return (this.index * this.rows + row) * this.top * 2;
    if (this.causal) return this.index * pairsOf(this.rows) + pairsOf(row);
    return (this.index * this.rows + row) * this.cols;
  }

  countOf(row) {
    return this.top || (this.causal ? row + 1 : this.cols);
  }

  // Calls visit(column, number) for each stored weight of a row.
  eachOf(row, visit) {
    const first = this.firstOf(row);
    const n = this.countOf(row);
    for (let k = 0; k < n; k++) {
      if (this.top) visit(this.numbers[first + 2 * k + 1], this.numbers[first + 2 * k]);
      else visit(k, this.numbers[first + k]);
    }
  }

  // Adds factor * weights to dense [rows][cols].
  addTo(dense, factor) {
    const scaled = weightOf.map((w) => w * factor);
    const { numbers, cols, top } = this;
    for (let i = 0; i < this.rows; i++) {
      const at = i * cols;
      const first = this.firstOf(i);
      if (top) for (let k = first; k < first + 2 * top; k += 2) dense[at + numbers[k + 1]] += scaled[numbers[k]];
      else for (let j = 0; j < this.countOf(i); j++) dense[at + j] += scaled[numbers[first + j]];
    }
  }

  row(i) {
    const dense = new Float32Array(this.cols);
    this.eachOf(i, (j, u) => {
      dense[j] = weightOf[u];
    });
    return dense;
  }
}

// layer: its position in the list.
const mapOf = (family, layer, head) => new WeightMap(family, family.layer[layer], head, family.top);
const rolloutOf = (family, layer) => new WeightMap(family, family.rollout[layer], 0, family.rollout_top);
const flowOf = (family) => new WeightMap(family, family.flow, 0, 0);

// Mean over maps, dense [rows][cols].
function meanOf(maps) {
  const dense = new Float32Array(maps[0].rows * maps[0].cols);
  for (const map of maps) map.addTo(dense, 1 / maps.length);
  return dense;
}

function neuronsOf(family, layer) {
  const from = family.neuron;
  const bytes = block(from.blocks[layer], blockBytes);
  const numbers = new Int16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength >> 1);
  const width = from.dim * family.heads[layer];
  const rows = rowsOf(family).length;
  const cols = colsOf(family).length;
  const part = (first, n, step) => Float32Array.from(numbers.subarray(first, first + n), (x) => x * step);
  return {
    q: (row, head) => part(row * width + head * from.dim, from.dim, from.q[layer]),
    k: (col, head) => part((rows + col) * width + head * from.dim, from.dim, from.k[layer]),
    bias: (row, head) =>
      from.bias[layer] &&
      part((rows + cols) * width + (head * rows + row) * cols, cols, from.bias[layer]),
  };
}

// Are most letters written from right to left?
function isRightToLeft(units) {
  let rtl = 0;
  let ltr = 0;
  for (const unit of units) {
    if (/[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/.test(unit.t)) rtl++;
    else if (!unit.s && /\p{L}/u.test(unit.t)) ltr++;
  }
  return rtl > ltr;
}
const rightToLeft = isRightToLeft(data.source);

const percent = (p) => (p >= 0.0995 ? `${Math.round(p * 100)} %` : `${(p * 100).toFixed(1)} %`);
