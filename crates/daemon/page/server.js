// What the page asks of Weir, all of it in the OpenAPI document. The token stays in this tab.

const KEY = "weir-token";

export const token = {
  get: () => sessionStorage.getItem(KEY),
  set: (text) => sessionStorage.setItem(KEY, text),
  clear: () => sessionStorage.removeItem(KEY),
};

/** An answer that is a refusal; `reasons` says why, in words. */
export class Refusal extends Error {
  constructor(status, message, reasons = []) {
    super(message);
    this.status = status;
    this.reasons = reasons;
  }
}

function headers(more = {}) {
  const known = token.get();
  return known ? { Authorization: `Bearer ${known}`, ...more } : more;
}

async function refusal(response) {
  let said = {};
  try {
    said = await response.json();
  } catch {
    // Not every refusal has a body.
  }
  return new Refusal(response.status, said.error ?? `the answer is ${response.status}`, said.reasons ?? []);
}

/** Sends a request, and gives the JSON of the answer. */
export async function ask(path, method = "GET", body = undefined) {
  const more = body === undefined ? {} : { "Content-Type": "application/json" };
  const send = () => fetch(path, {
    method,
    headers: headers(more),
    body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store",
  });
  // A browser gives up its requests when an interface of its host comes or goes. A read is sent again, a change is not:
  // Weir may have made the change.
  const response = await (method === "GET" ? send().catch(send) : send());
  if (!response.ok) throw await refusal(response);
  return response.json();
}

/** A name as a part of a path. */
export const part = encodeURIComponent;

/**
 * Reads server-sent events until `signal` says that nobody wants them any more; comes again when the stream ends.
 * By fetch, since EventSource sends no token.
 */
export async function listen(path, { onEvent, onState, signal }) {
  let failures = 0;
  while (!signal.aborted) {
    try {
      const response = await fetch(path, { headers: headers(), cache: "no-store", signal });
      if (!response.ok) throw await refusal(response);
      onState("live");
      failures = 0;
      for await (const [name, data] of events(response.body)) onEvent(name, data);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refusal && error.status === 401) {
        onState("refused");
        return;
      }
      failures += 1;
    }
    // An orderly end is followed by another stream at once; a Weir that is away is asked more and more seldom.
    if (failures > 0) onState("lost");
    await pause(failures === 0 ? 50 : Math.min(500 * 2 ** failures, 10_000), signal);
  }
}

const pause = (time, signal) =>
  new Promise((done) => {
    const timer = setTimeout(done, time);
    signal.addEventListener("abort", () => (clearTimeout(timer), done()), { once: true });
  });

async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    let end;
    while ((end = rest.indexOf("\n\n")) >= 0) {
      const lines = rest.slice(0, end).split("\n");
      rest = rest.slice(end + 2);
      const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const [name, data] = [field("event"), field("data")];
      if (name && data) yield [name, JSON.parse(data)];
    }
  }
}
