const qs = require('querystring');
for (const text of ['a=1&b=2', 'a=1&a=2&a=3', 'a', '=1', '&&a=b', 'a=%20b+c', 'a=%zz', 'a=b=c', '%E4%BD%A0=x', 'a=%E4', '__proto__=1']) console.log(text, { ...qs.parse(text) });
for (const object of [{ a: 1, b: [1, 2], c: true, d: null, e: undefined, f: NaN, g: '\u00e4&=' }, {}, null, 5, { x: 10n }]) console.log(qs.stringify(object));
console.log(qs.stringify({ a: 1, b: 2 }, ';', ':'), { ...qs.parse('a:1;b:2', ';', ':') }, Object.keys(qs.parse('a=1&b=2&c=3', null, null, { maxKeys: 2 })), qs.escape('a b'), qs.unescape('%41'));
try { qs.escape('\ud800'); } catch (e) { console.log(e.name, e.code, e.message); }
