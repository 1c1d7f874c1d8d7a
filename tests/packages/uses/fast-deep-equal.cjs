const equal = require('fast-deep-equal');
const es6 = require('fast-deep-equal/es6');
console.log(equal({ a: [1, { b: NaN }] }, { a: [1, { b: NaN }] }), equal([1], [2]), equal(new Date(1), new Date(1)), equal(/a/g, /a/i), equal(null, undefined), equal({ a: 1 }, { b: 1 }));
console.log(es6(new Map([[1, { a: 1 }]]), new Map([[1, { a: 1 }]])), es6(new Set([1, 2]), new Set([2, 1])), es6(Uint8Array.of(1, 2), Uint8Array.of(1, 3)));
