const split2 = require('split2');
const { Readable } = require('stream');
const s = Readable.from([Buffer.from('{"a":1}\n{"b"'), Buffer.from(':2}\n\n{"c":3}')]).pipe(split2((l) => (l ? JSON.parse(l) : undefined)));
s.on('data', (d) => console.log(d)); s.on('end', () => console.log('end'));
const p = split2(/\s*;\s*/); p.on('data', (d) => console.log('part', d)); p.write('a ; b;'); p.end('c'); setTimeout(() => { const m = split2({ maxLength: 2 }); m.on('error', (e) => console.log(e.message)); m.write('abcdef'); }, 40);
