const yaml = require('js-yaml');
console.log(yaml.load('a: 1\nlist:\n  - x\n  - {y: [1, 2.5, null, ~, true]}\ndate: 2020-01-02\ntext: |\n  one\n  two\nref: &r {k: v}\nuse: *r\nmerged:\n  <<: *r\n  z: 0x1F\n'));
console.log(yaml.dump({ b: [1, { c: 'multi\nline' }], s: 'yes', n: null, d: new Date(0), long: 'word '.repeat(30) }, { sortKeys: true }));
try { yaml.load('a: [1, 2\nb: }'); } catch (e) { console.log(e.name, e.reason, e.mark.line, e.message); }
