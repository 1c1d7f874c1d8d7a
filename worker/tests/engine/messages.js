// Writes messages.txt: scripts that throw, each with the message that Node shows.
// `node worker/tests/engine/messages.js > worker/tests/engine/messages.txt` (Node 20).
const vm = require('vm');
const cases = [
  // What is no function.
  'var obj = {}, x = 1; obj.mapp(x)', 'var obj = { a: { b: {} } }; obj.a.b.c()', 'var x = 1; x()', 'var x = () => 1; x(1)()',
  'var obj = { f() { return {}; } }; obj.f().g()', 'var a = [1]; a[0]()', 'var a = [1], i = 0; a[i]()', "var a = {}; a['x']()", 'var a = [{}], i = 0; a[i].b()',
  'var a = {}, f = (x) => x, i = 0; a[f(i)]()', '(function () { this.foo(); }).call({})', 'var x = 1; (x)()', '[].foo()', "'abc'.foo()",
  "'abc'[Symbol.iterator].foo()", '(5).foo()', '`abc`.foo()', 'var x = {}; x?.foo()', 'var x = { foo: 1 }; x.foo?.()', 'var x = { a: {} }; x?.a.foo()',
  'var x = { a: {} }; x?.a?.foo()', 'var x = [1]; x?.[0]()', 'var x = 1; x`a`', 'var x = {}; x.y`a`', 'undefined()', 'null()', 'true()', "'a'()",
  '(function () { return 1; })()()', '(() => 1)()()', '(function () {}).foo()', '(() => 1).foo()', '(class {}).foo()', 'var obj = {}, y = [1]; obj.x(...y)',
  'var x = 1, y = [1]; x(...y)', 'JSON.foo()', "JSON.parse('{}').foo()", 'var foo = { bar: 1 }; foo.bar.baz()', 'Object.create(null).foo()', "'x'.repeat(3).foo()",
  'var a, b = 1; a = b()', 'var a = {}, c = {}; a.b = c.d()', 'var x = {}; x.class()', 'var x = {}; x.if()', 'var f = () => ({}); f(...[1]).g()',
  'var f = () => [1]; f()[0]()', "var a = { 'k-x': {} }; a['k-x'].e()", 'var a = { k: {} }; a[`k`].b()',
  'var x = class {}; new x().foo()', 'class A { s() { super.foo(); } } new A().s()', 'new Date().foo()', 'var items = [1, 2]; items.mapp((x) => x * 2)',
  'var items = [1]; items.filter((x) => x.startsWith("a"))', 'var o = {}; o.a = o.b(1, 2, 3)', 'var o = {}; if (o.check()) { o.x = 1; }', 'var o = {}; return_ = o.m() + 1',
  'var o = {}; var y = 2 + o.m(y)', 'var o = {}, k = 1; o.m(k + 2 * k)', 'var o = {}; o.m({ a: 1, b: [2] })', 'var o = {}, q = 1; o.m({ q })', 'var o = {}, q = 1; o.m({ q: q, [q]: q })',
  'var o = {}; o.m(function () { return o; })', 'var o = {}; o.m(`t${o}`)', 'var o = {}, c = 1; o.m(c ? o : c)', 'var o = {}, c = 1; o.m(c && o)', 'var o = {}, c = 1; o.m(-c, !c, typeof c)',
  'var o = {}, c = 1; o.m(c = 3)', 'var o = {}, c = 1; o.m(c++)', 'var o = {}; o\n  .first\n  .second()', 'var o = { a() { return this; } }; o.a().a()\n  .bb().a()',
  'var o = {}; o /* note */ . m /* note */ ( /* note */ 1)', 'var o = {}; o.m( // note\n 1)', 'var o = {}; o.m()', 'async function f() { var o = {}; o.m(); } f().catch((e) => console.log(e.message))',
  'function* g() { var o = {}; yield o.m(); } g().next()', 'var o = {}; [1].forEach((x) => o.m(x))', 'var o = {}; [1].forEach(function (x) { o.m(x); })', 'const f = ({ a }) => a(); f({ a: 1 })',
  'class A { constructor() { this.m(); } } new A()', 'class A { x = this.m(); } new A()', 'class A { get x() { return this.m(); } } new A().x',
  'class A { m() { this.n(); } } new A().m()', 'var o = { m() { this.n(1); } }; o.m()', 'var o = { get m() { return this.n(1); } }; o.m', '(() => { var o = {}; return o.m(1); })()',
  // Several calls at one position: those that are functions are none of them.
  'var obj = {}; console.log(obj.foo())', 'var obj = {}; console.log(JSON.stringify(obj.foo()))', 'var obj = {}; console.log(obj.foo(obj))', 'function f(x) { return x; } var obj = {}; f(obj.foo())',
  '(() => { const f = (x) => x, obj = {}; f(obj.foo()); })()', '(() => { function f(x) { return x; } class C {} const obj = {}; f(new C(obj.foo())); })()', 'var obj = {}; new Map(obj.foo())',
  'var obj = {}; Promise.resolve(obj.foo(1)).then((x) => x)', 'var a = {}, b = {}; String(parseInt(a.x(b)))', 'var o = {}; Object.keys(o).map(String).foo(o)', 'var o = {}; Math.max(1, o.a(2))',
  'var f = 1; f(Math.max(1, 2))', 'var f = 1, o = { g: () => 1 }; f(1, 2)', 'var o = {}; console.log(`${o.foo()}`)', 'var o = {}; console.log("a" + o.foo())', 'var o = {}; console.log(o.foo() + "a")',
  // What is no constructor.
  'var x = 1; new x()', 'var x = 1; new x', 'var a = { b: 1 }; new a.b()', 'var a = {}; new a.b()', 'var a = { b: {} }; new a.b.c(1)', 'var f = () => 1; new f()', 'var f = () => 1; new (f())()',
  'var f = () => 1, x = 1; new f(x)', 'var q = { f: () => {} }; new q.f()', 'new Math.max()', 'new Date.foo()', 'class A {} A()', 'var o = { A: class B {} }; o.A()',
  // What has no properties.
  'var u; u.x', 'var u; u[0]', 'var u, i = 1; u[i]', "var u; u['a b']", 'var u; u.x = 1', 'var u = null, i = 0; u[i] = 1', 'var u; u.x++', 'var u; u.x += 1', 'var u = {}; u.a.b', 'var u; u.a()', 'null.x',
  'var u = {}; u.a.b.c', 'var u = {}; u.a[0].b', 'var u = null; u[Symbol.toPrimitive]', 'var u = {}; u.a.b = 1', 'var u; u?.a.b; u.length', 'var u = null; u.length',
  // What cannot be iterated.
  'var y; for (const q of y);', 'var y = 5; for (const q of y);', 'var y = {}; for (const q of y.z);', 'var y = { z() {} }; for (const q of y.z());', 'var y; [...y]', 'var y = 5; [...y]', 'var y = {}; [...y.z]',
  'var y = {}; for (const q of y) console.log(q)', 'for (const x of Math.max(1));', 'for (const x of new Date());', 'var u; u[Symbol.iterator]', '(([a]) => 1)()', '(([a]) => 1)(null)',
  // Variables.
  'x; let x', '{ x; const x = 1; }', 'yy.z', 'typeof zz; zz()',
  // Errors of scripts stay as they are.
  "throw new TypeError('not a function')", "var f = () => { throw new TypeError('not a function'); }; f()", "throw TypeError('not a function')",
  "try { throw new TypeError('not a function'); } catch (e) { throw e; }", "class E extends TypeError {} throw new E('not a function')", "var E = TypeError; throw new E('value is not iterable')",
  `throw new TypeError("cannot read property 'x' of undefined")`, "var e = new TypeError('not a function'); e.x = 1; throw e", "Promise.reject(new TypeError('not a function')).catch((e) => console.log(e.message))",
];
const out = [];
for (const script of cases) {
  const lines = [];
  const context = { console: { log: (text) => lines.push(text) } };
  try { vm.runInNewContext(script, context, { microtaskMode: 'afterEvaluate' }); } catch (error) { lines.push(`${error.name}: ${error.message}`); }
  out.push(script + '\n-----\n' + lines.join('\n'));
}
process.stdout.write(out.join('\n=====\n') + '\n=====\n');
