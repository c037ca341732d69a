// Requests to the server: JSON in, JSON out, timings from the response headers, Server-Sent Events.

export class ApiError extends Error {
  constructor(message, status, param) {
    super(message);
    this.status = status; // 0: no answer
    this.param = param;
  }
}

let key = '';
try {
  key = sessionStorage.getItem('sesame-key') || '';
} catch {
  // storage is not available: the key lives as long as the page
}

// Asks for a key; several requests that fail at once share one question.
let asking = null;

function askKey() {
  asking ??= showKeyDialog().finally(() => {
    asking = null;
  });
  return asking;
}

function showKeyDialog() {
  const dialog = document.getElementById('key-dialog');
  const input = document.getElementById('key-input');
  document.getElementById('key-refused').hidden = key === '';
  input.value = '';
  return new Promise((resolve) => {
    const closed = () => {
      key = input.value.trim();
      try {
        sessionStorage.setItem('sesame-key', key);
      } catch {
        // as above
      }
      resolve(key !== '');
    };
    dialog.addEventListener('close', closed, { once: true });
    if (!dialog.open) dialog.showModal();
  });
}

export const hasKey = () => key !== '';

// The message of an error response: OpenAI's {"error": {"message"}}, TEI's {"error"}, or plain text.
function errorOf(status, text, headers) {
  let message = text.trim() || `status ${status}`;
  let param = null;
  try {
    const value = JSON.parse(text);
    const error = value.error ?? value.message ?? value.detail;
    message = typeof error === 'string' ? error : error.message;
    param = error?.param || null;
  } catch {
    // not JSON: the text is the message
  }
  const wait = headers.get('retry-after');
  if (status === 429 && wait) message += ` (try again in ${wait} s)`;
  return new ApiError(message, status, param);
}

function timingsOf(headers, roundTrip) {
  const ms = (name) => (headers.has(name) ? Number(headers.get(name)) : NaN);
  return {
    roundTrip,
    total: ms('x-total-time'),
    tokenization: ms('x-tokenization-time'),
    queue: ms('x-queue-time'),
    inference: ms('x-inference-time'),
    truncated: Number(headers.get('x-truncated-tokens') || 0),
  };
}

async function send(method, path, body, signal, accept = 'application/json', any = false) {
  const headers = { Accept: accept };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (key) headers.Authorization = `Bearer ${key}`;
  const init = { method, headers, signal, cache: 'no-store' };
  if (body !== undefined) init.body = JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('The server does not answer. Is `sesame serve` running?', 0);
  }
  if (response.status === 401 && (await askKey())) return send(method, path, body, signal, accept, any);
  if (!response.ok && !any) throw errorOf(response.status, await response.text(), response.headers);
  return response;
}

export async function call(method, path, body, signal) {
  const start = performance.now();
  const response = await send(method, path, body, signal);
  const text = await response.text();
  const timings = timingsOf(response.headers, performance.now() - start);
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    throw new ApiError(`${path} did not answer with JSON: ${text.slice(0, 100)}`, response.status);
  }
  return { data, timings };
}

export const get = (path, signal) => call('GET', path, undefined, signal);
export const post = (path, body, signal) => call('POST', path, body, signal);

// The response as it comes, also of an error.
export async function raw(method, path, body, signal) {
  const start = performance.now();
  const response = await send(method, path, body, signal, '*/*', true);
  const text = await response.text();
  const type = response.headers.get('content-type') || 'no body';
  return { status: response.status, type, text, ms: performance.now() - start };
}

// Vectors as bytes of f32, with their number of dimensions.
export async function floats(path, body, signal) {
  const start = performance.now();
  const response = await send('POST', path, body, signal, 'application/octet-stream');
  const bytes = new Uint8Array(await response.arrayBuffer());
  const [, width] = (response.headers.get('x-embedding-shape') || '0,0').split(',').map(Number);
  return { bytes, width, timings: timingsOf(response.headers, performance.now() - start) };
}

// Calls onEvent with the JSON of each event of a stream.
export async function stream(path, body, signal, onEvent) {
  const start = performance.now();
  const response = await send('POST', path, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    rest += value || '';
    const events = rest.split(/\r?\n\r?\n/);
    rest = done ? '' : events.pop();
    for (const event of events) {
      const data = event
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trim())
        .join('\n');
      if (!data || data === '[DONE]') continue;
      const json = JSON.parse(data);
      if (json.error) throw new ApiError(json.error.message || json.error, 200);
      onEvent(json);
    }
    if (done) break;
  }
  return timingsOf(response.headers, performance.now() - start);
}
