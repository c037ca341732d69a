// Tables as text: RFC 4180 with commas, semicolons or tabs.

function split(text, delimiter) {
  const rows = [];
  let row = [],
    cell = '',
    quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') {
        cell += '"';
        i++;
      } else quoted = false;
    } else if (c === '"' && cell === '') quoted = true;
    else if (c === delimiter) {
      row.push(cell);
      cell = '';
    } else if (c === '\n' || c === '\r') {
      if (c === '\r' && text[i + 1] === '\n') i++;
      row.push(cell);
      if (row.length > 1 || cell) rows.push(row);
      row = [];
      cell = '';
    } else cell += c;
  }
  row.push(cell);
  if (row.length > 1 || cell) rows.push(row);
  return rows;
}

// The delimiter that gives the first lines the most columns, all the same number.
export function parseTable(text) {
  const plain = text.replace(/^\ufeff/, '');
  let best = [];
  for (const delimiter of [',', ';', '\t']) {
    const rows = split(plain, delimiter);
    const head = rows.slice(0, 20);
    const same = head.every((r) => r.length === head[0].length);
    if (head.length && same && head[0].length > (best[0]?.length || 0)) best = rows;
  }
  if (!best.length) best = split(plain, ',');
  const [head = [], ...rows] = best;
  const names = head.map((name, i) => name.trim() || `column ${i + 1}`);
  return { head: names, rows: rows.map((r) => names.map((_, i) => r[i] ?? '')) };
}

// The column with the texts: by its name, else the longest.
export function textColumn({ head, rows }) {
  const named = head.find((name) => /^(text|sentence|review|comment|message|title|body|content|tweet)s?$/i.test(name));
  if (named) return named;
  const length = (i) => rows.slice(0, 100).reduce((sum, r) => sum + r[i].length, 0);
  return head[head.reduce((best, _, i) => (length(i) > length(best) ? i : best), 0)];
}

const quote = (cell) => (/[",\r\n]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : cell);
export const writeCsv = (head, rows) => [head, ...rows].map((r) => `${r.map(quote).join(',')}\n`).join('');
