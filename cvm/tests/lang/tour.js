function fib(n) { return n < 2 ? n : fib(n-1) + fib(n-2); }
console.log(fib(20));
let xs = [3,1,2];
console.log(xs.map(x => x * 2), [5,1,4].sort((a,b)=>a-b));
class A { #p = 1; x = 2; static s = 5; constructor(y) { this.y = y; } get p() { return this.#p; } m() { return this.x + this.y; } }
class B extends A { constructor() { super(10); this.z = () => this.y; } m() { return super.m() + 1; } }
const b = new B();
console.log(b.m(), b.p, b.z(), A.s, b);
function* g() { const r = yield 1; console.log('got', r); try { yield 2; } finally { console.log('fin'); } }
for (const v of g()) { console.log(v); if (v === 2) break; }
let {a, ...rest} = {a: 1, b: 2, c: 3};
console.log(a, rest);
const [p, q = 5, ...r] = [1, undefined, 3, 4];
console.log(p, q, r);
console.log(`t ${{ toString() { return 'T'; } }} ${1+1}`);
async function f() { const v = await 5; return v + 1; }
f().then(v => console.log('async', v));
try { null.x; } catch (e) { console.log(e.message, e instanceof TypeError); }
label: for (let i = 0; i < 3; i++) { for (const k in {a:1,b:2}) { if (k === 'b') continue label; console.log(i, k); } }
console.log(JSON.stringify({a:[1,2,{b:null}], d: {toJSON() { return 'J' }}}, null, 2));
const fs2 = []; for (let i = 0; i < 3; i++) fs2.push(() => i); console.log(fs2.map(f => f()));
switch (3) { case 1: console.log('one'); case 3: console.log('three'); default: console.log('def'); }
console.log(typeof undefinedVar, [1,2,3].join('-'), 2**10, 7 % 3, -7 % 3, 0.1+0.2);
async function main() { const ans = ['x','y'].map(k => CC('what ' + k)); return ans; }
