// Vectors in the browser: cosine, an order with similar rows together, BM25.

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
