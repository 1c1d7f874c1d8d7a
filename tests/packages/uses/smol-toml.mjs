import { parse, stringify, TomlDate, TomlError } from 'smol-toml';
const v = parse('title = "x"\nn = 1_000\nf = 6.02e23\nd = 1979-05-27T07:32:00Z\nl = 07:32:00\n[a.b]\nc = [1, 2, "é"]\n[[t]]\nq = true\n[[t]]\nq = { z = \'lit\' }\n');
console.log(v, v.d instanceof TomlDate, v.d.toISOString(), v.l.isTime());
console.log(stringify({ a: 1, b: { c: [1, 2], d: new Date(0) }, e: [{ x: 1 }, { x: 2 }] }));
try { parse('a = 1\nb = = 2'); } catch (e) { console.log(e instanceof TomlError, e.line, e.column, e.message); }
