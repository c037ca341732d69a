// JSON Schema of the description: an example that is valid, and the members of a body in words.

const samples = {
  inputs: 'A warm, funny film.',
  input: 'A warm, funny film.',
  prompt: 'The old man',
  content: 'A warm, funny film.',
  query: 'When does the ferry leave?',
  queries: 'When does the ferry leave?',
  question: 'When does the ferry leave?',
  context: 'The ferry leaves at noon.',
  text: 'The ferry leaves at noon.',
  label: 'travel',
  source_sentence: 'The ferry leaves at noon.',
  ids: 1,
  tokens: 1,
};

function resolve(doc, schema) {
  let at = schema;
  while (at?.$ref) {
    const { $ref, ...rest } = at;
    at = { ...doc.components.schemas[$ref.split('/').pop()], ...rest };
  }
  return at || {};
}

const isNull = (s) => s.type === 'null' || (s.enum && s.enum.every((v) => v === null));

// The first choice that is not null.
const choiceOf = (doc, list) => list.map((s) => resolve(doc, s)).find((s) => !isNull(s)) || {};

function objectOf(doc, schema, depth) {
  const out = {};
  for (const part of schema.allOf || []) Object.assign(out, exampleOf(doc, part, '', depth + 1) || {});
  const choice = schema.anyOf || schema.oneOf;
  if (choice) {
    const part = exampleOf(doc, choiceOf(doc, choice), '', depth + 1);
    if (part && typeof part === 'object') Object.assign(out, part);
  }
  const chosen = choice ? choiceOf(doc, choice) : {};
  for (const name of [...(schema.required || []), ...(chosen.required || [])]) {
    const member = { ...schema.properties, ...chosen.properties }[name];
    if (out[name] === undefined) out[name] = exampleOf(doc, member || {}, name, depth + 1);
  }
  return out;
}

export function exampleOf(doc, given, name = '', depth = 0) {
  const schema = resolve(doc, given);
  if (depth > 12) return null;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum.find((v) => v !== null && v !== '') ?? schema.enum[0];
  if (schema.default !== undefined) return schema.default;
  const types = [schema.type].flat();
  if (schema.properties || schema.allOf || types.includes('object')) return objectOf(doc, schema, depth);
  if (schema.anyOf || schema.oneOf) return exampleOf(doc, choiceOf(doc, schema.anyOf || schema.oneOf), name, depth + 1);
  if (types.includes('string')) return samples[name] || (schema.minLength ? 'The ferry leaves at noon.' : '');
  if (types.includes('array'))
    return Array.from({ length: Math.max(1, schema.minItems || 0) }, () =>
      exampleOf(doc, schema.items || {}, name, depth + 1),
    );
  if (types.includes('integer') || types.includes('number')) return Math.max(schema.minimum ?? 0, Math.min(1, schema.maximum ?? 1));
  if (types.includes('boolean')) return true;
  return samples[name] ?? null;
}

function wordsOf(doc, given) {
  const schema = resolve(doc, given);
  if (schema.description) return schema.description;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.slice(0, 12).map((v) => JSON.stringify(v)).join(', ');
  const list = schema.anyOf || schema.oneOf;
  if (list)
    return [...new Set(list.filter((s) => !isNull(resolve(doc, s))).map((s) => wordsOf(doc, s)))].slice(0, 4).join(' or ');
  const type = [schema.type].flat().filter((t) => t !== 'null').join(' or ');
  const range = [
    schema.minimum === undefined ? '' : `from ${schema.minimum}`,
    schema.maximum === undefined ? '' : `to ${schema.maximum}`,
  ];
  return [type === 'array' ? `list of ${wordsOf(doc, schema.items || {}) || 'values'}` : type, ...range].filter(Boolean).join(' ');
}

// The members that a body names: {name, required, values}.
export function membersOf(doc, given) {
  const schema = resolve(doc, given);
  const parts = [schema, ...(schema.allOf || []).map((s) => resolve(doc, s)), ...(schema.anyOf || []).map((s) => resolve(doc, s))];
  const seen = new Map();
  for (const part of parts)
    for (const [name, member] of Object.entries(part.properties || {})) {
      const values = wordsOf(doc, member);
      const old = seen.get(name);
      if (!old || (!old.values && values))
        seen.set(name, { name, required: (schema.required || []).includes(name), values });
    }
  return [...seen.values()];
}
