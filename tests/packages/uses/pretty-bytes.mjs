import prettyBytes from 'pretty-bytes';
console.log([0, 999, 1337, 1e9, -1e6, 10.1, 1e24].map((n) => prettyBytes(n)), prettyBytes(42, { signed: true }), prettyBytes(1920, { bits: true }), prettyBytes(1536, { binary: true }));
console.log(prettyBytes(1337, { locale: 'de' }), prettyBytes(123456, { minimumFractionDigits: 3 }), prettyBytes(1e7, { locale: true }));
try { prettyBytes('x'); } catch (e) { console.log(`${e}`); }
