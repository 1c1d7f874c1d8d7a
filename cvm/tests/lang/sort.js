// Sorting: order, stability, comparators that answer with all sorts of things, and arrays that change meanwhile.
let seed = 7;
const random = () => (seed = (seed * 16807) % 2147483647);
let wrong = 0;
for (let n = 0; n < 40; n += n < 20 ? 1 : 7) for (const mod of [3, 1000]) {
  const list = Array.from({ length: n }, (_, i) => ({ k: random() % mod, i }));
  const up = list.slice().sort((a, b) => a.k - b.k), down = list.toSorted((a, b) => b.k - a.k);
  for (let i = 1; i < n; i++) {
    if (up[i - 1].k > up[i].k || (up[i - 1].k === up[i].k && up[i - 1].i > up[i].i)) wrong++;
    if (down[i - 1].k < down[i].k || (down[i - 1].k === down[i].k && down[i - 1].i > down[i].i)) wrong++;
  }
  if (new Set(up).size !== n || new Set(down).size !== n) wrong++;
}
console.log(wrong);
console.log(String([5, 1, 4].sort()), String([3, undefined, 1, , 2].sort((a, b) => b - a)), String(["b", , "a"].sort()));
console.log(String([3, 1, 2].sort(() => undefined)), String([3, 1, 2].sort((a, b) => ({ valueOf() { return a - b; } }))), String([3, 1, 2].sort((a, b) => String(a - b))));
for (const f of [() => 1n, () => Symbol(), () => { throw new Error("x"); }]) try { [2, 1].sort(f); } catch (e) { console.log(e.name); }
try { Object.freeze([2, 1]).sort((a, b) => a - b); } catch (e) { console.log(e.name); }
const changed = [3, 2, 1]; let calls = 0;
changed.sort((a, b) => { if (calls++ === 0) changed.length = 1; return a - b; });
console.log(String(changed), calls);
console.log(Array.prototype.sort.call({ length: 3, 0: "c", 1: "a", 2: "b" }, (a, b) => (a < b ? -1 : 1))[0]);
console.log([].sort((a, b) => 1).length, String([1].sort((a, b) => 1)));
console.log(String([4, 3, 2, 1].sort((a, b) => { const r = a - b; if (a + b === 5) CC("compare " + a + " " + b); return r; })));
