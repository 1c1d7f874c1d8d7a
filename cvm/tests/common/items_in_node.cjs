// Runs programs with items in Node, with the answers and in the order of `hosted.rs`: reads cases from standard input, and writes their
// transcripts.
'use strict';
const { readFileSync } = require('node:fs');
const { inspect } = require('node:util');

class CCError extends Error {}
class CCTimeoutError extends CCError {}
for (const kind of [CCError, CCTimeoutError]) Object.defineProperty(kind.prototype, 'name', { value: kind.name });
const AsyncFunction = (async () => {}).constructor;

/** Rejected promises that nothing handles, oldest first; the value says whether they were reported. */
let unhandled = new Map();
process.on('unhandledRejection', (reason, promise) => unhandled.set(promise, { reason, reported: false }));
process.on('rejectionHandled', (promise) => unhandled.delete(promise));

const drained = () => new Promise((done) => setImmediate(done));
const head = (error) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error));

function answer(text) {
  if (text.startsWith('fail')) throw new CCError(text);
  if (text.startsWith('late')) throw new CCTimeoutError(text);
  if (text.startsWith('wron')) throw new TypeError(text);
  return text.startsWith('json') ? { of: [text, 1] } : `<${text}>`;
}

async function run({ source, awaits, choices }) {
  const lines = [];
  const open = new Map();
  let last = 0;
  const item = (settle) => new Promise((resolve, reject) => {
    open.set(++last, () => { try { resolve(settle()); } catch (error) { reject(error); } });
  });
  const CC = (prompt) => { lines.push(`? ${prompt}`); return answer(prompt); };
  CC.async = (prompt) => item(() => answer(prompt));
  const sleep = () => item(() => undefined);
  const waitFor = (name, { default: other } = {}) =>
    item(() => (name.startsWith('late') && other !== undefined ? JSON.parse(JSON.stringify(other)) : answer(name)));
  const names = ['CC', 'sleep', 'waitFor', 'console'];
  const values = [CC, sleep, waitFor, { log: (text) => lines.push(text) }];
  unhandled = new Map();
  // A promise of its own is not handled here: its rejection is one of those that nothing handles.
  const result = awaits
    ? new AsyncFunction(...names, `'use strict';${source}`)(...values)
    : new Function(...names, `'use strict';${source}\nreturn main();`)(...values);
  for (;;) {
    await drained();
    const state = /^Promise \{ <(pending|rejected)>/.exec(inspect(result, { depth: 0 }))?.[1];
    if (state !== 'pending' || open.size === 0) {
      const [oldest] = unhandled.values();
      if (oldest) lines.push(`threw ${head(oldest.reason)}`);
      else if (state === 'pending') lines.push('threw Error: the program waits for a promise that nothing can settle any more');
      else lines.push(`=> ${JSON.stringify((await result) ?? null)}`);
      if (open.size > 0) lines.push(`abandoned ${[...open.keys()]}`);
      return lines;
    }
    for (const rejection of [...unhandled.values()].filter((one) => !one.reported).slice(0, 16)) {
      rejection.reported = true;
      lines.push(`rejected ${head(rejection.reason)}`);
    }
    const numbers = [...open.keys()];
    lines.push(`wait ${numbers}`);
    const chosen = numbers[choices.shift()];
    lines.push(`= ${chosen}`);
    const settle = open.get(chosen);
    open.delete(chosen);
    settle();
  }
}

(async () => {
  const transcripts = [];
  for (const one of JSON.parse(readFileSync(0, 'utf8'))) transcripts.push(await run(one));
  process.stdout.write(JSON.stringify(transcripts));
})();
