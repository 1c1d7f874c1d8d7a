const hash = require('object-hash');
class P { constructor() { this.a = 1; } }
console.log(hash({ foo: 'bar', n: [1, 2, { z: 1 }] }), hash({ b: 1, a: 2 }) === hash({ a: 2, b: 1 }), hash.MD5([1, 'x', null]), hash.keys({ a: 1 }), hash.sha1(new Date(0)));
console.log(hash({ a: new Map([[1, 2]]), s: new Set([3, 1]), r: /x/g, b: Buffer.from('hi'), sy: Symbol('q'), u: undefined }), hash(['b', 'a'], { unorderedArrays: true }), hash({ f: 1 }, { algorithm: 'sha512', encoding: 'base64' }));
console.log(hash(new P(), { respectType: false }), hash(1n), hash(NaN), hash.writeToStream && typeof hash.writeToStream);
