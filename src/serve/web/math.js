// Vectors in the browser: cosine, principal components, t-SNE, an order with similar rows together, BM25.

export const dot = (a, b) => {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
};

export function unit(v) {
  const length = Math.sqrt(dot(v, v)) || 1;
  return Float64Array.from(v, (x) => x / length);
}

export const cosines = (vectors) => {
  const u = vectors.map(unit);
  return u.map((a) => u.map((b) => dot(a, b)));
};

// Random numbers that are the same in every run.
function random(seed) {
  let s = seed >>> 0;
  return () => {
    s = (s + 0x6d2b79f5) >>> 0;
    let t = Math.imul(s ^ (s >>> 15), s | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// The first two principal components, by power iteration on the Gram matrix of the centered rows.
export function pca(vectors) {
  const n = vectors.length,
    d = vectors[0].length;
  const mean = new Float64Array(d);
  for (const v of vectors) for (let i = 0; i < d; i++) mean[i] += v[i] / n;
  const rows = vectors.map((v) => Float64Array.from(v, (x, i) => x - mean[i]));
  const gram = rows.map((a) => Float64Array.from(rows, (b) => dot(a, b)));
  const next = random(1);
  const components = [];
  let total = 0;
  for (let i = 0; i < n; i++) total += gram[i][i];
  for (let c = 0; c < 2; c++) {
    let v = unit(Array.from({ length: n }, () => next() - 0.5));
    let value = 0;
    for (let step = 0; step < 200; step++) {
      const w = gram.map((row) => dot(row, v));
      for (const p of components) {
        const overlap = dot(w, p.vector);
        for (let i = 0; i < n; i++) w[i] -= overlap * p.vector[i];
      }
      value = Math.sqrt(dot(w, w));
      const u = unit(w);
      const change = 1 - Math.abs(dot(u, v));
      v = u;
      if (change < 1e-12) break;
    }
    components.push({ vector: v, value });
  }
  const points = vectors.map((_, i) => components.map((p) => p.vector[i] * Math.sqrt(p.value)));
  return { points, explained: components.map((p) => (total ? p.value / total : 0)) };
}

// Conditional probabilities of neighbors at a given perplexity: the width of each Gaussian by bisection.
function affinities(distances, perplexity) {
  const n = distances.length;
  const target = Math.log(perplexity);
  const P = distances.map(() => new Float64Array(n));
  for (let i = 0; i < n; i++) {
    let low = 0,
      high = Infinity,
      beta = 1;
    for (let step = 0; step < 50; step++) {
      let sum = 0,
        weighted = 0;
      for (let j = 0; j < n; j++) {
        const p = j === i ? 0 : Math.exp(-beta * distances[i][j]);
        P[i][j] = p;
        sum += p;
        weighted += p * distances[i][j];
      }
      const entropy = Math.log(sum || 1e-300) + (beta * weighted) / (sum || 1e-300);
      for (let j = 0; j < n; j++) P[i][j] /= sum || 1e-300;
      if (Math.abs(entropy - target) < 1e-5) break;
      if (entropy > target) {
        low = beta;
        beta = high === Infinity ? beta * 2 : (beta + high) / 2;
      } else {
        high = beta;
        beta = (beta + low) / 2;
      }
    }
  }
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) P[i][j] = P[j][i] = Math.max((P[i][j] + P[j][i]) / (2 * n), 1e-12);
  }
  return P;
}

// t-SNE with exact gradients, started from the principal components; for some hundred points.
export function tsne(vectors, perplexity, start, steps = 400) {
  const n = vectors.length;
  const u = vectors.map(unit);
  const distances = u.map((a) => Float64Array.from(u, (b) => 2 - 2 * dot(a, b)));
  const P = affinities(distances, Math.min(perplexity, Math.max(1.1, (n - 1) / 3)));
  const scale = Math.max(...start.flat().map(Math.abs), 1e-9);
  const y = start.map((p) => p.map((x) => (1e-2 * x) / scale));
  const speed = y.map(() => [0, 0]),
    gain = y.map(() => [1, 1]);
  const q = u.map(() => new Float64Array(n));
  for (let step = 0; step < steps; step++) {
    const early = step < 100 ? 4 : 1;
    const momentum = step < 100 ? 0.5 : 0.8;
    let sum = 0;
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < i; j++) {
        const a = y[i][0] - y[j][0],
          b = y[i][1] - y[j][1];
        q[i][j] = q[j][i] = 1 / (1 + a * a + b * b);
        sum += 2 * q[i][j];
      }
    }
    for (let i = 0; i < n; i++) {
      const g = [0, 0];
      for (let j = 0; j < n; j++) {
        if (i === j) continue;
        const f = 4 * (early * P[i][j] - q[i][j] / sum) * q[i][j];
        g[0] += f * (y[i][0] - y[j][0]);
        g[1] += f * (y[i][1] - y[j][1]);
      }
      for (let c = 0; c < 2; c++) {
        gain[i][c] = Math.max(
          0.01,
          Math.sign(g[c]) === Math.sign(speed[i][c]) ? gain[i][c] * 0.8 : gain[i][c] + 0.2,
        );
        speed[i][c] = momentum * speed[i][c] - Math.max(1, n / 10) * gain[i][c] * g[c];
      }
    }
    for (let i = 0; i < n; i++) for (let c = 0; c < 2; c++) y[i][c] += speed[i][c];
  }
  return y;
}

// An order in which similar rows are neighbors: average-linkage clustering, leaves from left to right.
export function clusterOrder(similarity) {
  let clusters = similarity.map((_, i) => [i]);
  const mean = (a, b) => {
    let sum = 0;
    for (const i of a) for (const j of b) sum += similarity[i][j];
    return sum / (a.length * b.length);
  };
  while (clusters.length > 1) {
    let best = [-Infinity, 0, 1];
    for (let i = 0; i < clusters.length; i++) {
      for (let j = i + 1; j < clusters.length; j++) {
        const s = mean(clusters[i], clusters[j]);
        if (s > best[0]) best = [s, i, j];
      }
    }
    const [, i, j] = best;
    const joined = [...clusters[i], ...clusters[j]];
    clusters = clusters.filter((_, k) => k !== i && k !== j);
    clusters.push(joined);
  }
  return clusters[0] || [];
}

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];

// BM25 scores of texts for a query, k1 = 1.2, b = 0.75.
export function bm25(query, texts) {
  const documents = texts.map(wordsOf);
  const average = documents.reduce((sum, d) => sum + d.length, 0) / (documents.length || 1) || 1;
  const scores = texts.map(() => 0);
  for (const word of new Set(wordsOf(query))) {
    const counts = documents.map((d) => d.filter((w) => w === word).length);
    const found = counts.filter(Boolean).length;
    if (!found) continue;
    const idf = Math.log(1 + (documents.length - found + 0.5) / (found + 0.5));
    counts.forEach((c, i) => {
      scores[i] += (idf * c * 2.2) / (c + 1.2 * (0.25 + (0.75 * documents[i].length) / average));
    });
  }
  return scores;
}
