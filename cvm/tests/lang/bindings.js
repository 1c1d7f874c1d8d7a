// Where names are bound: parameters and bodies, classes inside and outside, heads of loops; the order of references.
const log = (...a) => console.log(a.map(String).join(' '));
const tr = (f) => { try { return f(); } catch (e) { return e.name + ':' + e.message; } };
// params
var x = 'outer';
function p1(a = () => x) { var x = 'inner'; return a() + x; }
log(p1());
function p2(x, g = () => x) { var x = 5; return g() + ' ' + x; }
log(p2(1));
function p3(x, g = () => x) { var x; x = 7; return g() + ' ' + x; }
log(p3(1));
function p4(x, g = () => x) { x = 9; return g() + ' ' + x; }
log(p4(1));
function p5(x, g = () => x) { function x() {} return typeof g() + ' ' + typeof x; }
log(p5(1));
function p6(x = 1, s = (v) => { x = v; }) { var x; s(3); return x; }
log(p6());
log(tr(() => { function f(a = b, b) {} f(); }));
log(tr(() => { function f(a = a) {} f(); }));
log(tr(() => { function f(a = () => b, b = a()) {} f(); }));
log(tr(() => { function f(a = () => b, b = 2) { return a(); } return f(); }));
log(tr(() => { function f([a = b] = [], b = 1) { } return f(); }));
log(tr(() => { function f({ [k]: v }, k) { } return f({}); }));
log(tr(() => { function f(a, b = (a = 3), c = a) { return [a, b, c]; } return f(1); }));
log(tr(() => { class C { m(a = b, b) {} } new C().m(); }));
log(tr(() => { const f = (a = b, b) => 1; return f(); }));
log(tr(() => { function f(...[a = a]) { } return f(); }));
log(tr(() => { function f(a = eval2, eval2 = 1) { } return f(1); }));
log(tr(() => { function f(a = arguments.length, b = arguments) { arguments[0] = 3; return a + ' ' + b.length; } return f(undefined, undefined, 3); }));
(async (a = b, b) => 1)().catch(e => log('async', e.message));
(async function (a = b, b) { })().catch(e => log('async', e.message));
log(tr(() => { function* g(a = b, b) { } g(); return 'no'; }));
log(tr(() => { async function* g(a = b, b) { } g(); return 'no'; }));
// class binding
log(tr(() => { class C { constructor() { C = 42; } } new C(); }));
log(tr(() => { class C { static m() { return C; } } const D = C; C = 1; return D.m() === D; }));
log(tr(() => { class C extends (C = Object) {} }));
log(tr(() => { class C { [C] () {} } }));
log(tr(() => { class C { static x = C.name; static { C.y = 1; } } return C.x + C.y; }));
log(tr(() => { let K = class Q { static m() { Q = 1; } }; K.m(); }));
log(tr(() => { class C { x = C.name; m() { return () => C.name; } } const D = C; C = { name: 'other' }; return new D().x + new D().m()(); }));
// heads
log(tr(() => { for (const x of [x]) { } }));
log(tr(() => { let f; for (const x of (f = () => x, [1])) { } return f(); }));
log(tr(() => { let f; for (const x in (f = () => x, { a: 1 })) { } return f(); }));
log(tr(() => { const fs = []; for (const x of [1, 2, 3]) fs.push(() => x); return fs.map(f => f()); }));
log(tr(() => { const fs = []; for (let x in { a: 1, b: 2 }) fs.push(() => x); return fs.map(f => f()); }));
log(tr(() => { const fs = []; for (let i = 0, g = () => i; i < 3; i++) { fs.push(() => i); fs.push(g); } return fs.map(f => f()); }));
log(tr(() => { const fs = []; for (let [a, b = () => a] of [[1], [2]]) fs.push(b); return fs.map(f => f()); }));
log(tr(() => { let x = 1; { f(); let x = 2; function f() { return x; } } }));
log(tr(() => { switch (0) { case 1: let z = 1; case 0: z = 2; } }));
log(tr(() => { const a = () => q; const r = []; try { a(); } catch (e) { r.push(e.message); } let q = 1; r.push(a()); return r; }));
// compound order
log(tr(() => { const b = null; b[{ toString() { throw new Error('key'); } }] += (() => { throw new Error('rhs'); })(); }));
log(tr(() => { const b = {}; const o = []; b[{ toString() { o.push('key'); return 'k'; } }] += (o.push('rhs'), 1); return o.join() + Object.keys(b); }));
log(tr(() => { const b = undefined; b[{ toString() { throw new Error('key'); } }]++; }));
log(tr(() => { const b = undefined; b[{ toString() { throw new Error('key'); } }] ??= 1; }));
log(tr(() => { let a = [1, 2]; a[0] += 5; a['1'] *= 3; a[1]++; return a; }));
log(tr(() => { let n = -0; return Object.is(n - 0, -0); }));
label: for (const i of [1, 2]) { for (const j of [1, 2]) { if (j === 2) continue label; log(i, j); } }
log(tr(() => { function f(x = 1, g = () => x++) { var x; g(); x = x + 10; g(); return x; } return f(); }));
log(tr(() => { function f({ x }, g = () => x) { var x = 2; return g() + x; } return f({ x: 40 }); }));
log(tr(() => { function f(x, y = x) { var x = 2; return y + x; } return f(40); }));
log(tr(() => { function f(y = () => x, ...x) { var x = 2; return y() + x; } return f(undefined, 40); }));
log(tr(() => { const f = (x, y = () => { x = 7; }) => { var x; y(); return x; }; return f(3); }));
function* gen(x, y = () => x) { var x = x + 1; yield y(); yield x; }
log([...gen(5)]);
(async (x, y = () => x) => { var x = 9; await 1; return y() + ' ' + x; })(4).then(log);
