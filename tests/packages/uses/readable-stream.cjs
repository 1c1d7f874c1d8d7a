const { Readable, Writable, Transform, PassThrough, pipeline, finished, Duplex } = require('readable-stream');
const up = new Transform({ transform(c, e, cb) { cb(null, c.toString().toUpperCase()); } }); const out = [];
pipeline(Readable.from(['a', 'b', 'c']), up, new Writable({ write(c, e, cb) { out.push(c.toString()); setTimeout(cb, 1); } }), (e) => console.log('pipeline', e, out));
const r = new Readable({ read() {}, highWaterMark: 2 }); console.log(r.push('abc'), r.readableLength, r.readableHighWaterMark); r.push(null); r.on('data', (d) => console.log('data', d)).on('end', () => console.log('end')).on('close', () => console.log('close'));
finished(new PassThrough().destroy(new Error('x')).on('error', (e) => console.log('error', e.message)), (e) => console.log('finished', e.message));
(async () => { console.log(await Readable.from([1, 2, 3]).map((x) => x * 2).toArray()); for await (const x of Readable.from((async function* () { yield 'i'; })())) console.log(x); })(); console.log(new Duplex() instanceof Writable, r instanceof require('stream').Readable);
