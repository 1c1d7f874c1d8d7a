const merge = require('deepmerge');
console.log(merge({ a: { b: [1], c: 1 }, d: new Date(0) }, { a: { b: [2], e: { f: null } } }), merge.all([{ x: 1 }, { y: { z: 1 } }, { y: { w: 2 } }]));
console.log(merge({ l: [1, 2, 3] }, { l: [9] }, { arrayMerge: (target, source) => source }), merge([{ a: 1 }], [{ b: 2 }]), merge({ [Symbol.for('s')]: 1 }, { r: /x/i }));
