const stringify = require('fast-json-stable-stringify');
console.log(stringify({ b: 1, a: { d: [3, { z: 1, y: 2 }], c: null }, u: undefined, date: new Date(0) }), stringify([undefined, NaN, 'x']));
const cycle = { a: 1 }; cycle.me = cycle;
try { stringify(cycle); } catch (e) { console.log(e.name); }
console.log(stringify(cycle, { cycles: true }), stringify({ c: 3, a: 1, b: 2 }, (x, y) => (x.value < y.value ? 1 : -1)));
