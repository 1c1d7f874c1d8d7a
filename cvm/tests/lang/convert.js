// Conversions by user code inside natives, however the native is called.
const n = (v) => ({ valueOf() { return CC("n" + v), v; }, toString() { return CC("s" + v), String(v); } });
const out = [];
out.push("abcdef".slice(n(1), n(3)));
out.push(String.prototype.slice.call(n("xyz"), n(1)));
out.push(String.prototype.slice.apply(n("pqrs"), [n(1), n(2)]));
out.push("abcdef".slice(...[n(2), n(4)]));
const bound = String.prototype.at.bind("hello", n(-1));
out.push(bound());
out.push(Reflect.apply(Math.max, null, [n(3), n(9), 4]));
out.push(new Date(n(2020), n(1), n(3)).getUTCFullYear());
out.push([n(1), n(2)].map(Number).join(), [1, 2].map(String.prototype.padStart, "z").length);
out.push(Math.pow(...[n(2), n(5)]));
class S extends String { constructor(v) { super(v); } }
out.push(new S(n("sub")).length);
out.push(Reflect.construct(Date, [n(5)]).getTime());
out.push([3, 1, 2].sort((a, b) => n(a - b)).join());
out.push("a1b".replace("1", { toString: () => CC("r") }));
out.push(parseInt(n("12px"), n(10)), isNaN(n("x")), Number(n(7)), String(n("q")), `${n(8)}`, n(1) + n(2), n(5) > n(4), n(1) == 1);
let v = n(3); v += n(4); let w = n(5); w++; let u = n(6); for (let i = n(0); i < n(2); i++) u -= 1;
out.push(v, w, u, { [n("key")]: 1 }, [1, 2, 3][n(1)], n("a") in { a: 1 });
console.log(out.map((x) => (typeof x === "object" ? JSON.stringify(x) : String(x))).join(" | "));
