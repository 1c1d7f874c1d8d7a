const { transform, objectTransform, transformer } = require('through2');
const t = transform(function (chunk, enc, cb) { this.push(chunk.toString().replace(/a/g, 'z')); cb(); }, function (cb) { this.push('!'); cb(); });
t.on('data', (d) => console.log('data', d.toString())).on('end', () => console.log('end')); t.write('banana'); t.end('a');
const o = objectTransform(async (x) => ({ n: x.n * 2 })); o.on('data', (d) => console.log(d)); o.write({ n: 1 }); o.end({ n: 2 });
const Ctor = transformer({ objectMode: true }, (x, e, cb) => cb(null, x + 1)); const c = new Ctor(); c.on('data', (d) => console.log('ctor', d)); c.end(1);
