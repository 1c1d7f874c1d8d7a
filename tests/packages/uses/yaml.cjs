const YAML = require('yaml');
const doc = YAML.parseDocument('# top\na: 1 # one\nb:\n  - x\n  - &anchor {y: 2}\n  - *anchor\n');
doc.setIn(['b', 0], 'changed'); doc.contents.add(doc.createPair('new', [1, 2]));
console.log(String(doc), doc.toJS(), YAML.stringify({ s: 'a: b', m: 'l1\nl2\n', n: [[], {}], t: true, u: undefined, k: 1e21 }));
console.log(YAML.parseAllDocuments('---\na\n---\nb\n').map((d) => d.toJS()), YAML.parse('!!set {a, b}'), YAML.parse('2001-12-14t21:59:43.10-05:00', { schema: 'yaml-1.1' }));
try { YAML.parse('a: b: c'); } catch (e) { console.log(e.name, e.code, e.message); }
