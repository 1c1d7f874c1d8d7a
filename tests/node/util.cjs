const util = require('node:util');
console.log(util.format('%s %d %i %f %j %O %%', 'a', 1.5, 2.7, '3.1', { a: 1 }, { b: 2 }), util.format(1, 'b', { c: [] }));
console.log(util.inspect({ a: { b: { c: { d: 1 } } } }), util.inspect({ a: { b: { c: { d: 1 } } } }, { depth: null }), util.inspect({ a: { b: 1 } }, { depth: 0 }));
console.log(util.inspect({ a: 1, b: [1, 2] }, { compact: false }), util.inspect({ [util.inspect.custom]: () => 'custom' }), util.inspect('it\'s'));
console.log(util.inspect(Object.fromEntries([...'abcdefghijklmnopqrst'].map((k, i) => [k, i])), { breakLength: Infinity }));
console.log(util.isDeepStrictEqual({ a: [1, new Set([{ x: 1 }])] }, { a: [1, new Set([{ x: 1 }])] }), util.isDeepStrictEqual([1], ['1']));
console.log(util.types.isPromise(Promise.resolve()), util.types.isProxy(new Proxy({}, {})), util.types.isGeneratorFunction(function* () {}), util.types.isDate({}));
console.log(util.stripVTControlCharacters('\u001b[31mred\u001b[39m'), util.getSystemErrorName(-2), util.toUSVString('\ud800').charCodeAt(0));
console.log(util.parseArgs({ args: ['-f', '--bar', 'b', 'c'], options: { f: { type: 'boolean', short: 'f' }, bar: { type: 'string' } }, allowPositionals: true }));
for (const call of [() => util.promisify(5), () => util.inherits(1), () => util.parseArgs({ args: ['--x'] })]) {
  try { call(); } catch (e) { console.log(e.name, e.code, e.message); }
}
(async () => {
  console.log(await util.promisify((a, done) => setTimeout(done, 1, null, a + 1))(1), await util.promisify(setTimeout)(1, 'later'));
  await util.promisify((done) => done(new Error('failed')))().catch((e) => console.log(e.message));
  util.callbackify(async (x) => x * 2)(4, (error, value) => console.log(error, value));
  util.callbackify(async () => { throw null; })((error) => console.log(error.code));
  console.log(util.types === require('util/types'), new util.TextEncoder().encode('ä').length);
})();
