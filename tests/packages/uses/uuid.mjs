import { v1, v3, v4, v5, v7, validate, version, parse, stringify, NIL } from 'uuid';
console.log(v5('hello', v5.URL), v3('hello', v3.DNS), v4().length, validate(v4()), version(v7()), version(v1()));
console.log(v4({ random: Uint8Array.from({ length: 16 }, (_, i) => i * 7) }), parse('6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b'), stringify(parse(NIL)), validate('x'));
console.log(v7({ msecs: 1700000000000, random: new Uint8Array(16), seq: 5 }), v1({ msecs: 1e12, nsecs: 5, clockseq: 3, node: Uint8Array.of(1, 2, 3, 4, 5, 6) }));
try { parse('bad'); } catch (e) { console.log(e.name, e.message); }
