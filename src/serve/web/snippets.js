// "Copy as": the last request as curl, Python and the command line.

const origin = () => location.origin;

// One argument of a POSIX shell.
export function shell(text) {
  const s = String(text);
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(s) ? s : `'${s.replaceAll("'", "'\\''")}'`;
}

// A Python literal.
export function python(value, indent = '') {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  const inner = `${indent}    `;
  const items = Array.isArray(value)
    ? value.map((v) => python(v, inner))
    : Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${python(v, inner)}`);
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const line = open + items.join(', ') + close;
  if (line.length <= 72 && !line.includes('\n')) return line;
  return `${open}\n${items.map((item) => `${inner}${item},\n`).join('')}${indent}${close}`;
}

export function curl(request, withKey) {
  const key = withKey ? ' \\\n  -H "Authorization: Bearer $SESAME_KEY"' : '';
  if (request.method === 'GET') return `curl ${shell(origin() + request.path)}${key}`;
  const no = request.body?.stream ? '-N ' : '';
  return [
    `curl ${no}${shell(origin() + request.path)}${key}`,
    "-H 'Content-Type: application/json'",
    `-d ${shell(JSON.stringify(request.body))}`,
  ].join(' \\\n  ');
}

export function urllib(request, withKey) {
  const headers = { 'Content-Type': 'application/json' };
  if (withKey) headers.Authorization = 'Bearer KEY';
  const data =
    request.method === 'GET'
      ? ''
      : `,\n    data=json.dumps(body).encode(),\n    headers=${python(headers, '    ')}`;
  return `${[
    'import json, urllib.request',
    '',
    request.method === 'GET' ? '' : `body = ${python(request.body)}\n`,
    `request = urllib.request.Request(\n    ${python(origin() + request.path)}${data})`,
    'with urllib.request.urlopen(request) as response:',
    '    print(json.load(response))',
  ]
    .filter((line, i) => line !== '' || i === 1)
    .join('\n')}\n`;
}

// huggingface_hub: method and arguments as of InferenceClient.
export function inferenceClient(path, method, args, withKey) {
  const list = args.map(([name, value]) =>
    name ? `${name}=${python(value, '    ')}` : python(value, '    '),
  );
  const one = `client.${method}(${list.join(', ')})`;
  const call =
    one.length <= 72 && !one.includes('\n')
      ? one
      : `client.${method}(\n${list.map((a) => `    ${a},\n`).join('')})`;
  const key = withKey ? ', api_key="KEY"' : '';
  return [
    'from huggingface_hub import InferenceClient',
    '',
    `client = InferenceClient(base_url=${python(origin() + path)}${key})`,
    `print(${call})`,
    '',
  ].join('\n');
}

export function openai(request, withKey) {
  const args = Object.entries(request.body).map(([name, value]) => `    ${name}=${python(value, '    ')},`);
  const show = request.body.stream
    ? [
        'for chunk in result:',
        '    for choice in chunk.choices:',
        '        print(choice.text, end="", flush=True)',
      ]
    : ['print(result)'];
  return [
    'from openai import OpenAI',
    '',
    `client = OpenAI(base_url=${python(`${origin()}/v1`)}, api_key="${withKey ? 'KEY' : 'none'}")`,
    'result = client.completions.create(',
    ...args,
    ')',
    ...show,
    '',
  ].join('\n');
}

// sesame COMMAND -m MODEL [option, value]... text...
export function cli(command, model, options, texts) {
  const words = ['sesame', command];
  if (model) words.push('-m', shell(model));
  for (const [name, value] of options || []) {
    if (value === false || value === undefined || value === '') continue;
    words.push(name);
    if (value !== true) words.push(shell(value));
  }
  const quoted = (texts || []).map(shell);
  if (quoted.some((text) => text.startsWith('-'))) words.push('--');
  const line = [...words, ...quoted].join(' ');
  // The server does not tell where the folders of models are.
  const comment = model && !model.startsWith('sesame-') ? `# ${model}: give the folder of this model\n` : '';
  return comment + (line.length <= 90 ? line : [words.join(' '), ...quoted].join(' \\\n  '));
}
