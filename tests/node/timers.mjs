import { setTimeout as wait, setImmediate as soon, setInterval as every } from 'node:timers/promises';
import timers from 'timers';
import process, { nextTick } from 'node:process';
import os, { EOL } from 'os';
console.log(await wait(1, 'value'), await soon('now'), timers.setTimeout === setTimeout, JSON.stringify(EOL), typeof os.cpus().length, os.type());
let n = 0;
for await (const value of every(1, 'tick')) { console.log(value); if (++n === 3) break; }
const abort = new AbortController();
const waiting = wait(10_000, null, { signal: abort.signal });
abort.abort();
await waiting.catch((error) => console.log(error.name, error.code, error.message));
nextTick((a) => console.log('tick', a), 1);
queueMicrotask(() => console.log('microtask'));
await 0;
console.log(process === globalThis.process, typeof process.hrtime.bigint(), os.constants.signals.SIGINT, os.constants.errno.ENOENT);
process.once('custom', (x) => console.log('custom', x));
console.log(process.emit('custom', 5), process.emit('custom', 6), process.listenerCount('custom'));
