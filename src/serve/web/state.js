// The address: #/PANEL?field=value&... Only values that differ from the defaults are written.

export function parseHash(hash) {
  const text = hash.replace(/^#\/?/, '');
  const at = text.indexOf('?');
  const id = at < 0 ? text : text.slice(0, at);
  return { id, values: new URLSearchParams(at < 0 ? '' : text.slice(at + 1)) };
}

// Values of the address over defaults, converted to the type of the default.
export function readState(defaults, values) {
  const state = structuredClone(defaults);
  for (const name of Object.keys(defaults)) {
    if (!values.has(name)) continue;
    const text = values.get(name);
    const kind = defaults[name];
    if (typeof kind === 'boolean') state[name] = text === '1';
    else if (typeof kind === 'number') state[name] = Number.isFinite(Number(text)) ? Number(text) : kind;
    else if (Array.isArray(kind)) state[name] = text.split('\n').filter(Boolean);
    else state[name] = text;
  }
  return state;
}

export function writeHash(id, defaults, state) {
  const values = new URLSearchParams();
  for (const [name, value] of Object.entries(defaults)) {
    const now = state[name];
    if (JSON.stringify(now) === JSON.stringify(value)) continue;
    if (typeof value === 'boolean') values.set(name, now ? '1' : '0');
    else if (Array.isArray(value)) values.set(name, now.join('\n'));
    else values.set(name, String(now));
  }
  const query = values.toString();
  return query ? `#/${id}?${query}` : `#/${id}`;
}
