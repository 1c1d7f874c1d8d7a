import { Transform, Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import zlib from 'node:zlib';
const chunks = []; const upper = new Transform({ transform(c, e, cb) { cb(null, c.toString().toUpperCase()); } });
await pipeline(Readable.from(['hello ', 'stream ', 'world']), upper, zlib.createGzip(), zlib.createGunzip(), new Writable({ write(c, e, cb) { chunks.push(c); cb(); } })); console.log(Buffer.concat(chunks).toString());
await pipeline(Readable.from([1, 2, 3, 4]), async function* (src) { for await (const n of src) if (n % 2 === 0) yield n * 10; }, async (src) => { for await (const n of src) console.log('got', n); }); try { await pipeline(Readable.from(['x']), new Transform({ transform(c, e, cb) { cb(new Error('broken')); } }), new Writable({ write(c, e, cb) { cb(); } })); } catch (e) { console.log(e.message); }
