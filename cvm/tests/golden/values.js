// One of every kind of value and object alive at the pause.
class Shape { static #made = 0; #secret = 'hidden'; static made() { return Shape.#made; } constructor(name) { this.name = name; Shape.#made++; } peek() { return this.#secret; } get [Symbol.toStringTag]() { return 'Shape'; } }
class Square extends Shape { side = 2; constructor() { super('square'); this.area = () => this.side ** 2; } peek() { return `${super.peek()}!`; } }
const big = 2n ** 100n, negative = -(3n ** 60n), when = new Date(86400000), pattern = /(?<year>\d{4})-(?<month>\d\d)/gdy;
const map = new Map([['a', 1], [NaN, 'nan'], [big, 'big'], [when, 'date']]), set = new Set([1, '1', -0, map]);
const weak = new WeakMap([[map, 'weak']]), reference = new WeakRef(set), symbol = Symbol('own'), shared = Symbol.for('shared');
const bound = function (...rest) { return [this.x, ...rest]; }.bind({ x: 1 }, 2);
const proxy = new Proxy({ real: 1 }, { get: (target, key, receiver) => (key in target ? target[key] : `made ${String(key)}`) });
const frozen = Object.freeze({ deep: Object.seal([1, , 3]) }), accessor = { get one() { return 1; }, set one(value) { this.kept = value; } };
const tag = (strings, ...values) => strings.raw.join('|') + values.join(), again = () => tag`a\n${1}b`, raw = ((s) => s);
const strings = () => raw`same`, first = strings();
const long = 'narrow text '.repeat(300), wide = 'wide ☃ text '.repeat(300), lone = '\ud800', numbers = [0, -0, 1.5, NaN, Infinity, -2147483648, 2147483648, 5e-324];
const square = new Square(), iterator = map.entries(), cycle = { square }; cycle.self = cycle;
const sparse = [1]; sparse[5000] = 2; const big_keys = { 4294967295: 'x', '-1': 'y', [symbol]: 'z', 7: 'w' };
function argumentsOf() { return arguments; }
const passed = argumentsOf(1, 'two'), error = new TypeError('kept', { cause: 'why' }), boxed = [Object(1), Object('text'), Object(true), Object(symbol), Object(1n)];
pattern.lastIndex = 3; iterator.next(); map.delete('a');
function main() {
  const answer = CC('values', { schema: { type: 'string', examples: [1, 2] } });
  pattern.lastIndex = 0;
  const found = pattern.exec('2024-05');
  return {
    answer, big: String(big), negative: String(negative), when: when.toISOString(), year: found.groups.year, at: found.indices.groups.month, map: [...map].length, left: [...iterator].length,
    set: [set.has(0), set.has('1'), set.size], weak: weak.get(map), same: reference.deref() === set, symbol: String(symbol), shared: shared === Symbol.for('shared'), bound: bound(3),
    proxy: [proxy.real, proxy.other], frozen: [Object.isFrozen(frozen), 1 in frozen.deep], one: (accessor.one = 5, accessor.kept), tagged: again(), raw: first === strings(),
    text: [long.length, wide.length, lone.charCodeAt(0), wide.at(5)], numbers: numbers.map((n) => Object.is(n, -0) ? '-0' : String(n)), square: [square.peek(), square.area(), String(square), Shape.made(), square instanceof Shape],
    cycle: cycle.self === cycle, sparse: [sparse.length, sparse.indexOf(2), 3 in sparse], keys: Reflect.ownKeys(big_keys).map(String), passed: [passed.length, ...passed], error: [error.message, error.cause, error.name],
    boxed: boxed.map((b) => typeof b.valueOf()), random: Math.random() < 1, global: typeof globalThis.CC,
  };
}
