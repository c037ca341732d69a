'use strict';
// Attention weights of the view page, decoded from its inert blocks.
//
// Block "view", JSON:
//   unit      "token" or "word": what rows and columns are
//   source    [{t, s, p}]: text of each token or word; s 1: special token; p 1: of the second text
//   target    the same for the decoder of an encoder-decoder, or absent
//   families  [{id, title, rows, cols, causal, layers, heads, layer, top, hidden, rollout, flow, neuron}]
//     rows, cols  "source" or "target"
//     causal      a row i has the columns 0 .. i only
//     layers      their numbers, as shown; heads: the number of heads of each
//     layer       ids of the blocks with the weights of each layer
//     top         weights kept of each row, the largest; 0: all. hidden: mean weight of a row that is not kept
//     rollout     true: the maps of a layer are followed by that of its rollout
//     flow        id of a block with one map, of the flow to the last layer; absent: flow_why says why
//     neuron      {dim, scale, blocks: [id], q: [x], k: [x], bias: [x]}: steps of the numbers of a layer, or
//                 absent: neuron_why says why. bias is 0 if a layer adds no bias to its scores
//
// A block of weights is base64 in a JSON string: bytes round(255 sqrt(weight)). With all weights it is
// [map][row][column]. With the top ones it is [map][row][top] bytes, then as many columns of 2 bytes,
// little-endian. A block of neurons is little-endian int16: q [rows][heads dim], k [cols][heads dim], then
// bias [heads][rows][cols] if the layer has one.

const data = JSON.parse(document.getElementById('view').textContent);
const families = data.families;

// Weight of a byte.
const weightOf = Float32Array.from({ length: 256 }, (_, u) => (u / 255) * (u / 255));

function blockBytes(id) {
  const text = atob(JSON.parse(document.getElementById(id).textContent));
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

const decoded = new Map();
function block(id) {
  if (!decoded.has(id)) decoded.set(id, blockBytes(id));
  return decoded.get(id);
}

const unitsOf = (side) => (side === 'target' ? data.target : data.source);
const rowsOf = (family) => unitsOf(family.rows);
const colsOf = (family) => unitsOf(family.cols);

const pairsOf = (n) => (n * (n + 1)) / 2;

// One map: weights from rows to columns, as bytes.
class WeightMap {
  constructor(family, bytes, index, maps) {
    this.rows = rowsOf(family).length;
    this.cols = colsOf(family).length;
    this.causal = family.causal;
    this.top = family.top;
    this.bytes = bytes;
    this.index = index;
    this.maps = maps;
  }

  // Calls visit(column, byte) for each stored weight of a row.
  eachOf(row, visit) {
    if (this.top) {
      const first = (this.index * this.rows + row) * this.top;
      const columns = this.maps * this.rows * this.top;
      for (let i = first; i < first + this.top; i++) {
        if (!this.bytes[i]) break; // the largest come first
        visit(this.bytes[columns + 2 * i] | (this.bytes[columns + 2 * i + 1] << 8), this.bytes[i]);
      }
      return;
    }
    const first = this.causal
      ? this.index * pairsOf(this.rows) + pairsOf(row)
      : (this.index * this.rows + row) * this.cols;
    const n = this.causal ? row + 1 : this.cols;
    for (let j = 0; j < n; j++) visit(j, this.bytes[first + j]);
  }

  // Adds factor * weights to dense [rows][cols].
  addTo(dense, factor) {
    for (let i = 0; i < this.rows; i++) {
      const at = i * this.cols;
      this.eachOf(i, (j, u) => {
        dense[at + j] += factor * weightOf[u];
      });
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

// layer: its position in the list. head -1: the rollout.
function mapOf(family, layer, head) {
  const heads = family.heads[layer];
  const maps = heads + (family.rollout ? 1 : 0);
  return new WeightMap(family, block(family.layer[layer]), head < 0 ? heads : head, maps);
}

const flowOf = (family) => new WeightMap(family, block(family.flow), 0, 1);

// Mean over maps, dense [rows][cols].
function meanOf(maps) {
  const dense = new Float32Array(maps[0].rows * maps[0].cols);
  for (const map of maps) map.addTo(dense, 1 / maps.length);
  return dense;
}

function neuronsOf(family, layer) {
  const from = family.neuron;
  const bytes = block(from.blocks[layer]);
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
