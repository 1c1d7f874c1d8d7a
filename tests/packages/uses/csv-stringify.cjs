const { stringify } = require('csv-stringify');
const { stringify: sync } = require('csv-stringify/sync');
console.log(sync([[1, 'a,b', 'q"q', null, true, new Date(0), { o: 1 }], ['x\ny', '', undefined]], { header: true, columns: ['a', 'b', 'c', 'd', 'e', 'f', 'g'] }));
stringify([{ a: 1, b: '2' }], { header: true, quoted: true, delimiter: ';' }, (e, out) => console.log(e, out));
const s = stringify({ cast: { number: (n) => n.toFixed(2) } }); let all = ''; s.on('data', (d) => { all += d; }); s.on('finish', () => console.log(all)); s.write([1, 'x']); s.write([2.5, 'y']); s.end();
