// Writes values.txt: console calls with values generated from a seed, each with what Node's console wrote.
// `node inspect/tests/values.js > inspect/tests/values.txt` (Node 20). Both engines are compared with it.
let seed = 20261123;
const random = (most) => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return Math.floor((seed / 4294967296) * most);
};
const pick = (list) => list[random(list.length)];
const many = (most, make) => Array.from({ length: random(most + 1) }, make);

const words = ['alpha', 'b', 'gamma ray', 'it\'s', 'say "x"', 'tab\\t', 'line\\nbreak', '日本', 'ünï', '', 'x'.repeat(30), '`$' + '{a}`',
  'back\\\\slash', '\\u0001', '\\ud83d\\ude00', '\\ud83d', 'a rather long text\\nwith two lines in it, and more than that', '__proto__', '0x1'];
const quoted = () => '"' + pick(words).replace(/"/g, '\\"') + '"';
const keys = ['a', 'b', 'id', 'title', 'with space', 'dash-ed', '7', '$x', '_y', 'ключ', 'constructorName', 'aLongerPropertyName'];
const leaf = () => pick([
  () => String(random(1000)), () => String(random(1e6) / 100), () => '-' + random(50), () => pick(['NaN', 'Infinity', '-0', '1e21', '1e-7']),
  quoted, quoted, () => 'true', () => 'null', () => 'undefined', () => random(99) + 'n', () => `Symbol(${quoted()})`,
  () => 'Symbol.iterator', () => `new Date(${random(2e9)}000)`, () => 'new Date(NaN)', () => pick(['/a+/g', '/x\\/y/', 'new RegExp("a/b", "iu")']),
  () => pick(['() => {}', 'function named() {}', 'async () => {}', 'function* gen() {}', 'async function* ag() {}', 'class A {}', 'class extends Map {}',
    'class Sub extends Array {}', 'Math.max', 'Array', '(function () {}).bind(null)', '(function named() {}).bind()']),
  () => pick(['Object(1)', 'Object("ab")', 'Object(false)', 'Object(Symbol("s"))', 'Object(7n)', 'Object(-0)']),
  () => pick(['new WeakMap()', 'new WeakSet()', 'Promise.resolve(1)', 'new Promise(() => {})', 'Math', 'JSON', 'Reflect']),
])();
const property = (depth) => pick([
  () => `${key()}: ${value(depth)}`, () => `${key()}: ${value(depth)}`, () => `${key()}: ${value(depth)}`, () => `[Symbol(${quoted()})]: ${value(depth)}`,
  () => `get ${pick(['p', 'q'])}() { return 1 }`, () => `set ${pick(['p', 'q'])}(v) {}`, () => 'method() {}',
])();
const key = () => JSON.stringify(pick(keys));
const value = (depth) => (depth <= 0 ? leaf() : pick([
  leaf, () => `[${many(8, () => value(depth - 1)).join(', ')}]`, () => `{ ${many(5, () => property(depth - 1)).join(', ')} }`,
  () => `[${many(40, () => random(3) ? random(10000) : random(9)).join(', ')}]`, () => `[${many(30, quoted).join(', ')}]`,
  () => `new Map([${many(4, () => `[${value(depth - 1)}, ${value(depth - 1)}]`).join(', ')}])`,
  () => `new Set([${many(5, () => value(depth - 1)).join(', ')}])`,
  () => `[${many(3, leaf).concat('').join(', ')}, , ${leaf()}, , , ${leaf()}]`,
  () => `Object.assign([${many(4, leaf).join(', ')}], { ${many(2, () => property(depth - 1)).join(', ')} })`,
  () => `Object.assign(Object.create(null), { ${many(3, () => property(depth - 1)).join(', ')} })`,
  () => `new (class ${pick(['Point', 'Node_', 'Q'])} { constructor() { this.x = ${value(depth - 1)} } #hidden = 1; y = ${leaf()} })()`,
  () => `new (class Tagged { z = ${leaf()}; static { this.prototype[Symbol.toStringTag] = 't' } })()`,
  () => `new (class List extends Array {})(${many(3, leaf).concat('1', '2').join(', ')})`,
  () => `new (class Table extends Map {})([[${leaf()}, ${value(depth - 1)}]])`,
  () => `Object.assign(() => {}, { ${many(3, () => property(depth - 1)).join(', ')} })`,
  () => `new Proxy(${pick(['{ a: 1 }', '[1, 2]', 'function f() {}'])}, {})`,
  () => `Promise.resolve(${value(depth - 1)})`,
  () => `(function () { return arguments })(${many(3, leaf).join(', ')})`,
  () => `(() => { const o = { list: [${leaf()}] }; o.self = o; o.list.push(o.list, { up: o }); return o })()`,
  () => `Object.assign(new Date(0), { extra: ${leaf()} })`,
  () => `(() => { const e = new ${pick(['Error', 'TypeError', 'RangeError'])}(${quoted()}); e.stack = e.name + ': ' + e.message + '\\n    at f (x.js:1:2)'; ${pick(['', 'e.code = 5;', 'e.cause = ' + leaf() + ';'])} return e })()`,
  () => `Object.defineProperty({ seen: ${leaf()} }, 'hidden', { value: 1 })`,
  () => `Object.create({ inherited: 1 }, { own: { value: ${leaf()}, enumerable: true } })`,
  () => '(function* () {})()',
])());
const messages = ['%s', '%d and %i', '%f|%O', '%i', '%O %s', 'a %% b %s', '%c styled', '%x %s', 'plain', '%s %s %s', '%d%%'];
const call = () => pick([
  () => `console.log(${value(3)})`, () => `console.log(${value(2)}, ${value(3)})`, () => `console.log(${value(4)})`,
  () => `console.log(${JSON.stringify(pick(messages))}, ${many(3, leafOfMessage).concat(leafOfMessage()).join(', ')})`,
  () => `console.table([${many(4, () => `{ ${many(3, () => `${key()}: ${value(1)}`).join(', ')} }`).join(', ')}])`,
  () => `console.group(${value(1)}); console.log(${value(3)}); console.groupEnd(); console.log(${leaf()})`,
  () => `console.dir(${value(4)}, { depth: ${pick(['0', '1', 'null', '5'])} })`,
  () => `console.assert(${pick(['0', 'true', '""', '[]'])}, 'a %s', ${leafOfMessage()})`,
])();
// `%o` shows what is not enumerable, `%j` calls `toJSON`, and `%s` shows a function's source, in Node alone.
const leafOfMessage = () => pick([() => String(random(1000)), quoted, () => 'null', () => 'true', () => '{ a: 1, b: { c: [1] } }', () => `${random(99)}n`, () => '[1, "x"]', () => '1.75'])();

const out = [];
const { Console } = require('console');
const { Writable } = require('stream');
for (let number = 0; number < 400; number += 1) {
  const script = call();
  const lines = [];
  const stream = new Writable({ write(chunk, encoding, done) { lines.push(String(chunk).replace(/\n$/, '')); done(); } });
  const console = new Console({ stdout: stream, stderr: stream, colorMode: false });
  new Function('console', script)(console);
  out.push(script + '\n-----\n' + lines.join('\n'));
}
process.stdout.write(out.join('\n=====\n') + '\n=====\n');
